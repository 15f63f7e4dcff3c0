// SPDX-License-Identifier: Apache-2.0
// reader_notes.cpp: what is refused or said of lines that are no rows: another format, comments,
// blank lines, and first lines that Matrix Market may have lost.
#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "io/csv/csv_reader.hpp"
#include "io/csv/parser/columns.hpp"
#include "io/csv/parser/words.hpp"
#include "io/file/rereadable.hpp"
#include "io/text/number.hpp"

namespace qrtool {

/// Refuses an input of another format by its name. Standard input and compressed files are not
/// looked at before.
void CsvReader::refuse_other_format(std::string_view start) const {
  const auto [before, behind] = shell_input(source_.file);
  if (start.starts_with("\xff\xfe") || start.starts_with("\xfe\xff"))
    throw InputError(parser_.place(1) + "UTF-16 text",
                     fmt::format("{}iconv -f UTF-16 -t UTF-8{} > utf8.csv", before, behind));
  struct Other {
    std::string_view signature, name, ending;
  };
  constexpr Other formats[] = {
      {"\x89HDF", "an HDF5 file", ".h5"},
      {"\x93NUMPY", "an array of NumPy (.npy)", ".npy"},
      {"PK\x03\x04", "a zip archive, such as .npz or a spreadsheet", ".npz"}};
  for (const auto& [signature, name, ending] : formats) {
    if (!start.starts_with(signature)) continue;
    std::string unpacked = lines_.shown();
    if (unpacked.ends_with(".gz")) unpacked.resize(unpacked.size() - 3);
    if (!unpacked.ends_with(ending)) unpacked += ending;
    throw InputError(
        fmt::format("{}: {}, not text", lines_.shown(), name),
        source_.file == standard_input
            ? "write it to a file and give its name: standard input is read as text"
            : fmt::format("decompress it first: gunzip < {} > {}", lines_.shown(), unpacked));
  }
  if (const std::size_t at = start.find('\r'); at != std::string_view::npos)
    throw InputError(parser_.place(at + 1) + "a line ends with CR alone, as on old Macs",
                     fmt::format("{}tr '\\r' '\\n'{} > new.csv", before, behind));
}

void CsvReader::note_separators(std::string_view line) {
  const char separator = parser_.separator();
  const bool is_below_header = separator == 0 && has_header_;
  if (has_noted_separators_ || separator == ' ' || (separator == 0 && !is_below_header)) return;
  if (!is_below_header && line.find(separator) == std::string_view::npos) return;
  has_noted_separators_ = true;
  parser_.add_note(
      fmt::format("line {} holds no number and is read as a blank line, which ends a "
                  "matrix",
                  lines_.number()));
}

/// Says that a line of empty fields above the first row is no row. Above a header that is clear.
void CsvReader::note_first_separators() {
  const bool may_be_row = first_separators_.line > 0 && !parser_.table().has_header &&
                          first_separators_.text.find(parser_.separator()) != std::string::npos;
  if (may_be_row && parser_.separator() != ' ')
    parser_.add_note(
        fmt::format("line {} holds no number and is left out", first_separators_.line));
}

/// Refuses a Matrix Market file whose first line is damaged. It would be read as a comment, and the
/// sizes as the first row. Errors: InputError.
void CsvReader::refuse_damaged_banner(std::string_view line) const {
  if (!is_damaged_matrix_market(line)) return;
  throw CsvRefusal(
      parser_.place(1) + "is this a damaged first line of Matrix Market, or a comment of a table?",
      {{{.hint = "if it is a table: --skip-rows 1",
         .options = parser_.with([](CsvOptions& o) { o.skip_rows = 1; })},
        {.hint = "if not, write %%MatrixMarket matrix FORMAT FIELD SYMMETRY",
         .options = {},
         .is_tried = false}}});
}

/// Refuses a text whose first row gives the size of a matrix and the number of rows that follow, as
/// in a Matrix Market file. Errors: InputError.
void CsvReader::refuse_lost_banner(index_t rows) const {
  if (sizes_.empty() || starts_.size() != 1) return;
  const double entries = sizes_.size() == 3 ? sizes_[2] : sizes_[0] * sizes_[1];
  if (static_cast<double>(rows - 1) != entries) return;
  throw CsvRefusal(
      fmt::format("{}:{}:1: is this Matrix Market without its first line, or a table?",
                  lines_.shown(), starts_.front().line),
      {{{.hint = "if it is a table: --header no",
         .options = parser_.with([](CsvOptions& o) { o.header = Answer::no; })},
        {.hint = fmt::format("if not, its first line is %%MatrixMarket matrix {} real general",
                             sizes_.size() == 3 ? "coordinate" : "array"),
         .options = {},
         .is_tried = false}}});
}

/// Says once that a line within a table is no row of it.
void CsvReader::skip_blank(LineKind kind) {
  if (std::exchange(blank_line_, lines_.number()) != 0) return;
  parser_.add_note(fmt::format("line {} {} and is left out", lines_.number(),
                               kind == LineKind::blank ? "is blank" : "holds no number"));
}

/// Says which lines above the rows are left out, and which lines hold units.
void CsvReader::note_names_and_units() {
  if (reading_.guesses_names && names_row_ > 1)
    parser_.add_note(fmt::format(
        "{} left out, and line {} is taken for the names of the columns; "
        "--names-row N says another line",
        names_row_ == 2 ? "line 1 is" : fmt::format("lines 1 to {} are", names_row_ - 1),
        names_row_));
  for (const Separators& line : units_)
    parser_.add_note(fmt::format("line {} holds no number and is left out as units: {}", line.line,
                                 quoted_text(line.text)));
}

/// Looks at a comment that is a whole line: it may hold the names, or be a row.
void CsvReader::note_comment(index_t rows) {
  std::string_view text = lines_.text();
  text.remove_prefix(text.find_first_of("#%") + 1);
  if (starts_.empty()) {
    comment_above_ = {std::string(text), lines_.number()};
    return;
  }
  const std::vector<std::string> fields = names_of(text, parser_.separator());
  const bool is_row = rows > 0 && std::ssize(fields) == std::ssize(parser_.table().columns) &&
                      std::ranges::any_of(fields, is_any_number);
  if (is_row && commented_rows_++ == 0) commented_row_ = lines_.number();
}

/// Adds a note about lines that were left out as comments.
void CsvReader::note_comments() {
  const Table& table = parser_.table();
  const auto count = [](index_t lines, const char* what) {
    return lines == 1 ? std::string(what) : fmt::format("{}, and {} more", what, lines - 1);
  };
  if (comment_above_.line > 0 && !table.has_header && table.columns.size() > 1 &&
      names_of(comment_above_.text, parser_.separator()).size() == table.columns.size())
    parser_.add_note(
        fmt::format("line {0} is a comment and is left out; if it holds the names of the columns: "
                    "--names-row {0}",
                    comment_above_.line));
  if (commented_rows_ > 0)
    parser_.add_note(
        fmt::format("line {} looks like a row that begins with # or %, and is left "
                    "out as a comment{}",
                    commented_row_, count(commented_rows_, "")));
  if (cut_lines_ > 0)
    parser_.add_note(fmt::format("the comment at the end of line {} is left out{}", cut_line_,
                                 count(cut_lines_, "")));
}

}  // namespace qrtool
