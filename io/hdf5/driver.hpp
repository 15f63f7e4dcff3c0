// SPDX-License-Identifier: Apache-2.0
// driver.hpp: where HDF5 keeps a chunk, without HDF5 moving its bytes.
//
// HDF5 does one thing at a time, and its public calls tell the address of a chunk only after a walk
// over all chunks. The driver here passes everything on to HDF5's own (sec2), but for the bytes of
// a chunk that find_chunk or allocate_chunk asks for: it notes their place instead, so that several
// threads can read, check and write chunks by themselves.
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

/// Makes `access` (a property list of file access) open files through this driver. Negative where
/// HDF5 reports an error.
herr_t set_locating_driver(hid_t access);

/// The descriptor that HDF5 reads `file` through; -1 where HDF5 reports an error.
int descriptor_of(hid_t file);

// The following take a chunked dataset in a file that was opened through the driver, and the chunk
// by the index of its first element.

/// Nothing where the chunk was never written, or by leaving a filter out.
std::optional<Extent> find_chunk(hid_t dataset, std::span<const hsize_t> offset);

/// Gives the chunk a place of `bytes` bytes, which the caller is to fill. Nothing where HDF5
/// reports an error.
std::optional<Extent> allocate_chunk(hid_t dataset, std::span<const hsize_t> offset,
                                     std::size_t bytes);

}  // namespace qrtool::hdf5
