// SPDX-License-Identifier: Apache-2.0
// blocked_qr_test.cpp: the kernels of every instruction set that this processor has, and teams.
#include "core/cpu/blocked/blocked_qr.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/report/ratios.hpp"
#include "tests/support/attack.hpp"

namespace qrtool::blocked_qr_test {
namespace {

template <class T>
class BlockedQrTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(BlockedQrTest, Types);

/// Q and R of one matrix, without padding.
template <class T>
struct Result {
  Batch<T> q, r;
  blocked::Outcome outcome;
};

template <class T>
Result<T> factor(MatrixView<const T> a, Mode mode, int threads,
                 const blocked::Kernels& kernels = *blocked_kernels().front()) {
  const Problem problem{1, a.rows, a.cols, element_type<T>, mode};
  Result<T> result{{1, a.rows, problem.q_cols()}, {1, problem.r_rows(), a.cols}, {}};
  BlockedQr<T> qr(problem, threads, kernels);
  result.outcome = qr.factor(a, {result.q.view()[0], result.r.view()[0], {}, {}}, threads);
  return result;
}

template <class T>
bool have_same_bits(MatrixView<T> x, MatrixView<T> y) {
  return std::memcmp(x.data, y.data, static_cast<std::size_t>(x.rows * x.cols) * sizeof(T)) == 0;
}

template <class T>
void expect_good(MatrixView<const T> a, const Result<T>& result, const std::string& what) {
  const MatrixView<const T> q = result.q.view()[0], r = result.r.view()[0];
  const Magnitude magnitude = magnitude_of(a);
  EXPECT_EQ(result.outcome.is_finite, magnitude.finite) << what;
  EXPECT_EQ(result.outcome.scale, magnitude.scale()) << what;
  if (!magnitude.finite) return;
  ErrorMeter meter(a.rows, a.cols, q.cols, r.rows);
  const Errors errors = meter.measure<T>(a, q, r, magnitude.scale());
  const Bars bars = standard_bars(a.rows, a.cols, precision_of(element_type<T>), errors);
  EXPECT_EQ(judge(errors, bars, true), Status::ok)
      << what << ": residual " << errors.residual << ", orthogonality " << errors.orthogonality
      << ", bar " << bars.orthogonality;
}

TYPED_TEST(BlockedQrTest, EveryInstructionSetMeetsTheBar) {
  for (const blocked::Kernels* kernels : blocked_kernels()) {
    for (const MatrixKind& kind : matrix_kinds()) {
      for (const auto& [m, n] : {std::pair<index_t, index_t>{5, 7},
                                 {16, 16},
                                 {37, 29},
                                 {70, 60},
                                 {60, 70},
                                 {129, 128},
                                 {257, 200},
                                 {256, 300}}) {
        const Batch<TypeParam> a(1, m, n);
        fill_matrix<TypeParam>({kind.name}, 0, a.view()[0]);
        const MatrixView<const TypeParam> view = a.view()[0];
        expect_good(view, factor(view, Mode::reduced, 1, *kernels),
                    std::string(kernels->target) + " " + std::string(kind.name) + " " +
                        std::to_string(m) + "x" + std::to_string(n));
      }
    }
  }
}

/// Parts of bfloat16 are as accurate as float32: an error of 2^-16 would be within the bar, and is
/// above this.
TEST(BlockedQrParts, ProductsOfPartsAreThoseOfFloat32) {
  constexpr index_t m = 320, n = 256;
  const Batch<float> a(1, m, n);
  fill_matrix<float>({"gauss"}, 0, a.view()[0]);
  const MatrixView<const float> view = a.view()[0];
  for (const blocked::Kernels* kernels : blocked_kernels()) {
    const Result<float> result = factor(view, Mode::reduced, 1, *kernels);
    ErrorMeter meter(m, n, n, n);
    const Errors errors = meter.measure<float>(view, result.q.view()[0], result.r.view()[0],
                                               magnitude_of(view).scale());
    EXPECT_LE(errors.residual, 1e-6) << kernels->target;
    EXPECT_LE(errors.orthogonality, 1e-5) << kernels->target;
  }
}

TEST(BlockedQrParts, StrictArithmeticHasNone) {
  Problem problem{1, 512, 512, ElementType::float32, Mode::reduced};
  problem.arithmetic = Arithmetic::strict;
  EXPECT_FALSE(blocked_multiplies_parts(problem));
  problem.type = ElementType::float64;
  problem.arithmetic = Arithmetic::any;
  EXPECT_FALSE(blocked_multiplies_parts(problem));
}

/// A team of 1, 2 and 3 takes four, two and one of these strips at a time, in float64.
TYPED_TEST(BlockedQrTest, StripsComputedTogetherAreThoseComputedAlone) {
  for (const auto& [m, n] : {std::pair<index_t, index_t>{1030, 1024}, {1024, 1100}}) {
    const Batch<TypeParam> a(1, m, n);
    fill_matrix<TypeParam>({"gauss"}, 0, a.view()[0]);
    const MatrixView<const TypeParam> view = a.view()[0];
    const Result<TypeParam> alone = factor(view, Mode::reduced, 3);
    expect_good(view, alone, "alone");
    for (const int threads : {1, 2}) {
      const Result<TypeParam> together = factor(view, Mode::reduced, threads);
      EXPECT_TRUE(have_same_bits(alone.q.view()[0], together.q.view()[0])) << threads;
      EXPECT_TRUE(have_same_bits(alone.r.view()[0], together.r.view()[0])) << threads;
    }
  }
}

/// After the first reflector all columns hold the same rounding errors.
TYPED_TEST(BlockedQrTest, ConstantMatricesKeepClearOfTheBar) {
  constexpr index_t n = 300;
  for (const blocked::Kernels* kernels : blocked_kernels()) {
    const Batch<TypeParam> a(1, n, n);
    fill_matrix<TypeParam>({"constant"}, 0, a.view()[0]);
    const MatrixView<const TypeParam> view = a.view()[0];
    const Result<TypeParam> result = factor(view, Mode::reduced, 1, *kernels);
    ErrorMeter meter(n, n, n, n);
    const Errors errors = meter.measure<TypeParam>(view, result.q.view()[0], result.r.view()[0],
                                                   magnitude_of(view).scale());
    const Bars bars = standard_bars(n, n, precision_of(element_type<TypeParam>), errors);
    EXPECT_LE(errors.orthogonality, 0.4 * bars.orthogonality) << kernels->target;
  }
}

/// Rows that are alike are rounded alike, and their reflectors are far from orthogonal to each
/// other.
TYPED_TEST(BlockedQrTest, RowsThatAreAlikeKeepClearOfTheBar) {
  const test::AttackList list{
      .families = test::families_of_alike_rows(), .per_family = 40, .seed = 1};
  for (const auto [m, n] : {test::AttackShape{64, 48}, {130, 100}}) {
    Batch<TypeParam> a(list.count(), m, n);
    list.fill<TypeParam>(0, 2, a.view());
    const BatchView<const TypeParam> view = a.view();
    ErrorMeter meter(m, n, n, n);
    for (const blocked::Kernels* kernels : blocked_kernels()) {
      for (index_t b = 0; b < list.count(); ++b) {
        const Result<TypeParam> result = factor(view[b], Mode::reduced, 1, *kernels);
        const Errors errors = meter.measure<TypeParam>(
            view[b], result.q.view()[0], result.r.view()[0], magnitude_of(view[b]).scale());
        const Bars bars = standard_bars(m, n, precision_of(element_type<TypeParam>), errors);
        EXPECT_LE(errors.orthogonality, 0.8 * bars.orthogonality)
            << kernels->target << ", " << m << "x" << n << ", " << list.name_of(b);
      }
    }
  }
}

TYPED_TEST(BlockedQrTest, ColumnsOfEverySizeAreReflected) {
  // Below row 0 columns 1 and 2 are s (2, 3, 1, ...)' and s (2, 1, 2, ...)', for s down to the
  // smallest number. Their squares, and their products with each other, underflow for much larger
  // s.
  constexpr index_t m = 40;
  const Batch<TypeParam> a(1, m, 3);
  for (const blocked::Kernels* kernels : blocked_kernels()) {
    for (TypeParam s = 1; s > 0; s /= 16) {
      for (index_t i = 0; i < m; ++i) {
        const MatrixView<TypeParam> view = a.view()[0];
        view(i, 0) = i == 0 ? TypeParam(1) : TypeParam(0);
        view(i, 1) = (i == 0 ? 1 : s) * static_cast<TypeParam>(1 + i % 3);
        view(i, 2) = (i == 0 ? 1 : s) * static_cast<TypeParam>(1 + i % 2);
      }
      const MatrixView<const TypeParam> view = a.view()[0];
      expect_good(view, factor(view, Mode::reduced, 1, *kernels),
                  std::string(kernels->target) + " s = " + std::to_string(s));
    }
  }
}

TYPED_TEST(BlockedQrTest, TheTeamDoesNotMatter) {
  for (const auto& [m, n] : {std::pair<index_t, index_t>{260, 200}, {100, 300}, {150, 10}}) {
    const Batch<TypeParam> a(1, m, n);
    fill_matrix<TypeParam>({"gauss"}, 0, a.view()[0]);
    const MatrixView<const TypeParam> view = a.view()[0];
    for (const Mode mode : {Mode::reduced, Mode::complete, Mode::r}) {
      const Result<TypeParam> alone = factor(view, mode, 1), team = factor(view, mode, 3);
      expect_good(view, mode == Mode::r ? factor(view, Mode::reduced, 3) : team, "team");
      EXPECT_TRUE(have_same_bits(alone.q.view()[0], team.q.view()[0])) << m << "x" << n;
      EXPECT_TRUE(have_same_bits(alone.r.view()[0], team.r.view()[0])) << m << "x" << n;
    }
  }
}

}  // namespace
}  // namespace qrtool::blocked_qr_test
