// SPDX-License-Identifier: Apache-2.0
// reader.cpp: reads matrices from a dataset and gives them in row order, also where they are stored
// in column order.
#include "io/hdf5/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/factors_of_mode.hpp"
#include "io/file/read_write_at.hpp"
#include "io/file/transpose.hpp"
#include "io/hdf5/dimension_scales.hpp"
#include "io/hdf5/direct_reader.hpp"
#include "io/hdf5/recorded.hpp"
#include "io/hdf5/search.hpp"
#include "io/hdf5/storage.hpp"
#include "io/hdf5/unpacker.hpp"
#include "io/hdf5/variable.hpp"
#include "io/hdf5/watch.hpp"
#include "io/part_reader.hpp"
#include "io/selected_reader.hpp"
#include "io/selection.hpp"
#include "io/variable_record.hpp"

namespace qrtool {
namespace {

using hdf5::Box;
using hdf5::Dataset;
using hdf5::DirectReader;
using hdf5::Handle;
using hdf5::InputFile;
using hdf5::Session;

// The bytes that are read at a time where numbers must be transposed; less where memory is short.
constexpr index_t most_scratch_bytes = index_t{8} << 20, least_scratch_bytes = index_t{1} << 18;
// The bytes in which HDF5 converts numbers.
constexpr std::size_t conversion_bytes = std::size_t{2} << 20;
// Each of these threads holds a chunk twice, packed and unpacked.
constexpr int most_decoding_threads = 4;

/// A block of stored rows and columns of every matrix.
struct Block {
  index_t row, rows, col, cols;
};

/// Whether the value is infinite. HDF5 also reports infinity as a number out of range.
bool is_infinite(hid_t type, const void* value) {
  if (H5Tequal(type, H5T_NATIVE_DOUBLE) > 0) return std::isinf(*static_cast<const double*>(value));
  if (H5Tequal(type, H5T_NATIVE_LDOUBLE) > 0) {
    return std::isinf(*static_cast<const long double*>(value));
  }
  return false;
}

/// HDF5 calls this where a number does not fit its type. It notes finite numbers that become
/// infinite.
H5T_conv_ret_t note_overflow(H5T_conv_except_t exception, hid_t from, hid_t, void* value, void*,
                             void* overflowed) {
  if ((exception == H5T_CONV_EXCEPT_RANGE_HI || exception == H5T_CONV_EXCEPT_RANGE_LOW) &&
      !is_infinite(from, value)) {
    *static_cast<bool*>(overflowed) = true;
  }
  return H5T_CONV_UNHANDLED;
}

/// The bytes of the chunks that one call of read shares with the next: the chunks across the faster
/// dimensions where whole matrices or rows are read, and those across the stored rows where columns
/// are read.
double shared_chunk_bytes(const Dataset& dataset, std::span<const hsize_t> chunk) {
  const std::size_t rank = chunk.size();
  const auto chunks_across = [&](std::size_t d) {
    return static_cast<double>((dataset.dims[d] + chunk[d] - 1) / chunk[d]);
  };
  auto chunk_bytes = static_cast<double>(dataset.stored_bytes);
  for (const hsize_t extent : chunk) chunk_bytes *= static_cast<double>(extent);
  double across = 1;
  const auto first = std::find_if(chunk.begin(), chunk.end(), [](hsize_t c) { return c > 1; });
  for (auto d = static_cast<std::size_t>(first - chunk.begin()) + 1; d < rank; ++d) {
    across *= chunks_across(d);
  }
  if (rank >= 2) across = std::max(across, chunks_across(rank - 2));
  return chunk_bytes * across;
}

/// Opens a chunked dataset again with a cache that holds those chunks, so that no chunk is
/// decompressed again for every call. Returns the bytes of the cache.
std::size_t enlarge_cache(const InputFile& file, Dataset& dataset, std::size_t memory_bytes) {
  constexpr double usual_bytes = 1 << 20;
  const double most_bytes =
      std::clamp<double>(static_cast<double>(memory_bytes) / 4, usual_bytes, 64 << 20);
  constexpr std::size_t slots =
      12421;  // a prime, far larger than the number of chunks in the cache
  const Handle creation(H5Dget_create_plist(dataset.handle), H5Pclose);
  const auto rank = static_cast<int>(dataset.dims.size());
  std::vector<hsize_t> chunk(dataset.dims.size());
  if (H5Pget_layout(creation) != H5D_CHUNKED) return 0;
  if (H5Pget_chunk(creation, rank, chunk.data()) != rank) return 0;
  const auto bytes = static_cast<std::size_t>(
      std::clamp(shared_chunk_bytes(dataset, chunk), usual_bytes, most_bytes));
  const Handle access(H5Pcreate(H5P_DATASET_ACCESS), H5Pclose);
  H5Pset_chunk_cache(access, slots, bytes, H5D_CHUNK_CACHE_W0_DEFAULT);
  dataset.handle.close();  // a dataset that is still open keeps its properties
  dataset.handle = Handle(H5Dopen2(file.handle, dataset.path.c_str(), access), H5Dclose);
  return bytes;
}

class Hdf5Reader final : public Reader, public PartReader {
 public:
  /// row: the last dimension is a matrix of one row (tau); column: the only one that the selection
  /// leaves is a matrix of one column.
  enum class Vector { no, row, column };
  /// Says which part of a dataset is read, and how.
  struct Part {
    Order order = Order::row;
    Order stated = Order::row;      // what the source says; of an array only what it states
    bool order_is_stated = true;    // not guessed
    std::string order_reason = {};  // what in the file states it
    bool raw_values = false;        // the attributes of the variable do not count
    std::vector<Dimension> dimensions = {};  // of the source
    Vector vector = Vector::no;
    std::vector<Range> ranges =
        {};                      // of the stored dimensions, with steps of 1; empty: all is read
    std::string selection = {};  // as text
    int threads = 1;
    std::size_t memory_bytes = SIZE_MAX;
  };
  Hdf5Reader(std::shared_ptr<InputFile> file, Dataset dataset, Part part);

  void read(index_t first, BatchView<float> out) override { read_matrices(first, out); }
  void read(index_t first, BatchView<double> out) override { read_matrices(first, out); }
  void read_rows(index_t matrix, index_t first_row, MatrixView<float> out) override {
    read_row_range(matrix, first_row, out);
  }
  void read_rows(index_t matrix, index_t first_row, MatrixView<double> out) override {
    read_row_range(matrix, first_row, out);
  }
  bool can_read_parts() const override { return !is_transposed_; }
  void read_part(index_t first, index_t count, float* out) override {
    read_part_of_row(first, count, out);
  }
  void read_part(index_t first, index_t count, double* out) override {
    read_part_of_row(first, count, out);
  }
  void require_unchanged() const override {
    file_->stamp->require_unchanged(hdf5::descriptor_of(file_->handle), file_->shown);
  }
  std::size_t workspace_bytes(ElementType type) const override;
  std::unique_ptr<Reader> another() const override;
  index_t piece_end(index_t matrix, index_t first_row) const override;

 private:
  index_t scratch_bytes() const;
  void open_direct();
  void describe_source();
  template <class T>
  void read_matrices(index_t first, BatchView<T> out);
  template <class T>
  void read_row_range(index_t matrix, index_t first_row, MatrixView<T> out);
  template <class T>
  void read_part_of_row(index_t first, index_t count, T* out);

  // These return false where HDF5 reports an error or a number is too large for T.
  template <class T>
  bool read_block(const Box& box, const Block& block, T* out);
  template <class T>
  bool read_stored(index_t first, index_t count, T* out);
  template <class T>
  bool read_transposed(index_t first, BatchView<T> out);
  template <class T>
  bool read_tile(index_t matrix, index_t first_row, MatrixView<T> out);
  bool read_long(index_t first, BatchView<double> out);
  bool read_long_tile(index_t matrix, index_t first_row, MatrixView<double> out);
  template <class T>
  bool can_be_read(index_t matrix);
  /// Whether stored numbers are decoded that a float does not hold exactly.
  bool is_wide() const { return !dataset_.variable.is_plain() && !dataset_.variable.is_single; }
  /// Whether the stored numbers are integers of 64 bits, and whether they are unsigned.
  bool is_long() const { return !dataset_.variable.is_plain() && dataset_.variable.is_long; }
  bool is_stored_unsigned() const {
    return dataset_.variable.is_unsigned != dataset_.variable.reverses_sign;
  }
  double* wide_numbers(index_t elements);
  void read_narrowed(index_t first, BatchView<float> out);
  void read_rows_narrowed(index_t matrix, index_t first_row, MatrixView<float> out);
  void narrow(index_t matrix, const double* numbers, index_t count, float* out) const;

  template <class T>
  [[noreturn]] void throw_failure(index_t first, index_t count);
  [[noreturn]] void throw_too_large(index_t matrix, ElementType type) const;
  std::string cause(const std::string& error) const;
  template <class T>
  T* scratch(index_t elements);

  std::shared_ptr<InputFile> file_;
  Dataset dataset_;
  Part part_;
  Handle space_, transfer_;
  std::optional<hdf5::Storage> storage_;
  std::unique_ptr<DirectReader> direct_;      // null where dataset or selection do not allow it
  index_t flat_first_ = 0;                    // of direct_: the first selected element
  std::unique_ptr<hdf5::Unpacker> unpacker_;  // null where the dataset does not allow it
  std::size_t cache_bytes_ = 0;               // of HDF5, for chunks
  bool is_transposed_ = false;
  bool overflowed_ = false;
  std::string error_;  // the error of the last call that failed
  HostMemory scratch_;
  index_t scratch_size_ = 0;  // bytes
  std::vector<double> wide_;  // decoded numbers that are still to be rounded to float
};

/// The first element of the selection, where its elements follow each other in the flat order:
/// below the first dimension of which it has several indices, all dimensions are whole.
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

Hdf5Reader::Hdf5Reader(std::shared_ptr<InputFile> file, Dataset dataset, Part part)
    : file_(std::move(file)), dataset_(std::move(dataset)), part_(std::move(part)) {
  const Session session(file_->shown);
  if (part_.raw_values) dataset_.variable = {};
  if (!dataset_.variable.problem.empty())
    throw InputError(fmt::format("{}: dataset {} {}", file_->shown, dataset_.shown,
                                 escape(dataset_.variable.problem)),
                     "--raw-values takes the numbers as they are stored");
  std::vector<Range>& ranges = part_.ranges;
  for (std::size_t d = ranges.size(); d < dataset_.dims.size(); ++d)
    ranges.push_back({.count = static_cast<index_t>(dataset_.dims[d])});
  cache_bytes_ = enlarge_cache(*file_, dataset_, part_.memory_bytes);
  space_ = Handle(H5Dget_space(dataset_.handle), H5Sclose);
  transfer_ = Handle(H5Pcreate(H5P_DATASET_XFER), H5Pclose);
  H5Pset_type_conv_cb(transfer_, note_overflow, &overflowed_);
  if (!dataset_.handle || !space_ || !transfer_) {
    hdf5::take_error();
    throw InputError(fmt::format("{}: dataset {} is damaged and cannot be opened", file_->shown,
                                 dataset_.shown));
  }
  storage_.emplace(*file_, dataset_, std::clamp(part_.threads, 1, most_decoding_threads));
  std::vector<hsize_t> start, count;
  for (const Range& range : ranges) {
    start.push_back(static_cast<hsize_t>(range.first));
    count.push_back(static_cast<hsize_t>(range.count));
  }
  storage_->require_possible_size(start, count);
  open_direct();
  unpacker_ = hdf5::Unpacker::open(*file_, dataset_, *storage_,
                                   {.threads = part_.threads,
                                    .most_kept = cache_bytes_,
                                    .memory_bytes = part_.memory_bytes / 2});
  is_transposed_ = part_.order == Order::column && part_.vector == Vector::no;
  describe_source();
}

void Hdf5Reader::open_direct() {
  const std::optional<index_t> first = first_of_stretch(part_.ranges, dataset_.dims);
  if (!first) return;
  flat_first_ = *first;
  direct_ = DirectReader::open(*file_, dataset_, useful_reading_threads(part_.threads),
                               part_.memory_bytes / 2);
}

void Hdf5Reader::describe_source() {
  source_.file = file_->name;
  source_.dataset = dataset_.shown + part_.selection;
  source_.type = dataset_.type;
  source_.stored_type = dataset_.stored_type;
  source_.order = part_.stated;
  source_.order_is_stated = part_.order_is_stated;
  source_.order_reason = part_.order_reason;
  source_.details = record_of(dataset_.variable);
  if (part_.raw_values) source_.details.emplace_back("netcdf_raw_values", "yes");
  for (const std::string& note : dataset_.variable.notes)
    source_.notes.push_back(fmt::format("{}: {}", dataset_.shown, note));
  std::vector<index_t> extents;
  for (const Range& range : part_.ranges) {
    if (!range.is_dropped) extents.push_back(range.count);
  }
  source_.n = extents.back();
  extents.pop_back();
  source_.m = 1;
  if (part_.vector == Vector::no) {
    source_.m = extents.back();
    extents.pop_back();
  }
  if (part_.vector == Vector::column) {
    source_.array_dims = {source_.n};
    std::swap(source_.m, source_.n);
  }
  source_.leading = std::move(extents);
  if (is_transposed_) std::swap(source_.m, source_.n);
  source_.dimensions = part_.dimensions;
  if (has_doubtful_order(source_)) source_.details.emplace_back(order_guessed_name, "yes");
}

index_t Hdf5Reader::scratch_bytes() const {
  return static_cast<index_t>(
      std::clamp<std::size_t>(part_.memory_bytes / 8, least_scratch_bytes, most_scratch_bytes));
}

std::size_t Hdf5Reader::workspace_bytes(ElementType type) const {
  if (is_wide() && type == ElementType::float32)
    return static_cast<std::size_t>(scratch_bytes()) + workspace_bytes(ElementType::float64);
  const std::size_t scratch = is_transposed_ ? static_cast<std::size_t>(scratch_bytes()) : 0;
  // A direct reader does not read numbers that are wider than `type`.
  if (direct_ && dataset_.stored_bytes <= size_of(type))
    return scratch + direct_->workspace_bytes(type);
  if (unpacker_) return scratch + unpacker_->workspace_bytes(type);
  // HDF5 undoes a filter from one chunk to another, after they were compared on all threads.
  const auto chunks = static_cast<std::size_t>(2 + 2 * storage_->threads());
  const std::size_t bytes = storage_->filters().are_none() ? 0 : chunks * storage_->chunk_bytes();
  return scratch + cache_bytes_ + conversion_bytes + bytes;
}

std::unique_ptr<Reader> Hdf5Reader::another() const {
  const Session session(file_->shown);
  // A second reader is of no use where HDF5 reads, which works on one thread at a time.
  if (!direct_ || is_transposed_) return nullptr;
  Dataset dataset = hdf5::open_dataset(*file_, dataset_.path);
  Part part = part_;
  part.threads = 1;
  return std::make_unique<Hdf5Reader>(file_, std::move(dataset), std::move(part));
}

index_t Hdf5Reader::piece_end(index_t matrix, index_t first_row) const {
  const index_t end = Reader::piece_end(matrix, first_row);
  if (!direct_ || is_transposed_ || end == source_.m) return end;
  const index_t m = source_.m, n = source_.n;
  const index_t start = direct_->piece_start(flat_first_ + (matrix * m + end) * n) - flat_first_;
  const index_t row = (start + n - 1) / n - matrix * m;
  return row > first_row ? row : end;
}

template <class T>
T* Hdf5Reader::scratch(index_t elements) {
  const index_t bytes = elements * static_cast<index_t>(sizeof(T));
  if (bytes > scratch_size_) {
    scratch_ = allocate_host(static_cast<std::size_t>(bytes));
    scratch_size_ = bytes;
  }
  return reinterpret_cast<T*>(scratch_.get());
}

template <class T>
bool Hdf5Reader::read_block(const Box& box, const Block& block, T* out) {
  std::vector<hsize_t> first = box.start, extent = box.count;  // in the selection
  if (part_.vector != Vector::row) {
    first.push_back(static_cast<hsize_t>(block.row));
    extent.push_back(static_cast<hsize_t>(block.rows));
  }
  if (part_.vector != Vector::column) {
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
    if (!is_read) error_ = hdf5::take_error();
    return is_read && !overflowed_;
  }
  storage_->require_chunks(start, count);  // on several threads, any of which may need the library
  const Session session(file_->shown);
  // The space in memory has the shape of the selection. HDF5 is slow where only the sizes agree.
  const Handle memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr),
                      H5Sclose);
  if (!memory || H5Sselect_hyperslab(space_, H5S_SELECT_SET, start.data(), nullptr, count.data(),
                                     nullptr) < 0) {
    return false;
  }
  // A part that HDF5 does not fill is NaN.
  std::size_t elements = 1;
  for (const hsize_t counted : count) elements *= counted;
  std::fill_n(out, elements, std::numeric_limits<T>::quiet_NaN());
  const hdf5::NumbersRead numbers;
  if (H5Dread(dataset_.handle, hdf5::native_type<T>(), memory, space_, transfer_, out) < 0) {
    error_ = hdf5::take_error();  // taken now, since the next call of HDF5 clears it
    return false;
  }
  return !overflowed_;
}

/// Reads whole matrices in their stored order.
template <class T>
bool Hdf5Reader::read_stored(index_t first, index_t count, T* out) {
  const index_t size = source_.m * source_.n;
  if constexpr (std::is_floating_point_v<T>)
    if (direct_ && direct_->read(flat_first_ + first * size, count * size, out)) return true;
  const index_t rows = is_transposed_ ? source_.n : source_.m;
  for (const Box& box : hdf5::cut_into_boxes(source_.leading, first, count)) {
    if (!read_block(box, {0, rows, 0, size / rows}, out)) return false;
    out += box.matrices * size;
  }
  return true;
}

template <class T>
bool Hdf5Reader::read_transposed(index_t first, BatchView<T> out) {
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
bool Hdf5Reader::read_tile(index_t matrix, index_t first_row, MatrixView<T> out) {
  const Box box = hdf5::cut_into_boxes(source_.leading, matrix, 1).front();
  const index_t n = source_.n;
  if (!is_transposed_) {
    const index_t before = flat_first_ + (matrix * source_.m + first_row) * n;
    if constexpr (std::is_floating_point_v<T>)
      if (direct_ && direct_->read(before, out.rows * n, out.data)) return true;
    return read_block(box, {first_row, out.rows, 0, n}, out.data);
  }
  const index_t row_bytes = out.rows * static_cast<index_t>(sizeof(T));
  const index_t step = std::clamp<index_t>(scratch_bytes() / row_bytes, 1, n);
  for (index_t j = 0; j < n; j += step) {
    const index_t columns = std::min(step, n - j);
    T* stored = scratch<T>(columns * out.rows);
    if (!read_block(box, {j, columns, first_row, out.rows}, stored)) return false;
    transpose<T>({stored, columns, out.rows, out.rows}, {out.data + j, out.rows, columns, out.ld});
  }
  return true;
}

/// Reads integers of 64 bits as they are stored into the place of their numbers, and decodes them.
bool Hdf5Reader::read_long(index_t first, BatchView<double> out) {
  const auto read = [&]<class T>(T* place) {
    return is_transposed_ ? read_transposed(first, packed(place, out.count, out.rows, out.cols))
                          : read_stored(first, out.count, place);
  };
  // The memory holds integers of another sign where the attribute says so: bits are the same.
  const bool is_read = is_stored_unsigned() ? read(reinterpret_cast<std::uint64_t*>(out.data))
                                            : read(reinterpret_cast<std::int64_t*>(out.data));
  if (is_read) decode_long(dataset_.variable, out.data, out.count * out.rows * out.cols);
  return is_read;
}

bool Hdf5Reader::read_long_tile(index_t matrix, index_t first_row, MatrixView<double> out) {
  const auto read = [&]<class T>(T* place) {
    return read_tile(matrix, first_row, MatrixView<T>{place, out.rows, out.cols, out.ld});
  };
  const bool is_read = is_stored_unsigned() ? read(reinterpret_cast<std::uint64_t*>(out.data))
                                            : read(reinterpret_cast<std::int64_t*>(out.data));
  if (is_read) decode_long(dataset_.variable, out.data, out.rows * out.cols);
  return is_read;
}

template <class T>
void Hdf5Reader::read_matrices(index_t first, BatchView<T> out) {
  if (first < 0 || first + out.count > source_.count() || out.rows != source_.m ||
      out.cols != source_.n || !out.is_packed()) {
    throw InternalError("read: a range or shape outside the dataset");
  }
  if (out.count == 0 || out.rows == 0 || out.cols == 0) return;
  if constexpr (std::is_same_v<T, float>)
    if (is_wide()) return read_narrowed(first, out);
  overflowed_ = false;
  if constexpr (std::is_same_v<T, double>)
    if (is_long()) {
      if (!read_long(first, out)) throw_failure<T>(first, out.count);
      return;
    }
  if (!(is_transposed_ ? read_transposed(first, out) : read_stored(first, out.count, out.data))) {
    throw_failure<T>(first, out.count);
  }
  if (!dataset_.variable.is_plain())
    decode(dataset_.variable, out.data, out.count * out.rows * out.cols);
}

template <class T>
void Hdf5Reader::read_row_range(index_t matrix, index_t first_row, MatrixView<T> out) {
  if (matrix < 0 || matrix >= source_.count() || first_row < 0 ||
      first_row + out.rows > source_.m || out.cols != source_.n || out.ld != out.cols) {
    throw InternalError("read_rows: a range or shape outside the dataset");
  }
  if (out.rows == 0 || out.cols == 0) return;
  if constexpr (std::is_same_v<T, float>)
    if (is_wide()) return read_rows_narrowed(matrix, first_row, out);
  overflowed_ = false;
  if constexpr (std::is_same_v<T, double>)
    if (is_long()) {
      if (!read_long_tile(matrix, first_row, out)) throw_failure<T>(matrix, 1);
      return;
    }
  if (!read_tile(matrix, first_row, out)) throw_failure<T>(matrix, 1);
  if (!dataset_.variable.is_plain()) decode(dataset_.variable, out.data, out.rows * out.cols);
}

/// Reads a part of one row into `out`, and decodes it.
template <class T>
void Hdf5Reader::read_part_of_row(index_t first, index_t count, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (is_wide()) {
      const index_t step = scratch_bytes() / static_cast<index_t>(sizeof(double));
      for (index_t i = 0; i < count; i += step) {
        const index_t piece = std::min(step, count - i);
        double* numbers = wide_numbers(piece);
        read_part_of_row(first + i, piece, numbers);
        narrow(first / (source_.m * source_.n), numbers, piece, out + i);
      }
      return;
    }
  }
  const index_t n = source_.n, size = source_.m * n, matrix = first / size;
  const Block block{.row = first % size / n, .rows = 1, .col = first % n, .cols = count};
  const Box box = hdf5::cut_into_boxes(source_.leading, matrix, 1).front();
  overflowed_ = false;
  if constexpr (std::is_same_v<T, double>) {
    if (is_long()) {
      const bool is_read = is_stored_unsigned()
                               ? read_block(box, block, reinterpret_cast<std::uint64_t*>(out))
                               : read_block(box, block, reinterpret_cast<std::int64_t*>(out));
      if (!is_read) throw_failure<T>(matrix, 1);
      return decode_long(dataset_.variable, out, count);
    }
  }
  const bool is_read =
      (direct_ && direct_->read(flat_first_ + first, count, out)) || read_block(box, block, out);
  if (!is_read) throw_failure<T>(matrix, 1);
  if (!dataset_.variable.is_plain()) decode(dataset_.variable, out, count);
}

double* Hdf5Reader::wide_numbers(index_t elements) {
  if (std::ssize(wide_) < elements) wide_.resize(static_cast<std::size_t>(elements));
  return wide_.data();
}

void Hdf5Reader::narrow(index_t matrix, const double* numbers, index_t count, float* out) const {
  if (!hdf5::narrow(numbers, count, out)) throw_too_large(matrix, ElementType::float32);
}

/// Missing values are compared as stored, and a scale is applied, before numbers become floats.
void Hdf5Reader::read_narrowed(index_t first, BatchView<float> out) {
  const index_t size = out.rows * out.cols;
  const index_t at_once = scratch_bytes() / (size * static_cast<index_t>(sizeof(double)));
  if (at_once == 0) {
    for (index_t b = 0; b < out.count; ++b) read_rows_narrowed(first + b, 0, out[b]);
    return;
  }
  double* numbers = wide_numbers(std::min(at_once, out.count) * size);
  for (index_t done = 0; done < out.count; done += at_once) {
    const index_t piece = std::min(at_once, out.count - done);
    read_matrices(first + done, packed(numbers, piece, out.rows, out.cols));
    for (index_t b = 0; b < piece; ++b)
      narrow(first + done + b, numbers + b * size, size, out[done + b].data);
  }
}

void Hdf5Reader::read_rows_narrowed(index_t matrix, index_t first_row, MatrixView<float> out) {
  const index_t n = out.cols, row_bytes = n * static_cast<index_t>(sizeof(double));
  const index_t step = std::clamp<index_t>(scratch_bytes() / row_bytes, 1, out.rows);
  double* numbers = wide_numbers(step * n);
  for (index_t i = 0; i < out.rows; i += step) {
    const index_t rows = std::min(step, out.rows - i);
    read_row_range(matrix, first_row + i, MatrixView<double>{numbers, rows, n, n});
    narrow(matrix, numbers, rows * n, &out(i, 0));
  }
}

template <class T>
bool Hdf5Reader::can_be_read(index_t matrix) {
  const index_t row_bytes = source_.n * static_cast<index_t>(sizeof(T));
  const index_t step = std::clamp<index_t>(scratch_bytes() / row_bytes, 1, source_.m);
  Batch<T> rows(1, step, source_.n);
  for (index_t i = 0; i < source_.m; i += step) {
    if (!read_tile(matrix, i, rows.view()[0].row_block(0, std::min(step, source_.m - i)))) {
      return false;
    }
  }
  return true;
}

std::string Hdf5Reader::cause(const std::string& error) const {
  if (error.find("Fletcher32") != std::string::npos) return "checksum mismatch";
  if (error.find("inflate") != std::string::npos) return "it cannot be decompressed";
  return escape(hdf5::innermost_error(error));
}

template <class T>
void Hdf5Reader::throw_failure(index_t first, index_t count) {
  std::string error = error_;
  bool overflowed = overflowed_;
  index_t matrix = first;
  // Reading one matrix at a time finds the first that is damaged.
  for (index_t b = first; count > 1 && b < first + count; ++b) {
    overflowed_ = false;
    if (can_be_read<T>(b)) continue;
    error = error_;
    overflowed = overflowed_;
    matrix = b;
    break;
  }
  if (overflowed) throw_too_large(matrix, element_type<T>);
  const std::string where = source_.leading.empty() ? "" : fmt::format(" at matrix {}", matrix);
  throw InputError(fmt::format("{}: dataset {} is damaged ({}{})", file_->shown, dataset_.shown,
                               cause(error), where));
}

void Hdf5Reader::throw_too_large(index_t matrix, ElementType type) const {
  const std::string where = source_.leading.empty() ? "" : fmt::format(" at matrix {}", matrix);
  throw InputError(fmt::format("{}: dataset {} holds a number{} that is too large for {}",
                               file_->shown, dataset_.shown, where, name_of(type)),
                   type == ElementType::float32 ? "use --precision double" : "");
}

/// The order that the file states, in this tool's attribute or by the marks of the program that
/// wrote the dataset.
hdf5::OrderEvidence stated_order(const InputFile& file, const Dataset& dataset) {
  const Order recorded = hdf5::read_recorded(file).order;
  // Solutions have the order of their right sides, which need not be that of A.
  const std::string of_sides = hdf5::string_attribute(file, file.handle, "right_side_order");
  const bool has_solutions = recorded != Order::automatic && !of_sides.empty();
  if (has_solutions)
    return {of_sides == "column" ? Order::column : Order::row, "as qrtool recorded"};
  if (recorded != Order::automatic) return {recorded, "as qrtool recorded"};
  // `qrtool generate` writes rows.
  if (hdf5::string_attribute(file, file.handle, "generator").starts_with("qrtool"))
    return {Order::row, "qrtool generate wrote it"};
  return dataset.order;
}

/// Says where factors are in a file, and how they are read.
struct Place {
  std::string name;  // of one of several datasets; empty: the file holds factors of one
  Order order = Order::row;
  int threads = 1;
};

std::unique_ptr<Reader> open_factor(const std::shared_ptr<InputFile>& file, const char* upper,
                                    const char* lower, const Place& place) {
  const bool is_vector = std::string_view(upper) == "/tau" || std::string_view(upper) == "/P";
  const auto vector = is_vector ? Hdf5Reader::Vector::row : Hdf5Reader::Vector::no;
  Order order = place.order;
  for (const char* group : {upper, lower}) {
    const std::string path = place.name.empty() ? group : fmt::format("{}/{}", group, place.name);
    Dataset dataset = hdf5::open_dataset(*file, path);
    if (dataset.is_other) {
      throw InputError(fmt::format("{}: {} is no dataset", file->shown, escape(path)));
    }
    if (!dataset.handle) continue;
    if (dataset.problem.empty() && dataset.dims.size() < (is_vector ? 1 : 2)) {
      dataset.problem =
          fmt::format("has rank {} ({})", dataset.dims.size(), hdf5::shape_text(dataset.dims));
    }
    hdf5::require_readable(*file, dataset);
    const Order stated = stated_order(*file, dataset).order;
    if (stated != Order::automatic) order = stated;
    if (order == Order::automatic) order = Order::row;
    return std::make_unique<Hdf5Reader>(
        file, std::move(dataset),
        Hdf5Reader::Part{
            .order = order, .stated = order, .vector = vector, .threads = place.threads});
  }
  return nullptr;
}

/// A dataset whose name has the brackets of a selection is meant as a whole.
SelectedPath split_unless_named(const InputFile& file, const std::string& text) {
  if (!may_select(text)) return {text, {}};
  const std::string absolute = text.starts_with('/') ? text : "/" + text;
  if (hdf5::open_dataset(file, absolute).handle) return {text, {}};
  return split_selection(text);
}

/// Returns the ranges of every dimension from its first to its last index, without steps.
std::vector<Range> without_steps(std::vector<Range> ranges) {
  for (Range& range : ranges) {
    if (range.count > 0) range.count = (range.count - 1) * range.step + 1;
    range.step = 1;
  }
  return ranges;
}

/// The ranges, of what without_steps() has left and in the order of Source, that the steps choose.
std::vector<Range> steps_of(const std::vector<Range>& ranges, Order order) {
  std::vector<Range> steps;
  for (const Range& range : ranges) {
    if (!range.is_dropped) steps.push_back({.count = range.count, .step = range.step});
  }
  if (order == Order::column) std::swap(steps.back(), steps[steps.size() - 2]);
  return steps;
}

/// The dimensions that the ranges leave, with the coordinates that they choose; in the order of
/// Source where `is_transposed` says that the last two are stored reversed.
std::vector<Dimension> selected_dimensions(std::vector<Dimension> dimensions,
                                           const std::vector<Range>& ranges, bool is_transposed) {
  if (dimensions.empty()) return {};
  std::vector<Dimension> selected;
  for (std::size_t d = 0; d < ranges.size(); ++d) {
    const Range& range = ranges[d];
    if (range.is_dropped) continue;
    Dimension& dimension = selected.emplace_back(std::move(dimensions[d]));
    dimension.extent = range.count;
    if (dimension.coordinates.empty()) continue;
    std::vector<double> chosen;
    for (index_t i = 0; i < range.count; ++i)
      chosen.push_back(
          dimension.coordinates[static_cast<std::size_t>(range.first + i * range.step)]);
    dimension.coordinates = std::move(chosen);
  }
  if (is_transposed) std::swap(selected.back(), selected[selected.size() - 2]);
  return selected;
}

/// The tries of a report; empty where it has none.
std::vector<std::uint8_t> read_tries(const InputFile& file, const std::string& report) {
  const Dataset dataset = hdf5::open_dataset(file, report + "/tries");
  if (!dataset.handle) return {};
  hdf5::require_readable(file, dataset);
  std::size_t count = 1;
  for (const hsize_t extent : dataset.dims) count *= extent;
  if (count == 0) return {};
  const std::vector<hsize_t> from_first(dataset.dims.size(), 0);
  hdf5::Storage storage(file, dataset, /*threads=*/1);
  storage.require_possible_size(from_first, dataset.dims);
  storage.require_chunks(from_first, dataset.dims);
  std::vector<std::uint8_t> tries(count);
  const hdf5::NumbersRead numbers;
  if (H5Dread(dataset.handle, H5T_NATIVE_UINT8, H5S_ALL, H5S_ALL, H5P_DEFAULT, tries.data()) < 0)
    throw InputError(fmt::format("{}: dataset {} is damaged ({})", file.shown, dataset.shown,
                                 escape(hdf5::innermost_error(hdf5::take_error()))));
  return tries;
}

}  // namespace

std::unique_ptr<Reader> open_hdf5_input(const InputSpec& spec) {
  if (spec.takes_vectors) return open_hdf5_array(spec);
  const auto file = std::make_shared<InputFile>(hdf5::open_file(spec.path));
  const Session session(file->shown);
  const SelectedPath named = split_unless_named(*file, spec.dataset);
  Dataset dataset = hdf5::find_matrices(*file, named.path);
  hdf5::OrderEvidence evidence{.order = spec.order};
  if (spec.order == Order::automatic) evidence = stated_order(*file, dataset);
  const bool is_stated = evidence.order != Order::automatic && !spec.order_is_guess;
  const Order order = evidence.order == Order::automatic ? Order::row : evidence.order;
  const std::string& text = named.selection.text;
  const std::vector<index_t> dims(dataset.dims.begin(), dataset.dims.end());
  const std::vector<Range> ranges = resolve(
      named.selection, dims, fmt::format("{}:{}{}", file->shown, dataset.shown, escape(text)));
  std::vector<Dimension> dimensions =
      selected_dimensions(hdf5::read_dimensions(*file, dataset), ranges, order == Order::column);
  auto reader = std::make_unique<Hdf5Reader>(file, std::move(dataset),
                                             Hdf5Reader::Part{.order = order,
                                                              .stated = order,
                                                              .order_is_stated = is_stated,
                                                              .order_reason = evidence.reason,
                                                              .raw_values = spec.raw_values,
                                                              .dimensions = std::move(dimensions),
                                                              .ranges = without_steps(ranges),
                                                              .selection = text,
                                                              .threads = spec.threads,
                                                              .memory_bytes = spec.memory_bytes});
  // HDF5 is several times as slow with steps as without.
  return take_steps(std::move(reader), steps_of(ranges, order));
}

std::unique_ptr<Reader> open_hdf5_array(const InputSpec& spec) {
  const auto file = std::make_shared<InputFile>(hdf5::open_file(spec.path));
  const Session session(file->shown);
  const SelectedPath named = split_unless_named(*file, spec.dataset);
  Dataset dataset = hdf5::find_array(*file, named.path);
  const std::string shown =
      fmt::format("{}:{}{}", file->shown, dataset.shown, escape(named.selection.text));
  const std::vector<index_t> dims(dataset.dims.begin(), dataset.dims.end());
  const std::vector<Range> ranges = resolve(named.selection, dims, shown, /*matrix_rank=*/0);
  std::vector<Range> steps = steps_of(ranges, Order::row);
  const bool is_vector = steps.size() == 1;
  if (is_vector) steps.push_back({.count = 1});
  const hdf5::OrderEvidence evidence = stated_order(*file, dataset);
  std::vector<Dimension> dimensions =
      selected_dimensions(hdf5::read_dimensions(*file, dataset), ranges, /*is_transposed=*/false);
  auto reader = std::make_unique<Hdf5Reader>(
      file, std::move(dataset),
      Hdf5Reader::Part{.stated = evidence.order,
                       .order_reason = evidence.reason,
                       .raw_values = spec.raw_values,
                       .dimensions = std::move(dimensions),
                       .vector = is_vector ? Hdf5Reader::Vector::column : Hdf5Reader::Vector::no,
                       .ranges = without_steps(ranges),
                       .selection = named.selection.text,
                       .threads = spec.threads,
                       .memory_bytes = spec.memory_bytes});
  return take_steps(std::move(reader), steps);
}

std::string find_hdf5_solutions(const std::string& path) {
  const InputFile file = hdf5::open_file(path);
  const Session session(file.shown);
  for (const char* name : {"/X", "/x"})
    if (hdf5::open_dataset(file, name).handle) return name;
  return "";
}

std::vector<std::string> read_hdf5_attributes(const std::string& path,
                                              const std::vector<const char*>& names) {
  const InputFile file = hdf5::open_file(path);
  const Session session(file.shown);
  std::vector<std::string> texts(names.size());
  if (!hdf5::read_recorded(file, "/").by_qrtool) return texts;
  for (std::size_t i = 0; i < names.size(); ++i)
    texts[i] = hdf5::string_attribute(file, file.handle, names[i]);
  return texts;
}

RecordedInput read_hdf5_recorded_input(const std::string& path) {
  return read_hdf5_recorded_input_of(path, "");
}

RecordedInput read_hdf5_recorded_input_of(const std::string& path, const std::string& source) {
  const InputFile file = hdf5::open_file(path);
  const Session session(file.shown);
  const std::string group = source.empty() ? "/" : hdf5::report_of(source);
  hdf5::Recorded recorded = hdf5::read_recorded(file, group);
  return {.file = recorded.source_file,
          .dataset = recorded.source_dataset,
          .order = recorded.order,
          .details = std::move(recorded.details)};
}

std::vector<std::string> read_hdf5_source_datasets(const std::string& path) {
  const InputFile file = hdf5::open_file(path);
  const Session session(file.shown);
  return hdf5::read_source_datasets(file);
}

StoredFactors open_hdf5_factors(const std::string& path, Order order, int threads) {
  return open_hdf5_factors_of(path, "", order, threads);
}

StoredFactors open_hdf5_factors_of(const std::string& path, const std::string& source, Order order,
                                   int threads) {
  const auto file = std::make_shared<InputFile>(hdf5::open_file(path));
  const Session session(file->shown);
  const std::string report = hdf5::report_of(source);
  const hdf5::Recorded recorded = hdf5::read_recorded(*file, source.empty() ? "/" : report);
  const Place place{
      .name = name_in_output(source),
      .order = source.empty() || recorded.order == Order::automatic ? order : recorded.order,
      .threads = threads};
  StoredFactors factors;
  factors.file = source.empty() ? path : fmt::format("{}:{}", path, source);
  factors.by_qrtool = recorded.by_qrtool;
  factors.is_mixed = recorded.is_mixed;
  factors.q = open_factor(file, "/Q", "/q", place);
  factors.r = open_factor(file, "/R", "/r", place);
  factors.p = open_factor(file, "/P", "/P", place);
  factors.v = open_factor(file, "/V", "/v", place);
  factors.tau = open_factor(file, "/tau", "/Tau", place);
  if (factors.by_qrtool) {
    require_factors_of_mode(file->shown, {recorded.mode, recorded.is_pivoted}, factors);
    factors.tries = read_tries(*file, report);
  }
  return factors;
}

}  // namespace qrtool
