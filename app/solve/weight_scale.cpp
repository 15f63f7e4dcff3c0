// SPDX-License-Identifier: Apache-2.0
// weight_scale.cpp: finds the range of the weights, and divides them by a power of four as they are
// read.
#include "app/solve/weight_scale.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/read/reader_of.hpp"

namespace qrtool {
namespace {

constexpr index_t numbers_at_once = 1 << 16;

/// Calls use(rows) for a few rows at a time, read as float64.
template <class Use>
void read_by_rows(Reader& reader, Use use) {
  const Source& s = reader.source();
  const index_t step = std::clamp<index_t>(numbers_at_once / std::max<index_t>(s.n, 1), 1,
                                           std::max<index_t>(s.m, 1));
  const Batch<double> memory(1, step, s.n);
  for (index_t matrix = 0; matrix < s.count(); ++matrix) {
    for (index_t i = 0; i < s.m; i += step) {
      const auto rows = memory.view()[0].row_block(0, std::min(step, s.m - i));
      reader.read_rows(matrix, i, rows);
      use(rows);
    }
  }
}

/// The least and the largest of the weights above zero. The reader refuses what is no weight.
struct WeightRange {
  double least = std::numeric_limits<double>::infinity(), largest = 0;
};

WeightRange range_of(Reader& reader) {
  WeightRange range;
  read_by_rows(reader, [&](MatrixView<double> rows) {
    for (index_t i = 0; i < rows.rows; ++i) {
      for (index_t j = 0; j < rows.cols; ++j) {
        const double w = rows(i, j);
        if (!(w > 0) || std::isinf(w)) continue;
        range.least = std::min(range.least, w);
        range.largest = std::max(range.largest, w);
      }
    }
  });
  return range;
}

/// The weights of another reader, divided by 2^exponent before they are rounded.
class ScaledReader final : public ReaderOf<ScaledReader> {
 public:
  ScaledReader(std::unique_ptr<Reader> inner, int exponent)
      : inner_(std::move(inner)), exponent_(exponent) {
    source_ = inner_->source();
  }
  template <class T>
  void read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out) {
    const index_t step = std::max<index_t>(1, numbers_at_once / std::max<index_t>(out.cols, 1));
    const Batch<double> memory(1, std::min(step, out.rows), out.cols);
    for (index_t i = 0; i < out.rows; i += step) {
      const auto rows = memory.view()[0].row_block(0, std::min(step, out.rows - i));
      inner_->read_rows(matrix, first_row + i, rows);
      for (index_t r = 0; r < rows.rows; ++r)
        for (index_t j = 0; j < out.cols; ++j)
          out(i + r, j) = static_cast<T>(std::ldexp(rows(r, j), -exponent_));
    }
  }
  void require_unchanged() const override { inner_->require_unchanged(); }
  std::size_t workspace_bytes(ElementType) const override {
    const auto numbers = static_cast<std::size_t>(std::max(numbers_at_once, source_.n));
    return inner_->workspace_bytes(ElementType::float64) + numbers * sizeof(double);
  }

 private:
  std::unique_ptr<Reader> inner_;
  int exponent_;
};

}  // namespace

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
