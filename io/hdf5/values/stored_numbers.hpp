// SPDX-License-Identifier: Apache-2.0
// stored_numbers.hpp: the numbers of a selection as they are stored, in the type and in the order
// that a reader wants, past the library where the dataset allows it.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "io/hdf5/values/dataset_reader.hpp"
#include "io/hdf5/values/direct_reader.hpp"
#include "io/hdf5/values/storage.hpp"
#include "io/hdf5/values/unpacker.hpp"

namespace qrtool::hdf5 {

class StoredNumbers {
 public:
  /// `part` has a range for each dimension, and `source` will have the shape of the selected
  /// numbers when they are read. All of them must outlive this object; the dataset is opened again
  /// with a larger cache. Errors: InputError, LimitError.
  StoredNumbers(const InputFile& file, Dataset& dataset, const DatasetPart& part,
                const Source& source);

  bool is_transposed() const { return is_transposed_; }
  /// Whether numbers are read past the library in the order that the reader wants.
  bool is_direct() const { return direct_ && !is_transposed_; }
  /// Returns the bytes to read at a time if numbers change their order or their type.
  index_t scratch_bytes() const;
  std::size_t workspace_bytes(ElementType type) const;
  /// With is_direct(): the first row of a matrix whose numbers begin in the last piece of the file
  /// before row `end`.
  index_t piece_row(index_t matrix, index_t end) const;

  // These functions return false if HDF5 reports an error or a number is too large for T; error()
  // and overflowed() tell which. Errors: InputError.
  template <class T>
  bool read(index_t first, BatchView<T> out);
  template <class T>
  bool read_tile(index_t matrix, index_t first_row, MatrixView<T> out);
  /// Elements first .. first + count - 1 of all, which lie in one row.
  template <class T>
  bool read_part_of_row(index_t first, index_t count, T* out);

  /// Call it before a read whose overflow matters.
  void forget_overflow() { overflowed_ = false; }
  bool overflowed() const { return overflowed_; }
  const std::string& error() const { return error_; }

 private:
  /// A block of stored rows and columns of every matrix.
  struct Block {
    index_t row, rows, col, cols;
  };
  bool has_complex() const { return is_complex(dataset_.type); }
  void open_direct();
  template <class T>
  bool read_block(const Box& box, const Block& block, T* out);
  template <class T>
  bool read_by_library(const Storage::Part& part, T* out);
  template <class T>
  bool read_stored(index_t first, index_t count, T* out);
  template <class T>
  bool read_transposed(index_t first, BatchView<T> out);
  /// Returns the columns of a chunk of a dataset that is stored by columns, or 1 if it has no
  /// chunks.
  index_t columns_of_chunk() const;
  template <class T>
  T* scratch(index_t elements);

  const InputFile& file_;
  Dataset& dataset_;
  const DatasetPart& part_;
  const Source& source_;
  Handle space_, transfer_;
  std::optional<Storage> storage_;
  std::unique_ptr<DirectReader> direct_;  // null where dataset or selection do not allow it
  index_t flat_first_ = 0;                // of direct_: the first selected element
  std::unique_ptr<Unpacker> unpacker_;    // null where the dataset does not allow it
  std::size_t cache_bytes_ = 0;           // of HDF5, for chunks
  bool is_transposed_ = false;
  bool overflowed_ = false;
  std::string error_;  // the error of the last call that failed
  HostMemory scratch_;
  index_t scratch_size_ = 0;  // bytes
};

}  // namespace qrtool::hdf5
