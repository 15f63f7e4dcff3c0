// SPDX-License-Identifier: Apache-2.0
// sample.cpp: reports, and a sample through core's engine, which checks and does not solve.
#include "gpu/solve/parts/sample.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "core/cpu/cpu_variants.hpp"
#include "core/problem/operations.hpp"
#include "core/solve/backward_error.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/solve/parts/system_buffers.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

/// For the matrices of a sample, which are few.
constexpr std::size_t host_bytes = std::size_t{1} << 30;
/// The systems of most samples: the first and the last of a sub-chunk.
constexpr index_t sample_size = 2;

/// ||b - A x|| without the rows of the ridge, from the norm with them. For a solution g = A'r - l x
/// is about 0, so that l ||x|| <= ||A|| ||r|| in the rows of A, and the difference of squares has
/// an error of about ||A|| ||x|| times that of the squares, as the sum of these rows alone would
/// have. The entries of x are `step` apart.
template <class T>
double norm_without_ridge(const SolveProblem& p, double norm, const T* x, index_t step) {
  double squares = 0;
  for (index_t j = 0; j < p.n; ++j) {
    const double r =
        static_cast<double>(static_cast<T>(p.penalty(j))) * static_cast<double>(x[j * step]);
    squares += r * r;
  }
  const double left = norm * norm - squares;
  return left < 0 ? 0 : std::sqrt(left);
}

}  // namespace

template <class T>
std::vector<char> judge_systems(const SolveProblem& p, const SystemFindings& found,
                                const RightSideBlock<T>& block) {
  const double bar = solution_bar(p.type, p.packed_rows(), p.n);
  const double most = tuning::solve_most_of_bar * bar;
  std::vector<char> accepted(static_cast<std::size_t>(found.count));
  for (index_t i = 0; i < found.count; ++i) {
    const auto place = static_cast<std::size_t>(i);
    const index_t system = found.first + i, first = system * found.sides;
    const index_t left_out = found.left_out.empty() ? 0 : found.left_out[place];
    bool is_accepted = p.m - left_out >= p.least_rows();
    for (index_t side = first; side < first + found.sides; ++side) {
      const auto of_side = static_cast<std::size_t>(side - found.first * found.sides);
      const SolutionErrors& errors = found.errors[of_side];
      SolutionReport& report = block.reports[static_cast<std::size_t>(side)] = {};
      report.residual_norm = errors.residual_norm;
      if (found.has_ridge_rows)
        report.residual_norm = norm_without_ridge(
            p, errors.residual_norm, block.x + block.x_places.start(side), block.x_places.step);
      report.backward_error = errors.error;
      report.bar = bar;
      report.freedom = found.freedom - static_cast<double>(left_out);
      report.status = Status::ok;
      if (is_wide(p)) report.least_norm_error = found.least_norms[of_side];
      is_accepted &= errors.error <= most && (!is_wide(p) || report.least_norm_error <= most);
    }
    accepted[place] = is_accepted;
    if (block.findings.empty() || found.factors.empty()) continue;
    const FactorFindings& factor = found.factors[place];
    block.findings[static_cast<std::size_t>(first)] = {
        .rank = static_cast<std::int32_t>(p.k()),
        .condition = factor.condition,
        // A wide matrix has one condition, that with scaled columns.
        .scaled_condition = is_wide(p) ? factor.condition : factor.scaled_condition};
  }
  return accepted;
}
template std::vector<char> judge_systems(const SolveProblem&, const SystemFindings&,
                                         const RightSideBlock<float>&);
template std::vector<char> judge_systems(const SolveProblem&, const SystemFindings&,
                                         const RightSideBlock<double>&);

template <class T>
struct SystemSample<T>::Examiner {
  Examiner(const SolveProblem& problem, const Limits& limits, index_t of_sides)
      : sides(of_sides),
        cpu(limits),
        plan(make_plan(SystemEngine<T>::factored_problem(problem, sample_size, sides),
                       cpu_variants(), limits)) {
    if (!plan.by_rows()) engine.emplace(problem, cpu, plan, limits.threads);
  }

  index_t sides;
  CpuBackend cpu;
  Plan plan;
  std::optional<SystemEngine<T>> engine;  // none: a matrix is too large
};

template <class T>
SystemSample<T>::SystemSample(const SolveProblem& problem, int threads)
    : problem_(problem), operations_left_(tuning::host_sample_operations) {
  problem_.only_checks = true;
  problem_.wants_se = false;
  limits_.host_bytes = host_bytes;
  limits_.threads = std::clamp(threads, 1, 2);
}

template <class T>
SystemSample<T>::~SystemSample() = default;

template <class T>
auto SystemSample<T>::examiner_for(index_t sides) -> Examiner& {
  if (!examiner_ || examiner_->sides != sides)
    examiner_ = std::make_unique<Examiner>(problem_, limits_, sides);
  return *examiner_;
}

template <class T>
std::vector<index_t> SystemSample<T>::judge(const SystemFindings& found, BatchView<const T> a,
                                            const RightSideBlock<T>& block) {
  const std::vector<char> are_accepted = judge_systems(problem_, found, block);
  std::vector<index_t> accepted, refused;
  for (index_t i = 0; i < found.count; ++i)
    (are_accepted[static_cast<std::size_t>(i)] != 0 ? accepted : refused)
        .push_back(found.first + i);
  if (!agrees(a, block, found.sides, accepted)) {
    refused.resize(static_cast<std::size_t>(found.count));
    std::iota(refused.begin(), refused.end(), found.first);
  }
  return refused;
}

template <class T>
bool SystemSample<T>::agrees(BatchView<const T> a, const RightSideBlock<T>& block, index_t sides,
                             std::span<const index_t> systems) {
  const double each = operations(SystemEngine<T>::factored_problem(problem_, 1, sides));
  const index_t last = std::ssize(systems) - 1;
  std::vector<index_t> chosen;
  for (index_t i = 0; i <= last && operations_left_ >= each;
       i = i < last ? std::min(i + tuning::host_sample_step, last) : last + 1) {
    chosen.push_back(systems[static_cast<std::size_t>(i)]);
    operations_left_ -= each;
  }
  if (chosen.empty()) return true;
  Examiner& examiner = examiner_for(sides);
  if (!examiner.engine) return true;
  // A block may be far larger than the part of it that these systems are in.
  const index_t from = chosen.front() * sides;
  std::vector<SystemRef<T>> refs;
  for (const index_t system : chosen) refs.push_back({a[system].data, system * sides - from});
  std::vector<SolutionReport> reports(static_cast<std::size_t>((chosen.back() + 1) * sides - from));
  RightSideBlock<T> checked = block;
  checked.count = std::ssize(reports);
  checked.b += block.b_places.start(from);
  checked.x += block.x_places.start(from);
  if (block.w != nullptr) checked.w += block.w_places.start(from);
  checked.se = nullptr;
  checked.reports = reports;
  checked.findings = {};
  examiner.engine->run(refs, checked);
  return std::all_of(chosen.begin(), chosen.end(), [&](index_t system) {
    const auto first = reports.begin() + (system * sides - from);
    return std::all_of(first, first + sides,
                       [](const SolutionReport& report) { return report.status == Status::ok; });
  });
}

template class SystemSample<float>;
template class SystemSample<double>;

}  // namespace qrtool
