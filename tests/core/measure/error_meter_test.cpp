// SPDX-License-Identifier: Apache-2.0
// error_meter_test.cpp: the measured errors are within a tenth of the bar of the true ones, which
// are computed in twice the precision, and do not depend on the threads.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/cpu/check/lane_meter.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/report/ratios.hpp"
#include "tests/support/householder.hpp"

namespace qrtool::error_meter_test {
namespace {

/// A sum of products with twice the digits of float64. Source: Ogita, Rump, Oishi, "Accurate sum
/// and dot product", SIAM J. Sci. Comput. 26 (2005), algorithm Dot2.
struct TwiceSum {
  double sum = 0, rest = 0;

  void add(double term) {
    const double next = sum + term, added = next - sum;
    rest += (sum - (next - added)) + (term - added);
    sum = next;
  }
  void add_product(double x, double y) {
    const double product = x * y;
    rest += std::fma(x, y, -product);
    add(product);
  }
  double value() const { return sum + rest; }
};

/// A and the factors that are measured, all of one type.
template <class T>
struct Factored {
  index_t m, n, k;
  Batch<T> a, q, r;

  Factored(index_t rows, index_t cols)
      : m(rows), n(cols), k(std::min(rows, cols)), a(1, m, n), q(1, m, k), r(1, k, n) {}

  MatrixView<T> view_a() const { return a.view()[0]; }
  MatrixView<T> view_q() const { return q.view()[0]; }
  MatrixView<T> view_r() const { return r.view()[0]; }

  Errors measure(int threads = 1) const {
    ErrorMeter meter(m, n, k, k, threads);
    meter.use_threads(threads);
    return meter.measure<T>(view_a(), view_q(), view_r(), magnitude_of<T>(view_a()).scale());
  }

  /// As a pack of small matrices is measured, by the kernels of every instruction set. The meter's
  /// orthogonality stands where it is the more exact one.
  std::vector<Errors> measure_in_lanes() const {
    const Problem problem{.count = 1, .m = m, .n = n, .type = element_type<T>};
    std::vector<Errors> all;
    if (!LaneMeter<T>::pays(problem)) return all;
    for (const check_lanes::Kernels* kernels : check_lanes::kernels()) {
      LaneMeter<T> meter(problem, *kernels);
      Errors errors{.scale = magnitude_of<T>(view_a()).scale()};
      meter.measure(a.view(), {.q = q.view(), .r = r.view(), .v = {}, .tau = {}}, {&errors, 1});
      if (meter.is_close(errors)) errors.orthogonality = measure().orthogonality;
      all.push_back(errors);
    }
    return all;
  }

  double true_orthogonality() const {
    double squares = 0;
    for (index_t i = 0; i < k; ++i) {
      for (index_t j = i; j < k; ++j) {
        TwiceSum sum;
        if (i == j) sum.add(-1);
        for (index_t row = 0; row < m; ++row) sum.add_product(view_q()(row, i), view_q()(row, j));
        squares += (i == j ? 1 : 2) * sum.value() * sum.value();
      }
    }
    return std::sqrt(squares);
  }

  double true_residual() const {
    double squares = 0, norm = 0;
    for (index_t i = 0; i < m; ++i) {
      for (index_t j = 0; j < n; ++j) {
        TwiceSum sum;
        sum.add(view_a()(i, j));
        for (index_t p = 0; p <= std::min(j, k - 1); ++p)
          sum.add_product(-static_cast<double>(view_q()(i, p)), view_r()(p, j));
        squares += sum.value() * sum.value();
        norm += static_cast<double>(view_a()(i, j)) * static_cast<double>(view_a()(i, j));
      }
    }
    return norm > 0 ? std::sqrt(squares / norm) : 0;
  }
};

/// A = Q R rounded once.
template <class T>
void multiply(const Factored<T>& f) {
  for (index_t i = 0; i < f.m; ++i) {
    for (index_t j = 0; j < f.n; ++j) {
      TwiceSum sum;
      for (index_t p = 0; p <= std::min(j, f.k - 1); ++p)
        sum.add_product(f.view_q()(i, p), f.view_r()(p, j));
      f.view_a()(i, j) = static_cast<T>(sum.value());
    }
  }
}

/// A named test matrix with the factors of plain reflectors. Those of "blocks" with 1700
/// columns have three that span all, each in another block of 512, and none in the last one.
template <class T>
Factored<T> by_reflectors(std::string_view kind, index_t m, index_t n) {
  Factored<T> f(m, n);
  fill_matrix<T>({kind == "blocks" ? "gauss" : kind, 1e6, 3}, 0, f.view_a());
  for (index_t i = 1; i < m && kind == "blocks"; ++i)
    for (index_t j = 0; j < n; ++j)
      if (j % (n / m) != 9) f.view_a()(i, j) = 0;
  const test::ReferenceQr qr = test::reference_qr<T>(f.view_a());
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < f.k; ++j) f.view_q()(i, j) = static_cast<T>(qr.q_at(i, j));
  for (index_t i = 0; i < f.k; ++i)
    for (index_t j = 0; j < n; ++j)
      f.view_r()(i, j) = static_cast<T>(qr.r[static_cast<std::size_t>(i * n + j)]);
  return f;
}

/// Q = the first columns of I - 2/m 11' and R upper triangular with equal entries: the terms of all
/// sums are equal, and their roundings add up.
template <class T>
Factored<T> of_equal_terms(index_t m, index_t n) {
  Factored<T> f(m, n);
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < f.k; ++j)
      f.view_q()(i, j) = static_cast<T>((i == j) - 2 / static_cast<double>(m));
  for (index_t i = 0; i < f.k; ++i)
    for (index_t j = 0; j < n; ++j) f.view_r()(i, j) = i <= j ? T(0.1) : T(0);
  multiply(f);
  return f;
}

/// Makes a Q whose columns have equal magnitude and the signs of a Walsh matrix: every term of Q'Q
/// is +-1/m.
template <class T>
Factored<T> of_walsh_functions(index_t m, index_t n) {
  Factored<T> f(m, n);
  const double entry = 1 / std::sqrt(static_cast<double>(m));
  for (index_t i = 0; i < m; ++i)
    for (index_t j = 0; j < f.k; ++j)
      f.view_q()(i, j) = static_cast<T>(__builtin_parityll(i & j) ? -entry : entry);
  for (index_t i = 0; i < f.k; ++i)
    for (index_t j = 0; j < n; ++j) f.view_r()(i, j) = i <= j ? T(1) / T(3) : T(0);
  multiply(f);
  return f;
}

/// The measured errors are within a part of the bar of the true ones.
template <class T>
void expect_accurate(const Factored<T>& f, const std::string& what, double part = 0.1) {
  const double orthogonality = f.true_orthogonality(), residual = f.true_residual();
  const std::string shape = what + " " + std::to_string(f.m) + "x" + std::to_string(f.n);
  std::vector<Errors> all = f.measure_in_lanes();
  all.push_back(f.measure());
  for (const Errors& errors : all) {
    const Bars bars = standard_bars(f.m, f.n, precision_of(element_type<T>), errors);
    EXPECT_LE(std::abs(errors.orthogonality - orthogonality), part * bars.orthogonality) << shape;
    EXPECT_LE(std::abs(errors.residual - residual), part * bars.residual) << shape;
  }
}

/// ||A'A - R'R|| / ||A||^2.
template <class T>
double true_residual_without_q(const Factored<T>& f) {
  double squares = 0, norm = 0;
  for (index_t i = 0; i < f.n; ++i) {
    for (index_t j = i; j < f.n; ++j) {
      TwiceSum sum;
      for (index_t p = 0; p < f.m; ++p) sum.add_product(f.view_a()(p, i), f.view_a()(p, j));
      if (i == j) norm += sum.value();
      for (index_t p = 0; p < f.k; ++p)
        sum.add_product(-static_cast<double>(f.view_r()(p, i)), f.view_r()(p, j));
      squares += (i == j ? 1 : 2) * sum.value() * sum.value();
    }
  }
  return norm > 0 ? std::sqrt(squares) / norm : 0;
}

template <class T>
class ErrorMeterTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ErrorMeterTest, Types);

TYPED_TEST(ErrorMeterTest, IsWithinATenthOfTheBarOnHardMatrices) {
  for (const std::string_view kind :
       {"gauss", "constant", "identity", "graded-rows", "graded-columns", "hilbert",
        "rank-deficient", "near-deficient", "clustered", "offset", "kahan", "tiny", "huge"}) {
    for (const auto& [m, n] : {std::pair<index_t, index_t>{1, 1},
                               {3, 2},
                               {5, 9},
                               {16, 16},
                               {17, 16},
                               {33, 33},
                               {64, 64},
                               {65, 31},
                               {130, 65},
                               {300, 20},
                               {40, 150},
                               {257, 140}}) {
      expect_accurate(by_reflectors<TypeParam>(kind, m, n), std::string(kind));
    }
  }
}

TYPED_TEST(ErrorMeterTest, IsWithinATenthOfTheBarWhereAllTermsAreEqual) {
  for (index_t n = 1; n <= 140; n += n < 40 ? 1 : 7)
    expect_accurate(of_equal_terms<TypeParam>(n, n), "square", n < 32 ? 0.15 : 0.1);
  for (const index_t n : {255, 256, 300})
    expect_accurate(of_equal_terms<TypeParam>(n, n), "square");
  for (const index_t n : {1, 2, 3, 4, 8, 9, 40})
    for (const index_t m : {50, 129, 511, 1000, 5000})
      expect_accurate(of_equal_terms<TypeParam>(m, n), "tall");
}

TYPED_TEST(ErrorMeterTest, IsWithinATenthOfTheBarWhereManyTermsAreEqual) {
  expect_accurate(of_equal_terms<TypeParam>(1030, 1030), "square");
  for (const index_t n : {1, 2, 3, 4, 8, 9, 40})
    expect_accurate(of_equal_terms<TypeParam>(20001, n), "tall");
}

TYPED_TEST(ErrorMeterTest, IsWithinATenthOfTheBarWhereQIsPerfect) {
  for (const index_t m : {2, 4, 8, 16, 32, 64, 128, 256, 512}) {
    for (const index_t n : {index_t{1}, m / 2, m})
      expect_accurate(of_walsh_functions<TypeParam>(m, n), "walsh");
  }
  for (const index_t n : {1, 2, 4, 16})
    expect_accurate(of_walsh_functions<TypeParam>(65536, n), "walsh");
}

/// R alone of matrices with more than 32 columns for each row, and beside them.
TYPED_TEST(ErrorMeterTest, IsWithinATenthOfTheBarOfRAloneOfWideMatrices) {
  for (const std::string_view kind :
       {"gauss", "constant", "graded-rows", "graded-columns", "hilbert", "rank-deficient",
        "near-deficient", "clustered", "offset", "tiny", "huge", "blocks"}) {
    for (const auto& [m, n] : {std::pair<index_t, index_t>{1, 33},
                               {1, 700},
                               {2, 65},
                               {5, 161},
                               {5, 160},
                               {16, 600},
                               {20, 700},
                               {3, 1700}}) {
      Factored<TypeParam> f = by_reflectors<TypeParam>(kind, m, n);
      const int scale = magnitude_of<TypeParam>(f.view_a()).scale();
      ErrorMeter meter(m, n, 0, f.k);
      for (const double factor : {1.0, 1.0 + 1e-3}) {
        f.view_r()(m - 1, n - 1) *= static_cast<TypeParam>(factor);
        const Errors errors = meter.measure<TypeParam>(f.view_a(), {}, f.view_r(), scale);
        const double bar =
            standard_bars(m, n, precision_of(element_type<TypeParam>), errors).residual;
        const double wanted = true_residual_without_q(f);
        EXPECT_LE(std::abs(errors.residual - wanted), 0.1 * bar + 1e-9 * wanted)
            << kind << ' ' << m << 'x' << n << ": " << errors.residual << ", " << wanted;
      }
    }
  }
}

/// The residual is that of one known entry, wherever the tile of A - QR begins or ends.
TYPED_TEST(ErrorMeterTest, SeesAnErrorInAnyTile) {
  constexpr index_t n = 1050;
  const Factored<TypeParam> f(n, n);
  for (const MatrixView<TypeParam>& x : {f.view_a(), f.view_q(), f.view_r()})
    fill_matrix<TypeParam>({"identity", 1, 0}, 0, x);
  for (const auto& [i, j] : {std::pair<index_t, index_t>{0, 0},
                             {0, 1049},
                             {1049, 0},
                             {127, 255},
                             {128, 256},
                             {255, 15},
                             {256, 16},
                             {511, 511},
                             {512, 127},
                             {1023, 128},
                             {1049, 1049}}) {
    TypeParam& entry = f.view_a()(i, j);
    const TypeParam before = std::exchange(entry, entry + TypeParam(0.5));
    const double squares = n + (i == j ? 1.25 : 0.25);  // of A's entries
    EXPECT_NEAR(f.measure().residual, 0.5 / std::sqrt(squares), 1e-12) << i << ' ' << j;
    entry = before;
  }
}

/// The matrices need not be factors.
TYPED_TEST(ErrorMeterTest, LargeTilesDoNotDependOnThreads) {
  const Factored<TypeParam> f(1100, 1050);
  for (const MatrixView<TypeParam>& x : {f.view_a(), f.view_q(), f.view_r()})
    fill_matrix<TypeParam>({"gauss", 1, 7}, 0, x);
  const Errors one = f.measure(1);
  for (const int threads : {2, 7}) {
    const Errors other = f.measure(threads);
    EXPECT_EQ(one.residual, other.residual) << threads;
    EXPECT_EQ(one.orthogonality, other.orthogonality) << threads;
  }
}

TYPED_TEST(ErrorMeterTest, ErrorsDoNotDependOnThreads) {
  for (const auto& [m, n] : {std::pair<index_t, index_t>{300, 300}, {700, 200}, {130, 400}}) {
    const Factored<TypeParam> f = by_reflectors<TypeParam>("gauss", m, n);
    const Errors one = f.measure(1);
    for (const int threads : {2, 3, 8}) {
      const Errors other = f.measure(threads);
      EXPECT_EQ(one.residual, other.residual) << threads;
      EXPECT_EQ(one.orthogonality, other.orthogonality) << threads;
      EXPECT_EQ(one.norm, other.norm) << threads;
    }
  }
}

TYPED_TEST(ErrorMeterTest, AMatrixLeavesNothingForTheNext) {
  const Factored<TypeParam> first = of_equal_terms<TypeParam>(64, 64),
                            second = by_reflectors<TypeParam>("gauss", 64, 64);
  ErrorMeter meter(64, 64, 64, 64);
  for (const Factored<TypeParam>* f : {&first, &second, &first}) {
    const Errors errors = meter.measure<TypeParam>(f->view_a(), f->view_q(), f->view_r(),
                                                   magnitude_of<TypeParam>(f->view_a()).scale());
    EXPECT_EQ(errors.orthogonality, f->measure().orthogonality);
    EXPECT_EQ(errors.residual, f->measure().residual);
  }
}

}  // namespace
}  // namespace qrtool::error_meter_test
