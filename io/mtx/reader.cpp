// SPDX-License-Identifier: Apache-2.0
// reader.cpp: checks the text of a Matrix Market file, and reads its numbers by rows.
// N. Boisvert, R. Pozo, K. Remington: The Matrix Market Exchange Formats: Initial Design (1996).
#include "io/mtx/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/read/spooled_reader.hpp"
#include "io/text/number.hpp"

namespace qrtool {
namespace {

enum class Symmetry { general, symmetric, skew, hermitian };

std::string lower(std::string_view word) {
  std::string text(word);
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

/// Reads the text of a file once.
class MtxText {
 public:
  MtxText(int descriptor, const std::string& shown, std::size_t memory_bytes)
      : lines_(descriptor, shown, memory_bytes) {
    read_head();
  }

  /// Passes every stored number on, in the order of the file.
  template <class Take>
  void read_numbers(Take take);

  index_t m = 0, n = 0;
  Symmetry symmetry = Symmetry::general;
  bool is_integer = false, is_single = false, has_complex = false;

 private:
  void read_head();
  void read_banner();
  void read_sizes(std::string_view line);
  index_t stored_numbers() const;
  double number_of(std::size_t first, std::string_view text) const;
  std::string place(std::size_t column) const {
    return fmt::format("{}:{}:{}: ", lines_.shown(), lines_.number(), column);
  }
  [[noreturn]] void refuse(const std::string& what, const std::string& hint) const {
    throw InputError(fmt::format("{}: a Matrix Market file with {}", lines_.shown(), what), hint);
  }

  TextLines lines_;
};

void MtxText::read_banner() {
  constexpr std::size_t longest_banner = 1024;
  const std::vector<std::string_view> words = words_of(lines_.text().substr(0, longest_banner));
  if (words.size() != 5 || lower(words[1]) != "matrix")
    throw InputError(place(1) +
                     "the first line is no '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'");
  const std::string format = lower(words[2]), field = lower(words[3]), kind = lower(words[4]);
  const std::string file = lines_.shown() == standard_input ? "FILE.mtx" : lines_.shown();
  if (format == "coordinate")
    refuse("a sparse matrix (coordinate); only dense matrices (array) can be factored",
           fmt::format("make it dense: python3 -c \"import scipy.io as s; s.mmwrite('dense.mtx', "
                       "s.mmread('{}').toarray())\"",
                       file));
  if (format != "array")
    throw InputError(place(1) + quoted_text(words[2]) + " is no format; array is");
  has_complex = field == "complex";
  if (kind == "hermitian" && !has_complex)
    refuse("a hermitian matrix of real numbers", "write symmetric in place of hermitian");
  if (field == "pattern")
    refuse("a pattern: it has no numbers", "write the numbers, with the field real or integer");
  if (field != "real" && field != "double" && field != "integer" && !has_complex)
    throw InputError(place(1) + quoted_text(words[3]) +
                     " is no field; real, complex and integer are");
  is_integer = field == "integer";
  if (kind == "symmetric") symmetry = Symmetry::symmetric;
  if (kind == "skew-symmetric") symmetry = Symmetry::skew;
  if (kind == "hermitian") symmetry = Symmetry::hermitian;
  if (kind != "general" && symmetry == Symmetry::general)
    throw InputError(place(1) + quoted_text(words[4]) +
                     " is no symmetry; general, symmetric, skew-symmetric and hermitian are");
}

void MtxText::read_sizes(std::string_view line) {
  if (const index_t sizes = count_words(line); sizes != 2)
    throw InputError(fmt::format("{}{} sizes where rows and columns must stand", place(1), sizes));
  const std::vector<std::string_view> words = words_of(line);
  const auto size_of_word = [&](std::string_view word) {
    index_t value = 0;
    for (const char c : word) {
      const bool is_digit = c >= '0' && c <= '9';
      if (!is_digit || __builtin_mul_overflow(value, 10, &value) ||
          __builtin_add_overflow(value, c - '0', &value))
        throw InputError(place(static_cast<std::size_t>(word.data() - line.data()) + 1) +
                         quoted_text(word) + " is no number of rows or columns");
    }
    return value;
  };
  m = size_of_word(words[0]);
  n = size_of_word(words[1]);
  index_t bytes = 0;
  if (__builtin_mul_overflow(std::max<index_t>(m, 1), std::max<index_t>(n, 1), &bytes) ||
      __builtin_mul_overflow(bytes, has_complex ? 16 : 8, &bytes))
    throw InputError(fmt::format("{}{} x {} numbers are more than any file holds", place(1), m, n));
  if (symmetry != Symmetry::general && m != n)
    throw InputError(fmt::format(
        "{}a {} x {} matrix cannot be symmetric, skew-symmetric or hermitian", place(1), m, n));
}

void MtxText::read_head() {
  lines_.next();
  read_banner();
  while (lines_.next()) {
    const std::string_view line = lines_.text();
    if (lines_.number() == 2 && line == mtx_single_marker) is_single = true;
    if (line.starts_with('%') || line.find_first_not_of(" \t") == std::string_view::npos) continue;
    read_sizes(line);
    return;
  }
  throw InputError(
      fmt::format("{}: the line with the numbers of rows and columns is missing", lines_.shown()));
}

index_t MtxText::stored_numbers() const {
  if (symmetry == Symmetry::symmetric || symmetry == Symmetry::hermitian)
    return n % 2 == 0 ? n / 2 * (n + 1) : (n + 1) / 2 * n;
  if (symmetry == Symmetry::skew) return n % 2 == 0 ? n / 2 * (n - 1) : (n - 1) / 2 * n;
  return m * n;
}

double MtxText::number_of(std::size_t first, std::string_view text) const {
  double value = 0;
  const Parsed parsed =
      parse_number(text, value, is_single ? ElementType::float32 : ElementType::float64);
  if (parsed == Parsed::too_large)
    throw InputError(place(first + 1) + quoted_text(text) + " is too large for " +
                     std::string(is_single ? "float32" : "float64"));
  if (parsed == Parsed::other) {
    const std::size_t blank = text.find_first_of(" \t");
    if (blank != std::string_view::npos)
      throw InputError(place(first + blank + 2) + "more than one number in a line");
    throw InputError(place(first + 1) + quoted_text(text) + " is not a number",
                     hint_for_number(text).hint);
  }
  if (is_integer && !is_whole_number(text))
    throw InputError(place(first + 1) + quoted_text(text) +
                     " is no whole number, but the field is "
                     "integer");
  return value;
}

template <class Take>
void MtxText::read_numbers(Take take) {
  const index_t wanted = stored_numbers();
  index_t found = 0;
  while (lines_.next()) {
    const std::string_view line = lines_.text();
    if (line.find_first_not_of(" \t") == std::string_view::npos) continue;
    if (found == wanted)
      throw InputError(
          fmt::format("{}more numbers than the {} of {} x {}", place(1), wanted, m, n));
    if (has_complex) {
      if (const index_t numbers = count_words(line); numbers != 2)
        throw InputError(fmt::format("{}{} numbers where a real and an imaginary part must stand",
                                     place(1), numbers));
      for (const std::string_view word : words_of(line))
        take(number_of(static_cast<std::size_t>(word.data() - line.data()), word));
    } else {
      const std::size_t first = line.find_first_not_of(" \t");
      take(number_of(first, line.substr(first, line.find_last_not_of(" \t") + 1 - first)));
    }
    ++found;
  }
  if (found < wanted)
    throw InputError(
        fmt::format("{}: the file ends after {} of {} numbers", lines_.shown(), found, wanted));
}

class MtxReader final : public SpooledReader {
 public:
  MtxReader(int descriptor, const std::string& name, std::size_t memory_bytes, bool as_stored);

 private:
  double element(index_t matrix, index_t i, index_t j, index_t part) const override;

  Symmetry symmetry_ = Symmetry::general;
};

MtxReader::MtxReader(int descriptor, const std::string& name, std::size_t memory_bytes,
                     bool as_stored)
    : SpooledReader(escape(name)) {
  const FileStamp stamp(descriptor);
  MtxText text(descriptor, shown_, memory_bytes);
  text.read_numbers([&](double number) { spool_.add(number); });
  stamp.require_unchanged(descriptor, shown_);
  spool_.map();
  symmetry_ = text.symmetry;
  source_.file = name;
  source_.m = text.m;
  source_.n = text.n;
  source_.type = as_stored && text.is_single ? ElementType::float32 : ElementType::float64;
  source_.stored_type = text.is_single ? "float32" : text.is_integer ? "integer" : "float64";
  if (text.has_complex) {
    source_.type = complex_of(source_.type);
    source_.stored_type = text.is_single ? "complex64" : "complex128";
  }
  source_.details = {{"mtx_symmetry", symmetry_ == Symmetry::general     ? "general"
                                      : symmetry_ == Symmetry::symmetric ? "symmetric"
                                      : symmetry_ == Symmetry::skew      ? "skew-symmetric"
                                                                         : "hermitian"}};
}

/// Of a symmetric matrix the lower triangle is stored, by columns; of a skew-symmetric one the
/// diagonal is missing.
double MtxReader::element(index_t, index_t i, index_t j, index_t part) const {
  const index_t parts = is_complex(source_.type) ? 2 : 1;
  const auto stored = [&](index_t at) { return spool_[at * parts + part]; };
  if (symmetry_ == Symmetry::general) return stored(j * source_.m + i);
  const index_t row = std::max(i, j), column = std::min(i, j), n = source_.n;
  const index_t before = column * n - column * (column - 1) / 2;  // with the diagonal
  if (symmetry_ == Symmetry::symmetric) return stored(before + row - column);
  if (symmetry_ == Symmetry::hermitian) {
    const double value = stored(before + row - column);
    return i < j && part == 1 ? -value : value;
  }
  if (i == j) return 0;
  const double value = stored(before - column + row - column - 1);
  return i > j ? value : -value;
}

}  // namespace

std::unique_ptr<Reader> open_mtx(int descriptor, const std::string& name, std::size_t memory_bytes,
                                 bool as_stored) {
  return std::make_unique<MtxReader>(descriptor, name, memory_bytes, as_stored);
}

FactorFile open_mtx_factor(const std::string& path) {
  readable_size(path);
  if (sniff(path) != Content::matrix_market)
    throw InputError(
        fmt::format("{}: no Matrix Market file, although its name says so", escape(path)));
  return {open_mtx(open_rereadable(path), path, SIZE_MAX, /*as_stored=*/true),
          [](Reader& reader) { return Checksums{number_hash_of(reader)}; }};
}

}  // namespace qrtool
