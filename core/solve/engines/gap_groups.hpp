// SPDX-License-Identifier: Apache-2.0
// gap_groups.hpp: which right sides with gaps are solved together: those that leave out the same
// rows share R. Private to core/solve.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

/// One bit per row and right side, set if the right side leaves the row out.
class GapMasks {
 public:
  GapMasks(std::size_t sides, index_t rows)
      : words_(static_cast<std::size_t>((rows + 63) / 64)), bits_(sides * words_) {}

  void set(std::size_t side, index_t row) {
    bits_[side * words_ + static_cast<std::size_t>(row / 64)] |= std::uint64_t{1} << (row % 64);
  }
  std::span<const std::uint64_t> operator[](std::size_t side) const {
    return std::span(bits_).subspan(side * words_, words_);
  }

 private:
  std::size_t words_;
  std::vector<std::uint64_t> bits_;
};

/// Orders the numbers of right sides, `gaps`, whose masks are given in the same order, and cuts
/// them into groups. A mask that 2 `lanes` or more right sides have gets groups of at most `most`;
/// the others get groups of `lanes` in ascending order. The groups are parts of `gaps`.
std::vector<std::span<const index_t>> group_by_mask(std::vector<index_t>& gaps,
                                                    const GapMasks& masks, std::size_t lanes,
                                                    std::size_t most);

/// Takes the right sides with gaps that each worker has put aside in its `gaps`. The result is in
/// ascending order.
template <class Worker>
std::vector<index_t> take_gaps(std::vector<Worker>& workers) {
  std::vector<index_t> all;
  for (Worker& worker : workers) {
    all.insert(all.end(), worker.gaps.begin(), worker.gaps.end());
    worker.gaps.clear();
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace qrtool
