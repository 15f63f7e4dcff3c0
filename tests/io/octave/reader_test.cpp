// SPDX-License-Identifier: Apache-2.0
// reader_test.cpp: matrices of numbers are read as Octave shows them, and everything else is named.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/io/reading.hpp"

#include "io/open/contents.hpp"
#include "io/open/input.hpp"

namespace qrtool::octave_reader_test {
namespace {

class OctaveReaderTest : public FileTest {};

const std::string head = "# Created by Octave 7.3.0, Fri Nov 27 13:48:16 2026 UTC <user@host>\n";

std::string variable(const std::string& name, const std::string& type, const std::string& rest) {
  return "# name: " + name + "\n# type: " + type + "\n" + rest + "\n\n";
}

std::unique_ptr<Reader> open_octave_text(const std::string& text, const std::string& dataset = "") {
  write_text("x.txt", head + text);
  return open_input({.path = "x.txt", .dataset = dataset, .takes_complex = true});
}

TEST_F(OctaveReaderTest, MatricesOfEveryType) {
  const std::string sizes = "# rows: 2\n# columns: 3\n", pages = "# ndims: 3\n 2 1 2\n";
  const struct {
    std::string type, rest;
    std::vector<index_t> leading;
    index_t m, n;
    ElementType element;
    std::vector<double> values;  // of complex numbers both parts
  } cases[] = {
      {"matrix",
       sizes + " 1 2 3\n 4 -5e-3 6\n",
       {},
       2,
       3,
       ElementType::float64,
       {1, 2, 3, 4, -5e-3, 6}},
      {"global matrix",
       sizes + " 1 2 3\n 4 5 6\n",
       {},
       2,
       3,
       ElementType::float64,
       {1, 2, 3, 4, 5, 6}},
      {"float matrix",
       "# rows: 1\n# columns: 1\n 0.3333333432674408\n",
       {},
       1,
       1,
       ElementType::float32,
       {1.0F / 3}},
      {"complex matrix",
       "# rows: 1\n# columns: 2\n (1,2) (-0.5,-4e3)\n",
       {},
       1,
       2,
       ElementType::complex128,
       {1, 2, -0.5, -4e3}},
      {"float complex matrix",
       "# rows: 1\n# columns: 1\n (1,2)\n",
       {},
       1,
       1,
       ElementType::complex64,
       {1, 2}},
      {"matrix", pages + " 1\n 2\n 3\n 4\n", {2}, 2, 1, ElementType::float64, {1, 2, 3, 4}},
      {"complex matrix",
       "# ndims: 4\n 1 2 1 2\n (1,5)\n (2,6)\n (3,7)\n (4,8)\n",
       {2, 1},
       1,
       2,
       ElementType::complex128,
       {1, 5, 2, 6, 3, 7, 4, 8}},
      {"int8 matrix",
       "# ndims: 2\n 2 2\n 1\n 3\n 2\n 4\n",
       {},
       2,
       2,
       ElementType::float64,
       {1, 2, 3, 4}},
      {"scalar", "7\n", {}, 1, 1, ElementType::float64, {7}},
      {"complex scalar", "(1,-2)\n", {}, 1, 1, ElementType::complex128, {1, -2}},
      {"bool", "1\n", {}, 1, 1, ElementType::float64, {1}},
      {"matrix", "# rows: 0\n# columns: 3\n", {}, 0, 3, ElementType::float64, {}},
      {"matrix", "# ndims: 3\n 2 0 3\n", {3}, 2, 0, ElementType::float64, {}}};
  for (const auto& each : cases) {
    SCOPED_TRACE(each.type + "\n" + each.rest);
    const auto reader = open_octave_text(variable("a", each.type, each.rest));
    const Source& source = reader->source();
    EXPECT_EQ(source.dataset, "/a");
    EXPECT_EQ(source.leading, each.leading);
    EXPECT_EQ(source.m, each.m);
    EXPECT_EQ(source.n, each.n);
    EXPECT_EQ(source.type, each.element);
    const index_t columns = is_complex(source.type) ? 2 * source.n : source.n;
    auto values = poisoned<double>(source.count() * source.m * columns);
    reader->read(0, packed(values.data(), source.count(), source.m, columns));
    EXPECT_EQ(values, each.values);
  }
}

TEST_F(OctaveReaderTest, WhatIsNotFinite) {
  const auto reader =
      open_octave_text(variable("a", "matrix", "# rows: 1\n# columns: 4\n Inf -Inf NaN NA\n"));
  const std::vector<double> values = read_all<double>(*reader);
  EXPECT_EQ(values[0], std::numeric_limits<double>::infinity());
  EXPECT_EQ(values[1], -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(values[2]) && std::isnan(values[3]));
}

TEST_F(OctaveReaderTest, OneOfSeveral) {
  const std::string one = "# rows: 1\n# columns: 1\n 1\n", two = "# rows: 1\n# columns: 1\n 2\n";
  const std::string text = variable("t", "string", "# elements: 1\n# length: 1\nx\n") +
                           variable("a", "matrix", one) + variable("b", "matrix", two);
  EXPECT_EQ(read_all<double>(*open_octave_text(text, "/b")), std::vector{2.0});
  EXPECT_EQ(read_all<double>(*open_octave_text(text, "a")), std::vector{1.0});
  const std::pair<std::string, std::string> cases[] = {
      {"",
       "x.txt: 2 variables of numbers: /a (1x1 float64), /b (1x1 float64) | choose one, as in "
       "x.txt:/a"},
      {"/c", "x.txt: there is no variable /c | choose one of /t, /a, /b"},
      {"/t", "x.txt: /t is a string"}};
  for (const auto& each : cases)
    EXPECT_EQ(error_of<InputError>([&] { open_octave_text(text, each.first); }), each.second);
  std::vector<std::string> names;
  for (const Entry& entry : list_entries("x.txt")) names.push_back(entry.name + entry.problem);
  EXPECT_EQ(names, (std::vector<std::string>{"/tis a string", "/a", "/b"}));
}

TEST_F(OctaveReaderTest, OtherTypes) {
  const std::string after = variable("b", "scalar", "2\n");
  const std::string apart = "save the variables that are wanted in a file of their own";
  const std::pair<std::string, std::string> cases[] = {
      {variable("a", "sparse matrix", "# nnz: 1\n# rows: 1\n# columns: 1\n1 1 3\n"),
       "x.txt: /a is a sparse matrix | in Octave: a = full(a), and save it again"},
      {variable("a", "double_range", "# base, limit, increment\n1 5 1\n"),
       "x.txt: /a is a double_range | in Octave: a = full(a), and save it again"},
      {variable("a", "cell", "# rows: 1\n# columns: 1\n" + after),
       "x.txt: /a is a cell, which ends what is read | " + apart},
      {variable("a", "scalar struct", "# ndims: 2\n 1 1\n# length: 1\n" + after),
       "x.txt: /a is a scalar struct, which ends what is read | " + apart},
      {"", "x.txt: holds no matrices"}};
  for (const auto& each : cases)
    EXPECT_EQ(error_of<InputError>([&] { open_octave_text(each.first); }), each.second);
  // What follows other types is found, but for those that hold variables.
  EXPECT_EQ(open_octave_text(cases[0].first + after)->source().dataset, "/b");
  EXPECT_EQ(error_of<InputError>([&] { open_octave_text(cases[2].first + after, "b"); }),
            "x.txt: there is no variable /b; /a is a cell, which ends what is read | " + apart);
  EXPECT_EQ(error_of<InputError>([&] {
              open_octave_text(variable("d", "string", "") + variable("c", "scalar", "1\n") +
                                   cases[2].first + after,
                               "b");
            }),
            "x.txt: there is no variable /b; /a is a cell, which ends what is read | choose one of "
            "/c; or " +
                apart);
}

/// One variable tells the format where the first line is damaged or missing.
TEST_F(OctaveReaderTest, TextWithoutTheFirstLine) {
  const std::string sparse =
      variable("S", "sparse matrix", "# nnz: 1\n# rows: 1\n# columns: 1\n1 1 5");
  const std::string dense = variable("a", "matrix", "# rows: 1\n# columns: 2\n 1 2");
  for (const std::string first :
       {"", "# Created by 0ctave 7.3.0\n", "X Created by Octave 7.3.0\n"}) {
    write_text("x.txt", first + sparse);
    EXPECT_EQ(error_of<InputError>([] { open_input({.path = "x.txt", .dataset = ""}); }),
              "x.txt: /S is a sparse matrix | in Octave: S = full(S), and save it again");
    write_text("x.txt", first + dense);
    EXPECT_EQ(open_input({.path = "x.txt", .dataset = ""})->source().dataset, "/a");
  }
  // Comments of a table may begin like this.
  write_text("x.txt", "# name: height\n# type: metres\n1 2\n3 4\n");
  EXPECT_EQ(open_input({.path = "x.txt", .dataset = ""})->source().m, 2);
}

TEST_F(OctaveReaderTest, Damage) {
  const std::pair<std::string, std::string> cases[] = {
      {"# name: a\n", "x.txt: the file ends too early"},
      {"# name: a\n# rows: 1\n", "x.txt:3:1: '# type: ' must stand here"},
      {"# name: a\n# type: matrix\n# columns: 1\n", "x.txt:4:1: '# rows: ' must stand here"},
      {"# name: a\n# type: matrix\n# rows: 1\n", "x.txt: the file ends too early"},
      {"# name: a\n# type: matrix\n# rows: -1\n",
       "x.txt:4:1: '-1' is no number of rows or columns"},
      {"# name: a\n# type: matrix\n# ndims: 1\n 3\n",
       "x.txt:5:1: an array has two or more dimensions"},
      {"# name: a\n# type: matrix\n# ndims: 2\n 3 2 2\n", "x.txt:5:1: 3 sizes where 2 must stand"},
      {"# name: a\n# type: matrix\n# ndims: 1e400\n 3 2\n",
       "x.txt:4:1: '1e400' is no number of rows or columns"},
      {"# name: a\n# type: matrix\n# rows: 3\n# columns: \n",
       "x.txt:5:1: the number of rows or columns is missing"},
      {"# name: a\n# type: matrix\n# ndims: 3\n 0 9999999999 9999999999\n",
       "x.txt:5:1: more numbers than any file holds"},
      {variable("a", "matrix", "# rows: 2\n# columns: 2\n 1 2\n 3\n"),
       "x.txt:7:1: 1 numbers where 2 must stand"},
      {variable("a", "matrix", "# rows: 3\n# columns: 1\n 1\n 2"),
       "x.txt:8:1: 0 numbers where 1 must stand"},
      {"# name: a\n# type: matrix\n# rows: 3\n# columns: 1\n 1\n 2\n",
       "x.txt: the file ends after 2 of 3 numbers"},
      {variable("a", "matrix", "# rows: 1\n# columns: 1\n 1\n 2\n"),
       "x.txt:7:1: more numbers than the 1 of /a"},
      {variable("a", "matrix", "# rows: 0\n# columns: 2\n 1 2\n"),
       "x.txt:6:1: more numbers than the 0 of /a"},
      {variable("a", "matrix", "# rows: 1\n# columns: 2\n 1 x\n"),
       "x.txt:6:4: 'x' is not a number"},
      {variable("a", "float matrix", "# rows: 1\n# columns: 1\n 1e39\n"),
       "x.txt:6:2: '1e39' is too large for its type"},
      {variable("a", "complex matrix", "# rows: 1\n# columns: 1\n 1+2i\n"),
       "x.txt:6:2: '1+2i' is no complex number like (1,2)"},
      {variable("a", "complex matrix", "# rows: 1\n# columns: 1\n (1,)\n"),
       "x.txt:6:2: '(1,)' is no complex number like (1,2)"}};
  for (const auto& each : cases)
    EXPECT_EQ(error_of<InputError>([&] { open_octave_text(each.first); }), each.second)
        << each.first;
}

}  // namespace
}  // namespace qrtool::octave_reader_test
