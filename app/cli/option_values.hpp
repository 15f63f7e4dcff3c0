// SPDX-License-Identifier: Apache-2.0
// option_values.hpp: parses the values of options. Every error names the option, the value and what
// is allowed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/batch.hpp"
#include "core/error.hpp"

namespace qrtool {

/// Returns the error `--mode: 'reducd' is not one of reduced, complete, r, raw; did you mean
/// 'reduced'?`
UsageError not_one_of(std::string_view option, std::string_view value,
                      std::span<const std::string_view> allowed);

/// Returns this tool's word for a word of other programs, such as "double" for "float64", or the
/// word itself.
std::string_view our_word(std::string_view option, std::string_view word);

/// Returns the value that `text` names.
template <class T, std::size_t N>
T choose(std::string_view option, const std::string& text,
         const std::pair<std::string_view, T> (&choices)[N]) {
  std::vector<std::string_view> names;
  for (const auto& [name, value] : choices) {
    if (name == our_word(option, text)) return value;
    names.push_back(name);
  }
  throw not_one_of(option, text, names);
}

/// Parses a number of bytes: "4096", "512MiB", "2GiB", "1.5GB", "8G" (K, M, G and T alone are
/// binary).
std::uint64_t parse_size(std::string_view option, const std::string& text);

/// Parses a whole number, least <= number <= most.
std::int64_t parse_whole(std::string_view option, const std::string& text, std::int64_t least,
                         std::int64_t most);

/// Parses a finite number >= least.
double parse_number(std::string_view option, const std::string& text, double least);

struct Shape {
  std::vector<index_t> leading;
  index_t m = 0, n = 0;
};

/// Parses "64x32" or "1000x64x32", in which rows and columns come last. `allowed` says which values
/// are allowed. Errors: UsageError; LimitError if the number of bytes overflows.
Shape parse_shape(std::string_view option, const std::string& text, std::string_view allowed);

}  // namespace qrtool
