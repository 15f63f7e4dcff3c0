// SPDX-License-Identifier: Apache-2.0
// sample.cpp: a sample of solutions through core's engine, which checks and does not solve.
#include "gpu/solve/sample.hpp"

#include <algorithm>

#include "core/cpu/cpu_variants.hpp"
#include "core/operations.hpp"
#include "gpu/model/tuning.hpp"

namespace qrtool {
namespace {

/// For the matrices of a sample, which are few.
constexpr std::size_t host_bytes = std::size_t{1} << 30;

}  // namespace

template <class T>
SystemSample<T>::SystemSample(const SolveProblem& problem, int threads)
    : problem_(problem), operations_left_(tuning::host_sample_operations) {
  problem_.only_checks = true;
  problem_.wants_se = false;
  limits_.host_bytes = host_bytes;
  limits_.threads = std::clamp(threads, 1, 2);
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
  CpuBackend cpu(limits_);
  const Plan plan =
      make_plan(SystemEngine<T>::factored_problem(problem_, std::ssize(chosen), sides),
                cpu_variants(), limits_);
  if (plan.by_rows()) return true;
  SystemEngine<T> engine(problem_, cpu, plan, limits_.threads);
  std::vector<SystemRef<T>> refs;
  for (const index_t system : chosen) refs.push_back({a[system].data, system * sides});
  std::vector<SolutionReport> reports(static_cast<std::size_t>(block.count));
  RightSideBlock<T> checked = block;
  checked.se = nullptr;
  checked.reports = reports;
  checked.findings = {};
  engine.run(refs, checked);
  return std::all_of(chosen.begin(), chosen.end(), [&](index_t system) {
    const auto first = reports.begin() + system * sides;
    return std::all_of(first, first + sides,
                       [](const SolutionReport& report) { return report.status == Status::ok; });
  });
}

template class SystemSample<float>;
template class SystemSample<double>;

}  // namespace qrtool
