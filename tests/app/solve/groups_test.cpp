// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "app/solve/groups/group_system.hpp"
#include "app/solve/groups/key_table.hpp"
#include "app/solve/groups/row_store.hpp"

namespace qrtool::groups_test {
namespace {

using Keys = std::vector<std::string>;

TEST(KeyTable, NumbersKeysInTheOrderOfTheirFirstAppearance) {
  KeyTable table;
  std::mt19937 random(1);
  std::vector<int> order;
  std::vector<index_t> groups(5000, -1);
  for (int row = 0; row < 40000; ++row) {
    const auto key = static_cast<int>(random() % 5000);
    index_t& group = groups[static_cast<std::size_t>(key)];
    if (group < 0) {
      group = static_cast<index_t>(order.size());
      order.push_back(key);
    }
    // Keys that are longer than a text without memory of its own, too.
    ASSERT_EQ(table.group_of(
                  Keys{std::string(static_cast<std::size_t>(key % 50), 'k') + std::to_string(key)}),
              group);
  }
  ASSERT_EQ(table.groups(), std::ssize(order));
  for (std::size_t g = 0; g < order.size(); ++g)
    EXPECT_EQ(table.keys_of(static_cast<index_t>(g)).front(),
              std::string(static_cast<std::size_t>(order[g] % 50), 'k') + std::to_string(order[g]));
  EXPECT_GT(table.bytes(), 5000u * 24);
}

TEST(KeyTable, TellsKeysApartThatAreAlikeTogether) {
  KeyTable table;
  EXPECT_EQ(table.group_of(Keys{"a", "bc"}), 0);
  EXPECT_EQ(table.group_of(Keys{"ab", "c"}), 1);
  EXPECT_EQ(table.group_of(Keys{"", "abc"}), 2);
  EXPECT_EQ(table.group_of(Keys{"abc", ""}), 3);
  EXPECT_EQ(table.group_of(Keys{"", ""}), 4);
  EXPECT_EQ(table.group_of(Keys{"a", "bc"}), 0);
  EXPECT_EQ(table.with_empty_key(), 3);
  const auto keys = table.keys_of(3);
  ASSERT_EQ(keys.size(), 2u);
  EXPECT_EQ(keys[0], "abc");
  EXPECT_EQ(keys[1], "");
}

/// Rows of random groups in a store with so much memory: each group has its rows, in their order.
void expect_rows_of_groups(std::size_t memory_bytes, bool uses_scratch) {
  constexpr index_t rows = 30000, groups = 700;
  std::mt19937 random(2);
  RowStore store(3, memory_bytes, std::filesystem::temp_directory_path().string());
  std::vector<index_t> counts(groups);
  std::vector<std::vector<double>> wanted(groups);
  for (index_t i = 0; i < rows; ++i) {
    // Group 5 has a third of all rows.
    const auto group = static_cast<std::size_t>(random() % 3 == 0 ? 5 : random() % groups);
    const auto first = static_cast<double>(i);
    store.add(static_cast<index_t>(group), std::vector{first, -first, 0.5});
    wanted[group].push_back(first);
    ++counts[group];
  }
  store.finish(counts);
  EXPECT_EQ(store.scratch_bytes() > 0, uses_scratch);
  index_t next = 0;
  for (const RowStore::Part& part : store.parts()) {
    EXPECT_EQ(part.first_group, next);
    next += part.groups;
    store.load(part);
    for (index_t g = part.first_group; g < next; ++g) {
      const GroupRows found = store.rows_of(g);
      const std::vector<double>& its = wanted[static_cast<std::size_t>(g)];
      ASSERT_EQ(found.count(), std::ssize(its));
      std::size_t i = 0;
      found.visit(0, found.count(), [&](const double* row) {
        EXPECT_EQ(row[0], its[i]);
        EXPECT_EQ(row[1], -its[i++]);
      });
      EXPECT_EQ(i, its.size());
      if (its.size() < 3) continue;
      found.visit(1, 1, [&](const double* row) { EXPECT_EQ(row[0], its[1]); });
    }
  }
  EXPECT_EQ(next, groups);
}

TEST(RowStore, KeepsRowsInMemory) { expect_rows_of_groups(std::size_t{8} << 20, false); }
TEST(RowStore, KeepsRowsInParts) { expect_rows_of_groups(std::size_t{512} << 10, true); }
TEST(RowStore, KeepsAGroupThatIsLargerThanTheMemory) {
  expect_rows_of_groups(std::size_t{64} << 10, true);
}
TEST(RowStore, TakesRowsThatAreLargerThanTheMemory) { expect_rows_of_groups(1, true); }

GroupRows rows_of(const std::vector<const double*>& rows) {
  return {rows.data(), std::ssize(rows)};
}

double r_squared(const GroupSystem& system, const GroupRows& rows, index_t response, double norm) {
  GroupLine line;
  line.report.residual_norm = norm;
  find_r_squared(system, rows, response, line);
  return line.r2;
}

TEST(RSquared, IsAboutTheWeightedMeanWithAnIntercept) {
  // b, weight
  const double data[][2] = {{1, 1}, {2, 3}, {4, 0}, {6, 2}, {std::nan(""), 1}};
  std::vector<const double*> rows;
  for (const auto& row : data) rows.push_back(row);
  GroupSystem system{.file = "t.csv", .responses = {0}, .weights = 1, .skips_missing = true};
  const double mean = (1 + 3 * 2 + 2 * 6) / 6.0;
  const double squares =
      std::pow(1 - mean, 2) + 3 * std::pow(2 - mean, 2) + 2 * std::pow(6 - mean, 2);
  system.problem.has_intercept = true;
  EXPECT_NEAR(r_squared(system, rows_of(rows), 0, 1.5), 1 - 2.25 / squares, 1e-15);
  system.problem.has_intercept = false;
  EXPECT_NEAR(r_squared(system, rows_of(rows), 0, 1.5), 1 - 2.25 / (1 + 12 + 72), 1e-15);
}

TEST(RSquared, IsNotANumberForAConstant) {
  const double tenth = 0.1, zero = 0, large = 1e300;
  GroupSystem system{.file = "t.csv", .responses = {0}};
  system.problem.has_intercept = true;
  EXPECT_TRUE(std::isnan(r_squared(system, rows_of({&tenth, &tenth, &tenth}), 0, 0)));
  system.problem.has_intercept = false;
  EXPECT_EQ(r_squared(system, rows_of({&tenth, &tenth, &tenth}), 0, 0), 1);
  EXPECT_TRUE(std::isnan(r_squared(system, rows_of({&zero, &zero}), 0, 0)));
  EXPECT_NEAR(r_squared(system, rows_of({&large, &zero, &zero}), 0, 5e299), 0.75, 1e-15);
}

}  // namespace
}  // namespace qrtool::groups_test
