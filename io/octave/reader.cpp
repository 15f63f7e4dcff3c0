// SPDX-License-Identifier: Apache-2.0
// reader.cpp: finds the variable that is meant, and reads its numbers.
#include "io/octave/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/octave/variables.hpp"
#include "io/read/choice.hpp"
#include "io/read/spooled_reader.hpp"
#include "io/text/number.hpp"

namespace qrtool::octave {
namespace {

/// Variables have a path, as datasets have in HDF5.
std::string path_of(const Variable& variable) { return "/" + variable.name; }

const Variable& find_only(const std::string& file, const std::vector<Variable>& variables) {
  std::vector<std::string> matrices, others;
  const Variable* first = nullptr;
  for (const Variable& variable : variables) {
    const std::string shown = escape(path_of(variable));
    if (!variable.problem.empty()) {
      others.push_back(shown + " " + escape(variable.problem));
      continue;
    }
    matrices.push_back(
        fmt::format("{} ({} {})", shown, fmt::join(variable.dims, "x"), variable.stored_type));
    if (first == nullptr) first = &variable;
  }
  if (matrices.size() == 1) return *first;
  if (matrices.empty() && variables.size() == 1) return variables.front();  // has a hint
  if (matrices.empty())
    throw InputError(fmt::format("{}: holds no matrices{}{}", file, others.empty() ? "" : ": ",
                                 list_text(others)));
  throw InputError(
      fmt::format("{}: {} variables of numbers: {}", file, matrices.size(), list_text(matrices)),
      fmt::format("choose one, as in {}:{}", file, escape(path_of(*first))));
}

/// Throws the error of a `path` that names none of `variables`.
[[noreturn]] void throw_unknown(const std::string& file, const std::vector<Variable>& variables,
                                const std::string& path) {
  std::vector<std::string> paths;
  if (variables.empty() || !variables.back().ends_what_is_read) {
    std::ranges::transform(variables, std::back_inserter(paths), path_of);
    qrtool::throw_unknown(file, "variable", path, paths);
  }
  for (const Variable& variable : variables)
    if (variable.problem.empty()) paths.push_back(escape(path_of(variable)));
  const Variable& last = variables.back();
  throw InputError(
      fmt::format("{}: there is no variable {}; {} {}", file, escape(path), escape(path_of(last)),
                  escape(last.problem)),
      (paths.empty() ? "" : "choose one of " + list_text(paths) + "; or ") + last.hint);
}

const Variable& find(const std::string& file, const std::vector<Variable>& variables,
                     const std::string& dataset) {
  const std::string path = dataset.starts_with('/') || dataset.empty() ? dataset : "/" + dataset;
  const auto found = std::ranges::find(variables, path, path_of);
  if (path.empty() || found != variables.end()) {
    const Variable& variable = path.empty() ? find_only(file, variables) : *found;
    if (variable.problem.empty()) return variable;
    throw InputError(
        fmt::format("{}: {} {}", file, escape(path_of(variable)), escape(variable.problem)),
        escape(variable.hint));
  }
  throw_unknown(file, variables, path);
}

class VariableReader final : public SpooledReader {
 public:
  VariableReader(int descriptor, const InputSpec& spec);

 private:
  void read_numbers(TextLines& lines, const Variable& variable);
  void add_number(const TextLines& lines, std::string_view word);
  void add_part(const TextLines& lines, std::string_view word, std::string_view part);
  double element(index_t matrix, index_t i, index_t j, index_t part) const override;

  bool is_by_rows_ = true;
};

VariableReader::VariableReader(int descriptor, const InputSpec& spec)
    : SpooledReader(is_standard_input(spec.path) ? std::string(standard_input)
                                                 : escape(spec.path)) {
  const FileStamp stamp(descriptor);
  TextLines lines(descriptor, shown_, spec.memory_bytes);
  const std::vector<Variable> variables = read_variables(lines, spec.memory_bytes);
  const Variable& variable = find(shown_, variables, spec.dataset);
  source_.file = spec.path;
  source_.dataset = path_of(variable);
  source_.m = variable.dims[0];
  source_.n = variable.dims[1];
  source_.leading.assign(variable.dims.rbegin(), variable.dims.rend() - 2);
  source_.type = variable.type;
  source_.stored_type = variable.stored_type;
  // An output in HDF5 is read by Octave, too.
  source_.order = Order::column;
  source_.complex_form.names = {.real = "real", .imaginary = "imag"};
  is_by_rows_ = variable.is_by_rows;
  read_numbers(lines, variable);
  stamp.require_unchanged(descriptor, shown_);
  spool_.map();
}

void VariableReader::read_numbers(TextLines& lines, const Variable& variable) {
  const index_t wanted = source_.count() * source_.m * source_.n;
  const index_t of_line = is_by_rows_ ? source_.n : 1;
  lines.seek(variable.offset, variable.line);
  lines.next();
  index_t found = 0;
  while (found < wanted && lines.next()) {
    if (const index_t numbers = count_words(lines.text()); numbers != of_line)
      throw InputError(fmt::format("{}:{}:1: {} numbers where {} must stand", shown_,
                                   lines.number(), numbers, of_line));
    for (const std::string_view word : words_of(lines.text())) add_number(lines, word);
    found += of_line;
  }
  if (found < wanted)
    throw InputError(
        fmt::format("{}: the file ends after {} of {} numbers", shown_, found, wanted));
  if (lines.next() && count_words(lines.text()) > 0 && !lines.text().starts_with('#'))
    throw InputError(fmt::format("{}:{}:1: more numbers than the {} of {}", shown_, lines.number(),
                                 wanted, escape(source_.dataset)));
}

void VariableReader::add_number(const TextLines& lines, std::string_view word) {
  if (!is_complex(source_.type)) return add_part(lines, word, word);
  const std::size_t comma = word.find(',');
  if (!word.starts_with('(') || !word.ends_with(')') || comma == std::string_view::npos)
    return add_part(lines, word, "");
  add_part(lines, word, word.substr(1, comma - 1));
  add_part(lines, word, word.substr(comma + 1, word.size() - comma - 2));
}

void VariableReader::add_part(const TextLines& lines, std::string_view word,
                              std::string_view part) {
  double value = std::numeric_limits<double>::quiet_NaN();
  const Parsed parsed = part == "NA" ? Parsed::number  // a missing number
                                     : parse_number(part, value, real_of(source_.type));
  if (parsed != Parsed::number) {
    const auto column = static_cast<std::size_t>(word.data() - lines.text().data()) + 1;
    throw InputError(fmt::format("{}:{}:{}: {} is {}", shown_, lines.number(), column,
                                 quoted_text(word),
                                 parsed == Parsed::too_large ? "too large for its type"
                                 : is_complex(source_.type)  ? "no complex number like (1,2)"
                                                             : "not a number"));
  }
  spool_.add(value);
}

double VariableReader::element(index_t matrix, index_t i, index_t j, index_t part) const {
  const index_t parts = is_complex(source_.type) ? 2 : 1;
  const index_t place = is_by_rows_ ? i * source_.n + j : (matrix * source_.n + j) * source_.m + i;
  return spool_[place * parts + part];
}

}  // namespace

std::unique_ptr<Reader> open_variable(const InputSpec& spec) {
  return std::make_unique<VariableReader>(open_rereadable(spec.path), spec);
}

std::vector<Entry> list_entries(const std::string& file) {
  TextLines lines(open_rereadable(file), escape(file));
  std::vector<Entry> entries;
  for (const Variable& variable : read_variables(lines, host_limits({}, 1).host_bytes / 2))
    entries.push_back({.name = path_of(variable),
                       .dims = variable.problem.empty() ? variable.dims : std::vector<index_t>{},
                       .stored_type = variable.stored_type,
                       .problem = variable.problem});
  return entries;
}

}  // namespace qrtool::octave
