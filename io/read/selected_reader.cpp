// SPDX-License-Identifier: Apache-2.0
// selected_reader.cpp: finds the numbers of the selected matrices and rows, and reads them in runs
// that are as long as possible.
#include "io/read/selected_reader.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/read/reader_of.hpp"

namespace qrtool {
namespace {

// The bytes of whole rows that are read at a time if only some of their entries are wanted.
constexpr index_t scratch_bytes = index_t{1} << 20;
// From this step on, rows are read one by one and not with the rows between them.
constexpr index_t rare_step = 16;

class SelectedReader final : public ReaderOf<SelectedReader> {
 public:
  SelectedReader(std::unique_ptr<Reader> inner, std::vector<Range> ranges, const std::string& text);

  template <class T>
  void read_any(index_t first, BatchView<T> out);
  template <class T>
  void read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out);
  void require_unchanged() const override { inner_->require_unchanged(); }
  std::size_t workspace_bytes(ElementType type) const override {
    return inner_->workspace_bytes(type) + static_cast<std::size_t>(scratch_bytes);
  }
  std::unique_ptr<Reader> another() const override;

 private:
  index_t inner_matrix(index_t matrix) const;
  template <class T>
  void read_through_scratch(index_t inner_matrix, index_t first_row, MatrixView<T> out);

  std::unique_ptr<Reader> inner_;
  std::vector<Range> ranges_;  // of all dimensions of inner_
  Range rows_, columns_;
  std::string text_;
  HostMemory scratch_;
  index_t scratch_size_ = 0;  // bytes
};

SelectedReader::SelectedReader(std::unique_ptr<Reader> inner, std::vector<Range> ranges,
                               const std::string& text)
    : inner_(std::move(inner)),
      ranges_(std::move(ranges)),
      rows_(ranges_[ranges_.size() - 2]),
      columns_(ranges_.back()),
      text_(text) {
  source_ = inner_->source();
  source_.dataset += text;
  source_.leading.clear();
  for (std::size_t d = 0; d + 2 < ranges_.size(); ++d) {
    if (!ranges_[d].is_dropped) source_.leading.push_back(ranges_[d].count);
  }
  source_.m = rows_.count;
  source_.n = columns_.count;
  source_.table.select(columns_.first, columns_.count, columns_.step);
  if (!source_.array_dims.empty()) {
    source_.array_dims = {source_.m * source_.n};
  } else if (rows_.is_dropped || columns_.is_dropped) {
    source_.array_dims = source_.leading;
    for (const Range& range : {rows_, columns_})
      if (!range.is_dropped) source_.array_dims.push_back(range.count);
  }
}

std::unique_ptr<Reader> SelectedReader::another() const {
  std::unique_ptr<Reader> inner = inner_->another();
  if (!inner) return nullptr;
  return std::make_unique<SelectedReader>(std::move(inner), ranges_, text_);
}

/// Returns the number that a selected matrix has in the inner reader.
index_t SelectedReader::inner_matrix(index_t matrix) const {
  const std::vector<index_t>& extents = inner_->source().leading;
  index_t number = 0, below = 1;
  for (std::size_t d = extents.size(); d-- > 0; below *= extents[d]) {
    const Range& range = ranges_[d];
    number += (range.first + matrix % range.count * range.step) * below;
    matrix /= range.count;
  }
  return number;
}

/// Reads the rows of the inner matrix that hold the wanted entries, and copies these.
template <class T>
void SelectedReader::read_through_scratch(index_t inner_matrix, index_t first_row,
                                          MatrixView<T> out) {
  const index_t parts = parts_in(source_.type);
  const index_t n = inner_->source().n * parts, step = rows_.step;
  const auto row_bytes = static_cast<index_t>(sizeof(T)) * n;
  const index_t at_once = std::clamp<index_t>(scratch_bytes / (row_bytes * step), 1, out.rows);
  const index_t most_rows = (at_once - 1) * step + 1;
  if (most_rows * row_bytes > scratch_size_) {
    scratch_ = allocate_host(static_cast<std::size_t>(most_rows * row_bytes));
    scratch_size_ = most_rows * row_bytes;
  }
  for (index_t done = 0; done < out.rows; done += at_once) {
    const index_t rows = std::min(at_once, out.rows - done);
    const MatrixView<T> read{reinterpret_cast<T*>(scratch_.get()), (rows - 1) * step + 1, n, n};
    inner_->read_rows(inner_matrix, first_row + done * step, read);
    for (index_t i = 0; i < rows; ++i) {
      for (index_t j = 0; j < source_.n; ++j) {
        const index_t from = columns_.first + j * columns_.step;
        for (index_t p = 0; p < parts; ++p)
          out(done + i, j * parts + p) = read(i * step, from * parts + p);
      }
    }
  }
}

template <class T>
void SelectedReader::read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out) {
  if (matrix < 0 || matrix >= source_.count() || first_row < 0 ||
      first_row + out.rows > source_.m || out.cols != source_.n * parts_in(source_.type)) {
    throw InternalError("read_rows: a range or shape outside the selection");
  }
  if (out.rows == 0 || out.cols == 0) return;
  const index_t number = inner_matrix(matrix);
  const auto inner_row = [&](index_t i) { return rows_.first + (first_row + i) * rows_.step; };
  const bool has_whole_rows = columns_.is_whole(inner_->source().n);
  if (has_whole_rows && rows_.step == 1) {
    inner_->read_rows(number, inner_row(0), out);
  } else if (has_whole_rows && rows_.step >= rare_step) {
    for (index_t i = 0; i < out.rows; ++i) {
      inner_->read_rows(number, inner_row(i), out.row_block(i, 1));
    }
  } else {
    read_through_scratch(number, inner_row(0), out);
  }
}

template <class T>
void SelectedReader::read_any(index_t first, BatchView<T> out) {
  const Source& inner = inner_->source();
  const bool are_whole = rows_.is_whole(inner.m) && columns_.is_whole(inner.n);
  for (index_t b = 0; b < out.count;) {
    if (!are_whole) {
      read_any_rows(first + b, 0, out[b]);
      ++b;
      continue;
    }
    const index_t number = inner_matrix(first + b);
    index_t run = 1;
    while (b + run < out.count && inner_matrix(first + b + run) == number + run) ++run;
    inner_->read(number, out.slice(b, run));
    b += run;
  }
}

}  // namespace

std::unique_ptr<Reader> select(std::unique_ptr<Reader> inner, const Selection& selection,
                               bool is_array) {
  if (selection.is_empty()) return inner;
  const Source& source = inner->source();
  std::vector<Range> ranges =
      resolve(selection, dims_of(source),
              escape(source.file + ":" + source.dataset + selection.text), is_array ? 0 : 2);
  if (ranges.size() == 1)
    ranges.insert(source.n == 1 ? ranges.end() : ranges.begin(), {.count = 1});
  return std::make_unique<SelectedReader>(std::move(inner), std::move(ranges), selection.text);
}

std::unique_ptr<Reader> take_steps(std::unique_ptr<Reader> inner, std::vector<Range> ranges) {
  const bool has_steps =
      std::any_of(ranges.begin(), ranges.end(), [](const Range& range) { return range.step > 1; });
  if (!has_steps) return inner;
  return std::make_unique<SelectedReader>(std::move(inner), std::move(ranges), "");
}

}  // namespace qrtool
