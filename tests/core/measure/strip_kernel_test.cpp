// SPDX-License-Identifier: Apache-2.0
// strip_kernel_test.cpp: the products of every instruction set agree with plain loops.
#include "core/measure/strip_kernel.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <tuple>
#include <vector>

#include "core/batch.hpp"
#include "core/matrix/complex.hpp"
#include "core/matrix/matrices.hpp"

namespace qrtool::strip_kernel_test {
namespace {

using strips::width;

/// Makes a batch with Gaussian entries where mask(i, j), and zeros elsewhere.
template <class T, class Mask>
Batch<T> make(index_t m, index_t n, Mask mask) {
  Batch<T> batch(1, m, n);
  fill_matrix<T>({"gauss"}, 0, batch.view()[0]);
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < n; ++j)
      if (!mask(i, j)) batch.view()[0](i, j) = 0;
  return batch;
}

/// A matrix in strips. Numbers that no caller may read are NaN.
struct Packed {
  index_t strip_size;
  HostMemory memory;
  double* data;
  double squares = 0;

  template <class T>
  Packed(const strips::Kernels& kernels, MatrixView<const T> from, double half = 1, double rest = 1)
      : strip_size((from.rows + 9) * width),
        memory(allocate_host(static_cast<std::size_t>(strip_size * (from.cols / width + 1)) * 8)),
        data(reinterpret_cast<double*>(memory.get())) {
    std::fill_n(data, strip_size * (from.cols / width + 1),
                std::numeric_limits<double>::quiet_NaN());
    const strips::Rows<T> rows{.from = from.data,
                               .ld = from.ld,
                               .rows = from.rows,
                               .columns = from.cols,
                               .half = half,
                               .rest = rest,
                               .to = data,
                               .strip_size = strip_size};
    if constexpr (sizeof(T) == 4) {
      squares = kernels.pack_single(rows);
    } else {
      squares = kernels.pack_double(rows);
    }
  }
  double at(index_t i, index_t j) const {
    return data[j / width * strip_size + i * width + j % width];
  }
};

const auto everywhere = [](index_t, index_t) { return true; };

template <class T>
void expect_packed(const strips::Kernels& kernels) {
  for (const auto& [m, n] :
       {std::pair<index_t, index_t>{1, 1}, {5, 8}, {9, 31}, {3, 45}, {8, 64}}) {
    const auto a = make<T>(m, n, everywhere);
    const MatrixView<T> view = a.view()[0];
    const Packed packed(kernels, MatrixView<const T>(view), 0.5, 0.25);
    double squares = 0;
    for (index_t i = 0; i < (m + 7) / 8 * 8; ++i) {
      for (index_t j = 0; j < (n + 7) / 8 * 8; ++j) {
        const double expected = i < m && j < n ? 0.125 * static_cast<double>(view(i, j)) : 0;
        EXPECT_EQ(packed.at(i, j), expected) << kernels.target << " " << m << "x" << n;
        squares += expected * expected;
      }
    }
    EXPECT_NEAR(packed.squares, squares, 1e-13 * squares) << kernels.target;
  }
}

TEST(StripKernelTest, PackingScalesAndPads) {
  for (const strips::Kernels* kernels : strips::kernels()) {
    expect_packed<float>(*kernels);
    expect_packed<double>(*kernels);
  }
}

/// Compares the products of all columns of one strip with those of another.
void expect_gram(const strips::Kernels& kernels, const Packed& x, MatrixView<const double> view,
                 index_t run, bool on_diagonal, bool is_one_tile) {
  const index_t t = on_diagonal ? 0 : 1, columns = on_diagonal ? 32 : view.cols - width;
  alignas(64) double sum[width * width] = {}, lost[width * width] = {};
  kernels.add_gram({.v = x.data,
                    .c = x.data + t * x.strip_size,
                    .rows = view.rows,
                    .v_columns = width,
                    .c_columns = columns,
                    .run = run,
                    .on_diagonal = on_diagonal,
                    .sum = sum,
                    .lost = is_one_tile ? nullptr : lost});
  for (index_t p = 0; p < width; ++p) {
    for (index_t q = on_diagonal ? p : 0; q < columns; ++q) {
      double expected = 0;
      for (index_t i = 0; i < view.rows; ++i) expected += view(i, p) * view(i, t * width + q);
      EXPECT_NEAR(sum[p * width + q], expected, 1e-11)
          << kernels.target << " run " << run << " rows " << view.rows << " " << p << " " << q;
    }
  }
}

TEST(StripKernelTest, GramIsXTransposedX) {
  for (const strips::Kernels* kernels : strips::kernels()) {
    for (const index_t rows : {1, 13, 64, 300}) {
      const auto batch = make<double>(rows, 45, everywhere);
      const MatrixView<const double> view = batch.view()[0];
      const Packed x(*kernels, view);
      for (const index_t run : {4, 8, 16, 32}) {
        for (const bool on_diagonal : {false, true}) {
          expect_gram(*kernels, x, view, run, on_diagonal, false);
          if (rows <= strips::tile_rows) expect_gram(*kernels, x, view, run, on_diagonal, true);
        }
      }
    }
  }
}

TEST(StripKernelTest, ResidualIsThatOfAMinusQR) {
  for (const strips::Kernels* kernels : strips::kernels()) {
    for (const auto& [m, n] :
         {std::pair<index_t, index_t>{1, 1}, {20, 37}, {70, 70}, {128, 40}, {9, 100}}) {
      for (const bool is_upper : {false, true}) {
        const index_t k = std::min(m, n);
        const auto a = make<double>(m, n, everywhere), q = make<double>(m, k, everywhere);
        const auto r =
            make<double>(k, n, [&](index_t i, index_t j) { return i <= j || !is_upper; });
        double expected = 0;
        for (index_t i = 0; i < m; ++i) {
          for (index_t j = 0; j < n; ++j) {
            double e = a.view()[0](i, j);
            for (index_t p = 0; p < k; ++p) e -= q.view()[0](i, p) * r.view()[0](p, j);
            expected += e * e;
          }
        }
        for (const index_t run : {8, 32}) {
          const Packed a_strips(*kernels, MatrixView<const double>(a.view()[0]));
          const Packed q_strips(*kernels, MatrixView<const double>(q.view()[0]));
          const Packed r_strips(*kernels, MatrixView<const double>(r.view()[0]));
          double squares = 0;
          for (index_t column = 0; column < n; column += width) {
            const index_t strip = column / width;
            squares += kernels->residual_squares({.q = q_strips.data,
                                                  .q_strip_size = q_strips.strip_size,
                                                  .r = r_strips.data + strip * r_strips.strip_size,
                                                  .r_strip_size = r_strips.strip_size,
                                                  .a = a_strips.data + strip * a_strips.strip_size,
                                                  .a_strip_size = a_strips.strip_size,
                                                  .rows = (m + 7) / 8 * 8,
                                                  .columns = std::min(width, n - column),
                                                  .inner = k,
                                                  .first_column = column,
                                                  .run = run,
                                                  .is_upper = is_upper});
          }
          EXPECT_NEAR(squares, expected, 1e-11 * expected)
              << kernels->target << " " << m << "x" << n << " " << run << " " << is_upper;
        }
      }
    }
  }
}

TEST(StripKernelTest, SquareIsCountedWithItsMirrorImage) {
  for (const strips::Kernels* kernels : strips::kernels()) {
    for (const index_t n : {1, 7, 20, 32}) {
      for (const bool on_diagonal : {false, true}) {
        const auto seen = [&](index_t i, index_t j) {
          return i < n && j < n && (!on_diagonal || i <= j);
        };
        auto x = make<double>(width, width, seen);
        const auto y = make<double>(
            width, width, [&](index_t i, index_t j) { return seen(i, j) && (i + j) % 3 == 0; });
        double expected = 0;
        for (index_t i = 0; i < n; ++i) {
          for (index_t j = on_diagonal ? i : 0; j < n; ++j) {
            const double e = x.view()[0](i, j) - y.view()[0](i, j) - (on_diagonal && i == j);
            expected += (on_diagonal && i == j ? 1 : 2) * e * e;
          }
        }
        // The entries left of the diagonal are not defined.
        for (index_t i = 0; i < n && on_diagonal; ++i)
          std::fill_n(&x.view()[0](i, 0), i, std::numeric_limits<double>::quiet_NaN());
        EXPECT_NEAR(kernels->square_squares({.x = x.view().data,
                                             .y = y.view().data,
                                             .rows = n,
                                             .columns = n,
                                             .identity = on_diagonal ? 1.0 : 0.0,
                                             .on_diagonal = on_diagonal}),
                    expected, 1e-12 * expected)
            << kernels->target << " " << n;
      }
    }
  }
}

TEST(StripKernelTest, BelowTheDiagonalIsNothingElse) {
  for (const strips::Kernels* kernels : strips::kernels()) {
    for (const auto& [m, n] : {std::pair<index_t, index_t>{1, 1}, {9, 9}, {40, 70}, {70, 40}}) {
      const auto r = make<double>(m, n, [](index_t i, index_t j) { return i > j; });
      double expected = 0;
      for (index_t i = 0; i < m; ++i)
        for (index_t j = 0; j < std::min(i, n); ++j)
          expected += r.view()[0](i, j) * r.view()[0](i, j);
      for (index_t i = 0; i < m; ++i)
        for (index_t j = i; j < n; ++j) r.view()[0](i, j) = std::numeric_limits<double>::infinity();
      const Packed packed(*kernels, MatrixView<const double>(r.view()[0]));
      double sum = 0;
      for (index_t first = 0; first < m; first += 32) {
        sum += kernels->squares_below_diagonal({.r = packed.data,
                                                .strip_size = packed.strip_size,
                                                .columns = n,
                                                .first = first,
                                                .end = std::min(first + 32, m)});
      }
      EXPECT_NEAR(sum, expected, 1e-12 * expected) << kernels->target << " " << m << "x" << n;
    }
  }
}

TEST(StripKernelTest, ReflectorsAreAppliedFromTheLastToTheFirst) {
  for (const strips::Kernels* kernels : strips::kernels()) {
    for (const auto& [m, k, columns] : {std::tuple<index_t, index_t, index_t>{1, 1, 1},
                                        {9, 9, 9},
                                        {40, 37, 37},
                                        {70, 33, 70},
                                        {20, 3, 3}}) {
      const auto v = make<double>(m, k, everywhere);
      auto q = make<double>(m, columns, [](index_t, index_t) { return false; });
      for (index_t j = 0; j < columns; ++j) q.view()[0](j, j) = 1;
      const Packed v_strips(*kernels, MatrixView<const double>(v.view()[0]));
      const Packed q_strips(*kernels, MatrixView<const double>(q.view()[0]));
      std::vector<double> tau(static_cast<std::size_t>((k + 7) / 8 * 8));
      for (index_t j = k - 1; j >= 0; --j) {
        const auto entry = [&](index_t i) { return i == j ? 1 : v.view()[0](i, j); };
        double squares = 0;
        for (index_t i = j; i < m; ++i) squares += entry(i) * entry(i);
        tau[static_cast<std::size_t>(j)] = 2 / squares;
        for (index_t c = 0; c < columns; ++c) {
          double product = 0;
          for (index_t i = j; i < m; ++i) product += entry(i) * q.view()[0](i, c);
          for (index_t i = j; i < m; ++i) q.view()[0](i, c) -= 2 / squares * product * entry(i);
        }
      }
      kernels->apply_reflectors({.v = v_strips.data,
                                 .v_strip_size = v_strips.strip_size,
                                 .tau = tau.data(),
                                 .q = q_strips.data,
                                 .q_strip_size = q_strips.strip_size,
                                 .rows = (m + 7) / 8 * 8,
                                 .count = k,
                                 .columns = columns,
                                 .is_complex = false});
      for (index_t i = 0; i < m; ++i)
        for (index_t c = 0; c < columns; ++c)
          EXPECT_NEAR(q_strips.at(i, c), q.view()[0](i, c), 1e-13)
              << kernels->target << " " << m << "x" << k << " " << i << " " << c;
    }
  }
}

TEST(StripKernelTest, ComplexReflectorsAreAppliedAsRealOnes) {
  using C = std::complex<double>;
  for (const strips::Kernels* kernels : strips::kernels()) {
    for (const auto& [m, k, columns] : {std::tuple<index_t, index_t, index_t>{1, 1, 1},
                                        {9, 9, 9},
                                        {40, 37, 37},
                                        {70, 17, 50},
                                        {20, 3, 3}}) {
      const auto v = make<C>(m, k, everywhere);
      auto q = make<C>(m, columns, [](index_t, index_t) { return false; });
      for (index_t j = 0; j < columns; ++j) q.view()[0](j, j) = 1;
      // The strips of V have zeros up to 16 numbers.
      auto zeros = make<C>(m, (k + 7) / 8 * 8, [&](index_t, index_t j) { return j < k; });
      for (index_t i = 0; i < m; ++i)
        for (index_t j = 0; j < k; ++j) zeros.view()[0](i, j) = v.view()[0](i, j);
      const Packed v_strips(*kernels, MatrixView<const double>(interleaved(zeros.view()[0])));
      const Packed q_strips(*kernels, MatrixView<const double>(interleaved(q.view()[0])));
      std::vector<C> tau(static_cast<std::size_t>((k + 7) / 8 * 8));
      for (index_t j = k - 1; j >= 0; --j) {
        const auto entry = [&](index_t i) { return i == j ? C(1) : v.view()[0](i, j); };
        double squares = 0;
        for (index_t i = j; i < m; ++i) squares += std::norm(entry(i));
        const C t = tau[static_cast<std::size_t>(j)] =
            (1.0 + std::polar(1.0, static_cast<double>(j))) / squares;
        for (index_t c = 0; c < columns; ++c) {
          C product = 0;
          for (index_t i = j; i < m; ++i) product += std::conj(entry(i)) * q.view()[0](i, c);
          for (index_t i = j; i < m; ++i) q.view()[0](i, c) -= t * product * entry(i);
        }
      }
      kernels->apply_reflectors({.v = v_strips.data,
                                 .v_strip_size = v_strips.strip_size,
                                 .tau = reinterpret_cast<const double*>(tau.data()),
                                 .q = q_strips.data,
                                 .q_strip_size = q_strips.strip_size,
                                 .rows = (m + 7) / 8 * 8,
                                 .count = k,
                                 .columns = 2 * columns,
                                 .is_complex = true});
      for (index_t i = 0; i < m; ++i)
        for (index_t c = 0; c < 2 * columns; ++c)
          EXPECT_NEAR(q_strips.at(i, c), interleaved(q.view()[0])(i, c), 1e-13)
              << kernels->target << " " << m << "x" << k << " " << i << " " << c;
    }
  }
}

}  // namespace
}  // namespace qrtool::strip_kernel_test
