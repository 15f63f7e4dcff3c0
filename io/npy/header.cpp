// SPDX-License-Identifier: Apache-2.0
// header.cpp: a strict parser of the one kind of Python literal that NumPy writes: a dictionary of
// three keys. It takes nothing that NumPy refuses, and never needs more memory than the header.
#include "io/npy/header.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <optional>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool::npy {
namespace {

constexpr std::size_t most_dimensions = 32;  // NumPy's

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The value of descr: a type, or the fields of a record.
struct Descr {
  std::string type;
  std::vector<std::string> fields;
  bool is_record = false;
};

class DictionaryParser {
 public:
  /// `has_long`: Python 2 may have written the sizes, as in 3L.
  DictionaryParser(std::string_view text, bool has_long, const std::string& shown)
      : text_(text), has_long_(has_long), shown_(shown) {}

  void parse() {
    if (!text_.starts_with('{')) fail("it is no dictionary");
    expect('{');
    while (!takes('}')) {
      parse_entry();
      if (takes('}')) break;
      expect(',');
    }
    skip_space();
    if (at_ != text_.size()) fail("text after the dictionary");
    if (!descr_) fail("no 'descr'");
    if (!is_fortran_) fail("no 'fortran_order'");
    if (!dims_) fail("no 'shape'");
  }

  const Descr& descr() const { return *descr_; }
  bool is_fortran() const { return *is_fortran_; }
  const std::vector<index_t>& dims() const { return *dims_; }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(
        fmt::format("{}: damaged header: {} (at character {})", shown_, what, at_ + 1));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool takes(char c) {
    skip_space();
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!takes(c)) fail(fmt::format("'{}' is missing", c));
  }
  bool takes_word(std::string_view word) {
    skip_space();
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  /// Parses a string without escapes.
  std::string parse_string() {
    skip_space();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') fail("a string is missing");
    const std::size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) fail("a string without end");
    const std::string_view text = text_.substr(at_ + 1, end - at_ - 1);
    if (!std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; }) ||
        text.find('\\') != std::string_view::npos) {
      fail("a string with special characters");
    }
    at_ = end + 1;
    return std::string(text);
  }

  void parse_entry() {
    const std::string key = parse_string();
    expect(':');
    if (key == "descr" && !descr_) {
      descr_ = parse_descr();
    } else if (key == "fortran_order" && !is_fortran_) {
      is_fortran_ = parse_bool();
    } else if (key == "shape" && !dims_) {
      dims_ = parse_shape();
    } else {
      fail(fmt::format("the key '{}' is unknown or repeated", escape(key)));
    }
  }

  bool parse_bool() {
    if (takes_word("True")) return true;
    if (takes_word("False")) return false;
    fail("fortran_order is neither True nor False");
  }

  Descr parse_descr() {
    skip_space();
    if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) return skip_record();
    return {.type = parse_string(), .fields = {}, .is_record = false};
  }

  /// Skips nested lists and tuples, and keeps the first string of each tuple, which names a field.
  Descr skip_record() {
    Descr descr{.type = {}, .fields = {}, .is_record = true};
    std::size_t depth = 0;
    bool is_name = false;
    do {
      if (takes('[')) {
        ++depth;
      } else if (takes('(')) {
        ++depth;
        is_name = true;
      } else if (takes(']') || takes(')')) {
        --depth;
      } else if (at_ < text_.size() && (text_[at_] == '\'' || text_[at_] == '"')) {
        const std::string text = skip_string();
        if (is_name) descr.fields.push_back(text);
        is_name = false;
      } else if (at_ < text_.size()) {
        ++at_;
      } else {
        fail("descr has no end");
      }
    } while (depth > 0);
    return descr;
  }

  /// Skips a quoted string, in which a backslash escapes the next character, and returns its
  /// content.
  std::string skip_string() {
    const std::size_t begin = at_ + 1;
    const char quote = text_[at_++];
    while (at_ < text_.size() && text_[at_] != quote) at_ += text_[at_] == '\\' ? 2 : 1;
    if (at_ >= text_.size()) fail("a string without end");
    return std::string(text_.substr(begin, at_++ - begin));
  }

  std::vector<index_t> parse_shape() {
    std::vector<index_t> dims;
    expect('(');
    bool ends_in_comma = false;
    while (!takes(')')) {
      if (!dims.empty() && !ends_in_comma) fail("',' is missing in the shape");
      if (dims.size() == most_dimensions)
        fail(fmt::format("more than {} dimensions", most_dimensions));
      dims.push_back(parse_size());
      ends_in_comma = takes(',');
    }
    // (3) is a number in Python, (3,) is a tuple.
    if (dims.size() == 1 && !ends_in_comma) fail("the shape is no tuple");
    return dims;
  }

  index_t parse_size() {
    skip_space();
    if (at_ < text_.size() && text_[at_] == '-') fail("a negative size");
    const std::size_t begin = at_;
    index_t size = 0;
    bool is_too_large = false;
    for (; at_ < text_.size() && is_digit(text_[at_]); ++at_) {
      is_too_large |= __builtin_mul_overflow(size, index_t{10}, &size);
      is_too_large |= __builtin_add_overflow(size, index_t{text_[at_] - '0'}, &size);
    }
    if (at_ == begin || (text_[begin] == '0' && at_ - begin > 1)) fail("a size is missing");
    if (is_too_large) fail("a size that is too large");
    if (has_long_ && at_ < text_.size() && text_[at_] == 'L') ++at_;
    return size;
  }

  std::string_view text_;
  bool has_long_;
  const std::string& shown_;
  std::size_t at_ = 0;
  std::optional<Descr> descr_;
  std::optional<bool> is_fortran_;
  std::optional<std::vector<index_t>> dims_;
};

struct Problem {
  std::string text, hint;
};

std::string join_fields(const std::vector<std::string>& fields) {
  constexpr std::size_t most_listed = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(fields.size(), most_listed); ++i)
    text += (i > 0 ? ", " : "") + escape(fields[i]);
  return fields.size() > most_listed ? text + ", ..." : text;
}

Problem record_problem(const Descr& descr) {
  return {.text = fmt::format("is structured (fields {}); only plain numbers can be read",
                              join_fields(descr.fields)),
          .hint =
              "make it a table: numpy.save('table.npy', "
              "numpy.lib.recfunctions.structured_to_unstructured(a))"};
}

/// Why a type of NumPy that is no number cannot be read. `rest` is the type without its byte
/// order.
Problem type_problem(const std::string& descr, std::string_view rest) {
  switch (rest.empty() ? '\0' : rest.front()) {
    case 'O':
      return {.text = "holds Python objects, which could run any program; only numbers can be read",
              .hint = "numpy.save('numbers.npy', a.astype('f8'))"};
    case 'U':
    case 'S':
    case 'a':
      return {.text = fmt::format("holds strings ('{}'); only numbers can be read", descr),
              .hint = "numpy.save('numbers.npy', a.astype('f8'))"};
    case 'M':
    case 'm':
      return {.text = fmt::format("holds dates or times ('{}'); only numbers can be read", descr),
              .hint = "numpy.save('numbers.npy', a.astype('i8'))"};
    case 'V':
      return {.text = fmt::format("holds raw bytes ('{}'); only numbers can be read", descr),
              .hint = "numpy.save('numbers.npy', a.astype('f4')), in the program that knows them"};
    default:
      break;
  }
  if (rest == "f12" || rest == "f16" || rest == "c24" || rest == "c32") {
    return {.text = fmt::format("is long double ('{}'), which has no fixed format", descr),
            .hint = fmt::format("numpy.save('numbers.npy', a.astype('{}'))",
                                rest.front() == 'c' ? "c16" : "f8")};
  }
  return {.text = fmt::format("is of the unknown type '{}'", escape(descr)), .hint = {}};
}

/// Returns the type of the numbers, or nothing if `order` and `rest` name no type of numbers.
std::optional<NumberType> number_type(char order, std::string_view rest) {
  if (rest == "c8" || rest == "c16") {
    std::optional<NumberType> part = number_type(order, rest == "c8" ? "f4" : "f8");
    part->parts = 2;
    return part;
  }
  if (rest.size() != 2) return {};
  NumberType type;
  type.bytes = static_cast<std::size_t>(rest[1] - '0');
  type.is_swapped =
      type.bytes > 1 && order == (std::endian::native == std::endian::little ? '>' : '<');
  constexpr std::pair<char, Kind> kinds[] = {{'f', Kind::floating},
                                             {'i', Kind::signed_integer},
                                             {'u', Kind::unsigned_integer},
                                             {'b', Kind::boolean}};
  const auto found = std::find_if(std::begin(kinds), std::end(kinds),
                                  [&](const auto& each) { return each.first == rest[0]; });
  if (found == std::end(kinds)) return {};
  type.kind = found->second;
  const bool exists =
      type.kind == Kind::boolean ? type.bytes == 1
      : type.kind == Kind::floating
          ? type.bytes == 2 || type.bytes == 4 || type.bytes == 8
          : type.bytes == 1 || type.bytes == 2 || type.bytes == 4 || type.bytes == 8;
  return exists ? std::optional(type) : std::nullopt;
}

std::string name_of(const NumberType& type) {
  if (type.kind == Kind::boolean) return "bool";
  const char* kind = type.parts == 2                     ? "complex"
                     : type.kind == Kind::floating       ? "float"
                     : type.kind == Kind::signed_integer ? "int"
                                                         : "uint";
  return fmt::format("{}{}{}", type.is_swapped ? "big-endian " : "", kind,
                     8 * type.bytes * static_cast<std::size_t>(type.parts));
}

/// Returns the length of a string type such as "<U12".
std::size_t length_of(const std::string& descr) {
  std::size_t length = 0;
  if (descr.starts_with("<U"))
    std::from_chars(descr.data() + 2, descr.data() + descr.size(), length);
  return length;
}

void set_type(Header& header, const Descr& descr) {
  if (descr.is_record) {
    const Problem problem = record_problem(descr);
    header.problem = problem.text;
    header.problem_hint = problem.hint;
    return;
  }
  constexpr std::string_view orders = "<>|=";
  std::string_view rest = descr.type;
  char order = '=';
  if (!rest.empty() && orders.find(rest.front()) != std::string_view::npos) {
    order = rest.front();
    rest.remove_prefix(1);
  }
  if (const auto type = number_type(order, rest)) {
    header.type = *type;
    header.stored_type = name_of(*type);
    return;
  }
  if (header.dims.empty()) header.characters = length_of(descr.type);
  const Problem problem = type_problem(descr.type, rest);
  header.problem = problem.text;
  header.problem_hint = problem.hint;
}

std::uint32_t number_of(std::string_view bytes) {
  std::uint32_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;)
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

/// Checks that the array has the size that its header states.
void require_size(const Header& header, std::uint64_t array_bytes, const std::string& shown) {
  // Dimensions of 0 count as 1, so that no later product of some dimensions can overflow.
  index_t elements = 1, bytes = 0;
  bool overflow = false;
  for (const index_t extent : header.dims)
    overflow |= __builtin_mul_overflow(elements, std::max<index_t>(extent, 1), &elements);
  overflow |= __builtin_mul_overflow(elements, 8 * header.type.parts, &bytes);
  const std::string stated =
      fmt::format("the header says {} {}", shape_text(header.dims), header.stored_type);
  if (overflow) {
    throw InputError(fmt::format("{}: {}, more than can be addressed; {} bytes are there", shown,
                                 stated, array_bytes));
  }
  const std::uint64_t expected = header.bytes + header.data_bytes();
  if (array_bytes < expected) {
    throw InputError(
        fmt::format("{}: truncated: {} of {} bytes ({})", shown, array_bytes, expected, stated));
  }
  if (array_bytes > expected) {
    throw InputError(
        fmt::format("{}: {} bytes after the array ({})", shown, array_bytes - expected, stated),
        "store one array in each file; numpy.load would return the first and ignore the rest");
  }
}

}  // namespace

index_t Header::elements() const {
  index_t product = 1;
  for (const index_t extent : dims) product *= extent;
  return product;
}

Header parse_header(std::string_view first_bytes, std::uint64_t array_bytes,
                    const std::string& shown) {
  constexpr std::size_t version_end = 8;
  if (!first_bytes.starts_with(magic)) {
    throw InputError(
        fmt::format("{}: not a .npy array (it does not begin with NumPy's mark)", shown));
  }
  if (first_bytes.size() < version_end + 4)
    throw InputError(fmt::format("{}: truncated: {} bytes", shown, array_bytes));
  const int major = static_cast<unsigned char>(first_bytes[6]);
  const int minor = static_cast<unsigned char>(first_bytes[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw InputError(fmt::format(
        "{}: version {}.{} of the .npy format; 1.0, 2.0 and 3.0 can be read", shown, major, minor));
  }
  const std::size_t length_bytes = major == 1 ? 2 : 4;
  const std::size_t begin = version_end + length_bytes;
  const std::uint64_t length = number_of(first_bytes.substr(version_end, length_bytes));
  if (begin + length > most_header_bytes) {
    throw InputError(fmt::format("{}: damaged header: it claims {} bytes", shown, length));
  }
  if (first_bytes.size() < begin + length) {
    throw InputError(fmt::format("{}: truncated: {} bytes, of which {} would be the header", shown,
                                 array_bytes, begin + length));
  }
  DictionaryParser parser(first_bytes.substr(begin, length), major < 3, shown);
  parser.parse();
  Header header;
  header.bytes = begin + length;
  header.is_fortran = parser.is_fortran();
  header.dims = parser.dims();
  set_type(header, parser.descr());
  if (header.problem.empty()) require_size(header, array_bytes, shown);
  return header;
}

std::string make_header(std::string_view descr, std::span<const index_t> dims) {
  std::string shape;
  for (const index_t extent : dims) shape += std::to_string(extent) + ", ";
  if (dims.size() > 1) shape.resize(shape.size() - 2);
  if (dims.size() == 1) shape.resize(shape.size() - 1);
  std::string text =
      fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}", descr, shape);
  constexpr std::size_t begin = 10, alignment = 64;
  text.resize((begin + text.size() + alignment) / alignment * alignment - begin - 1, ' ');
  text += '\n';
  std::string header(magic);
  header +=
      {'\x01', '\x00', static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

std::string shape_text(std::span<const index_t> dims) {
  std::string text;
  for (const index_t extent : dims) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "no dimensions" : text;
}

}  // namespace qrtool::npy
