// SPDX-License-Identifier: Apache-2.0
#include "core/plan/plan.hpp"

#include <gtest/gtest.h>

#include <array>

#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"

namespace qrtool::plan_test {
namespace {

constexpr std::size_t mib = std::size_t{1} << 20;

Fit fits_small(const Problem& p, const Limits&) {
  return p.n <= 8 ? Fit{true, "n <= 8"} : Fit{false, "n > 8"};
}
Fit fits_all(const Problem&, const Limits&) { return {true, "takes all"}; }
Params no_params(const Problem&, const Limits&) { return {}; }
std::size_t workspace(const Problem&) { return mib; }
std::size_t no_bytes(const Problem&) { return 0; }
std::string arithmetic(const Problem&) { return "float32"; }

/// test/small takes 2 s for a matrix or for 64 of them, test/general 1 s for each.
const CostTable& some_costs(const Limits&) {
  static const CostTable table = [] {
    CostTable costs("a device");
    const Problem shape{1, 8, 8};
    costs.add("test/small", shape, {{1, 2.0}, {64, 2.0}});
    costs.add("test/general", shape, {{1, 1.0}});
    return costs;
  }();
  return table;
}

Variant variant_named(std::string_view name, Fit (*fits)(const Problem&, const Limits&)) {
  return {.name = name,
          .summary = "",
          .fits = fits,
          .tune = no_params,
          .host_workspace_bytes = workspace,
          .device_workspace_bytes = no_bytes,
          .arithmetic = arithmetic};
}

Variant baseline() {
  Variant variant = variant_named("test/baseline", fits_all);
  variant.only_when_forced = true;
  return variant;
}

const std::array variants{
    baseline(),
    variant_named("test/small", fits_small),
    variant_named("test/general", fits_all),
};

Plan plan_for(Problem problem, std::size_t memory, int threads, std::string_view forced = {}) {
  Limits limits;
  limits.host_bytes = memory;
  limits.threads = threads;
  return make_plan(problem, variants, limits, forced);
}

TEST(Plan, TakesTheFirstVariantThatFits) {
  EXPECT_EQ(plan_for({100, 8, 8}, 64 * mib, 2).variant->name, "test/small");
  EXPECT_EQ(plan_for({100, 9, 9}, 64 * mib, 2).variant->name, "test/general");
}

TEST(Plan, EstimatesErrorsWhereThatIsFaster) {
  const auto check_of = [](Problem problem, Check check, std::size_t device_bytes = 0) {
    Limits limits;
    limits.host_bytes = 64 * mib;
    limits.device_bytes = device_bytes;
    problem.check = check;
    return make_plan(problem, variants, limits).problem.check;
  };
  EXPECT_EQ(check_of({1, 500, 500}, Check::probe), Check::probe);
  EXPECT_EQ(check_of({1, 500, 500}, Check::full), Check::full);
  EXPECT_EQ(check_of({1, 500, 100}, Check::probe), Check::full);
  EXPECT_EQ(check_of({1, 500, 500}, Check::probe, 64 * mib), Check::full);
  EXPECT_EQ(check_of({1, 500, 500, ElementType::float32, Mode::raw}, Check::probe), Check::probe);
  EXPECT_EQ(check_of({1, 500, 500}, Check::none, 64 * mib), Check::none);
}

TEST(Plan, TakesABaselineOnlyWhenForced) {
  EXPECT_EQ(plan_for({100, 8, 8}, 64 * mib, 2, "test/baseline").variant->name, "test/baseline");
}

TEST(Plan, TakesTheVariantThatCostsLeastOrIsForced) {
  std::array some{variants[1], variants[2]};
  for (Variant& variant : some) variant.costs = some_costs;
  Limits limits;
  limits.host_bytes = 64 * mib;
  EXPECT_EQ(make_plan({10, 8, 8}, some, limits).variant->name, "test/small");
  const Plan one = make_plan({1, 8, 8}, some, limits);
  EXPECT_EQ(one.variant->name, "test/general");
  EXPECT_EQ(one.reason, "about 1 s; takes all; test/small: about 2 s");
  EXPECT_EQ(make_plan({1, 8, 8}, some, limits, "test/small").variant->name, "test/small");
  EXPECT_EQ(make_plan({2, 8, 8}, some, limits).variant->name, "test/small") << "equal: the first";
  const auto is_general = [](const Variant& variant) { return variant.name == "test/general"; };
  EXPECT_EQ(least_costly({10, 8, 8}, some, limits, is_general)->name, "test/general");
}

TEST(Plan, TakesAVariantOfUnknownTimeOnlyWhereThereIsNoOther) {
  std::array some{variants[1], variants[2]};
  some[1].costs = some_costs;
  EXPECT_EQ(least_costly({10, 8, 8}, some, {})->name, "test/general");
  EXPECT_EQ(least_costly({10, 8, 8}, std::span(some).first(1), {})->name, "test/small");
  EXPECT_EQ(least_costly({10, 9, 9}, std::span(some).first(1), {}), nullptr);
}

TEST(Plan, ThreadsWithoutAMatrixShareOne) {
  Limits limits;
  limits.host_bytes = std::size_t{8} << 30;
  limits.threads = 8;
  const Plan plan = make_plan({3, 512, 512}, cpu_variants(), limits);
  EXPECT_EQ(plan.threads, 3);
  EXPECT_EQ(plan.threads_per_matrix, 2);
  EXPECT_NE(explain(plan, limits).find("6 threads"), std::string::npos);
  EXPECT_EQ(make_plan({3, 8, 8}, cpu_variants(), limits).threads_per_matrix, 1);
  EXPECT_EQ(make_plan({1, 64, 64}, cpu_variants(), limits, "cpu/blocked").threads_per_matrix, 1)
      << "too small for a team";
}

TEST(Plan, TakesCpuTallForManyRowsAndGivesItEveryThread) {
  const auto plan_of = [](const Problem& problem) {
    Limits limits;
    limits.host_bytes = std::size_t{8} << 30;
    limits.threads = 7;
    return make_plan(problem, cpu_variants(), limits);
  };
  const Plan tall = plan_of({1, 100000, 32});
  EXPECT_EQ(tall.variant->name, "cpu/tall");
  EXPECT_EQ(tall.threads, 7);
  EXPECT_EQ(plan_of({1, 10000, 32, ElementType::float32, Mode::raw}).variant->name, "cpu/eigen");
}

TEST(Plan, GoesByRowsWhereAMatrixDoesNotFit) {
  Limits limits;
  limits.host_bytes = 256 * mib;
  limits.threads = 2;
  const Problem large{1, 100'000'000, 16};
  const Plan plan = make_plan(large, cpu_variants(), limits);
  EXPECT_EQ(plan.variant->name, "cpu/tall");
  EXPECT_TRUE(plan.by_rows());
  EXPECT_LE(plan.host_bytes, limits.host_bytes);
  EXPECT_NE(explain(plan, limits).find("rows of a matrix at a time"), std::string::npos);
  EXPECT_THROW(make_plan(large, cpu_variants(), limits, "cpu/eigen"), LimitError);
  EXPECT_THROW(make_plan({1, 20000, 20000}, cpu_variants(), limits), LimitError);
  limits.host_bytes = 12 * mib;
  EXPECT_THROW(make_plan(large, cpu_variants(), limits), LimitError);
  limits.has_scratch = true;
  const Plan scratch = make_plan(large, cpu_variants(), limits);
  EXPECT_LE(scratch.host_bytes, limits.host_bytes);
  EXPECT_GT(scratch.scratch_bytes, 12 * mib);
}

TEST(Plan, TheVariantDoesNotDependOnMemoryOrRanks) {
  for (const Problem& p :
       {Problem{1, 20000, 160}, Problem{1, 5000, 160}, Problem{1, 9000, 24}, Problem{1, 60000, 20},
        Problem{3, 2000, 2000}, Problem{1, 4000, 3}, Problem{1, 1, 5000}, Problem{1, 300, 300},
        Problem{1, 60000, 20, ElementType::float64, Mode::raw}}) {
    Limits limits;
    limits.host_bytes = std::size_t{64} << 30;
    limits.threads = 2;
    const Variant* expected = make_plan(p, cpu_variants(), limits).variant;
    for (limits.ranks = 1; limits.ranks <= 4; ++limits.ranks) {
      for (limits.host_bytes = mib / 4; limits.host_bytes <= 4096 * mib; limits.host_bytes *= 2) {
        try {
          EXPECT_EQ(make_plan(p, cpu_variants(), limits).variant, expected)
              << p.m << "x" << p.n << ", " << limits.host_bytes << ", " << limits.ranks;
        } catch (const LimitError&) {  // no other variant takes its place
        }
      }
    }
  }
}

TEST(Plan, SharesAMatrixAmongRanks) {
  Limits limits;
  limits.host_bytes = 8192 * mib;
  limits.ranks = 4;
  const Plan one = make_plan({1, 1'000'000, 16}, cpu_variants(), limits);
  EXPECT_TRUE(one.by_rows());
  EXPECT_LE(one.chunk_rows, 1'000'000 / 4);
  EXPECT_FALSE(make_plan({4, 1'000'000, 16}, cpu_variants(), limits).by_rows());
  EXPECT_LE(make_plan({1000, 8, 8}, cpu_variants(), limits).chunk_matrices, 125);
  EXPECT_FALSE(make_plan({1, 50, 16}, cpu_variants(), limits).by_rows());
}

TEST(Plan, RefusesAForcedVariantThatDoesNotFit) {
  try {
    plan_for({100, 9, 9}, 64 * mib, 2, "test/small");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--variant test/small does not take this problem: n > 8");
  }
}

TEST(Plan, SuggestsTheVariantThatWasMeant) {
  try {
    plan_for({1, 9, 9}, 64 * mib, 1, "test/smal");
    FAIL();
  } catch (const UsageError& error) {
    EXPECT_STREQ(error.what(), "--variant: there is no 'test/smal'; did you mean 'test/small'?");
  }
}

TEST(Plan, KeepsWithinTheMemoryForEveryBudgetThatItAccepts) {
  for (const std::size_t memory : {3 * mib, 5 * mib, 16 * mib, 100 * mib, 4096 * mib}) {
    for (const int threads : {1, 2, 64}) {
      const Plan plan = plan_for({100000, 64, 64}, memory, threads);
      EXPECT_LE(plan.host_bytes, memory);
      EXPECT_GE(plan.chunk_matrices, 1);
      EXPECT_GE(plan.threads, 1);
      EXPECT_LE(plan.threads, threads);
      EXPECT_GE(plan.buffers, 1);
    }
  }
}

TEST(Plan, OverlapsTheStagesWhereMemoryAllows) {
  const Plan plan = plan_for({100000, 64, 64}, 1024 * mib, 2);
  EXPECT_GE(plan.buffers, 3);
}

TEST(Plan, GoesDownToOneBufferAndOneThreadBeforeItRefuses) {
  // Of one 512 x 512 float32 matrix A, Q and R take 3 MiB, and its workspace 1 MiB.
  const Plan plan = plan_for({10, 512, 512}, 4 * mib + 4096, 8);
  EXPECT_EQ(plan.threads, 1);
  EXPECT_EQ(plan.buffers, 1);
  EXPECT_EQ(plan.chunk_matrices, 1);
  EXPECT_THROW(plan_for({10, 512, 512}, 4 * mib - 4096, 8), LimitError);
}

TEST(Plan, StatesTheBytesThatItNeedsWhenItRefuses) {
  try {
    plan_for({1, 512, 512}, mib, 1);
    FAIL();
  } catch (const LimitError& error) {
    EXPECT_STREQ(error.what(),
                 "one 512x512 matrix of float32 needs 4.0 MiB of host memory (1.0 MiB input, "
                 "2.0 MiB factors, 1.0 MiB workspace); the limit is 1.0 MiB");
  }
}

TEST(Plan, TakesAnEmptyBatch) {
  const Plan plan = plan_for({0, 64, 64}, 64 * mib, 2);
  EXPECT_EQ(plan.chunk_matrices, 1);
  EXPECT_EQ(plan.threads, 1);
}

TEST(Plan, ExplainsItself) {
  Limits limits;
  limits.host_bytes = 64 * mib;
  limits.threads = 2;
  const Plan plan = make_plan({1000, 8, 8}, variants, limits);
  const std::string text = explain(plan, limits);
  EXPECT_NE(text.find("problem   1,000 of 8x8, float32, mode reduced, sign positive\n"),
            std::string::npos);
  EXPECT_NE(text.find("variant   test/small (n <= 8)\n"), std::string::npos);
}

}  // namespace
}  // namespace qrtool::plan_test
