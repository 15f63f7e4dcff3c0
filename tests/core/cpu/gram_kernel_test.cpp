// SPDX-License-Identifier: Apache-2.0
// gram_kernel_test.cpp: the products of every instruction set agree with plain loops.
#include "core/cpu/tall/gram_kernel.hpp"

#include <gtest/gtest.h>

#include "core/batch.hpp"
#include "core/matrix/matrices.hpp"

namespace qrtool::gram_kernel_test {
namespace {

constexpr index_t rows = 24, columns = 40;

/// Makes a batch with Gaussian entries where mask(i, j), and zeros elsewhere.
template <class Mask>
Batch<double> make(index_t m, index_t n, Mask mask) {
  Batch<double> batch(1, m, n);
  fill_matrix<double>({"gauss"}, 0, batch.view()[0]);
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j)
      if (!mask(i, j)) batch.view()[0](i, j) = 0;
  return batch;
}

TEST(GramKernelTest, GramIsXTransposedX) {
  for (const gram::Kernels* kernels : gram::kernels()) {
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

TEST(GramKernelTest, NarrowGramIsXTransposedX) {
  constexpr index_t m = 70, n = 32;  // two runs of rows and a part of one
  const Batch<float> x(1, m, n);
  fill_matrix<float>({"gauss"}, 0, x.view()[0]);
  x.view()[0](69, 31) = -7;
  for (const gram::Kernels* kernels : gram::kernels()) {
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

}  // namespace
}  // namespace qrtool::gram_kernel_test
