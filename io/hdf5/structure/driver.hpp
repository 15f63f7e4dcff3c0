// SPDX-License-Identifier: Apache-2.0
// driver.hpp: finds the place of a chunk in an HDF5 file without moving its bytes.
//
// HDF5 works on one thread at a time, and its public calls give the address of a chunk only after a
// walk over all chunks. This driver passes every call on to HDF5's usual driver (sec2), except
// reads and writes of a chunk for find_chunk and allocate_chunk: it only notes their place. Several
// threads can then read, check and write chunks without HDF5. In a file that is only read, it also
// checks the superblock and the local heaps of groups before HDF5 works with them.
#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <span>

namespace qrtool::hdf5 {

/// A place in a file; the address counts from the file's first byte.
struct Extent {
  std::uint64_t address = 0, bytes = 0;
};

/// Makes `access` (a file access property list) open files through this driver. Returns a negative
/// number if HDF5 reports an error.
herr_t set_locating_driver(hid_t access);

/// Returns the descriptor through which HDF5 reads `file`, or -1 if HDF5 reports an error.
int descriptor_of(hid_t file);

// The functions below take a chunked dataset in a file that was opened through this driver.
// `offset` names a chunk by the index of its first element.

/// The place of a chunk in the file, and how it is stored.
struct StoredChunk {
  Extent extent;
  std::uint32_t filters_left_out = 0;  // a bit for each filter that was not applied
};

/// Looks a chunk up in a file of `file_bytes`. Returns nothing if it was never written, or if HDF5
/// reports an error; take_error() tells. A chunk that claims to be larger than the file is placed
/// at its end.
std::optional<StoredChunk> locate_chunk(hid_t dataset, std::span<const hsize_t> offset,
                                        std::uint64_t file_bytes);

/// Returns the place of a chunk, or nothing if the chunk was never written, or was written without
/// one of its filters.
std::optional<Extent> find_chunk(hid_t dataset, std::span<const hsize_t> offset,
                                 std::uint64_t file_bytes);

/// Assigns a place of `bytes` bytes to the chunk; the caller must fill it. Returns nothing if HDF5
/// reports an error.
std::optional<Extent> allocate_chunk(hid_t dataset, std::span<const hsize_t> offset,
                                     std::size_t bytes);

}  // namespace qrtool::hdf5
