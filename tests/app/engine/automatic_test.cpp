// SPDX-License-Identifier: Apache-2.0
// automatic_test.cpp: the choice between the CPU and a GPU follows what is known of both.
#include "app/engine/automatic.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "app/engine/opencl.hpp"
#include "core/cpu/cpu_rates.hpp"
#include "tests/support/measured_gpu.hpp"

namespace qrtool::automatic_test {
namespace {

using test::measured_gpu;

/// With every program of the work built before, and its start known.
Timings used_for(const Work& work, const DeviceInfo& gpu, double start = 0.25) {
  Timings timings;
  const DeviceWork of_device = device_work(work, gpu);
  for (int turn = 0; turn < 2; ++turn) {
    DeviceTimes times{gpu, start, {}};
    for (const std::string& id : of_device.programs)
      times.programs.push_back({id, "x", turn == 0 ? 2.0 : 0.01});
    timings.add(times);
  }
  return timings;
}

Limits threads(int count) {
  Limits limits;
  limits.threads = count;
  return limits;
}

bool takes_gpu(const Work& work, int count, const DeviceInfo& gpu, const Timings& timings) {
  return choose_automatically(work, threads(count), {&gpu, 1}, timings).device != nullptr;
}

class Automatic : public testing::Test {
 protected:
  void SetUp() override {
    if (list_opencl_variants().empty()) GTEST_SKIP() << "a build without OpenCL";
  }
};

TEST_F(Automatic, TakesAGpuOnlyWhereTheWorkIsWorthIt) {
  const DeviceInfo cpu_device, gpu = measured_gpu();
  const Problem little{100, 8, 8}, much{1, 5000, 5000, ElementType::float64};
  const DeviceInfo only_cpu[] = {cpu_device}, both[] = {cpu_device, gpu};
  const Timings timings = used_for(much, gpu);
  const auto device = [&](const Problem& problem, std::span<const DeviceInfo> devices) {
    return choose_automatically(problem, threads(2), devices, timings).device;
  };
  EXPECT_EQ(device(little, both), nullptr);
  EXPECT_EQ(device(much, {}), nullptr);
  EXPECT_EQ(device(much, only_cpu), nullptr);
  EXPECT_EQ(device(much, both), &both[1]);
  DeviceInfo single = gpu;
  single.limits.has_float64 = single.limits.float64_products = false;
  EXPECT_EQ(device(much, {&single, 1}), nullptr);
  const AutomaticChoice choice = choose_automatically(much, threads(2), {&single, 1}, timings);
  EXPECT_NE(choice.reason.find("no float64"), std::string::npos) << choice.reason;
  for (const Problem& p : {Problem{20, 2048, 2048}, Problem{1, 10000000, 32}})
    EXPECT_TRUE(takes_gpu(p, 2, single, used_for(p, single))) << p.m << 'x' << p.n;
  const Problem narrow{2000000, 64, 64};
  EXPECT_TRUE(std::isfinite(estimate(narrow, single, timings).work));
  EXPECT_FALSE(std::isfinite(estimate(Work(narrow, 1), single, timings).work)) << "solve needs it";
}

/// A GPU whose kernels, or whose copies, take longer than the CPU is not chosen.
TEST_F(Automatic, ComparesTheTimes) {
  const DeviceInfo fast = measured_gpu();
  DeviceInfo slow = fast;
  slow.limits.compute_units = 1;
  slow.limits.fast_float64 = slow.limits.float64_products = false;
  const Problem one{1, 5000, 5000, ElementType::float64};
  const Problem batch{1000000, 64, 64, ElementType::float64};
  EXPECT_TRUE(takes_gpu(one, 2, fast, used_for(one, fast)));
  EXPECT_TRUE(takes_gpu(batch, 2, fast, used_for(batch, fast)));
  EXPECT_FALSE(takes_gpu(one, 2, slow, used_for(one, slow)));
  EXPECT_FALSE(takes_gpu(batch, 64, fast, used_for(batch, fast)));  // the copies take 9 s
}

TEST_F(Automatic, CountsTheStartThatWasSeen) {
  const DeviceInfo gpu = measured_gpu();
  const Work work(Problem{1, 5000, 5000, ElementType::float64});
  EXPECT_TRUE(takes_gpu(work, 2, gpu, used_for(work, gpu, 0.2)));
  EXPECT_FALSE(takes_gpu(work, 2, gpu, used_for(work, gpu, 20)));
  EXPECT_FALSE(is_worth_a_device(work, threads(2), used_for(work, gpu, 20)));
}

TEST_F(Automatic, CountsTheBuildOfProgramsThatWereNeverBuilt) {
  const DeviceInfo gpu = measured_gpu();
  const Work work(Problem{20000, 128, 64});
  const Estimate known = estimate(work, gpu, used_for(work, gpu));
  EXPECT_EQ(known.programs.unseen, 0);
  EXPECT_LT(known.programs.seconds, 0.1);
  const Estimate unknown = estimate(work, gpu, {});
  EXPECT_EQ(unknown.programs.unseen, 3);  // the variant, the check, the checksums
  EXPECT_GT(unknown.programs.seconds, 1);
  EXPECT_DOUBLE_EQ(unknown.work, known.work);
  Timings slow_builds;
  slow_builds.add({gpu, 0.25, {{"another", "x", 7}}});
  EXPECT_DOUBLE_EQ(estimate(work, gpu, slow_builds).programs.seconds, 21);
}

TEST_F(Automatic, SaysTheNumbers) {
  const DeviceInfo gpu = measured_gpu();
  const Work work(Problem{1, 5000, 5000, ElementType::float64});
  const std::string reason =
      choose_automatically(work, threads(2), {&gpu, 1}, used_for(work, gpu)).reason;
  for (const char* part : {"NVIDIA H200 takes about", "start", "kernels", "work", "the CPU about"})
    EXPECT_NE(reason.find(part), std::string::npos) << reason;
  EXPECT_NE(choose_automatically(work, threads(2), {&gpu, 1}, {}).reason.find("3 not built before"),
            std::string::npos);
}

TEST_F(Automatic, SaysWhatWouldBeFasterWithBuiltKernels) {
  const DeviceInfo gpu = measured_gpu();
  const auto advice = [&](const Work& work, const Timings& timings) {
    return choose_automatically(work, threads(2), {&gpu, 1}, timings).advice;
  };
  const Work seconds(Problem{1, 4000, 4000, ElementType::float64});
  const std::string said = advice(seconds, {});
  EXPECT_NE(said.find("qrtool devices --build --shape 1x4000x4000 --precision double"),
            std::string::npos)
      << said;
  EXPECT_TRUE(advice(seconds, used_for(seconds, gpu)).empty()) << "the GPU takes it";
  EXPECT_TRUE(advice(Problem{100, 8, 8}, {}).empty()) << "no device is worth its start";
  Work many = seconds;
  many.right_sides = 100;
  EXPECT_TRUE(advice(many, {}).empty()) << "the command builds other kernels";
}

TEST_F(Automatic, MeasuresAnUnknownDeviceOnceWhereTheWorkIsLarge) {
  DeviceInfo gpu = measured_gpu();
  const Work large(Problem{4, 5000, 5000, ElementType::float64}), small(Problem{2000, 64, 64});
  EXPECT_FALSE(is_worth_a_sample(large, threads(1), gpu, {})) << "there is a table of it";
  gpu.name = "Another GPU";
  EXPECT_TRUE(estimate(large, gpu, {}).is_guess);
  EXPECT_TRUE(is_worth_a_sample(large, threads(1), gpu, {}));
  EXPECT_FALSE(is_worth_a_sample(small, threads(1), gpu, {}));
  Timings timings;
  const Problem of_sample{1, 2500, 2500, ElementType::float64};
  timings.add(gpu, KeptSample{of_sample, 3 * device_work(of_sample, gpu).run_seconds});
  EXPECT_FALSE(is_worth_a_sample(large, threads(1), gpu, timings));
  const Estimate guess = estimate(large, gpu, {}), measured = estimate(large, gpu, timings);
  EXPECT_FALSE(measured.is_guess);
  // A guess is ten times what the units of the device say.
  const double by_units = device_work(large, gpu).run_seconds;
  EXPECT_DOUBLE_EQ(guess.work, 10 * by_units);
  EXPECT_NEAR(measured.work, 3 * by_units, 1e-9 * by_units);
  EXPECT_NE(choose_automatically(large, threads(1), {&gpu, 1}, {}).reason.find("a guess"),
            std::string::npos);
  const Work other_type(Problem{4, 5000, 5000, ElementType::float32});
  EXPECT_TRUE(estimate(other_type, gpu, timings).is_guess);
}

TEST_F(Automatic, CountsSolutions) {
  const Problem r{15000, 64, 64, ElementType::float64, Mode::r};
  const DeviceInfo gpu = measured_gpu();
  const Work factors(r), solutions(r, 1), many(r, 20);
  EXPECT_GT(cpu_seconds(many, 2), 2 * cpu_seconds(solutions, 2));
  EXPECT_GT(estimate(many, gpu, {}).work, 1.5 * estimate(solutions, gpu, {}).work);
  EXPECT_EQ(estimate(solutions, gpu, used_for(solutions, gpu)).programs.unseen, 0);
  EXPECT_GT(estimate(solutions, gpu, used_for(factors, gpu)).programs.unseen, 0);
}

}  // namespace
}  // namespace qrtool::automatic_test
