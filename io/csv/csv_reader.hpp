// SPDX-License-Identifier: Apache-2.0
// csv_reader.hpp: the reader of text. Private to io/csv.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io/checksum/number_hash.hpp"
#include "io/csv/guide.hpp"
#include "io/csv/keyed_rows.hpp"
#include "io/csv/parser/parser.hpp"
#include "io/csv/reader.hpp"
#include "io/file/input_file.hpp"
#include "io/read/reader_of.hpp"

namespace qrtool {

class CsvReader final : public ReaderOf<CsvReader> {
 public:
  CsvReader(int descriptor, const std::string& name, const CsvOptions& options,
            const CsvReading& reading, const Trial& trial = {});

  /// For trials only.
  std::vector<bool> columns_of_numbers() const { return parser_.columns_of_numbers(); }

  /// For factors only: the checksum of each matrix.
  std::vector<std::uint64_t> take_checksums() { return std::move(checksums_); }

  template <class T>
  void read_any(index_t first, BatchView<T> out);
  template <class T>
  void read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out);
  std::size_t workspace_bytes(ElementType) const override {
    return lines_.buffer_bytes() + parser_.table().columns.size() * TextLines::bytes_of_column +
           kept_.capacity() * sizeof(double) + starts_.capacity() * sizeof(Start) +
           checksums_.capacity() * sizeof(std::uint64_t);
  }
  void require_unchanged() const override { stamp_.require_unchanged(descriptor_, lines_.shown()); }

 private:
  struct Start {
    std::uint64_t offset;
    index_t line;
  };
  struct Separators {
    std::string text;
    index_t line = 0;  // 0: there are none
  };

  bool has_complex() const { return parser_.parts() == 2; }
  /// Whether the name of the file has the ending of a text format, possibly followed by .gz.
  bool has_text_name() const {
    const bool is_compressed = source_.file.ends_with(".gz");
    return source_.file.ends_with(".zip") ||
           has_text_ending(is_compressed ? source_.file.substr(0, source_.file.size() - 3)
                                         : source_.file);
  }
  bool is_keyed() const { return !reading_.keys.empty(); }
  bool next_line();
  std::string_view text_of_line() const;
  void note_names_and_units();
  void note_comment(index_t rows);
  void note_comments();
  void look_for_complex(std::string_view line, const std::vector<std::string>& below);
  index_t row_numbers() const { return parser_.columns() * parser_.parts(); }
  void scan();
  void skip_rows(index_t rows);
  bool is_preface(std::string_view line);
  void note_separators(std::string_view line);
  void note_first_separators();
  void require_text() const;
  void refuse_other_format(std::string_view start) const;
  std::vector<std::string> lines_below();
  void add_row(std::string_view line, index_t row);
  void compare_with_sizes(index_t row);
  void refuse_damaged_banner(std::string_view line) const;
  void refuse_lost_banner(index_t rows) const;
  void keep_row();
  void skip_blank(LineKind kind);
  void end_matrix(index_t rows);
  void go_to(index_t matrix, index_t row);
  std::string_view next_data_line();

  template <class T>
  bool copy_kept(index_t matrix, index_t first_row, MatrixView<T> out);

  int descriptor_;  // lines_ owns it
  FileStamp stamp_;
  TextLines lines_;
  CsvParser parser_;
  CsvReading reading_;
  Trial trial_;
  index_t names_row_, end_row_;  // as in CsvOptions
  bool says_nothing_;            // no option says how the text is written
  bool as_stored_;
  bool is_single_ = false;  // the numbers are float32 values
  bool has_noted_separators_ = false;
  Separators first_separators_;                     // before the first line that holds something
  bool has_header_ = false;                         // that was seen as one before the rows
  std::vector<Separators> units_;                   // lines below the names
  Separators comment_above_;                        // the last before the rows, without its sign
  index_t commented_rows_ = 0, commented_row_ = 0;  // comments that look like rows; the first line
  index_t cut_lines_ = 0, cut_line_ = 0;            // lines that end with a comment; the first
  bool has_cut_line_ = false;                       // a row, or separators, before a comment
  std::vector<double> sizes_;  // the first row, as long as it may be the sizes of Matrix Market
  // All numbers, if they fit the memory. Then no line is parsed twice.
  std::vector<double> kept_;
  bool keeps_ = false;
  index_t blank_line_ = 0;     // the first in the text, after a row
  std::vector<Start> starts_;  // where each matrix begins
  Start second_row_{};         // of the first matrix
  std::vector<double> row_;
  NumberHash hash_;  // of the matrix that scan() is at
  std::vector<std::uint64_t> checksums_;
  index_t next_matrix_ = 0, next_row_ = 0;  // the place of the next data line
};

}  // namespace qrtool
