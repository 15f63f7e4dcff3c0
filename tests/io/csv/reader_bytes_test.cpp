// SPDX-License-Identifier: Apache-2.0
// reader_bytes_test.cpp: ranges in any order, long lines, files that change, standard input, and
// bytes that are no table.
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <clocale>
#include <random>

#include "tests/io/csv/csv_fixture.hpp"

#include "io/open/input.hpp"

namespace qrtool::reader_bytes_test {
namespace {

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

/// Runs `action` with standard input from a file, in a process of its own: a process reads its
/// standard input once.
template <class Action>
void with_standard_input(const std::string& name, Action action) {
  const pid_t child = fork();
  if (child == 0) {
    dup2(open(name.c_str(), O_RDONLY), STDIN_FILENO);
    action();
    std::fflush(nullptr);
    _exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
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
  const std::pair<std::string, std::string> others[] = {{"\x89HDF\r\n\x1a\n", "HDF5"},
                                                        {"PK\x03\x04", "a .npz file"}};
  for (const auto& other : others) {
    write_text("in", other.first);
    with_standard_input("in", [&] {
      EXPECT_EQ(error_of<InputError>([] {
                  open_input({"-", "", Order::automatic});
                }),
                "standard input: holds " + other.second +
                    "; text, .npy and Matrix Market come through a pipe | write it to a file, and "
                    "name that");
    });
  }
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
            "x.csv: a CSV file has no datasets to choose from | a part of it is for example "
            "'x.csv:[0:100]'");
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
}  // namespace qrtool::reader_bytes_test
