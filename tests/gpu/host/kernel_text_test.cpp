// SPDX-License-Identifier: Apache-2.0
// kernel_text_test.cpp: a part of a kernel file has the kernels that are wanted, and its lines have
// their numbers.
#include "gpu/host/kernel_text.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "gpu/host/kernel_sources.hpp"

namespace qrtool::test::kernel_text_test {
namespace {

constexpr std::string_view text =
    "float twice(float x) {\n"
    "  return 2 * x;\n"
    "}\n"
    "__kernel void first(__global float* a) {\n"
    "  if (a[0] > 0) {\n"
    "    a[0] = twice(a[0]);\n"
    "  }\n"
    "}\n"
    "\n"
    "__kernel __attribute__((reqd_work_group_size(1, 1, 1))) void second(\n"
    "    __global float* a) {\n"
    "  a[1] = 0;\n"
    "}\n"
    "__kernel void TILED(third)(__global float* a) {\n"
    "  a[2] = 0;\n"
    "}\n"
    "// end\n";

std::ptrdiff_t lines(std::string_view of) { return std::ranges::count(of, '\n'); }

TEST(KernelText, APartHasItsKernelsAndAllFunctions) {
  const std::string part = with_kernels(text, {"second"});
  EXPECT_EQ(part.find("first"), std::string::npos);
  EXPECT_NE(part.find("void second("), std::string::npos);
  EXPECT_NE(part.find("a[1] = 0;"), std::string::npos);
  EXPECT_NE(part.find("float twice"), std::string::npos);
  EXPECT_TRUE(part.ends_with("// end\n"));
}

TEST(KernelText, LinesKeepTheirNumbers) {
  const std::string part = with_kernels(text, {"second"});
  ASSERT_EQ(lines(part), lines(text));
  const auto line_of = [](std::string_view of, std::string_view word) {
    return lines(of.substr(0, of.find(word)));
  };
  EXPECT_EQ(line_of(part, "a[1]"), line_of(text, "a[1]"));
  EXPECT_EQ(line_of(part, "// end"), line_of(text, "// end"));
}

TEST(KernelText, AKernelWhoseNameIsAMacroStays) {
  EXPECT_NE(with_kernels(text, {"first"}).find("TILED(third)"), std::string::npos);
}

TEST(KernelText, AllKernelsAreTheWholeFile) {
  EXPECT_EQ(with_kernels(text, {"first", "second"}), text);
}

/// A kernel that is not found as such would be in every part of its file.
TEST(KernelText, EveryKernelOfAVariantCanBeLeftOut) {
  for (const KernelSource& source : kernel_sources()) {
    const bool is_of_variant = source.name.starts_with("gpu/gram/") ||
                               source.name.starts_with("gpu/reflectors/") ||
                               source.name.starts_with("gpu/composed/");
    if (!is_of_variant) continue;
    const std::string nothing = with_kernels(source.text, {});
    EXPECT_EQ(lines(nothing), lines(source.text)) << source.name;
    static const testing::Matcher<std::string> plain =
        testing::ContainsRegex("__kernel[^{]*void [a-z_0-9]+\\(");
    EXPECT_FALSE(plain.Matches(nothing)) << source.name;
  }
}

}  // namespace
}  // namespace qrtool::test::kernel_text_test
