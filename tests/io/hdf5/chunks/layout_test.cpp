// SPDX-License-Identifier: Apache-2.0
// layout_test.cpp: chunks that are stretches of the flat order.
#include "io/hdf5/chunks/layout.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace qrtool::hdf5::layout_test {
namespace {

using Dims = std::vector<hsize_t>;

TEST(MakeLayout, ChunksAreWholeMatricesUpToAMebibyte) {
  const auto chunk = [](std::vector<index_t> leading, std::vector<index_t> matrix) {
    return make_layout(leading, matrix, 4).chunk;
  };
  EXPECT_EQ(chunk({}, {4, 3}), (Dims{4, 3}));
  EXPECT_EQ(chunk({10}, {4, 3}), (Dims{10, 4, 3}));
  EXPECT_EQ(chunk({65}, {64, 64}), (Dims{33, 64, 64}));
  EXPECT_EQ(chunk({15000}, {64, 64}), (Dims{64, 64, 64}));
  EXPECT_EQ(chunk({10, 32}, {64, 64}), (Dims{2, 32, 64, 64}));
  EXPECT_EQ(chunk({10, 100}, {64, 64}), (Dims{1, 50, 64, 64}));
  EXPECT_EQ(chunk({10}, {1000, 1000}), (Dims{1, 250, 1000}));
  EXPECT_EQ(chunk({10}, {3, 1 << 20}), (Dims{1, 1, 1 << 18}));
  EXPECT_EQ(chunk({}, {5}), Dims{5});
  EXPECT_EQ(chunk({3, 0}, {4, 3}), Dims{});
  EXPECT_EQ(make_layout(std::vector<index_t>{10}, std::vector<index_t>{1000, 1000}, 4).file_bytes,
            40u * (1000000 + 36));
}

TEST(Stretches, CoverTheFlatOrder) {
  for (const auto& [dims, chunk] :
       {std::pair{Dims{7}, Dims{3}}, std::pair{Dims{10, 4, 3}, Dims{4, 4, 3}},
        std::pair{Dims{2, 7, 4, 3}, Dims{1, 3, 4, 3}},
        std::pair{Dims{2, 3, 5, 4}, Dims{1, 1, 2, 4}}, std::pair{Dims{2, 3, 5}, Dims{1, 1, 2}},
        std::pair{Dims{2, 3, 1}, Dims{1, 1, 1}}, std::pair{Dims{5, 1, 4}, Dims{1, 1, 4}},
        std::pair{Dims{3, 4}, Dims{8, 4}}, std::pair{Dims{1, 1, 1}, Dims{1, 1, 1}}}) {
    SCOPED_TRACE(testing::PrintToString(dims) + testing::PrintToString(chunk));
    const auto stretches = Stretches::of(dims, chunk);
    ASSERT_TRUE(stretches);
    EXPECT_EQ(stretches->chunk_elements(),
              std::accumulate(chunk.begin(), chunk.end(), index_t{1}, std::multiplies<>()));
    index_t next = 0;
    for (index_t i = 0; i < stretches->size(); ++i) {
      const Stretch stretch = (*stretches)[i];
      EXPECT_EQ(stretch.first, next);
      for (; next < stretch.first + stretch.count; ++next) {
        EXPECT_EQ(stretches->containing(next), i);
      }
      const Dims offset = stretches->offset(i);
      index_t flat = 0;
      for (std::size_t d = 0; d < dims.size(); ++d) {
        EXPECT_EQ(offset[d] % chunk[d], 0u);
        flat = flat * static_cast<index_t>(dims[d]) + static_cast<index_t>(offset[d]);
      }
      EXPECT_EQ(flat, stretch.first);
    }
    EXPECT_EQ(next, std::accumulate(dims.begin(), dims.end(), index_t{1}, std::multiplies<>()));
  }
}

TEST(Stretches, OtherChunksAreNone) {
  EXPECT_FALSE(Stretches::of(Dims{10, 4, 4}, Dims{1, 2, 2}));
  EXPECT_FALSE(Stretches::of(Dims{10, 4, 4}, Dims{10, 2, 4}));
  EXPECT_FALSE(Stretches::of(Dims{3, 4}, Dims{3, 8}));
  EXPECT_FALSE(Stretches::of(Dims{0, 4}, Dims{1, 4}));
  EXPECT_FALSE(Stretches::of(Dims{}, Dims{}));
}

}  // namespace
}  // namespace qrtool::hdf5::layout_test
