// SPDX-License-Identifier: Apache-2.0
// reader_test.cpp: the reader takes every dialect, and names every mistake by line and column.
#include <fcntl.h>
#include <sys/stat.h>

#include <clocale>
#include <cmath>
#include <random>

#include "tests/io/reading.hpp"

namespace qrtool {
namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

class CsvReaderTest : public FileTest {};

std::unique_ptr<Reader> open_text(const std::string& text) {
  write_text("x.csv", text);
  return open_input({"x.csv", "", Order::automatic});
}

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
      {"1,2 # first\n3,4% second\n", {}, 2, 2, {1, 2, 3, 4}},
      {"a,b\n1,2\n", {}, 1, 2, {1, 2}},
      {"first second\n1,2\n", {}, 1, 2, {1, 2}},
      {"\"a\",\"b\"\n1,2\n", {}, 1, 2, {1, 2}},
      {"x\n1\n2\n", {}, 2, 1, {1, 2}},
      {"# head\n\na,b\n\n1,2\n", {}, 1, 2, {1, 2}},
      {"\"1\",\"2.5\"\n\"-3\" , 4\n", {}, 2, 2, {1, 2.5, -3, 4}},
      {"\"1\" \"2\"\n3 4\n", {}, 2, 2, {1, 2, 3, 4}},
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
      {"1,2\n3,4\n\n5,6\n", "x.csv:4:1: matrix 1 has 1 rows where matrix 0 has 2"},
      {"1\n\n2\n\n3\n4\n5\n", "x.csv:5:1: matrix 2 has 3 rows where matrix 0 has 1"},
      {"1,2\n3,x\n", "x.csv:2:3: 'x' is not a number"},
      {"1,b\n", "x.csv:1:3: 'b' is not a number"},
      {"b,1\n", "x.csv:1:1: 'b' is not a number"},
      {"a,b\nc,d\n1,2\n", "x.csv:2:1: 'c' is not a number"},
      {"1,2\na,b\n", "x.csv:2:1: 'a' is not a number"},
      {"1,2\n3,1d3\n", "x.csv:2:3: '1d3' is not a number | write the exponent with e: 1e3"},
      {"1.5D-3 2\n", "x.csv:1:1: '1.5D-3' is not a number | write the exponent with e: 1.5e-3"},
      {"1d3,2d3\n", "x.csv:1:1: '1d3' is not a number | write the exponent with e: 1e3"},
      {"1,5;2,5\n", "x.csv:1:1: '1,5' is not a number | write a decimal point: 1.5"},
      {"1,5\t2\n", "x.csv:1:1: '1,5' is not a number | write a decimal point: 1.5"},
      {"\"1,5\",\"2\"\n", "x.csv:1:1: '1,5' is not a number | write a decimal point: 1.5"},
      {"1,2;3\n4,5;6\n", "x.csv:1:1: '1,2' is not a number | write a decimal point: 1.2"},
      {"1,,3\n", "x.csv:1:3: empty field | write nan for a missing number"},
      {",2\n", "x.csv:1:1: empty field | write nan for a missing number"},
      {"1,2,\n", "x.csv:1:5: empty field | write nan for a missing number"},
      {"1\t\t2\n", "x.csv:1:3: empty field | write nan for a missing number"},
      {"\t1\t2\n", "x.csv:1:1: empty field | write nan for a missing number"},
      {"1,\"\"\n", "x.csv:1:3: empty field | write nan for a missing number"},
      {"1,NA\n", "x.csv:1:3: 'NA' is not a number | write nan for a missing number"},
      {"1,2\n3,4\n5,1e400\n", "x.csv:3:3: '1e400' is too large for float64"},
      {"-1e999 2\n", "x.csv:1:1: '-1e999' is too large for float64"},
      {"1.8e308\n", "x.csv:1:1: '1.8e308' is too large for float64"},
      {"0x10,1\n", "x.csv:1:1: '0x10' is not a number"},
      {"1_000,1\n", "x.csv:1:1: '1_000' is not a number"},
      {"1.2.3\n", "x.csv:1:1: '1.2.3' is not a number"},
      {"++1,2\n", "x.csv:1:1: '++1' is not a number"},
      {"+-1,2\n", "x.csv:1:1: '+-1' is not a number"},
      {"1e,2\n", "x.csv:1:1: '1e' is not a number"},
      {"1,-\n", "x.csv:1:3: '-' is not a number"},
      {"1,1+2i\n", "x.csv:1:3: '1+2i' is not a number"},
      {"1,\"2\n", "x.csv:1:3: the quote is not closed"},
      {"1,\"2\"3\n", "x.csv:1:6: text after a closing quote"},
      {"1,\"2\" 3\n", "x.csv:1:7: text after a closing quote"},
      {"1,'2'\n", "x.csv:1:3: ''2'' is not a number"},
      {"1,\x1b[31m\n", "x.csv:1:3: '\\x1b[31m' is not a number"},
      {"1,\xe2\x88\x92"
       "2\n",
       "x.csv:1:3: '\xe2\x88\x92"
       "2' is not a number"},
      {"1,2\r3,4\r", "x.csv:1:3: '2\\x0d3' is not a number"},
      {"\n\n", "x.csv: holds no numbers"},
      {"# nothing\n", "x.csv: holds no numbers"},
      {"a,b\n", "x.csv: holds no numbers"},
      {"", "x.csv: the file is empty"},
      {"\xff\xfe"
       "1",
       "x.csv:1:1: UTF-16 text | iconv -f UTF-16 -t UTF-8 x.csv > utf8.csv"},
      {"1,xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n",
       "x.csv:1:3: 'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...' is not a number"},
      {"\xef\xbb\xbf"
       "x,1\n",
       "x.csv:1:1: 'x' is not a number"},
  };
  static_assert(std::size(cases) >= 40);
  for (const auto& each : cases) {
    SCOPED_TRACE(each.text);
    EXPECT_EQ(error_of<InputError>([&] { open_text(each.text); }), each.message);
  }
  EXPECT_EQ(error_of<InputError>([] { open_text(std::string("1,2\n3\0,4\n", 9)); }),
            "x.csv:2:2: a NUL byte: this is UTF-16 or binary, not text");
}

/// What reading says of a text, or nothing where it can be read.
std::string mistake_in(const std::string& text) {
  try {
    open_text(text);
  } catch (const InputError& error) {
    return error.what() + (error.hint().empty() ? "" : " | " + error.hint());
  }
  return "";
}

/// Factored as data, an index would be a wrong answer that looks right. Each hint says a command
/// that was tried.
TEST_F(CsvReaderTest, AnIndexIsNoColumn) {
  const std::string nameless =
      ":1:1: the first column has no name: it looks like an index | leave "
      "it out: ";
  const std::string or_else =
      " | qrtool factor - OUT; or write the file without it: to_csv(index=False) of pandas, "
      "row.names=FALSE of R";
  const std::pair<const char*, const char*> cases[] = {
      {",a,b\n0,1,2\n1,3,4\n", "cut -d, -f2- x.csv"},
      {"\"\",\"a\",\"b\"\n\"1\",1,2\n", "cut -d, -f2- x.csv"},
      {"\"\",\"a\"\n\"Mazda RX4\",1\n", "cut -d, -f2- x.csv"},
      {"Unnamed: 0,a\n0,1\n", "cut -d, -f2- x.csv"},
      {";a;b\n0;1;2\n", "cut -d';' -f2- x.csv"},
      {"\ta\tb\n0\t1\t2\n", "cut -f2- x.csv"},
      {",0,1\n0,1,2\n", "tail -n +2 x.csv | cut -d, -f2-"},
      {"\"\",\"1\",\"2\"\n\"a\",1,2\n", "tail -n +2 x.csv | cut -d, -f2-"}};
  for (const auto& [text, command] : cases)
    EXPECT_EQ(mistake_in(text), "x.csv" + nameless + command + or_else) << text;
}

TEST_F(CsvReaderTest, AHeaderHasTheWidthOfTheRows) {
  const std::string index = ": is the first column an index? | if so, leave it out: tail -n +";
  const std::string none = " | qrtool factor - OUT (R writes none with row.names=FALSE); if not: ";
  const std::pair<const char*, std::string> cases[] = {
      {"\"a\" \"b\"\n\"Wag on\" 1 2\n",
       "x.csv:1:1: the header has 2 names where line 2 has 3 columns" + index +
           "2 x.csv | cut -d'\"' -f3-" + none + "tail -n +2 x.csv | qrtool factor - OUT"},
      {"# c\na  b\n1  1 2\n", "x.csv:2:1: the header has 2 names where line 3 has 3 columns" +
                                  index + "3 x.csv | awk '{$1=\"\"; print}'" + none +
                                  "tail -n +3 x.csv | qrtool factor - OUT"},
      {"a,b,c\n1,2\n",
       "x.csv:1:1: the header has 3 names where line 2 has 2 columns | leave the header out: tail "
       "-n +2 x.csv | qrtool factor - OUT"},
      {"a\n1,2,3\n",
       "x.csv:1:1: the header has 1 name where line 2 has 3 columns | leave the header out: tail "
       "-n +2 x.csv | qrtool factor - OUT"}};
  for (const auto& [text, message] : cases) EXPECT_EQ(mistake_in(text), message) << text;
  for (const char* good : {"speed in km/h\n1\n", "a b\n1,2\n", "x, y\n1, 2\n", "\"a, b\";c\n1;2\n",
                           "a, b\n1 2\n", "a\tb\n1\t2\n"})
    EXPECT_EQ(mistake_in(good), "") << good;
}

TEST_F(CsvReaderTest, HintsThatWork) {
  EXPECT_EQ(mistake_in("1,5 2,5\n"),
            "x.csv:1:3: '5 2' is not a number | write decimal points: sed 's/,/./g' x.csv | qrtool "
            "factor - OUT");
  EXPECT_EQ(mistake_in("n,a\nx,1\n"),
            "x.csv:2:1: 'x' is not a number | if the first column holds names, leave it out: cut "
            "-d, -f2- x.csv | qrtool factor - OUT");
  const std::string euros(39, 'x');
  EXPECT_EQ(mistake_in("1\n" + euros + "\xe2\x82\xac\xe2\x82\xac\n"),
            "x.csv:2:1: '" + euros + "...' is not a number")
      << "no character is cut";
}

TEST_F(CsvReaderTest, MatrixMarketIsKnownByItsContent) {
  const std::string body = "5 5 3\n1 1 2.5\n2 2 3\n5 5 1\n";
  const std::string hint =
      " matrix; it cannot be read | write it as CSV: python3 -c \"import numpy, scipy.io; "
      "numpy.savetxt('a.csv', scipy.io.mmread('";
  for (const char* name : {"x.csv", "x.mtx", "x"}) {
    write_text(name, "%%MatrixMarket matrix coordinate real general\n" + body);
    EXPECT_EQ(error_of<InputError>([&] {
                open_input({name, "", Order::automatic});
              }),
              std::string(name) + ": a Matrix Market file with a sparse" + hint + name +
                  "').toarray(), delimiter=',')\"");
    write_text(name, "%%MatrixMarket matrix array real general\n3 1\n1\n2\n3\n");
    EXPECT_EQ(error_of<InputError>([&] {
                open_input({name, "", Order::automatic});
              }),
              std::string(name) + ": a Matrix Market file with a dense" + hint + name +
                  "'), delimiter=',')\"");
  }
}

TEST_F(CsvReaderTest, AnyRangeInAnyOrder) {
  std::string text = "# head\nx y z\n\n";
  constexpr index_t count = 7, m = 5, n = 3;
  for (index_t at = 0; at < count * m * n; ++at) {
    if (at > 0 && at % (m * n) == 0) text += "\n# next\n";
    text += std::to_string(at) + (at % n == n - 1 ? "\n" : at % 2 ? "  " : " ");
    if (at % (2 * n) == n - 1) text += "% between rows\n";
  }
  const auto reader = open_text(text);
  ASSERT_EQ(reader->source().leading, std::vector<index_t>{count});
  std::mt19937 random(3);
  for (int round = 0; round < 3000; ++round) {
    const index_t b = random() % count;
    if (round % 2 == 0) {
      const index_t matrices = random() % (count - b) + 1;
      auto values = poisoned<float>(matrices * m * n);
      reader->read(b, packed(values.data(), matrices, m, n));
      for (index_t at = 0; at < std::ssize(values); ++at) {
        ASSERT_EQ(values[at], static_cast<float>(b * m * n + at));
      }
    } else {
      const index_t row = random() % m, rows = random() % (m - row) + 1;
      auto values = poisoned<double>(rows * n);
      reader->read_rows(b, row, {values.data(), rows, n, n});
      for (index_t at = 0; at < std::ssize(values); ++at) {
        ASSERT_EQ(values[at], static_cast<double>((b * m + row) * n + at));
      }
    }
  }
}

TEST_F(CsvReaderTest, LinesLongerThanAPiece) {
  std::string text;
  constexpr index_t n = 200000;
  for (index_t at = 0; at < 3 * n; ++at)
    text += std::to_string(at) + (at % n == n - 1 ? '\n' : ';');
  const auto reader = open_text(text);
  EXPECT_EQ(reader->source().n, n);
  const std::vector<double> values = read_all<double>(*reader);
  for (index_t at = 0; at < 3 * n; ++at) ASSERT_EQ(values[at], static_cast<double>(at));
  auto last = poisoned<double>(n);
  reader->read_rows(0, 2, {last.data(), 1, n, n});
  EXPECT_EQ(last[0], 2.0 * n);
}

TEST_F(CsvReaderTest, TooLargeForSingle) {
  const auto reader = open_text("1,3.4028235e38\n2,3.40282356e38\n");
  auto row = poisoned<float>(2);
  reader->read_rows(0, 0, {row.data(), 1, 2, 2});
  EXPECT_EQ(row[1], std::numeric_limits<float>::max());
  EXPECT_NO_THROW(read_all<double>(*reader));
  EXPECT_NO_THROW(reader->read_rows(0, 1, {row.data(), 1, 2, 2}));  // rounds down to the largest
  const auto larger = open_text("1,2\n\n2,-1e39\n");
  EXPECT_EQ(error_of<InputError>([&] { read_all<float>(*larger); }),
            "x.csv:3:3: '-1e39' is too large for float32 | use --precision double");
}

TEST_F(CsvReaderTest, TheLocaleDoesNotMatter) {
  const char* found = nullptr;
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    found = found ? found : std::setlocale(LC_ALL, name);
  }
  if (!found) GTEST_SKIP() << "no locale with a decimal comma is installed";
  EXPECT_EQ(read_all<double>(*open_text("1.5,2.5\n"))[0], 1.5);
  std::setlocale(LC_ALL, "C");
}

TEST_F(CsvReaderTest, FileThatChanges) {
  const auto reader = open_text("1,2\n3,4\n");
  std::filesystem::resize_file("x.csv", 4);
  auto values = poisoned<double>(4);
  // The text that was read for the check may still be in memory; then the old numbers are right.
  try {
    reader->read(0, packed(values.data(), 1, 2, 2));
    EXPECT_EQ(values, (std::vector<double>{1, 2, 3, 4}));
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "x.csv: the file changed while it was being read");
  }
}

/// Runs `action` with standard input from a file.
template <class Action>
void with_standard_input(const std::string& name, Action action) {
  const int before = dup(STDIN_FILENO), file = open(name.c_str(), O_RDONLY);
  dup2(file, STDIN_FILENO);
  close(file);
  action();
  dup2(before, STDIN_FILENO);
  close(before);
}

TEST_F(CsvReaderTest, StandardInput) {
  write_text("in", "1,2\n\n3,4\n");
  with_standard_input("in", [] {
    const auto reader = open_input({"-", "", Order::automatic});
    EXPECT_EQ(reader->source().file, "standard input");
    EXPECT_EQ(read_all<double>(*reader), (std::vector<double>{1, 2, 3, 4}));
    EXPECT_EQ(read_all<double>(*reader), (std::vector<double>{1, 2, 3, 4}));
  });
  write_text("in", "1,x\n");
  with_standard_input("in", [] {
    EXPECT_EQ(error_of<InputError>([] {
                open_input({"-", "", Order::automatic});
              }),
              "standard input:1:3: 'x' is not a number");
  });
  write_text("in", "\x89HDF\r\n\x1a\n");
  with_standard_input("in", [] {
    EXPECT_EQ(error_of<InputError>([] {
                open_input({"-", "", Order::automatic});
              }),
              "standard input: an HDF5 file, not text | give the file by its name: HDF5 is not "
              "read from standard input");
  });
  with_standard_input("/dev/null", [] {
    EXPECT_EQ(error_of<InputError>([] {
                open_input({"-", "", Order::automatic});
              }),
              "standard input: holds no numbers");
  });
  EXPECT_EQ(names(), std::vector<std::string>{"in"});
}

TEST_F(CsvReaderTest, OptionsOfHdf5) {
  write_text("x.csv", "1,2\n");
  EXPECT_EQ(error_of<UsageError>([] {
              open_input({"x.csv:/A", "", Order::automatic});
            }),
            "x.csv: a CSV file has no datasets to choose from");
  EXPECT_EQ(error_of<UsageError>([] {
              open_input({"x.csv", "", Order::column});
            }),
            "x.csv: --order column is for HDF5; CSV is read line by line");
  std::filesystem::create_directory("d.csv");
  EXPECT_EQ(error_of<InputError>([] {
              open_input({"d.csv", "", Order::automatic});
            }),
            "cannot read 'd.csv': it is a directory");
  ASSERT_EQ(mkfifo("pipe.csv", 0600), 0);
  EXPECT_EQ(error_of<InputError>([] {
              open_input({"pipe.csv", "", Order::automatic});
            }),
            "cannot read 'pipe.csv': it is a pipe, not a file");
}

TEST_F(CsvReaderTest, RandomBytesNeverCrash) {
  std::mt19937 random(11);
  const std::string alphabet = "0123456789.,;\t \n\r\"#%+-eEdinfax\xff";
  for (int round = 0; round < 5000; ++round) {
    std::string text(random() % 40 + 1, ' ');
    for (char& c : text) c = alphabet[random() % alphabet.size()];
    try {
      const auto reader = open_text(text);
      EXPECT_EQ(std::ssize(read_all<double>(*reader)),
                reader->source().count() * reader->source().m * reader->source().n);
    } catch (const InputError& error) {
      EXPECT_EQ(std::string(error.what()).rfind("x.csv:", 0), 0u) << error.what();
    }
  }
}

}  // namespace
}  // namespace qrtool
