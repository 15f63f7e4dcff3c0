// SPDX-License-Identifier: Apache-2.0
// unpacker.cpp: finds the chunks of a box, unpacks them side by side and copies their elements.
#include "io/hdf5/values/unpacker.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/matrix/complex.hpp"
#include "io/file/read_write_at.hpp"
#include "io/hdf5/datasets/complex_type.hpp"
#include "io/hdf5/structure/watch.hpp"

namespace qrtool::hdf5 {
namespace {

// The bytes that are converted at a time if the stored elements are wider.
constexpr std::size_t wide_bytes = std::size_t{8} << 20;
// The memory of a kept chunk besides its bytes: its places in a list and in a table.
constexpr std::size_t kept_overhead = 192;

std::uint64_t product(std::span<const hsize_t> extents) {
  std::uint64_t result = 1;
  for (const hsize_t extent : extents) result *= extent;
  return result;
}

/// Advances an index within first .. last, the last dimension first. Returns false at the end.
bool advance(std::span<hsize_t> index, std::span<const hsize_t> first,
             std::span<const hsize_t> last) {
  for (std::size_t d = index.size(); d-- > 0;) {
    if (++index[d] <= last[d]) return true;
    index[d] = first[d];
  }
  return false;
}

}  // namespace

std::unique_ptr<Unpacker> Unpacker::open(const InputFile& file, const Dataset& dataset,
                                         const Storage& storage, const Means& means) {
  if (!storage.can_be_unpacked()) return nullptr;
  const Session session(file.shown);
  std::unique_ptr<Unpacker> unpacker(new Unpacker(file, dataset, storage, means));
  while (unpacker->threads_ > 1 && unpacker->workspace_bytes(dataset.type) > means.memory_bytes)
    --unpacker->threads_;
  unpacker->type_ = Handle(H5Dget_type(dataset.handle), H5Tclose);
  const bool has_parts = is_complex(dataset.type);
  unpacker->number_type_ =
      has_parts ? part_type(unpacker->type_) : Handle(H5Tcopy(unpacker->type_), H5Tclose);
  for (const unsigned part : {0U, 1U})
    if (has_parts) unpacker->part_offsets_[part] = H5Tget_member_offset(unpacker->type_, part);
  unpacker->descriptor_ = descriptor_of(file.handle);
  unpacker->memory_.resize(static_cast<std::size_t>(unpacker->threads_));
  unpacker->held_.resize(unpacker->memory_.size());
  unpacker->fill_.resize(dataset.stored_bytes);
  const Handle creation(H5Dget_create_plist(dataset.handle), H5Pclose);
  if (!unpacker->type_ || !unpacker->number_type_ || unpacker->descriptor_ < 0 ||
      (storage.has_fill_value() &&
       H5Pget_fill_value(creation, unpacker->type_, unpacker->fill_.data()) < 0)) {
    storage.throw_damaged("its type or its fill value cannot be read");
  }
  return unpacker;
}

/// Returns the memory of the unpacker. A thread has a chunk before and after a filter. Chunks of
/// the last call are given up only when the chunks of the present one are complete.
std::size_t Unpacker::workspace_bytes(ElementType type) const {
  const std::size_t of_threads = 2 * storage_.chunk_bytes() * static_cast<std::size_t>(threads_);
  return of_threads + 2 * most_kept_ + (dataset_.stored_bytes > size_of(type) ? wide_bytes : 0);
}

std::uint64_t Unpacker::number_of(std::span<const hsize_t> offset) const {
  const std::span<const hsize_t> chunk = storage_.chunk();
  std::uint64_t number = 0;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    number = number * ((dataset_.dims[d] - 1) / chunk[d] + 1) + offset[d] / chunk[d];
  }
  return number;
}

Unpacker::Progress Unpacker::begin(const Box& box) const {
  const std::span<const hsize_t> chunk = storage_.chunk();
  Progress progress;
  for (std::size_t d = 0; d < chunk.size(); ++d) {
    progress.first.push_back(box.start[d] / chunk[d]);
    progress.last.push_back((box.start[d] + box.count[d] - 1) / chunk[d]);
  }
  progress.next = progress.first;
  return progress;
}

/// Returns the next chunks of a box, in ascending order, with their places in the file. There may
/// be millions of small chunks, so that only some are returned at a time.
std::vector<Unpacker::Part> Unpacker::cut(const Box& box, Progress& progress) {
  constexpr std::size_t most_at_once = 4096;
  const Session session(file_.shown);
  const std::span<const hsize_t> chunk = storage_.chunk();
  std::vector<Part> parts;
  while (!progress.is_done && parts.size() < most_at_once) {
    Part part{.offset = progress.next, .stored = {}};
    for (std::size_t d = 0; d < chunk.size(); ++d) {
      part.offset[d] *= chunk[d];
      const hsize_t end = std::min(part.offset[d] + chunk[d], dataset_.dims[d]);
      part.is_kept = part.is_kept || end > box.start[d] + box.count[d];
    }
    const std::uint64_t number = number_of(part.offset);
    const auto held = std::ranges::find(held_, number);
    if (const auto found = find_kept_.find(number); found != find_kept_.end()) {
      part.kept = found->second->second.view().data();
      part.is_kept = false;
    } else if (held != held_.end()) {
      part.kept = memory_[static_cast<std::size_t>(held - held_.begin())].now.view().data();
      part.is_held = true;
      part.is_kept = false;
    } else {
      part.stored = storage_.find(part.offset);
      progress.to_keep += part.is_kept ? storage_.chunk_bytes() + kept_overhead : 0;
      part.is_kept = part.is_kept && progress.to_keep <= most_kept_;
    }
    parts.push_back(std::move(part));
    progress.is_done = !advance(progress.next, progress.first, progress.last);
  }
  return parts;
}

/// Unpacks the elements of a chunk to chunk.now. Returns why the chunk is damaged, or an empty
/// text.
std::string Unpacker::unpack(const Part& part, ChunkBytes& chunk) const {
  if (!part.stored) {
    chunk.now.resize(storage_.chunk_bytes());
    for (std::size_t at = 0; at < chunk.now.size(); at += dataset_.stored_bytes) {
      std::memcpy(chunk.now.data() + at, fill_.view().data(), dataset_.stored_bytes);
    }
    return {};
  }
  const Extent& extent = part.stored->extent;
  chunk.now.resize(extent.bytes);
  const TwoParts place{{{chunk.now.data(), extent.bytes}, {nullptr, 0}}};
  if (read_at(descriptor_, extent.address, place) != extent.bytes) return "it cannot be read";
  return storage_.filters().unpack(chunk, part.stored->filters_left_out);
}

/// Copies the elements that are both in a chunk and in a box.
void Unpacker::copy(const Part& part, const std::byte* elements, const Box& box) const {
  const std::span<const hsize_t> chunk = storage_.chunk();
  const std::size_t rank = chunk.size(), size = dataset_.stored_bytes;
  std::vector<hsize_t> first(rank), last(rank);  // of the elements in both
  for (std::size_t d = 0; d < rank; ++d) {
    first[d] = std::max(part.offset[d], box.start[d]);
    last[d] = std::min(part.offset[d] + chunk[d], box.start[d] + box.count[d]) - 1;
  }
  // The fast dimensions that follow each other without a gap in both are copied in one piece.
  std::size_t run = size;
  for (std::size_t d = rank; d-- > 0;) {
    const hsize_t extent = last[d] - first[d] + 1;
    run *= extent;
    last[d] = first[d];
    if (extent != chunk[d] || extent != box.count[d]) break;
  }
  std::vector<hsize_t> index = first;
  do {
    std::size_t from = 0, to = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      from = from * chunk[d] + (index[d] - part.offset[d]);
      to = to * box.count[d] + (index[d] - box.start[d]);
    }
    std::memcpy(box.out + to * size, elements + from * size, run);
  } while (advance(index, first, last));
}

/// Keeps a chunk for the next call, and drops the oldest chunks if there are too many.
void Unpacker::keep(const Part& part, Bytes bytes) {
  if (bytes.size() + kept_overhead > most_kept_) return;
  for (kept_bytes_ += bytes.size() + kept_overhead; kept_bytes_ > most_kept_; kept_.pop_front()) {
    kept_bytes_ -= kept_.front().second.size() + kept_overhead;
    find_kept_.erase(kept_.front().first);
  }
  const std::uint64_t number = number_of(part.offset);
  kept_.emplace_back(number, std::move(bytes));
  find_kept_.emplace(number, std::prev(kept_.end()));
}

void Unpacker::read_stored(const Box& box) {
  for (Progress progress = begin(box); !progress.is_done;) read_parts(cut(box, progress), box);
}

void Unpacker::read_parts(std::span<const Part> parts, const Box& box) {
  std::vector<std::string> problems(parts.size());
  std::vector<Bytes> to_keep(parts.size());
  // They are kept before other chunks are unpacked in their memory.
  for (const Part& part : parts)
    if (part.is_held) copy(part, part.kept, box);
  parallel_for(std::ssize(parts), threads_, [&](index_t i, int worker) {
    const Part& part = parts[static_cast<std::size_t>(i)];
    if (part.is_held) return;
    if (part.kept != nullptr) return copy(part, part.kept, box);
    ChunkBytes& chunk = memory_[static_cast<std::size_t>(worker)];
    std::optional<std::uint64_t>& held = held_[static_cast<std::size_t>(worker)];
    std::string& problem = problems[static_cast<std::size_t>(i)];
    held.reset();
    problem = unpack(part, chunk);
    if (!problem.empty()) return;
    copy(part, chunk.now.data(), box);
    if (part.is_kept)
      to_keep[static_cast<std::size_t>(i)] = std::exchange(chunk.now, {});
    else
      held = number_of(part.offset);
  });
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (!problems[i].empty()) storage_.throw_damaged_chunk(problems[i], parts[i].offset);
    if (to_keep[i].size() > 0) keep(parts[i], std::move(to_keep[i]));
  }
}

/// Moves the parts of complex numbers next to each other if there are gaps between them or the
/// imaginary part is first.
void Unpacker::join_parts(std::size_t elements, std::byte* stored) const {
  const std::size_t bytes = H5Tget_size(number_type_), from = dataset_.stored_bytes;
  if (part_offsets_ == std::array<std::size_t, 2>{0, bytes} && from == 2 * bytes) return;
  std::array<std::byte, 2 * sizeof(double)> parts;
  for (std::size_t i = 0; i < elements; ++i) {
    for (const std::size_t part : {0, 1})
      std::memcpy(&parts[part * bytes], stored + i * from + part_offsets_[part], bytes);
    std::memcpy(stored + 2 * i * bytes, parts.data(), 2 * bytes);
  }
}

template <class T>
bool Unpacker::read(std::span<const hsize_t> start, std::span<const hsize_t> count, hid_t transfer,
                    T* out) {
  const std::size_t elements = product(count);
  const bool is_wide = dataset_.stored_bytes > sizeof(T);
  if (is_wide && elements > 1 && elements * dataset_.stored_bytes > wide_bytes) {
    // The box is read in two halves, cut across the slowest dimension that can be cut.
    const auto d = static_cast<std::size_t>(
        std::find_if(count.begin(), count.end(), [](hsize_t c) { return c > 1; }) - count.begin());
    std::vector<hsize_t> next(start.begin(), start.end()), half(count.begin(), count.end());
    half[d] = count[d] / 2;
    if (!read(start, half, transfer, out)) return false;
    out += product(half);
    next[d] += half[d];
    half[d] = count[d] - half[d];
    return read(next, half, transfer, out);
  }
  if (is_wide) wide_.resize(elements * dataset_.stored_bytes);
  std::byte* const stored = is_wide ? wide_.data() : reinterpret_cast<std::byte*>(out);
  read_stored({start, count, stored});
  const Session session(file_.shown);
  if constexpr (is_complex_number<T>) join_parts(elements, stored);
  const NumbersRead numbers;
  const hid_t wanted = native_type<Real<T>>();
  if (H5Tequal(number_type_, wanted) <= 0 &&
      H5Tconvert(number_type_, wanted, parts_of<T> * elements, stored, nullptr, transfer) < 0)
    return false;
  if (is_wide) std::memcpy(out, stored, elements * sizeof(T));
  return true;
}

#define QRTOOL_FOR(T) \
  template bool Unpacker::read(std::span<const hsize_t>, std::span<const hsize_t>, hid_t, T*);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::int64_t)
QRTOOL_FOR(std::uint64_t)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool::hdf5
