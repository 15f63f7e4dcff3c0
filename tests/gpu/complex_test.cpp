// SPDX-License-Identifier: Apache-2.0
// complex_test.cpp: complex matrices on a device: every kind within its bar, in every mode, and
// with the bits that a matrix gets alone.
#include <complex>
#include <random>
#include <string>
#include <vector>

#include "gpu/model/host_sample.hpp"
#include "gpu/reflectors/complex/complex.hpp"
#include "gpu/registry.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/expect_complex.hpp"

namespace qrtool::test::complex_test {
namespace {

/// A matrix of each kind, then one with NaN in the imaginary part of an entry.
template <class T>
struct Run {
  using Complex = std::complex<T>;

  Run(index_t m, index_t n, Mode mode, Sign sign, Check check = Check::none)
      : p{.count = static_cast<index_t>(complex_kinds().size()) + 1,
          .m = m,
          .n = n,
          .type = element_type<Complex>,
          .mode = mode,
          .sign = sign,
          .check = check},
        a(p.count, m, n) {
    std::mt19937_64 generator(static_cast<std::uint64_t>(100 * m + n));
    for (index_t b = 0; b < p.count; ++b) {
      const bool is_last = b == p.count - 1;
      fill_complex<T>(is_last ? "gauss" : complex_kinds()[static_cast<std::size_t>(b)], generator,
                      a.view()[b]);
    }
    a.view()[p.count - 1](m / 2, n / 2) = {1, std::numeric_limits<T>::quiet_NaN()};
  }

  /// Factors the matrices first .. first + count - 1 by a variant into places of their own.
  void factor(index_t first, index_t count, std::string_view variant) {
    const bool is_raw = p.mode == Mode::raw;
    q = Batch<Complex>(count, p.m, is_raw ? 0 : p.q_cols());
    r = Batch<Complex>(count, is_raw ? p.m : p.r_rows(), p.n);
    tau = Batch<Complex>(count, 1, p.k());
    const BatchView<Complex> none{};
    out = {.q = p.wants_q() ? q.view() : none,
           .r = is_raw ? none : r.view(),
           .v = is_raw ? r.view() : none,
           .tau = is_raw ? tau.view() : none};
    report.assign(static_cast<std::size_t>(count), {});
    Problem part = p;
    part.count = count;
    const Plan plan = make_plan(part, backend().variants(), backend().limits(), variant);
    backend().factor(plan, a.view().slice(first, count), out, report);
  }

  Problem p;
  Batch<Complex> a, q, r, tau;
  Factors<Complex> out;
  std::vector<MatrixReport> report;
};

template <class T>
class ComplexOnDevice : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_OPENCL();
    if (!backend().limits().has_float64) GTEST_SKIP() << "the device has no float64";
  }
};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexOnDevice, Types);

struct Shape {
  index_t m, n;
};
/// Matrices in local memory and beyond it, teams of one work-item and of several, and columns that
/// only Q has.
const std::vector<Shape> shapes{{1, 1},  {1, 6},  {7, 1},   {5, 5},
                                {8, 12}, {20, 7}, {33, 31}, {150, 24}};

template <class T>
void expect_all_good(const Run<T>& run) {
  for (index_t b = 0; b < run.p.count; ++b) {
    SCOPED_TRACE(b);
    const MatrixReport& report = run.report[static_cast<std::size_t>(b)];
    if (b == run.p.count - 1) {
      EXPECT_EQ(report.status, Status::non_finite);
      EXPECT_TRUE(std::isnan(run.r.view()[b](0, 0).real()));
      continue;
    }
    if (report.status == Status::r_overflows) continue;
    EXPECT_EQ(report.status, run.p.check == Check::none ? Status::unchecked : Status::ok);
    if (run.p.mode == Mode::raw)
      expect_good_reflectors<T>(run.p, run.a.view()[b], run.out, b);
    else if (run.p.wants_q())
      expect_good_factors<T>(run.p, run.a.view()[b], run.out, b);
  }
}

/// The variants that take a problem.
std::vector<std::string_view> variants_of(const Problem& p) {
  std::vector<std::string_view> names;
  for (const Variant& variant : backend().variants())
    if (variant.takes(p, backend().limits()).ok) names.push_back(variant.name);
  return names;
}

/// Every shape has a program of its own, which PoCL compiles for seconds. So everyday tests take
/// one shape in both types and every mode, one column and a wide one by reflectors in one type, and
/// the widest matrix in one type and mode. The tests below take 150x24.
template <class T>
bool is_run(std::string_view variant, Shape shape, Mode mode) {
  const bool is_by_gram = variant != "opencl/complex", is_double = sizeof(T) == 8;
  if (takes_all()) return !is_by_gram || shape.n == 1 || shape.m == 20 || shape.m == 33;
  if (shape.n == 1) return shape.m > 1 && !is_double;
  return shape.m == 20 || (shape.m == 33 && is_double == is_by_gram && mode == Mode::reduced) ||
         (shape.m == 8 && is_double && !is_by_gram);
}

TYPED_TEST(ComplexOnDevice, EveryKindIsWithinItsBarInEveryMode) {
  for (const Shape shape : shapes)
    for (const Mode mode : {Mode::reduced, Mode::complete, Mode::r, Mode::raw})
      for (const Sign sign : {Sign::positive, Sign::lapack}) {
        if (mode == Mode::raw && sign == Sign::positive) continue;
        const bool is_usual =
            (sign == Sign::positive) == (mode == Mode::reduced || mode == Mode::r);
        if (!takes_all() && shape.m != 20 && !is_usual) continue;
        SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " " << name_of(mode));
        const bool is_checked = shape.m == 20;  // device_check_test.cpp has more shapes
        Run<TypeParam> run(shape.m, shape.n, mode, sign, is_checked ? Check::full : Check::none);
        for (const std::string_view variant : variants_of(run.p)) {
          SCOPED_TRACE(variant);
          if (!is_run<TypeParam>(variant, shape, mode)) continue;
          run.factor(0, run.p.count, variant);
          expect_all_good(run);
        }
      }
}

/// A column that is not finite, or zero but for one NaN.
TYPED_TEST(ComplexOnDevice, ColumnsThatAreNotFiniteGiveFactorsThatAreNaN) {
  using Limits = std::numeric_limits<TypeParam>;
  Run<TypeParam> run(20, 7, Mode::reduced, Sign::positive);
  run.p.count = 4;
  for (index_t b = 0; b < run.p.count; ++b) {
    const auto a = run.a.view()[b];
    fill_matrix<std::complex<TypeParam>>({.kind = "gauss"}, static_cast<std::uint64_t>(b), a);
    const TypeParam entry = b == 1 ? -Limits::infinity() : b == 2 ? 0 : Limits::quiet_NaN();
    for (index_t i = 0; i < 20 && b > 0; ++i)
      a(i, 1) = i == 2 && b == 2 ? Limits::quiet_NaN() : entry;
  }
  for (const std::string_view variant : variants_of(run.p)) {
    SCOPED_TRACE(variant);
    run.factor(0, run.p.count, variant);
    for (index_t b = 0; b < run.p.count; ++b) {
      const MatrixReport& report = run.report[static_cast<std::size_t>(b)];
      EXPECT_EQ(report.status, b == 0 ? Status::unchecked : Status::non_finite) << b;
      for (const auto& factor : {run.q.view()[b], run.r.view()[b]})
        for (index_t j = 0; j < 7; ++j) EXPECT_EQ(std::isnan(factor(0, j).real()), b > 0) << b;
    }
  }
}

/// All rows are one of two, of one number each: beyond two columns only rounding errors are left.
/// Reflectors of these are nearly parallel, and gave up to 1.3 bars.
TEST(ComplexReflectors, StayOrthogonalWhereRowsRepeat) {
  SKIP_WITHOUT_OPENCL();
  complex_test::Run<double> run(24, 161, Mode::reduced, Sign::positive);
  std::mt19937_64 generator(1);
  for (int turn = 0; turn < 3; ++turn) {
    for (index_t b = 0; b < run.p.count; ++b) {
      const auto a = run.a.view()[b];
      fill_complex<double>("gauss", generator, a);
      for (index_t i = 0; i < a.rows; ++i)
        for (index_t j = 0; j < a.cols; ++j) a(i, j) = a(i < 12 ? 0 : 12, 0);
    }
    run.factor(0, run.p.count, "opencl/complex");
    for (index_t b = 0; b < run.p.count; ++b)
      expect_good_factors<double>(run.p, run.a.view()[b], run.out, b);
  }
}

/// The pivots of A^H A are small beside the rounding errors of its entries, of which there are two
/// copies.
TYPED_TEST(ComplexOnDevice, NearlyEqualColumnsAreTheProductOfTheirFactors) {
  Run<TypeParam> run(150, 24, Mode::reduced, Sign::positive);
  for (index_t b = 0; b + 1 < run.p.count; ++b)
    fill_matrix<std::complex<TypeParam>>({.kind = "near-collinear"}, static_cast<std::uint64_t>(b),
                                         run.a.view()[b]);
  for (const std::string_view variant : variants_of(run.p)) {
    if (variant == "opencl/complex") continue;
    SCOPED_TRACE(variant);
    run.factor(0, run.p.count, variant);
    expect_all_good(run);
  }
}

TYPED_TEST(ComplexOnDevice, BitsDoNotDependOnCompany) {
  for (const Shape shape : {Shape{20, 7}, {150, 24}}) {
    if (shape.m == 150 && sizeof(TypeParam) == 4 && !takes_all()) continue;
    Run<TypeParam> all(shape.m, shape.n, Mode::reduced, Sign::positive);
    Run<TypeParam> alone = all;
    for (const std::string_view variant : variants_of(all.p)) {
      SCOPED_TRACE(variant);
      all.factor(0, all.p.count, variant);
      for (index_t b = 0; b + 1 < all.p.count; b += 5) {
        alone.factor(b, 1, variant);
        EXPECT_TRUE(same_bits<std::complex<TypeParam>>(alone.q.view()[0], all.q.view()[b])) << b;
        EXPECT_TRUE(same_bits<std::complex<TypeParam>>(alone.r.view()[0], all.r.view()[b])) << b;
      }
    }
  }
}

/// The device checks them.
TYPED_TEST(ComplexOnDevice, MatricesTooLargeForTheHostToCheckAreTaken) {
  const Problem p{.count = 1,
                  .m = 2048,
                  .n = 512,
                  .type = complex_of(element_type<TypeParam>),
                  .mode = Mode::reduced};
  EXPECT_EQ(host_check_bytes(p), 0);
  Limits limits = backend().limits();
  EXPECT_TRUE(complex_variant().plan.takes(p, limits).ok);
  limits.has_float64 = false;
  EXPECT_FALSE(complex_variant().plan.takes(p, limits).ok);
}

/// By passes; a group takes what these leave, which is the matrix with NaN.
TEST(LargeComplexOnDevice, MatricesTooLargeForAGroupAreTaken) {
  SKIP_WITHOUT_OPENCL();
  if (!backend().limits().has_float64) GTEST_SKIP() << "the device has no float64";
  complex_test::Run<float> run(44000, 24, Mode::reduced, Sign::positive, Check::full);
  EXPECT_EQ(variants_of(run.p), std::vector<std::string_view>{"opencl/gram_passes"});
  const index_t first = run.p.count - 2;
  run.factor(first, 2, "opencl/gram_passes");
  EXPECT_EQ(run.report[0].status, Status::ok);
  expect_good_factors<float>(run.p, run.a.view()[first], run.out, 0);
  EXPECT_EQ(run.report[1].status, Status::non_finite);
}

TYPED_TEST(ComplexOnDevice, RealMatricesAreNotTaken) {
  Problem p{.count = 1, .m = 9, .n = 4, .type = element_type<TypeParam>};
  EXPECT_FALSE(complex_variant().plan.takes(p, backend().limits()).ok);
  p.type = complex_of(p.type);
  for (const GpuVariant& variant : gpu_variants())
    EXPECT_EQ(variant.plan.takes(p, backend().limits()).ok, variant.plan.numbers != Numbers::real);
}

}  // namespace
}  // namespace qrtool::test::complex_test
