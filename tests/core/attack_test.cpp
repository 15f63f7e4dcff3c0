// SPDX-License-Identifier: Apache-2.0
// attack_test.cpp: the attack families on the CPU's variants, and on the leaf that computes R from
// A'A.
#include "tests/support/attack.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "core/cpu/blocked/blocked_qr.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/cpu/tall/gram_leaf.hpp"
#include "core/measure/magnitude.hpp"
#include "tests/support/backward_error.hpp"
#include "tests/support/judge.hpp"

namespace qrtool::test::attack_test {
namespace {

constexpr std::uint64_t seed = 7;

TEST(AttackFamilies, AreFiniteAndDependOnTheirArgumentsAlone) {
  std::set<std::string_view> names;
  for (const AttackFamily& family : attack_families()) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    for (const AttackShape shape :
         {AttackShape{1, 1}, AttackShape{3, 2}, AttackShape{40, 33}, AttackShape{70, 1}}) {
      for (index_t number = 0; number < 20; ++number) {
        const Batch<float> a(1, shape.m, shape.n), again(1, shape.m, shape.n);
        fill_attack<float>(family, seed, number, a.view()[0]);
        fill_attack<float>(family, seed, number, again.view()[0]);
        EXPECT_TRUE(magnitude_of<float>(a.view()[0]).finite) << family.name;
        EXPECT_TRUE(std::equal(a.view().data, a.view().data + shape.m * shape.n, again.view().data))
            << family.name;
      }
    }
  }
}

TEST(AttackFamilies, OfABatchAreTheSameHoweverItIsCut) {
  const AttackList list{attack_families().first(4), 3};
  const Batch<float> whole(list.count(), 9, 5), part(1, 9, 5);
  list.fill(0, 2, whole.view());
  for (index_t b = 0; b < list.count(); ++b) {
    list.fill(b, 1, part.view());
    EXPECT_TRUE(std::equal(part.view().data, part.view().data + 45, whole.view()[b].data)) << b;
  }
}

/// Factors `per_family` matrices of every family and expects each to meet its bar. Without the name
/// of a variant each matrix goes alone, by the plan's choice for one. Returns the worst errors.
template <class T>
WorstErrors expect_good(const std::string& variant, AttackShape shape, Mode mode,
                        index_t per_family,
                        std::span<const AttackFamily> families = attack_families()) {
  SCOPED_TRACE(variant + " " + std::to_string(shape.m) + "x" + std::to_string(shape.n) + " " +
               std::string(name_of(mode)) + " " + std::string(name_of(element_type<T>)));
  const AttackList list{families, per_family};
  constexpr index_t most_entries = 1 << 22;  // of A in memory
  const index_t most =
      variant.empty() ? 1
                      : std::clamp<index_t>(most_entries / (shape.m * shape.n), 1, list.count());
  const Problem p{.count = most, .m = shape.m, .n = shape.n, .type = element_type<T>, .mode = mode};
  CpuBackend backend({.host_bytes = std::size_t{4} << 30, .threads = 2});
  const Plan plan = make_plan(p, backend.variants(), backend.limits(), variant);
  const bool is_raw = mode == Mode::raw;
  const Batch<T> a(most, p.m, p.n), q(most, p.m, p.q_cols()), r(most, p.r_rows(), p.n);
  const Batch<T> v(is_raw ? most : 0, p.m, p.n), tau(is_raw ? most : 0, 1, p.k());
  WorstErrors worst;
  for (index_t first = 0; first < list.count(); first += most) {
    const index_t count = std::min(most, list.count() - first);
    const BatchView<T> filled = a.view().slice(0, count);
    list.fill(first, 2, filled);
    std::vector<MatrixReport> reports(static_cast<std::size_t>(count));
    Factors<T> out;
    if (p.wants_q()) out.q = q.view().slice(0, count);
    if (is_raw) {
      out.v = v.view().slice(0, count);
      out.tau = tau.view().slice(0, count);
    } else {
      out.r = r.view().slice(0, count);
    }
    backend.factor<T>(plan, filled, out, reports);
    for (index_t b = 0; b < count; ++b) {
      MatrixReport& report = reports[static_cast<std::size_t>(b)];
      if (!is_raw) measure_r<T>(p, filled[b], r.view()[b], report);
      const WorstErrors errors = errors_in_bars(p, report);
      EXPECT_EQ(errors.above, 0) << list.name_of(first + b) << ": " << errors;
      worst.include(errors);
    }
  }
  EXPECT_EQ(worst.matrices, list.count());
  EXPECT_GT(worst.q_or_r, 0) << "nothing was measured";
  return worst;
}

TEST(Attack, TallMatricesMeetTheBar) {
  expect_good<float>("cpu/tall", {5000, 20}, Mode::reduced, 4);
  expect_good<float>("cpu/tall", {5000, 20}, Mode::r, 4);
  expect_good<float>("cpu/tall", {40000, 16}, Mode::r, 1);
  expect_good<double>("cpu/tall", {5000, 20}, Mode::reduced, 2);
}

TEST(Attack, SmallMatricesMeetTheBar) {
  expect_good<float>("cpu/batched", {33, 20}, Mode::reduced, 10);
  expect_good<double>("cpu/batched", {17, 17}, Mode::reduced, 10);
  expect_good<float>("cpu/blocked", {130, 100}, Mode::reduced, 2);
  expect_good<double>("cpu/blocked", {130, 100}, Mode::reduced, 1);
  expect_good<float>("cpu/blocked", {140, 70}, Mode::r, 4);
}

TEST(Attack, TallMatricesOfAlikeRowsMeetTheBar) {
  const std::span<const AttackFamily> families = families_of_alike_rows();
  expect_good<float>("cpu/tall", {20000, 32}, Mode::r, 2, families);
  expect_good<float>("cpu/tall", {20000, 16}, Mode::reduced, 1, families);
  expect_good<float>("cpu/blocked", {1000, 70}, Mode::r, 2, families);
  expect_good<float>("cpu/batched", {500, 20}, Mode::r, 4, families);
}

/// V and tau of such matrices are good, and so must be Q that the check forms from them.
TEST(Attack, ReflectorsOfAlikeRowsMeetTheBar) {
  const std::span<const AttackFamily> families = families_of_alike_rows();
  for (const AttackShape shape : {AttackShape{17, 17}, AttackShape{64, 64}, AttackShape{200, 64}})
    expect_good<double>("", shape, Mode::raw, 40, families);
}

TEST(Attack, MatricesOfFewRowsMeetTheBar) {
  for (const char* variant : {"cpu/batched", "cpu/blocked", "cpu/eigen", ""}) {
    for (const AttackShape shape : shapes_of_few_rows()) {
      expect_good<float>(variant, shape, Mode::reduced, 5);
      expect_good<double>(variant, shape, Mode::reduced, 5);
    }
  }
}

/// The reference is the last resort, so that no processor's order of sums may bring it near the
/// bar.
TEST(Attack, TheReferenceStaysBelowHalfOfTheBarOfFewRows) {
  for (const AttackShape shape : shapes_of_few_rows()) {
    EXPECT_LE(expect_good<double>("cpu/eigen", shape, Mode::reduced, 20).q_or_r, 0.5);
    EXPECT_LE(expect_good<double>("cpu/eigen", shape, Mode::raw, 20).q_or_r, 0.5);
  }
}

TEST(Attack, StripsOfColumnsMeetTheBarInManyMatrices) {
  const AttackFamily& uniform = attack_family("uniform");
  expect_good<float>("cpu/blocked", {16, 17}, Mode::reduced, 2500);
  expect_good<double>("cpu/blocked", {16, 17}, Mode::reduced, 2500);
  expect_good<float>("cpu/blocked", {16, 17}, Mode::reduced, 100000, {&uniform, 1});
  expect_good<double>("cpu/blocked", {16, 17}, Mode::reduced, 100000, {&uniform, 1});
}

/// The leaf promises R to within some 2^-24 of each column's norm, 2^-22 where sums in float32 are
/// allowed. An R that is promised so is compared with A itself: no reference R is good enough for
/// matrices whose R moves with every rounding error.
TEST(Attack, GramLeafIsAccurateOrRefuses) {
  for (const AttackShape shape :
       {AttackShape{300, 16}, AttackShape{300, 20}, AttackShape{900, 33}}) {
    index_t taken = 0, all = 0;
    GramLeaf leaf(shape.n);
    for (const AttackFamily& family : attack_families()) {
      for (index_t number = 0; number < 30; ++number, ++all) {
        const Batch<float> a(1, shape.m, shape.n), r(1, shape.n, shape.n);
        fill_attack<float>(family, seed, number, a.view()[0]);
        LeafOutcome outcome;
        if (!leaf.factor(a.view()[0], r.view()[0], outcome)) continue;
        ++taken;
        const double error = r_backward_error<float>(a.view()[0], r.view()[0], true);
        EXPECT_LE(error, shape.n % 16 == 0 ? 0x1p-22 : 0x1p-24)
            << family.name << " number " << number << " of " << shape.m << "x" << shape.n;
      }
    }
    // Were all taken, or all refused, the line between them would not have been attacked.
    EXPECT_GT(taken, all / 4);
    EXPECT_LT(taken, all * 3 / 4);
  }
}

template <class T>
const blocked::Routine<T>& routine_of(const blocked::Kernels& kernels) {
  if constexpr (sizeof(T) == 4) {
    return kernels.real.in_float;
  } else {
    return kernels.real.in_double;
  }
}

/// Forms R of some matrices of every family from A'A with one set of kernels. Every R that is not
/// refused must be accurate by column: 17 2^-24 is the largest error here, where sums have a bias,
/// and in float64 the reference has an error of its own.
template <class T>
void expect_accurate_or_refused(const blocked::Kernels& kernels, AttackShape shape) {
  SCOPED_TRACE(std::string(kernels.target) + " " + std::to_string(shape.m) + "x" +
               std::to_string(shape.n));
  const blocked::Routine<T>& routine = routine_of<T>(kernels);
  const blocked::Shape sizes{
      .m = shape.m, .n = shape.n, .k = shape.n, .r_rows = shape.n, .is_positive = true};
  const HostMemory workspace = allocate_host(routine.workspace_bytes(sizes, 1));
  index_t taken = 0, all = 0;
  for (const AttackFamily& family : attack_families()) {
    for (index_t number = 0; number < 4; ++number, ++all) {
      const Batch<T> a(1, shape.m, shape.n), r(1, shape.n, shape.n);
      fill_attack<T>(family, seed, number, a.view()[0]);
      blocked::Matrix<T> matrix{};
      matrix.a = {a.view().data, shape.n, 0};
      matrix.r = {r.view().data, shape.n, 0};
      blocked::Outcome outcome;
      if (!routine.factor_gram(sizes, matrix, workspace.get(), outcome)) continue;
      ++taken;
      EXPECT_TRUE(outcome.is_finite && outcome.r_fits) << family.name;
      EXPECT_EQ(outcome.scale, magnitude_of<T>(a.view()[0]).scale()) << family.name;
      EXPECT_LE(r_backward_error<T>(a.view()[0], r.view()[0], true),
                sizeof(T) == 4 ? 0x1p-19 : 0x1p-47)
          << family.name << " number " << number;
    }
  }
  // Were all taken, or all refused, the line between them would not have been attacked.
  EXPECT_GT(taken, all / 8);
  EXPECT_LT(taken, all * 7 / 8);
}

TEST(Attack, RFromGramIsAccurateOrRefused) {
  for (const blocked::Kernels* kernels : blocked_kernels()) {
    for (const AttackShape shape : {AttackShape{129, 64}, AttackShape{300, 101}}) {
      if (shape.m == 300 && std::getenv("QRTOOL_TEST_ALL") == nullptr) continue;
      expect_accurate_or_refused<float>(*kernels, shape);
      expect_accurate_or_refused<double>(*kernels, shape);
    }
  }
}

}  // namespace
}  // namespace qrtool::test::attack_test
