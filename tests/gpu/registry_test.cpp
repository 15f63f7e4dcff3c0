// SPDX-License-Identifier: Apache-2.0
// registry_test.cpp: the properties of the variants that the plan uses; no device is needed.
#include "gpu/registry.hpp"

#include <gtest/gtest.h>

#include <set>

#include "core/error.hpp"
#include "core/plan/plan.hpp"
#include "gpu/composed/leading/leading.hpp"
#include "gpu/gram/gram.hpp"
#include "gpu/products/product.hpp"
#include "gpu/reflectors/large/large.hpp"

namespace qrtool::registry_test {
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

TEST(Registry, AGpuWithSlowFloat64TakesNoVariantThatMultipliesInIt) {
  Limits limits = gpu_limits();
  limits.has_float64 = true;
  ASSERT_FALSE(limits.float64_products);
  EXPECT_EQ(chosen(problem(4000, 32, Mode::raw), limits), "opencl/large");
  EXPECT_EQ(chosen(problem(200, 100, Mode::raw), limits), "opencl/small");
}

TEST(Registry, EmptyMatricesHaveAPlan) {
  // PoCL hides a division by zero of the whole process, which this program does not load.
  for (const Mode mode : {Mode::reduced, Mode::complete, Mode::r, Mode::raw})
    for (const auto& [m, n] : {std::pair{3, 0}, std::pair{0, 3}, std::pair{0, 0}})
      EXPECT_FALSE(chosen(problem(m, n, mode)).empty()) << m << " x " << n;
}

TEST(Registry, WideMatricesThatTheLeadingBlockTakes) {
  Limits units = gpu_limits();
  units.float64_products = true;
  const auto fits = [&](index_t m, index_t n, Mode mode) {
    return leading_variant().plan.fits(problem(m, n, mode), units).ok;
  };
  EXPECT_TRUE(fits(16, 17, Mode::complete));
  EXPECT_TRUE(fits(2, 9, Mode::reduced));
  EXPECT_FALSE(fits(17, 17, Mode::reduced));
  EXPECT_FALSE(fits(16, 17, Mode::raw));
  EXPECT_FALSE(fits(513, 1000, Mode::reduced));
}

TEST(Registry, GramTakesSumsOfFloat64OfAtMost4096Rows) {
  Limits units = gpu_limits();
  units.float64_products = true;
  Problem p{.count = 100, .m = 81, .n = 81, .type = ElementType::float64};
  EXPECT_FALSE(gram_variant().plan.fits(p, units).ok);
  p.n = 33;
  p.m = 4096;
  EXPECT_TRUE(gram_variant().plan.fits(p, units).ok);
  p.m = 4097;  // sums of so many rows may err by more than the bar
  EXPECT_FALSE(gram_variant().plan.fits(p, units).ok);
}

/// The long sums of the other bodies would bring Q of rows that are alike above a low bar.
TEST(Registry, LargeMultipliesShortMatricesByFma) {
  Limits units = gpu_limits();
  units.float64_products = true;
  const auto body = [&](index_t m, ElementType type) {
    const Problem p{.count = 1, .m = m, .n = 130, .type = type};
    return static_cast<ProductBody>(large_variant().plan.tune(p, units).at("PRODUCT_BODY"));
  };
  EXPECT_EQ(body(200, ElementType::float64), ProductBody::fma);
  EXPECT_EQ(body(256, ElementType::float64), ProductBody::fma);
  EXPECT_EQ(body(257, ElementType::float64), ProductBody::doubles);
  EXPECT_EQ(body(200, ElementType::float32), ProductBody::fma);
  EXPECT_EQ(body(257, ElementType::float32), ProductBody::floats);
}

TEST(Registry, ReflectorsWhereNothingElseGivesWhatIsAskedFor) {
  Limits units = gpu_limits();
  units.float64_products = true;
  Problem lapack = problem(64, 64);
  lapack.sign = Sign::lapack;
  EXPECT_EQ(chosen(lapack, units), "opencl/small");
  EXPECT_EQ(chosen(problem(64, 64, Mode::raw), units), "opencl/small");
  EXPECT_EQ(chosen(problem(64, 64)), "opencl/small") << "no fast products of float64";
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

Limits without_float64() {
  Limits limits = gpu_limits();
  limits.has_float64 = false;
  return limits;
}

TEST(Registry, DeviceWithoutFloat64TakesEveryShapeOfFloat32) {
  const Limits with = gpu_limits(), without = without_float64();
  for (const index_t m : {1, 2, 8, 15, 16, 31, 32, 64, 100, 300, 512, 1024, 2048, 100000, 1000000})
    for (const index_t n : {1, 3, 8, 15, 16, 32, 33, 64, 128, 129, 300, 1000, 2048, 5000})
      for (const Mode mode : {Mode::reduced, Mode::complete, Mode::r, Mode::raw})
        for (const Sign sign : {Sign::positive, Sign::lapack}) {
          Problem p = problem(m, n, mode);
          p.sign = sign;
          const bool is_taken = least_costly(p, opencl_variants(), with) != nullptr;
          EXPECT_EQ(least_costly(p, opencl_variants(), without) != nullptr, is_taken)
              << m << 'x' << n << ' ' << name_of(mode) << ' ' << name_of(sign);
        }
  EXPECT_EQ(chosen(problem(64, 64, Mode::r), without), "opencl/small");
  EXPECT_EQ(chosen(problem(2048, 2048), without), "opencl/large");
  EXPECT_EQ(chosen(problem(1000000, 32), without), "opencl/tall");
  EXPECT_EQ(chosen(problem(16, 4000), without), "opencl/leading");
}

TEST(Registry, DeviceWithoutFloat64TakesNoOtherType) {
  for (const Variant& variant : opencl_variants())
    for (const ElementType type :
         {ElementType::float64, ElementType::complex64, ElementType::complex128}) {
      Problem p = problem(64, 64);
      p.type = type;
      EXPECT_FALSE(variant.takes(p, without_float64()).ok) << variant.name;
    }
}

TEST(Registry, PlanOfADeviceWithoutFloat64ComputesInFloat32) {
  for (const auto& [m, n] : {std::pair{8, 8}, std::pair{3, 40}, std::pair{20000, 4}}) {
    EXPECT_EQ(make_plan(problem(m, n), opencl_variants(), gpu_limits()).arithmetic(), "float64");
    EXPECT_EQ(make_plan(problem(m, n), opencl_variants(), without_float64()).arithmetic(),
              "float32");
  }
  const Plan large =
      make_plan(problem(20, 20), opencl_variants(), without_float64(), "opencl/large");
  EXPECT_EQ(large.arithmetic(), "float32");
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
}  // namespace qrtool::registry_test
