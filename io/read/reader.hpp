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
  // What a reader should keep to for itself, as far as the way the file is stored allows it.
  std::size_t memory_bytes = SIZE_MAX;
  // The directory for copies of data that cannot be read where they are; empty: $TMPDIR or /tmp.
  std::string scratch = {};
  CsvOptions csv = {};         // only for text
  bool takes_vectors = false;  // an array of one dimension is m numbers
  bool is_one_table = false;   // text: a blank line within it is skipped, and ends no matrix
  // Columns of text that the run needs beside others, by name or number. A hint keeps them.
  std::vector<std::string> needed_columns = {};
  bool remainders = false;      // in place of each integer what float64 leaves of it, mostly 0
  bool raw_values = false;      // HDF5: numbers as they are stored, whatever the attributes say
  bool takes_complex = false;   // complex matrices are refused otherwise
  bool order_is_guess = false;  // `order` was guessed by the run that made the factors
};

/// The matrices that were found.
struct Source {
  std::string file;                         // as given, without :/path; "standard input" for "-"
  std::string dataset;                      // path in the file; empty for CSV
  std::vector<index_t> leading;             // batch dimensions; empty for one matrix
  index_t m = 0, n = 0;                     // after --order
  ElementType type = ElementType::float64;  // the type in which the data is factored by default
  std::string stored_type;                  // "int32", "big-endian float64", ... for notes
  // Resolved; of an array (open_array) automatic where nothing says by what order it was written.
  Order order = Order::row;
  ComplexForm complex_form = {};        // where `type` is complex
  bool order_is_stated = true;          // false: nothing says in which order the file was written
  std::string order_reason = {};        // HDF5: what states it; empty where the user does
  TextPairs details = {};               // how the file is written, for the attributes of an output
  std::vector<std::string> notes = {};  // what the user should know of how it was read
  // Integers of 64 bits: whether one was read that float64 does not hold. Null: there are none.
  std::shared_ptr<std::atomic<bool>> rounds = {};
  bool needs_copy = false;  // the data are copied to a scratch file before the first is read
  // The dimensions of an array (open_array) that are not leading x m x n; empty: they are. The
  // numbers have the same order.
  std::vector<index_t> array_dims = {};
  Table table = {};                        // the columns of text
  std::vector<Dimension> dimensions = {};  // of dims_of(); empty where none has a name

  index_t count() const {
    index_t product = 1;
    for (index_t extent : leading) product *= extent;
    return product;
  }
};

/// Whether matrices stored by the other order would have other shapes or numbers, and only the user
/// knows which was meant. A matrix with more rows than columns is taken for what it seems.
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

  /// Call it after the last read: what was read may be a mixture where the file was changed since
  /// it was opened. Errors: InputError.
  virtual void require_unchanged() const = 0;

  /// Returns the most memory that reading takes besides the numbers themselves, which are read as
  /// `type`.
  virtual std::size_t workspace_bytes(ElementType) const { return 0; }

  /// Creates a reader of the same data for another thread. It is fastest when it reads piece by
  /// piece. Returns null where several readers are not faster than one.
  virtual std::unique_ptr<Reader> another() const { return nullptr; }
  /// The most rows of a piece: as many as fit in 1 MiB, but at least one.
  index_t most_piece_rows() const;
  /// The end (the row after the last) of the piece that begins with `first_row`. It is the end of a
  /// chunk of the file where there is one near, and never beyond the end of the matrix.
  virtual index_t piece_end(index_t matrix, index_t first_row) const;

 protected:
  Source source_;
};

/// Returns the dimensions of an array, without those that an index of its selection drops.
std::vector<index_t> dims_of(const Source& source);

}  // namespace qrtool
