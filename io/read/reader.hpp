// SPDX-License-Identifier: Apache-2.0
// reader.hpp: reads matrices from a file, a few at a time, never the whole file at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/problem/problem.hpp"
#include "io/source/complex_form.hpp"
#include "io/source/csv_options.hpp"
#include "io/source/dimension.hpp"
#include "io/source/table.hpp"

namespace qrtool {

/// The order of the last two stored dimensions: rows x columns (`row`), or columns x rows
/// (`column`), which MATLAB, Octave and Julia write.
enum class Order { automatic, row, column };
std::string_view name_of(Order order);

/// The matrices to read. `path` is FILE, FILE:/path/in/file, or "-" (CSV from standard input).
struct InputSpec {
  std::string path;
  std::string dataset;  // --dataset; where empty, that in `path`, or the file's only one
  Order order = Order::automatic;
  int threads = 1;  // the most that read at once
  // The memory that a reader should keep within, as far as the storage of the file allows.
  std::size_t memory_bytes = SIZE_MAX;
  // The directory for copies of data that cannot be read in place; empty: $TMPDIR or /tmp.
  std::string scratch = {};
  CsvOptions csv = {};         // only for text
  bool takes_vectors = false;  // an array of one dimension is m numbers
  bool is_one_table = false;   // text: a blank line within it is skipped, and ends no matrix
  // Further columns of text that the run needs, by name or number. A hint must keep them.
  std::vector<std::string> needed_columns = {};
  bool only_needed_columns = false;  // others are not read, whatever they hold
  bool remainders = false;           // in place of each integer what float64 leaves of it, mostly 0
  bool raw_values = false;      // HDF5: numbers as they are stored, whatever the attributes say
  bool takes_complex = false;   // complex matrices are refused otherwise
  bool order_is_guess = false;  // `order` was guessed by the run that made the factors
  bool has_ones = false;        // a column of ones comes first
  bool skips_missing = false;   // a row with NaN is zeros, as if A had no such row
};

/// A description of the matrices that an input holds.
struct Source {
  std::string file;                         // as given, without :/path; "standard input" for "-"
  std::string dataset;                      // path in the file; empty for CSV
  std::vector<index_t> leading;             // batch dimensions; empty for one matrix
  index_t m = 0, n = 0;                     // after --order
  ElementType type = ElementType::float64;  // the type in which the data is factored by default
  std::string stored_type;                  // "int32", "big-endian float64", ... for notes
  // The order that was found. For an array (open_array) it is automatic if the file does not say.
  Order order = Order::row;
  ComplexForm complex_form = {};        // where `type` is complex
  bool order_is_stated = true;          // false: nothing says in which order the file was written
  std::string order_reason = {};        // HDF5: what states it; empty where the user does
  TextPairs details = {};               // how the file is written, for the attributes of an output
  std::vector<std::string> notes = {};  // what the user should know of how it was read
  // For integers of 64 bits: whether one was read that float64 cannot represent. Null for other
  // types.
  std::shared_ptr<std::atomic<bool>> rounds = {};
  bool needs_copy = false;  // the data are copied to a scratch file before the first is read
  // The dimensions of an array (open_array) if they are not leading x m x n, else empty. The
  // numbers are in the same order.
  std::vector<index_t> array_dims = {};
  Table table = {};                        // the columns of text
  std::vector<Dimension> dimensions = {};  // of dims_of(); empty where none has a name

  index_t count() const {
    index_t product = 1;
    for (index_t extent : leading) product *= extent;
    return product;
  }
};

/// Whether the other order would give matrices of another shape or with other numbers, and only the
/// user knows which was meant. A matrix with more rows than columns is taken as it is stored.
bool has_doubtful_order(const Source& source);

/// Reads matrices in any order. Complex matrices are read as their real and imaginary parts in
/// turn: `out` has 2 n columns (interleaved()). Only one thread at a time may use a reader; several
/// threads may use several readers. Errors: InputError (damaged data; the message names the
/// matrix), LimitError.
class Reader {
 public:
  virtual ~Reader() = default;
  const Source& source() const { return source_; }

  /// Reads matrices first .. first + out.count - 1 of the flattened batch into `out` (m x n, or m x
  /// 2n, packed).
  virtual void read(index_t first, BatchView<float> out) = 0;
  virtual void read(index_t first, BatchView<double> out) = 0;

  /// Reads rows first_row .. first_row + out.rows - 1 of one matrix into `out` (rows x n, packed).
  virtual void read_rows(index_t matrix, index_t first_row, MatrixView<float> out) = 0;
  virtual void read_rows(index_t matrix, index_t first_row, MatrixView<double> out) = 0;

  /// Checks that the file was not changed since it was opened; else the data may be a mixture. Call
  /// it after the last read. Errors: InputError.
  virtual void require_unchanged() const = 0;

  /// Returns the most memory that reading needs besides the numbers themselves, which are read as
  /// `type`.
  virtual std::size_t workspace_bytes(ElementType) const { return 0; }

  /// Creates a reader of the same data for another thread. It is fastest if it reads piece by
  /// piece. Returns null if several readers are not faster than one.
  virtual std::unique_ptr<Reader> another() const { return nullptr; }
  /// Returns the most rows of a piece: as many as fit in 1 MiB, but at least one.
  index_t most_piece_rows() const;
  /// Returns the end (the row after the last) of the piece that begins with `first_row`. It is the
  /// end of a chunk of the file if one is near, and never beyond the end of the matrix.
  virtual index_t piece_end(index_t matrix, index_t first_row) const;

 protected:
  Source source_;
};

/// Returns the dimensions of an array, without the dimensions that an index of its selection drops.
std::vector<index_t> dims_of(const Source& source);

}  // namespace qrtool
