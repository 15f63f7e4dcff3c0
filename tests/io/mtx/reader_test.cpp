// SPDX-License-Identifier: Apache-2.0
// reader_test.cpp: every kind of dense matrix is read, and everything else is named.
#include <gtest/gtest.h>

#include <random>

#include "tests/io/reading.hpp"

#include "io/open/input.hpp"

namespace qrtool::mtx_reader_test {
namespace {

class MtxReaderTest : public FileTest {};

const std::string banner = "%%MatrixMarket matrix array ";

std::unique_ptr<Reader> open_mtx_text(const std::string& text, const std::string& name = "x.mtx") {
  write_text(name, text);
  return open_input({.path = name, .dataset = ""});
}

TEST_F(MtxReaderTest, DenseMatrices) {
  const struct {
    std::string text;
    index_t m, n;
    std::vector<double> values;
  } cases[] = {
      {banner + "real general\n3 2\n1\n2\n3.5\n-4\n5e1\n6\n", 3, 2, {1, -4, 2, 50, 3.5, 6}},
      {banner + "Integer General\n% a comment\n\n 2 2 \n1\n+2\n\n -3 \n4", 2, 2, {1, -3, 2, 4}},
      {banner + "real symmetric\n3 3\n4\n1\n2\n5\n3\n6\n", 3, 3, {4, 1, 2, 1, 5, 3, 2, 3, 6}},
      {banner + "real skew-symmetric\n3 3\n1\n2\n3\n", 3, 3, {0, -1, -2, 1, 0, -3, 2, 3, 0}},
      {banner + "real symmetric\n1 1\n4\n", 1, 1, {4}},
      {banner + "real skew-symmetric\n1 1\n", 1, 1, {0}},
      {"%%matrixmarket MATRIX ARRAY double general\r\n1 2\r\n1\r\n2\r\n", 1, 2, {1, 2}}};
  for (const auto& each : cases) {
    for (const char* name : {"x.mtx", "x.csv", "x"}) {
      SCOPED_TRACE(each.text);
      const auto reader = open_mtx_text(each.text, name);
      EXPECT_EQ(reader->source().m, each.m);
      EXPECT_EQ(reader->source().n, each.n);
      EXPECT_EQ(reader->source().type, ElementType::float64);
      EXPECT_EQ(read_all<double>(*reader), each.values);
      auto last = poisoned<float>(each.n);
      reader->read_rows(0, each.m - 1, {last.data(), 1, each.n, each.n});
      EXPECT_EQ(last[0], each.values[static_cast<std::size_t>((each.m - 1) * each.n)]);
    }
  }
}

TEST_F(MtxReaderTest, WhatIsNotDenseOrNoNumbers) {
  const std::pair<std::string, std::string> cases[] = {
      {"coordinate real general\n5 5 1\n1 1 2.5\n",
       "x.mtx: a Matrix Market file with a sparse matrix (coordinate); only dense matrices (array) "
       "can be factored | make it dense: python3 -c \"import scipy.io as s; "
       "s.mmwrite('dense.mtx', s.mmread('x.mtx').toarray())\""},
      {"array real hermitian\n1 1\n1 2\n",
       "x.mtx: a Matrix Market file with a hermitian matrix of real numbers | write symmetric in "
       "place of hermitian"},
      {"array pattern general\n1 1\n",
       "x.mtx: a Matrix Market file with a pattern: it has no numbers | write the numbers, with "
       "the "
       "field real or integer"},
      {"list real general\n1 1\n1\n", "x.mtx:1:1: 'list' is no format; array is"},
      {"array rational general\n1 1\n1\n",
       "x.mtx:1:1: 'rational' is no field; real, complex and integer are"},
      {"array real triangular\n1 1\n1\n",
       "x.mtx:1:1: 'triangular' is no symmetry; general, symmetric, "
       "skew-symmetric and hermitian are"},
      {"array real\n1 1\n1\n",
       "x.mtx:1:1: the first line is no '%%MatrixMarket matrix FORMAT FIELD SYMMETRY'"}};
  for (const auto& each : cases)
    EXPECT_EQ(error_of<InputError>([&] { open_mtx_text("%%MatrixMarket matrix " + each.first); }),
              each.second);
}

TEST_F(MtxReaderTest, Damage) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "x.mtx: the line with the numbers of rows and columns is missing"},
      {"% 2 2\n", "x.mtx: the line with the numbers of rows and columns is missing"},
      {"2\n1\n", "x.mtx:2:1: 1 sizes where rows and columns must stand"},
      {"2 2 4\n1\n", "x.mtx:2:1: 3 sizes where rows and columns must stand"},
      {"2 -2\n1\n", "x.mtx:2:3: '-2' is no number of rows or columns"},
      {"2 2.0\n1\n", "x.mtx:2:3: '2.0' is no number of rows or columns"},
      {"1 99999999999999999999\n1\n",
       "x.mtx:2:3: '99999999999999999999' is no number of rows or columns"},
      {"9999999999 9999999999\n1\n",
       "x.mtx:2:1: 9999999999 x 9999999999 numbers are more than any file holds"},
      {"0 9223372036854775807\n",
       "x.mtx:2:1: 0 x 9223372036854775807 numbers are more than any file holds"},
      {"9223372036854775807 0\n",
       "x.mtx:2:1: 9223372036854775807 x 0 numbers are more than any file holds"},
      {"1000000000 1000000000\n1\n2\n",
       "x.mtx: the file ends after 2 of 1000000000000000000 numbers"},
      {"2 2\n1\n2\n3\n", "x.mtx: the file ends after 3 of 4 numbers"},
      {"1 2\n1\n2\n3\n", "x.mtx:5:1: more numbers than the 2 of 1 x 2"},
      {"1 2\n1 2\n", "x.mtx:3:3: more than one number in a line"},
      {"1 2\n1\nx\n", "x.mtx:4:1: 'x' is not a number"},
      {"1 2\n1\n 1d3\n", "x.mtx:4:2: '1d3' is not a number | write the exponent with e: 1e3"},
      {"1 2\n1\n1e999\n", "x.mtx:4:1: '1e999' is too large for float64"},
      {"1 2\n1\n% 2\n", "x.mtx:4:3: more than one number in a line"}};
  for (const auto& each : cases)
    EXPECT_EQ(error_of<InputError>([&] { open_mtx_text(banner + "real general\n" + each.first); }),
              each.second)
        << each.first;
  EXPECT_EQ(error_of<InputError>([] { open_mtx_text(banner + "integer general\n1 1\n1.5\n"); }),
            "x.mtx:3:1: '1.5' is no whole number, but the field is integer");
  EXPECT_EQ(error_of<InputError>([] { open_mtx_text(banner + "real symmetric\n2 3\n1\n"); }),
            "x.mtx:2:1: a 2 x 3 matrix cannot be symmetric, skew-symmetric or hermitian");
  const auto large = open_mtx_text(banner + "real general\n2 1\n1\n1e39\n");
  EXPECT_EQ(error_of<InputError>([&] { read_all<float>(*large); }),
            "x.mtx: 1e+39 in row 2, column 1 is too large for float32 | use --precision double");
  EXPECT_EQ(error_of<UsageError>([] {
              open_mtx_text(banner + "real general\n1 1\n1\n");
              open_input({.path = "x.mtx", .dataset = "", .csv = {.delimiter = ';'}});
            }),
            "x.mtx: no CSV file, but there are options of CSV: --delimiter");
}

TEST_F(MtxReaderTest, AnyRows) {
  constexpr index_t m = 77, n = 41;
  std::string text = banner + "real general\n" + std::to_string(m) + " " + std::to_string(n) + "\n";
  for (index_t at = 0; at < m * n; ++at) text += std::to_string(at) + "\n";
  const auto reader = open_mtx_text(text);
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const index_t row = random() % m, rows = random() % (m - row) + 1;
    auto values = poisoned<double>(rows * n);
    reader->read_rows(0, row, {values.data(), rows, n, n});
    for (index_t at = 0; at < rows * n; ++at)
      ASSERT_EQ(values[static_cast<std::size_t>(at)],
                static_cast<double>(at % n * m + row + at / n));
  }
}

}  // namespace
}  // namespace qrtool::mtx_reader_test
