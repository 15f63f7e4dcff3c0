// SPDX-License-Identifier: Apache-2.0
// fixed_arrays.hpp: the indexes of chunks of datasets that cannot grow. HDF5 1.10 takes their
// number of entries from the largest dimensions of the dataset, and reads beyond an index that has
// fewer. It takes memory for all entries that an index states before it reads them.
#pragma once

#include <hdf5.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "io/hdf5/structure/local_heap.hpp"

namespace qrtool::hdf5 {

/// Whether these bytes are the head of such an index.
bool is_fixed_array(std::span<const std::byte> bytes);

/// Returns the reason why the index with this head is damaged, or an empty text. Its entries must
/// lie in the file, which has `file_bytes`.
std::string problem_of_fixed_array(std::span<const std::byte> head, std::uint64_t file_bytes,
                                   const ReadBytes& read);

/// Records the number of entries of the index with this head. `descriptor` is the file's. Throws
/// std::bad_alloc.
void note_fixed_array(int descriptor, std::span<const std::byte> head);

/// Removes the records of a descriptor that now belongs to another file.
void forget_fixed_arrays(int descriptor) noexcept;

/// Whether an index with this number of entries was read from the file. The calling thread must
/// hold a Session, as for note_fixed_array().
bool has_fixed_array(int descriptor, std::uint64_t entries);

}  // namespace qrtool::hdf5
