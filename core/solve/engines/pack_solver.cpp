// SPDX-License-Identifier: Apache-2.0
// pack_solver.cpp: finds out where the systems of a pack are, calls the kernel, and stores what it
// has found.
#include "core/solve/engines/pack_solver.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/simd/instruction_sets.hpp"
#include "core/solve/engines/routines.hpp"

namespace qrtool {
namespace {

/// Up to this condition x from A'A is as good as its type.
template <class T>
constexpr double most_gram_condition = sizeof(T) == 4 ? 4096 : least_refined_condition;

systems::Rules rules_of(const SolveProblem& problem) {
  const SolveRules rules = problem.rules();
  return {.bar = solution_bar(rules.type, rules.m, rules.n),
          .least_singular_value = rank_margin * rules.rank.tolerance,
          .most_condition =
              is_refined(rules) ? least_refined_condition : std::numeric_limits<double>::infinity(),
          .is_given = rules.only_checks,
          .wants_se = rules.wants_se};
}

}  // namespace

std::span<const systems::Kernels* const> systems_kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(systems, kernels)};
  return supported(all);
}

bool pays_as_pack(const SolveProblem& problem, index_t systems, index_t p) {
  // A pack then stays in a second-level cache of 2 MiB. The limits of cpu/batched come first.
  constexpr index_t most_entries = 32768, most_columns = 128, most_rows = 1024;
  const index_t m = problem.packed_rows(), columns = problem.n + p;
  return !is_complex(problem.type) && m >= problem.n && problem.n > 0 && p > 0 && m <= most_rows &&
         columns <= most_columns && m * columns <= most_entries &&
         systems >= systems_kernels().front()->in_double.lanes;
}

template <class T>
PackSolver<T>::PackSolver(const SolveProblem& problem, index_t p, Factor factor,
                          const systems::Kernels& kernels)
    : problem_(problem),
      p_(p),
      shape_{.m = problem.packed_rows(),
             .n = problem.n,
             .p = p,
             .data_rows = problem.m,
             .is_factored = factor == Factor::given},
      rules_(rules_of(problem)),
      routine_(routine_of<T>(kernels)),
      workspace_(allocate_host(kernel_bytes(routine_, shape_))),
      rows_(problem.m),
      solver_(problem.rules()),
      ab_(shape_.is_factored ? 0 : routine_.lanes, shape_.m, shape_.n + p),
      x_(routine_.lanes, p, shape_.n),
      se_(problem.wants_se ? routine_.lanes : 0, p, shape_.n),
      r_(1, shape_.n, shape_.n),
      z_(1, shape_.n, p),
      packed_(static_cast<std::size_t>(routine_.lanes)),
      shifts_(static_cast<std::size_t>(routine_.lanes * p)),
      scales_(static_cast<std::size_t>(routine_.lanes * problem.n)),
      rows_used_(packed_.size()),
      solutions_(shifts_.size()),
      matrices_(packed_.size()) {}

/// Returns the workspace of the kernel, for the larger of its two ways to R.
template <class T>
std::size_t PackSolver<T>::kernel_bytes(const systems::Routine<T>& routine, systems::Shape shape) {
  const std::size_t bytes = routine.workspace_bytes(shape);
  if (shape.is_factored) return bytes;
  shape.is_gram = true;
  return std::max(bytes, routine.workspace_bytes(shape));
}

template <class T>
std::size_t PackSolver<T>::workspace_bytes(const SolveProblem& problem, index_t p) {
  const auto& routine = routine_of<T>(*systems_kernels().front());
  const systems::Shape shape{.m = problem.packed_rows(), .n = problem.n, .p = p};
  const index_t of_lane = shape.m * (shape.n + p) + 2 * p * shape.n;
  return kernel_bytes(routine, shape) +
         static_cast<std::size_t>(routine.lanes * of_lane) * sizeof(T);
}

/// Weights and a ridge change the rows, and rows that are absent or have missing entries are left
/// out.
template <class T>
bool PackSolver<T>::must_be_packed(const SystemRef<T>& system,
                                   const RightSideBlock<T>& block) const {
  if (block.w != nullptr || problem_.ridge > 0 || system.absent > 0) return true;
  if (!problem_.skips_missing) return false;
  if (has_nan(system.a, problem_.m * problem_.n, 1)) return true;
  for (index_t j = 0; j < p_; ++j)
    if (has_nan(block.b + block.b_places.start(system.first + j), problem_.m, block.b_places.step))
      return true;
  return false;
}

template <class T>
bool PackSolver<T>::take_in_place(std::span<const SystemRef<T>> systems,
                                  const RightSideBlock<T>& block) {
  const VectorPlaces& places = block.b_places;
  const index_t first = systems[0].first, start = places.start(first);
  const index_t next = p_ > 1 ? places.start(first + 1) - start : 1;
  if (next != 1 && places.step != 1) return false;
  index_t of_a = 0, of_b = 0;
  if (systems.size() > 1) {
    of_a = systems[1].a - systems[0].a;
    of_b = places.start(systems[1].first) - start;
  }
  for (std::size_t l = 0; l < systems.size(); ++l) {
    const auto lane = static_cast<index_t>(l);
    const SystemRef<T>& system = systems[l];
    if (must_be_packed(system, block) || system.a != systems[0].a + lane * of_a) return false;
    for (index_t j = 0; j < p_; ++j)
      if (places.start(system.first + j) != start + lane * of_b + j * next) return false;
  }
  inputs_.a = {systems[0].a, problem_.n, of_a};
  inputs_.b_has_rows = next != 1;
  inputs_.b = {block.b + start, inputs_.b_has_rows ? next : places.step, of_b};
  inputs_packed_ = {};
  std::fill(rows_used_.begin(), rows_used_.end(), problem_.m);
  return true;
}

/// Scales only the systems that must be packed. Their neighbours get the bits that they get without
/// a copy, because their exponents decide which systems need care, and they lose no digits of small
/// columns.
template <class T>
void PackSolver<T>::pack(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block) {
  for (std::size_t l = 0; l < systems.size(); ++l) {
    const MatrixView<T> ab = ab_.view()[static_cast<index_t>(l)];
    if (must_be_packed(systems[l], block)) {
      pack_system(problem_, systems[l], block, rows_, ab, packed_[l]);
    } else {
      copy_system(problem_, systems[l], block, ab, packed_[l]);
    }
  }
  take_packed(ab_.view(), std::span(packed_).first(systems.size()));
}

template <class T>
void PackSolver<T>::take_packed(BatchView<const T> ab, std::span<const PackedSystem> packed) {
  for (std::size_t l = 0; l < packed.size(); ++l) {
    rows_used_[l] = packed[l].rows_used;
    std::ranges::copy(packed[l].scale_b, &shifts_[l * packed[l].scale_b.size()]);
    std::ranges::copy(packed[l].scale_a, &scales_[l * packed[l].scale_a.size()]);
  }
  inputs_.a = {ab.data, ab.ld, ab.stride};
  inputs_.b = {ab.data + problem_.n, ab.ld, ab.stride};
  inputs_.b_has_rows = false;
  inputs_packed_ = packed;
}

template <class T>
bool PackSolver<T>::needs_care(index_t lane) const {
  const PackedSystem* packed = inputs_packed_.empty() ? nullptr : &inputs_packed_[lane];
  if (packed != nullptr && !packed->a_is_finite) return true;
  if (rows_used_[static_cast<std::size_t>(lane)] < problem_.least_rows()) return true;
  for (index_t j = 0; j < p_; ++j) {
    if (solutions_[lane * p_ + j].needs_care) return true;
    if (packed != nullptr && !packed->b_is_finite[j]) return true;
  }
  return false;
}

/// Returns the correlations of the solution's entries, from the system's R.
template <class T>
std::vector<double> PackSolver<T>::correlations_of(index_t lane) {
  const MatrixView<double> r = r_.view()[0];
  if (shape_.is_factored) {
    for (index_t i = 0; i < r.rows; ++i)
      for (index_t j = 0; j < r.cols; ++j)
        r(i, j) =
            static_cast<double>(inputs_.r.data[lane * inputs_.r.stride + i * inputs_.r.ld + j]);
  } else {
    routine_.take_factor(shape_, workspace_.get(), {.lane = static_cast<int>(lane)}, r.data,
                         z_.view().data);
  }
  return inverse_row_correlations<double>(r);
}

template <class T>
void PackSolver<T>::store(const SystemRef<T>& system, const RightSideBlock<T>& block,
                          index_t lane) {
  if (!block.findings.empty())
    block.findings[system.first] = {.rank = static_cast<std::int32_t>(problem_.n),
                                    .condition = matrices_[lane].condition,
                                    .scaled_condition = matrices_[lane].scaled_condition};
  for (index_t j = 0; j < p_; ++j) {
    const systems::Solution& solution = solutions_[lane * p_ + j];
    SolutionReport& report = block.reports[system.first + j] = {};
    report.residual_norm = inputs_packed_.empty() ? solution.residual_norm
                                                  : std::ldexp(solution.residual_norm,
                                                               inputs_packed_[lane].scale_b[j]);
    report.backward_error = solution.backward_error;
    report.bar = rules_.bar;
    report.freedom = static_cast<double>(rows_used_[lane] - problem_.n);
    report.status = Status::ok;
    // A row of n is a column with a distance of 1.
    const MatrixView<const T> x{&x_.view()[lane](j, 0), problem_.n, 1, 1};
    const MatrixView<const T> se{block.se != nullptr ? &se_.view()[lane](j, 0) : nullptr,
                                 problem_.n, 1, 1};
    put_solution<T>(problem_, x, se, 0, block, system.first + j);
  }
  if (block.covariance == nullptr) return;
  const std::vector<double> correlations = correlations_of(lane);
  for (index_t j = 0; j < p_; ++j)
    put_covariance<T>(problem_, correlations, block, system.first + j);
}

template <class T>
void PackSolver<T>::solve_with_care(const SystemRef<T>& system, const RightSideBlock<T>& block,
                                    index_t lane) {
  const MatrixView<T> ab = ab_.view()[lane];
  PackedSystem& packed = packed_[lane];
  const bool is_packed = !inputs_packed_.empty() && !inputs_packed_[lane].is_copy;
  if (!is_packed) pack_system(problem_, system, block, rows_, ab, packed);
  if (refuse_system(problem_, system, packed, p_, block)) return;
  const MatrixView<double> r = r_.view()[0], z = z_.view()[0];
  if (matrices_[lane].is_finite) {
    const systems::PackLane place{.lane = static_cast<int>(lane),
                                  .scales = is_packed ? nullptr : packed.scale_a.data()};
    routine_.take_factor(shape_, workspace_.get(), place, r.data, z.data);
  } else {
    // A right side that is not finite is packed as zeros.
    PackedRows<T> rows(problem_, {ab.data, ab.rows, problem_.n, ab.ld},
                       {ab.data + problem_.n, ab.rows, p_, ab.ld});
    std::vector<double> column(static_cast<std::size_t>(problem_.n));
    for (index_t j = 0; j < p_; ++j) {
      rows.factor_again(j, r, column.data());
      for (index_t i = 0; i < problem_.n; ++i) z(i, j) = column[i];
    }
  }
  solver_.take_factor(MatrixView<const double>(r), packed.scale_a);
  solve_packed<T>(problem_, system, in_one(problem_, ab, packed, z), solver_, block);
}

template <class T>
void PackSolver<T>::call_kernel(std::span<const SystemRef<T>> systems,
                                const RightSideBlock<T>& block) {
  inputs_.count = std::ssize(systems);
  inputs_.shifts = inputs_packed_.empty() ? nullptr : shifts_.data();
  inputs_.scales = inputs_packed_.empty() ? nullptr : scales_.data();
  inputs_.rows_used = rows_used_.data();
  inputs_.x = x_.view().data;
  inputs_.se = se_.view().data;
  inputs_.solutions = solutions_.data();
  inputs_.matrices = matrices_.data();
  for (index_t l = 0; l < inputs_.count; ++l)
    for (index_t j = 0; j < p_; ++j)
      take_solution<T>(problem_, block, systems[l].first + j,
                       {&x_.view()[l](j, 0), problem_.n, 1, 1}, 0);
  systems::Rules rules = rules_;
  if (shape_.is_gram) rules.most_condition = std::min(rules.most_condition, most_gram_condition<T>);
  routine_.solve(shape_, rules, inputs_, workspace_.get());
}

template <class T>
void PackSolver<T>::run(std::span<const SystemRef<T>> systems, const RightSideBlock<T>& block) {
  shape_.is_gram = true;
  if (!take_in_place(systems, block)) pack(systems, block);
  call_kernel(systems, block);
  for (index_t l = 0; l < std::ssize(systems); ++l) {
    if (needs_care(l)) {
      put_off_.push_back(systems[l]);
    } else {
      store(systems[l], block, l);
    }
  }
  if (std::ssize(put_off_) >= routine_.lanes) solve_put_off(block);
}

template <class T>
void PackSolver<T>::finish(const RightSideBlock<T>& block) {
  while (!put_off_.empty()) solve_put_off(block);
}

/// Solves the systems that were put off, by reflectors.
template <class T>
void PackSolver<T>::solve_put_off(const RightSideBlock<T>& block) {
  const auto count = std::min<std::ptrdiff_t>(std::ssize(put_off_), routine_.lanes);
  const std::vector<SystemRef<T>> systems(put_off_.end() - count, put_off_.end());
  put_off_.resize(put_off_.size() - systems.size());
  shape_.is_gram = false;
  if (!take_in_place(systems, block)) pack(systems, block);
  call_kernel(systems, block);
  for (index_t l = 0; l < std::ssize(systems); ++l)
    needs_care(l) ? solve_with_care(systems[l], block, l) : store(systems[l], block, l);
}

template <class T>
void PackSolver<T>::solve_factored(std::span<const SystemRef<T>> systems,
                                   const RightSideBlock<T>& block, const Factored& factored) {
  take_packed(factored.ab, factored.packed);
  inputs_.r = {factored.r.data, factored.r.ld, factored.r.stride};
  call_kernel(systems, block);
}

template class PackSolver<float>;
template class PackSolver<double>;

}  // namespace qrtool
