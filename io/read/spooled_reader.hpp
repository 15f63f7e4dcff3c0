// SPDX-License-Identifier: Apache-2.0
// spooled_reader.hpp: reads matrices whose text is read once, when the file is opened, and whose
// numbers are kept in a temporary file.
#pragma once

#include <string>
#include <vector>

#include "io/read/reader_of.hpp"

namespace qrtool {

/// Numbers in a temporary file, which grows as they come. Errors: OutputError.
class Spool {
 public:
  /// `shown`: the name of the input in messages.
  explicit Spool(std::string shown);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  void add(double number);
  /// Makes the numbers readable. Call it after the last add().
  void map();
  double operator[](index_t at) const { return numbers_[at]; }

 private:
  void flush();

  std::string shown_;
  int file_;
  std::vector<double> buffer_;
  index_t count_ = 0;
  std::size_t mapped_bytes_ = 0;
  double* numbers_ = nullptr;
};

class SpooledReader : public ReaderOf<SpooledReader> {
 public:
  template <class T>
  void read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out);
  /// Nothing to check: the numbers were copied, and the code that copied them has checked that the
  /// file did not change.
  void require_unchanged() const override {}

 protected:
  /// `shown`: the file's name in messages.
  explicit SpooledReader(const std::string& shown) : shown_(shown), spool_(shown) {}

  /// Returns a part (0, or of complex numbers 0 and 1) of entry (i, j) of a matrix, found in
  /// spool_.
  virtual double element(index_t matrix, index_t i, index_t j, index_t part) const = 0;

  std::string shown_;
  Spool spool_;
};

}  // namespace qrtool
