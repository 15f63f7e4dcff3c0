// SPDX-License-Identifier: Apache-2.0
// scan_kernel_test.cpp: the kernels of every instruction set find the largest number.
#include "core/measure/scan_kernel.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/batch.hpp"

namespace qrtool::scan_kernel_test {
namespace {

TEST(ScanKernelTest, LargestIsByMagnitude) {
  for (const scan::Kernels* kernels : scan::kernels()) {
    for (const index_t count : {0, 1, 7, 64, 67}) {
      std::vector<float> x(static_cast<std::size_t>(count), 0.5f);
      std::vector<double> y(x.begin(), x.end());
      EXPECT_EQ(kernels->largest_single(x.data(), count, 0), count > 0 ? 0x3f000000 : 0);
      EXPECT_EQ(kernels->largest_double(y.data(), count, 0x7ff0000000000000), 0x7ff0000000000000);
      if (count == 0) continue;
      x.back() = -7;
      y.back() = -std::numeric_limits<double>::quiet_NaN();
      EXPECT_EQ(kernels->largest_single(x.data(), count, 0), 0x40e00000) << kernels->target;
      EXPECT_GT(kernels->largest_double(y.data(), count, 0), 0x7ff0000000000000) << kernels->target;
    }
  }
}

}  // namespace
}  // namespace qrtool::scan_kernel_test
