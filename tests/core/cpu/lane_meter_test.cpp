// SPDX-License-Identifier: Apache-2.0
// lane_meter_test.cpp: small matrices are measured as by ErrorMeter, whatever their neighbours are.
// tests/core/measure/error_meter_test.cpp compares the sums with sums in twice the precision.
#include "core/cpu/check/lane_meter.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/eigen/eigen_qr.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool::lane_meter_test {
namespace {

template <class T>
constexpr T nan_of = std::numeric_limits<T>::quiet_NaN();

/// Factored matrices, with room between rows and between matrices that holds NaN.
template <class T>
struct Matrices {
  Problem problem;
  std::vector<T> a, q, r;

  Matrices(index_t count, index_t m, index_t n, Mode mode = Mode::reduced)
      : problem{.count = count, .m = m, .n = n, .type = element_type<T>, .mode = mode} {
    const auto numbers = [&](index_t rows, index_t cols) {
      return std::vector<T>(static_cast<std::size_t>(count * (rows + 1) * (cols + 3)), nan_of<T>);
    };
    a = numbers(m, n);
    q = numbers(m, problem.q_cols());
    r = numbers(problem.r_rows(), n);
    EigenQr<T> qr(problem);
    for (index_t b = 0; b < count; ++b) {
      fill_matrix<T>({"gauss", 1e3, 5}, b, view_a()[b]);
      const double size = std::ldexp(1.0, static_cast<int>(20 * b - 60));
      for (index_t i = 0; i < m; ++i)
        for (index_t j = 0; j < n; ++j) view_a()[b](i, j) *= static_cast<T>(size);
      qr.factor(view_a()[b], {.q = view_q()[b], .r = view_r()[b], .v = {}, .tau = {}});
    }
  }

  static BatchView<T> view(std::vector<T>& from, index_t count, index_t rows, index_t cols) {
    return {from.data(), count, rows, cols, cols + 3, (rows + 1) * (cols + 3)};
  }
  BatchView<T> view_a() { return view(a, problem.count, problem.m, problem.n); }
  BatchView<T> view_q() { return view(q, problem.count, problem.m, problem.q_cols()); }
  BatchView<T> view_r() { return view(r, problem.count, problem.r_rows(), problem.n); }
  int scale(index_t b) { return magnitude_of<T>(view_a()[b]).scale(); }

  /// Measures the matrices from `first` on as one pack.
  std::vector<Errors> in_lanes(const check_lanes::Kernels& kernels, index_t first, index_t count) {
    LaneMeter<T> meter(problem, kernels);
    std::vector<Errors> errors(static_cast<std::size_t>(count));
    for (index_t l = 0; l < count; ++l)
      errors[static_cast<std::size_t>(l)].scale = scale(first + l);
    const Factors<T> all{.q = view_q(), .r = view_r(), .v = {}, .tau = {}};
    meter.measure(view_a().slice(first, count), slice(all, first, count), errors);
    return errors;
  }
  Errors measured(index_t b) {
    ErrorMeter meter(problem.m, problem.n, problem.q_cols(), problem.r_rows());
    return meter.measure<T>(view_a()[b], view_q()[b], view_r()[b], scale(b));
  }
};

template <class T>
class LaneMeterTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(LaneMeterTest, Types);

TYPED_TEST(LaneMeterTest, FindsWhatTheMeterFinds) {
  for (const check_lanes::Kernels* kernels : check_lanes::kernels()) {
    for (const Mode mode : {Mode::reduced, Mode::complete}) {
      for (const auto& [m, n] : {std::pair<index_t, index_t>{1, 1},
                                 {2, 3},
                                 {5, 4},
                                 {8, 8},
                                 {9, 7},
                                 {12, 20},
                                 {17, 17},
                                 {32, 32},
                                 {40, 3}}) {
        Matrices<TypeParam> a(kernels->lanes, m, n, mode);
        const std::vector<Errors> found = a.in_lanes(*kernels, 0, kernels->lanes);
        for (index_t b = 0; b < kernels->lanes; ++b) {
          const Errors expected = a.measured(b), &errors = found[static_cast<std::size_t>(b)];
          const Bars bars = standard_bars(m, n, precision_of(a.problem), expected);
          const std::string what = std::string(kernels->target) + " " + std::to_string(m) + "x" +
                                   std::to_string(n) + " " + std::to_string(b);
          EXPECT_NEAR(errors.residual, expected.residual, 0.1 * bars.residual) << what;
          EXPECT_NEAR(errors.orthogonality, expected.orthogonality, 0.1 * bars.orthogonality)
              << what;
          EXPECT_NEAR(errors.norm, expected.norm, 1e-14 * expected.norm) << what;
          EXPECT_EQ(errors.lower, 0) << what;
          EXPECT_EQ(errors.diagonal_ratio, expected.diagonal_ratio) << what;
        }
      }
    }
  }
}

TYPED_TEST(LaneMeterTest, SeesEveryWrongEntry) {
  using T = TypeParam;
  constexpr index_t m = 11, n = 9;
  for (const check_lanes::Kernels* kernels : check_lanes::kernels()) {
    for (index_t i = 0; i < m; ++i) {
      for (index_t j = 0; j < n; ++j) {
        Matrices<T> a(2, m, n);
        a.view_q()[1](i, j) += T(0.25);
        const Errors wrong_q = a.in_lanes(*kernels, 0, 2)[1];
        EXPECT_GT(wrong_q.orthogonality, 0.01) << i << " " << j;
        EXPECT_NEAR(wrong_q.residual, a.measured(1).residual, 1e-6);
        if (i >= n) continue;
        Matrices<T> c(2, m, n);
        c.view_r()[1](i, j) += static_cast<T>(std::ldexp(1.0, c.scale(1)));
        const Errors wrong_r = c.in_lanes(*kernels, 0, 2)[1], expected = c.measured(1);
        EXPECT_NEAR(wrong_r.residual, expected.residual, 1e-6);
        EXPECT_GT(wrong_r.residual, 0.01);
        EXPECT_DOUBLE_EQ(wrong_r.lower, expected.lower);
      }
    }
  }
}

TYPED_TEST(LaneMeterTest, NeighboursDoNotMatter) {
  using T = TypeParam;
  for (const check_lanes::Kernels* kernels : check_lanes::kernels()) {
    Matrices<T> a(kernels->lanes, 10, 6);
    const std::vector<Errors> together = a.in_lanes(*kernels, 0, kernels->lanes);
    a.view_a()[0](3, 2) = nan_of<T>;
    a.view_q()[0](1, 1) = std::numeric_limits<T>::infinity();
    a.view_r()[0](5, 0) = nan_of<T>;
    const std::vector<Errors> beside = a.in_lanes(*kernels, 0, kernels->lanes);
    EXPECT_TRUE(std::isnan(beside[0].residual));
    EXPECT_TRUE(std::isnan(beside[0].orthogonality));
    for (index_t b = 1; b < kernels->lanes; ++b) {
      const auto at = static_cast<std::size_t>(b);
      const Errors alone = a.in_lanes(*kernels, b, 1)[0];
      for (const Errors& other : {beside[at], alone}) {
        EXPECT_EQ(together[at].residual, other.residual);
        EXPECT_EQ(together[at].orthogonality, other.orthogonality);
        EXPECT_EQ(together[at].norm, other.norm);
      }
    }
  }
}

TYPED_TEST(LaneMeterTest, AZeroMatrixHasNoError) {
  using T = TypeParam;
  Matrices<T> a(1, 4, 3);
  for (index_t i = 0; i < 4; ++i) std::fill_n(&a.view_a()[0](i, 0), 3, T(0));
  for (index_t i = 0; i < 3; ++i) std::fill_n(&a.view_r()[0](i, 0), 3, T(0));
  const Errors errors = a.in_lanes(*check_lanes::kernels().front(), 0, 1)[0];
  EXPECT_EQ(errors.residual, 0);
  EXPECT_EQ(errors.lower, 0);
  EXPECT_EQ(errors.diagonal_ratio, 0);
}

}  // namespace
}  // namespace qrtool::lane_meter_test
