// SPDX-License-Identifier: Apache-2.0
// variables.cpp: reads the comments that stand before the numbers.
#include "io/octave/variables.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/text/number.hpp"

namespace qrtool::octave {
namespace {

/// The word before "matrix" or "scalar" in the type of a variable.
struct Kind {
  std::string_view word;
  ElementType type;
  std::string_view stored_type;
};
constexpr std::array kinds{Kind{"", ElementType::float64, "float64"},
                           Kind{"float ", ElementType::float32, "float32"},
                           Kind{"complex ", ElementType::complex128, "complex128"},
                           Kind{"float complex ", ElementType::complex64, "complex64"},
                           Kind{"bool ", ElementType::float64, "bool"},
                           Kind{"int8 ", ElementType::float64, "int8"},
                           Kind{"int16 ", ElementType::float64, "int16"},
                           Kind{"int32 ", ElementType::float64, "int32"},
                           Kind{"int64 ", ElementType::float64, "int64"},
                           Kind{"uint8 ", ElementType::float64, "uint8"},
                           Kind{"uint16 ", ElementType::float64, "uint16"},
                           Kind{"uint32 ", ElementType::float64, "uint32"},
                           Kind{"uint64 ", ElementType::float64, "uint64"}};

[[noreturn]] void throw_damaged(const TextLines& lines, const std::string& what) {
  throw InputError(fmt::format("{}:{}:1: {}", lines.shown(), lines.number(), what));
}

/// Returns the rest of a line that must begin with `words`. Otherwise the file is damaged.
std::string after(const TextLines& lines, std::string_view words) {
  if (!lines.text().starts_with(words))
    throw_damaged(lines, fmt::format("'{}' must stand here", words));
  return std::string(lines.text().substr(words.size()));
}

void next(TextLines& lines) {
  if (!lines.next()) throw InputError(fmt::format("{}: the file ends too early", lines.shown()));
}

index_t size_of_word(const TextLines& lines, std::string_view word) {
  index_t size = 0;
  if (word.empty()) throw_damaged(lines, "the number of rows or columns is missing");
  for (const char c : word) {
    const bool is_digit = c >= '0' && c <= '9';
    if (!is_digit || __builtin_mul_overflow(size, 10, &size) ||
        __builtin_add_overflow(size, c - '0', &size))
      throw_damaged(lines, quoted_text(word) + " is no number of rows or columns");
  }
  return size;
}

void read_dims(TextLines& lines, Variable& variable) {
  next(lines);
  constexpr std::string_view ndims = "# ndims: ";
  if (lines.text().starts_with(ndims)) {
    const index_t dimensions = size_of_word(lines, lines.text().substr(ndims.size()));
    next(lines);
    variable.dims.clear();
    constexpr index_t most_dimensions = 1000;
    if (dimensions > most_dimensions || count_words(lines.text()) > most_dimensions)
      throw_damaged(lines, fmt::format("more than {} dimensions", most_dimensions));
    for (const std::string_view word : words_of(lines.text()))
      variable.dims.push_back(size_of_word(lines, word));
    if (variable.dims.size() < 2) throw_damaged(lines, "an array has two or more dimensions");
    if (std::ssize(variable.dims) != dimensions)
      throw_damaged(lines,
                    fmt::format("{} sizes where {} must stand", variable.dims.size(), dimensions));
    variable.is_by_rows = false;
  } else {
    variable.dims[0] = size_of_word(lines, after(lines, "# rows: "));
    next(lines);
    variable.dims[1] = size_of_word(lines, after(lines, "# columns: "));
  }
  index_t bytes = 16;
  for (const index_t size : variable.dims)
    if (__builtin_mul_overflow(bytes, std::max<index_t>(size, 1), &bytes))
      throw_damaged(lines, "more numbers than any file holds");
}

constexpr const char* hint_to_save_apart =
    "save the variables that are wanted in a file of their own";

/// Reads the lines between the type and the numbers. Returns false if the variable may contain
/// other variables.
bool read_head(TextLines& lines, std::string_view type, Variable& variable) {
  if (type == "bool") type = "bool scalar";
  const bool is_matrix = type.ends_with("matrix");
  const std::string_view before =
      is_matrix || type.ends_with("scalar") ? type.substr(0, type.size() - 6) : "?";
  const auto kind =
      std::ranges::find_if(kinds, [&](const Kind& each) { return each.word == before; });
  if (kind != kinds.end()) {
    variable.type = kind->type;
    variable.stored_type = kind->stored_type;
    if (is_matrix) read_dims(lines, variable);
    return true;
  }
  variable.problem = fmt::format("is a {}", type);
  if (is_matrix || type.ends_with("range")) {
    variable.hint =
        fmt::format("in Octave: {} = full({}), and save it again", variable.name, variable.name);
    return true;
  }
  return type.ends_with("string");
}

}  // namespace

std::vector<Variable> read_variables(TextLines& lines, std::size_t memory_bytes) {
  // The memory of a variable: its name, its sizes, and its part of a message that lists all of
  // them.
  constexpr std::size_t bytes_of_variable = 2 * sizeof(Variable) + 64;
  std::vector<Variable> variables;
  while (lines.next()) {
    if (!lines.text().starts_with("# name: ")) continue;
    Variable variable{.name = after(lines, "# name: ")};
    next(lines);
    std::string type = after(lines, "# type: ");
    if (type.starts_with("global ")) type.erase(0, 7);
    const bool goes_on = read_head(lines, type, variable);
    variable.offset = lines.offset();
    variable.line = lines.number();
    variables.push_back(std::move(variable));
    if (variables.size() > memory_bytes / bytes_of_variable)
      throw LimitError(fmt::format("{}: more than {} variables, which need {} of memory",
                                   lines.shown(), variables.size() - 1, format_bytes(memory_bytes)),
                       hint_to_save_apart);
    if (!goes_on) {
      variables.back().problem += ", which ends what is read";
      variables.back().hint = hint_to_save_apart;
      variables.back().ends_what_is_read = true;
      break;
    }
  }
  return variables;
}

}  // namespace qrtool::octave
