// SPDX-License-Identifier: Apache-2.0
// reader.cpp: pieces of rows, orders and dimensions.
#include "io/read/reader.hpp"

#include <algorithm>

namespace qrtool {
namespace {

constexpr index_t usual_piece_bytes = index_t{1} << 20;

}  // namespace

index_t Reader::most_piece_rows() const {
  const index_t row_bytes = source_.n * static_cast<index_t>(size_of(source_.type));
  return std::max<index_t>(usual_piece_bytes / std::max<index_t>(row_bytes, 1), 1);
}

index_t Reader::piece_end(index_t, index_t first_row) const {
  return std::min(first_row + most_piece_rows(), source_.m);
}

std::string_view name_of(Order order) {
  switch (order) {
    case Order::row:
      return "row";
    case Order::column:
      return "column";
    default:
      return "auto";
  }
}

bool has_doubtful_order(const Source& source) {
  return !source.order_is_stated && source.array_dims.empty() && source.m <= source.n &&
         source.n > 1 && source.count() > 0;
}

std::vector<index_t> dims_of(const Source& source) {
  if (!source.array_dims.empty()) return source.array_dims;
  std::vector<index_t> dims = source.leading;
  dims.insert(dims.end(), {source.m, source.n});
  return dims;
}

}  // namespace qrtool
