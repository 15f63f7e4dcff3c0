// SPDX-License-Identifier: Apache-2.0
// further_passes_test.cpp: matrices that the guard of a variant by Gram matrices refuses, whatever
// their rank and scale, go on by further passes, are right, and keep what is exact.
#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <ostream>
#include <vector>

#include "gpu/model/tuning.hpp"
#include "gpu/registry.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/attack.hpp"

namespace qrtool::test::further_passes_test {
namespace {

struct FurtherCase {
  std::string variant;
  index_t m, n;
  ElementType type;

  friend std::ostream& operator<<(std::ostream& out, const FurtherCase& c) {
    return out << c.variant << "_" << c.m << "x" << c.n << "_" << name_of(c.type);
  }
};

using Matrix = MatrixView<double>;

void gauss(index_t number, Matrix a) { fill_matrix<double>({.kind = "gauss"}, number, a); }

/// a := a product of the rank, and integers so that it is exact.
void fill_rank(index_t rank, Matrix a) {
  Batch<double> left(1, a.rows, std::max<index_t>(rank, 1)), right(1, left.view().cols, a.cols);
  gauss(1, left.view()[0]);
  gauss(2, right.view()[0]);
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < a.cols; ++j) {
      a(i, j) = 0;
      for (index_t k = 0; k < rank; ++k)
        a(i, j) += std::round(4 * left.view()[0](i, k)) * std::round(4 * right.view()[0](k, j));
    }
  }
}

template <class Entry>
void fill_with(Matrix a, Entry entry) {
  gauss(3, a);
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = entry(i, j, a(i, j));
  }
}

/// Entries that squares of would leave the range of the type.
double far(index_t i, const FurtherCase& c) {
  const double most = c.type == ElementType::float32 ? 30 : 250;
  return std::pow(10.0, most * std::sin(static_cast<double>(i)));
}

/// Matrices of which A'A alone is not enough, by name.
const std::map<std::string, void (*)(const FurtherCase&, Matrix)> refused{
    {"deficient by one", [](const FurtherCase& c, Matrix a) { fill_rank(c.n - 1, a); }},
    {"half the rank", [](const FurtherCase& c, Matrix a) { fill_rank(c.n / 2, a); }},
    {"rank one", [](const FurtherCase&, Matrix a) { fill_rank(1, a); }},
    {"zero", [](const FurtherCase&, Matrix a) { fill_rank(0, a); }},
    {"constant", [](const FurtherCase&,
                    Matrix a) { fill_with(a, [](index_t, index_t, double) { return 0.7; }); }},
    {"copies",
     [](const FurtherCase&, Matrix a) {
       fill_with(a, [&](index_t i, index_t j, double x) { return j < 3 ? x : a(i, j % 3); });
     }},
    {"zero columns",
     [](const FurtherCase&, Matrix a) {
       fill_with(a, [](index_t, index_t j, double x) { return j % 5 == 2 ? 0 : x; });
     }},
    {"dummies",
     [](const FurtherCase&, Matrix a) {
       fill_with(a, [&](index_t i, index_t j, double) {
         return j == 0 || i % (a.cols - 1) == j - 1 ? 1.0 : 0.0;
       });
     }},
    {"one dependent column of wild scales",
     [](const FurtherCase& c, Matrix a) {
       fill_rank(c.n - 1, a);
       for (index_t i = 0; i < a.rows; ++i) {
         for (index_t j = 0; j < a.cols; ++j) a(i, j) *= far(j, c);
       }
     }},
    {"rows of wild scales",
     [](const FurtherCase& c, Matrix a) {
       // The rows that count are fewer than the columns.
       fill_with(a, [&](index_t i, index_t, double x) {
         return x * (i < c.n / 2 ? far(i, c) : 1e-30 * far(c.n, c));
       });
     }},
    {"rotated unit triangle",
     [](const FurtherCase&, Matrix a) {
       fill_with(a, [](index_t i, index_t j, double) {
         // A reflector of ones times the triangle with -1 above its diagonal.
         return i == j ? 1.0 : i < j ? -1.0 : i == j + 1 ? 0x1p-20 : 0.0;
       });
     }},
    {"Hilbert",
     [](const FurtherCase&, Matrix a) {
       fill_with(a,
                 [](index_t i, index_t j, double) { return 1 / static_cast<double>(i + j + 1); });
     }},
};

/// Is its own R, up to signs; its columns are nearly dependent.
void fill_triangle(Matrix a) {
  fill_with(a, [](index_t i, index_t j, double) {
    return i > j ? 0.0 : i < j ? -1.0 : i % 3 == 1 ? -1.0 : i % 7 == 0 ? 0.0 : 1.0;
  });
}

const Variant& variant_of(const FurtherCase& c) {
  return *std::ranges::find(backend().variants(), c.variant, &Variant::name);
}

template <class T>
void expect_right(const FurtherCase& c) {
  const auto count = std::ssize(refused) + 3;
  Problem p{.count = count, .m = c.m, .n = c.n, .type = c.type};
  Batch<double> wide(count, c.m, c.n);
  index_t number = 0;
  for (const auto& [name, fill] : refused) fill(c, wide.view()[number++]);
  fill_triangle(wide.view()[count - 3]);
  gauss(7, wide.view()[count - 2]);
  gauss(8, wide.view()[count - 1]);  // reflectors see that it is not finite
  wide.view()[count - 1](c.m - 1, 3) = NAN;
  Batch<T> a(count, c.m, c.n);
  for (index_t b = 0; b < count; ++b) {
    for (index_t i = 0; i < c.m; ++i) {
      for (index_t j = 0; j < c.n; ++j) a.view()[b](i, j) = static_cast<T>(wide.view()[b](i, j));
    }
  }
  backend().engine().most_unread_launches = 100;
  Result<T> result = factor<T>(backend(), plan_for(p, c.variant), a.view());
  number = 0;
  for (const auto& [name, fill] : refused) {
    const MatrixReport& line = result.report[static_cast<std::size_t>(number++)];
    EXPECT_EQ(line.status, Status::ok) << name << ' ' << line.residual << ' ' << line.orthogonality;
    EXPECT_EQ(line.route, Route::further_passes) << name;
    EXPECT_EQ(line.lower, 0) << name;
  }
  EXPECT_LT(result.report[static_cast<std::size_t>(count - 2)].route, Route::further_passes);
  EXPECT_EQ(result.report.back().status, Status::non_finite);

  // A triangle stays exact.
  for (index_t i = 0; i < c.m; ++i) {
    for (index_t j = 0; j < c.n; ++j) {
      const T sign = a.view()[count - 3](j, j) < 0 ? T(-1) : T(1);
      ASSERT_EQ(result.q.view()[count - 3](i, j), i == j ? sign : T(0)) << i << ' ' << j;
    }
  }
  // Zero columns stay exact.
  number = std::distance(refused.begin(), refused.find("zero columns"));
  for (index_t i = 0; i < c.n; ++i) EXPECT_EQ(result.r.view()[number](i, 7), 0);

  // When all kernels are built the host need not read the routes of `gram`, to the rows that
  // `small` takes, and of gram_group.
  FactorEngine& engine = backend().engine();
  const Plan plan = plan_for(p, c.variant);
  const GpuVariant& variant = gpu_variant(*plan.variant);
  const DeviceBuffers buffers =
      engine.pool.get(p, plan.params, matrix_bytes(variant, p), /*count=*/1, /*set=*/0);
  engine.prepare_refused(variant, buffers.job, /*builds=*/true);
  const bool is_unread =
      std::ranges::any_of(engine.ready_for_refused, [&](const RefusedKernels& ready) {
        return ready.problem.m == c.m && ready.problem.n == c.n;
      });
  const bool is_by_warp = c.variant == "opencl/gram" && c.m <= tuning::gram_small_rows;
  EXPECT_EQ(is_unread, is_by_warp || c.variant == "opencl/gram_group");
  Result<T> second = factor<T>(backend(), plan_for(p, c.variant), a.view());
  for (index_t b = 0; b < count; ++b) EXPECT_TRUE(same_factors(second, b, result, b)) << b;

  // A matrix has the same bits alone.
  for (const index_t b : {index_t{0}, index_t{4}, count - 3}) {
    p.count = 1;
    Result<T> alone = factor<T>(backend(), plan_for(p, c.variant), a.view().slice(b, 1));
    EXPECT_TRUE(same_factors(alone, 0, result, b)) << b;
  }
  // R does not depend on whether Q is wanted.
  p.count = count;
  p.mode = Mode::r;
  if (!variant_of(c).fits(p, backend().limits()).ok) return;
  Result<T> r = factor<T>(backend(), plan_for(p, c.variant), a.view());
  for (index_t b = 0; b + 2 < count; ++b) {
    const auto route = r.report[static_cast<std::size_t>(b)].route;
    if (route != Route::further_passes) continue;  // R alone may need one pass only
    for (index_t i = 0; i < c.n; ++i) {
      for (index_t j = 0; j < c.n; ++j)
        ASSERT_EQ(r.r.view()[b](i, j), result.r.view()[b](i, j)) << b << ' ' << i << ' ' << j;
    }
  }
}

class FurtherPasses : public testing::TestWithParam<FurtherCase> {};

TEST_P(FurtherPasses, AreRightAndKeepWhatIsExact) {
  SKIP_WITHOUT_OPENCL();
  const FurtherCase& c = GetParam();
  const Problem p{.count = 1, .m = c.m, .n = c.n, .type = c.type};
  const Fit fit = variant_of(c).fits(p, backend().limits());
  if (!fit.ok) GTEST_SKIP() << fit.reason;
  if (c.type == ElementType::float32) {
    expect_right<float>(c);
  } else {
    expect_right<double>(c);
  }
}

template <class T>
void expect_no_reflectors(const FurtherCase& c) {
  std::vector<AttackFamily> families;
  for (const char* name : {"radial-kernel", "exponentials", "cauchy", "vandermonde-all",
                           "powers-of-two", "one-or-two-rows"})
    families.push_back(attack_family(name));
  const AttackList list{families, 3};
  const Problem p{.count = list.count(), .m = c.m, .n = c.n, .type = c.type};
  Batch<T> a(p.count, p.m, p.n);
  list.fill(0, 2, a.view());
  const Result<T> result = factor<T>(backend(), plan_for(p, c.variant), a.view());
  for (index_t b = 0; b < p.count; ++b) {
    const MatrixReport& line = result.report[static_cast<std::size_t>(b)];
    EXPECT_EQ(line.status, Status::ok) << list.name_of(b);
    EXPECT_EQ(line.tries, 1) << list.name_of(b);
    EXPECT_TRUE(line.route != Route::reflectors && line.route != Route::only) << list.name_of(b);
  }
}

TEST_P(FurtherPasses, FinishForTheFamiliesThatAreHardest) {
  SKIP_WITHOUT_OPENCL();
  const FurtherCase& c = GetParam();
  const Problem p{.count = 1, .m = c.m, .n = c.n, .type = c.type};
  const Fit fit = variant_of(c).fits(p, backend().limits());
  if (!fit.ok) GTEST_SKIP() << fit.reason;
  if (c.type == ElementType::float32) {
    expect_no_reflectors<float>(c);
  } else {
    expect_no_reflectors<double>(c);
  }
}

/// A warp for each matrix, with all or a part of its blocks in registers; to 128 columns, and two
/// squares; three slabs of rows; a group for each matrix.
INSTANTIATE_TEST_SUITE_P(
    Opencl, FurtherPasses,
    testing::Values(FurtherCase{"opencl/gram", 530, 40, ElementType::float64},
                    FurtherCase{"opencl/gram", 64, 64, ElementType::float64},
                    FurtherCase{"opencl/gram", 81, 67, ElementType::float64},
                    FurtherCase{"opencl/gram", 90, 33, ElementType::float32},
                    FurtherCase{"opencl/gram", 96, 80, ElementType::float32},
                    FurtherCase{"opencl/gram_twice", 1300, 40, ElementType::float64},
                    FurtherCase{"opencl/gram_tiles", 680, 100, ElementType::float32},
                    FurtherCase{"opencl/gram_tiles", 480, 140, ElementType::float32},
                    FurtherCase{"opencl/gram_twice", 530, 140, ElementType::float64},
                    FurtherCase{"opencl/tall", 3300, 40, ElementType::float32},
                    FurtherCase{"opencl/tall", 2600, 100, ElementType::float32},
                    FurtherCase{"opencl/gram_group", 300, 70, ElementType::float32},
                    FurtherCase{"opencl/gram_group", 260, 70, ElementType::float64}));

/// qrtool(7) says so, for gram_twice to 2^440. Beyond that it takes another way, whose factors are
/// good.
TEST(PowersOfTwo, ChangeNoBitButExponents) {
  SKIP_WITHOUT_OPENCL();
  for (const auto& [variant, m, n, most] : {std::tuple{"opencl/gram", 40, 16, 1000},
                                            {"opencl/gram_group", 150, 70, 1000},
                                            {"opencl/gram_twice", 20, 20, 430}}) {
    const FurtherCase c{variant, m, n, ElementType::float64};
    const Problem p{.count = 9, .m = m, .n = n, .type = c.type};
    if (!variant_of(c).fits(p, backend().limits()).ok) continue;
    constexpr std::array powers{0, 160, -160, 240, -240, 430, -430, 1000, -1000};
    Batch<double> a(p.count, m, n);
    for (index_t b = 0; b < p.count; ++b)
      fill_with(a.view()[b], [&](index_t, index_t, double x) { return std::ldexp(x, powers[b]); });
    Result<double> result = factor<double>(backend(), plan_for(p, variant), a.view());
    for (index_t b = 0; b < p.count; ++b) {
      SCOPED_TRACE(testing::Message() << variant << " 2^" << powers[b]);
      const MatrixReport& line = result.report[b];
      EXPECT_EQ(line.status, Status::ok);
      if (std::abs(powers[b]) > most) continue;
      EXPECT_EQ(line.route, Route::second_pass);
      for (index_t i = 0; i < n; ++i)
        for (index_t j = 0; j < n; ++j)
          result.r.view()[b](i, j) = std::ldexp(result.r.view()[b](i, j), -powers[b]);
      EXPECT_TRUE(same_factors(result, b, result, 0));
    }
  }
}

/// The upper words of numbers below 2^-1042 are zero, and the guards look at no more.
TEST(EntriesWithoutAnUpperWord, AreMeasured) {
  SKIP_WITHOUT_OPENCL();
  for (const auto& [variant, m, n] :
       {std::tuple{"opencl/gram", 530, 40}, {"opencl/gram_group", 150, 70}}) {
    SCOPED_TRACE(variant);
    const FurtherCase c{variant, m, n, ElementType::float64};
    const Problem p{.count = 3, .m = m, .n = n, .type = c.type};
    if (!variant_of(c).fits(p, backend().limits()).ok) continue;
    Batch<double> a(p.count, m, n);
    for (index_t b = 0; b < p.count; ++b) gauss(b, a.view()[b]);
    const MatrixView<double> tiny = a.view()[1];
    fill_with(tiny, [](index_t, index_t, double x) { return 1e-320 * x; });
    Result<double> result = factor<double>(backend(), plan_for(p, variant), a.view());
    const MatrixReport& report = result.report[1];
    const Errors on_host = measure_on_host<double>(p, tiny, result.factors(), 1);
    EXPECT_EQ(report.status, Status::ok);
    EXPECT_EQ(report.scale, magnitude_of<double>(tiny).scale());
    EXPECT_GT(on_host.residual, 1e-6) << "R is rounded to multiples of 2^-1074";
    EXPECT_NEAR(report.residual, on_host.residual, 1e-3 * on_host.residual);
  }
}

}  // namespace
}  // namespace qrtool::test::further_passes_test
