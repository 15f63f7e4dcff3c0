// SPDX-License-Identifier: Apache-2.0
// header_test.cpp: what is written is read again, and what NumPy refuses is refused.
#include "io/npy/header.hpp"

#include "tests/io/file_test.hpp"

namespace qrtool::npy::header_test {
namespace {

/// Returns a header of version 1 with this text.
std::string header(const std::string& text) {
  return std::string(magic) + '\x01' + '\0' + static_cast<char>(text.size()) + '\0' + text;
}

std::string refusal(const std::string& text) {
  const std::string bytes = header(text);
  return error_of<InputError>([&] { parse_header(bytes, bytes.size() + 48, "a.npy"); });
}

TEST(NpyHeader, IsReadAsItWasWritten) {
  for (const std::vector<index_t>& dims :
       {std::vector<index_t>{}, {5}, {2, 3}, {1000000000, 4}, {1, 2, 3, 4, 5}}) {
    const std::string bytes = make_header("<f4", dims);
    EXPECT_EQ(bytes.size() % 64, 0u);
    index_t elements = 1;
    for (const index_t extent : dims) elements *= extent;
    const Header found =
        parse_header(bytes, bytes.size() + static_cast<std::uint64_t>(4 * elements), "a.npy");
    EXPECT_EQ(found.bytes, bytes.size());
    EXPECT_EQ(found.dims, dims);
    EXPECT_EQ(found.stored_type, "float32");
    EXPECT_FALSE(found.is_fortran);
  }
}

TEST(NpyHeader, OtherTextsOfTheSameDictionary) {
  for (const char* text :
       {"{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }",
        "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"=f8\"}",
        "{ 'descr' : 'f8' ,\n'fortran_order' : False, 'shape' : ( 2 , 3 , ) }  \n",
        "{'descr': '|f8', 'fortran_order': False, 'shape': (2L, 3L)}"}) {
    const std::string bytes = header(text);
    EXPECT_EQ(parse_header(bytes, bytes.size() + 48, "a.npy").dims, (std::vector<index_t>{2, 3}));
  }
}

TEST(NpyHeader, Refusals) {
  const auto with = [](const std::string& shape, const std::string& descr = "'<f8'") {
    return "{'descr': " + descr + ", 'fortran_order': False, 'shape': " + shape + "}";
  };
  EXPECT_EQ(refusal(with("(2, 3)")), "no error");
  EXPECT_EQ(refusal(with("(2, 4)")),
            "a.npy: truncated: 115 of 131 bytes (the header says 2x4 float64)");
  for (const char* shape :
       {"(2, -3)", "(2, 3.0)", "(2, 0x3)", "(2 3)", "(,)", "(2,, 3)", "[2, 3]", "(6)", "(02, 3)",
        "(2, 3) + (4,)", "(2, 3", "(1_0, 3)", "(2, 3l)", "(True, 6)", "((2, 3))"}) {
    EXPECT_TRUE(refusal(with(shape)).starts_with("a.npy: damaged header: ")) << shape;
  }
  for (const char* descr :
       {"'<f8", "<f8'", "'<f8' '<f8'", "u'<f8'", "'<f\\x38'", "[('x', '<f8')", "None"})
    EXPECT_TRUE(refusal(with("(2, 3)", descr)).starts_with("a.npy: damaged header: ")) << descr;
  for (const char* text : {" {}", "{}", "{'descr': '<f8'}", "{} {}", "{'x': 1}"})
    EXPECT_TRUE(refusal(text).starts_with("a.npy: damaged header: ")) << text;
}

TEST(NpyHeader, TypesThatAreNotTaken) {
  for (const char* descr : {"'<c32'", "'|O'", "'<U3'", "'|S4'", "'<M8[ns]'", "'|V2'", "'<f16'",
                            "'<f12'", "'float64'", "'<f1'", "'<b8'", "'<i16'", "''", "'<'",
                            "[('x', '<f4'), (('a title', 'y'), '<i4', (2,))]"}) {
    const std::string text =
        header("{'descr': " + std::string(descr) + ", 'fortran_order': True, 'shape': (2, 3)}");
    EXPECT_NE(parse_header(text, text.size() + 48, "a.npy").problem, "") << descr;
  }
}

}  // namespace
}  // namespace qrtool::npy::header_test
