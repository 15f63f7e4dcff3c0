// SPDX-License-Identifier: Apache-2.0
// reader.cpp: reads matrices from text. A first pass checks every line and notes where each matrix
// begins; reading parses the lines again, so that never all matrices are in memory.
#include "io/csv/reader.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "io/csv/csv_reader.hpp"
#include "io/csv/parser/words.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/rereadable.hpp"
#include "io/read/complex_hint.hpp"
#include "io/text/number.hpp"

namespace qrtool {

CsvReader::CsvReader(int descriptor, const std::string& name, const CsvOptions& options,
                     const CsvReading& reading, const Trial& trial)
    : descriptor_(descriptor),
      stamp_(descriptor),
      lines_(descriptor, escape(name), reading.memory_bytes),
      parser_(lines_, options, reading.as_stored, reading.keys),
      reading_(reading),
      trial_(trial),
      names_row_(options.names_row),
      end_row_(options.end_row),
      says_nothing_(options == CsvOptions{}),
      as_stored_(reading.as_stored),
      keeps_(reading.kept_bytes > 0) {
  source_.file = name;
  parser_.change(trial.change);
  if (reading.guesses_names) parser_.guess_names();
  if (reading.only_needed) parser_.read_only(reading.needed);
  if (reading.remainders) parser_.take_remainders();
  if (trial.looks_for_numbers) parser_.look_for_numbers();
  skip_rows(std::max(options.skip_rows, names_row_ - 1));
  try {
    scan();
  } catch (CsvRefusal& refusal) {
    refusal.stop_at(lines_.offset(), starts_.empty() || starts_.front().line == lines_.number());
    throw;
  }
  if (starts_.empty())
    throw InputError(fmt::format("{}: holds no numbers{}", lines_.shown(),
                                 end_row_ > 0 ? fmt::format(" up to line {}", end_row_) : ""),
                     end_row_ > 0 ? "--end-row names the last row of the table" : "");
  source_.n = parser_.columns();
  source_.table = parser_.table();
  if (starts_.size() > 1) source_.leading = {std::ssize(starts_)};
  const ElementType stored = is_single_ ? ElementType::float32 : ElementType::float64;
  source_.type = as_stored_ ? stored : ElementType::float64;
  source_.stored_type = name_of(has_complex() ? complex_of(stored) : stored);
  if (has_complex()) source_.type = complex_of(source_.type);
  source_.complex_form = parser_.complex_form();
  source_.details = to_text(parser_.found());
  std::vector<std::string> units;
  for (const Separators& line : units_)
    units.push_back(join(names_of(line.text, parser_.separator()), ", "));
  if (!units.empty()) source_.details.emplace_back("csv_units", join(units, "; "));
  source_.notes = parser_.notes();
}

void CsvReader::require_text() const {
  const std::string_view text = lines_.text();
  if (lines_.number() == 1) refuse_other_format(text);
  if (const std::size_t at = text.find('\0'); at != std::string_view::npos) {
    throw InputError(parser_.place(at + 1) + "a NUL byte: this is UTF-16 or binary, not text");
  }
}

void CsvReader::skip_rows(index_t rows) {
  for (index_t row = 0; row < rows; ++row) {
    if (!lines_.next())
      throw InputError(fmt::format("{}: {} {}, but there are {} lines", lines_.shown(),
                                   names_row_ > rows ? "--names-row" : "--skip-rows",
                                   std::max(rows, names_row_), row));
    require_text();
  }
}

/// Whether the line describes the file: it says that the numbers are float32 values, or names the
/// separator, as Excel does.
bool CsvReader::is_preface(std::string_view line) {
  if (lines_.number() != 1) return false;
  is_single_ = line == csv_single_marker;
  const char separator = stated_separator(line);
  if (separator != 0) parser_.state_separator(separator);
  return is_single_ || separator != 0;
}

/// Returns the next lines of the matrix, which say whether the line above them is a header. The
/// place in the text stays.
std::vector<std::string> CsvReader::lines_below() {
  constexpr std::size_t most = 20, most_bytes = 1 << 16;
  std::vector<std::string> below;
  const Start start{lines_.offset(), lines_.number()};
  std::size_t bytes = lines_.text().size();
  while (bytes < most_bytes && below.size() < most && next_line()) {
    std::string_view line = lines_.text();
    const LineKind kind = classify(line, parser_.comments());
    if (kind == LineKind::blank && !below.empty()) break;
    if (kind != LineKind::data) continue;
    below.emplace_back(line);
    bytes += line.size();
  }
  lines_.seek(start.offset, start.line);
  lines_.next();
  return below;
}

/// Parses the row and keeps the data of it that later passes need.
void CsvReader::add_row(std::string_view line, index_t row) {
  if (row == 0) starts_.push_back({lines_.offset(), lines_.number()});
  if (row == 1 && starts_.size() == 1) second_row_ = {lines_.offset(), lines_.number()};
  parser_.parse(line, is_single_ ? ElementType::float32 : ElementType::float64, row_);
  if (reading_.rows != nullptr && row == 0) reading_.rows->begin(parser_.table());
  parser_.check_row(line, row, row_);
  if (reading_.rows != nullptr) reading_.rows->add(parser_.keys(), row_);
  for (std::size_t j = 0; as_stored_ && j < row_.size(); ++j)
    hash_.add(is_single_ ? static_cast<float>(row_[j]) : row_[j]);
  if (keeps_) keep_row();
  compare_with_sizes(row);
}

/// Keeps the first row as long as the other rows may be entries of a matrix of that size: "row
/// column value" below "rows columns entries".
void CsvReader::compare_with_sizes(index_t row) {
  const auto is_count = [](double value) { return value >= 0 && value == std::floor(value); };
  if (row == 0 && starts_.size() == 1) {
    const bool may_be = !has_text_name() && parser_.separator() == ' ' &&
                        (row_.size() == 2 || row_.size() == 3) && !parser_.table().has_header &&
                        std::all_of(row_.begin(), row_.end(), is_count);
    if (may_be) sizes_ = row_;
    return;
  }
  const bool is_entry = sizes_.size() == 3 && is_count(row_[0]) && is_count(row_[1]) &&
                        row_[0] > 0 && row_[1] > 0 && row_[0] <= sizes_[0] && row_[1] <= sizes_[1];
  // Two sizes stand above pairs, which are complex numbers. Without a comment above them a table
  // may begin so: "1 4" above four rows.
  const bool is_pair = sizes_.size() == 2 && starts_.front().line > 1;
  if (!is_entry && !is_pair) sizes_.clear();
}

/// Keeps the numbers, as long as there is room for them.
void CsvReader::keep_row() {
  const std::size_t size = kept_.size() + row_.size();
  if (size > kept_.capacity()) {
    const std::size_t larger = std::max(size, 2 * kept_.capacity());
    // While a vector grows, the old one is there as well.
    keeps_ = (larger + kept_.capacity()) * sizeof(double) <= reading_.kept_bytes;
    if (!keeps_) return void(kept_ = {});
    kept_.reserve(larger);
  }
  kept_.insert(kept_.end(), row_.begin(), row_.end());
}

/// Whether the numbers are complex: one of the first is written so.
void CsvReader::look_for_complex(std::string_view line, const std::vector<std::string>& below) {
  const auto fields_of = [&](std::string_view each) {
    const char separator = parser_.separator();
    return names_of(each, separator != 0 ? separator : find_separator(each));
  };
  const auto has_one = [&](std::string_view each) {
    return std::ranges::any_of(fields_of(each), is_complex_text);
  };
  // A name such as 2i may stand in a header beside other names.
  const bool is_in_line =
      has_one(line) && std::ranges::all_of(fields_of(line), [](const std::string& field) {
        return begins_like_number(field) || is_any_number(field);
      });
  if (!is_in_line && !std::ranges::any_of(below, has_one)) return;
  if (is_keyed())
    throw InputError(
        fmt::format("{}: holds complex numbers; only real numbers are taken here", lines_.shown()),
        complex_hint);
  parser_.expect_complex();
}

/// Goes to the next line that is to be read.
bool CsvReader::next_line() {
  do {
    if (end_row_ > 0 && lines_.number() >= end_row_) return false;
    if (!lines_.next() || lines_.offset() >= trial_.end) return false;
  } while (!trial_.change.left_out.empty() &&
           std::ranges::find(trial_.change.left_out, lines_.number()) !=
               trial_.change.left_out.end());
  return true;
}

/// Returns the line: that of the names without the # that makes it a comment.
std::string_view CsvReader::text_of_line() const {
  std::string_view line = lines_.text();
  if (names_row_ != lines_.number()) return line;
  for (const char* each : {" ", "#%", " "})
    line.remove_prefix(std::min(line.find_first_not_of(each), line.size()));
  return line;
}

/// Checks every line and records where each matrix begins.
void CsvReader::scan() {
  bool is_first = true;
  index_t rows = 0, units = 0;
  while (next_line()) {
    require_text();
    std::string_view line = text_of_line();
    if (is_preface(line)) continue;
    if (lines_.number() == 1) refuse_damaged_banner(line);
    const LineKind kind = classify(line, parser_.comments());
    if (kind == LineKind::comment) {
      note_comment(rows);
      continue;
    }
    if (kind == LineKind::separators && line.size() < lines_.text().size()) has_cut_line_ = true;
    if (kind == LineKind::separators && is_first && first_separators_.line == 0)
      first_separators_ = {std::string(line), lines_.number()};
    if (kind != LineKind::data && reading_.is_one_table) {
      if (rows > 0 || (has_header_ && kind == LineKind::separators)) skip_blank(kind);
      continue;
    }
    if (kind != LineKind::data) {
      if (kind == LineKind::separators) note_separators(line);
      if (rows > 0 && blank_line_ == 0) blank_line_ = lines_.number();
      end_matrix(std::exchange(rows, 0));
      continue;
    }
    if (is_first || rows == 0) lines_.require_room_for_columns();
    if (std::exchange(is_first, false)) {
      std::vector<std::string> below = lines_below();
      line = text_of_line();
      parser_.look_for_comments(line, below);
      parser_.look_for_tabs(line, below);
      parser_.look_for_last_separators(line, below);
      look_for_complex(line, below);
      has_header_ = parser_.take_header(line, below);
      units = parser_.lines_of_units(below);
      if (has_header_) continue;
      // Text of another name may be Matrix Market that has lost its first line.
      has_header_ = has_text_name() &&
                    parser_.take_commented_header(comment_above_.text, line, comment_above_.line);
    }
    if (units > 0) {
      --units;
      units_.push_back({std::string(line), lines_.number()});
      continue;
    }
    if (line.size() < lines_.text().size()) {
      has_cut_line_ = true;
      if (cut_lines_++ == 0) cut_line_ = lines_.number();
    }
    add_row(line, rows++);
  }
  if (!says_nothing_) sizes_.clear();
  refuse_lost_banner(rows);
  end_matrix(rows);
  parser_.finish(source_.m * std::ssize(starts_));
  if (end_row_ > lines_.number())
    throw InputError(fmt::format("{}: --end-row {}, but there are {} lines", lines_.shown(),
                                 end_row_, lines_.number()),
                     "leave it away to read all of them");
  note_first_separators();
  note_names_and_units();
  note_comments();
  if (parser_.table().has_header && starts_.size() > 1)
    parser_.add_note(fmt::format(
        "line {} ends a matrix, as every blank line does; without it the table is one matrix",
        blank_line_));
  next_matrix_ = std::ssize(starts_);
}

void CsvReader::end_matrix(index_t rows) {
  if (rows == 0) return;
  if (as_stored_) checksums_.push_back(std::exchange(hash_, {}).value());
  if (starts_.size() == 1) {
    if (parser_.is_first_row_a_header(rows)) {
      if (is_keyed())
        throw CsvRefusal(
            fmt::format("{}:{}:1: does the line hold the names of the columns, or is it a row?",
                        lines_.shown(), starts_.front().line),
            {parser_.header_or_not()});
      starts_.front() = second_row_;
      --rows;
      if (keeps_) kept_.erase(kept_.begin(), kept_.begin() + row_numbers());
    }
    source_.m = rows;
  }
  if (rows == source_.m) return;
  throw CsvRefusal(
      fmt::format("{}:{}:1: matrix {} has {} rows where matrix 0 has {}", lines_.shown(),
                  starts_.back().line, starts_.size() - 1, rows, source_.m),
      {{{.hint = fmt::format("a blank line ends a matrix; remove line {} if all is one matrix",
                             blank_line_),
         .options = parser_.with([](CsvOptions&) {}),
         .change = parser_.changed(
             [&](TextChange& change) { change.left_out.push_back(blank_line_); })}}});
}

/// If the first pass found no comment within a line, none is looked for.
std::string_view CsvReader::next_data_line() {
  const Comments comments = has_cut_line_ ? parser_.comments() : Comments::whole_lines;
  while (lines_.next()) {
    std::string_view line = lines_.text();
    if (classify(line, comments) == LineKind::data) return line;
  }
  throw_changed(lines_.shown());
}

void CsvReader::go_to(index_t matrix, index_t row) {
  if (next_matrix_ != matrix || next_row_ > row) {
    const Start& start = starts_[static_cast<std::size_t>(matrix)];
    lines_.seek(start.offset, start.line);
    next_matrix_ = matrix;
    next_row_ = 0;
  }
  for (; next_row_ < row; ++next_row_) next_data_line();
}

/// Copies numbers that were kept when the text was parsed. Returns false if some were not kept, or
/// if one exceeds T; parsing again will report that.
template <class T>
bool CsvReader::copy_kept(index_t matrix, index_t first_row, MatrixView<T> out) {
  if (!keeps_) return false;
  const double* from = kept_.data() + (matrix * source_.m + first_row) * row_numbers();
  for (index_t i = 0; i < out.rows; ++i) {
    for (index_t j = 0; j < out.cols; ++j) {
      const double value = *from++;
      out(i, j) = static_cast<T>(value);
      if (std::isinf(out(i, j)) && !std::isinf(value)) return false;
    }
  }
  return true;
}

template <class T>
void CsvReader::read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out) {
  if (matrix < 0 || matrix >= source_.count() || first_row < 0 ||
      first_row + out.rows > source_.m || out.cols != row_numbers()) {
    throw InternalError("read_rows: a range or shape outside the file");
  }
  if (out.rows == 0) return;
  if (copy_kept(matrix, first_row, out)) return;
  go_to(matrix, first_row);
  for (index_t i = 0; i < out.rows; ++i) {
    const std::string_view line = next_data_line();
    ++next_row_;
    parser_.parse(line, is_single_ ? ElementType::float32 : element_type<T>, row_);
    const auto rounded = [&](double value) {
      return is_single_ ? static_cast<T>(static_cast<float>(value)) : static_cast<T>(value);
    };
    std::transform(row_.begin(), row_.end(), &out(i, 0), rounded);
  }
}

template <class T>
void CsvReader::read_any(index_t first, BatchView<T> out) {
  if (out.rows != source_.m) throw InternalError("read: another shape than the file's");
  for (index_t b = 0; b < out.count; ++b) read_any_rows(first + b, 0, out[b]);
}

std::unique_ptr<Reader> open_csv(int descriptor, const std::string& name, const CsvOptions& options,
                                 const CsvReading& reading) {
  const Descriptor again(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  try {
    return std::make_unique<CsvReader>(descriptor, name, options, reading);
  } catch (const CsvRefusal& refusal) {
    CsvReading guess = reading;
    guess.guesses_names = true;
    CsvOptions with_names = options;
    if (options.names_row == 0)
      with_names.names_row = line_of_names(refusal, again, name, options, guess);
    if (with_names.names_row > 0 && options.names_row == 0)
      return open_csv(fcntl(again, F_DUPFD_CLOEXEC, 0), name, with_names, guess);
    throw InputError(refusal.what(), hint_that_leads_on(refusal, again, name, reading));
  }
}

TrialResult try_csv(int descriptor, const std::string& name, const CsvOptions& options,
                    CsvReading reading, const Trial& trial) {
  reading.rows = nullptr;
  reading.kept_bytes = 0;
  const CsvReader reader(descriptor, name, options, reading, trial);
  return {reader.source().table, reader.columns_of_numbers()};
}

FactorFile open_csv_factor(const std::string& path) {
  require_text_file(path);
  auto reader = std::make_unique<CsvReader>(open_rereadable(path), path, CsvOptions{},
                                            CsvReading{.as_stored = true});
  Checksums checksums = reader->take_checksums();
  return {std::move(reader), [checksums = std::move(checksums)](Reader&) { return checksums; }};
}

void require_text_file(const std::string& file) {
  readable_size(file);
  if (sniff(file) == Content::hdf5) {
    throw InputError(fmt::format("{}: an HDF5 file, although its name says text", escape(file)),
                     "rename it to end in .h5");
  }
}

}  // namespace qrtool
