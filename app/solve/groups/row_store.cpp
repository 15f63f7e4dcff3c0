// SPDX-License-Identifier: Apache-2.0
// row_store.cpp: the groups are known only when all rows have come. Rows that are not in memory
// then go once from file to file: each part, which fits the memory, gets its place in the second.
#include "app/solve/groups/row_store.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace qrtool {
namespace {

constexpr std::uint64_t row_block_bytes = std::uint64_t{1} << 20;
/// The bytes of a piece in which a part of a file is written, if there is room for one piece of
/// each part.
constexpr std::uint64_t piece_bytes = std::uint64_t{1} << 18;

/// The group stands behind the numbers of a row, as bits.
double as_number(index_t group) { return std::bit_cast<double>(group); }
index_t as_group(double number) { return std::bit_cast<index_t>(number); }

}  // namespace

void GroupRows::read(index_t first, index_t rows, double* to) const {
  const auto row_bytes = static_cast<std::uint64_t>(width_) * sizeof(double);
  file_->read(position_ + static_cast<std::uint64_t>(first) * row_bytes, to,
              static_cast<std::size_t>(static_cast<std::uint64_t>(rows) * row_bytes));
}

RowStore::RowStore(index_t numbers, std::size_t memory_bytes, std::string scratch)
    : width_(numbers + 1),
      most_bytes_(memory_bytes),
      scratch_(std::move(scratch)),
      block_rows_(std::max<index_t>(
          1, static_cast<index_t>(std::min<std::uint64_t>(row_block_bytes, memory_bytes / 4) /
                                  row_bytes()))) {}

/// Whether this number of rows, and their order, may be in memory.
bool RowStore::fits(index_t rows) const {
  return static_cast<std::uint64_t>(rows) * (row_bytes() + sizeof(double*)) <= most_bytes_;
}

void RowStore::add(index_t group, std::span<const double> numbers) {
  if (kept_ == std::ssize(blocks_) * block_rows_) {
    if (!fits(kept_ + block_rows_) && kept_ > 0) spill();
    if (kept_ == std::ssize(blocks_) * block_rows_) blocks_.emplace_back(1, block_rows_, width_);
  }
  double* const row =
      &blocks_[static_cast<std::size_t>(kept_ / block_rows_)].view()[0](kept_ % block_rows_, 0);
  std::copy(numbers.begin(), numbers.end(), row);
  row[width_ - 1] = as_number(group);
  ++kept_;
  ++rows_;
}

/// Appends the rows in memory to the file of rows as they came.
void RowStore::spill() {
  if (!added_) added_ = ScratchFile(scratch_, 0);
  for (const Batch<double>& block : blocks_) {
    const index_t rows = std::min(kept_, block_rows_);
    const std::uint64_t bytes = static_cast<std::uint64_t>(rows) * row_bytes();
    added_.write(scratch_bytes_, block.view().data, bytes);
    scratch_bytes_ += bytes;
    kept_ -= rows;
  }
}

/// Calls use(row) for rows in the blocks.
template <class Use>
void RowStore::for_kept(index_t rows, Use use) const {
  for (index_t i = 0; i < rows; ++i)
    use(&blocks_[static_cast<std::size_t>(i / block_rows_)].view()[0](i % block_rows_, 0));
}

void RowStore::finish(std::span<const index_t> counts) {
  starts_.assign(counts.size() + 1, 0);
  for (std::size_t g = 0; g < counts.size(); ++g) starts_[g + 1] = starts_[g] + counts[g];
  if (!added_) {
    parts_ = {{.first_group = 0, .groups = std::ssize(counts), .first_row = 0, .rows = rows_}};
    sort(parts_.front());
    return;
  }
  spill();
  blocks_.clear();
  make_parts();
  distribute();
  added_ = {};
}

/// Makes parts of as many neighbouring groups as fit the memory.
void RowStore::make_parts() {
  const index_t groups = std::ssize(starts_) - 1;
  for (index_t first = 0; first < groups;) {
    index_t end = first + 1;
    const index_t start = starts_[static_cast<std::size_t>(first)];
    while (end < groups && fits(starts_[static_cast<std::size_t>(end) + 1] - start)) ++end;
    parts_.push_back({first, end - first, start, starts_[static_cast<std::size_t>(end)] - start});
    first = end;
  }
}

/// Writes each row to the place of its part. The rows of a part keep their order.
void RowStore::distribute() {
  struct Piece {
    index_t filled = 0, written = 0;
  };
  sorted_ = ScratchFile(scratch_, scratch_bytes_);
  const std::uint64_t room = most_bytes_ / 2 / parts_.size();
  const auto piece_rows = std::max<index_t>(
      1, static_cast<index_t>(std::min<std::uint64_t>(piece_bytes, room) / row_bytes()));
  const Batch<double> memory(std::ssize(parts_), piece_rows, width_);
  std::vector<Piece> pieces(parts_.size());
  const auto flush = [&](std::size_t p) {
    Piece& piece = pieces[p];
    sorted_.write(static_cast<std::uint64_t>(parts_[p].first_row + piece.written) * row_bytes(),
                  memory.view()[static_cast<index_t>(p)].data,
                  static_cast<std::uint64_t>(piece.filled) * row_bytes());
    piece.written += std::exchange(piece.filled, 0);
  };
  GroupRows(&added_, 0, rows_, width_).visit(0, rows_, [&](const double* row) {
    const auto above =
        std::upper_bound(parts_.begin(), parts_.end(), as_group(row[width_ - 1]),
                         [](index_t group, const Part& part) { return group < part.first_group; });
    const auto p = static_cast<std::size_t>(above - parts_.begin() - 1);
    Piece& piece = pieces[p];
    std::copy_n(row, width_, &memory.view()[static_cast<index_t>(p)](piece.filled, 0));
    if (++piece.filled == piece_rows) flush(p);
  });
  for (std::size_t p = 0; p < parts_.size(); ++p) flush(p);
}

void RowStore::load(const Part& part) {
  if (!sorted_) {
    loaded_ = part;
    is_loaded_ = true;
    return;
  }
  order_ = {};
  blocks_.clear();
  loaded_ = part;
  is_loaded_ = fits(part.rows);
  if (!is_loaded_) return;
  blocks_.emplace_back(1, part.rows, width_);
  block_rows_ = std::max<index_t>(part.rows, 1);
  sorted_.read(static_cast<std::uint64_t>(part.first_row) * row_bytes(), blocks_[0].view().data,
               static_cast<std::uint64_t>(part.rows) * row_bytes());
  sort(part);
}

/// Orders the rows in the blocks by their groups.
void RowStore::sort(const Part& part) {
  std::vector<index_t> next(starts_.begin() + part.first_group,
                            starts_.begin() + part.first_group + part.groups);
  order_.resize(static_cast<std::size_t>(part.rows));
  for_kept(part.rows, [&](const double* row) {
    const index_t group = as_group(row[width_ - 1]);
    const index_t place = next[static_cast<std::size_t>(group - part.first_group)]++;
    order_[static_cast<std::size_t>(place - part.first_row)] = row;
  });
}

std::size_t RowStore::memory_bytes() const {
  return blocks_.size() * static_cast<std::size_t>(block_rows_) * row_bytes() +
         order_.capacity() * sizeof(order_[0]);
}

GroupRows RowStore::rows_of(index_t group) const {
  const index_t start = starts_[static_cast<std::size_t>(group)];
  const index_t count = starts_[static_cast<std::size_t>(group) + 1] - start;
  if (is_loaded_) return {order_.data() + (start - loaded_.first_row), count};
  return {&sorted_, static_cast<std::uint64_t>(start) * row_bytes(), count, width_};
}

}  // namespace qrtool
