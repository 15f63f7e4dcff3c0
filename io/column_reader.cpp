// SPDX-License-Identifier: Apache-2.0
// column_reader.cpp: chosen columns of the matrices of another reader.
#include <algorithm>
#include <utility>

#include "io/reader.hpp"

namespace qrtool {
namespace {

class ColumnReader final : public Reader {
 public:
  ColumnReader(std::shared_ptr<Reader> reader, std::vector<index_t> columns, bool has_ones)
      : reader_(std::move(reader)), columns_(std::move(columns)), has_ones_(has_ones) {
    source_ = reader_->source();
    source_.n = std::ssize(columns_) + (has_ones ? 1 : 0);
    source_.table.keep(columns_);
  }

  void read(index_t first, BatchView<float> out) override { read_matrices(first, out); }
  void read(index_t first, BatchView<double> out) override { read_matrices(first, out); }
  void read_rows(index_t matrix, index_t first_row, MatrixView<float> out) override {
    read_some(matrix, first_row, out);
  }
  void read_rows(index_t matrix, index_t first_row, MatrixView<double> out) override {
    read_some(matrix, first_row, out);
  }
  void require_unchanged() const override { reader_->require_unchanged(); }
  std::size_t workspace_bytes(ElementType type) const override {
    const auto numbers = static_cast<std::size_t>(at_once_ + reader_->source().n);
    return reader_->workspace_bytes(type) + numbers * size_of(type);
  }

 private:
  static constexpr index_t at_once_ = 1 << 16;  // numbers

  template <class T>
  void read_matrices(index_t first, BatchView<T> out) {
    for (index_t b = 0; b < out.count; ++b) read_some(first + b, 0, out[b]);
  }
  /// Reads all columns of a few rows at a time.
  template <class T>
  void read_some(index_t matrix, index_t first_row, MatrixView<T> out) {
    const index_t all = reader_->source().n, step = std::max<index_t>(1, at_once_ / all);
    const Batch<T> rows(1, std::min(step, out.rows), all);
    for (index_t i = 0; i < out.rows; i += step) {
      const MatrixView<T> some = rows.view()[0].row_block(0, std::min(step, out.rows - i));
      reader_->read_rows(matrix, first_row + i, some);
      for (index_t r = 0; r < some.rows; ++r) {
        T* to = &out(i + r, 0);
        if (has_ones_) *to++ = T(1);
        for (const index_t column : columns_) *to++ = some(r, column);
      }
    }
  }

  std::shared_ptr<Reader> reader_;
  std::vector<index_t> columns_;
  bool has_ones_;
};

}  // namespace

std::unique_ptr<Reader> read_columns(std::shared_ptr<Reader> reader, std::vector<index_t> columns,
                                     bool has_ones) {
  return std::make_unique<ColumnReader>(std::move(reader), std::move(columns), has_ones);
}

}  // namespace qrtool
