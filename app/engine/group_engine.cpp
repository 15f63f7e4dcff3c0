// SPDX-License-Identifier: Apache-2.0
// group_engine.cpp: which engine of core, or which device, takes which right sides.
#include "app/engine/group_engine.hpp"

#include <algorithm>
#include <cmath>

#include "app/engine/opencl.hpp"
#include "core/machine/clock.hpp"
#include "core/machine/parallel.hpp"
#include "core/solve/engines/side_copies.hpp"

namespace qrtool {
namespace {

/// The bytes of right sides that are copied at a time, which are enough to fill a device.
constexpr std::size_t most_copied_bytes = std::size_t{64} << 20;

Limits half_of(Limits limits) {
  limits.host_bytes /= 2;
  return limits;
}

}  // namespace

template <class T>
GroupEngine<T>::GroupEngine(const GroupJob& job, MatrixView<const T> a, const Real<T>* w)
    : job_(job), a_(a), w_(w), cpu_(half_of(job.limits)) {
  const SolvePlan& plan = job.plan;
  if (plan.route == SolveRoute::shared) shared_.emplace(job.problem, job.limits);
  if (plan.route == SolveRoute::each || plan.splits)
    engine_.emplace(job.problem, cpu_, plan.factor, plan.threads);
  if constexpr (!is_complex_number<T>) {
    if (job.device != nullptr && !job.device->is_shared)
      device_ = make_opencl_systems<T>(*job.device->backend, job.problem, job.device->factor,
                                       job.device->route);
    if (job.device != nullptr && job.device->takes_gaps)
      gap_device_ = make_opencl_systems<T>(*job.device->backend, job.problem, job.device->factor,
                                           job.device->route);
    if (device_) device_->prepare(plan.system_size(), a.data != nullptr);
  }
}

template <class T>
void GroupEngine<T>::run(BatchView<const T> a, const RightSideBlock<T>& block) {
  if (device_) {
    solve_on_device(a_.data != nullptr ? one_for_all(block.count) : a, block);
  } else if (job_.plan.route == SolveRoute::each) {
    seconds_ += solve_systems(a, block, all_systems(block));
  } else if (a_.data != nullptr) {
    solve_shared(block);
  } else {
    for (index_t g = 0; g < a.count; ++g) solve_group(a[g], g, block);
  }
}

template <class T>
void GroupEngine<T>::free_workspace() {
  engine_.reset();
  cpu_.free_workspace();
}

template <class T>
std::vector<index_t> GroupEngine<T>::all_systems(const RightSideBlock<T>& block) const {
  std::vector<index_t> all;
  const index_t step = job_.plan.system_size();
  for (index_t s = 0; s < block.count; s += step) all.push_back(s);
  return all;
}

/// Returns the systems that begin with these right sides.
template <class T>
SolveSeconds GroupEngine<T>::solve_systems(BatchView<const T> a, const RightSideBlock<T>& block,
                                           const std::vector<index_t>& right_sides) {
  std::vector<SystemRef<T>> systems;
  for (const index_t s : right_sides) systems.push_back({a_of(a, s / job_.plan.group_size), s});
  return engine_->run(systems, block);
}

/// Solves on the device, and on the CPU for the systems that it refuses.
template <class T>
void GroupEngine<T>::solve_on_device(BatchView<const T> a, const RightSideBlock<T>& block) {
  const SolveSeconds before = device_->seconds();
  const index_t size = job_.plan.system_size();
  std::vector<index_t> refused;
  if constexpr (!is_complex_number<T>) {
    // Right sides that are systems of their own go to a device one after another.
    if (a_.data != nullptr && job_.plan.group_size != 1)
      refused = solve_copies(*device_, block, all_systems(block));
    else
      refused = device_->run(a, block);
  }
  const SolveSeconds after = device_->seconds();
  seconds_ += {after.factor - before.factor, after.solve - before.solve};
  for (index_t& system : refused) system *= size;
  if (!refused.empty()) seconds_ += solve_systems(a, block, refused);
}

template <class T>
void GroupEngine<T>::solve_shared(const RightSideBlock<T>& block) {
  const auto start = Clock::now();
  if (!has_matrix_) {
    findings_ = shared_->take_matrix(a_, w_, 1);
    has_matrix_ = true;
    seconds_.factor += seconds_since(start);
    if constexpr (!is_complex_number<T>) take_to_device(block);
  }
  const auto solving = Clock::now();
  const std::vector<index_t> gaps = run_shared(block);
  seconds_.solve += seconds_since(solving);
  if (!gaps.empty()) seconds_ += solve_systems({}, block, gaps);
}

template <class T>
std::vector<index_t> GroupEngine<T>::run_shared(const RightSideBlock<T>& block) {
  if constexpr (!is_complex_number<T>) {
    if (shared_device_) return solve_shared_on_device(block);
  }
  return shared_->run(block);
}

/// Without factors (rank or range in doubt) each solution is computed one by one on the CPU, and
/// the device is not used.
template <class T>
void GroupEngine<T>::take_to_device(const RightSideBlock<T>& block) requires(
    !is_complex_number<T>) {
  const auto factors = shared_->factors();
  if (job_.device == nullptr || !factors) return;
  const bool in_rows = block.b_places.group == 1;
  shared_device_ = make_opencl_shared<T>(*job_.device->backend, job_.problem, a_, *factors,
                                         in_rows ? SidesLayout::rows : SidesLayout::columns);
}

/// Solves on the CPU for right sides that the device refuses, and returns the rest.
template <class T>
std::vector<index_t> GroupEngine<T>::solve_shared_on_device(
    const RightSideBlock<T>& block) requires(!is_complex_number<T>) {
  std::fill(block.findings.begin(), block.findings.end(), findings_);
  std::vector<index_t> refused = shared_device_->run(block);
  if (gap_device_) refused = solve_gaps_on_device(block, refused);
  return shared_->run_some(block, refused);
}

/// Solves on the device for the right sides that leave rows out, even if there are few: the bits of
/// a result must not depend on the other right sides. Returns the right sides that are not solved:
/// those that leave no rows out, and those that the device refuses.
template <class T>
std::vector<index_t> GroupEngine<T>::solve_gaps_on_device(
    const RightSideBlock<T>& block,
    std::span<const index_t> refused) requires(!is_complex_number<T>) {
  const SolveProblem& problem = job_.problem;
  const int threads = job_.plan.threads;
  std::vector<char> has_gap(refused.size());
  parallel_for(std::ssize(refused), threads, [&](index_t i, int) {
    const auto place = static_cast<std::size_t>(i);
    const T* b = block.b + block.b_places.start(refused[place]);
    for (index_t e = 0; e < problem.m && !has_gap[place]; ++e)
      has_gap[place] = std::isnan(b[e * block.b_places.step]);
  });
  std::vector<index_t> gaps, rest;
  for (std::size_t i = 0; i < refused.size(); ++i)
    (has_gap[i] != 0 ? gaps : rest).push_back(refused[i]);
  const std::vector<index_t> again = solve_copies(*gap_device_, block, gaps);
  rest.insert(rest.end(), again.begin(), again.end());
  std::sort(rest.begin(), rest.end());
  return rest;
}

/// Copies some right sides of the one A to rows, and solves for them on the device. Returns those
/// that it refuses.
template <class T>
std::vector<index_t> GroupEngine<T>::solve_copies(
    SystemDevice<T>& device, const RightSideBlock<T>& block,
    std::span<const index_t> sides) requires(!is_complex_number<T>) {
  const std::size_t bytes = std::min(most_copied_bytes, job_.limits.host_bytes / 16);
  const std::size_t step =
      std::max<std::size_t>(1, bytes / SideCopies<T>::bytes_of_side(job_.problem));
  std::vector<index_t> refused;
  for (std::size_t from = 0; from < sides.size(); from += step) {
    const auto part = sides.subspan(from, std::min(step, sides.size() - from));
    SideCopies<T> copies(job_.problem, block, part, job_.plan.threads);
    for (const index_t i : device.run(one_for_all(std::ssize(part)), copies.copies()))
      refused.push_back(part[static_cast<std::size_t>(i)]);
    copies.give_back();
  }
  return refused;
}

/// Solves for the right sides of one A.
template <class T>
void GroupEngine<T>::solve_group(MatrixView<const T> a, index_t group, RightSideBlock<T> block) {
  const index_t n = job_.problem.n, size = job_.plan.group_size, first = group * size;
  const auto start = Clock::now();
  const MatrixFindings findings = shared_->take_matrix(a, w_, 1);
  seconds_.factor += seconds_since(start);
  const auto solving = Clock::now();
  block.count = size;
  block.b += block.b_places.start(first);
  block.x += block.x_places.start(first);
  if (block.se != nullptr) block.se += block.x_places.start(first);
  if (block.covariance != nullptr) block.covariance += first * n * n;
  const auto place = static_cast<std::size_t>(first), count = static_cast<std::size_t>(size);
  block.reports = block.reports.subspan(place, count);
  block.findings = block.findings.subspan(place, count);
  shared_->run(block);
  std::fill(block.findings.begin(), block.findings.end(), findings);
  seconds_.solve += seconds_since(solving);
}

template class GroupEngine<float>;
template class GroupEngine<double>;
template class GroupEngine<std::complex<float>>;
template class GroupEngine<std::complex<double>>;

}  // namespace qrtool
