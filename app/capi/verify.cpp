// SPDX-License-Identifier: Apache-2.0
// verify.cpp: qrtool_verify: every matrix and its factors in float64, a thread a matrix.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "app/capi/arrays.hpp"
#include "app/capi/context.hpp"
#include "app/capi/device_calls.hpp"
#include "app/capi/given_matrices.hpp"
#include "app/capi/overlap.hpp"
#include "app/capi/reports.hpp"
#include "app/engine/factors_meter.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/machine/parallel.hpp"

namespace qrtool::capi {
namespace {

/// The arrays of a call, whose shapes fit each other.
struct Given {
  qrtool_matrices a;
  std::optional<qrtool_matrices> q, r, v, tau;
  const std::int64_t* p;

  index_t k() const { return std::min(a.rows, a.columns); }
  FactorsShape shape(int threads) const {
    const index_t q_cols = v ? k() : q ? q->columns : 0;
    return {.sizes = {a.rows, a.columns, q_cols, v ? k() : r->rows, threads,
                      is_complex(type_of(a, "a"))},
            .has_q = q || v,
            .has_reflectors = v.has_value()};
  }
};

void require_shape(const Given& given, const char* name, const qrtool_matrices& matrices,
                   index_t rows, index_t cols) {
  if (matrices.count == given.a.count && matrices.rows == rows && matrices.columns == cols) return;
  throw UsageError(
      fmt::format("{} is {} x {} x {}; for this A ({} x {} x {}) it must be {} x {} x {}", name,
                  matrices.count, matrices.rows, matrices.columns, given.a.count, given.a.rows,
                  given.a.columns, given.a.count, rows, cols));
}

std::optional<qrtool_matrices> taken_matrices(const qrtool_matrices* matrices, const char* name,
                                              ElementType type_of_a) {
  if (matrices == nullptr) return std::nullopt;
  require_valid(*matrices, name);
  if (is_complex(type_of(*matrices, name)) != is_complex(type_of_a))
    throw UsageError(fmt::format("A and {} must both be real or both be complex", name));
  return *matrices;
}

Given given_of(const qrtool_matrices& a, const qrtool_given_factors& f) {
  require_valid(a, "a");
  const ElementType type = type_of(a, "a");
  Given given{.a = a,
              .q = taken_matrices(f.q, "q", type),
              .r = taken_matrices(f.r, "r", type),
              .v = taken_matrices(f.v, "v", type),
              .tau = taken_matrices(f.tau, "tau", type),
              .p = f.p};
  const bool are_reflectors = given.v && given.tau && !given.q && !given.r;
  const bool are_factors = given.r && !given.v && !given.tau;
  if (!are_reflectors && !are_factors) throw UsageError("give q and r; or r alone; or v and tau");
  const index_t m = a.rows, n = a.columns, k = given.k();
  if (are_reflectors) {
    require_shape(given, "v", *given.v, m, n);
    require_shape(given, "tau", *given.tau, 1, k);
    return given;
  }
  const bool is_complete = given.q ? given.q->columns == m && m != k : given.r->rows == m && m != k;
  if (given.q) require_shape(given, "q", *given.q, m, is_complete ? m : k);
  require_shape(given, "r", *given.r, is_complete ? m : k, n);
  return given;
}

/// Checks that no reports share memory with the arrays. Errors: UsageError.
void require_apart(const Given& given, const Reports& reports) {
  std::vector<Footprint> inputs;
  const auto add = [&](const char* name, const qrtool_matrices& matrices) {
    with_type(type_of(matrices, name),
              [&](auto zero) { inputs.emplace_back(name, strided<decltype(zero)>(matrices)); });
  };
  add("a", given.a);
  if (given.q) add("q", *given.q);
  if (given.r) add("r", *given.r);
  if (given.v) add("v", *given.v);
  if (given.tau) add("tau", *given.tau);
  inputs.emplace_back("p", given.p, given.a.count * given.a.columns, sizeof(std::int64_t));
  const Footprint outputs[] = {{"reports", reports.first(), given.a.count, reports.size()}};
  require_apart(outputs, inputs);
}

Precision precision_of(const Given& given, bool is_mixed) {
  if (is_mixed) return mixed_precision;
  for (const auto& matrices : {given.q, given.r, given.v})
    if (matrices && real_of(type_of(*matrices, "")) == ElementType::float32)
      return single_precision;
  return double_precision;
}

/// The memory of one thread.
template <class T>
struct Worker {
  Worker(const Given& g, int threads, Check check, const BarsOf& bars_of)
      : meter(g.shape(threads), check, bars_of), a(g.a, g.p != nullptr) {
    if (g.q) q = {*g.q, false};
    if (g.r) r = {*g.r, false};
    if (g.v) v = {*g.v, false};
    if (g.tau) tau = {*g.tau, false};
  }

  Measurement measure(const Given& g, index_t b) {
    GivenFactors<T> factors{.a = g.p == nullptr ? a.matrix(b) : permuted(g, b)};
    if (g.q) factors.q = q.matrix(b);
    if (g.r) factors.r = r.matrix(b);
    if (g.v) factors.v = v.matrix(b);
    if (g.tau) factors.tau = tau.matrix(b).data;
    return meter.measure(b, factors);
  }

  FactorsMeter<T> meter;
  GivenMatrices<T> a, q, r, v, tau;

 private:
  MatrixView<const T> permuted(const Given& g, index_t b) {
    const index_t n = g.a.columns;
    const MatrixView<T> matrix = a.copied(b);
    permute_columns<T>(matrix, permutation_of(g.p + b * n, n, "p", b));
    return matrix;
  }
};

/// The number of threads over matrices, and the number that share a matrix.
template <class T>
std::pair<int, int> threads_for(const Given& g, Check check, const Limits& limits) {
  const auto most = static_cast<int>(std::min<index_t>(limits.threads, g.a.count));
  const int sharing = limits.threads / most;
  const FactorsShape shape = g.shape(sharing);
  const ErrorFinder::Shape& s = shape.sizes;
  const auto entries = static_cast<std::size_t>(s.m * s.n + s.m * s.q_cols + s.r_rows * s.n);
  const std::size_t bytes = FactorsMeter<T>::workspace_bytes(shape, check) + entries * sizeof(T);
  const std::string what = fmt::format("measuring one {} x {} matrix", s.m, s.n);
  return {threads_in_memory(limits, most, bytes, what), sharing};
}

/// `number`: of the first matrix that was given with this one.
void add(const Measurement& m, Reports& reports, index_t number) {
  reports.add(number + m.matrix, report_of({.residual = m.errors.residual,
                                            .orthogonality = m.errors.orthogonality,
                                            .lower = m.errors.lower,
                                            .diagonal_ratio = m.errors.diagonal_ratio,
                                            .status = m.status,
                                            .scale = m.errors.scale,
                                            .bars = m.bars}));
}

/// The entries that are measured before the caller is asked whether to go on.
constexpr index_t entries_at_once = index_t{1} << 24;

template <class T>
void run(const qrtool_context& context, const Given& given, Check wanted, const BarsOf& bars_of,
         Reports& reports, index_t number) {
  const ErrorFinder::Shape shape = given.shape(1).sizes;
  const bool is_estimated = !shape.is_complex && ErrorProbe::pays(shape.m, shape.n, shape.q_cols);
  const Check check = is_estimated ? wanted : Check::full;
  const auto [threads, sharing] = threads_for<T>(given, check, context.limits);
  std::vector<Worker<T>> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (int i = 0; i < threads; ++i) workers.emplace_back(given, sharing, check, bars_of);
  const index_t at_once = std::max<index_t>(
      threads, entries_at_once / std::max<index_t>(given.a.rows * given.a.columns, 1));
  std::vector<Measurement> found(static_cast<std::size_t>(std::min(at_once, given.a.count)));
  for (index_t first = 0; first < given.a.count; first += at_once) {
    if (first > 0) context.require_going_on();
    const index_t count = std::min(at_once, given.a.count - first);
    parallel_for(count, threads, [&](index_t i, int worker) {
      found[static_cast<std::size_t>(i)] =
          workers[static_cast<std::size_t>(worker)].measure(given, first + i);
    });
    for (index_t i = 0; i < count; ++i) add(found[static_cast<std::size_t>(i)], reports, number);
  }
}

/// Calls body(name, matrices, typed matrices) for each array of the call.
template <class Body>
void for_each_array(Given& given, Body body) {
  const auto call = [&](const char* name, qrtool_matrices& matrices) {
    with_type(type_of(matrices, name),
              [&](auto zero) { body(name, matrices, strided<decltype(zero)>(matrices)); });
  };
  call("a", given.a);
  if (given.q) call("q", *given.q);
  if (given.r) call("r", *given.r);
  if (given.v) call("v", *given.v);
  if (given.tau) call("tau", *given.tau);
}

void measure_on_host(qrtool_context& context, const Given& given, Check check,
                     const BarsOf& bars_of, Reports& reports, index_t number = 0) {
  const std::lock_guard lock(context.mutex);
  context.note_work();
  if (is_complex(type_of(given.a, "a")))
    run<std::complex<double>>(context, given, check, bars_of, reports, number);
  else
    run<double>(context, given, check, bars_of, reports, number);
}

/// What a device that made these factors would have been asked for. Nothing where no device makes
/// such factors.
std::optional<Problem> problem_on_device(const Given& given) {
  Problem problem{.count = given.a.count,
                  .m = given.a.rows,
                  .n = given.a.columns,
                  .type = type_of(given.a, "a")};
  for (const auto& matrices : {given.q, given.r, given.v, given.tau})
    if (matrices && matrices->type != given.a.type) return std::nullopt;
  if (given.p != nullptr) return std::nullopt;
  if (given.v)
    problem.mode = Mode::raw;
  else if (!given.q)
    problem.mode = Mode::r;
  else if (given.q->columns != given.k())
    problem.mode = Mode::complete;
  if (!given.v && given.r->rows != problem.r_rows()) return std::nullopt;
  return problem;
}

FactorArrays factor_arrays(const Given& given) {
  const auto placed = [&](const std::optional<qrtool_matrices>& matrices) {
    if (!matrices) return DeviceMatrices{};
    return with_type(type_of(*matrices, ""), [&](auto zero) {
      return device_matrices(strided<decltype(zero)>(*matrices));
    });
  };
  return {placed(given.a), placed(given.q), placed(given.r), placed(given.v), placed(given.tau)};
}

void measure(qrtool_context& context, Given given, Check check, const BarsOf& bars_of, void* stream,
             Reports& reports) {
  std::vector<CallArray> arrays;
  for_each_array(given, [&](const char* name, auto&, const auto& strided_array) {
    arrays.push_back(call_array(name, strided_array));
  });
  const CallArray of_host[] = {{"reports", reports.first(), true},
                               {"p", given.p, given.a.columns > 0}};
  if (!context.are_on_device(arrays, of_host, stream)) {
    measure_on_host(context, given, check, bars_of, reports);
    return;
  }
  const DeviceCalls::Engine engine(context.device_calls());
  const auto by_host = [&](index_t first, index_t count) {
    HostCopies copies(engine, stream);
    Given some = given;
    for_each_array(some, [&](const char*, qrtool_matrices& matrices, const auto& array) {
      matrices.data = copies.input(array.slice(first, count)).data;
      matrices.count = count;
      matrices.row_stride = matrices.column_stride = matrices.matrix_stride = 0;
    });
    if (given.p != nullptr) some.p = given.p + first * given.a.columns;
    measure_on_host(context, some, check, bars_of, reports, first);
  };
  const std::optional<Problem> problem = problem_on_device(given);
  if (!problem || !engine->objection(*problem).empty()) {
    by_host(0, given.a.count);
    return;
  }
  index_t number = 0;
  for (const StreamEngine::Found& found : engine->measure(stream, *problem, factor_arrays(given))) {
    Measurement one{.matrix = number++, .errors = found.errors};
    judge_measurement(one, found.is_finite, bars_of, given.shape(1).has_q);
    // The device takes R as triangular. Only the host has all of another R in the residual.
    if (found.errors.lower > 0)
      by_host(one.matrix, 1);
    else
      add(one, reports, 0);
  }
}

}  // namespace
}  // namespace qrtool::capi

using namespace qrtool;
using namespace qrtool::capi;

int qrtool_verify(qrtool_context* context, const qrtool_matrices* a,
                  const qrtool_given_factors* factors, const qrtool_verify_options* options,
                  qrtool_report* reports, size_t report_size) {
  return on_context(context, [&](qrtool_context& c) {
    if (a == nullptr || factors == nullptr) throw UsageError("qrtool_verify: a or factors is NULL");
    const qrtool_verify_options o = taken(options, "qrtool_verify_options");
    require_within("check", o.check, QRTOOL_PROBE);
    require_within("criteria", o.criteria, 1);
    require_within("mixed", o.mixed, 1);
    const Given given = given_of(*a, taken(factors, "qrtool_given_factors"));
    Reports lines(reports, report_size);
    require_apart(given, lines);
    if (a->count == 0) return static_cast<int>(QRTOOL_OK);
    const Precision precision = precision_of(given, o.mixed == 1);
    const BarsOf bars_of = [&](const Errors& errors) {
      return o.criteria == 1 ? m_eps_bars(a->rows)
                             : standard_bars(a->rows, a->columns, precision, errors);
    };
    const Check check = o.check == QRTOOL_PROBE ? Check::probe : Check::full;
    measure(c, given, check, bars_of, o.stream, lines);
    return lines.code();
  });
}
