// SPDX-License-Identifier: Apache-2.0
// second_try_test.cpp: what the first try of a device spoils comes out right, for every variant
// that a second try may use there, and on the CPU where the device has no other way.
#include "core/factor/second_try.hpp"

#include "core/error.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/second_try_cases.hpp"

namespace qrtool::test::second_try_test {
namespace {

// Where it can be, shapes that variants_test.cpp has every day, as PoCL builds kernels for each.
const std::vector<SecondTryCase> cases{
    {70, 17, Mode::reduced, Sign::positive, "opencl/gram"},
    {70, 17, Mode::r, Sign::positive, "opencl/gram"},
    {9, 14},
    {9, 14, Mode::complete, Sign::lapack},
    {70, 17, Mode::raw},
    {33, 33, Mode::reduced, Sign::positive, "opencl/small"},
    {2000, 17, Mode::reduced, Sign::lapack, "opencl/tall"},
    {70, 17, Mode::reduced, Sign::positive, "opencl/large"},
    {33, 33, Mode::reduced, Sign::positive, "opencl/large", Arithmetic::mixed},
    // No other variant takes these: two panels every day, and wide ones where all shapes are taken.
    {1030, 33, Mode::raw, Sign::positive, "opencl/large"},
    {1030, 136, Mode::reduced, Sign::positive, "opencl/large"},
};

class SecondTryOnDevice : public testing::TestWithParam<SecondTryCase> {};

TEST_P(SecondTryOnDevice, MendsWhatTheDeviceSpoils) {
  SKIP_WITHOUT_OPENCL();
  // PoCL takes most of a minute for the wide panels.
  if (GetParam().n > 100 && !takes_all()) GTEST_SKIP() << "one of the long tests takes it";
  expect_second_try<float>(backend(), GetParam());
  // PoCL builds the kernels of each type, so that float64 has one shape every day.
  const bool is_everyday = GetParam().m == 9 && GetParam().mode == Mode::reduced;
  if (GetParam().m < 100 && GetParam().variant.empty() && (is_everyday || takes_all()))
    expect_second_try<double>(backend(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Opencl, SecondTryOnDevice, testing::ValuesIn(cases));

TEST(SecondTry, KeepsTheFirstOfTheDeviceWhereItIsBetter) {
  SKIP_WITHOUT_VARIANT("opencl/gram");
  expect_first_where_it_is_better<float>(backend(),
                                         {70, 17, Mode::reduced, Sign::positive, "opencl/gram"});
}

/// A device that has no memory left for anything but the first try.
class NoMemoryForMore final : public Backend {
 public:
  std::string name() const override { return backend().name(); }
  std::string device() const override { return backend().device(); }
  std::span<const Variant> variants() const override { return backend().variants(); }
  Limits limits() const override { return backend().limits(); }
  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override {
    if (plan.problem.arithmetic == Arithmetic::strict) throw LimitError("the device is full");
    return backend().factor_any(plan, any);
  }
};

TEST(SecondTry, GoesToTheCpuWhereTheDeviceIsFull) {
  SKIP_WITHOUT_VARIANT("opencl/gram");
  NoMemoryForMore device;
  expect_second_try<float>(device, {70, 17, Mode::reduced, Sign::positive, "opencl/gram"});
}

}  // namespace
}  // namespace qrtool::test::second_try_test
