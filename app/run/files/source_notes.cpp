// SPDX-License-Identifier: Apache-2.0
// source_notes.cpp: one line for each note about an input.
#include "app/run/files/source_notes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/process/console.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool {
namespace {

/// Returns "scale factor" for "netcdf_scale_factor".
std::string words_of(const std::string& name) {
  std::string words = name.substr(name.find('_') + 1);
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

/// h5write of MATLAB and Julia leaves no mark in the file; a matrix of it with more rows than
/// columns seems wide, and a square one is transposed.
std::string note_of_assumed_order(const Source& source) {
  if (source.m == source.n)
    return fmt::format(
        "{} is square, and nothing in the file says whether rows or columns are stored first; it "
        "is "
        "read by rows, as h5py writes; if MATLAB, Julia or R wrote it, give --order column",
        escape(source.dataset));
  return fmt::format(
      "{} is read as {}x{}, the order of h5py; if MATLAB, Julia or R wrote a {}x{} "
      "matrix, give --order column",
      escape(source.dataset), source.m, source.n, source.n, source.m);
}

}  // namespace

std::vector<std::string> source_notes(const Source& source) {
  std::vector<std::string> notes;
  if (has_doubtful_order(source)) notes.push_back(note_of_assumed_order(source));
  notes.insert(notes.end(), source.notes.begin(), source.notes.end());
  return notes;
}

void print_source_notes(const Source& source, bool with_order) {
  for (const std::string& note : with_order ? source_notes(source) : source.notes)
    print_message(fmt::format("note: {}: {}", escape(source.file), note));
}

void note_rounded(const Source& source) {
  if (!source.rounds || !*source.rounds) return;
  print_message(fmt::format("note: {}{}{}: holds integers beyond 2^53, which float64 rounds",
                            escape(source.file), source.dataset.empty() ? "" : ":",
                            escape(source.dataset)));
}

void print_other_reading(const std::string& output, const RecordedInput& recorded,
                         const Source& source) {
  // CSV records neither file nor dataset if it was made from HDF5 without any attribute.
  for (const char* name : variable_names) {
    const std::string made = word_of(recorded.details, name), used = word_of(source.details, name);
    if (made == used || (recorded.file.empty() && made.empty())) continue;
    const auto text = [&](const std::string& word) {
      return word.empty() ? "without " + words_of(name)
                          : fmt::format("with {} {}", words_of(name), escape(word));
    };
    print_message(fmt::format("note: {} was made {}, and {} is read {}", escape(output), text(made),
                              escape(source.file), text(used)));
  }
}

void note_empty_selection(const Source& source) {
  if (!source.dataset.ends_with(']') || source.count() * source.m * source.n != 0) return;
  print_message(fmt::format("note: {}:{} selects nothing ({})", escape(source.file),
                            escape(source.dataset), join(dims_of(source), "x")));
}

std::string details_text(const Source& source) {
  std::string text;
  for (const auto& [name, word] : source.details) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words_of(name), escape(word));
  }
  return text;
}

void print_source_details(const Source& source) {
  if (source.details.empty()) return;
  print_message(fmt::format("{}: {}", escape(source.file), details_text(source)));
}

}  // namespace qrtool
