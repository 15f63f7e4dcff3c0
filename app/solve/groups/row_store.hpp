// SPDX-License-Identifier: Apache-2.0
// row_store.hpp: takes the rows of a table in any order of their groups, and gives them back group
// by group. What exceeds the memory goes to files without a name in the scratch directory.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/batch.hpp"
#include "io/file/scratch_file.hpp"

namespace qrtool {

/// The rows of one group, in the order of the file: in memory, or one after another in a file.
class GroupRows {
 public:
  GroupRows(const double* const* rows, index_t count) : rows_(rows), count_(count) {}
  GroupRows(const ScratchFile* file, std::uint64_t position, index_t count, index_t width)
      : file_(file), position_(position), count_(count), width_(width) {}

  index_t count() const { return count_; }
  GroupRows first(index_t count) const {
    GroupRows some = *this;
    some.count_ = count;
    return some;
  }

  /// Calls use(numbers) for each of `count` rows, beginning with row `first`. Only the call may
  /// look at the numbers.
  template <class Use>
  void visit(index_t first, index_t count, Use use) const {
    if (file_ == nullptr) {
      for (index_t i = first; i < first + count; ++i) use(rows_[i]);
      return;
    }
    const index_t at_once = std::max<index_t>(1, numbers_at_once / width_);
    std::vector<double> some(static_cast<std::size_t>(std::min(at_once, count) * width_));
    for (index_t done = 0; done < count; done += at_once) {
      const index_t rows = std::min(at_once, count - done);
      read(first + done, rows, some.data());
      for (index_t i = 0; i < rows; ++i) use(some.data() + i * width_);
    }
  }

 private:
  static constexpr index_t numbers_at_once = index_t{1} << 16;
  void read(index_t first, index_t rows, double* to) const;

  const double* const* rows_ = nullptr;
  const ScratchFile* file_ = nullptr;
  std::uint64_t position_ = 0;
  index_t count_ = 0, width_ = 0;
};

/// Stores rows and returns them by groups. First call add() for every row, then finish(), then
/// load() and rows_of() part by part. Errors: OutputError if the scratch directory has no room.
class RowStore {
 public:
  /// `numbers` of a row; `memory_bytes` for rows at the most, about; `scratch`: a directory.
  RowStore(index_t numbers, std::size_t memory_bytes, std::string scratch);

  void add(index_t group, std::span<const double> numbers);
  /// Takes how many rows were added of each group.
  void finish(std::span<const index_t> counts);

  /// Neighbouring groups whose rows are in memory together, or one group that is larger.
  struct Part {
    index_t first_group = 0, groups = 0, first_row = 0, rows = 0;
  };
  std::span<const Part> parts() const { return parts_; }
  /// Loads the rows of a part into memory, in the place of the part before. A part of one group
  /// that does not fit stays in its file.
  void load(const Part& part);
  /// Returns the memory that rows use now.
  std::size_t memory_bytes() const;
  /// Returns the rows of a group of the part that was loaded last.
  GroupRows rows_of(index_t group) const;

  /// The bytes of scratch files; 0: all rows are in memory.
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }

 private:
  std::uint64_t row_bytes() const { return static_cast<std::uint64_t>(width_) * sizeof(double); }
  bool fits(index_t rows) const;
  void spill();
  void make_parts();
  void distribute();
  void sort(const Part& part);
  template <class Use>
  void for_kept(index_t rows, Use use) const;

  index_t width_;           // of a row: its numbers, and its group
  std::size_t most_bytes_;  // of memory
  std::string scratch_;
  index_t block_rows_;
  std::vector<Batch<double>> blocks_;  // the last may be full in part
  index_t kept_ = 0, rows_ = 0;        // rows in the blocks; all
  ScratchFile added_, sorted_;         // rows as they came; by parts
  std::uint64_t scratch_bytes_ = 0;
  std::vector<index_t> starts_;  // the first row of each group, all groups one after another
  std::vector<Part> parts_;
  Part loaded_;
  bool is_loaded_ = false;
  std::vector<const double*> order_;  // rows of the loaded part by groups
};

}  // namespace qrtool
