// SPDX-License-Identifier: Apache-2.0
// complex_qr_test.cpp: both routes for complex matrices, in the kernels of every instruction set
// that this processor has.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "core/cpu/cpu_variants.hpp"
#include "core/eigen/eigen_qr.hpp"
#include "tests/support/complex_reference.hpp"
#include "tests/support/complex_routes.hpp"
#include "tests/support/expect_complex.hpp"

namespace qrtool {
namespace {

using test::ComplexMatrix, test::ComplexRoute;
using Shape = std::pair<index_t, index_t>;

/// A batch of matrices, the places for their factors in the middle of NaN, and the outcomes.
template <class T>
struct Factored {
  using Complex = std::complex<T>;
  static constexpr T nan = std::numeric_limits<T>::quiet_NaN();

  explicit Factored(const Problem& problem)
      : p(problem), a(p.count, p.m, p.n), outcomes(static_cast<std::size_t>(p.count)) {
    const auto place = [&](bool is_wanted, index_t rows, index_t cols) {
      if (!is_wanted) return BatchView<Complex>{};
      memory.emplace_back(p.count, rows + 1, cols + 3);
      const BatchView<Complex> all = memory.back().view();
      std::fill_n(all.data, p.count * all.stride, Complex(nan, nan));
      return BatchView<Complex>{all.data, p.count, rows, cols, all.ld, all.stride};
    };
    const bool is_raw = p.mode == Mode::raw;
    out = {.q = place(p.wants_q(), p.m, p.q_cols()),
           .r = place(!is_raw, p.r_rows(), p.n),
           .v = place(is_raw, p.m, p.n),
           .tau = place(is_raw, 1, p.k())};
  }

  void fill(const std::string& kind, unsigned seed) {
    std::mt19937_64 generator(seed);
    for (index_t b = 0; b < p.count; ++b) test::fill_complex<T>(kind, generator, a.view()[b]);
  }
  void factor(ComplexRoute route, std::string_view target = {}) {
    test::ComplexFactor<T> qr(p, route, target);
    for (index_t first = 0; first < p.count; first += qr.matrices_at_once()) {
      const index_t count = std::min(qr.matrices_at_once(), p.count - first);
      qr.factor(a.view().slice(first, count), slice(out, first, count),
                std::span(outcomes).subspan(static_cast<std::size_t>(first)));
    }
  }
  static ComplexMatrix dense(MatrixView<const Complex> x) { return ComplexMatrix(x); }

  /// Whether what lies between and behind the factors is as it was.
  bool is_padding_untouched() const {
    bool is_good = true;
    for (const auto& batch : memory) {
      const BatchView<Complex> all = batch.view();
      for (index_t b = 0; b < all.count; ++b)
        for (index_t i = 0; i < all.rows; ++i)
          for (index_t j = i + 1 < all.rows ? all.cols - 3 : 0; j < all.cols; ++j)
            is_good &= std::isnan(all[b](i, j).real()) && std::isnan(all[b](i, j).imag());
    }
    return is_good;
  }

  Problem p;
  Batch<Complex> a;
  std::vector<Batch<Complex>> memory;
  Factors<Complex> out;
  std::vector<batched::Outcome> outcomes;
};

/// Calls body(route, target) for the kernels of every instruction set.
template <class Body>
void for_each_route(Body body) {
  for (const batched::Kernels* kernels : batched_kernels())
    for (const ComplexRoute route : {ComplexRoute::packs, ComplexRoute::strips}) {
      SCOPED_TRACE(testing::Message() << kernels->target << " "
                                      << (route == ComplexRoute::packs ? "packs" : "strips"));
      body(route, kernels->target);
    }
}

template <class T>
void expect_good(const Factored<T>& run) {
  for (index_t b = 0; b < run.p.count; ++b) {
    SCOPED_TRACE(b);
    if (!run.outcomes[static_cast<std::size_t>(b)].r_fits) continue;
    const auto& expect =
        run.p.mode == Mode::raw ? test::expect_good_reflectors<T> : test::expect_good_factors<T>;
    expect(run.p, run.a.view()[b], run.out, b);
  }
  EXPECT_TRUE(run.is_padding_untouched());
}

template <class T>
class ComplexQrTest : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(ComplexQrTest, Types);

const std::vector<Shape> shapes{{1, 1},   {1, 7},   {9, 1},   {2, 2},   {3, 2},   {5, 5},
                                {7, 12},  {8, 8},   {16, 16}, {17, 15}, {15, 17}, {33, 20},
                                {20, 33}, {33, 33}, {48, 5},  {50, 47}};

TYPED_TEST(ComplexQrTest, EveryKindIsWithinItsBar) {
  unsigned seed = 1;
  for_each_route([&](ComplexRoute route, std::string_view target) {
    for (const std::string& kind : test::complex_kinds())
      for (const Shape& shape : shapes) {
        SCOPED_TRACE(testing::Message() << kind << " " << shape.first << "x" << shape.second);
        ++seed;
        Factored<TypeParam> run({.count = 3,
                                 .m = shape.first,
                                 .n = shape.second,
                                 .mode = seed % 3 == 0 ? Mode::complete : Mode::reduced,
                                 .sign = seed % 2 == 0 ? Sign::positive : Sign::lapack});
        run.fill(kind, seed);
        run.factor(route, target);
        expect_good(run);
      }
  });
}

TYPED_TEST(ComplexQrTest, ReflectorsPassLapacksTest) {
  unsigned seed = 1000;
  for_each_route([&](ComplexRoute route, std::string_view target) {
    for (const std::string& kind : test::complex_kinds())
      for (const Shape& shape : shapes) {
        SCOPED_TRACE(testing::Message() << kind << " " << shape.first << "x" << shape.second);
        Factored<TypeParam> run(
            {.count = 2, .m = shape.first, .n = shape.second, .mode = Mode::raw});
        run.fill(kind, ++seed);
        run.factor(route, target);
        expect_good(run);
      }
  });
}

/// The larger shapes that strips are for, across their blocks.
TYPED_TEST(ComplexQrTest, LargerMatricesAreWithinTheirBar) {
  for (const char* kind : {"gauss", "constant", "clustered", "graded rows", "alike rows"})
    for (const Shape& shape : {Shape{130, 128}, {257, 65}, {70, 260}, {1500, 12}}) {
      SCOPED_TRACE(testing::Message() << kind << " " << shape.first << "x" << shape.second);
      Factored<TypeParam> run({.count = 1, .m = shape.first, .n = shape.second});
      EXPECT_EQ(test::complex_route(run.p), ComplexRoute::strips);
      run.fill(kind, 3);
      run.factor(ComplexRoute::strips);
      expect_good(run);
    }
}

/// The factors of a well-conditioned matrix are those of the textbook, entry by entry.
template <class T>
void expect_near(MatrixView<std::complex<T>> found, const ComplexMatrix& expected, double size) {
  const double most = (sizeof(T) == 4 ? 2e-5 : 4e-14) * size;
  for (index_t i = 0; i < found.rows; ++i)
    for (index_t j = 0; j < found.cols; ++j) {
      const ComplexMatrix::Entry x(found(i, j).real(), found(i, j).imag());
      ASSERT_LE(static_cast<double>(std::abs(x - expected(i, j))), most) << i << " " << j;
    }
}

TYPED_TEST(ComplexQrTest, LapacksSignsAreThoseOfTheTextbook) {
  for_each_route([&](ComplexRoute route, std::string_view target) {
    for (const Shape& shape : {Shape{3, 3}, {20, 12}, {12, 20}, {40, 19}}) {
      SCOPED_TRACE(testing::Message() << shape.first << "x" << shape.second);
      Problem p{.count = 1, .m = shape.first, .n = shape.second, .sign = Sign::lapack};
      Factored<TypeParam> run(p);
      p.mode = Mode::raw;
      Factored<TypeParam> raw(p);
      run.fill("gauss", 5);
      raw.fill("gauss", 5);
      run.factor(route, target);
      raw.factor(route, target);
      const auto expected = test::complex_reference_qr(run.dense(run.a.view()[0]));
      expect_near(run.out.q[0], expected.q, 1);
      expect_near(run.out.r[0], expected.r, 20);
      ComplexMatrix tau(1, p.k());
      for (index_t j = 0; j < p.k(); ++j) tau(0, j) = expected.tau[static_cast<std::size_t>(j)];
      expect_near(raw.out.tau[0], tau, 1);
    }
  });
}

TEST(ComplexQr, FactorsAreThoseOfEigen) {
  Factored<double> run({.count = 1, .m = 30, .n = 18, .sign = Sign::lapack});
  run.fill("gauss", 6);
  run.factor(ComplexRoute::packs);
  Problem r_alone = run.p;
  r_alone.mode = Mode::r;
  const Batch<std::complex<double>> r(1, 18, 18);
  EigenQr<std::complex<double>>(r_alone).factor(run.a.view()[0],
                                                {.q = {}, .r = r.view()[0], .v = {}, .tau = {}});
  for (index_t i = 0; i < 18; ++i)
    for (index_t j = i; j < 18; ++j)
      ASSERT_LE(std::abs(r.view()[0](i, j) - run.out.r[0](i, j)), 1e-12) << i << " " << j;
}

template <class T>
void expect_same_bits(const MatrixView<std::complex<T>>& x, const MatrixView<std::complex<T>>& y) {
  for (index_t i = 0; i < x.rows; ++i)
    ASSERT_EQ(std::memcmp(&x(i, 0), &y(i, 0), static_cast<std::size_t>(x.cols) * sizeof(y(0, 0))),
              0)
        << i;
}

/// Factors the matrices from `first` on by cpu/complex on some threads.
template <class T>
std::vector<MatrixReport> factor_on_threads(Factored<T>& run, index_t first, index_t count,
                                            int threads) {
  Plan plan;
  plan.problem = run.p;
  plan.problem.type = element_type<std::complex<T>>;
  plan.problem.check = Check::none;
  plan.threads = threads;
  std::vector<MatrixReport> reports(static_cast<std::size_t>(count));
  make_complex<std::complex<T>>(plan)->run(run.a.view().slice(first, count),
                                           slice(run.out, first, count), reports);
  return reports;
}

TYPED_TEST(ComplexQrTest, NeitherCompanyNorThreadsChangeBits) {
  for (const Shape& shape : {Shape{6, 4}, {23, 17}, {200, 100}}) {
    SCOPED_TRACE(testing::Message() << shape.first << "x" << shape.second);
    const Problem p{.count = 13, .m = shape.first, .n = shape.second};
    Factored<TypeParam> alone(p), together(p);
    alone.fill("gauss", 8);
    const MatrixView<std::complex<TypeParam>> deficient = alone.a.view()[3];
    for (index_t i = 0; i < p.m; ++i) deficient(i, 1) = 0;
    std::copy_n(alone.a.view().data, p.count * p.m * p.n, together.a.view().data);
    together.a.view()[5](p.m - 1, 2) = {0, std::numeric_limits<TypeParam>::quiet_NaN()};
    together.a.view()[7](0, 0) = {std::numeric_limits<TypeParam>::infinity(), 0};
    const std::vector<MatrixReport> reports = factor_on_threads(together, 0, p.count, 3);
    for (index_t b = p.count - 1; b >= 0; --b) {
      SCOPED_TRACE(b);
      EXPECT_EQ(factor_on_threads(alone, b, 1, 1)[0].status, Status::unchecked);
      const bool is_finite = b != 5 && b != 7;
      EXPECT_EQ(reports[static_cast<std::size_t>(b)].status,
                is_finite ? Status::unchecked : Status::non_finite);
      if (is_finite) {
        expect_same_bits(alone.out.q[b], together.out.q[b]);
        expect_same_bits(alone.out.r[b], together.out.r[b]);
      } else {
        EXPECT_TRUE(std::isnan(together.out.q[b](0, 0).real()));
        EXPECT_TRUE(std::isnan(together.out.r[b](p.k() - 1, p.n - 1).imag()));
      }
    }
  }
}

TYPED_TEST(ComplexQrTest, PowersOfTwoScaleRAlone) {
  for_each_route([&](ComplexRoute route, std::string_view target) {
    const Problem p{.count = 1, .m = 21, .n = 18};
    Factored<TypeParam> run(p), larger(p);
    run.fill("gauss", 9);
    for (index_t e = 0; e < p.m * p.n; ++e)
      larger.a.view().data[e] = run.a.view().data[e] * TypeParam(0x1p90);
    run.factor(route, target);
    larger.factor(route, target);
    expect_same_bits(run.out.q[0], larger.out.q[0]);
    EXPECT_EQ(run.outcomes[0].scale + 90, larger.outcomes[0].scale);
    for (index_t i = 0; i < p.n; ++i)
      for (index_t j = i; j < p.n; ++j)
        EXPECT_EQ(run.out.r[0](i, j) * TypeParam(0x1p90), larger.out.r[0](i, j));
  });
}

}  // namespace
}  // namespace qrtool
