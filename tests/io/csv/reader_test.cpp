// SPDX-License-Identifier: Apache-2.0
// reader_test.cpp: the reader takes every dialect, and names every mistake by line and column.
#include <cmath>
#include <span>

#include "tests/io/csv/csv_fixture.hpp"

#include "io/open/input.hpp"

namespace qrtool::csv_reader_test {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

void expect_same(const std::vector<double>& found, const std::vector<double>& wanted) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_TRUE(found[i] == wanted[i] || (std::isnan(found[i]) && std::isnan(wanted[i])))
        << found[i] << " is not " << wanted[i] << " at " << i;
  }
}

struct Accepted {
  const char* text;
  std::vector<index_t> leading;
  index_t m, n;
  std::vector<double> values;
};

TEST_F(CsvReaderTest, Dialects) {
  const Accepted cases[] = {
      {"1,2\n3,4\n", {}, 2, 2, {1, 2, 3, 4}},
      {"1,2\n3,4", {}, 2, 2, {1, 2, 3, 4}},
      {"1,2\r\n3,4\r\n", {}, 2, 2, {1, 2, 3, 4}},
      {"\xef\xbb\xbf"
       "1,2\n3,4\n",
       {},
       2,
       2,
       {1, 2, 3, 4}},
      {"1;2\n3;4\n", {}, 2, 2, {1, 2, 3, 4}},
      {"1\t2\n3\t4\n", {}, 2, 2, {1, 2, 3, 4}},
      {"1 2\n3 4\n", {}, 2, 2, {1, 2, 3, 4}},
      {"  1   2  \n 3 \t 4 \n", {}, 2, 2, {1, 2, 3, 4}},
      {" 1 , 2 \n\t3 ,\t4\n", {}, 2, 2, {1, 2, 3, 4}},
      {"1 \t 2\n3\t4\n", {}, 2, 2, {1, 2, 3, 4}},
      {"7\n", {}, 1, 1, {7}},
      {"7\n8\n9\n", {}, 3, 1, {7, 8, 9}},
      {"# a comment\n1,2\n% another\n3,4\n", {}, 2, 2, {1, 2, 3, 4}},
      {"1 2 # first, of two\n3 4 % second\n", {}, 2, 2, {1, 2, 3, 4}},
      {"a,b\n1,2\n", {}, 1, 2, {1, 2}},
      {"first second third\n1,2,3\n", {}, 1, 3, {1, 2, 3}},
      {"\"a\",\"b\"\n1,2\n", {}, 1, 2, {1, 2}},
      {"x\n1\n2\n", {}, 2, 1, {1, 2}},
      {"# head\n\na,b\n\n1,2\n", {}, 1, 2, {1, 2}},
      {"\"1\",\"2.5\"\n\"-3\" , 4\n", {}, 2, 2, {1, 2.5, -3, 4}},
      {"\"1\" \"2\"\n\"3\" 4\n", {}, 2, 2, {1, 2, 3, 4}},
      {"1,2\n3,4\n\n5,6\n7,8\n", {2}, 2, 2, {1, 2, 3, 4, 5, 6, 7, 8}},
      {"1 2\n\n\n \t \n3 4\n\n5 6\n\n", {3}, 1, 2, {1, 2, 3, 4, 5, 6}},
      {"# matrix 0\n1,2\n\n# matrix 1\n3,4\n", {2}, 1, 2, {1, 2, 3, 4}},
      {"+1,-2,1e3,1E-2,.5,5.,+.5e+1\n", {}, 1, 7, {1, -2, 1000, 0.01, 0.5, 5, 5}},
      {"nan,inf,-inf,NaN,INF,Infinity,+inf\n", {}, 1, 7, {nan, inf, -inf, nan, inf, inf, inf}},
      {"1e-400,4.9e-324,1.7976931348623157e308\n", {}, 1, 3, {0, 4.9e-324, 1.7976931348623157e308}},
      {"0.1,0.30000000000000004\n", {}, 1, 2, {0.1, 0.30000000000000004}},
  };
  for (const Accepted& each : cases) {
    SCOPED_TRACE(each.text);
    const auto reader = open_text(each.text);
    const Source& s = reader->source();
    EXPECT_EQ(s.leading, each.leading);
    EXPECT_EQ(s.m, each.m);
    EXPECT_EQ(s.n, each.n);
    EXPECT_EQ(s.type, ElementType::float64);
    EXPECT_EQ(s.order, Order::row);
    expect_same(read_all<double>(*reader), each.values);
  }
}

TEST_F(CsvReaderTest, Mistakes) {
  const struct {
    const char *text, *message;
  } cases[] = {
      {"1,2\n3\n", "x.csv:2:2: 1 column where line 1 has 2 | write nan for a missing number"},
      {"1,2\n3,4,5\n", "x.csv:2:5: 3 columns where line 1 has 2"},
      {"1 2\n3 4  5\n", "x.csv:2:6: 3 columns where line 1 has 2"},
      {"1\n2\n3 4\n", "x.csv:3:3: 2 columns where line 1 has 1"},
      {"1\n2\n3,4\n", "x.csv:3:3: 2 columns where line 1 has 1"},
      {"a,b\n# c\n1,2\n\n3\n",
       "x.csv:5:2: 1 column where line 3 has 2 | write nan for a missing number"},
      {"1,2\n3,4\n\n5,6\n",
       "x.csv:4:1: matrix 1 has 1 rows where matrix 0 has 2 | a blank line ends a "
       "matrix; remove line 3 if all is one matrix"},
      {"1\n\n2\n\n3\n4\n5\n",
       "x.csv:5:1: matrix 2 has 3 rows where matrix 0 has 1 | a blank line ends "
       "a matrix; remove line 2 if all is one matrix"},
      {"1,2\n3,x\n", "x.csv:2:3: 'x' is not a number"},
      {"1,b\n", "x.csv:1:3: 'b' is not a number"},
      {"b,1\n",
       "x.csv:1:1: 'b' is not a number | if the first column holds names or dates: --index-column "
       "yes "
       "leaves it out"},
      {"1,2\na,b\n",
       "x.csv:2:1: 'a' is not a number | if the table ends above this line: --end-row 1"},
      {"1,2\n3,1d3\n", "x.csv:2:3: '1d3' is not a number | write the exponent with e: 1e3"},
      {"1.5D-3 2\n", "x.csv:1:1: '1.5D-3' is not a number | write the exponent with e: 1.5e-3"},
      {"1d3,2d3\n", "x.csv:1:1: '1d3' is not a number | write the exponent with e: 1e3"},
      {"1.5;2\n2,5;1\n",
       "x.csv:2:1: '2,5' is not a number | the point is the decimal sign of this file; write 2.5"},
      {"1,5;2\n2.5;1\n",
       "x.csv:2:1: '2.5' is not a number | the comma is the decimal sign of this file; write 2,5"},
      {"1,234;5\n7,891;6\n",
       "x.csv:1:1: '1,234': is the comma a decimal sign, or does it separate thousands? | "
       "if it is a decimal sign: --decimal comma; if it separates thousands: --thousands comma"},
      {"\"1,234.5\",2\n",
       "x.csv:1:1: '1,234.5' is not a number | if the comma separates thousands: --thousands "
       "comma"},
      {"1.234,5;2\n3,5;4\n",
       "x.csv:1:1: '1.234,5' is not a number | if the point separates thousands: --thousands "
       "point"},
      {"2,5;1\n1.234.567,5;2\n",
       "x.csv:2:1: '1.234.567,5' is not a number | if the point separates thousands: --thousands "
       "point"},
      {"1;2\n1.5,2;2\n", "x.csv:2:1: '1.5,2' is not a number"},
      {"12%,13%\n", "x.csv:1:1: '12%' is not a number | write the number without its percent sign"},
      {"1,#DIV/0!\n2,3\n", "x.csv:1:3: '#DIV/0!' is not a number"},
      {"1|2\n", "x.csv:1:1: '1|2' is not a number | --delimiter pipe"},
      {"1,,3\n", "x.csv: column 2 holds no number in any line | --columns 1,3- leaves it out"},
      {"\t1\t2\n", "x.csv: column 1 holds no number in any line | --columns 2- leaves it out"},
      {"1,NA\n", "x.csv: column 2 holds no number in any line | --columns 1 leaves it out"},
      {",2019,2020\n1,2.5,3\n",
       "x.csv:1:1: an empty field, then whole numbers: are they names of columns, or is the first "
       "number missing? | --header yes leaves the line out; --header no reads it as numbers"},
      {"0,1\n0.5,0.25\n",
       "x.csv:1:1: 0 and 1: are they names of columns, as pandas writes them, or numbers? | "
       "--header yes leaves the line out; --header no reads it as numbers"},
      {"a,b\n3,1,2\n7,3,4\n",
       "x.csv:2:1: the header in line 1 has one name less than there are columns, but the first "
       "column does not count the rows | if it is an index all the same: --index-column yes; if "
       "not, leave the header out: --skip-rows 1"},
      {"0,1,2\n0,1,2,3\n",
       "x.csv:2:7: 4 columns where line 1 has 3 | if line 1 is a header: --header yes"},
      {"1,2\n3,4\n5,1e400\n", "x.csv:3:3: '1e400' is too large for float64"},
      {"-1e999 2\n", "x.csv:1:1: '-1e999' is too large for float64"},
      {"1.8e308\n", "x.csv:1:1: '1.8e308' is too large for float64"},
      {"0x10,1\n", "x.csv:1:1: '0x10' is not a number"},
      {"1_000,1\n", "x.csv:1:1: '1_000' is not a number"},
      {"1.2.3\n", "x.csv:1:1: '1.2.3' is not a number"},
      {"++1,2\n", "x.csv:1:1: '++1' is not a number"},
      {"+-1,2\n", "x.csv:1:1: '+-1' is not a number"},
      {"1e,2\n", "x.csv:1:1: '1e' is not a number"},
      {"1,-\n", "x.csv:1:3: '-' is not a number | if a number is missing here: --na-text '-'"},
      {"1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n1+2i\n",
       "x.csv:23:1: '1+2i' is a complex number, and the first rows are real ones | write a number "
       "of the first row as a complex one, for example 1+0j"},
      {"1+2i,1+2x\n", "x.csv:1:6: '1+2x' is not a number"},
      {"1+2i,3+1e400j\n", "x.csv:1:6: '3+1e400j' is too large for complex128"},
      {"1,\"2\n", "x.csv:1:3: the quote is not closed"},
      {"\"a,b\n1,2\n2,3\n", "x.csv:1:1: the quote is not closed"},
      {"1,\"2\"3\n", "x.csv:1:6: text after a closing quote"},
      {"1,\"2\" 3\n", "x.csv:1:7: text after a closing quote"},
      {"1,'2'\n", "x.csv:1:3: ''2'' is not a number"},
      {"1,\x1b[31m\n", "x.csv:1:3: '\\x1b[31m' is not a number"},
      {"1,\xe2\x88\x92"
       "2\n",
       "x.csv:1:3: '\xe2\x88\x92"
       "2' is not a number | write the minus sign of ASCII: -2"},
      {"1,2\r3,4\r",
       "x.csv:1:4: a line ends with CR alone, as on old Macs | tr '\\r' '\\n' < x.csv > new.csv"},
      {"1,2 # first\n3,4\n",
       "x.csv:1:3: '2 # first' is not a number | a comment begins at the start of a line; write 2"},
      {"1,2 %\n3,4\n",
       "x.csv:1:3: '2 %' is not a number | write the number without its percent sign"},
      {"1 2 %\n3 4 %\n",
       "x.csv:1:5: '%' is not a number | write the number without its percent sign"},
      {"a b#c\n1 2\n3 (4)\n",
       "x.csv:3:3: '(4)' is not a number | if the parentheses mean a negative number: write -4"},
      {"a b #c\n1 2 3\n",
       "x.csv:1:1: the header has 2 names before its comment where line 2 has 3 columns | put "
       "names "
       "that hold # or % in quotes"},
      {"1,2\n$1.5,$2\n",
       "x.csv:2:1: '$1.5' is not a number | write the number without the sign of its currency: "
       "1.5"},
      {"\n\n", "x.csv: holds no numbers"},
      {"# nothing\n", "x.csv: holds no numbers"},
      {"a,b\n", "x.csv: holds no numbers"},
      {"", "x.csv: the file is empty"},
      {"\xff\xfe"
       "1",
       "x.csv:1:1: UTF-16 text | iconv -f UTF-16 -t UTF-8 < x.csv > utf8.csv"},
      {"1,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
       "x.csv:1:3: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' is not a number"},
      {"\xef\xbb\xbf"
       "x,1\n",
       "x.csv:1:1: 'x' is not a number | if the first column holds names or dates: --index-column "
       "yes "
       "leaves it out"},
  };
  static_assert(std::size(cases) >= 40);
  for (const auto& each : cases) {
    SCOPED_TRACE(each.text);
    EXPECT_EQ(error_of<InputError>([&] { open_text(each.text); }), each.message);
  }
  EXPECT_EQ(error_of<InputError>([] { open_text(std::string("1,2\n3\0,4\n", 9)); }),
            "x.csv:2:2: a NUL byte: this is UTF-16 or binary, not text");
}

/// Returns the error that reading a text gives, or nothing where it can be read.
std::string mistake_in(const std::string& text) {
  try {
    open_text(text);
  } catch (const InputError& error) {
    return error.what() + (error.hint().empty() ? "" : " | " + error.hint());
  }
  return "";
}

/// A CSV text and what the reader must make of it: shape, values and notes.
struct Understood {
  const char* text;
  index_t m, n;
  std::vector<double> values;
  std::vector<std::string> notes;
};

void expect_understood(std::span<const Understood> cases, const CsvOptions& options = {}) {
  for (const Understood& each : cases) {
    SCOPED_TRACE(each.text);
    const auto reader = open_text(each.text, options);
    EXPECT_EQ(reader->source().m, each.m);
    EXPECT_EQ(reader->source().n, each.n);
    EXPECT_EQ(reader->source().notes, each.notes);
    expect_same(read_all<double>(*reader), each.values);
  }
}

/// Factored as data, an index would be a wrong answer that looks right.
TEST_F(CsvReaderTest, AnIndexIsLeftOut) {
  const std::string nameless =
      "the first column is left out as an index, since it has no name; --index-column no reads it";
  const std::string is_short =
      "the first column is left out as an index, since the header has one name less than a row has "
      "columns; --index-column no reads it";
  const Understood cases[] = {
      {",a,b\n0,1,2\n1,3,4\n", 2, 2, {1, 2, 3, 4}, {nameless}},
      {"\"\",\"a\",\"b\"\n\"1\",1,2\n", 1, 2, {1, 2}, {nameless}},
      {"\"\",\"a\"\n\"Mazda RX4\",1\n\"a \"\"b\"\"\",2\n", 2, 1, {1, 2}, {nameless}},
      {"Unnamed: 0,a\n0,1\n", 1, 1, {1}, {nameless}},
      {";a;b\n0;1,5;2\n", 1, 2, {1.5, 2}, {nameless}},
      {"\ta\tb\n0\t1\t2\n", 1, 2, {1, 2}, {nameless}},
      {"\t2018\nAT\t1\nCH\t3\n", 2, 1, {1, 3}, {nameless}},
      {",0,1\n0,1,2\n", 1, 2, {1, 2}, {nameless}},
      {"\"\",\"1\",\"2\"\n\"a\",1,2\n", 1, 2, {1, 2}, {nameless}},
      {",a\n2026-11-22,1\n2026-11-23,2\n", 2, 1, {1, 2}, {nameless}},
      {"\"a\" \"b\"\n\"Wag on\" 1 2\n", 1, 2, {1, 2}, {is_short}},
      {"\"a\" \"b\"\n\"7\" 1 2\n\"3\" 4 5\n", 2, 2, {1, 2, 4, 5}, {is_short}},
      {"# c\na  b\n1  1 2\n2 3 4\n", 2, 2, {1, 2, 3, 4}, {is_short}}};
  expect_understood(cases);
  EXPECT_EQ(open_text(",a\n0,1\n", {.index_column = Answer::no})->source().n, 2);
  const Understood asked[] = {{"name,a\nx,1\ny,2\n", 2, 1, {1, 2}, {}},
                              {"x,1.5\ny,2\n", 2, 1, {1.5, 2}, {}},
                              {"a b\n7 1 2\n3 4 5\n", 2, 2, {1, 2, 4, 5}, {}}};
  expect_understood(asked, {.index_column = Answer::yes});
}

/// A header that may be names or numbers is never taken for one of them without a word.
TEST_F(CsvReaderTest, HeadersOfNumbers) {
  const std::string names =
      "line 1 is taken for the names of the columns; --header no reads it as "
      "numbers";
  const std::string numbers =
      "line 1 is read as numbers; if it holds the names of the columns, give "
      "--header yes";
  const std::string decimals =
      "every line is read as two numbers; if the comma is a decimal sign: --decimal comma";
  const std::string counts =
      "the first column counts the rows from 0; if it is an index, "
      "--index-column yes leaves it out";
  const Understood cases[] = {
      {"0,1,2\n0.5,1.5,2e0\n3.5,4.5,nan\n", 2, 3, {0.5, 1.5, 2, 3.5, 4.5, nan}, {names}},
      {"0,1,2\n0,5,7\n1,6,9\n2,8,4\n", 3, 3, {0, 5, 7, 1, 6, 9, 2, 8, 4}, {names}},
      {"0,1,2\n5,3,8\n", 2, 3, {0, 1, 2, 5, 3, 8}, {numbers}},
      {"0,1\n1,0\n", 2, 2, {0, 1, 1, 0}, {numbers, decimals}},
      {"2019,2020\n1.5,2.5\n", 2, 2, {2019, 2020, 1.5, 2.5}, {numbers}},
      {"0\n0.5\n", 2, 1, {0, 0.5}, {numbers}},
      {"\"2019\",\"2020\"\n1,2\n", 1, 2, {1, 2}, {names}},
      {"0,1,2\n", 1, 3, {0, 1, 2}, {}},
      {"5,1,2\n0.5,3,8\n", 2, 3, {5, 1, 2, 0.5, 3, 8}, {}},
      {"t,x\n0,5\n1,7\n2,6\n", 3, 2, {0, 5, 1, 7, 2, 6}, {counts}}};
  expect_understood(cases);
  const Understood without[] = {{"0,1,2\n0.5,1.5,2.5\n", 2, 3, {0, 1, 2, 0.5, 1.5, 2.5}, {}}};
  expect_understood(without, {.header = Answer::no});
  const Understood with[] = {{"2019,2020\n1.5,2.5\n", 1, 2, {1.5, 2.5}, {}},
                             {",2019\n1.5,2.5\n",
                              1,
                              1,
                              {2.5},
                              {"the first column is left out as an index, since it has no name; "
                               "--index-column no reads it"}}};
  expect_understood(with, {.header = Answer::yes});
}

TEST_F(CsvReaderTest, MissingNumbers) {
  const Understood cases[] = {{"1,NA\n,4\n",
                               2,
                               2,
                               {1, nan, nan, 4},
                               {"2 missing numbers are read as NaN, the first at 1:3"}},
                              {"1,#N/A,2\n3,4,5\n",
                               2,
                               3,
                               {1, nan, 2, 3, 4, 5},
                               {"a missing number is read as NaN, the first at 1:3"}},
                              {"a;b\n1;\"\"\n3;4\n",
                               2,
                               2,
                               {1, nan, 3, 4},
                               {"a missing number is read as NaN, the first at 2:3"}}};
  expect_understood(cases);
  const Understood named[] = {{"1,-999\n-999.0,?\n5,6\n",
                               3,
                               2,
                               {1, nan, nan, nan, 5, 6},
                               {"3 missing numbers are read as NaN, the first at 1:3"}}};
  expect_understood(named, {.na_texts = {"-999", "?"}});
}

/// A tab at an end of the first row is a separator where those of other lines show it.
TEST_F(CsvReaderTest, EmptyFieldsAtTheEndsOfTheFirstRow) {
  const std::string first = "a missing number is read as NaN, the first at ";
  const Understood cases[] = {{"a\tb\n\t1.5\n3\t4\n", 2, 2, {nan, 1.5, 3, 4}, {first + "2:1"}},
                              {"a\tb\n\t1,5\n3\t4,5\n", 2, 2, {nan, 1.5, 3, 4.5}, {first + "2:1"}},
                              {"a\tb\n1,5\t\n3\t4,5\n", 2, 2, {1.5, nan, 3, 4.5}, {first + "2:5"}},
                              {"\t1.5\n3\t4\n", 2, 2, {nan, 1.5, 3, 4}, {first + "1:1"}},
                              {"1.5\t\n3\t4\n", 2, 2, {1.5, nan, 3, 4}, {first + "1:5"}},
                              {"a\tb\tc\n\t\t2\n3\t4\t5\n",
                               2,
                               3,
                               {nan, nan, 2, 3, 4, 5},
                               {"2 missing numbers are read as NaN, the first at 2:1"}},
                              // Tabs indent these.
                              {"\t1.5\n\t4\n", 2, 1, {1.5, 4}, {}},
                              {"\t1 2\n3\t4\n", 2, 2, {1, 2, 3, 4}, {}},
                              {"\ta\n\t1\n\t3\n", 2, 1, {1, 3}, {}}};
  expect_understood(cases);
  EXPECT_EQ(mistake_in("\t5\n1\t2.5\n"),
            "x.csv:1:1: an empty field, then whole numbers: are they names of columns, or is the "
            "first number missing? | --header yes leaves the line out; --header no reads it as "
            "numbers");
}

/// A line of empty fields above the first row may be a row without numbers.
TEST_F(CsvReaderTest, EmptyFieldsAboveTheFirstRow) {
  const Understood cases[] = {
      {"\t\n1\t2\n", 1, 2, {1, 2}, {"line 1 holds no number and is left out"}},
      {"# c\n,,\n,,\n1,2,3\n", 1, 3, {1, 2, 3}, {"line 2 holds no number and is left out"}},
      {",,\na,b,c\n1,2,3\n", 1, 3, {1, 2, 3}, {}},
      {"\t\n1,2.5\n", 1, 2, {1, 2.5}, {}}};
  expect_understood(cases);
}

TEST_F(CsvReaderTest, ExcelWritesIt) {
  const Understood cases[] = {
      {"\xef\xbb\xbfH\xc3\xb6he;Gewicht\r\n1,5;-2,25\r\n3;4,125\r\n",
       2,
       2,
       {1.5, -2.25, 3, 4.125},
       {}},
      {"sep=;\r\na;b\r\n1;2\r\n", 1, 2, {1, 2}, {}},
      {"\"1,5\",\"2\"\n3,\"0,123\"\n", 2, 2, {1.5, 2, 3, 0.123}, {}},
      {"1,5\t2\n1,234\t5\n", 2, 2, {1.5, 2, 1.234, 5}, {}},
      {"1;2\n;\n",
       1,
       2,
       {1, 2},
       {"line 2 holds no number and is read as a blank line, which ends a matrix"}},
      {"\"fat, %\";\"no. #\"\n1;2\n", 1, 2, {1, 2}, {}}};
  expect_understood(cases);
}

TEST_F(CsvReaderTest, WhatOptionsSay) {
  const Understood spaces[] = {{"1,5 2,5\n3 ,25\n", 2, 2, {1.5, 2.5, 3, 0.25}, {}},
                               {"1,234 5\n", 1, 2, {1.234, 5}, {}}};
  expect_understood(spaces, {.decimal = Decimal::comma});
  const Understood pipes[] = {{"1|2\n3| 4\n", 2, 2, {1, 2, 3, 4}, {}}};
  expect_understood(pipes, {.delimiter = '|'});
  const Understood skipped[] = {{"Made by X, 2026\n\na,b\n1,2\n", 1, 2, {1, 2}, {}}};
  expect_understood(skipped, {.skip_rows = 2});
  EXPECT_EQ(error_of<InputError>([] { open_text("1\n2\n", {.skip_rows = 3}); }),
            "x.csv: --skip-rows 3, but there are 2 lines");
  EXPECT_EQ(error_of<UsageError>([] {
              write_text("x.h5", "\x89HDF\r\n\x1a\n");
              open_input({.path = "x.h5", .dataset = "", .csv = {.skip_rows = 1, .columns = "2"}});
            }),
            "x.h5: no CSV file, but there are options of CSV: --skip-rows, --columns");
}

TEST_F(CsvReaderTest, Columns) {
  const std::string text = "name,a,b,c,2019\nx,1,2,3,4\ny,5,6,7,8\n";
  const auto options = [](const char* list) {
    return CsvOptions{.header = Answer::yes, .columns = list};
  };
  const std::pair<const char*, std::vector<double>> chosen[] = {{"2-4", {1, 2, 3, 5, 6, 7}},
                                                                {"c,a", {3, 1, 7, 5}},
                                                                {"4-", {3, 4, 7, 8}},
                                                                {"b, 5", {2, 4, 6, 8}},
                                                                {"a,2019", {1, 4, 5, 8}},
                                                                {"5,2-3", {4, 1, 2, 8, 5, 6}},
                                                                {"b", {2, 6}}};
  for (const auto& [list, values] : chosen) {
    SCOPED_TRACE(list);
    const auto reader = open_text(text, options(list));
    expect_same(read_all<double>(*reader), values);
    auto row = poisoned<double>(reader->source().n);
    reader->read_rows(0, 1, {row.data(), 1, reader->source().n, reader->source().n});
    EXPECT_EQ(row[0], values[values.size() / 2]);
  }
  const std::pair<const char*, const char*> wrong[] = {
      {"ab",
       "x.csv:1:1: there is no column 'ab' | the columns are name, a, b, "
       "c, 2019"},
      {"2-9",
       "x.csv:1:1: --columns 2-9: there are 5 columns | the columns are name, a, b, c, 2019"},
      {"2020",
       "x.csv:1:1: --columns 2020: there are 5 columns | the columns are name, a, b, c, 2019"}};
  for (const auto& each : wrong)
    EXPECT_EQ(error_of<InputError>([&] { open_text(text, options(each.first)); }), each.second);
  EXPECT_EQ(error_of<UsageError>([&] { open_text(text, options("2-4,c")); }),
            "--columns: 'c' names column 4 a second time | name it once");
  // A name of the list that is in the first line makes the line a header.
  EXPECT_EQ(open_text(text, {.columns = "a,b"})->source().m, 2);
  // The names of R's header begin with the second column.
  const auto reader = open_text("\"a\" \"b\"\n\"x\" 1 2\n", {.columns = "b"});
  expect_same(read_all<double>(*reader), {2});
}

TEST_F(CsvReaderTest, WhatWasFoundIsRecorded) {
  const TextPairs found = open_text(";a;b\n0;1,5;2\n", {.na_texts = {"x", "?"}})->source().details;
  EXPECT_EQ(found, (TextPairs{{"csv_delimiter", "semicolon"},
                              {"csv_decimal", "comma"},
                              {"csv_header", "yes"},
                              {"csv_index_column", "yes"},
                              {"csv_na_text", "x\n?"}}));
  const CsvOptions again = with_recorded({.decimal = Decimal::point}, found);
  EXPECT_EQ(again, (CsvOptions{.delimiter = ';',
                               .decimal = Decimal::point,
                               .header = Answer::yes,
                               .index_column = Answer::yes,
                               .na_texts = {"x", "?"}}));
}

TEST_F(CsvReaderTest, AHeaderHasTheWidthOfTheRows) {
  const std::pair<const char*, std::string> cases[] = {
      {"a,b,c\n1,2\n",
       "x.csv:1:1: the header has 3 names where line 2 has 2 columns | leave the header out: "
       "--skip-rows 1"},
      {"# c\na\n1,2,3\n",
       "x.csv:2:1: the header has 1 name where line 3 has 3 columns | leave the header out: "
       "--skip-rows 2"}};
  for (const auto& [text, message] : cases) EXPECT_EQ(mistake_in(text), message) << text;
  for (const char* good : {"speed in km/h\n1\n", "a b c\n1,2,3\n", "x, y\n1, 2\n",
                           "\"a, b\";c\n1;2\n", "a, b\n1 2\n", "a\tb\n1\t2\n"})
    EXPECT_EQ(mistake_in(good), "") << good;
}

TEST_F(CsvReaderTest, HintsThatWork) {
  EXPECT_EQ(mistake_in("1,5 2,5\n"),
            "x.csv:1:3: '5 2' is not a number | if the comma is the decimal sign: --decimal comma");
  EXPECT_EQ(mistake_in("n,a\nx,1\n"),
            "x.csv:2:1: 'x' is not a number | if the first column holds names or dates: "
            "--index-column yes "
            "leaves it out");
  const std::string euros(39, 'x');
  EXPECT_EQ(mistake_in("1\n" + euros + "\xe2\x82\xac\xe2\x82\xac\n"),
            "x.csv:2:1: '" + euros + "...' is not a number")
      << "no character is cut";
}

}  // namespace
}  // namespace qrtool::csv_reader_test
