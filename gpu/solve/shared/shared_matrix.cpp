// SPDX-License-Identifier: Apache-2.0
// shared_matrix.cpp: defines, uploads and launches. Device half: shared.cl, masked.cl.
#include "gpu/solve/shared/shared_matrix.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "gpu/host/launcher.hpp"
#include "gpu/solve/parts/tuning.hpp"
#include "gpu/solve/shared/masked.hpp"

namespace qrtool {
namespace {

index_t rounded_up(index_t x, index_t step) { return ceil_divide(x, step) * step; }

int block_of(index_t n) {
  return n > tuning::shared_block ? tuning::shared_block : static_cast<int>(rounded_up(n, 2));
}

index_t width_of(index_t n) { return rounded_up(n, block_of(n)); }

std::size_t local_bytes(ElementType type, const Params& params) {
  const auto at = [&](const char* name) { return static_cast<std::size_t>(params.at(name)); };
  const std::size_t slab = at("SLAB_ROWS") * (at("SLAB_COLUMNS") + at("WEIGHS")) * sizeof(double);
  if (at("IN_ROWS") == 0) return slab;
  const std::size_t of_side = at("VECTOR") * (at("SLAB_ROWS") / at("VECTOR") | 1);  // SIDE_LD
  return slab + at("GROUP") * at("SIDES") * of_side * size_of(type);
}

}  // namespace

SharedParams::SharedParams(const SolveProblem& p, SidesLayout layout, bool weighs,
                           const Limits& limits) {
  const bool in_rows = layout == SidesLayout::rows, is_masked = masks_on_device(p);
  const int rows = tuning::shared_rows;
  solve = {{"COLUMNS", static_cast<int>(p.n)},
           {"SLAB_COLUMNS", block_of(p.n)},
           {"GROUP", limits.is_cpu ? tuning::shared_group_on_cpu
                     : in_rows     ? tuning::shared_rows_group
                                   : tuning::shared_group},
           {"SIDES", 2},
           {"TAKEN_ROWS", rows},
           {"IN_ROWS", in_rows},
           {"WEIGHS", weighs},
           {"MMA", limits.float64_products},
           {"VECTOR", in_rows ? copied_entries(p.m, p.type) : 1}};
  if (is_masked)
    for (const auto& [name, value] : masked_params(p)) solve[name] = value;
  const int slab =
      tuning::shared_slab_bytes / static_cast<int>(sizeof(double)) / solve.at("SLAB_COLUMNS");
  const int fetched = tuning::shared_fetched_bytes / static_cast<int>(size_of(p.type));
  solve["SLAB_ROWS"] = std::max(1, (in_rows ? std::min(slab, fetched) : slab) / rows) * rows;
  check = solve;
  check["SIDES"] = is_masked || solve.at("SLAB_COLUMNS") > 8 ? 1 : 2;
}

std::string shared_objection(const SolveProblem& p, index_t side_by_side, const Limits& limits) {
  if (p.n == 0 || p.m == 0) return "nothing to compute";
  if (!limits.has_float64) return "the device has no float64";
  if (p.packed_rows() < p.n) return "fewer rows than columns";
  if (p.n > tuning::shared_most_columns)
    return fmt::format("one A of more than {} columns serves all right sides",
                       tuning::shared_most_columns);
  if (p.packed_rows() > tuning::shared_most_rows)
    return fmt::format("one A of more than {} rows serves all right sides",
                       tuning::shared_most_rows);
  if (side_by_side > 0 && side_by_side < tuning::shared_least_side_by_side)
    return fmt::format("fewer than {} right sides lie side by side",
                       tuning::shared_least_side_by_side);
  const SharedParams params(p, SidesLayout::rows, true, limits);
  return group_objection(params.solve.at("GROUP"), local_bytes(p.type, params.solve), limits);
}

namespace {

template <class Number>
Buffer uploaded(FactorEngine& engine, const std::vector<Number>& numbers) {
  const std::size_t bytes = numbers.size() * sizeof(Number);
  const Buffer buffer = engine.session.context->allocate(bytes);
  if (bytes > 0) engine.upload->write(buffer, numbers.data(), bytes);
  return buffer;
}

/// rows x width with zeros after the last column.
std::vector<double> padded(MatrixView<const double> from, index_t rows, index_t width) {
  std::vector<double> to(static_cast<std::size_t>(rows * width));
  for (index_t i = 0; i < rows; ++i) std::copy_n(&from(i, 0), from.cols, to.data() + i * width);
  return to;
}

/// R with the reciprocals of its diagonal, and 1 after the last one.
std::vector<double> triangle(const SharedFactors& factors, index_t n, index_t width) {
  std::vector<double> r(static_cast<std::size_t>(width * width));
  for (index_t i = 0; i < width; ++i)
    for (index_t j = i; j < width; ++j) {
      const double entry = j < n ? factors.r(i, j) : 0;
      r[static_cast<std::size_t>(i * width + j)] = i < j ? entry : j < n ? 1 / entry : 1;
    }
  return r;
}

}  // namespace

SharedSetup::SharedSetup(FactorEngine& used, const SolveProblem& solved,
                         const SharedFactors& factors, SidesLayout of_sides)
    : engine(used),
      problem(solved),
      layout(of_sides),
      is_masked(masks_on_device(solved)),
      params(solved, of_sides, !factors.row_factors.empty(), used.info.limits) {
  const index_t m = problem.packed_rows(), n = problem.n, width = width_of(n);
  const std::vector<double> rows = padded(factors.a, m, width);
  a = uploaded(engine, is_masked ? masked_rows({rows.data(), m, n, width}, params.solve) : rows);
  q = uploaded(engine, padded(factors.q, m, width));
  r = uploaded(engine, triangle(factors, n, width));
  std::vector<double> of_rows(factors.row_factors.begin(), factors.row_factors.end());
  if (!of_rows.empty()) of_rows.resize(static_cast<std::size_t>(m));
  weights = uploaded(engine, of_rows);
  std::vector<double> norms(factors.inverse_norms.begin(), factors.inverse_norms.end());
  for (std::size_t j = 0; j < norms.size(); ++j)
    norms[j] = std::ldexp(norms[j], -factors.scales[j]);
  inverse_norms = uploaded(engine, norms);
  std::vector<double> of_columns;
  for (const int scale : factors.scales) of_columns.push_back(std::ldexp(1.0, -scale));
  powers = uploaded(engine, of_columns);
  double squares = 0;
  for (index_t i = 0; i < n; ++i)
    for (index_t j = i; j < n; ++j) squares += factors.r(i, j) * factors.r(i, j);
  norm = std::sqrt(squares);
  freedom = factors.freedom;
}

Launcher SharedSetup::launcher(const Params& of) const {
  const Problem typed{.type = problem.type};
  return engine.launcher({is_masked ? "gpu/solve/shared/masked.cl" : "gpu/solve/shared/shared.cl",
                          defines_for(typed, of, ElementType::float64), "solving systems"});
}

SharedShape SharedSetup::shape(index_t count) const {
  const bool in_rows = layout == SidesLayout::rows;
  const double least = tuning::solve_rank_margin * problem.rank.tolerance;
  const bool is_double = problem.type == ElementType::float64;
  return {
      .b_ld = in_rows ? problem.m : count,
      .x_ld = in_rows ? problem.n : count,
      .count = count,
      .norm = norm,
      .least_value = is_double ? std::max(least, 1 / tuning::masked_most_condition) : least,
      .root_freedom = freedom > 0 ? std::sqrt(freedom) : std::numeric_limits<double>::quiet_NaN(),
      .m = static_cast<int>(problem.packed_rows()),
      .data_rows = static_cast<int>(problem.m),
      .wants_se = problem.wants_se,
      .reserved = 0};
}

std::array<std::size_t, SharedSetup::entries> SharedSetup::bytes() const {
  const auto m = static_cast<std::size_t>(problem.m), n = static_cast<std::size_t>(problem.n);
  const auto width = static_cast<std::size_t>(width_of(problem.n));
  const auto rows = static_cast<std::size_t>(problem.packed_rows());
  const std::size_t element = size_of(problem.type);
  std::array<std::size_t, entries> of{};
  of[b] = element * m;
  of[x] = element * n;
  of[errors] = sizeof(SolutionErrors);
  if (problem.wants_se) of[se] = element * n;
  if (problem.n > tuning::shared_block) of[scratch] = sizeof(double) * (rows + 1 + width);
  if (is_masked) {
    of[findings] = sizeof(FactorFindings);
    of[rows_used] = sizeof(int);
  }
  return of;
}

SharedBuffers::SharedBuffers(SystemPool& pool, const SharedSetup& setup, index_t count, int set) {
  using S = SharedSetup;
  const auto bytes = setup.bytes();
  const auto take = [&](Buffer& buffer, S::Entry entry) {
    buffer = pool.grown({set, entry}, bytes[entry] * static_cast<std::size_t>(count));
  };
  take(b, S::b);
  take(x, S::x);
  take(se, S::se);
  take(errors, S::errors);
  take(findings, S::findings);
  take(rows_used, S::rows_used);
  take(scratch, S::scratch);
}

namespace {

void enqueue_solve(const SharedSetup& setup, const SharedBuffers& buffers,
                   const SharedShape& shape) {
  const Params& params = setup.params.solve;
  const int group = params.at("GROUP");
  const index_t groups = ceil_divide(shape.count, group * params.at("SIDES"));
  Launcher launch = setup.launcher(params);
  if (setup.is_masked) {
    launch("solve_masked", groups, group, buffers.b, setup.a, setup.weights, setup.powers,
           buffers.x, shape);
  } else {
    launch("solve_shared", groups, group, buffers.b, setup.q, setup.r, setup.weights, setup.powers,
           buffers.scratch, buffers.x, shape);
  }
}

void enqueue_check(const SharedSetup& setup, const SharedBuffers& buffers,
                   const SharedShape& shape) {
  const Params& params = setup.params.check;
  const int group = params.at("GROUP");
  const index_t groups = ceil_divide(shape.count, group * params.at("SIDES"));
  Launcher launch = setup.launcher(params);
  if (setup.is_masked) {
    launch("check_masked", groups, group, buffers.b, setup.a, setup.weights, setup.powers,
           buffers.x, buffers.findings, buffers.rows_used, buffers.errors, buffers.se, shape);
  } else if (setup.problem.n <= tuning::shared_block) {
    launch("check_shared", groups, group, buffers.b, setup.a, setup.r, setup.weights, setup.powers,
           buffers.x, setup.inverse_norms, buffers.errors, buffers.se, shape);
  } else {
    launch("find_residuals", groups, group, buffers.b, setup.a, setup.weights, setup.powers,
           buffers.x, buffers.scratch, shape);
    launch("check_residuals", groups, group, buffers.scratch, setup.a, setup.r, setup.weights,
           setup.powers, buffers.x, setup.inverse_norms, buffers.errors, buffers.se, shape);
  }
}

}  // namespace

SharedEvents enqueue_shared(const SharedSetup& setup, const SharedBuffers& buffers, index_t count) {
  Queue& queue = *setup.engine.compute;
  const SharedShape shape = setup.shape(count);
  const auto bytes = setup.bytes();
  const auto sides = static_cast<std::size_t>(count);
  queue.fill(buffers.x, nan_word, sides * bytes[SharedSetup::x]);
  queue.fill(buffers.errors, nan_word, sides * bytes[SharedSetup::errors]);
  SharedEvents events;
  events.begun = queue.mark();
  enqueue_solve(setup, buffers, shape);
  events.solved = queue.mark();
  enqueue_check(setup, buffers, shape);
  events.checked = queue.mark();
  return events;
}

}  // namespace qrtool
