// SPDX-License-Identifier: Apache-2.0
// stored_numbers.cpp: chooses who reads a box of the dataset, and transposes piece by piece.
#include "io/hdf5/values/stored_numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "core/error.hpp"
#include "io/file/read_write_at.hpp"
#include "io/file/transpose.hpp"
#include "io/hdf5/datasets/complex_type.hpp"
#include "io/hdf5/structure/watch.hpp"
#include "io/hdf5/values/chunk_cache.hpp"

namespace qrtool::hdf5 {
namespace {

// The bytes that are read at a time if numbers must be transposed; fewer if memory is short.
constexpr index_t most_scratch_bytes = index_t{8} << 20, least_scratch_bytes = index_t{1} << 18;
// The bytes of the buffer in which HDF5 converts numbers.
constexpr std::size_t conversion_bytes = std::size_t{2} << 20;
// The most chunks that HDF5 reads in one call. Besides the numbers it needs memory for each, to
// describe the elements that belong to the selection.
constexpr hsize_t most_chunks_at_once = 128;
constexpr std::size_t bytes_for_chunk = std::size_t{8} << 10;
// Each of these threads holds a chunk twice, packed and unpacked.
constexpr int most_decoding_threads = 4;

/// Whether the value is infinite. HDF5 also reports infinity as a number out of range.
bool is_infinite(hid_t type, const void* value) {
  if (H5Tequal(type, H5T_NATIVE_DOUBLE) > 0) return std::isinf(*static_cast<const double*>(value));
  if (H5Tequal(type, H5T_NATIVE_LDOUBLE) > 0) {
    return std::isinf(*static_cast<const long double*>(value));
  }
  return false;
}

/// HDF5 calls this function for a number that does not fit its type. It records finite numbers that
/// become infinite.
H5T_conv_ret_t note_overflow(H5T_conv_except_t exception, hid_t from, hid_t, void* value, void*,
                             void* overflowed) {
  if ((exception == H5T_CONV_EXCEPT_RANGE_HI || exception == H5T_CONV_EXCEPT_RANGE_LOW) &&
      !is_infinite(from, value)) {
    *static_cast<bool*>(overflowed) = true;
  }
  return H5T_CONV_UNHANDLED;
}

/// Returns the index of the first selected element if the selection is contiguous in the flat
/// order: all dimensions below the first one with several selected indices are selected in full.
std::optional<index_t> first_of_stretch(std::span<const Range> ranges,
                                        std::span<const hsize_t> dims) {
  index_t first = 0;
  bool has_several = false;
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    const auto extent = static_cast<index_t>(dims[d]);
    if (has_several && !ranges[d].is_whole(extent)) return {};
    has_several = has_several || ranges[d].count != 1;
    first = first * extent + ranges[d].first;
  }
  return first;
}

std::size_t elements_of(std::span<const hsize_t> count) {
  std::size_t elements = 1;
  for (const hsize_t counted : count) elements *= counted;
  return elements;
}

}  // namespace

StoredNumbers::StoredNumbers(const InputFile& file, Dataset& dataset, const DatasetPart& part,
                             const Source& source)
    : file_(file),
      dataset_(dataset),
      part_(part),
      source_(source),
      cache_bytes_(enlarge_cache(file, dataset, part.memory_bytes)),
      is_transposed_(part.order == Order::column && part.vector == VectorAs::no) {
  space_ = Handle(H5Dget_space(dataset_.handle), H5Sclose);
  transfer_ = Handle(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
  H5Pset_type_conv_cb(transfer_, note_overflow, &overflowed_);
  if (!dataset_.handle || !space_ || !transfer_) {
    take_error();
    throw InputError(
        fmt::format("{}: dataset {} is damaged and cannot be opened", file_.shown, dataset_.shown));
  }
  storage_.emplace(file_, dataset_, std::clamp(part_.threads, 1, most_decoding_threads));
  std::vector<hsize_t> start, count;
  for (const Range& range : part_.ranges) {
    start.push_back(static_cast<hsize_t>(range.first));
    count.push_back(static_cast<hsize_t>(range.count));
  }
  storage_->require_possible_size(start, count);
  open_direct();
  unpacker_ = Unpacker::open(file_, dataset_, *storage_,
                             {.threads = part_.threads,
                              .most_kept = cache_bytes_,
                              .memory_bytes = part_.memory_bytes / 2});
}

void StoredNumbers::open_direct() {
  const std::optional<index_t> first = first_of_stretch(part_.ranges, dataset_.dims);
  if (!first) return;
  flat_first_ = *first;
  direct_ = DirectReader::open(file_, dataset_, useful_reading_threads(part_.threads),
                               part_.memory_bytes / 2);
}

index_t StoredNumbers::scratch_bytes() const {
  return static_cast<index_t>(
      std::clamp<std::size_t>(part_.memory_bytes / 8, least_scratch_bytes, most_scratch_bytes));
}

std::size_t StoredNumbers::workspace_bytes(ElementType type) const {
  const std::size_t scratch =
      storage_->index_bytes() + (is_transposed_ ? static_cast<std::size_t>(scratch_bytes()) : 0);
  // A direct reader does not read numbers that are wider than `type`.
  if (direct_ && dataset_.stored_bytes <= size_of(type))
    return scratch + direct_->workspace_bytes(type);
  if (unpacker_) return scratch + unpacker_->workspace_bytes(type);
  // HDF5 undoes a filter from one chunk to another, after they were compared on all threads.
  const auto chunks = static_cast<std::size_t>(2 + 2 * storage_->threads());
  const std::size_t bytes = storage_->filters().are_none() ? 0 : chunks * storage_->chunk_bytes();
  const std::size_t described =
      storage_->chunk().empty() ? 0 : most_chunks_at_once * bytes_for_chunk;
  return scratch + cache_bytes_ + conversion_bytes + described + bytes;
}

index_t StoredNumbers::piece_row(index_t matrix, index_t end) const {
  const index_t m = source_.m, n = source_.n;
  const index_t start = direct_->piece_start(flat_first_ + (matrix * m + end) * n) - flat_first_;
  return (start + n - 1) / n - matrix * m;
}

template <class T>
T* StoredNumbers::scratch(index_t elements) {
  const index_t bytes = elements * static_cast<index_t>(sizeof(T));
  if (bytes > scratch_size_) {
    scratch_ = allocate_host(static_cast<std::size_t>(bytes));
    scratch_size_ = bytes;
  }
  return reinterpret_cast<T*>(scratch_.get());
}

template <class T>
bool StoredNumbers::read_block(const Box& box, const Block& block, T* out) {
  std::vector<hsize_t> first = box.start, extent = box.count;  // in the selection
  if (part_.vector != VectorAs::row) {
    first.push_back(static_cast<hsize_t>(block.row));
    extent.push_back(static_cast<hsize_t>(block.rows));
  }
  if (part_.vector != VectorAs::column) {
    first.push_back(static_cast<hsize_t>(block.col));
    extent.push_back(static_cast<hsize_t>(block.cols));
  }
  std::vector<hsize_t> start, count;  // in the dataset
  for (std::size_t d = 0, kept = 0; d < part_.ranges.size(); ++d) {
    const Range& range = part_.ranges[d];
    start.push_back(static_cast<hsize_t>(range.first) + (range.is_dropped ? 0 : first[kept]));
    count.push_back(range.is_dropped ? 1 : extent[kept++]);
  }
  if (unpacker_) {
    const bool is_read = unpacker_->read(start, count, transfer_, out);
    if (!is_read) error_ = take_error();
    return is_read && !overflowed_;
  }
  storage_->require_chunks(start, count);  // on several threads, any of which may need the library
  // A part that HDF5 does not fill is NaN.
  std::fill_n(out, elements_of(count), T(std::numeric_limits<Real<T>>::quiet_NaN()));
  const Session session(file_.shown);
  const NumbersRead numbers;
  for (const Storage::Part& piece : storage_->cut({start, count}, most_chunks_at_once)) {
    if (!read_by_library(piece, out)) return false;
    out += elements_of(piece.count);
  }
  return !overflowed_;
}

template <class T>
bool StoredNumbers::read_by_library(const Storage::Part& part, T* out) {
  // The space in memory has the shape of the selection. HDF5 is slow if only the sizes agree.
  const Handle memory(
      H5Screate_simple(static_cast<int>(part.count.size()), part.count.data(), nullptr), H5Sclose);
  if (!memory || H5Sselect_hyperslab(space_, H5S_SELECT_SET, part.start.data(), nullptr,
                                     part.count.data(), nullptr) < 0) {
    return false;
  }
  const Handle complex =
      has_complex() ? make_complex_type(native_type<Real<T>>(), dataset_.parts) : Handle();
  const hid_t type = has_complex() ? complex : native_type<Real<T>>();
  if (H5Dread(dataset_.handle, type, memory, space_, transfer_, out) >= 0) return true;
  error_ = take_error();  // taken now, since the next call of HDF5 clears it
  return false;
}

index_t StoredNumbers::columns_of_chunk() const {
  int kept = 0;
  for (std::size_t d = storage_->chunk().size(); d-- > 0;)
    if (!part_.ranges[d].is_dropped && ++kept == 2)
      return static_cast<index_t>(storage_->chunk()[d]);
  return 1;
}

/// Reads whole matrices in their stored order.
template <class T>
bool StoredNumbers::read_stored(index_t first, index_t count, T* out) {
  const index_t size = source_.m * source_.n;
  if constexpr (std::is_floating_point_v<Real<T>>)
    if (direct_ && direct_->read(flat_first_ + first * size, count * size, out)) return true;
  const index_t rows = is_transposed_ ? source_.n : source_.m;
  for (const Box& box : cut_into_boxes(source_.leading, first, count)) {
    if (!read_block(box, {0, rows, 0, size / rows}, out)) return false;
    out += box.matrices * size;
  }
  return true;
}

template <class T>
bool StoredNumbers::read_transposed(index_t first, BatchView<T> out) {
  const index_t m = source_.m, n = source_.n;
  const index_t at_once = scratch_bytes() / (m * n * static_cast<index_t>(sizeof(T)));
  if (at_once == 0) {
    for (index_t b = 0; b < out.count; ++b) {
      if (!read_tile(first + b, 0, out[b])) return false;
    }
    return true;
  }
  T* stored = scratch<T>(std::min(at_once, out.count) * m * n);
  for (index_t done = 0; done < out.count; done += at_once) {
    const index_t piece = std::min(at_once, out.count - done);
    if (!read_stored(first + done, piece, stored)) return false;
    const auto matrices = packed<const T>(stored, piece, n, m);
    for (index_t b = 0; b < piece; ++b) transpose(matrices[b], out[done + b]);
  }
  return true;
}

template <class T>
bool StoredNumbers::read_tile(index_t matrix, index_t first_row, MatrixView<T> out) {
  const Box box = cut_into_boxes(source_.leading, matrix, 1).front();
  const index_t n = source_.n;
  if (!is_transposed_) {
    const index_t before = flat_first_ + (matrix * source_.m + first_row) * n;
    if constexpr (std::is_floating_point_v<Real<T>>)
      if (direct_ && direct_->read(before, out.rows * n, out.data)) return true;
    return read_block(box, {first_row, out.rows, 0, n}, out.data);
  }
  // Columns are read as long as possible, but a chunk with many columns should not be read once for
  // each.
  const index_t room = scratch_bytes() / static_cast<index_t>(sizeof(T));
  const index_t most_rows = std::clamp<index_t>(room / columns_of_chunk(), 1, out.rows);
  const index_t most_columns = std::clamp<index_t>(room / most_rows, 1, n);
  for (index_t i = 0; i < out.rows; i += most_rows) {
    const index_t rows = std::min(most_rows, out.rows - i);
    for (index_t j = 0; j < n; j += most_columns) {
      const index_t columns = std::min(most_columns, n - j);
      T* stored = scratch<T>(columns * rows);
      if (!read_block(box, {j, columns, first_row + i, rows}, stored)) return false;
      transpose<T>({stored, columns, rows, rows}, {&out(i, j), rows, columns, out.ld});
    }
  }
  return true;
}

template <class T>
bool StoredNumbers::read(index_t first, BatchView<T> out) {
  return is_transposed_ ? read_transposed(first, out) : read_stored(first, out.count, out.data);
}

template <class T>
bool StoredNumbers::read_part_of_row(index_t first, index_t count, T* out) {
  if constexpr (std::is_floating_point_v<Real<T>>)
    if (direct_ && direct_->read(flat_first_ + first, count, out)) return true;
  const index_t n = source_.n, size = source_.m * n;
  const Box box = cut_into_boxes(source_.leading, first / size, 1).front();
  return read_block(box, {.row = first % size / n, .rows = 1, .col = first % n, .cols = count},
                    out);
}

#define QRTOOL_FOR(T)                                                      \
  template bool StoredNumbers::read(index_t, BatchView<T>);                \
  template bool StoredNumbers::read_tile(index_t, index_t, MatrixView<T>); \
  template bool StoredNumbers::read_part_of_row(index_t, index_t, T*);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::int64_t)
QRTOOL_FOR(std::uint64_t)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool::hdf5
