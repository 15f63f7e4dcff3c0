// SPDX-License-Identifier: Apache-2.0
// shared_engine.cpp: one factorization, and then tiles of right sides on all threads. Right sides
// that the kernel leaves are solved one by one.
#include "core/solve/engines/shared_engine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>

#include "core/cpu/cpu_backend.hpp"
#include "core/machine/parallel.hpp"
#include "core/simd/instruction_sets.hpp"
#include "core/solve/engines/pack_solver.hpp"
#include "core/solve/engines/routines.hpp"

namespace qrtool {
namespace {

/// The number of right sides that a thread solves for at a time.
constexpr index_t tile = shared::most_right_sides;
/// Beyond this the kernel's plain sums would err by more than a small part of the bar.
constexpr index_t most_kernel_rows = 4096;

/// The largest scales of columns with which the kernel, and a device, can use A.
constexpr int most_kernel_exponent = 500, most_device_exponent = 300;

const shared::Kernels& best_kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(shared, kernels)};
  return *supported(all).front();
}

template <class T>
const systems::Routine<T>& gap_routine() {
  return routine_of<T>(*systems_kernels().front());
}

/// The right sides with one mask that are solved one after another with one R.
constexpr index_t most_same_mask = 128;
static_assert(most_same_mask >= tile);

/// The most columns for which A'WA of each right side is formed, and the condition up to which R of
/// A'WA and one correction are as good as reflectors: the error is then about kappa u (16 kappa^2
/// u), where kappa is the condition of A with scaled columns, float64 data.
constexpr index_t most_gap_columns = 128;
constexpr double most_gap_condition = 1e4;

/// Z := Q'B for a tile of B (rows x count).
template <class T>
void multiply_transposed(MatrixView<const double> q, MatrixView<const T> b, MatrixView<double> z) {
  for (index_t i = 0; i < z.rows; ++i) std::fill_n(&z(i, 0), z.cols, 0.0);
  for (index_t i = 0; i < b.rows; ++i) {
    double row[tile];
    for (index_t c = 0; c < b.cols; ++c) row[c] = static_cast<double>(b(i, c));
    for (index_t j = 0; j < q.cols; ++j) {
      const double qij = q(i, j);
      double* zj = &z(j, 0);
#pragma omp simd
      for (index_t c = 0; c < b.cols; ++c) zj[c] += qij * row[c];
    }
  }
}

Problem factored_problem(const SolveProblem& problem) {
  return {.count = 1,
          .m = problem.packed_rows(),
          .n = problem.n,
          .type = ElementType::float64,
          .mode = Mode::reduced};
}

/// Whether A'WA is formed for right sides with rows or weights of their own.
bool forms_own_grams(const SolveProblem& problem) {
  const SolveRules rules = problem.rules();
  const index_t n = problem.n;
  // The kernel keeps no R for the covariance of each right side, and computes in real numbers.
  return !is_complex(problem.type) && !problem.wants_covariance && n > 0 && n <= most_gap_columns &&
         rules.m >= n && rules.m <= most_kernel_rows;
}

}  // namespace

bool takes_own_weights(const SolveProblem& problem) {
  return problem.weighs_each && forms_own_grams(problem);
}

template <class T>
SharedEngine<T>::SharedEngine(const SolveProblem& problem, const Limits& limits)
    : problem_(problem),
      limits_(limits),
      routine_(routine_of<T>(best_kernels())),
      rows_(problem.m) {
  const index_t rows = problem.packed_rows(), n = problem.n, k = problem.k();
  a_ = Batch<T>(1, rows, n);
  wide_ = Batch<double>(1, rows, n);
  q_ = Batch<double>(1, rows, k);
  r_ = Batch<double>(1, k, n);
  prepare_gaps();
  const std::size_t of_gaps =
      solves_gaps_ ? gap_routine<T>().workspace_bytes(gap_shape_) : std::size_t{0};
  const index_t at_once = solves_gaps_ ? most_same_mask : tile;
  const std::size_t workspace_bytes = routine_.workspace_bytes({.m = rows, .n = n});
  const index_t weighted = problem.weighs_each ? gap_routine<T>().lanes : 0;
  for (int i = 0; i < limits.threads; ++i)
    workers_.push_back({.solver = SystemSolver<T>(problem.rules()),
                        .b = Batch<T>(1, rows, at_once),
                        .w = Batch<T>(1, problem.m, weighted),
                        .x = Batch<T>(2, n, at_once),
                        .z = Batch<double>(1, std::max<index_t>(k, 1), tile),
                        .workspace = allocate_host(workspace_bytes),
                        .gap_workspace = allocate_host(of_gaps),
                        .gaps = {}});
}

template <class T>
std::size_t SharedEngine<T>::workspace_bytes(const SolveProblem& problem, int threads) {
  const auto rows = static_cast<std::size_t>(problem.packed_rows());
  const auto n = static_cast<std::size_t>(problem.n), k = static_cast<std::size_t>(problem.k());
  // A twice, Q and the memory of factoring A; and for each thread a tile, twice.
  const std::size_t of_a = rows * n * (sizeof(T) + 6 * sizeof(double)) + 4 * k * n * sizeof(double);
  const std::size_t of_tile = (2 * rows + 12 * n) * tile * sizeof(double) +
                              (problem.skips_missing || problem.weighs_each
                                   ? (2 * rows + 2 * n) * most_same_mask * sizeof(T)
                                   : 0) +
                              4 * n * n * sizeof(double);
  return of_a + of_tile * static_cast<std::size_t>(threads);
}

template <class T>
MatrixFindings SharedEngine<T>::take_matrix(MatrixView<const T> a, const T* w, index_t step) {
  rows_.reset();
  if (w != nullptr) rows_.weigh(w, step);
  if (problem_.skips_missing) rows_.leave_out(a);
  rows_used_ = rows_.used();
  row_factors_.clear();
  for (index_t i = 0; i < problem_.m; ++i) row_factors_.push_back(rows_[i]);
  a_is_finite_ = pack_matrix<T>(problem_, a, rows_, a_.view()[0], scales_);
  uses_kernel_ = false;
  if (!a_is_finite_ || has_few_rows()) return {};
  const MatrixView<T> packed = a_.view()[0];
  for (index_t i = 0; i < packed.rows; ++i)
    for (index_t j = 0; j < packed.cols; ++j)
      wide_.view()[0](i, j) = static_cast<double>(packed(i, j));
  if (solves_gaps_) {
    const MatrixView<double> padded = padded_.view()[0];
    for (index_t i = 0; i < padded.rows; ++i)
      for (index_t j = 0; j < padded.cols; ++j)
        padded(i, j) = j < problem_.n ? wide_.view()[0](i, j) : 0.0;
  }
  if (problem_.weighs_each) return {};
  factor();
  for (Worker& worker : workers_)
    worker.solver.take_factor(MatrixView<const double>(r_.view()[0]), scales_);
  prepare_kernel();
  if (problem_.wants_covariance) correlations_ = workers_.front().solver.factor().correlations();
  return workers_.front().solver.findings();
}

template <class T>
void SharedEngine<T>::factor() {
  const Problem factored = factored_problem(problem_);
  if (factored.is_empty()) return;
  CpuBackend cpu(limits_);
  const Plan plan = make_plan(factored, cpu.variants(), limits_);
  std::vector<MatrixReport> report(1);
  cpu.factor<double>(plan, wide_.view(),
                     Factors<double>{.q = q_.view(), .r = r_.view(), .v = {}, .tau = {}}, report);
}

template <class T>
void SharedEngine<T>::prepare_gaps() {
  const SolveRules rules = problem_.rules();
  const index_t n = problem_.n;
  solves_gaps_ = (problem_.skips_missing || problem_.weighs_each) && forms_own_grams(problem_);
  if (!solves_gaps_) return;
  gap_shape_ = {.m = rules.m,
                .n = n,
                .p = 1,
                .data_rows = problem_.m,
                .is_masked = true,
                .skips_missing = problem_.skips_missing};
  gap_rules_ = {
      .bar = solution_bar(rules.type, rules.m, n),
      .least_singular_value = std::max(rank_margin * rules.rank.tolerance, 1 / most_gap_condition),
      .most_condition = most_gap_condition,
      .is_given = rules.only_checks,
      .wants_se = rules.wants_se};
  // Rows a power of two apart would share few places of the first-level cache.
  const index_t columns = (n + 3) / 4 * 4;
  padded_ = Batch<double>(1, rules.m, columns + (columns % 16 == 0 ? 4 : 0));
}

/// Whether the scales of all columns are so small.
template <class T>
bool SharedEngine<T>::is_within(int exponent) const {
  return std::ranges::all_of(scales_, [&](int scale) { return std::abs(scale) <= exponent; });
}

/// The kernel solves with matrices of full column rank if their solutions need no correction.
template <class T>
void SharedEngine<T>::prepare_kernel() {
  const RankedFactor<double>& factor = workers_.front().solver.factor();
  const SolveRules rules = problem_.rules();
  const index_t n = problem_.n;
  const bool refines = is_refined(rules) && !(factor.scaled_condition() <= least_refined_condition);
  uses_kernel_ = n > 0 && rules.m <= most_kernel_rows && factor.has_full_column_rank() &&
                 std::isfinite(factor.condition()) && !refines && is_within(most_kernel_exponent);
  if (!uses_kernel_) return;
  const bool counts_once =
      std::all_of(row_factors_.begin(), row_factors_.end(), [](double w) { return w == 1; });
  row_norms_.clear();
  if (problem_.wants_se) row_norms_ = factor.inverse_row_norms();
  powers_.clear();
  for (const int scale : scales_) powers_.push_back(std::ldexp(1.0, -scale));
  matrix_ = {.m = rules.m,
             .n = n,
             .data_rows = problem_.m,
             .a = wide_.view().data,
             .q = q_.view().data,
             .r = r_.view().data,
             .row_factors = counts_once ? nullptr : row_factors_.data(),
             .row_norms = row_norms_.empty() ? nullptr : row_norms_.data(),
             .powers = powers_.data(),
             .norm = norm_of(r_.view().data, n * n),
             .freedom = static_cast<double>(rows_used_ - n),
             .bar = solution_bar(rules.type, rules.m, n),
             .is_given = rules.only_checks};
}

template <class T>
std::optional<SharedFactors> SharedEngine<T>::factors() const {
  // Squares must stay in range.
  if (!uses_kernel_ || !is_within(most_device_exponent)) return std::nullopt;
  const bool counts_once = matrix_.row_factors == nullptr;
  return SharedFactors{.data_rows = problem_.m,
                       .a = wide_.view()[0],
                       .q = q_.view()[0],
                       .r = r_.view()[0],
                       .row_factors = counts_once ? std::span<const double>{} : row_factors_,
                       .inverse_norms = row_norms_,
                       .freedom = matrix_.freedom,
                       .scales = scales_};
}

/// Right sides are read in place or, if their entries are not contiguous, copied to rows.
template <class T>
shared::Tile<T> SharedEngine<T>::place_tile(const RightSideBlock<T>& block, index_t first,
                                            index_t count, Worker& worker) const {
  const VectorPlaces &b = block.b_places, &x = block.x_places;
  shared::Tile<T> placed{.count = count};
  const bool are_rows = b.group == 1 && b.step == 1;
  const bool is_one_group =
      b.group > 1 && b.stride == 1 && first / b.group == (first + count - 1) / b.group;
  if (are_rows || is_one_group) {
    placed.b = block.b + b.start(first);
    placed.b_ld = are_rows ? b.group_stride : b.step;
    placed.x = block.x + x.start(first);
    placed.x_ld = are_rows ? x.group_stride : x.step;
    if (block.se != nullptr) placed.se = block.se + x.start(first);
    placed.has_rows = are_rows;
    return placed;
  }
  placed.b = worker.b.view().data;
  placed.b_ld = problem_.m;
  placed.x = worker.x.view()[0].data;
  placed.x_ld = problem_.n;
  if (block.se != nullptr) placed.se = worker.x.view()[1].data;
  placed.has_rows = true;
  for (index_t s = 0; s < count; ++s) {
    const T* from = block.b + b.start(first + s);
    T* to = worker.b.view().data + s * problem_.m;
    for (index_t i = 0; i < problem_.m; ++i) to[i] = from[i * b.step];
    take_solution<T>(problem_, block, first + s, {placed.x + s * problem_.n, problem_.n, 1, 1}, 0);
  }
  return placed;
}

template <class T>
void SharedEngine<T>::solve_tile(const RightSideBlock<T>& block, index_t first, index_t count,
                                 Worker& worker) {
  if (!uses_kernel_) {
    solve_with_care(block, first, count, worker);
    return;
  }
  shared::Kind kinds[tile];
  double residual_norms[tile], errors[tile];
  shared::Tile<T> placed = place_tile(block, first, count, worker);
  placed.kinds = kinds;
  placed.residual_norms = residual_norms;
  placed.errors = errors;
  routine_.solve(matrix_, placed, worker.workspace.get());
  store_tile(block, first, placed, worker);
}

template <class T>
void SharedEngine<T>::store_tile(const RightSideBlock<T>& block, index_t first,
                                 const shared::Tile<T>& placed, Worker& worker) {
  const bool is_copied = placed.b == worker.b.view().data;
  for (index_t j = 0; j < placed.count && is_copied; ++j) {
    const MatrixView<const T> x{placed.x + j * problem_.n, problem_.n, 1, 1};
    const MatrixView<const T> se{placed.se != nullptr ? placed.se + j * problem_.n : nullptr,
                                 problem_.n, 1, 1};
    put_solution<T>(problem_, x, se, 0, block, first + j);
  }
  for (index_t j = 0; j < placed.count; ++j) {
    const index_t s = first + j;
    if (!block.findings.empty()) block.findings[s] = worker.solver.findings();
    if (placed.kinds[j] == shared::Kind::solved) {
      SolutionReport& report = block.reports[s] = {};
      report.residual_norm = placed.residual_norms[j];
      report.backward_error = placed.errors[j];
      report.bar = matrix_.bar;
      report.freedom = matrix_.freedom;
      report.status = Status::ok;
      put_covariance<T>(problem_, correlations_, block, s);
    } else if (placed.kinds[j] == shared::Kind::refused && problem_.skips_missing &&
               has_nan(block.b + block.b_places.start(s), problem_.m, block.b_places.step)) {
      worker.gaps.push_back(s);
    } else {
      solve_with_care(block, s, 1, worker);
    }
  }
}

template <class T>
void SharedEngine<T>::solve_with_care(const RightSideBlock<T>& block, index_t first, index_t count,
                                      Worker& worker) {
  const index_t n = problem_.n;
  const MatrixView<T> a = a_.view()[0], whole = worker.b.view()[0];
  const MatrixView<T> b{whole.data, whole.rows, count, count};
  int scales[tile];
  enum class Kind { solved, refused, gap } kinds[tile];
  for (index_t j = 0; j < count; ++j) {
    const T* column = block.b + block.b_places.start(first + j);
    const bool is_gap = problem_.skips_missing && has_nan(column, problem_.m, block.b_places.step);
    const PackedScale packed =
        pack_right_side<T>(problem_, column, block.b_places.step, rows_, b, j);
    scales[j] = packed.scale;
    kinds[j] = is_gap ? Kind::gap : packed.is_finite ? Kind::solved : Kind::refused;
  }
  const MatrixView<double> z{worker.z.view().data, problem_.k(), count, count};
  multiply_transposed<T>(q_.view()[0], b, z);
  const auto tile_of = [&](index_t part) {
    return MatrixView<T>{worker.x.view()[part].data, n, count, count};
  };
  for (index_t j = 0; j < count; ++j) take_solution<T>(problem_, block, first + j, tile_of(0), j);
  PackedRows<T> rows(problem_, a, b);
  const std::vector<index_t> rows_used(static_cast<std::size_t>(count), rows_used_);
  worker.solver.solve(rows, 0, z, std::span<const int>(scales, static_cast<std::size_t>(count)),
                      {.x = tile_of(0),
                       .se = block.se != nullptr ? tile_of(1) : MatrixView<T>{},
                       .reports = block.reports.subspan(static_cast<std::size_t>(first),
                                                        static_cast<std::size_t>(count)),
                       .rows_used = rows_used});
  for (index_t j = 0; j < count; ++j) {
    const index_t s = first + j;
    if (!block.findings.empty()) block.findings[s] = worker.solver.findings();
    if (kinds[j] == Kind::gap) worker.gaps.push_back(s);
    if (kinds[j] == Kind::refused) refuse_right_side(problem_, block, s);
    if (kinds[j] != Kind::solved) continue;
    put_solution<T>(problem_, tile_of(0), tile_of(1), j, block, s);
    put_covariance<T>(problem_, correlations_, block, s);
  }
}

/// The rows that each of some right sides leaves out.
template <class T>
GapMasks SharedEngine<T>::masks_of(const RightSideBlock<T>& block,
                                   std::span<const index_t> gaps) const {
  GapMasks masks(gaps.size(), problem_.m);
  parallel_for(std::ssize(gaps), static_cast<int>(workers_.size()), [&](index_t g, int) {
    const T* b = block.b + block.b_places.start(gaps[static_cast<std::size_t>(g)]);
    for (index_t i = 0; i < problem_.m; ++i)
      if (std::isnan(b[i * block.b_places.step])) masks.set(static_cast<std::size_t>(g), i);
  });
  return masks;
}

/// The rows that count for a right side with gaps, or with weights. null: all weights are 1.
template <class T>
index_t SharedEngine<T>::rows_of(const T* b, const T* w) const {
  index_t rows = 0;
  for (index_t i = 0; i < problem_.m; ++i)
    rows += row_factors_[i] != 0 && (w == nullptr || w[i] > 0) &&
            !(problem_.skips_missing && std::isnan(b[i]));
  return rows;
}

/// Solves for the right sides that the kernel can solve. The others stay in worker.gaps.
template <class T>
void SharedEngine<T>::solve_gaps(std::span<const index_t> gaps, const RightSideBlock<T>& block,
                                 Worker& worker) {
  const systems::Routine<T>& routine = gap_routine<T>();
  const index_t n = problem_.n, m = problem_.m;
  const MatrixView<T> x = worker.x.view()[0], se = worker.x.view()[1];
  T* b = worker.b.view().data;
  T* w = problem_.weighs_each ? worker.w.view().data : nullptr;
  systems::Solution solutions[most_same_mask];
  systems::Matrix matrices[most_same_mask];
  const auto count = std::ssize(gaps);
  for (index_t l = 0; l < count; ++l) {
    const T* from = block.b + block.b_places.start(gaps[l]);
    for (index_t i = 0; i < m; ++i) b[l * m + i] = from[i * block.b_places.step];
    for (index_t i = 0; w != nullptr && i < m; ++i)
      w[l * m + i] = block.w[block.w_places.start(gaps[l]) + i * block.w_places.step];
    take_solution<T>(problem_, block, gaps[l], {x.data + l * n, n, 1, 1}, 0);
  }
  routine.solve(gap_shape_, gap_rules_,
                {.count = count,
                 .a = {},
                 .r = {},
                 .b = {b, m, m},
                 .b_has_rows = true,
                 .shared = {padded_.view().data, padded_.view().ld, row_factors_.data()},
                 .w = {w, m, m},
                 .scales = scales_.data(),
                 .x = x.data,
                 .se = block.se != nullptr ? se.data : nullptr,
                 .solutions = solutions,
                 .matrices = matrices},
                worker.gap_workspace.get());
  for (index_t l = 0; l < count; ++l) {
    const index_t rows_used = rows_of(b + l * m, w == nullptr ? nullptr : w + l * m);
    if (solutions[l].needs_care || rows_used < problem_.least_rows()) {
      worker.gaps.push_back(gaps[l]);
      continue;
    }
    SolutionReport& report = block.reports[gaps[l]] = {};
    report.residual_norm = solutions[l].residual_norm;
    report.backward_error = solutions[l].backward_error;
    report.bar = gap_rules_.bar;
    report.freedom = static_cast<double>(rows_used - n);
    report.status = Status::ok;
    if (!block.findings.empty())
      block.findings[gaps[l]] = {.rank = static_cast<std::int32_t>(n),
                                 .condition = matrices[l].condition,
                                 .scaled_condition = matrices[l].scaled_condition};
    put_solution<T>(problem_, {x.data + l * n, n, 1, 1}, {se.data + l * n, n, 1, 1}, 0, block,
                    gaps[l]);
  }
}

template <class T>
void SharedEngine<T>::refuse_all(const RightSideBlock<T>& block) const {
  const Status why = has_few_rows() ? Status::too_few_rows : Status::non_finite;
  for (index_t s = 0; s < block.count; ++s) {
    refuse_right_side(problem_, block, s, why);
    if (!block.findings.empty()) block.findings[s] = {};
  }
}

/// Solves with weights of each right side, and returns the right sides that it leaves.
template <class T>
std::vector<index_t> SharedEngine<T>::run_weighted(const RightSideBlock<T>& block) {
  std::vector<index_t> all(static_cast<std::size_t>(block.count));
  std::iota(all.begin(), all.end(), index_t{0});
  // A row that is not finite may count for no right side.
  if (!a_is_finite_ || has_few_rows() || !solves_gaps_) return all;
  const auto lanes = static_cast<std::size_t>(gap_routine<T>().lanes);
  const auto packs = static_cast<index_t>((all.size() + lanes - 1) / lanes);
  parallel_for(packs, static_cast<int>(workers_.size()), [&](index_t i, int worker) {
    const std::size_t first = static_cast<std::size_t>(i) * lanes;
    solve_gaps(std::span(all).subspan(first, std::min(lanes, all.size() - first)), block,
               workers_[worker]);
  });
  return take_gaps(workers_);
}

template <class T>
std::vector<index_t> SharedEngine<T>::run(const RightSideBlock<T>& block) {
  if (problem_.weighs_each) return run_weighted(block);
  if (!a_is_finite_ || has_few_rows()) {
    refuse_all(block);
    return {};
  }
  const index_t tiles = (block.count + tile - 1) / tile;
  for (Worker& worker : workers_) worker.gaps.clear();
  parallel_for(tiles, static_cast<int>(workers_.size()), [&](index_t t, int worker) {
    solve_tile(block, t * tile, std::min(tile, block.count - t * tile), workers_[worker]);
  });
  return finish_gaps(block);
}

/// Solves for one right side at a time, since there are few of them.
template <class T>
std::vector<index_t> SharedEngine<T>::run_some(const RightSideBlock<T>& block,
                                               std::span<const index_t> sides) {
  for (Worker& worker : workers_) worker.gaps.clear();
  parallel_for(std::ssize(sides), static_cast<int>(workers_.size()), [&](index_t i, int worker) {
    solve_tile(block, sides[static_cast<std::size_t>(i)], 1, workers_[worker]);
  });
  return finish_gaps(block);
}

/// Solves for the right sides with gaps, and returns the right sides that it leaves to the CPU's
/// slower way.
template <class T>
std::vector<index_t> SharedEngine<T>::finish_gaps(const RightSideBlock<T>& block) {
  std::vector<index_t> gaps = take_gaps(workers_);
  if (!solves_gaps_ || gaps.empty()) return gaps;
  const auto lanes = static_cast<std::size_t>(gap_routine<T>().lanes);
  const auto groups = group_by_mask(gaps, masks_of(block, gaps), lanes, most_same_mask);
  parallel_for(std::ssize(groups), static_cast<int>(workers_.size()), [&](index_t i, int worker) {
    solve_gaps(groups[static_cast<std::size_t>(i)], block, workers_[worker]);
  });
  return take_gaps(workers_);
}

template class SharedEngine<float>;
template class SharedEngine<double>;

}  // namespace qrtool
