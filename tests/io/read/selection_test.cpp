// SPDX-License-Identifier: Apache-2.0
// selection_test.cpp: selections mean what they mean in Python.
#include "io/read/selection.hpp"

#include "core/error.hpp"
#include "tests/io/file_test.hpp"

namespace qrtool::selection_test {
namespace {

/// The indices that a selection of one dimension takes, before a matrix of 2 x 2.
std::vector<index_t> indices(const std::string& text, index_t extent) {
  const std::vector<index_t> dims{extent, 2, 2};
  const Range range = resolve(split_selection(text).selection, dims, "A").front();
  std::vector<index_t> found;
  for (index_t i = 0; i < range.count; ++i) found.push_back(range.first + i * range.step);
  return found;
}

TEST(Selection, FollowsPythonsRules) {
  using Indices = std::vector<index_t>;
  EXPECT_EQ(indices("[1:3]", 5), (Indices{1, 2}));
  EXPECT_EQ(indices("[:]", 3), (Indices{0, 1, 2}));
  EXPECT_EQ(indices("[::2]", 5), (Indices{0, 2, 4}));
  EXPECT_EQ(indices("[::2]", 4), (Indices{0, 2}));
  EXPECT_EQ(indices("[ 1 : : 3 ]", 8), (Indices{1, 4, 7}));
  EXPECT_EQ(indices("[-2:]", 5), (Indices{3, 4}));
  EXPECT_EQ(indices("[:-2]", 5), (Indices{0, 1, 2}));
  EXPECT_EQ(indices("[-9:2]", 5), (Indices{0, 1}));
  EXPECT_EQ(indices("[3:99]", 5), (Indices{3, 4}));
  EXPECT_EQ(indices("[-1]", 5), (Indices{4}));
  EXPECT_EQ(indices("[+2]", 5), (Indices{2}));
  for (const char* empty : {"[5:]", "[3:3]", "[4:2]", "[9:12]", "[:-5]", "[:0]"}) {
    EXPECT_EQ(indices(empty, 5), Indices{}) << empty;
  }
  EXPECT_EQ(indices("[:]", 0), Indices{});
  EXPECT_EQ(indices("[9223372036854775806:9223372036854775807]", 5), Indices{});
  EXPECT_EQ(indices("[-9223372036854775808::9223372036854775807]", 5), Indices{0});
}

TEST(Selection, DimensionsThatAreNotNamedAreWhole) {
  const std::vector<index_t> dims{7, 6, 5, 4};
  const auto counts = [&](const std::string& text) {
    std::vector<index_t> all;
    for (const Range& range : resolve(split_selection(text).selection, dims, "A"))
      all.push_back(range.is_dropped ? -1 : range.count);
    return all;
  };
  using Counts = std::vector<index_t>;
  EXPECT_EQ(counts(""), (Counts{7, 6, 5, 4}));
  EXPECT_EQ(counts("[2]"), (Counts{-1, 6, 5, 4}));
  EXPECT_EQ(counts("[:3,2]"), (Counts{3, -1, 5, 4}));
  EXPECT_EQ(counts("[...,:3]"), (Counts{7, 6, 5, 3}));
  EXPECT_EQ(counts("[1,...,:3]"), (Counts{-1, 6, 5, 3}));
  EXPECT_EQ(counts("[1,2,:1,:3,...]"), (Counts{-1, -1, 1, 3}));
}

TEST(Selection, PathsAndText) {
  EXPECT_EQ(split_selection("/g/A[::2, :]").path, "/g/A");
  EXPECT_EQ(split_selection("/g/A[::2, :]").selection.text, "[::2,:]");
  EXPECT_EQ(split_selection("/g/A").path, "/g/A");
  EXPECT_TRUE(split_selection("/g/A").selection.is_empty());
  EXPECT_EQ(split_selection("[1:]").path, "");
}

TEST(Selection, Refusals) {
  const auto usage = [](const std::string& text) {
    const std::string error = error_of<UsageError>([&] { split_selection(text); });
    return error.substr(0, error.find(" | "));
  };
  EXPECT_EQ(usage("/A[0:3"), "'/A[0:3': a selection ends with ']'");
  EXPECT_EQ(usage("/A[0:3]x"), "'/A[0:3]x': a selection ends with ']'");
  EXPECT_EQ(usage("/A[x]"), "'/A[x]': 'x' is not a whole number");
  EXPECT_EQ(usage("/A[1.5]"), "'/A[1.5]': '1.5' is not a whole number");
  EXPECT_EQ(usage("/A[]"), "'/A[]': a slice is missing; ':' is a whole dimension");
  EXPECT_EQ(usage("/A[1,,2]"), "'/A[1,,2]': a slice is missing; ':' is a whole dimension");
  EXPECT_EQ(usage("/A[::0]"), "'/A[::0]': the step 0 is not positive");
  EXPECT_EQ(usage("/A[::-1]"), "'/A[::-1]': the step -1 is not positive");
  EXPECT_EQ(usage("/A[1:2:3:4]"), "'/A[1:2:3:4]': '1:2:3:4' has too many colons");
  EXPECT_EQ(usage("/A[...,...]"), "'/A[...,...]': '...' stands twice");
  EXPECT_EQ(usage("/A[99999999999999999999]"),
            "'/A[99999999999999999999]': '99999999999999999999' is not a whole number");
  const std::vector<index_t> dims{3, 5, 4};
  const auto input = [&](const std::string& text) {
    return error_of<InputError>(
        [&] { resolve(split_selection(text).selection, dims, "f:" + text); });
  };
  EXPECT_EQ(input("[3]"), "f:[3]: the index 3 is outside dimension 0, of 3");
  EXPECT_EQ(input("[-4]"), "f:[-4]: the index -4 is outside dimension 0, of 3");
  EXPECT_EQ(input("[0,-1]"),
            "f:[0,-1]: the index -1 takes dimension 1, of 5, from the matrix | 4:5 keeps it");
  EXPECT_EQ(input("[:,:,:,:]"), "f:[:,:,:,:]: 4 slices for 3 dimensions (3x5x4)");
}

}  // namespace
}  // namespace qrtool::selection_test
