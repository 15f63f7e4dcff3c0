// SPDX-License-Identifier: Apache-2.0
// constant_test.cpp: constant matrices. After the first reflector all columns are the same rounding
// errors; reflectors have to end them in a few steps, not leave them to dozens of others that are
// all but parallel, in whose T all digits cancel.
#include <algorithm>

#include "gpu/registry.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test {
namespace {

class ConstantMatrices : public testing::TestWithParam<std::string> {};

TEST_P(ConstantMatrices, TakeFewReflectors) {
  SKIP_WITHOUT_OPENCL();
  constexpr index_t count = 8, n = 96, most_reflectors = 8;
  const Problem p{count, n, n, ElementType::float32, Mode::raw, Sign::positive};
  Batch<float> a(count, n, n);
  for (index_t b = 0; b < count; ++b) {
    const float value = 0.5f + 0.49f * static_cast<float>(b) / count;
    std::fill_n(a.view()[b].data, n * n, value);
  }
  Result<float> result = factor<float>(backend(), plan_for(p, GetParam()), a.view());
  for (index_t b = 0; b < count; ++b) {
    EXPECT_EQ(result.report[static_cast<std::size_t>(b)].status, Status::ok) << b;
    const float* tau = result.tau.view()[b].data;
    EXPECT_LE(std::count_if(tau, tau + n, [](float x) { return x != 0; }), most_reflectors) << b;
  }
}

INSTANTIATE_TEST_SUITE_P(Opencl, ConstantMatrices,
                         testing::Values("opencl/small", "opencl/blocked"),
                         [](const testing::TestParamInfo<std::string>& test) {
                           return test.param.substr(test.param.find('/') + 1);
                         });

}  // namespace
}  // namespace qrtool::test
