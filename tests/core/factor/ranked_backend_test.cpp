// SPDX-License-Identifier: Apache-2.0
// ranked_backend_test.cpp: the rank is not decided on an R of A'A in float64 that has lost its
// digits, and permutations are recognised.
#include "core/factor/ranked_backend.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/plan/ranking_bytes.hpp"

namespace qrtool::test::ranked_backend_test {
namespace {

/// Does as if its R came from A'A: the last diagonal entry is off by the root of the unit.
class GramBackend final : public Backend {
 public:
  explicit GramBackend(Backend& backend) : backend_(backend) {}
  std::string name() const override { return backend_.name(); }
  std::string device() const override { return backend_.device(); }
  std::span<const Variant> variants() const override { return backend_.variants(); }
  Limits limits() const override { return backend_.limits(); }

  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override {
    return std::visit(
        [&](const auto& chunk) { return blur(plan, chunk.a, chunk.out, chunk.report); }, any);
  }
  index_t again = 0;  // matrices that reflectors had to factor

 private:
  template <class T>
  ChunkSeconds blur(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                    std::span<MatrixReport> report) {
    const ChunkSeconds seconds = backend_.factor<T>(plan, a, out, report);
    if (plan.problem.arithmetic == Arithmetic::strict) {
      again += a.count;
      return seconds;
    }
    const index_t last = plan.problem.k() - 1;
    for (index_t b = 0; b < a.count; ++b) {
      out.r[b](last, last) += T(Real<T>(1e-8)) * out.r[b](0, 0);
      report[static_cast<std::size_t>(b)].route = Route::first_pass;
    }
    return seconds;
  }

  Backend& backend_;
};

/// Matrices of which every second one has a last column that depends on the first.
template <class T>
Batch<T> every_second_deficient(index_t count, index_t m, index_t n) {
  Batch<T> a(count, m, n);
  std::mt19937_64 random(5);
  std::normal_distribution<double> normal;
  for (index_t b = 0; b < count; ++b)
    for (index_t i = 0; i < m; ++i) {
      for (index_t j = 0; j < n; ++j) {
        const MatrixView<Real<T>> parts = interleaved(a.view()[b]);
        for (index_t p = 0; p < parts_of<T>; ++p) parts(i, parts_of<T> * j + p) = normal(random);
      }
      if (b % 2 == 1) a.view()[b](i, n - 1) = a.view()[b](i, 0);
    }
  return a;
}

template <class T>
class RankedBackendOf : public ::testing::Test {};
using Wides = ::testing::Types<double, std::complex<double>>;
TYPED_TEST_SUITE(RankedBackendOf, Wides);

TYPED_TEST(RankedBackendOf, DoesNotDecideOnAnROfGramThatHasLostItsDigits) {
  using T = TypeParam;
  constexpr index_t count = 6, m = 20, n = 4;
  Limits limits;
  limits.host_bytes = std::size_t{1} << 30;
  limits.threads = 2;
  CpuBackend cpu(limits);
  GramBackend gram(cpu);
  SecondTry tries(gram);
  RankedBackend ranked(tries);
  const Problem problem{.count = count,
                        .m = m,
                        .n = n,
                        .type = element_type<T>,
                        .mode = Mode::r,
                        .pivots = true,
                        .wants_condition = true};
  const Plan plan = make_plan(problem, cpu.variants(), limits);
  const Batch<T> a = every_second_deficient<T>(count, m, n), r(count, n, n);
  const Batch<double> p(count, 1, n);
  std::vector<MatrixReport> report(count);
  const Factors<T> out{.q = {}, .r = r.view(), .v = {}, .tau = {}, .p = p.view()};
  ranked.factor<T>(plan, a.view(), out, report);
  for (index_t b = 0; b < count; ++b) {
    const MatrixReport& line = report[static_cast<std::size_t>(b)];
    EXPECT_EQ(line.rank, b % 2 == 1 ? n - 1 : n) << b;
    EXPECT_EQ(line.condition > 1e14, b % 2 == 1) << b;
    EXPECT_EQ(line.route, b % 2 == 1 ? Route::reflectors : Route::first_pass) << b;
    EXPECT_EQ(line.tries, 1);
  }
  EXPECT_EQ(gram.again, count / 2);
}

TEST(RankedBackend, WithoutItsProblemsDoesNothing) {
  Limits limits;
  limits.host_bytes = std::size_t{1} << 30;
  CpuBackend cpu(limits);
  SecondTry tries(cpu);
  RankedBackend ranked(tries);
  const Problem problem{.count = 2, .m = 9, .n = 3, .type = ElementType::float64};
  EXPECT_EQ(ranked_worker_bytes(problem, 1), 0U);
  const Plan plan = make_plan(problem, cpu.variants(), limits);
  const Batch<double> a = every_second_deficient<double>(2, 9, 3);
  const Batch<double> q(2, 9, 3), r(2, 3, 3);
  std::vector<MatrixReport> report(2);
  ranked.factor<double>(plan, a.view(), {.q = q.view(), .r = r.view(), .v = {}, .tau = {}}, report);
  for (const MatrixReport& line : report) {
    EXPECT_EQ(line.status, Status::ok);
    EXPECT_EQ(line.rank, -1);
    EXPECT_TRUE(std::isnan(line.condition));
  }
}

TEST(RankAndOrder, KnowsPermutations) {
  const auto permutation = [](const std::vector<double>& numbers) {
    return permutation_of(numbers.data(), std::ssize(numbers), "P", 0);
  };
  EXPECT_EQ(permutation({2, 0, 1}), (std::vector<index_t>{2, 0, 1}));
  for (const std::vector<double>& wrong : std::vector<std::vector<double>>{
           {1, 2, 3}, {0, 0, 1}, {-1, 0, 1}, {0.5, 0, 1}, {not_measured, 0, 1}, {1e300, 0, 1}})
    EXPECT_THROW(permutation(wrong), InputError);
}

}  // namespace
}  // namespace qrtool::test::ranked_backend_test
