// SPDX-License-Identifier: Apache-2.0
// device.cpp: times a batch that stays on an OpenCL device, by the device's clock.
#include "app/bench/device.hpp"

#include <utility>

#include "app/bench/data.hpp"
#include "app/run/stopwatch.hpp"
#include "gpu/host/opencl_backend.hpp"

namespace qrtool {
namespace {

class DeviceRun final : public TimedRun {
 public:
  template <class T>
  DeviceRun(OpenclBackend& backend, Plan plan, BenchData<T> data)
      : plan_(std::move(plan)), norms_(data.norms()), resident_(backend, plan_, data.view()) {}

  std::string variant() const override { return std::string(plan_.variant->name); }

  RunSeconds run() override {
    const ResidentRun::Seconds seconds = resident_.run();
    return {seconds.factor, seconds.check};
  }

  double run_to_r(std::span<std::byte> to) override {
    const Stopwatch watch;
    resident_.run_to_r(to);
    return watch.seconds();
  }

  Accuracy accuracy() const override {
    Accuracy accuracy;
    add_lines(accuracy, resident_.report(), norms_);
    return accuracy;
  }

 private:
  Plan plan_;  // resident_ refers to it
  std::vector<double> norms_;
  ResidentRun resident_;
};

template <class T>
std::unique_ptr<TimedRun> make_run(OpenclBackend& backend, Plan plan, std::uint64_t seed) {
  const Problem p = plan.problem;
  BenchData<T> data(p.count, p.m, p.n, seed, backend.limits().threads);
  return std::make_unique<DeviceRun>(backend, std::move(plan), std::move(data));
}

}  // namespace

std::unique_ptr<TimedRun> make_resident_run(Backend& backend, Plan plan, std::uint64_t seed) {
  auto& opencl = dynamic_cast<OpenclBackend&>(backend);
  if (plan.problem.type == ElementType::float32)
    return make_run<float>(opencl, std::move(plan), seed);
  return make_run<double>(opencl, std::move(plan), seed);
}

}  // namespace qrtool
