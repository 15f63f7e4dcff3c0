// SPDX-License-Identifier: Apache-2.0
// attack_test.cpp: a few matrices of every attack family, factored by the variants that run on any
// device. The program qrtool_attack factors any number of them with the variants of a GPU.
#include "tests/support/attack.hpp"

#include <array>
#include <cmath>
#include <numeric>
#include <ostream>
#include <random>
#include <set>
#include <vector>

#include "core/factor/second_try.hpp"
#include "gpu/registry.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/judge.hpp"

namespace qrtool::test::attack_test {
namespace {

/// The matrices that a case runs. Each case has its own kernels, for which PoCL takes seconds.
struct AttackCase {
  std::string variant;
  AttackShape shape;
  Mode mode;
  index_t per_family;
  ElementType type = ElementType::float32;

  friend std::ostream& operator<<(std::ostream& out, const AttackCase& c) {
    return out << c.variant << "_" << c.shape.m << "x" << c.shape.n << "_" << name_of(c.mode) << "_"
               << name_of(c.type);
  }
};

/// For every day: each variant and each of its bodies with a few matrices of every family.
const std::vector<AttackCase> everyday_cases{
    {"gram", {40, 16}, Mode::reduced, 3},
    {"gram", {96, 96}, Mode::reduced, 1},
    {"gram_tiles", {120, 100}, Mode::reduced, 1},
    {"tall", {2000, 16}, Mode::reduced, 1},
    {"large", {17, 17}, Mode::reduced, 2, ElementType::float64},
    {"large", {40, 36}, Mode::reduced, 1},
    {"tiny", {8, 8}, Mode::reduced, 20},
    {"tiny", {8, 5}, Mode::reduced, 6, ElementType::float64},
    {"small", {48, 40}, Mode::reduced, 1},
    {"blocked", {80, 40}, Mode::reduced, 1},
    {"vector", {33, 20}, Mode::reduced, 2},
    {"gram", {40, 16}, Mode::reduced, 2, ElementType::float64},
    {"gram_twice", {20, 20}, Mode::reduced, 2, ElementType::float64},
    {"gram_twice", {140, 129}, Mode::reduced, 1, ElementType::float64},
    {"leading", {20, 60}, Mode::reduced, 1},
    {"reconstruct", {33, 20}, Mode::raw, 1},
};

/// Takes minutes.
const std::vector<AttackCase> long_cases{
    {"gram", {40, 16}, Mode::reduced, 20},
    {"gram", {40, 16}, Mode::r, 20},
    {"gram", {16, 12}, Mode::reduced, 20},
    {"gram", {64, 48}, Mode::reduced, 8},
    {"gram", {90, 80}, Mode::reduced, 4},
    {"gram", {96, 96}, Mode::reduced, 4},
    {"gram", {110, 81}, Mode::reduced, 4},
    {"gram", {100, 90}, Mode::r, 4},
    {"gram_tiles", {120, 100}, Mode::reduced, 4},
    {"gram_tiles", {140, 129}, Mode::r, 2},
    {"tall", {2000, 16}, Mode::reduced, 6},
    {"tall", {2000, 16}, Mode::r, 6},
    {"large", {200, 130}, Mode::reduced, 2},
    {"large", {150, 130}, Mode::reduced, 1},
    {"large", {17, 17}, Mode::reduced, 21, ElementType::float64},
    {"tiny", {8, 8}, Mode::reduced, 20},
    {"tiny", {7, 3}, Mode::reduced, 20},
    {"tiny", {8, 5}, Mode::reduced, 20, ElementType::float64},
    {"small", {48, 40}, Mode::reduced, 6},
    {"blocked", {80, 40}, Mode::reduced, 4},
    {"vector", {33, 20}, Mode::reduced, 10},
    {"gram", {40, 16}, Mode::reduced, 20, ElementType::float64},
    {"gram", {90, 80}, Mode::reduced, 4, ElementType::float64},
    {"gram_group", {130, 65}, Mode::reduced, 8},
    {"gram_group", {130, 128}, Mode::reduced, 2, ElementType::float64},
    {"gram_twice", {20, 20}, Mode::reduced, 12, ElementType::float64},
    {"gram_twice", {140, 129}, Mode::reduced, 2, ElementType::float64},
    {"gram_twice", {300, 257}, Mode::reduced, 1, ElementType::float64},
    {"gram_twice", {4000, 12}, Mode::reduced, 4, ElementType::float64},
    {"gram", {48, 16}, Mode::r, 4, ElementType::float64},
    {"gram_twice", {300, 40}, Mode::r, 2, ElementType::float64},
    {"leading", {20, 60}, Mode::reduced, 4},
    {"reconstruct", {33, 20}, Mode::raw, 4},
};

class Attack : public testing::TestWithParam<AttackCase> {};

template <class T>
void expect_every_matrix_meets_its_bar(const AttackCase& attack, const Problem& p,
                                       const AttackList& list) {
  Batch<T> a(p.count, p.m, p.n);
  list.fill(0, 2, a.view());
  Result<T> result = factor<T>(backend(), plan_for(p, "opencl/" + attack.variant), a.view());
  int one_pass = 0;
  for (index_t b = 0; b < p.count; ++b) {
    MatrixReport& report = result.report[static_cast<std::size_t>(b)];
    if (p.mode != Mode::raw) measure_r<T>(p, a.view()[b], result.factors().r[b], report);
    const WorstErrors errors = errors_in_bars(p, report);
    EXPECT_EQ(errors.above, 0) << list.name_of(b) << ": " << errors;
    one_pass += report.route == Route::first_pass;
  }
  // Some of the families allow one pass in these shapes.
  const bool is_tall = p.m > 20 * p.n;
  const bool is_all = list.families.size() == attack_families().size();
  if (is_all && p.type == ElementType::float64 && (is_tall || !p.wants_q())) {
    EXPECT_GT(one_pass, 0);
  }
}

/// The backward error of R alone cannot be measured in float64 where R is float64 and the condition
/// is large. But R of two passes is that of a run with Q, which is measured. No matrix of these
/// shapes takes one pass.
TEST(AttackInFloat64, RAloneIsTheROfARunWithQ) {
  SKIP_WITHOUT_OPENCL();
  const AttackList list{attack_families(), 2};
  for (const auto& [variant, shape] : {std::pair{"opencl/gram", AttackShape{24, 20}},
                                       {"opencl/gram_twice", AttackShape{140, 129}}}) {
    Problem p{.count = list.count(), .m = shape.m, .n = shape.n, .type = ElementType::float64};
    Batch<double> a(p.count, p.m, p.n);
    list.fill(0, 2, a.view());
    const Result<double> with_q = factor<double>(backend(), plan_for(p, variant), a.view());
    p.mode = Mode::r;
    const Result<double> alone = factor<double>(backend(), plan_for(p, variant), a.view());
    EXPECT_EQ(with_q.r.data(), alone.r.data()) << variant;
  }
}

/// Factors matrices of some families; there is no second try.
void attack_with(const AttackCase& attack, std::span<const AttackFamily> families) {
  const AttackList list{families, attack.per_family};
  const Problem p{.count = list.count(),
                  .m = attack.shape.m,
                  .n = attack.shape.n,
                  .type = attack.type,
                  .mode = attack.mode};
  for (const GpuVariant& known : gpu_variants()) {
    if (known.plan.name != "opencl/" + attack.variant) continue;
    const Fit fit = known.plan.fits(p, backend().limits());
    if (!fit.ok) GTEST_SKIP() << fit.reason;
  }
  if (attack.type == ElementType::float64) {
    expect_every_matrix_meets_its_bar<double>(attack, p, list);
  } else {
    expect_every_matrix_meets_its_bar<float>(attack, p, list);
  }
}

TEST_P(Attack, EveryMatrixMeetsItsBar) {
  SKIP_WITHOUT_OPENCL();
  attack_with(GetParam(), attack_families());
}

/// Rows that repeat, whose products round alike, need many rows.
class AlikeRows : public testing::TestWithParam<AttackCase> {};

TEST_P(AlikeRows, EveryMatrixMeetsItsBar) {
  SKIP_WITHOUT_OPENCL();
  attack_with(GetParam(), families_of_alike_rows());
}

/// An orthogonal matrix with n rows, by Gram and Schmidt, twice for each row.
std::vector<std::vector<double>> orthonormal_rows(index_t n, std::mt19937_64& random) {
  std::normal_distribution<> normal;
  std::vector<std::vector<double>> rows;
  while (std::ssize(rows) < n) {
    std::vector<double> row(static_cast<std::size_t>(n));
    for (double& x : row) x = normal(random);
    for (int pass = 0; pass < 2; ++pass) {
      for (const std::vector<double>& other : rows) {
        const double share = std::inner_product(row.begin(), row.end(), other.begin(), 0.0);
        for (std::size_t j = 0; j < row.size(); ++j) row[j] -= share * other[j];
      }
    }
    const double norm = std::sqrt(std::inner_product(row.begin(), row.end(), row.begin(), 0.0));
    for (double& x : row) x /= norm;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Of these matrices two passed the guard of `gram` when it took rounding errors to have mean zero:
/// one in the first pass with 1.5 bars, one in the second with 7000.
TEST(AlikeRowsInGram, EveryMatrixMeetsItsBar) {
  SKIP_WITHOUT_OPENCL();
  attack_with({"gram", {2000, 40}, Mode::reduced, 28}, families_of_alike_rows().first(1));
}

/// Below a small multiple of an orthogonal matrix, all rows are the same. The guard of `gram_tiles`
/// accepted these matrices when it took rounding errors to have mean zero; they had 1.04 to 2.33
/// bars.
TEST(AlikeRowsInGramTiles, EveryMatrixMeetsItsBar) {
  SKIP_WITHOUT_OPENCL();
  SKIP_WITHOUT_VARIANT("opencl/gram_tiles");
  constexpr std::array scales{0.0041, 0.0047, 0.0053, 0.006};
  const Problem p{.count = std::ssize(scales), .m = 1500, .n = 100};
  Batch<float> a(p.count, p.m, p.n);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<> uniform(1, 2);
  for (index_t b = 0; b < p.count; ++b) {
    const MatrixView<float> matrix = a.view()[b];
    const std::vector<std::vector<double>> basis = orthonormal_rows(p.n, random);
    for (index_t i = 0; i < p.n; ++i) {
      for (index_t j = 0; j < p.n; ++j) {
        const auto row = static_cast<std::size_t>(i), col = static_cast<std::size_t>(j);
        matrix(i, j) = static_cast<float>(scales[static_cast<std::size_t>(b)] * basis[row][col]);
      }
    }
    for (index_t j = 0; j < p.n; ++j) {
      const auto x = static_cast<float>(uniform(random));
      for (index_t i = p.n; i < p.m; ++i) matrix(i, j) = x;
    }
  }
  const Result<float> result = factor<float>(backend(), plan_for(p, "opencl/gram_tiles"), a.view());
  for (index_t b = 0; b < p.count; ++b) {
    const WorstErrors errors = errors_in_bars(p, result.report[static_cast<std::size_t>(b)]);
    EXPECT_EQ(errors.above, 0) << "scale " << scales[static_cast<std::size_t>(b)] << ": " << errors;
  }
}

/// In Q1'Q1 of a row that repeats, every step of the sums on the diagonal may round the same way.
/// The worst of these matrices then had 0.99 of the bar in its second pass in `gram`, and 1.5 bars
/// in `gram_twice`. With sums in parts all of them stay below half of the bar.
class AlikeRowsInFloat64 : public testing::TestWithParam<AttackCase> {};

TEST_P(AlikeRowsInFloat64, TheSecondPassIsFarBelowTheBar) {
  SKIP_WITHOUT_OPENCL();
  const auto& [variant, shape, mode, count, type] = GetParam();
  const Problem p{.count = count, .m = shape.m, .n = shape.n, .type = type};
  Batch<double> a(p.count, p.m, p.n);
  AttackList{families_of_alike_rows().first(1), p.count}.fill(0, 2, a.view());
  const Result<double> result =
      factor<double>(backend(), plan_for(p, "opencl/" + variant), a.view());
  const double bar = standard_bars(p.m, p.n, precision_of(p), {}).orthogonality;
  int two_passes = 0;
  for (index_t b = 0; b < p.count; ++b) {
    const MatrixReport& report = result.report[static_cast<std::size_t>(b)];
    if (report.route != Route::second_pass) continue;
    ++two_passes;
    EXPECT_LE(report.orthogonality, bar / 2) << "number " << b;
  }
  EXPECT_GT(two_passes, p.count / 4);
}

INSTANTIATE_TEST_SUITE_P(
    Opencl, AlikeRowsInFloat64,
    testing::Values(AttackCase{"gram", {300, 40}, Mode::reduced, 40, ElementType::float64},
                    AttackCase{"gram_twice", {600, 30}, Mode::reduced, 40, ElementType::float64},
                    AttackCase{"gram_twice", {300, 88}, Mode::reduced, 40, ElementType::float64},
                    AttackCase{"gram_twice", {500, 150}, Mode::reduced, 10, ElementType::float64}),
    [](const testing::TestParamInfo<AttackCase>& test) {
      return testing::PrintToString(test.param);
    });

const std::vector<AttackCase> alike_rows{
    {"gram", {2000, 40}, Mode::r, 1},
    {"gram_tiles", {4000, 100}, Mode::reduced, 1},
    {"tall", {20000, 16}, Mode::reduced, 2},
    {"gram", {1000, 17}, Mode::r, 2, ElementType::float64},
    {"gram_twice", {300, 88}, Mode::reduced, 20, ElementType::float64},
    {"large", {130, 100}, Mode::reduced, 12},
    {"textbook", {17, 17}, Mode::reduced, 60, ElementType::float64},
};

TEST(AttackCases, EveryVariantHasOne) {
  std::set<std::string> attacked, known;
  for (const std::vector<AttackCase>* list : {&everyday_cases, &long_cases, &alike_rows})
    for (const AttackCase& attack : *list) attacked.insert("opencl/" + attack.variant);
  for (const Variant& variant : opencl_variants())
    if (variant.numbers != Numbers::complex) known.emplace(variant.name);  // complex_test.cpp
  EXPECT_EQ(attacked, known);
}

/// With the guard off many matrices go by A'A that should not. A second try makes all of them
/// right.
class Unguarded : public testing::TestWithParam<AttackCase> {};

TEST_P(Unguarded, EveryMatrixMeetsItsBarInASecondTry) {
  SKIP_WITHOUT_OPENCL();
  const auto& [variant, shape, mode, per_family, type] = GetParam();
  // Not those of rows that are alike: reflectors of `small` reach 1.1 bars for one such matrix of
  // 40x16 (gpu/NOTES.md), and a second try has nothing better.
  const AttackList list{
      attack_families().first(attack_families().size() - families_of_alike_rows().size()),
      per_family};
  const Problem p{.count = list.count(), .m = shape.m, .n = shape.n, .mode = mode};
  Plan plan = plan_for(p, "opencl/" + variant);
  plan.params[unguarded] = 1;
  Batch<float> a(p.count, p.m, p.n);
  list.fill(0, 2, a.view());
  SecondTry tries(backend());
  Result<float> result(p, 0);
  tries.factor(plan, a.view(), result.factors(), result.report);
  RouteCounts routes;
  for (index_t b = 0; b < p.count; ++b) {
    const MatrixReport& report = result.report[static_cast<std::size_t>(b)];
    routes.include(report);
    EXPECT_EQ(report.status, Status::ok) << list.name_of(b);
  }
  EXPECT_GT(routes.second_try, p.count / 20) << "the guard is off";
  EXPECT_GT(routes.first_pass, p.count / 4);
}

INSTANTIATE_TEST_SUITE_P(Opencl, Unguarded,
                         testing::Values(AttackCase{"gram", {40, 16}, Mode::reduced, 20},
                                         AttackCase{"tall", {2000, 16}, Mode::reduced, 6}),
                         [](const testing::TestParamInfo<AttackCase>& test) {
                           return testing::PrintToString(test.param);
                         });

INSTANTIATE_TEST_SUITE_P(Opencl, AlikeRows, testing::ValuesIn(alike_rows),
                         [](const testing::TestParamInfo<AttackCase>& test) {
                           return testing::PrintToString(test.param);
                         });

INSTANTIATE_TEST_SUITE_P(Everyday, Attack, testing::ValuesIn(everyday_cases),
                         [](const testing::TestParamInfo<AttackCase>& test) {
                           return testing::PrintToString(test.param);
                         });

INSTANTIATE_TEST_SUITE_P(Long, Attack, testing::ValuesIn(long_cases),
                         [](const testing::TestParamInfo<AttackCase>& test) {
                           return testing::PrintToString(test.param);
                         });

}  // namespace
}  // namespace qrtool::test::attack_test
