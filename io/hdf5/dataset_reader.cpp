// SPDX-License-Identifier: Apache-2.0
// dataset_reader.cpp: reads past the library where the dataset allows it, and transposes, decodes
// and rounds numbers piece by piece.
#include "io/hdf5/dataset_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"
#include "io/file/transpose.hpp"
#include "io/hdf5/chunk_cache.hpp"
#include "io/hdf5/complex_type.hpp"
#include "io/hdf5/direct_reader.hpp"
#include "io/hdf5/storage.hpp"
#include "io/hdf5/unpacker.hpp"
#include "io/hdf5/variable.hpp"
#include "io/hdf5/watch.hpp"
#include "io/part_reader.hpp"
#include "io/reader_of.hpp"
#include "io/variable_record.hpp"

namespace qrtool::hdf5 {
namespace {

// The bytes that are read at a time where numbers must be transposed; less where memory is short.
constexpr index_t most_scratch_bytes = index_t{8} << 20, least_scratch_bytes = index_t{1} << 18;
// The bytes in which HDF5 converts numbers.
constexpr std::size_t conversion_bytes = std::size_t{2} << 20;
// The chunks that HDF5 reads in one call, and the bytes that it takes for each of them, beside the
// numbers: it describes which of these belong to the selection.
constexpr hsize_t most_chunks_at_once = 128;
constexpr std::size_t bytes_for_chunk = std::size_t{8} << 10;
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

class Hdf5Reader final : public ReaderOf<Hdf5Reader>, public PartReader {
 public:
  Hdf5Reader(std::shared_ptr<InputFile> file, Dataset dataset, DatasetPart part);

  template <class T>
  void read_any(index_t first, BatchView<T> out) {
    has_complex() ? read_matrices(first, as_complex(out)) : read_matrices(first, out);
  }
  template <class T>
  void read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out) {
    has_complex() ? read_row_range(matrix, first_row, as_complex(out))
                  : read_row_range(matrix, first_row, out);
  }
  bool can_read_parts() const override { return !is_transposed_; }
  void read_part(index_t first, index_t count, float* out) override {
    read_part_of_row(first, count, out);
  }
  void read_part(index_t first, index_t count, double* out) override {
    read_part_of_row(first, count, out);
  }
  void require_unchanged() const override {
    file_->stamp->require_unchanged(descriptor_of(file_->handle), file_->shown);
  }
  std::size_t workspace_bytes(ElementType type) const override;
  std::unique_ptr<Reader> another() const override;
  index_t piece_end(index_t matrix, index_t first_row) const override;

 private:
  bool has_complex() const { return is_complex(dataset_.type); }
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
  bool read_by_library(const Storage::Part& part, T* out);
  template <class T>
  bool read_stored(index_t first, index_t count, T* out);
  template <class T>
  bool read_transposed(index_t first, BatchView<T> out);
  /// The columns of a chunk of a dataset that is stored by columns; 1 where it has no chunks.
  index_t columns_of_chunk() const;
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
  DatasetPart part_;
  Handle space_, transfer_;
  std::optional<Storage> storage_;
  std::unique_ptr<DirectReader> direct_;  // null where dataset or selection do not allow it
  index_t flat_first_ = 0;                // of direct_: the first selected element
  std::unique_ptr<Unpacker> unpacker_;    // null where the dataset does not allow it
  std::size_t cache_bytes_ = 0;           // of HDF5, for chunks
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

std::size_t elements_of(std::span<const hsize_t> count) {
  std::size_t elements = 1;
  for (const hsize_t counted : count) elements *= counted;
  return elements;
}

Hdf5Reader::Hdf5Reader(std::shared_ptr<InputFile> file, Dataset dataset, DatasetPart part)
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
    take_error();
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
  if (!has_complex()) {  // the library reads compounds
    open_direct();
    unpacker_ = Unpacker::open(*file_, dataset_, *storage_,
                               {.threads = part_.threads,
                                .most_kept = cache_bytes_,
                                .memory_bytes = part_.memory_bytes / 2});
  }
  is_transposed_ = part_.order == Order::column && part_.vector == VectorAs::no;
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
  source_.complex_form.names = dataset_.parts;
  // Programs that name the parts so write 1+2i.
  if (dataset_.parts.real != PartNames{}.real) source_.complex_form.unit = 'i';
  source_.order = part_.stated;
  source_.order_is_stated = part_.order_is_stated;
  source_.order_reason = part_.order_reason;
  source_.details = record_of(dataset_.variable);
  if (part_.raw_values) source_.details.emplace_back(raw_values_name, "yes");
  source_.details.insert(source_.details.end(), part_.details.begin(), part_.details.end());
  for (const std::string& note : dataset_.variable.notes)
    source_.notes.push_back(fmt::format("{}: {}", dataset_.shown, note));
  std::vector<index_t> extents;
  for (const Range& range : part_.ranges) {
    if (!range.is_dropped) extents.push_back(range.count);
  }
  source_.n = extents.back();
  extents.pop_back();
  source_.m = 1;
  if (part_.vector == VectorAs::no) {
    source_.m = extents.back();
    extents.pop_back();
  }
  if (part_.vector == VectorAs::column) {
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

std::unique_ptr<Reader> Hdf5Reader::another() const {
  const Session session(file_->shown);
  // A second reader is of no use where HDF5 reads, which works on one thread at a time.
  if (!direct_ || is_transposed_) return nullptr;
  Dataset dataset = open_dataset(*file_, dataset_.path);
  DatasetPart part = part_;
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
  if constexpr (!is_complex_number<T>) {
    if (unpacker_) {
      const bool is_read = unpacker_->read(start, count, transfer_, out);
      if (!is_read) error_ = take_error();
      return is_read && !overflowed_;
    }
  }
  storage_->require_chunks(start, count);  // on several threads, any of which may need the library
  // A part that HDF5 does not fill is NaN.
  std::fill_n(out, elements_of(count), T(std::numeric_limits<Real<T>>::quiet_NaN()));
  const Session session(file_->shown);
  const NumbersRead numbers;
  for (const Storage::Part& piece : storage_->cut({start, count}, most_chunks_at_once)) {
    if (!read_by_library(piece, out)) return false;
    out += elements_of(piece.count);
  }
  return !overflowed_;
}

template <class T>
bool Hdf5Reader::read_by_library(const Storage::Part& part, T* out) {
  // The space in memory has the shape of the selection. HDF5 is slow where only the sizes agree.
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

index_t Hdf5Reader::columns_of_chunk() const {
  int kept = 0;
  for (std::size_t d = storage_->chunk().size(); d-- > 0;)
    if (!part_.ranges[d].is_dropped && ++kept == 2)
      return static_cast<index_t>(storage_->chunk()[d]);
  return 1;
}

/// Reads whole matrices in their stored order.
template <class T>
bool Hdf5Reader::read_stored(index_t first, index_t count, T* out) {
  const index_t size = source_.m * source_.n;
  if constexpr (std::is_floating_point_v<T>)
    if (direct_ && direct_->read(flat_first_ + first * size, count * size, out)) return true;
  const index_t rows = is_transposed_ ? source_.n : source_.m;
  for (const Box& box : cut_into_boxes(source_.leading, first, count)) {
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
  const Box box = cut_into_boxes(source_.leading, matrix, 1).front();
  const index_t n = source_.n;
  if (!is_transposed_) {
    const index_t before = flat_first_ + (matrix * source_.m + first_row) * n;
    if constexpr (std::is_floating_point_v<T>)
      if (direct_ && direct_->read(before, out.rows * n, out.data)) return true;
    return read_block(box, {first_row, out.rows, 0, n}, out.data);
  }
  // Columns as long as they can be; but a chunk with many columns is not to be read for each.
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
  if constexpr (!is_complex_number<T>)
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
  if constexpr (!is_complex_number<T>)
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
  const Box box = cut_into_boxes(source_.leading, matrix, 1).front();
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
  return escape(innermost_error(error));
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
                   real_of(type) == ElementType::float32 ? "use --precision double" : "");
}

}  // namespace

std::unique_ptr<Reader> read_dataset(std::shared_ptr<InputFile> file, Dataset dataset,
                                     DatasetPart part) {
  return std::make_unique<Hdf5Reader>(std::move(file), std::move(dataset), std::move(part));
}

}  // namespace qrtool::hdf5
