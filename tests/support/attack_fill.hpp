// SPDX-License-Identifier: Apache-2.0
// attack_fill.hpp: what the families of attack_columns.cpp and attack_rows.cpp have in common.
#pragma once

#include <vector>

#include "tests/support/attack.hpp"
#include "tests/support/draw.hpp"

namespace qrtool::test {

using Matrix = MatrixView<double>;

inline void fill_normal(Draw& draw, Matrix a) {
  for (index_t i = 0; i < a.rows; ++i) draw.normals(&a(i, 0), a.cols);
}

template <class Change>
void change_entries(Matrix a, Change change) {
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = change(i, j, a(i, j));
}

/// The families of attack_columns.cpp and of attack_rows.cpp, in the order of attack_families().
const std::vector<AttackFamily>& column_families();
const std::vector<AttackFamily>& row_families();

}  // namespace qrtool::test
