// SPDX-License-Identifier: Apache-2.0
// registry_test.cpp: the properties of the variants that the plan uses; no device is needed.
#include "gpu/registry.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"
#include "core/plan.hpp"

namespace qrtool {
namespace {

Limits gpu_limits() {
  Limits limits;
  limits.host_bytes = std::size_t{8} << 30;
  limits.device_bytes = std::size_t{64} << 30;
  limits.max_allocation_bytes = std::size_t{16} << 30;
  limits.local_bytes = 48 << 10;
  limits.max_group = 1024;
  limits.compute_units = 100;
  limits.shuffle_lanes = 32;
  limits.is_cpu = false;
  return limits;
}

Problem problem(index_t m, index_t n, Mode mode = Mode::reduced) {
  return {100, m, n, ElementType::float32, mode, Sign::positive};
}

std::string chosen(const Problem& p, const Limits& limits = gpu_limits()) {
  return std::string(make_plan(p, opencl_variants(), limits).variant->name);
}

TEST(Registry, NamesAreDistinctAndLeadBack) {
  std::set<std::string_view> names;
  for (const Variant& variant : opencl_variants()) {
    EXPECT_TRUE(variant.name.starts_with("opencl/"));
    EXPECT_TRUE(names.insert(variant.name).second) << variant.name;
    EXPECT_EQ(gpu_variant(variant).plan.name, variant.name);
  }
  const Variant copy = opencl_variants().front();
  EXPECT_THROW(gpu_variant(copy), InternalError);  // it is not a member of the list
}

TEST(Registry, NoVariantTakesMoreColumnsThanItsKernelsCount) {
  for (const Variant& variant : opencl_variants()) {
    for (const Mode mode : {Mode::reduced, Mode::r, Mode::raw}) {
      EXPECT_FALSE(variant.fits(problem(32, index_t{1} << 26, mode), gpu_limits()).ok)
          << variant.name;
    }
  }
  const Variant& large = opencl_variants()[opencl_variants().size() - 2];
  EXPECT_TRUE(large.fits(problem(32, (index_t{1} << 26) - 1), gpu_limits()).ok) << large.name;
}

TEST(Registry, PlanChoosesByShape) {
  EXPECT_EQ(chosen(problem(64, 64)), "opencl/small");
  EXPECT_EQ(chosen(problem(512, 64)), "opencl/small");
  EXPECT_EQ(chosen(problem(7, 7)), "opencl/tiny");
  EXPECT_EQ(chosen(problem(6, 10)), "opencl/tiny");
  EXPECT_EQ(chosen(problem(8, 8)), "opencl/small");
  EXPECT_EQ(chosen(problem(512, 128)), "opencl/blocked");
  EXPECT_EQ(chosen(problem(1024, 8)), "opencl/tall");
  EXPECT_EQ(chosen(problem(1025, 8)), "opencl/tall");
  EXPECT_EQ(chosen(problem(1025, 128, Mode::r)), "opencl/tall");
  EXPECT_EQ(chosen(problem(1025, 8, Mode::raw)), "opencl/large");
  EXPECT_EQ(chosen(problem(1025, 129)), "opencl/large");
  EXPECT_EQ(chosen(problem(31, 200)), "opencl/large");
  EXPECT_EQ(chosen(problem(64, 129)), "opencl/blocked");
  EXPECT_EQ(chosen(problem(200, 64, Mode::complete)), "opencl/blocked");
  EXPECT_EQ(chosen(problem(200, 64)), "opencl/small");
}

TEST(Registry, WideMatricesByTheirLeadingBlockWhereFloat64ProductsAreFast) {
  Limits units = gpu_limits();
  const auto pays = [&](index_t m, index_t n) {
    return leading_variant().plan.pays(problem(m, n), units).ok;
  };
  EXPECT_FALSE(pays(64, 256));
  units.float64_products = true;
  EXPECT_TRUE(pays(64, 256));
  EXPECT_TRUE(pays(100, 130));
  EXPECT_TRUE(pays(16, 64));
  EXPECT_TRUE(pays(5, 100));
  EXPECT_TRUE(pays(60, 61));
  EXPECT_FALSE(pays(17, 40));
  EXPECT_FALSE(pays(8, 24));
  const auto fits = [&](index_t m, index_t n, Mode mode) {
    return leading_variant().plan.fits(problem(m, n, mode), units).ok;
  };
  EXPECT_TRUE(fits(16, 17, Mode::complete));
  EXPECT_TRUE(fits(2, 9, Mode::reduced));
  EXPECT_FALSE(fits(17, 17, Mode::reduced));
  EXPECT_FALSE(fits(16, 17, Mode::raw));
  EXPECT_FALSE(fits(513, 1000, Mode::reduced));
}

TEST(Registry, GramWhereFloat64ProductsAreFast) {
  EXPECT_FALSE(gram_variant().plan.pays(problem(64, 64), gpu_limits()).ok);
  Limits limits = gpu_limits();
  limits.float64_products = true;
  EXPECT_EQ(chosen(problem(64, 64), limits), "opencl/gram");
  EXPECT_EQ(chosen(problem(35, 33, Mode::r), limits), "opencl/gram");
  EXPECT_EQ(chosen(problem(33, 32), limits), "opencl/small");
  Problem many = problem(33, 32), tall_batch = problem(1000, 3), few = problem(1000, 90);
  many.count = 20000;
  EXPECT_EQ(chosen(many, limits), "opencl/gram");
  EXPECT_EQ(chosen(tall_batch, limits), "opencl/tall");
  tall_batch.count = 200;
  EXPECT_EQ(chosen(tall_batch, limits), "opencl/gram");
  EXPECT_EQ(chosen(few, limits), "opencl/gram_tiles");
  for (const index_t n : {97, 128, 256, 512}) {
    EXPECT_EQ(chosen(problem(512, n), limits), "opencl/gram_tiles") << n;
  }
  EXPECT_EQ(chosen(problem(3000, 2048), limits), "opencl/gram_tiles");
  EXPECT_EQ(chosen(problem(6000, 5121), limits), "opencl/large");
  Problem wide = problem(5000, 5000);
  wide.count = 2;
  EXPECT_EQ(chosen(wide, limits), "opencl/gram_tiles");
  wide.count = 3;
  EXPECT_EQ(chosen(wide, limits), "opencl/large");
  EXPECT_EQ(chosen(problem(130, 80), limits), "opencl/gram");
  EXPECT_EQ(chosen(problem(130, 81), limits), "opencl/small");
  EXPECT_EQ(chosen(problem(162, 81), limits), "opencl/gram_tiles");
  for (const index_t m : {96, 130, 512, 768}) {
    Problem crowd = problem(m, 96);
    crowd.count = 400;
    EXPECT_EQ(chosen(crowd, limits), "opencl/gram") << m;
  }
  EXPECT_EQ(chosen(problem(513, 96), limits), "opencl/gram_tiles");
  tall_batch = problem(769, 81);
  tall_batch.count = 400;
  EXPECT_EQ(chosen(tall_batch, limits), "opencl/gram_tiles");
  EXPECT_EQ(chosen(problem(100000, 100), limits), "opencl/tall");
  EXPECT_EQ(chosen(problem(100000, 129), limits), "opencl/gram_tiles");
  EXPECT_EQ(chosen(problem(16, 16), limits), "opencl/small");
  EXPECT_EQ(chosen(problem(32, 33), limits), "opencl/small");
  EXPECT_EQ(chosen(problem(64, 64, Mode::raw), limits), "opencl/small");
  EXPECT_EQ(chosen(problem(64, 48, Mode::complete), limits), "opencl/small");
  EXPECT_EQ(chosen(problem(64, 64, Mode::complete), limits), "opencl/gram");
  Problem lapack = problem(64, 64), wide_type = problem(64, 64);
  lapack.sign = Sign::lapack;
  wide_type.type = ElementType::float64;
  EXPECT_EQ(chosen(lapack, limits), "opencl/small");
  EXPECT_EQ(chosen(wide_type, limits), "opencl/gram");
  wide_type.n = 78;
  for (const index_t m : {78, 500}) {
    wide_type.m = m;
    EXPECT_EQ(chosen(wide_type, limits), "opencl/gram_group") << m;
  }
  wide_type.count = 59;
  EXPECT_NE(chosen(wide_type, limits), "opencl/gram_group");
  wide_type.m = wide_type.n = 81;
  EXPECT_FALSE(gram_variant().plan.fits(wide_type, limits).ok);
  wide_type.n = 33;
  wide_type.m = 4096;
  EXPECT_TRUE(gram_variant().plan.fits(wide_type, limits).ok);
  wide_type.m = 4097;  // sums of so many rows may err by more than the bar
  EXPECT_FALSE(gram_variant().plan.fits(wide_type, limits).ok);
}

TEST(Registry, TextbookRunsOnlyWhenForced) {
  const std::span<const Variant> variants = opencl_variants();
  const Plan forced = make_plan(problem(8, 8), variants, gpu_limits(), "opencl/textbook");
  EXPECT_EQ(forced.variant->name, "opencl/textbook");
  EXPECT_THROW(make_plan(problem(8, 7), variants, gpu_limits(), "opencl/textbook"), UsageError);
  EXPECT_THROW(make_plan(problem(65, 65), variants, gpu_limits(), "opencl/textbook"), UsageError);
  EXPECT_THROW(make_plan(problem(8, 8, Mode::raw), variants, gpu_limits(), "opencl/textbook"),
               UsageError);
}

/// Nor a float32 matrix with few rows, which is computed in float64, nor one that is too large for
/// the CPU to check.
TEST(Registry, DeviceWithoutFloat64TakesWhatNeedsNone) {
  Limits limits = gpu_limits();
  limits.has_float64 = false;
  EXPECT_EQ(chosen(problem(16, 16), limits), "opencl/small");
  EXPECT_EQ(chosen(problem(64, 64, Mode::r), limits), "opencl/small");
  EXPECT_EQ(chosen(problem(300, 200), limits), "opencl/blocked");
  EXPECT_EQ(chosen(problem(1024, 20, Mode::raw), limits), "opencl/blocked");
  for (const Variant& variant : opencl_variants()) {
    Problem wide = problem(64, 64), huge = problem(1024, 4000);
    wide.type = ElementType::float64;
    EXPECT_FALSE(variant.fits(wide, limits).ok) << variant.name;
    EXPECT_FALSE(variant.fits(problem(8, 8), limits).ok) << variant.name;
    EXPECT_FALSE(variant.fits(huge, limits).ok) << variant.name;
    if (variant.fits(problem(64, 64), limits).ok) {
      EXPECT_EQ(gpu_variant(variant).computes_in(problem(64, 64)), ElementType::float32);
    }
  }
}

TEST(Registry, TilesHoldTheMatrixAndFitTheDevice) {
  const Limits limits = gpu_limits();
  for (const Variant& variant : opencl_variants()) {
    if (variant.name != "opencl/small") continue;
    for (const ElementType type : {ElementType::float32, ElementType::float64}) {
      for (index_t m = 1; m <= 512; m += m < 20 ? 1 : 31) {
        for (index_t n = 1; n <= 128; n += n < 20 ? 1 : 9) {
          Problem p = problem(m, n);
          p.type = type;
          if (!variant.fits(p, limits).ok) continue;
          const Params params = variant.tune(p, limits);
          const int lanes = params.at("LANES_ACROSS") * params.at("ROW_SPLITS");
          EXPECT_GE(params.at("LANE_ROWS") * params.at("ROW_SPLITS"), m);
          EXPECT_GE(params.at("LANE_COLUMNS") * params.at("LANES_ACROSS"), n);
          EXPECT_EQ(params.at("LANE_ROWS") % 4, 0);
          EXPECT_LE(lanes * params.at("MATRICES"), limits.max_group);
          EXPECT_EQ(lanes * params.at("MATRICES") % 32, 0) << m << "x" << n;
        }
      }
    }
  }
}

TEST(Registry, LargeMatricesTakeLittleBesideThemselves) {
  for (const Arithmetic arithmetic : {Arithmetic::any, Arithmetic::strict, Arithmetic::mixed}) {
    for (const index_t n : {2048, 3000, 3999, 4000, 5000, 16384}) {
      Problem p = problem(n, n, Mode::r);
      p.arithmetic = arithmetic;
      std::size_t bytes = 0;
      for (const std::size_t part : large_variant().workspace(p)) bytes += part;
      const double outputs = 2 * static_cast<double>(p.input_bytes());
      EXPECT_LE(static_cast<double>(bytes), 0.15 * outputs) << n;
    }
  }
}

TEST(Registry, BitsDoNotDependOnTheBatch) {
  for (const Variant& variant : opencl_variants()) {
    Problem one = problem(40, 40), many = one;
    one.count = 1;
    many.count = 100000;
    EXPECT_EQ(variant.tune(one, gpu_limits()), variant.tune(many, gpu_limits())) << variant.name;
  }
}

}  // namespace
}  // namespace qrtool
