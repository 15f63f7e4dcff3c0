// SPDX-License-Identifier: Apache-2.0
// array_writer.hpp: writes the matrices of one array to an open file.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "io/factors/factor_set.hpp"
#include "io/file/read_write_at.hpp"
#include "io/write/writer.hpp"

namespace qrtool::npy {

/// A file that is open for writing, with its name in messages.
struct OutputFile {
  int descriptor = -1;
  std::string shown;
};

/// Returns the size of an array with its header, in an output with these batch dimensions. Errors:
/// LimitError if it exceeds the largest size of a file.
std::uint64_t array_bytes(const MatrixDataset& dataset, const std::vector<index_t>& leading);

/// Writes `bytes` bytes at `position`. Errors: OutputError.
void write_fully(const OutputFile& file, std::uint64_t position, const void* bytes,
                 std::size_t count);

/// Writes an array in C order from the start of a file. The matrices come in ascending order,
/// without gaps; while one thread writes, another sums up. Only one thread at a time may use a
/// writer.
class ArrayWriter {
 public:
  /// The file that a dataset is written to.
  struct Target {
    OutputFile file;
    std::vector<index_t> leading;  // the batch dimensions of the output
    int threads = 1;
    bool has_checksums = true;
  };
  ArrayWriter(MatrixDataset dataset, Target target);

  const MatrixDataset& dataset() const { return dataset_; }
  const OutputFile& file() const { return file_; }

  /// Writes matrices. Errors: OutputError.
  template <class T>
  void write(index_t first, BatchView<const T> values);
  template <class T>
  void write_rows(index_t matrix, index_t first_row, MatrixView<const T> rows);
  template <class T>
  void write_part(index_t first, std::span<const T> values);
  /// Goes back to row 0 of a matrix, the last one of which rows were written.
  void restart(index_t matrix);

  /// Returns the checksums (core/measure/checksum.hpp) of the next `matrices` complete matrices, if
  /// the array has checksums.
  Checksums take_checksums(std::size_t matrices) { return take_first(checksums_, matrices); }

 private:
  index_t matrix_elements() const { return dataset_.rows * dataset_.cols; }
  template <class T>
  void append_matrices(BatchView<const T> values, const std::function<void(index_t)>& sum_up);
  template <class T>
  void append(const T* values, index_t count);
  template <class T>
  void append_group(const T* values, index_t count);

  OutputFile file_;
  MatrixDataset dataset_;
  int threads_;
  bool has_checksums_;
  std::uint64_t start_ = 0;  // where the numbers begin
  index_t position_ = 0;     // elements written
  FileRange written_;        // by the last group of at least a piece
  std::uint64_t sum_ = 0;    // of the rows of the matrix that is not complete
  Checksums checksums_;
};

/// Implements FactorCodec::join for these checksums.
Checksums join_checksums(std::span<const Checksums> of_arrays, std::size_t matrices);

}  // namespace qrtool::npy
