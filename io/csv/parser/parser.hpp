// SPDX-License-Identifier: Apache-2.0
// parser.hpp: finds out how a text is written, and parses its lines into numbers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/problem.hpp"
#include "io/csv/parser/columns.hpp"
#include "io/csv/parser/lines.hpp"
#include "io/csv/parser/missing_code.hpp"
#include "io/csv/parser/way_out.hpp"
#include "io/file/text_lines.hpp"
#include "io/source/complex_form.hpp"
#include "io/source/csv_options.hpp"
#include "io/source/table.hpp"
#include "io/text/number.hpp"

namespace qrtool {

/// Parses data lines with one separator into numbers. The first pass over a text checks every line
/// and finds the options that the user left open; finish() ends it.
class CsvParser {
 public:
  /// With `is_factor`, a row of numbers is never taken as a header. `key_columns` is a list of
  /// columns whose fields are kept as text, or empty.
  CsvParser(const TextLines& lines, const CsvOptions& options, bool is_factor,
            std::string key_columns = {});

  /// Replaces each integer by its remainder: the integer minus the float64 nearest to it, which is
  /// mostly 0.
  void take_remainders();

  /// Reads the columns of these lists alone; what the others hold does not matter.
  void read_only(std::vector<std::string> lists) { only_ = std::move(lists); }

  /// Takes the line of names in the options for one that was found, and not stated.
  void guess_names() { guesses_names_ = true; }

  /// Makes the changes to the text that a remedy needs.
  void change(TextChange change) { change_ = std::move(change); }

  /// Takes every field for a missing number, and looks which columns hold numbers.
  void look_for_numbers();
  /// Returns, for each column that is read, whether it holds numbers; a few fields may be odd. The
  /// decimal sign is the one that gives the most columns of numbers. Call it after the rows.
  std::vector<bool> columns_of_numbers() const;

  /// Finds out where comments begin, from the first line of names or numbers and the lines `below`
  /// it, and removes the comments.
  void look_for_comments(std::string_view& line, std::vector<std::string>& below);
  Comments comments() const { return comments_; }

  /// Takes the separator that the file itself states; an option wins.
  void state_separator(char separator) {
    if (separator_ == 0) separator_ = separator;
  }

  /// Makes every field a complex number, which parse() gives as two numbers: its parts.
  void expect_complex() { parts_ = 2; }
  /// How many numbers a field holds: 2 if they are complex, else 1.
  index_t parts() const { return parts_; }
  /// How the first complex number is written.
  const ComplexForm& complex_form() const { return complex_form_; }

  /// Makes the tab the separator if the first line and the lines `below` it have the same number of
  /// fields between tabs. A tab at either end of a line then separates an empty field and is no
  /// indentation.
  void look_for_tabs(std::string_view line, const std::vector<std::string>& below);

  /// Leaves the last column out if all of these lines end with a separator: the field behind it
  /// must be empty in every line.
  void look_for_last_separators(std::string_view line, const std::vector<std::string>& below);

  /// Returns how many of the lines below a header hold units, as "s,degC,m3/h": each has a word or
  /// nothing above every number, and no number. Where the line of names is stated, each is a line
  /// without a number.
  index_t lines_of_units(const std::vector<std::string>& below) const;

  /// Takes a line of a comment, without its sign, as the header, if it has as many names as the row
  /// below has fields.
  bool take_commented_header(std::string_view names, std::string_view row, index_t line);

  /// Whether the first line is a header: it has only names, or a name stands above numbers. `below`
  /// are the lines that follow. All columns count, including those that are not read. Errors:
  /// InputError if the line may be either names or a row of numbers that begins with a name.
  bool take_header(std::string_view line, const std::vector<std::string>& below);

  /// Parses the current line into numbers that `type` can hold; `line` is that line after
  /// `classify`. The first call decides the separator, the width and the columns of all lines.
  /// Errors: InputError at file:line:column.
  void parse(std::string_view line, ElementType type, std::vector<double>& numbers);

  /// Call it for each row of the first pass after parse(); `row` counts from 0 in each matrix.
  void check_row(std::string_view line, index_t row, const std::vector<double>& numbers);

  /// Call it at the end of the first matrix. Returns whether its first row is a header of numbers.
  /// Errors: InputError if that cannot be decided.
  bool is_first_row_a_header(index_t rows);

  /// Ends the first pass over `rows` rows. Errors: InputError if a guess was not confirmed.
  void finish(index_t rows);

  /// The texts of the key columns in the line that was parsed last.
  std::span<const std::string> keys() const { return keys_; }

  index_t columns() const { return columns_; }
  /// Returns the table with all columns of the text.
  const Table& table() const { return table_; }
  char separator() const { return separator_; }
  /// Returns the options, with those that were left open set as found.
  const CsvOptions& found() const { return found_; }
  /// Returns the options as they were given, after `set` has changed them.
  template <class Set>
  CsvOptions with(Set set) const {
    CsvOptions options = asked_;
    set(options);
    return options;
  }
  /// Returns the changes of the text with this one.
  template <class Set>
  TextChange changed(Set set) const {
    TextChange change = change_;
    set(change);
    return change;
  }
  /// Returns ways out of a doubt about the first line.
  std::vector<WayOut> header_or_not() const;
  /// Returns notes for the user about the text, one sentence each.
  const std::vector<std::string>& notes() const { return notes_; }
  void add_note(const std::string& note) { notes_.push_back(note); }

  /// Returns "file:line:column: " for a place in the current line.
  std::string place(std::size_t column) const;

 private:
  struct Field {
    std::string_view text;
    std::size_t column = 0;  // from 1
    bool is_quoted = false;
  };
  Field take_field(std::string_view line, std::size_t& at, char separator) const;
  bool take_number(std::string_view line, std::size_t& at, ElementType type, double& number);
  double number_of(const Field& field, std::string_view line, ElementType type, index_t column);
  void take_complex(const Field& field, std::string_view line, ElementType type, index_t column,
                    double* parts);
  Parsed parse_text(const Field& field, ElementType type, double& number);
  void observe(std::string_view text, std::size_t column);
  bool is_missing(std::string_view text) const;
  double note_missing(const Field& field, index_t column);
  double note_infinite(const Field& field, double value);
  void note_rounded(const Field& field, double value);
  double look_at(const Field& field, index_t column);
  void take_key(const Field& field, std::size_t key);

  void begin_rows(std::string_view row);
  bool is_short_header(std::string_view row) const;
  std::vector<std::string> fit_header(std::string_view row, index_t width);
  bool has_index(std::string_view row, index_t width, const std::vector<std::string>& names);
  bool stands_above_numbers(std::size_t column, std::size_t names,
                            const std::vector<std::string>& below) const;
  bool is_beside_index(const std::vector<std::string>& fields,
                       const std::vector<std::string>& below) const;
  void refuse_doubtful_header(const std::vector<std::string>& fields,
                              const std::vector<std::string>& below) const;
  void set_columns(index_t width, std::vector<std::string> names, bool without_index);
  std::vector<index_t> columns_of(const ColumnList& list) const;
  void choose_targets(bool without_index);
  void choose_keys();
  void choose_only();
  void leave_last_out();
  void close_gaps();
  void look_at_first_row(std::string_view row, const std::vector<std::string>& fields);
  std::vector<WayOut> comma_or_not() const;
  bool is_run_of_numbers(std::string_view field) const;
  void refuse_doubtful_comma(std::string_view row, const std::vector<std::string>& fields) const;
  double look_below(std::string_view line);
  void look_for_decimals(std::string_view line);
  char separator_of(std::string_view line) const;
  void take_first_row_as_names();
  void note_columns();
  void note_missing_codes();

  WaysOut ways_with_field(const Field& field, std::string_view line) const;
  std::vector<WayOut> ways_to_number(const Field& field) const;
  std::vector<WayOut> ways_without_text(const Field& field, std::string_view line) const;
  std::vector<WayOut> ways_to_names() const;
  std::vector<WayOut> ways_to_pipe(std::string_view text) const;
  std::vector<WayOut> ways_to_end(std::string_view line) const;
  std::vector<WayOut> ways_to_thousands(const Field& field) const;
  [[noreturn]] void throw_not_a_number(const Field& field, std::string_view line) const;
  [[noreturn]] void throw_ragged(std::size_t column, index_t found) const;
  [[noreturn]] void throw_not_empty(const Field& field) const;
  std::string header_place() const;

  const TextLines& lines_;
  CsvOptions asked_, found_;
  TextChange change_;
  bool is_factor_;
  Comments comments_ = Comments::whole_lines;
  std::string header_;  // the line as UTF-8; empty: there is none
  index_t header_line_ = 0;
  bool header_is_cut_ = false;  // by a comment
  bool guesses_names_ = false;
  bool ends_with_separator_ = false;  // every line; the field behind it is no column that is read
  char separator_ = 0;
  index_t width_ = 0;  // the fields of a line
  // For each field its place in a row, -1, or -2 - k for key k; empty: all are read.
  std::vector<index_t> target_;
  std::string key_columns_;
  std::vector<std::string> keys_;
  std::vector<std::string> only_;  // lists of the columns that are read; empty: all are
  index_t columns_ = 0;            // those that are read
  index_t parts_ = 1;
  ComplexForm complex_form_;
  bool has_form_ = false;
  Table table_;
  index_t first_line_ = 0;  // the line that decided the width
  std::vector<double> na_numbers_;
  std::vector<std::string> notes_;

  // These members are used in the first pass alone.
  bool is_first_pass_ = true, is_observing_ = true;
  bool index_must_count_ = false;     // only if its numbers are 0, 1, 2, ... it is an index
  double last_index_ = 0;             // the last that was read
  bool counts_ = true;                // the first numbers of row 1, 2, ... of a matrix go up by one
  double count_offset_ = 0;           // of row 1, less 1
  double first_number_ = 0;           // of row 0
  bool first_row_counts_ = false;     // the first row is 0, 1, 2, ...
  bool first_row_is_whole_ = false;   // all of its numbers are whole
  bool first_row_is_quoted_ = false;  // all of its fields are in quotes
  bool first_row_has_gap_ = false;    // ",3,4": a header without its first name, or a number misses
  bool has_later_quotes_ = false, has_later_whole_number_ = false;
  bool may_be_header_ = false;             // the first row may hold names
  std::vector<std::string> first_fields_;  // of such a row
  bool are_names_numbered_ = false;        // every name of the index ends in a number: "ra 8"
  bool may_be_thousands_ = false, has_point_ = false;  // "1.234"
  bool may_be_decimals_ = false;                       // "8,5" in all lines
  bool is_decimal_guessed_ = false, is_decimal_confirmed_ = false;
  std::string thousands_place_;  // of the first number that may be a count of thousands
  index_t missing_ = 0, infinite_ = 0, rounded_ = 0;
  std::string missing_place_, first_infinite_, first_rounded_;
  std::vector<index_t> missing_by_column_;
  std::vector<MissingCode> codes_;  // of each column that is read
  struct Numbers {
    index_t by_point = 0, by_comma = 0, all = 0;  // fields that are numbers, and all but gaps
  };
  bool takes_remainders_ = false;
  bool is_looking_ = false;       // for columns of numbers
  std::vector<Numbers> numbers_;  // of each column that is read
};

}  // namespace qrtool
