// SPDX-License-Identifier: Apache-2.0
// part_reader.hpp: what a reader also offers that can read a part of a row. Right sides may be
// stored as rows, each of millions of numbers.
#pragma once

#include "core/batch.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

class PartReader {
 public:
  virtual ~PartReader() = default;
  /// Whether parts of rows can be read: the source is stored by rows.
  virtual bool can_read_parts() const = 0;
  /// Reads numbers first .. first + count - 1, counted in the order of matrices, rows and columns,
  /// all of one row. Errors: as Reader::read_rows.
  virtual void read_part(index_t first, index_t count, float* out) = 0;
  virtual void read_part(index_t first, index_t count, double* out) = 0;
};

/// Returns the reader as a PartReader, or null if it cannot read parts of rows.
inline PartReader* part_reader_of(Reader& reader) {
  auto* const parts = dynamic_cast<PartReader*>(&reader);
  return parts != nullptr && parts->can_read_parts() ? parts : nullptr;
}

}  // namespace qrtool
