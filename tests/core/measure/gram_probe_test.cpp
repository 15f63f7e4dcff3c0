// SPDX-License-Identifier: Apache-2.0
// gram_probe_test.cpp: the check of R in one pass says what ErrorMeter says, whatever the error is.
#include "core/measure/gram_probe.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/cpu/tall/tall_qr.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/measure/probe_kernel.hpp"

namespace qrtool::gram_probe_test {
namespace {

template <class T>
Batch<T> make(std::string_view kind, index_t m, index_t n, double factor = 1) {
  Batch<T> a(1, m, n);
  fill_matrix<T>({.kind = kind, .cond = 1e3}, 0, a.view()[0]);
  for (index_t i = 0; i < m * n; ++i) a.view().data[i] *= static_cast<Real<T>>(factor);
  return a;
}

template <class T>
Batch<T> factor(const Batch<T>& a) {
  const MatrixView<T> rows = a.view()[0];
  Batch<T> r(1, std::min(rows.rows, rows.cols), rows.cols);
  const Problem problem{.m = rows.rows, .n = rows.cols, .type = element_type<T>, .mode = Mode::r};
  TallQr<T>(problem, 1).factor(rows, {}, r.view()[0]);
  return r;
}

template <class T>
Errors probe(const Batch<T>& a, const Batch<T>& r, int threads = 1) {
  const MatrixView<T> rows = a.view()[0];
  GramProbe<T> probe(TallShape(rows.rows, rows.cols));
  probe.add(0, rows, threads);
  return probe.finish(r.view()[0], magnitude_of<T>(rows).scale());
}

/// Measures all of A'A - R'R.
template <class T>
Errors measure(const Batch<T>& a, const Batch<T>& r) {
  const MatrixView<T> rows = a.view()[0];
  ErrorMeter meter(rows.rows, rows.cols, 0, r.view().rows, 1, is_complex_number<T>);
  return meter.measure<T>(rows, MatrixView<const T>{}, r.view()[0], magnitude_of<T>(rows).scale());
}

template <class T>
void expect_passes(const Batch<T>& a, const Batch<T>& r) {
  const Errors found = probe(a, r);
  const Bars bars =
      standard_bars(a.view().rows, a.view().cols, precision_of(element_type<T>), found);
  EXPECT_EQ(judge(found, bars, false), Status::ok) << found.residual / bars.residual;
}

TEST(GramProbe, LeavesOfZerosBesideTinyNumbersAreZeros) {
  const index_t m = 4 * TallShape(1 << 16, 4).leaf_rows();
  Batch<double> a = make<double>("gauss", m, 4, 1e-200);
  const MatrixView<double> rows = a.view()[0];
  std::fill_n(rows.data, m / 2 * 4, 0.0);
  expect_passes(a, factor(a));
}

/// Damages R in every way: one entry, a column, a rank-one change, a lost row, a factor.
template <class T>
std::vector<Batch<T>> damaged(const Batch<T>& r, double size) {
  const index_t k = r.view().rows, n = r.view().cols;
  std::vector<Batch<T>> all;
  const auto add = [&](auto change) {
    Batch<T> copy(1, k, n);
    // A complex number is turned, so that both of its parts are wrong.
    T turn = 1;
    if constexpr (is_complex_number<T>) turn = T(Real<T>(0.6), Real<T>(0.8));
    for (index_t i = 0; i < k; ++i)
      for (index_t j = 0; j < n; ++j)
        copy.view()[0](i, j) =
            r.view()[0](i, j) + (i <= j ? turn * static_cast<Real<T>>(change(i, j)) : T(0));
    all.push_back(std::move(copy));
  };
  add([&](index_t i, index_t j) { return i == 0 && j == n - 1 ? size : 0; });
  add([&](index_t, index_t j) { return j == n / 2 ? size : 0; });
  add([&](index_t i, index_t j) {
    return size * std::cos(3.0 * static_cast<double>(i)) * std::sin(7.0 * static_cast<double>(j));
  });
  add([&](index_t i, index_t j) {
    return i == k - 1 ? -static_cast<double>(real_part(r.view()[0](i, j))) : 0;
  });
  add([&](index_t i, index_t j) {
    return 0.01 * static_cast<double>(real_part(r.view()[0](i, j)));
  });
  return all;
}

TEST(GramProbe, SmallErrorsPass) {
  for (const char* kind :
       {"gauss", "offset", "graded-rows", "rank-deficient", "constant", "zero"}) {
    for (const auto& [m, n] :
         {std::pair<index_t, index_t>{30000, 1}, {30001, 8}, {30002, 9}, {9003, 130}}) {
      SCOPED_TRACE(testing::Message() << kind << " " << m << "x" << n);
      const Batch<float> single = make<float>(kind, m, n);
      expect_passes(single, factor(single));
      const Batch<double> wide = make<double>(kind, m, n);
      expect_passes(wide, factor(wide));
      if (n > 9) continue;
      const auto complex = make<std::complex<float>>(kind, m, n);
      expect_passes(complex, factor(complex));
    }
  }
}

/// Integers, whose products and sums are exact, whatever the order.
template <class T>
std::vector<T> integers(index_t count, int period) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (index_t i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = static_cast<T>(i * i % period - period / 2);
  }
  return values;
}

/// s + A'(A X), and the sum of the squares of A.
double add_plainly(const std::vector<double>& a, index_t rows, index_t n,
                   const std::vector<double>& x, std::vector<double>& s) {
  const auto at = [](index_t i) { return static_cast<std::size_t>(i); };
  double squares = 0;
  for (index_t i = 0; i < rows; ++i) {
    for (index_t j = 0; j < n; ++j) {
      const double entry = a[at(i * n + j)];
      squares += entry * entry;
      for (index_t l = 0; l < n * probe::vectors; ++l) {
        const double product = entry * x[at(j * probe::vectors + l % probe::vectors)];
        s[at(l)] += a[at(i * n + l / probe::vectors)] * product;
      }
    }
  }
  return squares;
}

TEST(GramProbe, KernelsOfEveryInstructionSet) {
  for (const index_t rows : {1, 7, 8, 9, 31}) {
    for (const index_t n : {1, 3, 8, 13, 16, 33}) {
      const auto single = integers<float>(rows * n, 13);
      const auto a = integers<double>(rows * n, 13), x = integers<double>(n * probe::vectors, 7);
      const auto start = integers<double>(n * probe::vectors, 5);
      std::vector<double> wanted = start;
      std::vector<double> work(static_cast<std::size_t>(probe::most_rows * n));
      const double squares = add_plainly(a, rows, n, x, wanted);
      for (const probe::Kernels* kernels : probe::kernels()) {
        SCOPED_TRACE(testing::Message() << kernels->target << " " << rows << "x" << n);
        std::vector<double> s = start;
        EXPECT_EQ(kernels->add_single(single.data(), rows, n, x.data(), s.data(), work.data()),
                  squares);
        EXPECT_EQ(s, wanted);
        s = start;
        EXPECT_EQ(kernels->add_double(a.data(), rows, n, x.data(), s.data()), squares);
        EXPECT_EQ(s, wanted);
      }
    }
  }
}

TEST(GramProbe, GapsBetweenRowsChangeNothing) {
  const index_t m = 20000, n = 13, ld = n + 3;
  const auto expect_equal = [&](const auto& a) {
    using T = std::remove_cvref_t<decltype(a.view().data[0])>;
    Batch<T> wide(1, m, ld);
    std::fill_n(wide.view().data, m * ld, not_a_number<T>());
    for (index_t i = 0; i < m; ++i) std::copy_n(&a.view()[0](i, 0), n, &wide.view()[0](i, 0));
    const Batch<T> r = factor(a);
    const TallShape shape(m, n);
    GramProbe<T> probe_of_wide(shape);
    probe_of_wide.add(0, {wide.view().data, m, n, ld}, 2);
    const Errors found = probe_of_wide.finish(r.view()[0], magnitude_of<T>(a.view()[0]).scale());
    EXPECT_EQ(found.residual, probe(a, r).residual);
    EXPECT_EQ(found.norm, probe(a, r).norm);
  };
  expect_equal(make<float>("gauss", m, n));
  expect_equal(make<double>("gauss", m, n));
  expect_equal(make<std::complex<double>>("gauss", m, n));
}

/// A plain sum of a million equal terms would be further off than the bar.
TEST(GramProbe, ManyEqualTermsPass) {
  Batch<double> a(1, 1000000, 1), r(1, 1, 1);
  std::fill_n(a.view().data, 1000000, 0.1);
  r.view()[0](0, 0) = 0.1 * 1000;
  expect_passes(a, r);
}

template <class T>
void expect_exact(index_t n) {
  const Batch<T> a = make<T>("gauss", 20000, n), r = factor(a);
  for (const Batch<T>& bad : damaged(r, 0.01)) {
    const Errors found = probe(a, bad), wanted = measure(a, bad);
    EXPECT_NEAR(found.residual, wanted.residual, 1e-12 * wanted.residual + 1e-15) << n;
    EXPECT_NEAR(found.norm, wanted.norm, 1e-12 * wanted.norm);
    EXPECT_EQ(found.diagonal_ratio, wanted.diagonal_ratio);
  }
}

TEST(GramProbe, IsExactUpToEightColumnsOrFourComplexOnes) {
  for (const index_t n : {1, 3, 8}) expect_exact<double>(n);
  for (const index_t n : {1, 4}) expect_exact<std::complex<double>>(n);
}

template <class T>
void expect_near(index_t n) {
  const Batch<T> a = make<T>("gauss", 20000, n), r = factor(a);
  for (const Batch<T>& bad : damaged(r, 0.5)) {
    const double found = probe(a, bad).residual, wanted = measure(a, bad).residual;
    EXPECT_GT(found, wanted / 4) << n;
    EXPECT_LT(found, wanted * 4) << n;
  }
}

TEST(GramProbe, EstimatesWithinAFactorOfFour) {
  for (const index_t n : {9, 40, 150}) expect_near<float>(n);
  for (const index_t n : {5, 40}) expect_near<std::complex<float>>(n);
}

TEST(GramProbe, TheBitsDoNotDependOnWhoAddsWhichLeafWhen) {
  const index_t m = 50000, n = 20;
  const Batch<float> a = make<float>("gauss", m, n), r = factor(a);
  const Errors wanted = probe(a, r);
  EXPECT_EQ(probe(a, r, 3).residual, wanted.residual);
  const TallShape shape(m, n);
  GramProbe<float> backwards(shape), other(shape);
  for (index_t leaf = shape.leaves(); leaf-- > 0;) {
    GramProbe<float>& by = leaf % 2 == 0 ? backwards : other;
    const index_t first = leaf * shape.leaf_rows();
    by.add(leaf, a.view()[0].row_block(first, shape.rows_of_leaf(leaf)), 1);
    // As from another rank.
    if (leaf % 2 == 1) std::ranges::copy(other.sums(leaf, 1), backwards.sums(leaf, 1).begin());
  }
  const int scale = magnitude_of<float>(a.view()[0]).scale();
  EXPECT_EQ(backwards.finish(r.view()[0], scale).residual, wanted.residual);
}

TEST(GramProbe, NumbersOfEverySize) {
  for (const double size : {1e-300, 1e-160, 1e160, 1e300}) {
    const Batch<double> a = make<double>("gauss", 20000, 12, size), r = factor(a);
    expect_passes(a, r);
    for (const Batch<double>& bad : damaged(r, size))
      EXPECT_NEAR(probe(a, bad).residual / measure(a, bad).residual, 1, 0.75) << size;
  }
  Batch<double> mixed = make<double>("gauss", 60000, 3);
  for (index_t i = 0; i < 30000; ++i) mixed.view()[0](i, 1) *= 1e-200;
  expect_passes(mixed, factor(mixed));
}

TEST(GramProbe, WhatIsNoNumberFails) {
  const Batch<double> a = make<double>("gauss", 5000, 4), r = factor(a);
  r.view()[0](1, 2) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(probe(a, r).residual));
  const Batch<double> zero = make<double>("zero", 5000, 4);
  Batch<double> wrong(1, 4, 4);
  std::fill_n(wrong.view().data, 16, 0.0);
  EXPECT_EQ(probe(zero, wrong).residual, 0);
  wrong.view()[0](0, 0) = 1;
  EXPECT_TRUE(std::isinf(probe(zero, wrong).residual));
}

}  // namespace
}  // namespace qrtool::gram_probe_test
