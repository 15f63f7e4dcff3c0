// SPDX-License-Identifier: Apache-2.0
// device.cpp: times batches that stay on an OpenCL device, by the device's clock.
#include "app/bench/timing/device.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/bench/timing/data.hpp"
#include "app/process/stopwatch.hpp"
#include "core/error.hpp"
#include "core/solve/backward_error.hpp"
#include "core/solve/engines/shared_engine.hpp"
#include "gpu/pipeline/opencl_backend.hpp"
#include "gpu/solve/input/ridge.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/pairs.hpp"
#include "gpu/solve/resident/resident_shared.hpp"
#include "gpu/solve/resident/resident_systems.hpp"

namespace qrtool {
namespace {

class DeviceRun final : public TimedRun {
 public:
  /// Returns the first plan.problem.count matrices of `data`.
  template <class T>
  DeviceRun(OpenclBackend& backend, Plan plan, const BenchData<T>& data, double build_seconds = 0)
      : plan_(std::move(plan)),
        build_seconds_(build_seconds),
        norms_(data.norms()),
        resident_(backend, plan_, data.view().slice(0, plan_.problem.count)) {}

  std::string variant() const override { return std::string(plan_.variant->name); }

  double build_seconds() const override { return build_seconds_; }

  RunSeconds run() override {
    const ResidentRun::Seconds seconds = resident_.run();
    return {seconds.factor, seconds.check};
  }

  Accuracy accuracy() const override {
    Accuracy accuracy;
    add_lines(accuracy, resident_.report(), norms_);
    return accuracy;
  }

 private:
  Plan plan_;  // resident_ refers to it
  double build_seconds_;
  std::vector<double> norms_;
  ResidentRun resident_;
};

template <class T>
std::unique_ptr<TimedRun> make_run(OpenclBackend& backend, Plan plan, const MatrixRequest& request,
                                   double build_seconds) {
  const Problem p = plan.problem;
  const BenchData<T> data(p.count, p.m, p.n, request, backend.limits().threads);
  return std::make_unique<DeviceRun>(backend, std::move(plan), data, build_seconds);
}

template <class T>
class DeviceBatches final : public ResidentBatches {
 public:
  DeviceBatches(OpenclBackend& backend, const Problem& most, std::uint64_t seed)
      : backend_(backend), data_(most.count, most.m, most.n, seed, backend.limits().threads) {}
  std::unique_ptr<TimedRun> run_of(Plan plan) override {
    return std::make_unique<DeviceRun>(backend_, std::move(plan), data_);
  }

 private:
  OpenclBackend& backend_;
  BenchData<T> data_;
};

/// `of_norms`: the errors of the norms of wide systems, otherwise empty.
Accuracy accuracy_of(const SolveProblem& problem, const std::vector<SolutionErrors>& solutions,
                     const std::vector<double>& of_norms = {}) {
  const double bar = solution_bar(problem.type, problem.packed_rows(), problem.n);
  Accuracy accuracy;
  for (std::size_t i = 0; i < solutions.size(); ++i) {
    const double error = solutions[i].error;
    if (error <= bar && (of_norms.empty() || of_norms[i] <= bar)) {
      accuracy.add({.backward_error = error, .status = Status::ok});
    } else {
      ++accuracy.left_to_cpu;
    }
  }
  return accuracy;
}

template <class T>
class DeviceSystems final : public TimedRun {
 public:
  /// Draws `sides` right sides, and as many matrices or one for all. `body`: the name of a way by
  /// normal equations, or empty.
  DeviceSystems(OpenclBackend& backend, Plan plan, const SolveProblem& problem, SystemRoute route,
                index_t drawn, std::uint64_t seed, std::string_view body)
      : plan_(std::move(plan)),
        problem_(problem),
        a_(problem.has_weights ? 1 : drawn, problem_.m, problem_.n, seed, backend.limits().threads),
        b_(drawn, 1, problem_.m, seed_of_b(seed), backend.limits().threads),
        w_(draw_weights<T>(problem.has_weights ? drawn : 0, problem_.m, seed,
                           backend.limits().threads)),
        resident_(backend, problem_, plan_, a_.view(),
                  {b_.view().data, static_cast<std::size_t>(drawn * problem_.m)}, route, body, w_) {
  }

  std::string variant() const override { return name_of(resident_.route(), plan_.variant->name); }

  RunSeconds run() override {
    const auto seconds = resident_.run();
    return {seconds.factor + seconds.solve, seconds.check};
  }

  Accuracy accuracy() const override {
    return accuracy_of(problem_, resident_.errors(), resident_.least_norm_errors());
  }

 private:
  Plan plan_;  // resident_ refers to it and to problem_
  SolveProblem problem_;
  BenchData<T> a_, b_;
  std::vector<T> w_;
  ResidentSystems<T> resident_;
};

/// A timed run that solves for many right sides, stored as rows, with one A that the CPU has
/// factored.
template <class T>
class DeviceShared final : public TimedRun {
 public:
  DeviceShared(OpenclBackend& backend, const SolveProblem& problem, index_t sides, index_t drawn,
               std::uint64_t seed)
      : problem_(problem),
        a_(1, problem.m, problem.n, seed, backend.limits().threads),
        b_(drawn, 1, problem.m, seed_of_b(seed), backend.limits().threads),
        engine_(problem_, backend.limits()) {
    engine_.take_matrix(a_.view()[0], nullptr, 1);
    const auto factors = engine_.factors();
    if (!factors) throw DeviceError("solve takes such an A to the CPU");
    resident_.emplace(
        backend, problem_, *factors,
        std::span<const T>(b_.view().data, static_cast<std::size_t>(drawn * problem.m)), sides,
        SidesLayout::rows);
  }

  std::string variant() const override { return "one QR for all"; }

  RunSeconds run() override {
    const auto seconds = resident_->run();
    return {seconds.solve, seconds.check};
  }

  Accuracy accuracy() const override { return accuracy_of(problem_, resident_->errors()); }

 private:
  SolveProblem problem_;  // resident_ refers to it
  BenchData<T> a_, b_;
  SharedEngine<T> engine_;
  std::optional<ResidentShared<T>> resident_;
};

/// At most this many random entries are drawn for distinct systems. Further systems repeat them.
constexpr index_t most_drawn_entries = index_t{1} << 24;

template <class T>
std::unique_ptr<TimedRun> make_systems(OpenclBackend& backend, Plan plan,
                                       const SolveProblem& problem, SystemRoute route,
                                       std::uint64_t seed, std::string_view body) {
  if (problem.has_weights && !takes_pairs(with_ridge_rows(problem), backend.limits()))
    throw DeviceError("the device makes a copy of such a matrix for each right side");
  const index_t entries = problem.m * (problem.has_weights ? 1 : problem.n);
  const index_t drawn = std::clamp<index_t>(most_drawn_entries / entries, 1, plan.problem.count);
  return std::make_unique<DeviceSystems<T>>(backend, std::move(plan), problem, route, drawn, seed,
                                            body);
}

template <class T>
std::unique_ptr<TimedRun> make_shared(OpenclBackend& backend, const SolveProblem& p, index_t sides,
                                      std::uint64_t seed) {
  const index_t drawn = std::clamp<index_t>(most_drawn_entries / p.m, 1, sides);
  return std::make_unique<DeviceShared<T>>(backend, p, sides, drawn, seed);
}

}  // namespace

std::unique_ptr<TimedRun> make_resident_run(Backend& backend, Plan plan,
                                            const MatrixRequest& request, double build_seconds) {
  auto& opencl = dynamic_cast<OpenclBackend&>(backend);
  return with_type(plan.problem.type, [&](auto zero) {
    return make_run<decltype(zero)>(opencl, std::move(plan), request, build_seconds);
  });
}

std::unique_ptr<ResidentBatches> make_resident_batches(Backend& backend, const Problem& most,
                                                       std::uint64_t seed) {
  auto& opencl = dynamic_cast<OpenclBackend&>(backend);
  return with_type(most.type, [&](auto zero) -> std::unique_ptr<ResidentBatches> {
    return std::make_unique<DeviceBatches<decltype(zero)>>(opencl, most, seed);
  });
}

std::unique_ptr<TimedRun> make_resident_systems(Backend& backend, Plan plan,
                                                const SolveProblem& problem, SystemRoute route,
                                                std::uint64_t seed, std::string_view body) {
  auto& opencl = dynamic_cast<OpenclBackend&>(backend);
  if (plan.problem.type == ElementType::float32)
    return make_systems<float>(opencl, std::move(plan), problem, route, seed, body);
  return make_systems<double>(opencl, std::move(plan), problem, route, seed, body);
}

std::vector<SampledBody> sampled_bodies(const Backend& backend, const SolveProblem& problem) {
  if (problem.m < problem.n) return {};
  std::vector<SampledBody> bodies;
  for (const SystemBody* body : fitting_normal_bodies(problem, backend.limits()))
    bodies.push_back({body->name, name_in_costs(*body)});
  if (bodies.size() < 2) bodies.clear();
  return bodies;
}

std::unique_ptr<TimedRun> make_resident_shared(Backend& backend, const SolveProblem& problem,
                                               index_t sides, std::uint64_t seed) {
  auto& opencl = dynamic_cast<OpenclBackend&>(backend);
  if (problem.type == ElementType::float32) return make_shared<float>(opencl, problem, sides, seed);
  return make_shared<double>(opencl, problem, sides, seed);
}

double device_rate(Backend& backend, std::size_t bytes) {
  return device_moved_bytes_per_second(dynamic_cast<OpenclBackend&>(backend), bytes);
}

void flush_device(Backend& backend) { flush_device_caches(dynamic_cast<OpenclBackend&>(backend)); }

}  // namespace qrtool
