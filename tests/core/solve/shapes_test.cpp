// SPDX-License-Identifier: Apache-2.0
// shapes_test.cpp: every way in which B can fit A, those that fit twice, and those that do not.
#include "core/solve/shapes.hpp"

#include <gtest/gtest.h>

namespace qrtool::shapes_test {
namespace {

/// The readings of B that are expected: the place of m, the shape of X, and that of the report.
struct Expected {
  RowsOfB rows;
  Dims x_dims, solution_dims;
  index_t p;
};
struct Case {
  Dims a_leading;
  index_t m, n;
  Dims b;
  RowsOfB asked;
  std::vector<Expected> expected;
  bool is_column = false;
};

constexpr RowsOfB any = RowsOfB::automatic, first = RowsOfB::first, last = RowsOfB::last,
                  matrix = RowsOfB::matrix;

const Case cases[] = {
    // One vector, for one A and for many.
    {{}, 9, 4, {9}, any, {{last, {4}, {}, 1}}},
    {{5}, 9, 4, {9}, any, {{last, {5, 4}, {5}, 1}}},
    {{}, 9, 4, {9}, matrix, {{last, {4}, {}, 1}}},
    {{}, 9, 4, {8}, any, {}},
    // One vector for each A.
    {{5}, 9, 4, {5, 9}, any, {{last, {5, 4}, {5}, 1}}},
    {{2, 3}, 9, 4, {2, 3, 9}, any, {{last, {2, 3, 4}, {2, 3}, 1}}},
    {{5}, 9, 4, {6, 9}, any, {}},
    // Columns of a matrix, with leading dimensions that are broadcast.
    {{}, 9, 4, {9, 7}, any, {{matrix, {4, 7}, {7}, 7}}},
    {{}, 9, 4, {9, 1}, any, {{matrix, {4, 1}, {1}, 1}}},
    {{5}, 9, 4, {5, 9, 2}, any, {{matrix, {5, 4, 2}, {5, 2}, 2}}},
    {{5}, 9, 4, {9, 2}, any, {{matrix, {5, 4, 2}, {5, 2}, 2}}},
    {{3, 1}, 9, 4, {1, 5, 9, 2}, any, {{matrix, {3, 5, 4, 2}, {3, 5, 2}, 2}}},
    {{}, 9, 4, {6, 9, 2}, any, {{matrix, {6, 4, 2}, {6, 2}, 2}}},
    {{5}, 9, 4, {6, 9, 2}, any, {}},
    // One A: m first, or m last.
    {{}, 120, 4, {120, 30, 40}, any, {{first, {4, 30, 40}, {30, 40}, 1200}}},
    {{}, 120, 4, {30, 40, 120}, any, {{last, {30, 40, 4}, {30, 40}, 1200}}},
    {{}, 9, 4, {6, 9}, any, {{last, {6, 4}, {6}, 6}}},
    // Two ways that fit.
    {{}, 9, 4, {9, 9}, any, {{matrix, {4, 9}, {9}, 9}, {last, {9, 4}, {9}, 9}}},
    {{}, 9, 4, {9, 9}, last, {{last, {9, 4}, {9}, 9}}},
    {{9}, 9, 4, {9, 9}, any, {{matrix, {9, 4, 9}, {9, 9}, 9}, {last, {9, 4}, {9}, 1}}},
    {{}, 9, 4, {9, 9, 2}, any, {{matrix, {9, 4, 2}, {9, 2}, 2}, {first, {4, 9, 2}, {9, 2}, 18}}},
    {{}, 9, 4, {9, 9, 2}, first, {{first, {4, 9, 2}, {9, 2}, 18}}},
    // X of a square A has the same shape both ways, but the right sides are others.
    {{}, 9, 9, {9, 9, 2}, any, {{matrix, {9, 9, 2}, {9, 2}, 2}, {first, {9, 9, 2}, {9, 2}, 18}}},
    {{}, 1, 1, {1, 1, 5}, any, {{matrix, {1, 1, 5}, {1, 5}, 5}}},
    {{}, 9, 4, {9, 5, 9}, matrix, {}},
    // A single number is a row as well as a column.
    {{}, 1, 1, {1, 1}, any, {{matrix, {1, 1}, {1}, 1}}},
    // Stored by columns, as MATLAB does: m x p is p x m in the file.
    {{}, 9, 4, {7, 9}, any, {{matrix, {7, 4}, {7}, 7}}, true},
    {{5}, 9, 4, {5, 2, 9}, any, {{matrix, {5, 2, 4}, {5, 2}, 2}}, true},
    {{}, 9, 4, {2, 7, 9}, any, {{matrix, {2, 7, 4}, {2, 7}, 7}}, true},
    // Nothing to solve is a shape, too.
    {{0}, 9, 4, {0, 9}, any, {{last, {0, 4}, {0}, 1}}},
    {{}, 9, 4, {9, 0}, any, {{matrix, {4, 0}, {0}, 0}}},
};

TEST(Shapes, AreReadInEveryWayThatFits) {
  for (const Case& c : cases) {
    SCOPED_TRACE(testing::Message()
                 << "A " << testing::PrintToString(c.a_leading) << " " << c.m << "x" << c.n
                 << ", B " << testing::PrintToString(c.b) << ", asked " << name_of(c.asked));
    const auto found = readings({c.a_leading, c.m, c.n, c.b, c.is_column}, c.asked);
    ASSERT_EQ(found.size(), c.expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].rows, c.expected[i].rows);
      EXPECT_EQ(found[i].x_dims, c.expected[i].x_dims);
      EXPECT_EQ(found[i].solution_dims, c.expected[i].solution_dims);
      EXPECT_EQ(found[i].p, c.expected[i].p);
    }
  }
}

TEST(Shapes, GiveEachPlaceItsMatrixAndItsRightSides) {
  const RightSides sides = readings({{3, 1}, 9, 4, {1, 5, 9, 2}}, any).front();
  ASSERT_EQ(sides.items(), 15);
  for (index_t i = 0; i < 15; ++i) {
    const SidePlace place = sides.place(2 * i + 1);
    EXPECT_EQ(place.a, i / 5);
    EXPECT_EQ(place.in_b, i % 5 * 18 + 1);
    EXPECT_EQ(place.in_fits, i * 18 + 1);
    EXPECT_EQ(place.step, 2);
    EXPECT_EQ(place.column, 1);
  }
}

TEST(Shapes, AVectorBelongsToEveryMatrix) {
  const RightSides sides = readings({{7}, 9, 4, {9}}, any).front();
  EXPECT_EQ(sides.items(), 7);
  EXPECT_EQ(sides.place(6).a, 6);
  EXPECT_EQ(sides.place(6).in_b, 0);
  EXPECT_EQ(sides.place(6).in_fits, 54);
}

}  // namespace
}  // namespace qrtool::shapes_test
