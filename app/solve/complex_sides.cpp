// SPDX-License-Identifier: Apache-2.0
// complex_sides.cpp: a reader that gives real numbers as complex ones, and the refusal of options
// that are for real systems.
#include "app/solve/complex_sides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/read/reader_of.hpp"

namespace qrtool {
namespace {

constexpr index_t numbers_at_once = 1 << 16;

/// The numbers of a real reader, each followed by 0.
class ComplexReader final : public ReaderOf<ComplexReader> {
 public:
  ComplexReader(std::unique_ptr<Reader> inner, const ComplexForm& form) : inner_(std::move(inner)) {
    source_ = inner_->source();
    source_.type = complex_of(source_.type);
    source_.complex_form = form;
  }
  template <class T>
  void read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out) {
    const index_t n = source_.n;
    const index_t step = std::max<index_t>(1, numbers_at_once / std::max<index_t>(n, 1));
    const Batch<T> memory(1, std::min(step, out.rows), n);
    for (index_t i = 0; i < out.rows; i += step) {
      const auto rows = memory.view()[0].row_block(0, std::min(step, out.rows - i));
      inner_->read_rows(matrix, first_row + i, rows);
      for (index_t r = 0; r < rows.rows; ++r)
        for (index_t j = 0; j < n; ++j) {
          out(i + r, 2 * j) = rows(r, j);
          out(i + r, 2 * j + 1) = 0;
        }
    }
  }
  void require_unchanged() const override { inner_->require_unchanged(); }
  std::size_t workspace_bytes(ElementType type) const override {
    const auto numbers = static_cast<std::size_t>(std::max(numbers_at_once, source_.n));
    return inner_->workspace_bytes(real_of(type)) + numbers * size_of(real_of(type));
  }

 private:
  std::unique_ptr<Reader> inner_;
};

}  // namespace

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

}  // namespace qrtool
