// SPDX-License-Identifier: Apache-2.0
// solve_notes.cpp: one line for each note about A and B, and about what B shows of A.
#include "app/solve/solve_notes.hpp"

#include <fmt/format.h>

#include "app/process/console.hpp"
#include "app/run/files/source_notes.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "io/open/input.hpp"

namespace qrtool {
namespace {

/// Whether a row-shaped B suggests that A is stored by columns. MATLAB, Julia and R store a column
/// of m numbers as 1 x m. Beside a square matrix, which does not show its order, that is strong
/// evidence.
bool shows_columns(const Source& a, const Source& b) {
  const Dims dims = dims_of(b);
  return has_doubtful_order(a) && a.m == a.n && takes_order(b.file) &&
         b.order == Order::automatic && dims.size() >= 2 && dims.back() == a.m &&
         dims[dims.size() - 2] == 1;
}

}  // namespace

void print_notes(const SolveInputs& inputs, bool is_verbose) {
  const Source &a = inputs.a->source(), &b = inputs.b->source();
  const bool is_table = !inputs.responses.empty();
  const bool has_columns = !is_table && shows_columns(a, b);
  if (has_columns)
    print_message(fmt::format(
        "note: {}: {} is stored as {}, as MATLAB, Julia and R store a column; if one of them wrote "
        "the square {} too, it is read transposed: give --order column",
        escape(b.file), escape(b.dataset), join(dims_of(b), "x"), escape(a.dataset)));
  for (const Source* source : {&a, is_table ? nullptr : &b}) {
    if (source == nullptr) continue;
    print_source_notes(*source, source == &a && !has_columns);
    note_empty_selection(*source);
    if (is_verbose) print_source_details(*source);
  }
}

}  // namespace qrtool
