// SPDX-License-Identifier: Apache-2.0
// reader_test.cpp: whole matrices, ranges and rows of arrays that are larger than a piece.
#include "io/npy/reader.hpp"

#include <cmath>
#include <cstring>

#include "io/npy/numbers.hpp"
#include "tests/io/file_test.hpp"

namespace qrtool::npy::npy_reader_test {
namespace {

class NpyReaderTest : public FileTest {};

/// Returns entry e of the numbers in C order.
double number(index_t e) { return static_cast<double>(e * 7919 % 100003) - 50000; }

std::string header(const std::string& descr, bool is_fortran, const std::vector<index_t>& dims) {
  std::string text = make_header(descr, dims);
  if (is_fortran) text.replace(text.find("False"), 5, "True ");
  return text;
}

/// Writes a file of the numbers, as float32 in C or in Fortran order.
void write_array(const std::string& name, const std::vector<index_t>& dims, bool is_fortran) {
  std::string bytes = header("<f4", is_fortran, dims);
  const std::size_t start = bytes.size();
  index_t elements = 1;
  for (const index_t extent : dims) elements *= extent;
  bytes.resize(start + static_cast<std::size_t>(elements) * sizeof(float));
  for (index_t e = 0; e < elements; ++e) {
    index_t place = e;
    if (is_fortran) {
      index_t rest = e, at = 0;
      std::vector<index_t> index(dims.size());
      for (std::size_t d = dims.size(); d-- > 0; rest /= dims[d]) index[d] = rest % dims[d];
      for (std::size_t d = dims.size(); d-- > 0;) at = at * dims[d] + index[d];
      place = at;
    }
    const auto value = static_cast<float>(number(e));
    std::memcpy(&bytes[start + static_cast<std::size_t>(place) * sizeof value], &value,
                sizeof value);
  }
  write_text(name, bytes);
}

template <class T>
void expect_range(Reader& reader, index_t first, index_t count) {
  const index_t size = reader.source().m * reader.source().n;
  auto found = poisoned<T>(count * size);
  reader.read(first, packed(found.data(), count, reader.source().m, reader.source().n));
  for (index_t e = 0; e < count * size; ++e)
    ASSERT_EQ(found[static_cast<std::size_t>(e)], static_cast<T>(number(first * size + e))) << e;
}

template <class T>
void expect_rows(Reader& reader, index_t matrix, index_t first, index_t rows) {
  const index_t m = reader.source().m, n = reader.source().n;
  auto found = poisoned<T>(rows * n);
  reader.read_rows(matrix, first, MatrixView<T>{found.data(), rows, n, n});
  for (index_t e = 0; e < rows * n; ++e)
    ASSERT_EQ(found[static_cast<std::size_t>(e)],
              static_cast<T>(number((matrix * m + first) * n + e)));
}

TEST_F(NpyReaderTest, EveryRangeOfEveryOrder) {
  // The shapes are small matrices, matrices larger than a piece of 1 MiB, long and wide ones, and
  // matrices with three leading dimensions, also of one number each.
  const std::vector<std::vector<index_t>> shapes{{70, 60},        {300000, 3},    {3, 300000},
                                                 {700, 900},      {5000, 9, 7},   {3, 600, 700},
                                                 {2, 3, 4, 5, 6}, {4, 1, 3, 1, 1}};
  for (const auto& dims : shapes) {
    for (const bool is_fortran : {false, true}) {
      write_array("a.npy", dims, is_fortran);
      for (const int threads : {1, 3}) {
        const auto reader = open_npy({.path = "a.npy", .dataset = {}, .threads = threads});
        const index_t count = reader->source().count(), m = reader->source().m;
        expect_range<float>(*reader, 0, count);
        expect_range<double>(*reader, count / 2, (count + 1) / 2);
        expect_rows<float>(*reader, count - 1, m / 3, m - m / 3);
        expect_rows<double>(*reader, 0, 0, std::min<index_t>(m, 2));
      }
    }
  }
}

TEST_F(NpyReaderTest, AnotherReaderReadsTheSame) {
  write_array("a.npy", {4, 3, 5}, true);
  write_array("b.npy", {4, 3, 5}, false);
  EXPECT_EQ(open_npy({.path = "a.npy", .dataset = {}})->another(), nullptr);
  const auto reader = open_npy({.path = "b.npy", .dataset = {}});
  expect_range<double>(*reader->another(), 1, 3);
}

TEST_F(NpyReaderTest, OnlyABatchInFortranOrderNeedsACopy) {
  for (const auto& [dims, needs] : {std::pair<std::vector<index_t>, bool>{{4, 3, 5}, true},
                                    {{4, 3}, false},
                                    {{1, 4, 3}, false},
                                    {{4, 1, 1}, false},
                                    {{1, 4, 1, 1}, false},
                                    {{4, 3, 1, 1}, true}}) {
    write_array("a.npy", dims, true);
    EXPECT_EQ(open_npy({.path = "a.npy", .dataset = {}})->source().needs_copy, needs);
  }
}

TEST_F(NpyReaderTest, AChangeIsNoticed) {
  write_array("a.npy", {30, 5}, false);
  const auto reader = open_npy({.path = "a.npy", .dataset = {}});
  std::filesystem::resize_file("a.npy", 400);
  auto found = poisoned<float>(150);
  EXPECT_EQ(error_of<InputError>([&] { reader->read(0, packed(found.data(), 1, 30, 5)); }),
            "a.npy: truncated: 400 of 728 bytes");
  EXPECT_NE(error_of<InputError>([&] { reader->require_unchanged(); }), "no error");
}

TEST_F(NpyReaderTest, TheFirstNumberThatIsTooLargeIsNamed) {
  std::string bytes = make_header("<f8", std::vector<index_t>{3, 2, 2});
  const double values[12] = {1, 2, INFINITY, 4, 5, 1e39, 7, 8, 9, -1e300, 11, NAN};
  bytes.append(reinterpret_cast<const char*>(values), sizeof values);
  write_text("a.npy", bytes);
  const auto reader = open_npy({.path = "a.npy", .dataset = {}, .threads = 3});
  auto narrow = poisoned<float>(12);
  EXPECT_EQ(
      error_of<InputError>([&] { reader->read(0, packed(narrow.data(), 3, 2, 2)); }),
      "a.npy: holds a number at matrix 1 that is too large for float32 | use --precision double");
  auto wide = poisoned<double>(12);
  reader->read(0, packed(wide.data(), 3, 2, 2));
  EXPECT_EQ(wide[9], -1e300);
  reader->read(0, packed(narrow.data(), 1, 2, 2));
  EXPECT_EQ(narrow[2], INFINITY);
}

TEST(NpyNumbers, EveryType) {
  const auto convert_one = [](const NumberType& type, std::initializer_list<int> bytes) {
    std::vector<std::byte> stored;
    for (const int byte : bytes) stored.push_back(static_cast<std::byte>(byte));
    double number = NAN;
    EXPECT_EQ(convert(type, stored.data(), 1, &number), 1);
    return number;
  };
  EXPECT_EQ(convert_one({.kind = Kind::floating, .bytes = 2, .is_swapped = false}, {0x01, 0x00}),
            0x1p-24);
  EXPECT_EQ(convert_one({.kind = Kind::floating, .bytes = 2, .is_swapped = true}, {0xfb, 0xff}),
            -65504);
  EXPECT_EQ(convert_one({.kind = Kind::floating, .bytes = 2, .is_swapped = false}, {0x00, 0x7c}),
            INFINITY);
  EXPECT_TRUE(std::isnan(
      convert_one({.kind = Kind::floating, .bytes = 2, .is_swapped = false}, {0x01, 0x7c})));
  EXPECT_EQ(convert_one({.kind = Kind::floating, .bytes = 4, .is_swapped = true}, {0xc0, 0, 0, 0}),
            -2);
  EXPECT_EQ(convert_one({.kind = Kind::floating, .bytes = 8, .is_swapped = true},
                        {0x40, 0x08, 0, 0, 0, 0, 0, 0}),
            3);
  EXPECT_EQ(convert_one({.kind = Kind::signed_integer, .bytes = 1, .is_swapped = false}, {0x80}),
            -128);
  EXPECT_EQ(convert_one({.kind = Kind::unsigned_integer, .bytes = 1, .is_swapped = false}, {0x80}),
            128);
  EXPECT_EQ(
      convert_one({.kind = Kind::signed_integer, .bytes = 2, .is_swapped = true}, {0xff, 0xfe}),
      -2);
  EXPECT_EQ(convert_one({.kind = Kind::signed_integer, .bytes = 8, .is_swapped = false},
                        {0, 0, 0, 0, 0, 0, 0, 0x80}),
            -0x1p63);
  EXPECT_EQ(convert_one({.kind = Kind::unsigned_integer, .bytes = 8, .is_swapped = false},
                        {0, 0, 0, 0, 0, 0, 0, 0x80}),
            0x1p63);
  EXPECT_EQ(convert_one({.kind = Kind::boolean, .bytes = 1, .is_swapped = false}, {2}),
            1);  // as NumPy does
}

}  // namespace
}  // namespace qrtool::npy::npy_reader_test
