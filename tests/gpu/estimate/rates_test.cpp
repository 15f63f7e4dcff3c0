// SPDX-License-Identifier: Apache-2.0
// rates_test.cpp: the estimated times on a GPU; no device is needed.
#include "gpu/estimate/rates.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>
#include <sstream>
#include <string>

#include "core/cpu/cpu_rates.hpp"
#include "core/cpu/cpu_variants.hpp"
#include "core/plan/plan.hpp"
#include "gpu/estimate/measured.hpp"
#include "gpu/model/costs.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "tests/support/measured_gpu.hpp"

namespace qrtool::rates_test {
namespace {

using test::measured_gpu;

/// A device whose kernels are so slow that nothing else counts.
DeviceInfo slow_gpu() {
  DeviceInfo info = measured_gpu();
  info.limits.compute_units = 1;
  return info;
}

TEST(FactorWork, FollowsTheEstimateOfTheChosenVariant) {
  for (const index_t count : {1, 3}) {
    for (const Mode mode : {Mode::reduced, Mode::r}) {
      const Problem p{count, 5000, 5000, ElementType::float64, mode};
      const Variant* const variant = least_costly(p, opencl_variants(), slow_gpu().limits);
      ASSERT_NE(variant, nullptr);
      const DeviceWork work = device_work(p, slow_gpu());
      EXPECT_EQ(work.variant, variant->name);
      const double kernels = (1 + tuning::check_share) * variant->seconds(p, slow_gpu().limits);
      // Beside the kernels there are the copies of sub-chunks, 0.06 s each.
      EXPECT_NEAR(work.run_seconds, kernels * tuning::measured_units, 0.25);
    }
  }
}

TEST(FactorWork, OfRAloneTakesAtMostTheTimeOfQAndR) {
  for (const ElementType type : {ElementType::float32, ElementType::float64}) {
    for (const index_t m : {8, 33, 64, 130, 300, 512, 1000, 4096, 40000}) {
      for (const index_t n : {4, 16, 48, 64, 97, 130, 256, 512, 1024, 4096}) {
        for (const index_t count : {1, 32, 1000}) {
          const double both =
              device_work(Problem{count, m, n, type, Mode::reduced}, measured_gpu()).run_seconds;
          const double alone =
              device_work(Problem{count, m, n, type, Mode::r}, measured_gpu()).run_seconds;
          EXPECT_LE(alone, both) << count << " of " << m << 'x' << n;
        }
      }
    }
  }
}

/// A table of the device itself counts as it is.
TEST(FactorWork, TakesTheTimesOfAnOwnTableAsTheyAre) {
  DeviceInfo device = slow_gpu();
  CostTable own("a device");
  const Problem p{1, 64, 64, ElementType::float32, Mode::reduced};
  own.add("opencl/large", p, {{1, 3.0}});
  device.limits.costs = &own;
  EXPECT_EQ(device_work(p, device).variant, "opencl/large");
  EXPECT_NEAR(device_work(p, device).run_seconds, 3 * (1 + tuning::check_share), 0.1);
  EXPECT_TRUE(device_work(p, device).is_measured);
}

/// An H200 from host memory to host memory with the check, 16 threads, 2026-11-23, milliseconds.
TEST(FactorWork, IsNearMeasuredTimes) {
  const auto ms = [](index_t count, index_t m, index_t n, ElementType type) {
    return 1e3 * device_work(Problem{count, m, n, type}, measured_gpu()).run_seconds;
  };
  const auto is_near = [](double estimated, double measured) {
    return estimated < 1.35 * measured && measured < 1.35 * estimated;
  };
  const ElementType single = ElementType::float32, wide = ElementType::float64;
  EXPECT_TRUE(is_near(ms(8192, 64, 64, single), 34.3)) << ms(8192, 64, 64, single);
  EXPECT_TRUE(is_near(ms(32, 1024, 1024, single), 64.3)) << ms(32, 1024, 1024, single);
  EXPECT_TRUE(is_near(ms(1, 512, 512, single), 5.75)) << ms(1, 512, 512, single);
  // 16.2 of the 24.0 ms were the host's second measurement, which large matrices no longer have.
  EXPECT_TRUE(is_near(ms(1, 100000, 64, single), 24.0 - 16.2)) << ms(1, 100000, 64, single);
  EXPECT_TRUE(is_near(ms(1, 40000, 320, wide), 33.8)) << ms(1, 40000, 320, wide);
  EXPECT_TRUE(is_near(ms(1, 2048, 2048, wide), 19.8)) << ms(1, 2048, 2048, wide);
}

TEST(FactorWork, IsLongerWhereFloat64IsSlow) {
  DeviceInfo device = slow_gpu();
  device.limits.float64_products = false;
  const Problem p{2000, 256, 128, ElementType::float64};
  const double fast = device_work(p, device).run_seconds;
  device.limits.fast_float64 = false;
  EXPECT_NEAR(device_work(p, device).run_seconds, tuning::slow_float64 * fast, fast);
}

TEST(DeviceWork, IsFiniteForEveryShape) {
  for (const index_t m : {1, 7, 64, 300, 5000, 2000000}) {
    for (const index_t n : {1, 7, 64, 300, 5000}) {
      for (const ElementType type : {ElementType::float32, ElementType::float64}) {
        const Problem p{3, m, n, type}, r{3, m, n, type, Mode::r};
        const DeviceWork factors = device_work(p, measured_gpu()),
                         solutions = device_work({r, 2}, measured_gpu());
        EXPECT_GT(factors.run_seconds, 0) << m << 'x' << n;
        EXPECT_TRUE(std::isfinite(factors.run_seconds)) << m << 'x' << n;
        EXPECT_GE(factors.programs.size(), 3U) << m << 'x' << n;
        EXPECT_GT(solutions.run_seconds, 0) << m << 'x' << n;
        EXPECT_TRUE(std::isfinite(solutions.run_seconds)) << m << 'x' << n;
      }
    }
  }
  EXPECT_EQ(device_work(Problem{0, 5, 5}, measured_gpu()).run_seconds, 0);
}

/// x and its check on an H200 in ms, as another program than that behind the table measured them
/// (tests/peers/solve_peers.py, 2026-11-23).
TEST(SolveWork, IsNearTimesOfAnotherMeasurement) {
  struct Measured {
    ElementType type;
    index_t count, m, n;
    double ms;
  };
  constexpr ElementType single = ElementType::float32, wide = ElementType::float64;
  for (const Measured& time :
       {Measured{single, 15000, 64, 64, 0.814}, Measured{wide, 15000, 64, 64, 1.288},
        Measured{single, 262144, 288, 97, 112.7}, Measured{single, 1000000, 16, 4, 0.351},
        Measured{single, 1, 4000000, 64, 1.556}, Measured{wide, 1, 4000000, 64, 1.796}}) {
    const Problem p{time.count, time.m, time.n, time.type, Mode::r};
    const double kernels = time.ms * 1e-3 * tuning::measured_units;
    EXPECT_NEAR(device_work({p, 1}, slow_gpu()).run_seconds, kernels,
                0.3 * kernels + copy_seconds(p))
        << time.count << " of " << time.m << 'x' << time.n;
  }
}

TEST(SolveWork, RightSidesOfOneMatrixTakeTheirCopies) {
  const index_t sides = 10000000;
  for (const ElementType type : {ElementType::float32, ElementType::float64}) {
    const Problem p{1, 120, 4, type, Mode::r};
    const double bytes = 124.0 * static_cast<double>(sides) * static_cast<double>(size_of(type));
    const double copies = bytes / tuning::copied_bytes_per_second;
    const double seconds = device_work({p, sides}, measured_gpu()).run_seconds;
    EXPECT_GE(seconds, copies);
    EXPECT_LE(seconds, 1.25 * copies);
  }
}

/// One A of 288 x 97 is copied once. An H100 takes 57 ms for x and 33 for its check.
TEST(SolveWork, WeightsOfEachRightSideAreCopiedAndNotTheMatrix) {
  const Problem p{262144, 288, 97, ElementType::float32, Mode::r};
  const double copies = 4.0 * (288 + 288 + 97) * 262144 / tuning::copied_bytes_per_second;
  Work work(p, 1);
  const double own = device_work(work, measured_gpu()).run_seconds;
  work.shares_a = true;
  const double seconds = device_work(work, measured_gpu()).run_seconds;
  EXPECT_GE(seconds, copies);
  EXPECT_LE(seconds, copies + 0.12);
  EXPECT_GT(own, 10 * seconds);
}

/// The rank of a wide A is told by R of its columns with a scale, x is had by R of A'.
TEST(SolveWork, CountsBothROfWideSystems) {
  const Problem of_r{500, 288, 97, ElementType::float64, Mode::r};
  const Variant* const variant = least_costly(of_r, opencl_variants(), slow_gpu().limits);
  Work work(of_r, 1);
  const double tall = device_work(work, slow_gpu()).run_seconds;
  work.is_wide = true;
  const double wide = device_work(work, slow_gpu()).run_seconds;
  const double of_one_r = variant->seconds(of_r, slow_gpu().limits) * tuning::measured_units;
  EXPECT_NEAR(wide - tall, of_one_r, 1e-3 * of_one_r);
}

TEST(Rates, AreOfOneDevice) {
  DeviceInfo device = measured_gpu();
  const Problem p{1, 64, 64};
  EXPECT_TRUE(device_work(p, device).is_measured);
  device.name = "NVIDIA GeForce RTX 4090";
  EXPECT_FALSE(device_work(p, device).is_measured);
}

/// As CostTable::view() needs them, which looks at nothing.
TEST(Rates, AreValidAndSorted) {
  for (const CostTable* table :
       {&cpu_costs(), &cpu_runs(), &h100_rates(), &h200_runs(), &cpu_device_rates()}) {
    const std::string text = table->text();
    EXPECT_TRUE(CostTable::from_text(text, "a table").text() == text) << table->device();
    EXPECT_EQ(table->digest().size(), 16U) << table->device();
  }
}

TEST(Rates, NameVariantsAndBodiesOfTheLists) {
  std::set<std::string, std::less<>> names;
  for (const Variant& variant : opencl_variants()) names.emplace(variant.name);
  for (const SystemBody& body : normal_bodies()) names.insert(name_in_costs(body));
  for (const CostTable* table : {&h100_rates(), &cpu_device_rates()}) {
    std::istringstream lines(table->text());
    std::string line;
    std::getline(lines, line);
    std::getline(lines, line);
    while (std::getline(lines, line)) {
      const std::string name =
          line.substr(line[0] == '=' ? 1 : 0, line.find(',') - (line[0] == '='));
      ASSERT_TRUE(names.contains(name)) << line;
    }
  }
}

}  // namespace
}  // namespace qrtool::rates_test
