// SPDX-License-Identifier: Apache-2.0
// selection.cpp: parses slices, and applies them to dimensions.
#include "io/read/selection.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

[[noreturn]] void throw_no_selection(const std::string& text, const std::string& why) {
  throw UsageError(fmt::format("'{}': {}", escape(text), why),
                   "a selection is for example '[0:1000]' or '[::2, :, 3:]', with the slices of "
                   "Python for batch, rows and columns");
}

/// Parses the slices of one text.
class SelectionParser {
 public:
  explicit SelectionParser(const std::string& text) : text_(text) {}

  /// `inside` is the text between the brackets, without blanks.
  std::vector<Slice> parse(std::string_view inside) const {
    std::vector<Slice> slices;
    for (std::size_t at = 0; at <= inside.size();) {
      const std::size_t end = std::min(inside.find(',', at), inside.size());
      slices.push_back(parse_slice(inside.substr(at, end - at)));
      at = end + 1;
    }
    const auto dots = std::count_if(slices.begin(), slices.end(),
                                    [](const Slice& slice) { return slice.is_dots; });
    if (dots > 1) throw_no_selection(text_, "'...' stands twice");
    return slices;
  }

 private:
  std::optional<index_t> parse_number(std::string_view word) const {
    if (word.empty()) return {};
    index_t number = 0;
    const std::string_view digits = word.substr(word.starts_with('+') ? 1 : 0);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (error == std::errc() && end == digits.data() + digits.size()) return number;
    throw_no_selection(text_, fmt::format("'{}' is not a whole number", escape(word)));
  }

  Slice parse_slice(std::string_view word) const {
    if (word == "...") return {.is_dots = true};
    std::vector<std::string_view> parts;
    for (std::size_t at = 0; at <= word.size();) {
      const std::size_t end = std::min(word.find(':', at), word.size());
      parts.push_back(word.substr(at, end - at));
      at = end + 1;
    }
    if (word.empty()) throw_no_selection(text_, "a slice is missing; ':' is a whole dimension");
    if (parts.size() > 3) throw_no_selection(text_, fmt::format("'{}' has too many colons", word));
    Slice slice{.first = parse_number(parts[0]), .is_index = parts.size() == 1};
    if (parts.size() > 1) slice.end = parse_number(parts[1]);
    if (parts.size() > 2) slice.step = parse_number(parts[2]).value_or(1);
    if (slice.step <= 0) {
      throw_no_selection(text_, fmt::format("the step {} is not positive", slice.step));
    }
    return slice;
  }

  const std::string& text_;
};

/// Returns the selection without blanks beside its punctuation. A blank between two numbers may
/// stand for a comma.
std::string without_blanks(const std::string& text, const std::string& part) {
  std::string kept;
  bool follows_blank = false;
  for (const char c : part) {
    const auto is_sign = [](char each) {
      return std::string_view("[]:,").find(each) != std::string_view::npos;
    };
    if (c != ' ' && follows_blank && !is_sign(c) && !kept.empty() && !is_sign(kept.back()))
      throw_no_selection(text, "a blank stands within a number, or a comma is missing");
    follows_blank = c == ' ';
    if (c != ' ') kept += c;
  }
  return kept;
}

Range range_of(const Slice& slice, index_t extent) {
  // As in Python, a bound outside the dimension is moved to the nearest end.
  const auto bound = [extent](std::optional<index_t> given, index_t usual) {
    if (!given) return usual;
    const index_t from_begin = *given < 0 ? std::max(*given, -extent) + extent : *given;
    return std::min(from_begin, extent);
  };
  const index_t first = bound(slice.first, 0), end = bound(slice.end, extent);
  const index_t count = end > first ? (end - first - 1) / slice.step + 1 : 0;
  return {.first = count > 0 ? first : 0, .count = count, .step = count > 1 ? slice.step : 1};
}

/// Names a dimension for messages: "dimension 0, of 5".
std::string dimension_text(std::size_t dimension, index_t extent) {
  return fmt::format("dimension {}, of {}", dimension, extent);
}

}  // namespace

bool may_select(const std::string& text) { return text.find('[') != std::string::npos; }

SelectedPath split_selection(const std::string& text) {
  const std::size_t bracket = text.rfind('[');
  if (bracket == std::string::npos) return {text, {}};
  SelectedPath split{.path = text.substr(0, bracket), .selection = {text.substr(bracket), {}}};
  std::string& part = split.selection.text;
  part = without_blanks(text, part);
  if (part.find(']') != part.size() - 1) throw_no_selection(text, "a selection ends with ']'");
  split.selection.slices =
      SelectionParser(text).parse(std::string_view(part).substr(1, part.size() - 2));
  while (split.path.ends_with(' ')) split.path.pop_back();
  return split;
}

std::vector<Range> resolve(const Selection& selection, std::span<const index_t> dims,
                           const std::string& shown, std::size_t matrix_rank) {
  const std::vector<Slice>& slices = selection.slices;
  const auto dots =
      std::find_if(slices.begin(), slices.end(), [](const Slice& slice) { return slice.is_dots; });
  const std::size_t named = slices.size() - (dots == slices.end() ? 0 : 1);
  if (named > dims.size()) {
    throw InputError(fmt::format("{}: {} slices for {} dimension{} ({})", shown, named, dims.size(),
                                 dims.size() == 1 ? "" : "s", fmt::join(dims, "x")));
  }
  std::vector<Range> ranges;
  const auto append = [&](const Slice& slice) {
    const std::size_t d = ranges.size();
    const index_t extent = dims[d];
    if (!slice.is_index) return ranges.push_back(range_of(slice, extent));
    const index_t index = *slice.first + (*slice.first < 0 ? extent : 0);
    if (index < 0 || index >= extent) {
      throw InputError(fmt::format("{}: the index {} is outside {}", shown, *slice.first,
                                   dimension_text(d, extent)));
    }
    if (d + matrix_rank >= dims.size()) {
      throw InputError(fmt::format("{}: the index {} takes {}, from the matrix", shown,
                                   *slice.first, dimension_text(d, extent)),
                       fmt::format("{}:{} keeps it", index, index + 1));
    }
    ranges.push_back({.first = index, .count = 1, .is_dropped = true});
  };
  for (const Slice& slice : slices) {
    if (!slice.is_dots) append(slice);
    for (std::size_t d = named; slice.is_dots && d < dims.size(); ++d) append(Slice{});
  }
  while (ranges.size() < dims.size()) append(Slice{});
  if (!dims.empty() && std::all_of(ranges.begin(), ranges.end(),
                                   [](const Range& range) { return range.is_dropped; })) {
    throw InputError(
        fmt::format("{}: the indices leave a single number", shown),
        fmt::format("{}:{} keeps a dimension", ranges.back().first, ranges.back().first + 1));
  }
  return ranges;
}

}  // namespace qrtool
