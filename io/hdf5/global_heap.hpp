// SPDX-License-Identifier: Apache-2.0
// global_heap.hpp: checks a global heap, which holds the texts of attributes. HDF5 1.10 walks from
// object to object by the sizes that they state: for ever where one states 0, and beyond the end.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "io/hdf5/local_heap.hpp"

namespace qrtool::hdf5 {

/// Whether these bytes begin like a global heap.
bool is_global_heap(std::span<const std::byte> bytes);

/// Why the heap that these bytes are is damaged; empty where it is not, and where they are only the
/// begin of a larger heap, which HDF5 then reads as a whole. `read` reads the file.
std::string problem_of_global_heap(std::span<const std::byte> heap, const ReadBytes& read);

}  // namespace qrtool::hdf5
