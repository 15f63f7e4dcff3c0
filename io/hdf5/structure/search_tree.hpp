// SPDX-License-Identifier: Apache-2.0
// search_tree.hpp: B-trees of version 2, which index chunks and the members of groups. HDF5 1.10
// takes memory for a node of the size that a tree states before it reads one, and clears it; where
// that size has no room for an entry, it takes memory for as many entries as an integer can count.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace qrtool::hdf5 {

/// Whether these bytes are the head of such a tree.
bool is_search_tree(std::span<const std::byte> bytes);

/// Returns the reason why the tree with this head is damaged, or an empty text. Its nodes must lie
/// in the file, which has `file_bytes`.
std::string problem_of_search_tree(std::span<const std::byte> head, std::uint64_t file_bytes);

}  // namespace qrtool::hdf5
