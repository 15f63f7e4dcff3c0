// SPDX-License-Identifier: Apache-2.0
// rates_test.cpp: the estimated times on a GPU; no device is needed.
#include "gpu/rates.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "gpu/registry.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

Limits measured_gpu() {
  return {.host_bytes = std::size_t{8} << 30,
          .device_bytes = std::size_t{128} << 30,
          .max_allocation_bytes = std::size_t{32} << 30,
          .local_bytes = 48 << 10,
          .max_group = 1024,
          .compute_units = 132,
          .shuffle_lanes = 32,
          .is_cpu = false,
          .has_float64 = true,
          .fast_float64 = true,
          .float64_products = true,
          .has_nvidia_mma = true};
}

double copy_seconds(const Problem& p) {
  return static_cast<double>(p.count) * static_cast<double>(p.input_bytes() + p.output_bytes()) /
         tuning::copied_bytes_per_second;
}

Problem problem_of(const tuning::MeasuredTime& time, Mode mode) {
  return {time.count, time.m, time.n, time.type, mode};
}

/// A device without copies: its kernels are so slow that the copies do not count.
Limits slow_gpu() {
  Limits limits = measured_gpu();
  limits.compute_units = 1;
  return limits;
}

TEST(DeviceSeconds, IsTheMeasurementOfTheChosenVariant) {
  const auto one_unit = [](double ms) { return ms * 1e-3 * tuning::measured_units; };
  const Problem q{1, 5000, 5000, ElementType::float64},
      r{1, 5000, 5000, ElementType::float64, Mode::r};
  EXPECT_DOUBLE_EQ(device_seconds(q, slow_gpu()), one_unit(18.6));
  EXPECT_DOUBLE_EQ(device_seconds(r, slow_gpu()), one_unit(14.5));
  Problem many = q;
  many.count = 3;  // three times the nearest measurement
  EXPECT_DOUBLE_EQ(device_seconds(many, slow_gpu()), 3 * one_unit(18.6));
}

TEST(DeviceSeconds, IsAtLeastTheCopies) {
  const Problem p{15000, 64, 64, ElementType::float64};
  EXPECT_DOUBLE_EQ(device_seconds(p, measured_gpu()), copy_seconds(p));
}

TEST(DeviceSeconds, IsLongerWhereFloat64IsSlow) {
  Limits limits = slow_gpu();
  limits.float64_products = false;
  const Problem p{2000, 256, 128, ElementType::float64};
  const double fast = device_seconds(p, limits);
  limits.fast_float64 = false;
  EXPECT_DOUBLE_EQ(device_seconds(p, limits), tuning::slow_float64 * fast);
}

TEST(DeviceSeconds, IsFiniteForEveryShape) {
  for (const index_t m : {1, 7, 64, 300, 5000, 2000000}) {
    for (const index_t n : {1, 7, 64, 300, 5000}) {
      for (const ElementType type : {ElementType::float32, ElementType::float64}) {
        const Problem p{3, m, n, type};
        EXPECT_GT(device_seconds(p, measured_gpu()), 0) << m << 'x' << n;
        EXPECT_TRUE(std::isfinite(device_seconds(p, measured_gpu()))) << m << 'x' << n;
      }
    }
  }
  EXPECT_EQ(device_seconds({0, 5, 5}, measured_gpu()), 0);
}

TEST(MeasuredTimes, NameVariantsThatTakeTheShape) {
  for (const tuning::MeasuredTime& time : tuning::measured_times) {
    const auto named = [&](const Variant& variant) { return variant.name == time.variant; };
    const auto variant = std::ranges::find_if(opencl_variants(), named);
    ASSERT_NE(variant, opencl_variants().end()) << time.variant;
    EXPECT_TRUE(variant->fits(problem_of(time, Mode::reduced), measured_gpu()).ok) << time.variant;
    EXPECT_LE(time.r_ms, time.q_ms) << time.variant << ' ' << time.m << 'x' << time.n;
  }
}

}  // namespace
}  // namespace qrtool
