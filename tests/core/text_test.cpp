// SPDX-License-Identifier: Apache-2.0
#include "core/text.hpp"

#include <gtest/gtest.h>

#include <array>

namespace qrtool::text_test {
namespace {

TEST(Text, EscapesWhatSteersATerminal) {
  EXPECT_EQ(escape("plain/Größe"), "plain/Größe");
  EXPECT_EQ(escape("\x1b]0;pwned\x07"), "\\x1b]0;pwned\\x07");
  EXPECT_EQ(escape("a\nb\x7f"), "a\\x0ab\\x7f");
  EXPECT_EQ(escape("\xc2\x9b"
                   "31m\xc2\xa0"),
            "\\xc2\\x9b31m\xc2\xa0")
      << "C1: CSI";
}

TEST(Text, EscapesWhatIsNoUtf8) {
  for (const char* good : {"\xc2\xa0", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xf4\x8f\xbf\xbf"})
    EXPECT_EQ(escape(good), good);
  EXPECT_EQ(escape("\x9b"
                   "31m"),
            "\\x9b31m");
  EXPECT_EQ(escape("\xff\xfe"), "\\xff\\xfe");
  EXPECT_EQ(escape("\xc3("), "\\xc3(");
  EXPECT_EQ(escape("\xc3"), "\\xc3") << "cut";
  EXPECT_EQ(escape("\xe2\x82"), "\\xe2\\x82") << "cut";
  EXPECT_EQ(escape("\xc0\x8a"), "\\xc0\\x8a") << "a line feed that is too long";
  EXPECT_EQ(escape("\xe0\x82\x9b"), "\\xe0\\x82\\x9b") << "CSI that is too long";
  EXPECT_EQ(escape("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "half of a surrogate pair";
  EXPECT_EQ(escape("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80") << "beyond Unicode";
}

TEST(Text, WritesBytesInTheReadersUnit) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(1434), "1.4 KiB");
  EXPECT_EQ(format_bytes(std::uint64_t{512} << 20), "512 MiB");
  EXPECT_EQ(format_bytes((std::uint64_t{1} << 30) - 1), "1.0 GiB");
  EXPECT_EQ(format_bytes(~std::uint64_t{0}), "16 EiB");
}

TEST(Text, WritesShapesAndCounts) {
  const std::array<index_t, 2> leading{2, 3};
  EXPECT_EQ(format_shape(leading, 64, 32), "2x3x64x32");
  EXPECT_EQ(format_shape({}, 4, 5), "4x5");
  EXPECT_EQ(format_count(999), "999");
  EXPECT_EQ(format_count(15000), "15,000");
  EXPECT_EQ(format_count(1234567), "1,234,567");
}

TEST(Text, WritesSecondsWithThreeDigits) {
  EXPECT_EQ(format_seconds(0.00000035), "0.35 us");
  EXPECT_EQ(format_seconds(0.0124), "12.4 ms");
  EXPECT_EQ(format_seconds(3.21), "3.21 s");
  EXPECT_EQ(format_seconds(321), "321 s");
}

TEST(Text, SuggestsTheNearestWord) {
  const std::array<std::string_view, 3> words{"factor", "verify", "generate"};
  EXPECT_EQ(nearest("factro", words), "factor");
  EXPECT_EQ(nearest("verfy", words), "verify");
  EXPECT_EQ(nearest("bench", words), "");
  EXPECT_EQ(nearest("", words), "");
  EXPECT_EQ(nearest("VERIFY", words), "verify");
  EXPECT_EQ(nearest("gen", words), "generate");
  EXPECT_EQ(nearest("fa", words), "");
  const std::array<std::string_view, 5> short_words{"cpu", "opencl", "row", "column", "r"};
  EXPECT_EQ(nearest("gpu", short_words), "") << "another word, not a slip";
  EXPECT_EQ(nearest("col", short_words), "column");
  EXPECT_EQ(nearest("R", short_words), "r");
}

}  // namespace
}  // namespace qrtool::text_test
