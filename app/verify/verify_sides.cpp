// SPDX-License-Identifier: Apache-2.0
// verify_sides.cpp: axes and strides of arrays, and readers that give their items in order.
#include "app/verify/verify_sides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/solve/side_numbers.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "io/read/reader_of.hpp"

namespace qrtool {
namespace {

/// Returns the numbers from an entry of each axis to the next one.
Dims strides_of(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t i = dims.size(); i-- > 1;) strides[i - 1] = strides[i] * dims[i];
  return strides;
}

/// Returns the entry of an array that an item begins with.
index_t start_of(index_t item, const Dims& extents, const Dims& strides) {
  index_t start = 0;
  for (std::size_t i = extents.size(); i-- > 0; item /= extents[i])
    start += item % extents[i] * strides[i];
  return start;
}

/// Extents and strides of some axes, aligned to the last ones of `count` axes. Missing axes, and
/// axes of extent 1, serve for every place.
struct Aligned {
  Dims extents, strides;
};
Aligned align(const Dims& extents, const Dims& strides, std::size_t count) {
  Aligned all{Dims(count, 1), Dims(count, 0)};
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::size_t place = count - extents.size() + i;
    all.extents[place] = extents[i];
    all.strides[place] = extents[i] == 1 ? 0 : strides[i];
  }
  return all;
}

/// The shapes were found to fit when the inputs were opened.
[[noreturn]] void refuse_axes(const SolveInputs& inputs) {
  const Source &a = inputs.a->source(), &b = inputs.b->source();
  throw InternalError(fmt::format("{}: the axes of B do not fit: A is {}, B is {}", escape(b.file),
                                  format_shape(a.leading, a.m, a.n), join(dims_of(b), "x")));
}

/// Gives the items of another reader, which begin anywhere in its array, in order.
class ItemReader final : public ReaderOf<ItemReader>, public PartReader {
 public:
  struct Items {
    Dims extents, strides;  // of the axes that count them
    index_t rows = 0, columns = 0;
  };
  ItemReader(Reader& inner, Items items) : inner_(inner), items_(std::move(items)) {
    source_ = inner.source();
    source_.leading = {};
    if (!items_.extents.empty()) source_.leading = {count_of(items_.extents)};
    source_.m = items_.rows;
    source_.n = items_.columns;
    source_.array_dims = {};
  }

  template <class T>
  void read_any(index_t first, BatchView<T> out) {
    const index_t size = items_.rows * items_.columns;
    for (index_t i = 0; i < out.count;) {
      index_t count = 1;
      while (i + count < out.count && start(first + i + count) == start(first + i) + count * size)
        ++count;
      read_some(start(first + i), count * size, out[i].data);
      i += count;
    }
  }
  template <class T>
  void read_any_rows(index_t item, index_t first_row, MatrixView<T> out) {
    read_some(start(item) + first_row * items_.columns, out.rows * items_.columns, out.data);
  }
  void require_unchanged() const override { inner_.require_unchanged(); }
  std::size_t workspace_bytes(ElementType type) const override {
    return inner_.workspace_bytes(type);
  }

  bool can_read_parts() const override { return part_reader_of(inner_) != nullptr; }
  void read_part(index_t first, index_t count, float* out) override { read_in(first, count, out); }
  void read_part(index_t first, index_t count, double* out) override { read_in(first, count, out); }

 private:
  index_t start(index_t item) const { return start_of(item, items_.extents, items_.strides); }
  template <class T>
  void read_some(index_t first, index_t count, T* out) {
    if (is_complex(source_.type))
      read_numbers(inner_, first, count, reinterpret_cast<std::complex<T>*>(out));
    else
      read_numbers(inner_, first, count, out);
  }
  /// Reads the numbers of one item.
  template <class T>
  void read_in(index_t first, index_t count, T* out) {
    const index_t size = items_.rows * items_.columns;
    read_some(start(first / size) + first % size, count, out);
  }

  Reader& inner_;
  Items items_;
};

}  // namespace

SideAxes side_axes(const SolveInputs& inputs, RowsOfB rows) {
  const Dims b = dims_of(inputs.b->source()), &a = inputs.a->source().leading;
  const Dims strides = strides_of(b);
  const bool is_matrix = rows == RowsOfB::matrix && b.size() > 1;
  // The distance of the axis of rows from the end.
  const std::size_t back = is_matrix                ? (inputs.b_is_column ? 1 : 2)
                           : rows == RowsOfB::first ? b.size()
                                                    : 1;
  if (back > b.size() || b[b.size() - back] != inputs.m()) refuse_axes(inputs);
  SideAxes axes{.m = inputs.m(), .rows_are_last = back == 1};
  axes.fit_dims = b;
  if (is_matrix || !a.empty()) {
    // The axes before an item are the batch.
    const std::size_t own = is_matrix ? 2 : 1, lead = b.size() - own;
    if (rows == RowsOfB::first && lead > 0) refuse_axes(inputs);
    const std::size_t count = std::max(a.size(), lead);
    const Aligned of_a = align(a, strides_of(a), count);
    const Aligned of_b =
        align({b.begin(), b.begin() + static_cast<std::ptrdiff_t>(lead)}, strides, count);
    for (std::size_t i = 0; i < count; ++i) {
      const index_t one = of_a.extents[i], other = of_b.extents[i];
      if (one != other && one != 1 && other != 1) refuse_axes(inputs);
      axes.batch.push_back(one == 1 ? other : one);
    }
    axes.a_strides = of_a.strides;
    axes.b_strides = of_b.strides;
    axes.p = is_matrix ? b[b.size() + back - 3] : 1;
    axes.fit_dims = axes.batch;
    axes.fit_dims.insert(axes.fit_dims.end(), b.begin() + static_cast<std::ptrdiff_t>(lead),
                         b.end());
  } else {
    axes.p = 1;
    for (std::size_t i = 0; i < b.size(); ++i)
      if (i != b.size() - back) axes.p *= b[i];
  }
  const std::size_t row_axis = axes.fit_dims.size() - back;
  axes.x_dims = axes.solution_dims = axes.fit_dims;
  axes.x_dims[row_axis] = inputs.n();
  axes.solution_dims.erase(axes.solution_dims.begin() + static_cast<std::ptrdiff_t>(row_axis));
  return axes;
}

PlainSides plain_sides(const SolveInputs& inputs, const SideAxes& axes, Reader& x, Reader* fitted,
                       Reader* residuals) {
  const bool shares_a = inputs.a->source().leading.empty();
  const auto items_of = [&](index_t length, const Dims& strides) {
    return ItemReader::Items{.extents = axes.batch,
                             .strides = strides,
                             .rows = axes.rows_are_last ? axes.p : length,
                             .columns = axes.rows_are_last ? length : axes.p};
  };
  // Arrays that belong to the solutions have an item for each place of the batch.
  const auto in_order = [&](Reader* reader, index_t length) -> std::unique_ptr<Reader> {
    if (reader == nullptr) return nullptr;
    Dims strides = strides_of(axes.batch);
    for (index_t& stride : strides) stride *= length * axes.p;
    return std::make_unique<ItemReader>(*reader, items_of(length, strides));
  };
  PlainSides plain{.inputs = {},
                   .x = in_order(&x, inputs.n()),
                   .fitted = in_order(fitted, axes.m),
                   .residuals = in_order(residuals, axes.m)};
  Dims of_a = axes.a_strides;
  for (index_t& stride : of_a) stride *= inputs.m() * inputs.n();
  const Dims no_axes;
  plain.inputs.a = std::make_unique<ItemReader>(
      *inputs.a, ItemReader::Items{.extents = shares_a ? no_axes : axes.batch,
                                   .strides = shares_a ? no_axes : of_a,
                                   .rows = inputs.m(),
                                   .columns = inputs.n()});
  plain.inputs.b = std::make_unique<ItemReader>(*inputs.b, items_of(axes.m, axes.b_strides));
  if (inputs.w)
    plain.inputs.w = std::make_unique<ItemReader>(
        *inputs.w,
        inputs.w_is_shared
            ? ItemReader::Items{.extents = {}, .strides = {}, .rows = axes.m, .columns = 1}
            : items_of(axes.m, axes.b_strides));
  plain.inputs.w_is_shared = inputs.w_is_shared;
  plain.inputs.weight_exponent = inputs.weight_exponent;
  plain.inputs.fits = inputs.fits;
  const Dims items = axes.batch.empty() ? Dims{} : Dims{count_of(axes.batch)};
  plain.inputs.sides = {.rows = RowsOfB::matrix,
                        .batch = items,
                        .m = axes.m,
                        .p = axes.p,
                        .as_rows = axes.rows_are_last,
                        .x_dims = axes.x_dims,
                        .fit_dims = axes.fit_dims,
                        .solution_dims = axes.solution_dims,
                        .a_leading = shares_a ? no_axes : items,
                        .b_leading = items};
  return plain;
}

}  // namespace qrtool
