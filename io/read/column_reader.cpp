// SPDX-License-Identifier: Apache-2.0
// column_reader.cpp: chosen columns of the matrices of another reader.
#include "io/read/column_reader.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "core/matrix/complex_arithmetic.hpp"
#include "io/read/reader_of.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool {
namespace {

class ColumnReader final : public ReaderOf<ColumnReader> {
 public:
  ColumnReader(std::shared_ptr<Reader> reader, std::vector<ColumnPower> columns, bool has_ones,
               bool skips_missing = false, const TextPairs& details = {})
      : reader_(std::move(reader)),
        columns_(std::move(columns)),
        has_ones_(has_ones),
        skips_missing_(skips_missing) {
    source_ = reader_->source();
    source_.n = std::ssize(columns_) + (has_ones ? 1 : 0);
    std::vector<index_t> kept;
    for (const ColumnPower& each : columns_)
      if (each.power == 1) kept.push_back(each.column);
    source_.table.keep(kept);
    source_.details.insert(source_.details.end(), details.begin(), details.end());
  }

  template <class T>
  void read_any(index_t first, BatchView<T> out) {
    const index_t m = source_.m, all = numbers_of_row(), size = m * all;
    if (size == 0 || size > at_once_) {
      for (index_t b = 0; b < out.count; ++b) read_any_rows(first + b, 0, out[b]);
      return;
    }
    // Small matrices are read several at a time.
    const index_t step = std::min(at_once_ / size, out.count);
    const Batch<T> matrices(step, m, all);
    for (index_t b = 0; b < out.count; b += step) {
      const BatchView<T> some = matrices.view().slice(0, std::min(step, out.count - b));
      reader_->read(first + b, some);
      for (index_t i = 0; i < some.count; ++i) choose_parts<T>(some[i], out[b + i]);
    }
  }
  /// Reads all columns of a few rows at a time.
  template <class T>
  void read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out) {
    const index_t all = numbers_of_row();
    const index_t step = std::max<index_t>(1, at_once_ / std::max<index_t>(all, 1));
    const Batch<T> rows(1, std::min(step, out.rows), all);
    for (index_t i = 0; i < out.rows; i += step) {
      const MatrixView<T> some = rows.view()[0].row_block(0, std::min(step, out.rows - i));
      reader_->read_rows(matrix, first_row + i, some);
      choose_parts<T>(some, out.row_block(i, some.rows));
    }
  }
  void require_unchanged() const override { reader_->require_unchanged(); }
  std::size_t workspace_bytes(ElementType type) const override {
    const auto numbers = static_cast<std::size_t>(at_once_ + numbers_of_row());
    return reader_->workspace_bytes(type) + numbers * size_of(real_of(type));
  }

 private:
  static constexpr index_t at_once_ = 1 << 16;  // numbers

  /// The real numbers in a row of the other reader.
  index_t numbers_of_row() const { return parts_in(source_.type) * reader_->source().n; }

  /// A power that overflows is infinite: NaN would be a missing number.
  template <class T>
  static T raised(T x, int power) {
    auto result = static_cast<Wide<T>>(x);
    for (int k = 1; k < power; ++k) result = product(result, static_cast<Wide<T>>(x));
    if (is_nan(result) && !is_nan(x)) return std::numeric_limits<Real<T>>::infinity();
    return static_cast<T>(result);
  }
  /// Copies the chosen columns of some rows to `to`.
  template <class T>
  void choose(MatrixView<const T> from, MatrixView<T> to) const {
    for (index_t i = 0; i < from.rows; ++i) {
      T* entry = &to(i, 0);
      if (has_ones_) *entry++ = T(1);
      for (const auto& [column, power] : columns_) *entry++ = raised(from(i, column), power);
      if (skips_missing_ && std::any_of(&to(i, 0), entry, [](T x) { return is_nan(x); }))
        std::fill(&to(i, 0), entry, T(0));
    }
  }
  /// The same for the real numbers of real or complex rows.
  template <class T>
  void choose_parts(MatrixView<const T> from, MatrixView<T> to) const {
    if (is_complex(source_.type))
      choose<std::complex<T>>(as_complex(from), as_complex(to));
    else
      choose<T>(from, to);
  }

  std::shared_ptr<Reader> reader_;
  std::vector<ColumnPower> columns_;
  bool has_ones_, skips_missing_;
};

}  // namespace

std::unique_ptr<Reader> read_powers(std::shared_ptr<Reader> reader,
                                    std::vector<ColumnPower> columns, bool has_ones) {
  return std::make_unique<ColumnReader>(std::move(reader), std::move(columns), has_ones);
}

std::unique_ptr<Reader> read_columns(std::shared_ptr<Reader> reader, std::vector<index_t> columns,
                                     bool has_ones) {
  std::vector<ColumnPower> as_they_are;
  for (const index_t column : columns) as_they_are.push_back({.column = column});
  return read_powers(std::move(reader), std::move(as_they_are), has_ones);
}

std::unique_ptr<Reader> read_completed(std::shared_ptr<Reader> reader, bool has_ones,
                                       bool skips_missing) {
  std::vector<ColumnPower> all;
  for (index_t j = 0; j < reader->source().n; ++j) all.push_back({.column = j});
  TextPairs details;
  if (has_ones) details.emplace_back(intercept_name, "yes");
  if (skips_missing) details.emplace_back(missing_name, "skip");
  return std::make_unique<ColumnReader>(std::move(reader), std::move(all), has_ones, skips_missing,
                                        details);
}

}  // namespace qrtool
