// SPDX-License-Identifier: Apache-2.0
// direct_reader.cpp: several threads read a dataset piece by piece and check the checksums.
#include "io/hdf5/values/direct_reader.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/matrix/complex.hpp"
#include "io/checksum/fletcher32.hpp"
#include "io/file/read_write_at.hpp"
#include "io/hdf5/datasets/complex_type.hpp"

namespace qrtool::hdf5 {
namespace {

// The bytes of contiguous data that one call reads: many enough that the cost of the call does not
// matter, and few enough for the cache of a core.
constexpr std::size_t contiguous_piece_bytes = std::size_t{1} << 20;
// The largest chunk. Every thread needs memory for one.
constexpr std::size_t most_chunk_bytes = std::size_t{16} << 20;

bool is_native(const Dataset& dataset) {
  const Handle type(H5Dget_type(dataset.handle), H5Tclose);
  const auto is_native_float = [](hid_t number) {
    return H5Tequal(number, H5T_NATIVE_FLOAT) > 0 || H5Tequal(number, H5T_NATIVE_DOUBLE) > 0;
  };
  if (!is_complex(dataset.type)) return is_native_float(type);
  const Handle part = part_type(type);
  const std::size_t bytes = H5Tget_size(part);
  return is_native_float(part) && dataset.stored_bytes == 2 * bytes &&
         H5Tget_member_offset(type, 0) == 0 && H5Tget_member_offset(type, 1) == bytes;
}

/// Returns the bytes of the checksum behind each chunk, or nothing if there is another filter.
std::optional<std::size_t> checksum_bytes_of(hid_t creation) {
  const int filters = H5Pget_nfilters(creation);
  if (filters == 0) return 0;
  unsigned flags = 0;
  std::size_t values = 0;
  const bool is_checksum =
      filters == 1 && H5Pget_filter2(creation, 0, &flags, &values, nullptr, 0, nullptr, nullptr) ==
                          H5Z_FILTER_FLETCHER32;
  return is_checksum ? std::optional<std::size_t>(4) : std::nullopt;
}

std::optional<Stretches> chunks_of(hid_t creation, const Dataset& dataset) {
  std::vector<hsize_t> chunk(dataset.dims.size());
  const auto rank = static_cast<int>(chunk.size());
  if (H5Pget_chunk(creation, rank, chunk.data()) != rank) return {};
  std::uint64_t bytes = dataset.stored_bytes;
  for (const hsize_t extent : chunk) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) return {};
  }
  if (bytes > most_chunk_bytes) return {};
  return Stretches::of(dataset.dims, chunk);
}

}  // namespace

std::unique_ptr<DirectReader> DirectReader::open(const InputFile& file, const Dataset& dataset,
                                                 int threads, std::size_t memory_bytes) {
  const Session session(file.shown);
  const Handle creation(H5Dget_create_plist(dataset.handle), H5Pclose);
  const std::uint64_t elements = elements_of(dataset);
  if (!creation || elements == 0 || !is_native(dataset)) return nullptr;
  std::unique_ptr<DirectReader> reader(new DirectReader(file, dataset, threads));
  reader->descriptor_ = descriptor_of(file.handle);
  std::optional<Stretches> pieces;
  if (const H5D_layout_t layout = H5Pget_layout(creation); layout == H5D_CONTIGUOUS) {
    const haddr_t start = H5Dget_offset(dataset.handle);
    // HDF5 stores nothing before the first write.
    if (start == HADDR_UNDEF || H5Dget_storage_size(dataset.handle) == 0) return nullptr;
    reader->start_ = start;
    const hsize_t flat[] = {elements}, piece[] = {contiguous_piece_bytes / dataset.stored_bytes};
    pieces = Stretches::of(flat, piece);
  } else if (const auto checksum_bytes = checksum_bytes_of(creation);
             layout == H5D_CHUNKED && checksum_bytes) {
    reader->checksum_bytes_ = *checksum_bytes;
    pieces = chunks_of(creation, dataset);
  }
  if (reader->descriptor_ < 0 || !pieces) return nullptr;
  reader->pieces_ = std::move(*pieces);
  while (reader->threads_ > 1 && reader->workspace_bytes(dataset.type) > memory_bytes)
    --reader->threads_;
  return reader;
}

/// Each thread has a chunk in memory, and two more are kept: the end of the last call and of this
/// one.
std::size_t DirectReader::workspace_bytes(ElementType type) const {
  const auto chunks = static_cast<std::size_t>(pieces_.size());
  const auto threads = static_cast<std::size_t>(threads_);
  if (!can_be_cut()) return std::min(threads + 2, chunks) * chunk_bytes();
  return dataset_.stored_bytes == size_of(type) ? 0 : std::min(threads, chunks) * chunk_bytes();
}

template <class T>
std::vector<DirectReader::Wanted<T>> DirectReader::cut(index_t first, index_t count, T* out) const {
  std::vector<Wanted<T>> all;
  for (const index_t end = first + count; first < end;) {
    const index_t piece = pieces_.containing(first);
    const Stretch whole = pieces_[piece];
    const index_t taken = std::min(whole.first + whole.count, end) - first;
    all.push_back({piece, {first, taken}, out});
    first += taken;
    out += taken;
  }
  return all;
}

/// Reads the bytes at `from`. Their last checksum_bytes_ are the checksum of the others. Returns
/// false if it does not match or the system reports an error.
bool DirectReader::load(const Extent& from, std::byte* to) const {
  std::uint32_t checksum = 0;
  const std::size_t bytes = from.bytes - checksum_bytes_;
  const TwoParts parts{{{to, bytes}, {&checksum, checksum_bytes_}}};
  if (read_at(descriptor_, from.address, parts) != from.bytes) {
    if (errno != 0) return false;
    struct stat now {};
    fstat(descriptor_, &now);
    throw InputError(
        fmt::format("{}: truncated: {} of {} bytes", file_.shown, now.st_size, file_.size));
  }
  return checksum_bytes_ == 0 || matches_fletcher32(checksum, to, bytes);
}

template <class T>
std::optional<Extent> DirectReader::find(const Wanted<T>& wanted) const {
  if (start_) {
    return Extent{*start_ + wanted.part.first * dataset_.stored_bytes,
                  wanted.part.count * dataset_.stored_bytes};
  }
  const Session session(file_.shown);
  const std::optional<Extent> found =
      find_chunk(dataset_.handle, pieces_.offset(wanted.piece), file_.size);
  // The file states the size, which may be wrong in a damaged file.
  if (!found || found->bytes != chunk_bytes() + checksum_bytes_) return std::nullopt;
  if (!can_be_cut()) return found;
  const index_t skipped = wanted.part.first - pieces_[wanted.piece].first;
  return Extent{found->address + skipped * dataset_.stored_bytes,
                wanted.part.count * dataset_.stored_bytes};
}

template <class T>
void DirectReader::copy(const std::byte* stored, const Wanted<T>& wanted) const {
  const index_t skipped = can_be_cut() ? 0 : wanted.part.first - pieces_[wanted.piece].first;
  stored += skipped * dataset_.stored_bytes;
  if (dataset_.stored_bytes == sizeof(T)) {
    std::memcpy(wanted.out, stored, wanted.part.count * sizeof(T));
  } else {
    using Narrow = std::conditional_t<is_complex_number<T>, std::complex<float>, float>;
    std::copy_n(reinterpret_cast<const Narrow*>(stored), wanted.part.count, wanted.out);
  }
}

template <class T>
bool DirectReader::read_piece(const Wanted<T>& wanted, const Extent& from,
                              HostMemory& scratch) const {
  const bool is_whole = can_be_cut() || wanted.part.count == pieces_.chunk_elements();
  if (is_whole && dataset_.stored_bytes == sizeof(T)) {
    return load(from, reinterpret_cast<std::byte*>(wanted.out));
  }
  if (!scratch) scratch = allocate_host(chunk_bytes());
  if (!load(from, scratch.get())) return false;
  copy(scratch.get(), wanted);
  return true;
}

template <class T>
bool DirectReader::read(index_t first, index_t count, T* out) {
  if (dataset_.stored_bytes > sizeof(T)) return false;
  const std::vector<Wanted<T>> all = cut(first, count, out);
  std::span<const Wanted<T>> left = all;
  if (left.front().piece == kept_piece_) {
    copy(kept_.get(), left.front());
    left = left.subspan(1);
  }
  std::vector<Extent> places;
  for (const Wanted<T>& wanted : left) {
    const std::optional<Extent> place = find(wanted);
    if (!place) return false;
    places.push_back(*place);
  }
  scratch_.resize(static_cast<std::size_t>(threads_));
  std::atomic<bool> ok = true;
  parallel_for(std::ssize(left), threads_, [&](index_t i, int worker) {
    const bool may_be_kept = !can_be_cut() && i + 1 == std::ssize(left);
    HostMemory& scratch = may_be_kept ? last_ : scratch_[worker];
    if (ok && !read_piece(left[i], places[i], scratch)) ok = false;
  });
  if (ok && !left.empty()) keep_last(left.back());
  return ok;
}

/// Keeps the last chunk of a call, since the next call probably continues in it.
template <class T>
void DirectReader::keep_last(const Wanted<T>& wanted) {
  const Stretch whole = pieces_[wanted.piece];
  if (can_be_cut() || wanted.part.first + wanted.part.count == whole.first + whole.count) return;
  std::swap(kept_, last_);
  kept_piece_ = wanted.piece;
}

template bool DirectReader::read(index_t, index_t, float*);
template bool DirectReader::read(index_t, index_t, double*);
template bool DirectReader::read(index_t, index_t, std::complex<float>*);
template bool DirectReader::read(index_t, index_t, std::complex<double>*);

}  // namespace qrtool::hdf5
