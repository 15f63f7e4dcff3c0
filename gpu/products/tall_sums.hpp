// SPDX-License-Identifier: Apache-2.0
// tall_sums.hpp: the sizes that a host half needs for the sums of tall_sums.clh.
#pragma once

#include <cstddef>
#include <string>

#include "core/plan/plan.hpp"
#include "gpu/common/shapes.clh"

namespace qrtool {

/// Returns GRAM_BODY on a device: 1 for plain sums, 2 for matrix products.
int row_sums_body(const Limits& limits);
/// GRAM_GROUP, the work-items of a group, for n columns.
int row_sums_group(index_t n, int body);
/// A's columns and their type, and how they are summed.
struct RowSums {
  index_t n;
  ElementType type;
  int body;
  bool has_right_side;
};
/// Why the sums are not there for them; empty where they are.
std::string row_sums_objection(const RowSums& sums);
/// Returns the bytes of local memory of a group: GRAM_SCRATCH and one integer.
std::size_t row_sums_local_bytes(const RowSums& sums);
/// Returns how the m rows of a matrix are cut into slabs.
SlabShape row_sums_slabs(index_t m, index_t n);

}  // namespace qrtool
