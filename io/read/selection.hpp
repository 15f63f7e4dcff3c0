// SPDX-License-Identifier: Apache-2.0
// selection.hpp: a part of a dataset, as Python slices say it: [0:1000], [::2, :, 3:], [-1].
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// The slice of one dimension. A missing number means the beginning or the end, as in Python.
struct Slice {
  std::optional<index_t> first = {}, end = {};
  index_t step = 1;
  bool is_index = false;  // one number, in `first`; the dimension is dropped
  bool is_dots = false;   // "...": as many whole dimensions as are needed
};

/// A selection; empty if everything is selected.
struct Selection {
  std::string text;  // with its brackets, without blanks
  std::vector<Slice> slices;

  bool is_empty() const { return slices.empty(); }
};

/// The path of a dataset and a part of it.
struct SelectedPath {
  std::string path;
  Selection selection;
};
/// Whether the text has a bracket, which may begin a selection.
bool may_select(const std::string& text);
/// Splits "/A[0:10]" into "/A" and [0:10]. A text without a bracket is a path alone. Errors:
/// UsageError if the text after the bracket is no selection.
SelectedPath split_selection(const std::string& text);

/// The indices first, first + step, ... of a dimension, `count` of them.
struct Range {
  index_t first = 0, count = 0, step = 1;
  bool is_dropped = false;

  bool is_whole(index_t extent) const { return first == 0 && step == 1 && count == extent; }
};

/// Returns the ranges of all dimensions, the last `matrix_rank` of which are a matrix. As in
/// Python, slices stop at the end of the dimension, dimensions that are not named are whole, and
/// negative numbers count from the end. `shown` names the dataset in messages. Errors: InputError
/// if there are more slices than dimensions, if an index is out of range, if an index would drop a
/// dimension of the matrix, or if no dimension is left.
std::vector<Range> resolve(const Selection& selection, std::span<const index_t> dims,
                           const std::string& shown, std::size_t matrix_rank = 2);

}  // namespace qrtool
