// SPDX-License-Identifier: Apache-2.0
// array.hpp: an array in an open file, and the place of its numbers.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "core/batch.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/input_file.hpp"
#include "io/file/scratch_file.hpp"
#include "io/npy/header.hpp"

namespace qrtool::npy {

/// A file that is open for reading.
struct OpenFile {
  /// Opens the file. Errors: InputError.
  explicit OpenFile(const std::string& path);

  std::string name, shown;  // the user's text, and escaped for messages
  Descriptor descriptor;
  std::uint64_t size;  // bytes
  FileStamp stamp;     // of the moment when it was opened
};

/// The place of an array's contiguous numbers: a scratch file, or the array's own file from `start`
/// on.
struct NumbersPlace {
  ScratchFile scratch;  // none: in the array's own file
  std::uint64_t start = 0;
};

/// The header of an array, and the function that finds its numbers.
struct ArrayParts {
  std::shared_ptr<const OpenFile> file;
  std::string shown;  // "a.npy", "a.npz: x"
  Header header;
  /// Called once, before the first number is read. It may copy the numbers to scratch memory.
  std::function<NumbersPlace()> find_numbers;
  bool needs_copy = false;  // that it does
};

/// The threads, the directory (empty: $TMPDIR or /tmp) and the memory that a copy of the numbers
/// may use.
struct CopyMeans {
  int threads = 1;
  std::string scratch = {};
  std::size_t memory_bytes = SIZE_MAX;
};

struct Tile;

/// The numbers of an array, as matrices in C or in Fortran order. Several threads may use it.
class StoredArray {
 public:
  /// The last `matrix_rank` dimensions are a matrix, or a vector (1).
  StoredArray(ArrayParts parts, std::size_t matrix_rank, CopyMeans means);

  const Header& header() const { return parts_.header; }
  const OpenFile& file() const { return *parts_.file; }
  const std::string& shown() const { return parts_.shown; }
  /// Whether each matrix is stored by columns.
  bool is_transposed() const { return parts_.header.is_fortran && matrix_rank_ == 2; }
  /// Whether the numbers are copied before the first is read.
  bool needs_copy() const { return parts_.needs_copy || is_interleaved(); }
  /// Returns the most memory that the copy needs.
  std::size_t copy_bytes() const { return is_interleaved() ? 2 * block_bytes() : 0; }

  /// Copies bytes from `offset` on, counted from the first number of the first matrix. Errors:
  /// InputError; OutputError if there is no room for a copy.
  void load(std::uint64_t offset, std::size_t bytes, std::byte* to);

 private:
  index_t matrix_elements() const;
  bool is_interleaved() const;
  void load_from(const NumbersPlace& place, std::uint64_t offset, std::size_t bytes,
                 std::byte* to) const;
  std::size_t block_bytes() const;
  NumbersPlace separate(const NumbersPlace& interleaved) const;
  template <class Word>
  NumbersPlace separate_words(const NumbersPlace& interleaved) const;
  template <class Word>
  void separate_tile(const Tile& tile, const NumbersPlace& interleaved,
                     const NumbersPlace& separated) const;

  ArrayParts parts_;
  std::size_t matrix_rank_;
  CopyMeans means_;
  std::once_flag is_found_;
  NumbersPlace place_;
};

/// Creates a scratch file for the numbers of an array. `shown` names it in messages. Errors:
/// OutputError.
ScratchFile scratch_for(const std::string& shown, const std::string& scratch, std::uint64_t bytes);

/// Opens the array of a .npy file. Errors: InputError.
ArrayParts open_array(const std::string& path);

}  // namespace qrtool::npy
