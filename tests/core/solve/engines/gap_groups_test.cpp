// SPDX-License-Identifier: Apache-2.0
// gap_groups_test.cpp: every right side is in one group; those of a mask that many have share
// theirs, and the others stay in ascending order.
#include "core/solve/engines/gap_groups.hpp"

#include <gtest/gtest.h>

namespace qrtool::gap_groups_test {
namespace {

constexpr std::size_t lanes = 4, most = 10;

/// Groups right sides 100, 101, ... Side s leaves out row rows[s] of 130, and none where rows[s] is
/// negative.
std::vector<std::vector<index_t>> groups_of(const std::vector<index_t>& rows) {
  std::vector<index_t> gaps;
  GapMasks masks(rows.size(), 130);
  for (std::size_t s = 0; s < rows.size(); ++s) {
    gaps.push_back(100 + static_cast<index_t>(s));
    if (rows[s] >= 0) masks.set(s, rows[s]);
  }
  std::vector<std::vector<index_t>> groups;
  for (const auto group : group_by_mask(gaps, masks, lanes, most))
    groups.emplace_back(group.begin(), group.end());
  return groups;
}

using Groups = std::vector<std::vector<index_t>>;

TEST(GapGroups, NothingGivesNoGroups) { EXPECT_EQ(groups_of({}), Groups{}); }

TEST(GapGroups, FewOfOneMaskAreTakenInAscendingOrder) {
  EXPECT_EQ(groups_of({3, 129, 3, 64, 129, 3}), (Groups{{100, 101, 102, 103}, {104, 105}}));
}

TEST(GapGroups, ManyOfOneMaskShareAGroup) {
  // Eight leave out row 129, and two row 1.
  EXPECT_EQ(groups_of({129, 1, 129, 129, 129, 129, 1, 129, 129, 129}),
            (Groups{{100, 102, 103, 104, 105, 107, 108, 109}, {101, 106}}));
}

TEST(GapGroups, AMaskOfMoreThanTheMostIsCut) {
  const Groups groups = groups_of(std::vector<index_t>(21, 65));
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].size(), most);
  EXPECT_EQ(groups[1].size(), most);
  EXPECT_EQ(groups[2], (std::vector<index_t>{120}));
}

}  // namespace
}  // namespace qrtool::gap_groups_test
