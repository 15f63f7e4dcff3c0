// SPDX-License-Identifier: Apache-2.0
// source_notes.cpp: one line for each note about an input.
#include "app/run/source_notes.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/process/console.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// MATLAB's h5write leaves no mark in the file; a matrix of it with more rows than columns seems
/// wide.
void note_assumed_order(const Source& source) {
  if (source.order_is_stated || source.m >= source.n) return;
  print_message(fmt::format(
      "note: {}: {} is read as {}x{}, the order of h5py; if MATLAB, Octave or Julia wrote a {}x{} "
      "matrix, give --order column",
      escape(source.file), escape(source.dataset), source.m, source.n, source.n, source.m));
}

}  // namespace

void print_source_notes(const Source& source) {
  note_assumed_order(source);
  for (const std::string& note : source.notes)
    print_message(fmt::format("note: {}: {}", escape(source.file), note));
}

void print_source_details(const Source& source) {
  if (source.details.empty()) return;
  std::string text;
  for (const auto& [name, word] : source.details) {
    std::string words = name.substr(name.find('_') + 1);
    std::replace(words.begin(), words.end(), '_', ' ');
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", words, escape(word));
  }
  print_message(fmt::format("{}: {}", escape(source.file), text));
}

}  // namespace qrtool
