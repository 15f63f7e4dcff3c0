// SPDX-License-Identifier: Apache-2.0
// reader.hpp: matrices from a file, a few at a time, never the whole file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "core/problem.hpp"

namespace qrtool {

/// Which of the last two stored dimensions runs over rows. MATLAB, Octave and Julia store `column`.
enum class Order { automatic, row, column };
std::string_view name_of(Order order);

/// What to read. `path` may be FILE, FILE:/path/in/file, or "-" (standard input, CSV).
struct InputSpec {
  std::string path;
  std::string dataset;  // --dataset; empty: from `path`, or the only candidate
  Order order = Order::automatic;
  int threads = 1;  // that read at once, at the most
};

/// What was found.
struct Source {
  std::string file;                         // as given, without :/path; "standard input" for "-"
  std::string dataset;                      // path in the file; empty for CSV
  std::vector<index_t> leading;             // batch dimensions; empty for one matrix
  index_t m = 0, n = 0;                     // after --order
  ElementType type = ElementType::float64;  // that the data is factored in by default
  std::string stored_type;                  // "int32", "big-endian float64", ... for notes
  Order order = Order::row;                 // resolved

  index_t count() const {
    index_t product = 1;
    for (index_t extent : leading) product *= extent;
    return product;
  }
};

/// Reads matrices in any order. One thread at a time per reader; several readers may be used from
/// several threads. Errors: InputError (damaged data, named by matrix), LimitError.
class Reader {
 public:
  virtual ~Reader() = default;
  const Source& source() const { return source_; }

  /// Matrices first .. first + out.count - 1 of the flattened batch (out: m x n, packed).
  virtual void read(index_t first, BatchView<float> out) = 0;
  virtual void read(index_t first, BatchView<double> out) = 0;

  /// Rows first_row .. first_row + out.rows - 1 of one matrix (out: rows x n, packed).
  virtual void read_rows(index_t matrix, index_t first_row, MatrixView<float> out) = 0;
  virtual void read_rows(index_t matrix, index_t first_row, MatrixView<double> out) = 0;

  /// A reader of the same data for one more thread, which reads best piece by piece; null where
  /// several readers are no faster than one.
  virtual std::unique_ptr<Reader> another() const { return nullptr; }
  /// Rows of 1 MiB, at least one: a piece is no larger.
  index_t most_piece_rows() const;
  /// The row after the piece that begins with a row: where the file's own pieces end, if that is
  /// near; at the most the matrix's end.
  virtual index_t piece_end(index_t matrix, index_t first_row) const;

 protected:
  Source source_;
};

/// Opens a file of matrices: HDF5 or CSV, told by the name's ending and checked against the
/// content. Errors: InputError, LimitError; before anything is allocated.
std::unique_ptr<Reader> open_input(const InputSpec& spec);

/// Factors that were stored by this tool or by another program.
struct StoredFactors {
  std::string file;
  // Q and R; or R alone; or V and tau (tau's matrices are 1 x k).
  std::unique_ptr<Reader> q, r, v, tau;
  bool by_qrtool = false;
  bool is_mixed = false;  // by qrtool with --precision mixed
};

/// Opens FILE's /Q, /R, /V, /tau (also q, r), or FILE.Q.csv, FILE.R.csv, ... for out.csv.
/// `order` is the input's resolved order; the file's own `order` attribute wins over it.
/// At most `threads` threads read at once.
/// Errors: InputError, also where neither R nor V is there or their shapes contradict each other.
StoredFactors open_factors(const std::string& path, Order order, int threads = 1);

}  // namespace qrtool
