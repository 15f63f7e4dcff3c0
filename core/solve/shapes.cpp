// SPDX-License-Identifier: Apache-2.0
// shapes.cpp: tries each way to read B, and broadcasts leading dimensions as NumPy does.
#include "core/solve/shapes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <optional>

namespace qrtool {
namespace {

Dims joined(Dims dims, std::initializer_list<index_t> more) {
  dims.insert(dims.end(), more);
  return dims;
}

/// Dimensions are aligned at their ends; a missing dimension, and one of extent 1, is repeated.
std::optional<Dims> broadcast(const Dims& a, const Dims& b) {
  Dims out(std::max(a.size(), b.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    const index_t x = i < a.size() ? a[a.size() - 1 - i] : 1;
    const index_t y = i < b.size() ? b[b.size() - 1 - i] : 1;
    if (x != y && x != 1 && y != 1) return std::nullopt;
    out[out.size() - 1 - i] = x == 1 ? y : x;
  }
  return out;
}

/// Returns the place in `leading` that belongs to a place of the broadcast dimensions.
index_t place_in(const Dims& leading, const Dims& batch, index_t item) {
  index_t place = 0, stride = 1;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const index_t extent = batch[batch.size() - 1 - i];
    if (i < leading.size()) {
      const index_t own = leading[leading.size() - 1 - i];
      place += own == 1 ? 0 : item % extent * stride;
      stride *= own;
    }
    item /= extent;
  }
  return place;
}

using Reading = std::optional<RightSides>;

/// Reads B as [..., m].
Reading read_last(const SystemShapes& s) {
  if (s.b_dims.empty() || s.b_dims.back() != s.m) return {};
  const Dims leading(s.b_dims.begin(), s.b_dims.end() - 1);
  const bool is_vector = leading.empty();
  if (!is_vector && !s.a_leading.empty() && leading != s.a_leading) return {};
  RightSides out{.rows = RowsOfB::last, .batch = s.a_leading, .m = s.m, .as_rows = true};
  out.a_leading = s.a_leading;
  if (!is_vector) out.b_leading = s.a_leading;
  out.p = s.a_leading.empty() ? count_of(leading) : 1;
  out.solution_dims = is_vector ? s.a_leading : leading;
  out.x_dims = joined(out.solution_dims, {s.n});
  out.fit_dims = joined(out.solution_dims, {s.m});
  return out;
}

/// Reads B as [m, ...].
Reading read_first(const SystemShapes& s) {
  if (s.b_dims.size() < 2 || s.b_dims.front() != s.m || !s.a_leading.empty()) return {};
  RightSides out{.rows = RowsOfB::first, .m = s.m};
  out.solution_dims.assign(s.b_dims.begin() + 1, s.b_dims.end());
  out.p = count_of(out.solution_dims);
  out.fit_dims = out.x_dims = s.b_dims;
  out.x_dims.front() = s.n;
  return out;
}

/// Reads B as [..., m, p].
Reading read_matrix(const SystemShapes& s) {
  if (s.b_dims.size() < 2) return {};
  index_t rows = s.b_dims[s.b_dims.size() - 2], cols = s.b_dims.back();
  if (s.is_column) std::swap(rows, cols);
  if (rows != s.m) return {};
  const Dims leading(s.b_dims.begin(), s.b_dims.end() - 2);
  const auto batch = broadcast(s.a_leading, leading);
  if (!batch) return {};
  RightSides out{
      .rows = RowsOfB::matrix, .batch = *batch, .m = s.m, .p = cols, .as_rows = s.is_column};
  const auto dims_with = [&](index_t r) {
    return s.is_column ? joined(*batch, {cols, r}) : joined(*batch, {r, cols});
  };
  out.x_dims = dims_with(s.n);
  out.fit_dims = dims_with(s.m);
  out.solution_dims = joined(*batch, {cols});
  out.a_leading = s.a_leading;
  out.b_leading = leading;
  return out;
}

/// Whether both readings give every number the same place. For one matrix B, m first and the
/// columns of a matrix are the same right sides, and a single right side is a row as well as a
/// column. For several matrices m x p and a square A, X has the same shape if m is first, but other
/// numbers.
bool is_same(const RightSides& one, const RightSides& other) {
  const bool are_rows = one.as_rows && other.as_rows;
  const bool are_columns =
      !one.as_rows && !other.as_rows && count_of(one.batch) == count_of(other.batch);
  const bool lies_alike = are_rows || are_columns || count_of(one.solution_dims) == 1;
  return lies_alike && one.x_dims == other.x_dims && one.solution_dims == other.solution_dims;
}

}  // namespace

std::string_view name_of(RowsOfB rows) {
  switch (rows) {
    case RowsOfB::first:
      return "first";
    case RowsOfB::last:
      return "last";
    case RowsOfB::matrix:
      return "matrix";
    default:
      return "auto";
  }
}

index_t count_of(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), index_t{1}, std::multiplies<>());
}

index_t RightSides::items() const { return count_of(batch); }
SidePlace RightSides::place(index_t side) const {
  const index_t each = std::max<index_t>(p, 1), item = side / each, column = side % each;
  const index_t step = as_rows ? 1 : each, next = as_rows ? m : 1;
  return {.a = place_in(a_leading, batch, item),
          .in_b = place_in(b_leading, batch, item) * m * p + column * next,
          .in_fits = item * m * p + column * next,
          .step = step,
          .next = next,
          .column = column};
}

std::vector<RightSides> readings(const SystemShapes& shapes, RowsOfB asked) {
  using Read = Reading (*)(const SystemShapes&);
  const std::pair<RowsOfB, Read> all[] = {
      {RowsOfB::matrix, read_matrix}, {RowsOfB::first, read_first}, {RowsOfB::last, read_last}};
  std::vector<RightSides> found;
  for (const auto& [rows, read] : all) {
    // A vector is read in one way, whatever is asked for.
    const bool is_tried = asked == RowsOfB::automatic || asked == rows || shapes.b_dims.size() == 1;
    const Reading reading = is_tried ? read(shapes) : Reading();
    if (!reading) continue;
    const bool is_known = std::any_of(found.begin(), found.end(), [&](const RightSides& other) {
      return is_same(*reading, other);
    });
    if (!is_known) found.push_back(*reading);
  }
  return found;
}

/// R of [A B] takes 4 m n p operations for the right sides, as Q'B does, but p more columns must be
/// reduced among themselves, too.
bool pays_as_shared(index_t n, index_t right_sides) {
  return right_sides > std::max<index_t>(n, 8);
}

std::string describe(const RightSides& reading) {
  const index_t all = count_of(reading.solution_dims);
  const char* text = reading.rows == RowsOfB::first  ? "m first, [m, ...]"
                     : reading.rows == RowsOfB::last ? "m last, [..., m]"
                     : reading.as_rows ? "columns of matrices, stored by columns, [..., p, m]"
                                       : "columns of matrices, [..., m, p]";
  return fmt::format("{}: {} right side{}", text, all, all == 1 ? "" : "s");
}

}  // namespace qrtool
