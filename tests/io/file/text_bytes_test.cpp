// SPDX-License-Identifier: Apache-2.0
// text_bytes_test.cpp: compressed text is read like plain text, and damage to it is noticed.
#include "io/file/text_bytes.hpp"

#include <fcntl.h>
#include <zlib.h>

#include <random>

#include "io/open/input.hpp"
#include "tests/io/reading.hpp"

namespace qrtool::text_bytes_test {
namespace {

class TextBytesTest : public FileTest {};

std::string compressed(const std::string& text) {
  z_stream stream{};
  deflateInit2(&stream, 6, Z_DEFLATED, MAX_WBITS + 16, 8, Z_DEFAULT_STRATEGY);
  std::string out(deflateBound(&stream, text.size()) + 32, '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  stream.avail_in = static_cast<uInt>(text.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string table(index_t rows) {
  std::string text;
  for (index_t i = 0; i < rows; ++i) text += std::to_string(i) + "," + std::to_string(i * i) + "\n";
  return text;
}

TEST_F(TextBytesTest, AnyOffset) {
  const std::string text = table(100000);
  write_text("x.gz", compressed(text.substr(0, 5000)) + compressed(text.substr(5000)) +
                         std::string(20, '\0'));
  const auto bytes = open_text_bytes(open("x.gz", O_RDONLY), "x.gz");
  std::mt19937 random(5);
  for (int round = 0; round < 40; ++round) {
    const std::size_t at = random() % text.size();
    std::string found(random() % 3000 + 1, '?');
    found.resize(bytes->read_at(at, found.data(), found.size()));
    EXPECT_EQ(found, text.substr(at, found.size()));
    EXPECT_FALSE(found.empty());
  }
  char c = 0;
  EXPECT_EQ(bytes->read_at(text.size(), &c, 1), 0u);
  EXPECT_EQ(bytes->read_at(text.size() + 7, &c, 1), 0u);
}

TEST_F(TextBytesTest, CompressedMatrices) {
  write_text("x.csv.gz", compressed(table(50000)));
  for (const char* name : {"x.csv.gz", "x.csv", "x"}) {
    std::filesystem::rename(std::filesystem::exists("x.csv.gz") ? "x.csv.gz" : "x.csv", name);
    const auto reader = open_input({.path = name, .dataset = ""});
    EXPECT_EQ(reader->source().m, 50000);
    auto row = poisoned<double>(2);
    for (const index_t i : {49999, 3, 20000}) {
      reader->read_rows(0, i, {row.data(), 1, 2, 2});
      EXPECT_EQ(row[1], static_cast<double>(i * i));
    }
  }
}

TEST_F(TextBytesTest, Damage) {
  const std::string whole = compressed(table(1000));
  const auto read = [](const std::string& bytes) {
    write_text("x.csv.gz", bytes);
    return error_of<InputError>([] { open_input({.path = "x.csv.gz", .dataset = ""}); });
  };
  const std::string begin = "x.csv.gz: the gzip data is damaged (";
  const std::string hint = ") | gzip -t tests it; copy or download the file again";
  for (const std::size_t size :
       {whole.size() - 1, whole.size() / 2, std::size_t{12}, std::size_t{2}})
    EXPECT_EQ(read(whole.substr(0, size)), begin + "its end is missing" + hint);
  EXPECT_EQ(read(whole + "more"), begin + "incorrect header check" + hint);
  std::string changed = whole;
  changed[whole.size() - 6] ^= 1;  // the checksum
  EXPECT_EQ(read(changed), begin + "incorrect data check" + hint);
}

/// A small file that becomes huge is refused after the first piece that no table has.
TEST_F(TextBytesTest, Bombs) {
  for (const char* piece : {"0", "7"}) {
    std::string text(std::size_t{20} << 20, piece[0] == '0' ? '\0' : '7');
    write_text("x.csv.gz", compressed(text));
    EXPECT_EQ(error_of<InputError>([] { open_input({.path = "x.csv.gz", .dataset = ""}); }),
              "x.csv.gz:1:1: 262144 bytes without a separator or the end of the line: this is no "
              "table of numbers");
  }
}

}  // namespace
}  // namespace qrtool::text_bytes_test
