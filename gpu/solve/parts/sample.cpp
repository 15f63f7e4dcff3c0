// SPDX-License-Identifier: Apache-2.0
// sample.cpp: a sample of solutions through core's engine, which checks and does not solve.
#include "gpu/solve/parts/sample.hpp"
#include "gpu/model/tuning.hpp"

#include <algorithm>
#include <optional>

#include "core/cpu/cpu_variants.hpp"
#include "core/problem/operations.hpp"

namespace qrtool {
namespace {

/// For the matrices of a sample, which are few.
constexpr std::size_t host_bytes = std::size_t{1} << 30;
/// The systems of most samples: the first and the last of a sub-chunk.
constexpr index_t sample_size = 2;

}  // namespace

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
