// SPDX-License-Identifier: Apache-2.0
// variables.hpp: the variables in text of Octave, before their numbers are read.
//
//   # name: a
//   # type: float complex matrix
//   # rows: 3                  or  # ndims: 3
//   # columns: 2                    3 2 5
//    (1,2) (2.5,4)                 (1,2)
//   one row of the matrix a line,  or one number a line, the first dimension fastest.
// Octave 7.3, libinterp/octave-value/ov-re-mat.cc, ov-cx-mat.cc and those of the other types.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/problem/problem.hpp"
#include "io/file/text_lines.hpp"

namespace qrtool::octave {

struct Variable {
  std::string name;
  std::string problem = {};  // why it is no matrix of numbers; empty where it is one
  std::string hint = {};     // what to do about it
  bool ends_what_is_read = false;
  ElementType type = ElementType::float64;
  std::string stored_type = {};
  std::vector<index_t> dims = {1, 1};
  bool is_by_rows = true;
  // The offset of the last line before the numbers.
  std::uint64_t offset = 0;
  index_t line = 0;
};

/// Reads all variables up to the first that may contain others, such as a cell or a struct. The
/// text does not tell where such a variable ends. Errors: InputError; LimitError if they need more
/// than `memory_bytes`.
std::vector<Variable> read_variables(TextLines& lines, std::size_t memory_bytes);

}  // namespace qrtool::octave
