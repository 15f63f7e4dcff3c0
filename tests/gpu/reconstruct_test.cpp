// SPDX-License-Identifier: Apache-2.0
// reconstruct_test.cpp: V, tau and signs from Q: LAPACK's own test on matrices of every kind, its
// signs where they are determined, and what is exact.
#include <algorithm>
#include <cmath>

#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/attack.hpp"
#include "tests/support/householder.hpp"

namespace qrtool::test::reconstruct_test {
namespace {

constexpr std::string_view name = "opencl/reconstruct";

struct Case {
  index_t m, n, per_family;
  ElementType type;

  friend std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.m << "x" << c.n << "_" << name_of(c.type);
  }
};

Problem problem_of(const Case& c, Mode mode, index_t count) {
  return {.count = count, .m = c.m, .n = c.n, .type = c.type, .mode = mode, .sign = Sign::lapack};
}

/// tau is in [1, 2], up to its rounding, or 0, and |V| at most 1.
template <class T>
void expect_reflectors(MatrixView<const T> v, MatrixView<const T> tau) {
  const double last_bit = 4 * static_cast<double>(std::numeric_limits<T>::epsilon());
  for (index_t k = 0; k < tau.cols; ++k) {
    const auto t = static_cast<double>(tau(0, k));
    EXPECT_TRUE(t == 0 || (t >= 1 - last_bit && t <= 2 + last_bit)) << k << ": " << t;
    for (index_t i = k + 1; i < v.rows; ++i) {
      ASSERT_LE(std::abs(static_cast<double>(v(i, k))), 1 + last_bit) << i << ", " << k;
    }
  }
}

class Reconstruct : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};

template <class T>
void expect_lapacks_test(const Case& c) {
  const AttackList list{attack_families(), c.per_family};
  const Problem p = problem_of(c, Mode::raw, list.count());
  Batch<T> a(p.count, p.m, p.n);
  list.fill(0, 2, a.view());
  Result<T> result = factor<T>(backend(), plan_for(p, name), a.view());
  index_t by_gram = 0;
  for (index_t b = 0; b < p.count; ++b) {
    SCOPED_TRACE(list.name_of(b));
    const Factors<T> out = result.factors();
    const Errors host = measure_on_host<T>(p, std::as_const(a).view()[b], out, b);
    const Bars bars = standard_bars(p.m, p.n, precision_of(p.type), host);
    EXPECT_EQ(judge(host, bars, true), Status::ok)
        << "residual " << host.residual / bars.residual << " orthogonality "
        << host.orthogonality / bars.orthogonality << " of the bar";
    EXPECT_EQ(result.report[static_cast<std::size_t>(b)].status, Status::ok);
    expect_reflectors<T>(out.v[b], out.tau[b]);
    by_gram += is_by_gram(result.report[static_cast<std::size_t>(b)].route);
  }
  const bool is_by_small = p.m < p.n;  // of these few rows
  EXPECT_GT(by_gram, is_by_small ? -1 : p.count / 8);
}

TEST_P(Reconstruct, EveryFamilyPassesLapacksTest) {
  const Case& c = GetParam();
  if (c.type == ElementType::float32) {
    expect_lapacks_test<float>(c);
  } else {
    expect_lapacks_test<double>(c);
  }
}

/// The diagonal of R has LAPACK's signs, in raw and where signs alone are asked for; R and Q are
/// those of the reference up to rounding.
template <class T>
void expect_lapacks_signs(const Case& c) {
  constexpr index_t count = 3;
  Batch<T> a(count, c.m, c.n);
  for (index_t b = 0; b < count; ++b) fill_matrix<T>({}, b, a.view()[b]);
  const BatchView<const T> view = std::as_const(a).view();
  std::vector<ReferenceQr> references;
  for (index_t b = 0; b < count; ++b) references.push_back(reference_qr<T>(view[b]));
  const double most = c.type == ElementType::float32 ? 1e-4 : 1e-12;
  for (const Mode mode : {Mode::raw, Mode::reduced, Mode::r}) {
    SCOPED_TRACE(name_of(mode));
    const Problem p = problem_of(c, mode, count);
    Result<T> result = factor<T>(backend(), plan_for(p, name), view);
    for (index_t b = 0; b < count; ++b) {
      const ReferenceQr& reference = references[static_cast<std::size_t>(b)];
      const MatrixView<T> r = mode == Mode::raw ? result.v.view()[b] : result.r.view()[b];
      for (index_t i = 0; i < p.k(); ++i) {
        EXPECT_EQ(std::signbit(r(i, i)), std::signbit(reference.r_at(i, i))) << i;
        for (index_t j = i; j < p.n; ++j)
          ASSERT_NEAR(r(i, j), reference.r_at(i, j), most * static_cast<double>(c.m));
      }
      if (mode == Mode::reduced) {
        for (index_t i = 0; i < p.m; ++i) {
          for (index_t j = 0; j < p.k(); ++j)
            ASSERT_NEAR(result.q.view()[b](i, j), reference.q_at(i, j), 100 * most);
        }
      }
      if (mode == Mode::raw) {
        for (index_t k = 0; k < p.k(); ++k)
          ASSERT_NEAR(result.tau.view()[b](0, k), reference.tau[k], 100 * most) << k;
      }
    }
  }
}

TEST_P(Reconstruct, SignsOfWellConditionedMatricesAreLapacks) {
  const Case& c = GetParam();
  if (c.m > 400) GTEST_SKIP() << "the reference has all columns of Q";
  if (c.type == ElementType::float32) {
    expect_lapacks_signs<float>(c);
  } else {
    expect_lapacks_signs<double>(c);
  }
}

/// A matrix alone has the bits that it has between others, of which one is refused and one is not
/// finite.
template <class T>
void expect_bits_without_company(const Case& c) {
  constexpr index_t count = 4;
  Batch<T> a(count, c.m, c.n);
  for (index_t b = 0; b < count; ++b) fill_matrix<T>({}, b, a.view()[b]);
  for (index_t i = 0; i < c.m; ++i) a.view()[1](i, c.n - 1) = a.view()[1](i, 0);
  a.view()[2](c.m / 2, c.n / 2) = std::numeric_limits<T>::quiet_NaN();
  const BatchView<const T> view = std::as_const(a).view();
  const Plan plan = plan_for(problem_of(c, Mode::raw, count), name);
  Result<T> together = factor<T>(backend(), plan, view);
  for (const index_t b : {0, 1, 3}) {
    Result<T> alone = factor<T>(backend(), plan, view.slice(b, 1));
    EXPECT_TRUE(same_factors(together, b, alone, 0)) << b;
  }
  EXPECT_EQ(together.report[2].status, Status::non_finite);
  for (const MatrixView<T>& x : {together.v.view()[2], together.tau.view()[2]}) {
    for (index_t i = 0; i < x.rows; ++i) {
      for (index_t j = 0; j < x.cols; ++j) ASSERT_TRUE(std::isnan(x(i, j))) << i << ", " << j;
    }
  }
}

TEST_P(Reconstruct, BitsDoNotDependOnCompany) {
  const Case& c = GetParam();
  if (c.type == ElementType::float32) {
    expect_bits_without_company<float>(c);
  } else {
    expect_bits_without_company<double>(c);
  }
}

/// LAPACK leaves a triangle as it is, with tau = 0.
template <class T>
void expect_triangles_to_stay(const Case& c) {
  enum { triangle, diagonal, zero, count };
  Batch<T> a(count, c.m, c.n);
  for (index_t b = 0; b < count; ++b) {
    fill_matrix<T>({}, b, a.view()[b]);
    for (index_t i = 0; i < c.m; ++i) {
      for (index_t j = 0; j < c.n; ++j) {
        const bool stays = b == triangle ? i <= j : b == diagonal && i == j;
        if (!stays) a.view()[b](i, j) = 0;
      }
    }
  }
  const BatchView<const T> view = std::as_const(a).view();
  Result<T> result = factor<T>(backend(), plan_for(problem_of(c, Mode::raw, count), name), view);
  for (index_t b = 0; b < count; ++b) {
    EXPECT_TRUE(same_bits<T>(result.v.view()[b], view[b])) << b;
    for (index_t k = 0; k < std::min(c.m, c.n); ++k) EXPECT_EQ(result.tau.view()[b](0, k), 0);
  }
}

TEST_P(Reconstruct, TrianglesStayAsTheyAre) {
  const Case& c = GetParam();
  if (c.m > 1024) GTEST_SKIP() << "opencl/large, which then factors them, has tau = 2";
  if (c.type == ElementType::float32) {
    expect_triangles_to_stay<float>(c);
  } else {
    expect_triangles_to_stay<double>(c);
  }
}

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return testing::PrintToString(info.param);
}

/// Square and tall matrices of one block and of several, wide ones, two squares of 128 columns, the
/// last of one column or more, and every variant that makes Q.
INSTANTIATE_TEST_SUITE_P(
    Shapes, Reconstruct,
    testing::Values(Case{17, 17, 2, ElementType::float32}, Case{17, 17, 2, ElementType::float64},
                    Case{64, 64, 1, ElementType::float64}, Case{20, 45, 1, ElementType::float32},
                    Case{300, 35, 1, ElementType::float64}, Case{2100, 12, 1, ElementType::float32},
                    Case{140, 129, 1, ElementType::float32},
                    Case{300, 150, 1, ElementType::float64}),
    name_of_case);

}  // namespace
}  // namespace qrtool::test::reconstruct_test
