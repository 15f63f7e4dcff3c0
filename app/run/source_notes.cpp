// SPDX-License-Identifier: Apache-2.0
// source_notes.cpp: one line for each note about an input.
#include "app/run/source_notes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/process/console.hpp"
#include "app/run/join.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// MATLAB's h5write leaves no mark in the file; a matrix of it with more rows than columns seems
/// wide.
std::string note_of_assumed_order(const Source& source) {
  return fmt::format(
      "{} is read as {}x{}, the order of h5py; if MATLAB, Julia or R wrote a {}x{} "
      "matrix, give --order column",
      escape(source.dataset), source.m, source.n, source.n, source.m);
}

}  // namespace

std::vector<std::string> source_notes(const Source& source) {
  std::vector<std::string> notes;
  if (!source.order_is_stated && source.m < source.n)
    notes.push_back(note_of_assumed_order(source));
  notes.insert(notes.end(), source.notes.begin(), source.notes.end());
  return notes;
}

void print_source_notes(const Source& source) {
  for (const std::string& note : source_notes(source))
    print_message(fmt::format("note: {}: {}", escape(source.file), note));
}

void note_empty_selection(const Source& source) {
  if (!source.dataset.ends_with(']') || source.count() * source.m * source.n != 0) return;
  print_message(fmt::format("note: {}:{} selects nothing ({})", escape(source.file),
                            escape(source.dataset), join(dims_of(source), "x")));
}

std::string details_text(const Source& source) {
  std::string text;
  for (const auto& [name, word] : source.details) {
    std::string words = name.substr(name.find('_') + 1);
    std::replace(words.begin(), words.end(), '_', ' ');
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words, escape(word));
  }
  return text;
}

void print_source_details(const Source& source) {
  if (source.details.empty()) return;
  print_message(fmt::format("{}: {}", escape(source.file), details_text(source)));
}

}  // namespace qrtool
