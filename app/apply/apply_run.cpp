// SPDX-License-Identifier: Apache-2.0
// apply_run.cpp: read | multiply and check | write, in chunks of groups, or with Q by rows.
#include "app/apply/apply_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "app/process/stopwatch.hpp"
#include "app/solve/side_numbers.hpp"
#include "core/error.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/machine/host.hpp"
#include "core/machine/parallel.hpp"
#include "core/runs.hpp"
#include "core/text.hpp"
#include "io/file/transpose.hpp"

namespace qrtool {
namespace {

// The bytes of a chunk, which hide the cost of a read.
constexpr std::size_t apply_chunk_bytes = std::size_t{64} << 20;

/// Writes numbers of X in the type in which they are stored, one part behind the other.
template <class S>
class XWriter {
 public:
  XWriter(const ApplyInputs& inputs, Writer& output)
      : is_single_(inputs.problem.is_single), output_(output) {}
  void write(const S* x, index_t count) {
    const std::span numbers(reinterpret_cast<const double*>(x),
                            static_cast<std::size_t>(parts_of<S> * count));
    if (is_single_) {
      const std::vector<float> single(numbers.begin(), numbers.end());
      output_.write_part("X", written_, std::span(single));
    } else {
      output_.write_part("X", written_, numbers);
    }
    written_ += parts_of<S> * count;
  }

 private:
  bool is_single_;
  Writer& output_;
  index_t written_ = 0;
};

/// The factors of some matrices.
template <class S>
struct FactorChunk {
  Batch<S> matrices, tau;
  Batch<double> p;
  std::vector<std::vector<index_t>> orders;  // by P; empty: the columns are in A's order

  void allocate(const ApplyInputs& inputs, index_t count) {
    const auto [factor, b, of_tau, of_p] = inputs.readers();
    matrices = Batch<S>(count, factor->source().m, factor->source().n);
    if (of_tau != nullptr) tau = Batch<S>(count, 1, of_tau->source().n);
    if (of_p != nullptr) p = Batch<double>(count, 1, inputs.problem.n);
    orders.resize(static_cast<std::size_t>(count));
  }
  /// Reads matrices first, ... to the places `to`, ...
  void read(const ApplyInputs& inputs, index_t first, index_t to, index_t count) {
    const auto [factor, b, of_tau, of_p] = inputs.readers();
    factor->read(first, interleaved(matrices.view().slice(to, count)));
    if (of_tau != nullptr) of_tau->read(first, interleaved(tau.view().slice(to, count)));
    if (of_p == nullptr) return;
    of_p->read(first, p.view().slice(to, count));
    for (index_t i = 0; i < count; ++i)
      orders[static_cast<std::size_t>(to + i)] = permutation_of(
          p.view()[to + i].data, inputs.problem.n, escape(inputs.factors.file) + ": P", first + i);
  }
  AppliedFactors<S> given(const ApplyProblem& problem, index_t i) const {
    AppliedFactors<S> f;
    (problem.has_reflectors ? f.v : uses_q(problem.product) ? f.q : f.r) = matrices.view()[i];
    if (problem.has_reflectors) f.tau = tau.view()[i].data;
    const auto& order = orders[static_cast<std::size_t>(i)];
    if (!order.empty()) f.p = order.data();
    return f;
  }
};

/// Some groups, with B and X as they are stored.
template <class S>
struct ApplyChunk {
  index_t first = 0, count = 0;
  FactorChunk<S> factors;
  Batch<S> b, x;
  std::vector<SideReport> reports;
};

template <class S>
struct ApplySteps {
  const ApplyInputs& inputs;
  const ApplyPlan& plan;
  int threads;
  const SidesFound& found;
  XWriter<S> x;
  FactorChunk<S> shared = {};  // of all right sides

  SidePlace place_of(index_t group) const { return inputs.sides.place(group * plan.group_size); }
  void begin(ApplyChunk<S>& chunk, index_t number) const {
    chunk.first = number * plan.chunk_groups;
    chunk.count = std::min(plan.chunk_groups, plan.groups - chunk.first);
  }
  void read(ApplyChunk<S>& chunk) {
    const bool shares_a = inputs.sides.shares_a();
    const index_t size = plan.group_size, of_b = size * inputs.problem.b_rows;
    if (chunk.b.view().data == nullptr) {
      if (!shares_a) chunk.factors.allocate(inputs, plan.chunk_groups);
      chunk.b = Batch<S>(plan.chunk_groups, 1, of_b);
      chunk.x = Batch<S>(plan.chunk_groups, 1, size * inputs.problem.x_rows);
      chunk.reports.resize(static_cast<std::size_t>(plan.chunk_groups * size));
    }
    if (shares_a && chunk.first == 0) {
      shared.allocate(inputs, 1);
      shared.read(inputs, 0, 0, 1);
    }
    const auto a_of = [&](index_t i) { return place_of(chunk.first + i).a; };
    const auto b_of = [&](index_t i) { return place_of(chunk.first + i).in_b; };
    if (!shares_a)
      for_runs(chunk.count, 1, a_of, [&](index_t i, index_t first, index_t count) {
        chunk.factors.read(inputs, first, i, count);
      });
    if (of_b == 0) return;
    for_runs(chunk.count, of_b, b_of, [&](index_t i, index_t first, index_t count) {
      read_numbers(*inputs.b, first, count * of_b, chunk.b.view()[i].data);
    });
  }
  void work(ApplyChunk<S>& chunk) {
    if (inputs.sides.as_rows && inputs.sides.shares_a()) return work_on_rows(chunk);
    const ApplyProblem& p = inputs.problem;
    const index_t size = plan.group_size;
    // One matrix after another, if there are too few for all threads.
    const int inner = chunk.count < threads ? threads : 1;
    parallel_for(chunk.count, inner > 1 ? 1 : threads, [&](index_t i, int) {
      const FactorChunk<S>& from = inputs.sides.shares_a() ? shared : chunk.factors;
      apply_factors<S>(p, from.given(p, inputs.sides.shares_a() ? 0 : i),
                       {chunk.b.view()[i].data, p.b_rows, size, size},
                       {chunk.x.view()[i].data, p.x_rows, size, size},
                       reports_of(chunk, i * size, size), inner);
    });
  }
  /// Right sides of one matrix that are rows of B.
  void work_on_rows(ApplyChunk<S>& chunk) {
    const ApplyProblem& p = inputs.problem;
    const AppliedFactors<S> factors = shared.given(p, 0);
    parallel_for((chunk.count + sides_at_once - 1) / sides_at_once, threads, [&](index_t i, int) {
      const index_t first = i * sides_at_once, sides = std::min(sides_at_once, chunk.count - first);
      const Batch<S> b(1, p.b_rows, sides), of_x(1, p.x_rows, sides);
      transpose<S>({chunk.b.view()[first].data, sides, p.b_rows, p.b_rows}, b.view()[0]);
      apply_factors<S>(p, factors, b.view()[0], of_x.view()[0], reports_of(chunk, first, sides));
      transpose<S>(of_x.view()[0], {chunk.x.view()[first].data, sides, p.x_rows, p.x_rows});
    });
  }
  void keep(ApplyChunk<S>& chunk) {
    const index_t sides = chunk.count * plan.group_size;
    x.write(chunk.x.view().data, sides * inputs.problem.x_rows);
    found(chunk.first * plan.group_size, reports_of(chunk, 0, sides));
  }
  static std::span<SideReport> reports_of(ApplyChunk<S>& chunk, index_t first, index_t count) {
    return std::span(chunk.reports)
        .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
  }
};

/// Q by rows, for one group after another.
template <class S>
void run_by_rows(const ApplyInputs& inputs, const ApplyPlan& plan, int threads, XWriter<S> x,
                 const SidesFound& found) {
  const ApplyProblem& p = inputs.problem;
  const index_t sides = plan.group_size, inner = std::min(p.b_rows, p.x_rows);
  const Batch<S> q(1, plan.block_rows, inner), rows(1, plan.block_rows, sides),
      all(1, inner, sides);
  std::vector<SideReport> reports(static_cast<std::size_t>(sides));
  for (index_t group = 0; group < plan.groups; ++group) {
    const SidePlace place = inputs.sides.place(group * sides);
    const RowsOfQ<S> source{
        .m = inputs.factor().source().m,
        .at_once = plan.block_rows,
        .q =
            [&](index_t first, index_t count) {
              const MatrixView<S> part = q.view()[0].row_block(0, count);
              inputs.factor().read_rows(place.a, first, interleaved(part));
              return MatrixView<const S>(part);
            },
        .sides =
            [&](index_t first, index_t count) {
              const MatrixView<S> part = rows.view()[0].row_block(0, count);
              if (p.product == Product::qt) read_sides(*inputs.b, place, first, part);
              return part;
            },
        .write = [&](MatrixView<const S> part) { x.write(part.data, part.rows * sides); }};
    if (p.product == Product::q) read_sides(*inputs.b, place, 0, all.view()[0]);
    apply_by_rows<S>(p, source, all.view()[0], reports, threads);
    if (p.product == Product::qt) x.write(all.view().data, inner * sides);
    found(group * sides, reports);
  }
}

template <class S>
StageSeconds run_as(const ApplyInputs& inputs, const ApplyPlan& plan, int threads, Writer& output,
                    const SidesFound& found) {
  const Stopwatch watch;
  if (plan.block_rows > 0) {
    run_by_rows<S>(inputs, plan, threads, {inputs, output}, found);
    return {.work = watch.seconds()};
  }
  ApplySteps<S> steps{inputs, plan, threads, found, {inputs, output}};
  std::vector<ApplyChunk<S>> chunks(static_cast<std::size_t>(plan.buffers));
  return run_stages((plan.groups + plan.chunk_groups - 1) / plan.chunk_groups, chunks, steps);
}

/// Reads Q by rows. `least`: the memory that whole matrices need.
void plan_rows(const ApplyInputs& inputs, const Limits& limits, std::size_t least,
               ApplyPlan& plan) {
  const ApplyProblem& p = inputs.problem;
  const index_t inner = std::min(p.b_rows, p.x_rows), m = inputs.factor().source().m;
  const std::size_t element = inputs.element_bytes();
  const std::size_t fixed = static_cast<std::size_t>(8 * inner * plan.group_size) * element;
  const std::size_t tile =
      static_cast<std::size_t>(rows_at_once * (inner + 3 * plan.group_size)) * element;
  const bool is_possible = uses_q(p.product) && !p.has_reflectors;
  const std::size_t needed = is_possible ? fixed + tile : least;
  if (needed > limits.host_bytes)
    throw LimitError(
        fmt::format("{}: applying {}x{} factors to {} right side{} at a time needs {} of memory; "
                    "the limit is {}",
                    escape(inputs.factors.file), m, inputs.factor().source().n,
                    format_count(plan.group_size), plan.group_size == 1 ? "" : "s",
                    format_bytes(needed + limits.file_bytes),
                    format_bytes(limits.host_bytes + limits.file_bytes)),
        hint_of_memory(needed + limits.file_bytes));
  const std::size_t room = std::min(limits.host_bytes - fixed, apply_chunk_bytes);
  const auto tiles = static_cast<index_t>(std::max<std::size_t>(room / tile, 1));
  plan.block_rows = rows_at_once * std::min(tiles, (m + rows_at_once - 1) / rows_at_once);
  plan.host_bytes = fixed + tile * static_cast<std::size_t>(plan.block_rows / rows_at_once);
}

}  // namespace

ApplyPlan plan_apply(const ApplyInputs& inputs, const Limits& limits) {
  const ApplyProblem& p = inputs.problem;
  const RightSides& sides = inputs.sides;
  const std::size_t element = inputs.element_bytes();
  ApplyPlan plan{.group_size = sides.as_rows ? 1 : std::max<index_t>(sides.p, 1)};
  plan.groups = count_of(sides.solution_dims) / plan.group_size;
  const index_t unit = sides.as_rows && sides.shares_a() ? sides_at_once : 1;
  const Source& s = inputs.factor().source();
  const std::size_t factor = static_cast<std::size_t>(s.m * s.n + 3 * p.n) * element;
  const std::size_t shared = sides.shares_a() ? factor : 0;
  const std::size_t group =
      factor - shared +
      static_cast<std::size_t>(plan.group_size) *
          (static_cast<std::size_t>(p.b_rows + 2 * p.x_rows) * element + sizeof(SideReport));
  const bool takes_all = uses_q(p.product) && !p.has_reflectors;  // right sides at once
  const index_t at_once = takes_all ? std::max(plan.group_size, sides_at_once) : sides_at_once;
  const std::size_t worker =
      p.workspace_bytes(at_once, element) + (unit > 1 ? static_cast<std::size_t>(unit) * group : 0);
  const std::size_t fixed = shared + worker * static_cast<std::size_t>(limits.threads);
  const std::size_t least = fixed + static_cast<std::size_t>(unit) * group;
  if (least > limits.host_bytes) {
    plan_rows(inputs, limits, least, plan);
    return plan;
  }
  const std::size_t room = limits.host_bytes - fixed;
  plan.buffers = static_cast<std::size_t>(unit) * group <= room / 3 ? 3 : 1;
  const std::size_t chunk =
      std::min(room / static_cast<std::size_t>(plan.buffers), apply_chunk_bytes);
  plan.chunk_groups = unit * std::max<index_t>(1, static_cast<index_t>(chunk / group) / unit);
  plan.chunk_groups = std::min(plan.chunk_groups, std::max<index_t>(plan.groups, 1));
  plan.host_bytes = fixed + group * static_cast<std::size_t>(plan.chunk_groups * plan.buffers);
  return plan;
}

StageSeconds run_apply(const ApplyInputs& inputs, const ApplyPlan& plan, int threads,
                       Writer& output, const SidesFound& found) {
  if (plan.groups == 0) return {};
  return (is_complex(inputs.type) ? run_as<std::complex<double>>
                                  : run_as<double>)(inputs, plan, threads, output, found);
}

}  // namespace qrtool
