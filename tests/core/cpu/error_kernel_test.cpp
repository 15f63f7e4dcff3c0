// SPDX-License-Identifier: Apache-2.0
// error_kernel_test.cpp: the products of every instruction set agree with plain loops.
#include "core/cpu/check/error_kernel.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "core/batch.hpp"
#include "core/matrices.hpp"

namespace qrtool {
namespace {

constexpr index_t rows = 24, columns = 40;

/// Gaussian entries where mask(i, j), zeros elsewhere.
template <class Mask>
Batch<double> make(index_t m, index_t n, Mask mask) {
  Batch<double> batch(1, m, n);
  fill_matrix<double>({"gauss"}, 0, batch.view()[0]);
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j)
      if (!mask(i, j)) batch.view()[0](i, j) = 0;
  return batch;
}

TEST(ErrorKernelTest, GramIsXTransposedX) {
  for (const errors::Kernels* kernels : errors::kernels()) {
    for (const index_t first : {0, 11}) {
      const auto x = make(rows, columns, [&](index_t, index_t j) { return j >= first && j < 37; });
      const auto nothing = [](index_t, index_t) { return false; };
      const auto sum = make(columns, columns, nothing), rest = make(columns, columns, nothing);
      const MatrixView<double> view = x.view()[0];
      for (const index_t i : {0, 16}) {
        kernels->add_gram(&view(i, 0), i == 0 ? 16 : 8, columns, first,
                          {sum.view().data, rest.view().data});
      }
      for (index_t p = 0; p < columns; ++p) {
        for (index_t q = p; q < columns; ++q) {
          double expected = 0;
          for (index_t i = 0; i < rows; ++i) expected += view(i, p) * view(i, q);
          EXPECT_NEAR(sum.view()[0](p, q), expected, 1e-13) << kernels->target << " " << p << q;
        }
      }
    }
  }
}

TEST(ErrorKernelTest, NarrowGramIsXTransposedX) {
  constexpr index_t m = 70, n = 32;  // two runs of rows and a part of one
  const Batch<float> x(1, m, n);
  fill_matrix<float>({"gauss"}, 0, x.view()[0]);
  x.view()[0](69, 31) = -7;
  for (const errors::Kernels* kernels : errors::kernels()) {
    const auto sums = make(n, n, [](index_t, index_t) { return false; });
    const MatrixView<float> view = x.view()[0];
    const std::uint32_t largest =
        kernels->add_narrow_gram(view.data, m, n, sums.view().data, 0x3f800000u);
    EXPECT_EQ(largest, 0x40e00000u) << kernels->target;
    for (index_t p = 0; p < n; ++p) {
      for (index_t q = p; q < n; ++q) {
        double expected = 0;
        for (index_t i = 0; i < m; ++i) expected += static_cast<double>(view(i, p)) * view(i, q);
        EXPECT_NEAR(sums.view()[0](p, q), expected, 1e-4) << kernels->target << " " << p << q;
      }
    }
  }
}

TEST(ErrorKernelTest, LargestIsByMagnitude) {
  for (const errors::Kernels* kernels : errors::kernels()) {
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
}  // namespace qrtool
