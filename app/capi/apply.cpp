// SPDX-License-Identifier: Apache-2.0
// apply.cpp: qrtool_apply: every B and its factors in float64, a thread a matrix.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <vector>

#include "app/capi/context.hpp"
#include "app/capi/given_matrices.hpp"
#include "app/capi/overlap.hpp"
#include "app/capi/reports.hpp"
#include "core/apply/apply.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/machine/parallel.hpp"

namespace qrtool::capi {
namespace {

/// The arrays of a call. tau: the factor itself without reflectors.
struct ApplyCall {
  ApplyProblem problem;
  const qrtool_matrices &factor, &tau, &b;
  const std::int64_t* p;
  index_t count;
};

/// Finds the factor that the product needs, and whether everything fits.
ApplyCall call_of(const qrtool_given_factors& f, const qrtool_matrices& b, Product product) {
  const bool has_q = uses_q(product), has_reflectors = f.v != nullptr;
  const qrtool_matrices* const factor = has_reflectors ? f.v : has_q ? f.q : f.r;
  if (factor == nullptr || (has_reflectors && f.tau == nullptr))
    throw UsageError(has_q ? "give q, or v and tau" : "give r, or v and tau");
  const qrtool_matrices& tau = has_reflectors ? *f.tau : *factor;
  for (const auto& [given, name] : {std::pair(factor, "the factor"), {&b, "b"}, {&tau, "tau"}}) {
    require_valid(*given, name);
    if (given->type != b.type) throw UsageError("b and the factors must be of one type");
  }
  const index_t m = factor->rows, n = factor->columns, count = factor->count;
  if (!has_q && (m < n || (m > n && !has_reflectors)))
    throw UsageError(fmt::format("{} is {} x {}; R^-1 needs a square r, or v with m >= n",
                                 has_reflectors ? "v" : "r", m, n));
  if (has_reflectors && (tau.rows != 1 || tau.columns != std::min(m, n) || tau.count != count))
    throw UsageError(fmt::format("tau must be {} x 1 x {}", count, std::min(m, n)));
  ApplyCall call{.problem = ApplyProblem::of(product, m, n, has_reflectors),
                 .factor = *factor,
                 .tau = tau,
                 .b = b,
                 .p = has_q ? nullptr : f.p,
                 .count = count == 1 ? b.count : count};
  call.problem.precision = precision_of(type_of(b, "b"));
  call.problem.is_single = real_of(type_of(b, "b")) == ElementType::float32;
  if (b.rows != call.problem.b_rows || (b.count != call.count && b.count != 1))
    throw UsageError(fmt::format("b is {} x {} x {}; for these {} factors it must have {} rows",
                                 b.count, b.rows, b.columns, count, call.problem.b_rows));
  return call;
}

template <class S>
struct Worker {
  GivenMatrices<S> factor, tau, b;
  Batch<S> x;
  std::vector<SideReport> reports;

  explicit Worker(const ApplyCall& call)
      : factor(call.factor, false),
        tau(call.tau, false),
        b(call.b, false),
        x(1, call.problem.x_rows, call.b.columns),
        reports(static_cast<std::size_t>(call.b.columns)) {}
  void apply(const ApplyCall& call, index_t place, int threads) {
    const ApplyProblem& p = call.problem;
    const index_t of_factor = call.factor.count == 1 ? 0 : place;
    AppliedFactors<S> f;
    (p.has_reflectors ? f.v : uses_q(p.product) ? f.q : f.r) = factor.matrix(of_factor);
    if (p.has_reflectors) f.tau = tau.matrix(of_factor).data;
    if (call.p != nullptr) {
      f.p = call.p + of_factor * p.n;
      permutation_of(f.p, p.n, "p", of_factor);
    }
    apply_factors<S>(p, f, b.matrix(call.b.count == 1 ? 0 : place), x.view()[0], reports, threads);
  }
};

template <class T>
void run(const qrtool_context& context, const ApplyCall& call, const Strided<T>& x,
         Solutions& lines) {
  using S = Wide<T>;
  const ApplyProblem& p = call.problem;
  const index_t sides = call.b.columns, of_factor = call.factor.rows * call.factor.columns;
  const int all = context.limits.threads, inner = call.count < all ? all : 1;
  const int threads = threads_in_memory(
      context.limits, inner > 1 ? 1 : all,
      static_cast<std::size_t>(of_factor + (p.b_rows + p.x_rows) * sides) * sizeof(S) +
          p.workspace_bytes(sides, sizeof(S)),
      fmt::format("applying {} x {} factors", call.factor.rows, call.factor.columns));
  std::vector<Worker<S>> workers;
  for (int i = 0; i < threads; ++i) workers.emplace_back(call);
  std::atomic<bool> are_good = true;
  const auto apply = [&](index_t place, Worker<S>& worker) {
    worker.apply(call, place, inner);
    copy<S, T>(packed_in(worker.x), x.slice(place, 1), 1);
    for (index_t j = 0; j < call.b.columns; ++j) {
      const SideReport& one = worker.reports[static_cast<std::size_t>(j)];
      const SolutionReport line{
          .backward_error = one.error, .bar = one.bar, .status = one.status, .tries = one.tries};
      if (!lines.put(place * call.b.columns + j, report_of(line, {}, /*ridge=*/0)))
        are_good = false;
    }
  };
  for (index_t first = 0, some = index_t{1024} * threads; first < call.count; first += some) {
    if (first > 0) context.require_going_on();
    parallel_for(std::min(some, call.count - first), threads, [&](index_t i, int worker) {
      apply(first + i, workers[static_cast<std::size_t>(worker)]);
    });
  }
  lines.count(are_good);
}

}  // namespace
}  // namespace qrtool::capi

using namespace qrtool;
using namespace qrtool::capi;

int qrtool_apply(qrtool_context* context, const qrtool_given_factors* factors,
                 const qrtool_matrices* b, const qrtool_apply_options* options,
                 const qrtool_solutions* out) {
  return on_context(context, [&](qrtool_context& c) {
    if (factors == nullptr || b == nullptr || out == nullptr)
      throw UsageError("qrtool_apply: factors, b or out is NULL");
    const qrtool_apply_options o = taken(options, "qrtool_apply_options");
    require_within("product", o.product, QRTOOL_RINVT);
    const ApplyCall call =
        call_of(taken(factors, "qrtool_given_factors"), *b, static_cast<Product>(o.product));
    const qrtool_solutions place = taken(out, "qrtool_solutions");
    Solutions lines(place.solutions, place.solution_size);
    with_type(type_of(*b, "b"), [&](auto zero) {
      using T = decltype(zero);
      const auto x = place_for<T>(place.x, "x", call.count, call.problem.x_rows, b->columns);
      if (!x.is_there() && x.count * x.rows * x.cols > 0) throw UsageError("x: its place is NULL");
      const Strided<const T> of_factor = strided<T>(call.factor), of_b = strided<T>(*b);
      const CallArray arrays[] = {call_array("b", of_b), call_array("the factor", of_factor)};
      if (c.are_on_device(arrays, {}, nullptr))
        throw UsageError("qrtool_apply takes arrays in host memory");
      const Footprint outputs[] = {
          {"x", x}, {"solutions", lines.first(), call.count * b->columns, lines.size()}};
      const Footprint inputs[] = {
          {"b", of_b}, {"the factor", of_factor}, {"tau", strided<T>(call.tau)}};
      require_apart(outputs, inputs);
      if (call.count * b->columns == 0) return;
      const std::lock_guard lock(c.mutex);
      c.note_work();
      run<T>(c, call, x, lines);
    });
    return lines.code();
  });
}
