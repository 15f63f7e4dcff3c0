// SPDX-License-Identifier: Apache-2.0
// batched_qr_test.cpp: the kernels of every instruction set that this processor has.
#include "core/cpu/batched/batched_qr.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/report/ratios.hpp"

namespace qrtool::batched_qr_test {
namespace {

template <class T>
class BatchedQrTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(BatchedQrTest, Types);

/// Factors one full pack of `kind` and judges every matrix by the bar.
template <class T>
void expect_good_pack(const batched::Kernels& kernels, std::string_view kind, index_t m,
                      index_t n) {
  const index_t k = std::min(m, n);
  const Problem problem{1, m, n, element_type<T>};
  BatchedQr<T> qr(problem, kernels);
  const Batch<T> a(qr.matrices_at_once(), m, n), q(qr.matrices_at_once(), m, k),
      r(qr.matrices_at_once(), k, n);
  for (index_t b = 0; b < qr.matrices_at_once(); ++b) fill_matrix<T>({kind}, b, a.view()[b]);
  std::vector<batched::Outcome> outcomes(static_cast<std::size_t>(qr.matrices_at_once()));
  qr.factor(a.view(), {q.view(), r.view(), {}, {}}, outcomes);
  ErrorMeter meter(m, n, k, k);
  for (index_t b = 0; b < qr.matrices_at_once(); ++b) {
    const std::string what = std::string(kernels.target) + " " + std::string(kind) + " " +
                             std::to_string(m) + "x" + std::to_string(n);
    const MatrixView<const T> one = a.view()[b];
    const Magnitude magnitude = magnitude_of(one);
    EXPECT_EQ(outcomes[b].is_finite, magnitude.finite) << what;
    EXPECT_EQ(outcomes[b].scale, magnitude.scale()) << what;
    if (!magnitude.finite) continue;
    const Errors errors = meter.measure<T>(one, q.view()[b], r.view()[b], magnitude.scale());
    const Bars bars = standard_bars(m, n, precision_of(element_type<T>), errors);
    EXPECT_EQ(judge(errors, bars, true), Status::ok)
        << what << " matrix " << b << ": residual " << errors.residual << ", orthogonality "
        << errors.orthogonality;
  }
}

TYPED_TEST(BatchedQrTest, EveryInstructionSetMeetsTheBar) {
  for (const batched::Kernels* kernels : batched_kernels()) {
    for (const MatrixKind& kind : matrix_kinds()) {
      for (const auto& [m, n] : {std::pair<index_t, index_t>{5, 7}, {16, 16}, {37, 29}, {70, 6}}) {
        expect_good_pack<TypeParam>(*kernels, kind.name, m, n);
      }
    }
  }
}

/// Returns the largest orthogonality error, in bars, of constant n x n matrices with entries from
/// 0.5 to 1.
template <class T>
double worst_of_constant_matrices(const batched::Kernels& kernels, index_t n) {
  constexpr index_t packs = 100;
  const Problem problem{1, n, n, element_type<T>};
  BatchedQr<T> qr(problem, kernels);
  const index_t lanes = qr.matrices_at_once();
  const Batch<T> a(lanes, n, n), q(lanes, n, n), r(lanes, n, n);
  std::vector<batched::Outcome> outcomes(static_cast<std::size_t>(lanes));
  ErrorMeter meter(n, n, n, n);
  double worst = 0;
  for (index_t i = 0; i < packs * lanes; i += lanes) {
    for (index_t b = 0; b < lanes; ++b) {
      const double value =
          0.5 + 0.499 * static_cast<double>(i + b) / static_cast<double>(packs * lanes);
      std::fill_n(a.view()[b].data, n * n, static_cast<T>(value));
    }
    qr.factor(a.view(), {q.view(), r.view(), {}, {}}, outcomes);
    for (index_t b = 0; b < lanes; ++b) {
      const MatrixView<const T> one = a.view()[b];
      const Errors errors = meter.measure<T>(one, q.view()[b], r.view()[b], 0);
      const Bars bars = standard_bars(n, n, precision_of(element_type<T>), errors);
      worst = std::max(worst, errors.orthogonality / bars.orthogonality);
    }
  }
  return worst;
}

/// Columns of equal entries give sums a bias, and the rounding errors they leave are all parallel.
TYPED_TEST(BatchedQrTest, ConstantMatricesKeepClearOfTheBar) {
  for (const batched::Kernels* kernels : batched_kernels()) {
    EXPECT_LE(worst_of_constant_matrices<TypeParam>(*kernels, 17), 0.85) << kernels->target;
    EXPECT_LE(worst_of_constant_matrices<TypeParam>(*kernels, 40), 0.75) << kernels->target;
  }
}

/// Gaussian matrices, among them one with two columns that are nearly the same, one with a common
/// mean, one with NaN and one of tiny entries: R of these cannot come from A'A.
template <class T>
Batch<T> mixed_pack(index_t count, index_t m, index_t n) {
  Batch<T> pack(count, m, n);
  for (index_t b = 0; b < count; ++b) {
    const MatrixView<T> a = pack.view()[b];
    fill_matrix<T>({"gauss"}, b, a);
    for (index_t i = 0; i < m; ++i) {
      if (b == 1) a(i, 9) = a(i, 3) + T(sizeof(T) == 4 ? 1e-5 : 1e-10) * a(i, 9);
      for (index_t j = 0; j < n; ++j) {
        if (b == 2) a(i, j) += T(1e3);
        if (b == 5) a(i, j) *= T(1e-25);
      }
    }
    if (b == 3) a(m / 2, 1) = std::numeric_limits<T>::quiet_NaN();
  }
  return pack;
}

template <class T>
void expect_r_alone(const batched::Kernels& kernels, index_t m, index_t n) {
  SCOPED_TRACE(testing::Message() << kernels.target << " " << m << "x" << n);
  const double e = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
  Problem problem{1, m, n, element_type<T>};
  BatchedQr<T> with_q(problem, kernels);
  problem.mode = Mode::r;
  BatchedQr<T> qr(problem, kernels);
  const index_t count = std::max<index_t>(qr.matrices_at_once(), 6);
  const Batch<T> a = mixed_pack<T>(count, m, n), q(count, m, n), expected(count, n, n),
                 r(count, n, n), alone(count, n, n);
  std::vector<batched::Outcome> outcomes(static_cast<std::size_t>(count)), other(outcomes.size());
  for (index_t i = 0; i < count; i += qr.matrices_at_once()) {
    const index_t part = std::min(qr.matrices_at_once(), count - i);
    const auto of = std::span(outcomes).subspan(static_cast<std::size_t>(i));
    with_q.factor(a.view().slice(i, part),
                  {q.view().slice(i, part), expected.view().slice(i, part), {}, {}},
                  std::span(other).subspan(static_cast<std::size_t>(i)));
    qr.factor(a.view().slice(i, part), {{}, r.view().slice(i, part), {}, {}}, of);
  }
  for (index_t b = 0; b < count; ++b) {
    SCOPED_TRACE(b);
    std::vector<batched::Outcome> one(1);
    qr.factor(a.view().slice(b, 1), {{}, alone.view().slice(b, 1), {}, {}}, one);
    EXPECT_EQ(outcomes[b].is_finite, b != 3);
    EXPECT_EQ(outcomes[b].is_finite, other[b].is_finite);
    if (!outcomes[b].is_finite) continue;
    EXPECT_EQ(outcomes[b].scale, other[b].scale);
    const MatrixView<const T> x = a.view()[b], found = r.view()[b], same = alone.view()[b],
                              reflected = expected.view()[b];
    EXPECT_TRUE(std::equal(found.data, found.data + n * n, same.data));
    EXPECT_NEAR(found(9, 9), reflected(9, 9), 0.1 * std::abs(reflected(9, 9)));
    std::vector<double> norms(static_cast<std::size_t>(n));
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < m; ++i) norms[j] = std::hypot(norms[j], static_cast<double>(x(i, j)));
    for (index_t j = 0; j < n; ++j)
      for (index_t k = 0; k <= j; ++k) {
        double sum = 0;
        for (index_t i = 0; i < m; ++i)
          sum += static_cast<double>(x(i, k)) * static_cast<double>(x(i, j));
        for (index_t i = 0; i <= k; ++i)
          sum -= static_cast<double>(found(i, k)) * static_cast<double>(found(i, j));
        const double most = 2 * static_cast<double>(m) * e * norms[j] * norms[k];
        ASSERT_LE(std::abs(sum), most) << k << " " << j;
        ASSERT_TRUE(k == j || found(j, k) == 0) << k << " " << j;
      }
  }
}

TYPED_TEST(BatchedQrTest, RAloneIsAsGoodAsBesideQ) {
  for (const batched::Kernels* kernels : batched_kernels())
    for (const auto& [m, n] : {std::pair<index_t, index_t>{96, 16}, {97, 17}, {128, 64}, {200, 43}})
      expect_r_alone<TypeParam>(*kernels, m, n);
}

TYPED_TEST(BatchedQrTest, ColumnsOfEverySizeAreReflected) {
  // Below row 0 the second column is s (2, 3, 1, ...)', for s down to the smallest number. Its
  // squares underflow for much larger s.
  constexpr index_t m = 20;
  for (const batched::Kernels* kernels : batched_kernels()) {
    BatchedQr<TypeParam> qr({1, m, 2, element_type<TypeParam>}, *kernels);
    std::vector<batched::Outcome> outcomes(static_cast<std::size_t>(qr.matrices_at_once()));
    const Batch<TypeParam> a(1, m, 2), q(1, m, 2), r(1, 2, 2);
    ErrorMeter meter(m, 2, 2, 2);
    for (TypeParam s = 1; s > 0; s /= 16) {
      for (index_t i = 0; i < m; ++i) {
        a.view()[0](i, 0) = i == 0 ? TypeParam(1) : TypeParam(0);
        a.view()[0](i, 1) = (i == 0 ? 1 : s) * static_cast<TypeParam>(1 + i % 3);
      }
      qr.factor(a.view(), {q.view(), r.view(), {}, {}}, outcomes);
      const Errors errors = meter.measure<TypeParam>(a.view()[0], q.view()[0], r.view()[0], 2);
      const Bars bars = standard_bars(m, 2, precision_of(element_type<TypeParam>), errors);
      EXPECT_EQ(judge(errors, bars, true), Status::ok)
          << kernels->target << " s = " << s << ": orthogonality " << errors.orthogonality;
    }
  }
}

}  // namespace
}  // namespace qrtool::batched_qr_test
