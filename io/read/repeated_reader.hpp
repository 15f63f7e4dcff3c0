// SPDX-License-Identifier: Apache-2.0
// repeated_reader.hpp: notices that rows which are read twice are not the same the second time.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "io/read/reader.hpp"

namespace qrtool {

/// Reads through another reader, and keeps a checksum of every range of rows that was read. R of
/// one content of a file would pass for the R of Q of another content, and the time of the last
/// write does not show every change (a mapped file, a server's clock). One thread at a time may use
/// it.
class RepeatedReader final : public Reader {
 public:
  /// Reads through `inner`, which must outlive it.
  explicit RepeatedReader(Reader& inner) : inner_(inner) { source_ = inner.source(); }

  void read(index_t first, BatchView<float> out) override { inner_.read(first, out); }
  void read(index_t first, BatchView<double> out) override { inner_.read(first, out); }
  /// Errors: as Reader::read_rows; also InputError if the rows were other numbers before.
  void read_rows(index_t matrix, index_t first_row, MatrixView<float> out) override;
  void read_rows(index_t matrix, index_t first_row, MatrixView<double> out) override;
  void require_unchanged() const override { inner_.require_unchanged(); }
  std::unique_ptr<Reader> another() const override { return inner_.another(); }
  index_t piece_end(index_t matrix, index_t first_row) const override {
    return inner_.piece_end(matrix, first_row);
  }

 private:
  template <class T>
  void read_and_compare(index_t matrix, index_t first_row, MatrixView<T> out);

  Reader& inner_;
  index_t matrix_ = -1;                                        // the one that sums_ belongs to
  std::map<std::pair<index_t, index_t>, std::uint32_t> sums_;  // by first row and rows
};

}  // namespace qrtool
