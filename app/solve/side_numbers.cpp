// SPDX-License-Identifier: Apache-2.0
// side_numbers.cpp: reads as much at a time as lies together, and converts a few rows at a time.
#include "app/solve/side_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "app/run/verdict/verdict_text.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "io/read/reader_of.hpp"

namespace qrtool {
namespace {

constexpr index_t numbers_at_once = 1 << 16;

/// Reads `count` rows of a matrix, and calls use(row, numbers) for each.
template <class T, class Use>
void for_rows(Reader& reader, index_t matrix, index_t first, index_t count, Use use) {
  const index_t n = reader.source().n;
  const index_t step = std::max<index_t>(1, numbers_at_once / std::max<index_t>(n, 1));
  const Batch<T> memory(1, std::min(step, count), n);
  for (index_t i = 0; i < count; i += step) {
    const auto rows = memory.view()[0].row_block(0, std::min(step, count - i));
    reader.read_rows(matrix, first + i, rows);
    for (index_t r = 0; n > 0 && r < rows.rows; ++r) use(i + r, &rows(r, 0));
  }
}

/// A reader of the converted numbers of another reader.
template <class Converted>
class ConvertedReader : public ReaderOf<Converted> {
 public:
  void require_unchanged() const override { inner_->require_unchanged(); }

 protected:
  explicit ConvertedReader(std::unique_ptr<Reader> inner) : inner_(std::move(inner)) {
    this->source_ = inner_->source();
  }
  /// Returns the bytes of the other reader, and of the rows that it reads in `type`.
  std::size_t bytes_of_rows(ElementType type) const {
    const auto numbers = static_cast<std::size_t>(std::max(numbers_at_once, this->source_.n));
    return inner_->workspace_bytes(type) + numbers * size_of(type);
  }
  std::unique_ptr<Reader> inner_;
};

/// The numbers of a real reader, each followed by 0.
class ComplexReader final : public ConvertedReader<ComplexReader> {
 public:
  ComplexReader(std::unique_ptr<Reader> inner, const ComplexForm& form)
      : ConvertedReader(std::move(inner)) {
    source_.type = complex_of(source_.type);
    source_.complex_form = form;
  }
  template <class T>
  void read_any_rows(index_t matrix, index_t first, MatrixView<T> out) {
    for_rows<T>(*inner_, matrix, first, out.rows, [&](index_t i, const T* numbers) {
      for (index_t j = 0; j < source_.n; ++j) {
        out(i, 2 * j) = numbers[j];
        out(i, 2 * j + 1) = 0;
      }
    });
  }
  std::size_t workspace_bytes(ElementType type) const override {
    return bytes_of_rows(real_of(type));
  }
};

/// The weights of another reader, divided by 2^exponent before they are rounded.
class ScaledReader final : public ConvertedReader<ScaledReader> {
 public:
  ScaledReader(std::unique_ptr<Reader> inner, int exponent)
      : ConvertedReader(std::move(inner)), exponent_(exponent) {}
  template <class T>
  void read_any_rows(index_t matrix, index_t first, MatrixView<T> out) {
    for_rows<double>(*inner_, matrix, first, out.rows, [&](index_t i, const double* numbers) {
      for (index_t j = 0; j < out.cols; ++j)
        out(i, j) = static_cast<T>(std::ldexp(numbers[j], -exponent_));
    });
  }
  std::size_t workspace_bytes(ElementType) const override {
    return bytes_of_rows(ElementType::float64);
  }

 private:
  int exponent_;
};

/// The least and the largest of the weights above zero. The reader refuses invalid weights.
struct WeightRange {
  double least = std::numeric_limits<double>::infinity(), largest = 0;
};

WeightRange range_of(Reader& reader) {
  WeightRange range;
  const Source& s = reader.source();
  for (index_t matrix = 0; matrix < s.count(); ++matrix) {
    for_rows<double>(reader, matrix, 0, s.m, [&](index_t, const double* weights) {
      for (index_t j = 0; j < s.n; ++j) {
        if (!(weights[j] > 0) || std::isinf(weights[j])) continue;
        range.least = std::min(range.least, weights[j]);
        range.largest = std::max(range.largest, weights[j]);
      }
    });
  }
  return range;
}

/// Reads the numbers of one row.
template <class T>
void read_part_of_row(Reader& reader, index_t first, index_t count, T* out) {
  if constexpr (!is_complex_number<T>) {
    if (PartReader* const parts = reader_of_parts(reader))
      return parts->read_part(first, count, out);
  }
  const Source& s = reader.source();
  const index_t size = s.m * s.n;
  const Batch<T> row(1, 1, s.n);
  reader.read_rows(first / size, first % size / s.n, interleaved(row.view()[0]));
  std::copy_n(row.view().data + first % s.n, count, out);
}

template <class T>
bool is_weight(T w) {
  return w >= 0 && std::isfinite(w);
}

}  // namespace

PartReader* reader_of_parts(Reader& reader) {
  return is_complex(reader.source().type) ? nullptr : part_reader_of(reader);
}

template <class T>
void read_numbers(Reader& reader, index_t first, index_t count, T* out) {
  const Source& s = reader.source();
  const index_t size = s.m * s.n;
  for (index_t some = 0; count > 0; first += some, count -= some, out += some) {
    const index_t matrix = first / size, offset = first % size;
    if (offset == 0 && count >= size) {
      some = count / size * size;
      reader.read(matrix, interleaved(packed(out, some / size, s.m, s.n)));
    } else if (offset % s.n != 0 || count < s.n) {
      some = std::min(count, s.n - offset % s.n);
      read_part_of_row(reader, first, some, out);
    } else {
      some = std::min(count, size - offset) / s.n * s.n;
      reader.read_rows(matrix, offset / s.n, interleaved(MatrixView<T>{out, some / s.n, s.n, s.n}));
    }
  }
}
template void read_numbers(Reader&, index_t, index_t, float*);
template void read_numbers(Reader&, index_t, index_t, double*);
template void read_numbers(Reader&, index_t, index_t, std::complex<float>*);
template void read_numbers(Reader&, index_t, index_t, std::complex<double>*);

template <class T>
void read_sides(Reader& reader, const SidePlace& place, index_t first, MatrixView<T> to) {
  if (to.cols == 0) return;
  if (to.cols == place.step) {
    read_numbers(reader, place.in_b + first * place.step, to.rows * to.cols, to.data);
    return;
  }
  // A few rows are read at a time, which need little memory beside a chunk.
  const bool are_rows = place.step == 1;
  const index_t step = std::max<index_t>(1, numbers_at_once / place.step);
  const Batch<T> some(1, std::min(step, to.rows), place.step);
  for (index_t i0 = 0; i0 < to.rows; i0 += step) {
    const MatrixView<T> read = some.view()[0].row_block(0, std::min(step, to.rows - i0));
    const index_t start = place.in_b + (first + i0) * place.step;
    if (!are_rows) read_numbers(reader, start - place.column, read.rows * read.cols, read.data);
    for (index_t c = 0; c < to.cols; ++c) {
      if (are_rows) read_numbers(reader, start + c * place.next, read.rows, read.data);
      for (index_t i = 0; i < read.rows; ++i)
        to(i0 + i, c) = read(i, are_rows ? 0 : place.column + c);
    }
  }
}
template void read_sides(Reader&, const SidePlace&, index_t, MatrixView<float>);
template void read_sides(Reader&, const SidePlace&, index_t, MatrixView<double>);
template void read_sides(Reader&, const SidePlace&, index_t, MatrixView<std::complex<float>>);
template void read_sides(Reader&, const SidePlace&, index_t, MatrixView<std::complex<double>>);

template <class T>
void require_weights(const Reader& reader, const T* w, index_t count, index_t first, index_t step) {
  const T* bad = std::find_if_not(w, w + count, is_weight<T>);
  if (bad == w + count) return;
  Dims dims = dims_of(reader.source());
  std::erase(dims, 1);  // a column or a row of weights is a vector
  throw InputError(
      fmt::format("{}: weight {} is {}; weights are finite and not negative",
                  escape(reader.source().file), matrix_name(dims, first + (bad - w) * step), *bad),
      "a weight of 0 leaves its row out");
}
template void require_weights(const Reader&, const float*, index_t, index_t, index_t);
template void require_weights(const Reader&, const double*, index_t, index_t, index_t);

std::unique_ptr<Reader> read_as_complex(std::unique_ptr<Reader> reader, const ComplexForm& form) {
  if (is_complex(reader->source().type)) return reader;
  return std::make_unique<ComplexReader>(std::move(reader), form);
}

void require_real(const SolveInputs& inputs, const char* option) {
  if (!is_complex(inputs.a->source().type)) return;
  throw UsageError(fmt::format("{}: A or b is complex, and {} is for real systems",
                               escape(inputs.a->source().file), option),
                   fmt::format("leave {} away", option));
}

void fit_weights(SolveInputs& inputs, ElementType type) {
  if (!inputs.w || type != ElementType::float32 || inputs.w->source().type != ElementType::float64)
    return;
  constexpr double least = std::numeric_limits<float>::min();
  constexpr double largest = std::numeric_limits<float>::max();
  const WeightRange range = range_of(*inputs.w);
  if (range.largest == 0 || (range.least >= least && range.largest <= largest)) return;
  const int exponent = std::ilogb(range.largest) / 2 * 2;  // even: a power of four
  if (std::ldexp(range.least, -exponent) < least)
    throw InputError(
        fmt::format("{}: weights from {:.3g} to {:.3g} span more than single precision holds",
                    escape(inputs.w->source().file), range.least, range.largest),
        "--precision double; or 0 for the rows that count for nothing");
  inputs.w = std::make_unique<ScaledReader>(std::move(inputs.w), exponent);
  inputs.weight_exponent = exponent;
}

}  // namespace qrtool
