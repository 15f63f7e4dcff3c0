// SPDX-License-Identifier: Apache-2.0
// storage.cpp: sizes of contiguous data and of chunks.
#include "io/hdf5/values/storage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"
#include "io/hdf5/structure/fixed_arrays.hpp"

namespace qrtool::hdf5 {
Storage::Storage(const InputFile& file, const Dataset& dataset, int threads)
    : file_(file), dataset_(dataset), threads_(threads) {
  const Session session(file.shown);
  const Handle creation(H5Dget_create_plist(dataset.handle), H5Pclose);
  haddr_t end = 0;
  if (!creation || H5Fget_eoa(file.handle, &end) < 0) {
    throw_damaged("its properties cannot be read");
  }
  file_end_ = std::min<std::uint64_t>(file.size, end);
  H5D_fill_value_t fill = H5D_FILL_VALUE_ERROR;
  H5D_fill_time_t fill_time = H5D_FILL_TIME_ERROR;
  if (H5Pfill_value_defined(creation, &fill) < 0 || H5Pget_fill_time(creation, &fill_time) < 0) {
    throw_damaged("its fill value cannot be read");
  }
  has_fill_value_ = (fill == H5D_FILL_VALUE_DEFAULT || fill == H5D_FILL_VALUE_USER_DEFINED) &&
                    (fill_time == H5D_FILL_TIME_ALLOC || fill_time == H5D_FILL_TIME_IFSET);
  if (elements_of(dataset) == 0) return;
  const H5D_layout_t layout = H5Pget_layout(creation);
  if (layout == H5D_CHUNKED) {
    take_chunks(creation);
  } else {
    require_contiguous(layout);
  }
}

void Storage::throw_damaged(const std::string& cause) const {
  take_error();  // without memory, the cause is another
  throw InputError(
      fmt::format("{}: dataset {} is damaged ({})", file_.shown, dataset_.shown, cause));
}

void Storage::throw_damaged_chunk(const std::string& cause, std::span<const hsize_t> offset) const {
  throw_damaged(fmt::format("{}, in the chunk at ({})", cause, fmt::join(offset, ", ")));
}

/// Elements that were never written have no value, unless the file states one.
void Storage::require_fill_value() const {
  if (has_fill_value_) return;
  throw InputError(fmt::format("{}: dataset {} has elements that were never written", file_.shown,
                               dataset_.shown));
}

void Storage::require_inside(const Extent& extent) const {
  const auto [address, bytes] = extent;
  if (address <= file_end_ && bytes <= file_end_ - address) return;
  throw_damaged(fmt::format("{} bytes at byte {} of {}", bytes, address, file_end_));
}

void Storage::require_contiguous(H5D_layout_t layout) const {
  const std::uint64_t needed = elements_of(dataset_) * dataset_.stored_bytes;
  const std::uint64_t stored = H5Dget_storage_size(dataset_.handle);
  if (layout != H5D_COMPACT) {
    const haddr_t address = H5Dget_offset(dataset_.handle);
    if (stored == 0 || address == HADDR_UNDEF) {
      require_fill_value();
      return;
    }
    require_inside({address, stored});
  }
  if (stored != needed) {
    throw_damaged(fmt::format("{} bytes are stored where {} need {}", stored,
                              shape_text(dataset_.dims), needed));
  }
}

void Storage::take_chunks(hid_t creation) {
  chunk_.resize(dataset_.dims.size());
  const auto rank = static_cast<int>(chunk_.size());
  if (H5Pget_chunk(creation, rank, chunk_.data()) != rank) {
    throw_damaged("its chunks have another rank");
  }
  const std::vector<hsize_t> largest = require_chunk_extents();
  is_unwritten_ = has_no_chunk();
  require_index(largest);
  chunk_bytes_ = dataset_.stored_bytes;
  for (const hsize_t extent : chunk_) {
    if (__builtin_mul_overflow(chunk_bytes_, extent, &chunk_bytes_) || chunk_bytes_ > UINT32_MAX) {
      throw_damaged(fmt::format("chunks of {}", shape_text(chunk_)));
    }
  }
  filters_ = Filters(creation, chunk_bytes_);
  unsigned options = 0;
  if (H5Pget_chunk_opts(creation, &options) < 0) throw_damaged("its chunks");
  filters_partial_chunks_ = (options & H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS) == 0;
}

/// Whether no chunk was ever written. If the index is damaged, the look-up of a chunk says so.
bool Storage::has_no_chunk() const {
  const std::vector<hsize_t> first(chunk_.size(), 0);
  const bool has_first = locate_chunk(dataset_.handle, first, file_end_).has_value();
  if (has_first || !take_error().empty()) return false;
  // H5Dget_space_status walks over the index. (H5Dget_storage_size returns 0 if it cannot.)
  H5D_space_status_t status = H5D_SPACE_STATUS_ERROR;
  const bool is_known = H5Dget_space_status(dataset_.handle, &status) >= 0;
  take_error();
  return is_known && status == H5D_SPACE_STATUS_NOT_ALLOCATED;
}

/// HDF5 reads the index of a dataset that cannot grow by its largest dimensions.
void Storage::require_index(std::span<const hsize_t> largest) const {
  H5D_chunk_index_t kind = H5D_CHUNK_IDX_BTREE;
  if (H5Dget_chunk_index_type(dataset_.handle, &kind) < 0)
    throw_damaged("its index cannot be read");
  if (kind != H5D_CHUNK_IDX_FARRAY || is_unwritten_) return;
  std::uint64_t entries = 1;
  for (std::size_t d = 0; d < largest.size(); ++d)
    entries *= largest[d] / chunk_[d] + (largest[d] % chunk_[d] > 0 ? 1 : 0);
  // The first look-up reads the index.
  const std::vector<hsize_t> first(chunk_.size(), 0);
  locate_chunk(dataset_.handle, first, file_end_);
  const std::string error = innermost_error(take_error());
  if (!error.empty()) throw_damaged_chunk(escape(error), first);
  if (has_fixed_array(descriptor_of(file_.handle), entries)) return;
  throw_damaged(fmt::format("its index has not {} entries", entries));
}

/// Returns the largest dimensions of the dataset. Its chunks must fit into them.
std::vector<hsize_t> Storage::require_chunk_extents() const {
  const Handle space(H5Dget_space(dataset_.handle), H5Sclose);
  std::vector<hsize_t> largest(dataset_.dims.size());
  if (H5Sget_simple_extent_dims(space, nullptr, largest.data()) != std::ssize(largest)) {
    throw_damaged("its dimensions cannot be read");
  }
  for (std::size_t d = 0; d < largest.size(); ++d) {
    const bool is_fixed = largest[d] != H5S_UNLIMITED;
    if (chunk_[d] == 0 || (is_fixed && std::max(chunk_[d], dataset_.dims[d]) > largest[d])) {
      throw_damaged(fmt::format("dimension {} has chunks of {} and {} of at most {} indices", d,
                                chunk_[d], dataset_.dims[d], largest[d]));
    }
  }
  return largest;
}

/// Whether the chunk was not compared before.
bool Storage::is_new(std::span<const hsize_t> chunk_index) {
  constexpr std::uint64_t most_noted = std::uint64_t{1} << 24;
  std::uint64_t flat = 0, chunks = 1;
  for (std::size_t d = 0; d < chunk_.size(); ++d) {
    const std::uint64_t across = (dataset_.dims[d] - 1) / chunk_[d] + 1;
    flat = flat * across + chunk_index[d];
    if (__builtin_mul_overflow(chunks, across, &chunks) || chunks > most_noted) return true;
  }
  compared_.resize(chunks);
  const bool was_new = !compared_[flat];
  compared_[flat] = true;
  return was_new;
}

void Storage::require_possible_size(std::span<const hsize_t> start,
                                    std::span<const hsize_t> count) const {
  std::uint64_t elements = 1, chunks = 1;
  for (std::size_t d = 0; d < count.size(); ++d) {
    elements *= count[d];
    if (!chunk_.empty() && count[d] > 0)
      chunks *= (start[d] + count[d] - 1) / chunk_[d] - start[d] / chunk_[d] + 1;
  }
  if (elements == 0) return;
  const auto refuse = [&](const std::string& claim) {
    throw LimitError(
        fmt::format("{}: dataset {} claims {} in a file of {}", file_.shown, dataset_.shown, claim,
                    format_bytes(file_.size)),
        fmt::format("if they are meant, read a part: {}:{}[0:1000]", file_.shown, dataset_.shown));
  };
  // Deflate makes at most 1032 bytes of one. Bytes that are not stored cost only time.
  constexpr std::uint64_t most_made = std::uint64_t{1} << 30, highest_ratio = 1100;
  constexpr std::uint64_t most_unwritten = std::uint64_t{1} << 36;
  const std::uint64_t claimed = elements * dataset_.stored_bytes;
  const std::uint64_t most = chunk_.empty() ? most_made : most_unwritten;
  if (claimed > most && claimed / highest_ratio > file_.size) refuse(format_bytes(claimed));
  // Looking for a chunk takes microseconds. A stored chunk has at least some bytes in an index.
  constexpr std::uint64_t most_sought = std::uint64_t{1} << 22, least_index_bytes = 8;
  if (!is_unwritten_ && chunks > most_sought && chunks > file_.size / least_index_bytes)
    refuse(fmt::format("{} chunks", chunks));
}

void Storage::require_chunks(std::span<const hsize_t> start, std::span<const hsize_t> count) {
  if (chunk_.empty()) return;
  const std::size_t rank = chunk_.size();
  std::vector<hsize_t> index(rank), offset(rank);
  for (std::size_t d = 0; d < rank; ++d) index[d] = start[d] / chunk_[d];
  std::vector<Found> to_decode;
  for (std::size_t d = rank; d > 0;) {
    if (is_new(index)) {
      for (std::size_t i = 0; i < rank; ++i) offset[i] = index[i] * chunk_[i];
      const auto stored = find(offset);
      if (stored && !filters_.keep_size(stored->filters_left_out)) {
        to_decode.push_back({*stored, offset});
      }
      if (std::ssize(to_decode) >= 4 * threads_) require_decodable(std::exchange(to_decode, {}));
    }
    // Goes to the next index; the last dimension moves first.
    for (d = rank; d > 0 && ++index[d - 1] > (start[d - 1] + count[d - 1] - 1) / chunk_[d - 1];
         --d) {
      index[d - 1] = start[d - 1] / chunk_[d - 1];
    }
  }
  require_decodable(to_decode);
}

std::vector<Storage::Part> Storage::cut(Part part, hsize_t most) const {
  const auto chunks_along = [&](std::size_t d) {
    return (part.start[d] + part.count[d] - 1) / chunk_[d] - part.start[d] / chunk_[d] + 1;
  };
  hsize_t chunks = 1;
  for (std::size_t d = 0; d < chunk_.size(); ++d) chunks *= chunks_along(d);
  // Only slices of the first dimension with several indices follow each other in memory.
  const auto several =
      std::find_if(part.count.begin(), part.count.end(), [](hsize_t count) { return count > 1; });
  const auto d = static_cast<std::size_t>(several - part.count.begin());
  if (chunks <= most || chunks_along(d) == 1) return {std::move(part)};
  const hsize_t at_once = std::max<hsize_t>(most / (chunks / chunks_along(d)), 1);
  const hsize_t end = part.start[d] + part.count[d];
  std::vector<Part> parts;
  while (part.start[d] < end) {
    part.count[d] =
        std::min((part.start[d] / chunk_[d] + at_once) * chunk_[d], end) - part.start[d];
    for (Part& piece : cut(part, most)) parts.push_back(std::move(piece));
    part.start[d] += part.count[d];
  }
  return parts;
}

std::size_t Storage::index_bytes() const {
  constexpr double of_chunk = 512, most = 2 << 20;  // HDF5 gives up places, too
  if (chunk_.empty()) return 0;
  double chunks = 1;
  for (std::size_t d = 0; d < chunk_.size(); ++d)
    chunks *= std::ceil(static_cast<double>(dataset_.dims[d]) / static_cast<double>(chunk_[d]));
  return static_cast<std::size_t>(std::min(chunks * of_chunk, most));
}

bool Storage::can_be_unpacked() const {
  // HDF5 needs 30 us and 7 KiB for each chunk that it reads itself, which is more than the content
  // of a small one.
  constexpr std::uint64_t most_small_bytes = 64 << 10;
  const bool is_plain = filters_.are_none() && chunk_bytes_ <= most_small_bytes;
  return !chunk_.empty() && (is_plain || filters_.can_be_undone());
}

std::optional<StoredChunk> Storage::find(std::span<const hsize_t> offset) const {
  constexpr std::uint32_t all_filters = ~std::uint32_t{0};
  if (is_unwritten_) {
    require_fill_value();
    return {};
  }
  const Session session(file_.shown);
  std::optional<StoredChunk> stored = locate_chunk(dataset_.handle, offset, file_end_);
  if (!stored) {
    const std::string error = innermost_error(take_error());
    // HDF5 would allocate the size that a damaged file states before it reads.
    if (!error.empty()) throw_damaged_chunk(escape(error), offset);
    require_fill_value();
    return {};
  }
  const std::uint64_t bytes = stored->extent.bytes;
  require_inside(stored->extent);
  bool is_partial = false;
  for (std::size_t d = 0; d < chunk_.size(); ++d) {
    is_partial = is_partial || dataset_.dims[d] - offset[d] < chunk_[d];
  }
  if (is_partial && !filters_partial_chunks_) {
    if (bytes != chunk_bytes_) throw_damaged_chunk(fmt::format("{} bytes", bytes), offset);
    stored->filters_left_out = all_filters;
    return stored;
  }
  if (!filters_.keep_size(stored->filters_left_out)) return stored;
  const std::string problem = filters_.problem_of_size(bytes, stored->filters_left_out);
  if (!problem.empty()) throw_damaged_chunk(problem, offset);
  return stored;
}

void Storage::require_decodable(std::span<const Found> chunks) const {
  const int descriptor = descriptor_of(file_.handle);
  std::vector<std::string> problems(chunks.size());
  parallel_for(std::ssize(chunks), threads_, [&](index_t i, int) {
    const StoredChunk& chunk = chunks[static_cast<std::size_t>(i)].chunk;
    ChunkBytes bytes;
    bytes.now.resize(chunk.extent.bytes);
    const TwoParts parts{{{bytes.now.data(), bytes.now.size()}, {nullptr, 0}}};
    std::string& problem = problems[static_cast<std::size_t>(i)];
    problem = read_at(descriptor, chunk.extent.address, parts) == bytes.now.size()
                  ? filters_.problem(bytes, chunk.filters_left_out)
                  : "it cannot be read";
  });
  for (std::size_t i = 0; i < problems.size(); ++i) {
    if (!problems[i].empty()) throw_damaged_chunk(problems[i], chunks[i].offset);
  }
}

}  // namespace qrtool::hdf5
