// SPDX-License-Identifier: Apache-2.0
// option_values.cpp: parses sizes, numbers, shapes and choices, whatever the locale is.
#include "app/cli/option_values.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "core/join.hpp"
#include "core/text.hpp"
#include "core/whole_number.hpp"

namespace qrtool {
namespace {

/// Parses all of `text` as a number, or returns nothing.
std::optional<double> parse_all(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Returns 0 for an unknown unit.
double unit_bytes(std::string unit) {
  for (char& c : unit) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  if (unit.empty() || unit == "B") return 1;
  const std::size_t power = std::string_view("KMGT").find(unit[0]) + 1;
  if (power == 0) return 0;
  const std::string rest = unit.substr(1);
  if (rest.empty() || rest == "IB") return std::pow(1024.0, power);
  return rest == "B" ? std::pow(1000.0, power) : 0;
}

}  // namespace

UsageError not_one_of(std::string_view option, std::string_view value,
                      std::span<const std::string_view> allowed) {
  const std::string_view near = nearest(value, allowed);
  return UsageError(fmt::format("{}: '{}' is not one of {}{}", option, escape(value),
                                join(allowed, ", "),
                                near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

std::string_view our_word(std::string_view option, std::string_view word) {
  struct Alias {
    std::string_view option, word, ours;
  };
  // NumPy has these names of types, and SciPy, MATLAB and Octave these names of modes.
  constexpr Alias aliases[] = {
      {"--precision", "float32", "single"}, {"--precision", "float64", "double"},
      {"--mode", "economic", "reduced"},    {"--mode", "economy", "reduced"},
      {"--mode", "econ", "reduced"},        {"--mode", "full", "complete"}};
  for (const Alias& alias : aliases)
    if (alias.option == option && alias.word == word) return alias.ours;
  return word;
}

std::uint64_t parse_size(std::string_view option, const std::string& text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789."), text.size());
  const std::optional<double> number = parse_all(std::string_view(text).substr(0, digits));
  const double bytes = number.value_or(0) * unit_bytes(text.substr(digits));
  if (!(bytes >= 1 && bytes < 0x1p63))
    throw UsageError(
        fmt::format("{}: '{}' is not a size; allowed are for example 512MiB, 2GiB, "
                    "1.5GB and plain bytes",
                    option, escape(text)));
  return static_cast<std::uint64_t>(bytes);
}

std::int64_t parse_whole(std::string_view option, const std::string& text, std::int64_t least,
                         std::int64_t most) {
  const std::optional<std::int64_t> value = whole_number(text);
  if (!value || *value < least || *value > most) {
    const std::string range = most == std::numeric_limits<std::int64_t>::max()
                                  ? fmt::format("of at least {}", least)
                                  : fmt::format("from {} to {}", least, most);
    throw UsageError(fmt::format("{}: '{}' is not a whole number {}", option, escape(text), range));
  }
  return *value;
}

double parse_number(std::string_view option, const std::string& text, double least) {
  const std::optional<double> value = parse_all(text);
  if (!value || !(*value >= least) || std::isinf(*value))
    throw UsageError(
        fmt::format("{}: '{}' is not a number of at least {}", option, escape(text), least));
  return *value;
}

Shape parse_shape(std::string_view option, const std::string& text, std::string_view allowed) {
  std::vector<index_t> extents;
  index_t bytes = sizeof(double);
  bool overflow = false;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('x', begin), text.size());
    const auto extent = whole_number(std::string_view(text).substr(begin, end - begin));
    if (!extent) {
      extents.clear();
      break;
    }
    overflow |= __builtin_mul_overflow(bytes, std::max<index_t>(1, *extent), &bytes);
    extents.push_back(*extent);
    begin = end + 1;
  }
  if (extents.size() < 2)
    throw UsageError(fmt::format("{}: '{}' is not a shape; {}", option, escape(text), allowed));
  if (overflow || extents.size() > 8)
    throw LimitError(fmt::format("{}: '{}' is larger than any file", option, escape(text)));
  Shape shape{.leading = {extents.begin(), extents.end() - 2},
              .m = extents[extents.size() - 2],
              .n = extents.back()};
  return shape;
}

}  // namespace qrtool
