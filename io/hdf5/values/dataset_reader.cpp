// SPDX-License-Identifier: Apache-2.0
// dataset_reader.cpp: describes the matrices of a dataset, decodes and rounds their numbers piece
// by piece, and says what is wrong with them.
#include "io/hdf5/values/dataset_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <type_traits>

#include "core/error.hpp"
#include "core/matrix/complex.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"
#include "io/hdf5/datasets/variable.hpp"
#include "io/hdf5/values/stored_numbers.hpp"
#include "io/read/part_reader.hpp"
#include "io/read/reader_of.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool::hdf5 {
namespace {

/// The numbers of a mask that are read at a time.
constexpr index_t mask_piece = index_t{1} << 16;

/// Replaces the numbers whose mask is not 0 by NaN.
template <class T>
void hide(const T* mask, index_t count, T* numbers) {
  for (index_t i = 0; i < count; ++i)
    if (mask[i] != 0) numbers[i] = std::numeric_limits<T>::quiet_NaN();
}

class Hdf5Reader final : public ReaderOf<Hdf5Reader>, public PartReader {
 public:
  Hdf5Reader(std::shared_ptr<InputFile> file, Dataset dataset, DatasetPart part);

  template <class T>
  void read_any(index_t first, BatchView<T> out) {
    has_complex() ? read_matrices(first, as_complex(out)) : read_matrices(first, out);
    for (index_t b = 0; mask_ && b < out.count; ++b) apply_mask(first + b, 0, out[b]);
  }
  template <class T>
  void read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out) {
    has_complex() ? read_row_range(matrix, first_row, as_complex(out))
                  : read_row_range(matrix, first_row, out);
    if (mask_) apply_mask(matrix, first_row, out);
  }
  bool can_read_parts() const override { return !stored_->is_transposed(); }
  void read_part(index_t first, index_t count, float* out) override {
    read_any_part(first, count, out);
  }
  void read_part(index_t first, index_t count, double* out) override {
    read_any_part(first, count, out);
  }
  void require_unchanged() const override {
    file_->stamp->require_unchanged(descriptor_of(file_->handle), file_->shown);
  }
  std::size_t workspace_bytes(ElementType type) const override;
  std::unique_ptr<Reader> another() const override;
  index_t piece_end(index_t matrix, index_t first_row) const override;

 private:
  bool has_complex() const { return is_complex(dataset_.type); }
  void describe_source();
  template <class T>
  void read_matrices(index_t first, BatchView<T> out);
  template <class T>
  void read_row_range(index_t matrix, index_t first_row, MatrixView<T> out);
  template <class T>
  void read_part_of_row(index_t first, index_t count, T* out);
  template <class T>
  void read_any_part(index_t first, index_t count, T* out);
  /// Replaces the numbers that the mask marks as missing by NaN; `out` holds the rows from a row
  /// on.
  template <class T>
  void apply_mask(index_t matrix, index_t first_row, MatrixView<T> out);

  // These functions return false if HDF5 reports an error or a number is too large.
  bool read_long(index_t first, BatchView<double> out);
  bool read_long_tile(index_t matrix, index_t first_row, MatrixView<double> out);
  template <class T>
  bool can_be_read(index_t matrix);
  /// Whether stored numbers are decoded that a float does not hold exactly.
  bool is_wide() const { return !dataset_.variable.is_plain() && !dataset_.variable.is_single; }
  /// Whether the stored numbers are integers of 64 bits, and whether they are unsigned.
  bool is_long() const { return dataset_.variable.is_long; }
  bool is_stored_unsigned() const {
    return dataset_.variable.is_unsigned != dataset_.variable.reverses_sign;
  }
  void decode_integers(double* numbers, index_t count);
  /// Memory for numbers that a float does not hold exactly; else the memory of `out` is used.
  template <class T>
  using Wide = std::conditional_t<is_complex_number<T>, std::complex<double>, double>;
  template <class T>
  Wide<T>* wide_numbers(index_t elements);
  template <class T>
  void read_narrowed(index_t first, BatchView<T> out);
  template <class T>
  void read_rows_narrowed(index_t matrix, index_t first_row, MatrixView<T> out);
  template <class T>
  void narrow(index_t matrix, const Wide<T>* numbers, index_t count, T* out) const;

  template <class T>
  [[noreturn]] void throw_failure(index_t first, index_t count);
  [[noreturn]] void throw_too_large(index_t matrix, ElementType type) const;
  std::string cause(const std::string& error) const;

  std::shared_ptr<InputFile> file_;
  Dataset dataset_;
  DatasetPart part_;
  std::optional<StoredNumbers> stored_;
  std::unique_ptr<Hdf5Reader> mask_;  // 1 where a number is missing; null: the dataset has no mask
  std::vector<double> wide_;  // decoded numbers, or their parts, that are to be rounded to float
};

Hdf5Reader::Hdf5Reader(std::shared_ptr<InputFile> file, Dataset dataset, DatasetPart part)
    : file_(std::move(file)), dataset_(std::move(dataset)), part_(std::move(part)) {
  const Session session(file_->shown);
  if (part_.raw_values)
    dataset_.variable = {.is_long = is_long(), .is_unsigned = is_stored_unsigned()};
  if (!dataset_.variable.problem.empty())
    throw InputError(fmt::format("{}: dataset {} {}", file_->shown, dataset_.shown,
                                 escape(dataset_.variable.problem)),
                     "--raw-values takes the numbers as they are stored");
  std::vector<Range>& ranges = part_.ranges;
  for (std::size_t d = ranges.size(); d < dataset_.dims.size(); ++d)
    ranges.push_back({.count = static_cast<index_t>(dataset_.dims[d])});
  stored_.emplace(*file_, dataset_, part_, source_);
  describe_source();
  if (!dataset_.variable.mask.empty())
    mask_ = std::make_unique<Hdf5Reader>(file_, open_mask(*file_, dataset_.variable.mask, dataset_),
                                         part_);
}

void Hdf5Reader::describe_source() {
  source_.file = file_->name;
  source_.dataset = dataset_.shown + part_.selection;
  source_.type = dataset_.type;
  source_.stored_type = dataset_.stored_type;
  source_.complex_form.names = dataset_.parts;
  // Programs that use these names of the parts write 1+2i.
  if (dataset_.parts.real != PartNames{}.real) source_.complex_form.unit = 'i';
  source_.order = part_.stated;
  source_.order_is_stated = part_.order_is_stated;
  source_.order_reason = part_.order_reason;
  if (is_long()) source_.rounds = std::make_shared<std::atomic<bool>>(false);
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
  if (stored_->is_transposed()) std::swap(source_.m, source_.n);
  source_.dimensions = part_.dimensions;
  if (has_doubtful_order(source_)) source_.details.emplace_back(order_guessed_name, "yes");
}

std::size_t Hdf5Reader::workspace_bytes(ElementType type) const {
  if (has_complex()) type = complex_of(type);
  const std::size_t of_mask = mask_ ? mask_->workspace_bytes(type) + mask_piece * size_of(type) : 0;
  if (is_wide() && real_of(type) == ElementType::float32)
    return of_mask + open_file_bytes + static_cast<std::size_t>(stored_->scratch_bytes()) +
           stored_->workspace_bytes(has_complex() ? ElementType::complex128 : ElementType::float64);
  return of_mask + open_file_bytes + stored_->workspace_bytes(type);
}

std::unique_ptr<Reader> Hdf5Reader::another() const {
  const Session session(file_->shown);
  // A second reader does not help if the library reads, because it works on one thread at a time.
  if (!stored_->is_direct()) return nullptr;
  Dataset dataset = open_dataset(*file_, dataset_.path);
  DatasetPart part = part_;
  part.threads = 1;
  auto reader = std::make_unique<Hdf5Reader>(file_, std::move(dataset), std::move(part));
  reader->source_.rounds = source_.rounds;
  return reader;
}

index_t Hdf5Reader::piece_end(index_t matrix, index_t first_row) const {
  const index_t end = Reader::piece_end(matrix, first_row);
  if (!stored_->is_direct() || end == source_.m) return end;
  const index_t row = stored_->piece_row(matrix, end);
  return row > first_row ? row : end;
}

template <class T>
void Hdf5Reader::apply_mask(index_t matrix, index_t first_row, MatrixView<T> out) {
  if (out.rows == 0 || out.cols == 0) return;
  const index_t step = std::clamp<index_t>(mask_piece / out.cols, 1, out.rows);
  const Batch<T> mask(1, step, out.cols);
  for (index_t i = 0; i < out.rows; i += step) {
    const MatrixView<T> some = mask.view()[0].row_block(0, std::min(step, out.rows - i));
    mask_->read_rows(matrix, first_row + i, some);
    hide(some.data, some.rows * some.cols, &out(i, 0));
  }
}

template <class T>
void Hdf5Reader::read_any_part(index_t first, index_t count, T* out) {
  read_part_of_row(first, count, out);
  const Batch<T> mask(1, 1, mask_ ? std::min(mask_piece, count) : 0);
  for (index_t i = 0; mask_ && i < count; i += mask_piece) {
    const index_t piece = std::min(mask_piece, count - i);
    mask_->read_part(first + i, piece, mask.view().data);
    hide(mask.view().data, piece, out + i);
  }
}

/// Reads integers of 64 bits as they are stored into the place of their numbers, and decodes them.
bool Hdf5Reader::read_long(index_t first, BatchView<double> out) {
  const auto read = [&]<class T>(T* place) {
    return stored_->read(first, packed(place, out.count, out.rows, out.cols));
  };
  // The attribute may say that the integers have the other signedness. Memory of that type holds
  // the same bits.
  const bool is_read = is_stored_unsigned() ? read(reinterpret_cast<std::uint64_t*>(out.data))
                                            : read(reinterpret_cast<std::int64_t*>(out.data));
  if (is_read) decode_integers(out.data, out.count * out.rows * out.cols);
  return is_read;
}

bool Hdf5Reader::read_long_tile(index_t matrix, index_t first_row, MatrixView<double> out) {
  const auto read = [&]<class T>(T* place) {
    return stored_->read_tile(matrix, first_row, MatrixView<T>{place, out.rows, out.cols, out.ld});
  };
  const bool is_read = is_stored_unsigned() ? read(reinterpret_cast<std::uint64_t*>(out.data))
                                            : read(reinterpret_cast<std::int64_t*>(out.data));
  if (is_read) decode_integers(out.data, out.rows * out.cols);
  return is_read;
}

void Hdf5Reader::decode_integers(double* numbers, index_t count) {
  if (part_.remainders) return take_remainders(dataset_.variable, numbers, count);
  if (decode_long(dataset_.variable, numbers, count)) *source_.rounds = true;
}

template <class T>
void Hdf5Reader::read_matrices(index_t first, BatchView<T> out) {
  if (first < 0 || first + out.count > source_.count() || out.rows != source_.m ||
      out.cols != source_.n || !out.is_packed()) {
    throw InternalError("read: a range or shape outside the dataset");
  }
  if (out.count == 0 || out.rows == 0 || out.cols == 0) return;
  if constexpr (std::is_same_v<Real<T>, float>)
    if (is_wide()) return read_narrowed(first, out);
  stored_->forget_overflow();
  if constexpr (std::is_same_v<T, double>)
    if (is_long()) {
      if (!read_long(first, out)) throw_failure<T>(first, out.count);
      return;
    }
  if (!stored_->read(first, out)) throw_failure<T>(first, out.count);
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
  if constexpr (std::is_same_v<Real<T>, float>)
    if (is_wide()) return read_rows_narrowed(matrix, first_row, out);
  stored_->forget_overflow();
  if constexpr (std::is_same_v<T, double>)
    if (is_long()) {
      if (!read_long_tile(matrix, first_row, out)) throw_failure<T>(matrix, 1);
      return;
    }
  if (!stored_->read_tile(matrix, first_row, out)) throw_failure<T>(matrix, 1);
  if (!dataset_.variable.is_plain()) decode(dataset_.variable, out.data, out.rows * out.cols);
}

/// Reads a part of one row into `out`, and decodes it.
template <class T>
void Hdf5Reader::read_part_of_row(index_t first, index_t count, T* out) {
  if constexpr (std::is_same_v<T, float>) {
    if (is_wide()) {
      const index_t step = stored_->scratch_bytes() / static_cast<index_t>(sizeof(double));
      for (index_t i = 0; i < count; i += step) {
        const index_t piece = std::min(step, count - i);
        double* numbers = wide_numbers<T>(piece);
        read_part_of_row(first + i, piece, numbers);
        narrow(first / (source_.m * source_.n), numbers, piece, out + i);
      }
      return;
    }
  }
  const index_t matrix = first / (source_.m * source_.n);
  stored_->forget_overflow();
  if constexpr (std::is_same_v<T, double>) {
    if (is_long()) {
      const bool is_read =
          is_stored_unsigned()
              ? stored_->read_part_of_row(first, count, reinterpret_cast<std::uint64_t*>(out))
              : stored_->read_part_of_row(first, count, reinterpret_cast<std::int64_t*>(out));
      if (!is_read) throw_failure<T>(matrix, 1);
      return decode_integers(out, count);
    }
  }
  if (!stored_->read_part_of_row(first, count, out)) throw_failure<T>(matrix, 1);
  if (!dataset_.variable.is_plain()) decode(dataset_.variable, out, count);
}

template <class T>
Hdf5Reader::Wide<T>* Hdf5Reader::wide_numbers(index_t elements) {
  const index_t numbers = parts_of<T> * elements;
  if (std::ssize(wide_) < numbers) wide_.resize(static_cast<std::size_t>(numbers));
  return reinterpret_cast<Wide<T>*>(wide_.data());
}

template <class T>
void Hdf5Reader::narrow(index_t matrix, const Wide<T>* numbers, index_t count, T* out) const {
  if (!hdf5::narrow(reinterpret_cast<const double*>(numbers), parts_of<T> * count,
                    reinterpret_cast<float*>(out)))
    throw_too_large(matrix, element_type<T>);
}

/// Missing values are compared as stored, and a scale is applied, before numbers become floats.
template <class T>
void Hdf5Reader::read_narrowed(index_t first, BatchView<T> out) {
  const index_t size = out.rows * out.cols;
  const index_t at_once = stored_->scratch_bytes() / (size * static_cast<index_t>(sizeof(Wide<T>)));
  if (at_once == 0) {
    for (index_t b = 0; b < out.count; ++b) read_rows_narrowed(first + b, 0, out[b]);
    return;
  }
  Wide<T>* numbers = wide_numbers<T>(std::min(at_once, out.count) * size);
  for (index_t done = 0; done < out.count; done += at_once) {
    const index_t piece = std::min(at_once, out.count - done);
    read_matrices(first + done, packed(numbers, piece, out.rows, out.cols));
    for (index_t b = 0; b < piece; ++b)
      narrow(first + done + b, numbers + b * size, size, out[done + b].data);
  }
}

template <class T>
void Hdf5Reader::read_rows_narrowed(index_t matrix, index_t first_row, MatrixView<T> out) {
  const index_t n = out.cols, row_bytes = n * static_cast<index_t>(sizeof(Wide<T>));
  const index_t step = std::clamp<index_t>(stored_->scratch_bytes() / row_bytes, 1, out.rows);
  Wide<T>* numbers = wide_numbers<T>(step * n);
  for (index_t i = 0; i < out.rows; i += step) {
    const index_t rows = std::min(step, out.rows - i);
    read_row_range(matrix, first_row + i, MatrixView<Wide<T>>{numbers, rows, n, n});
    narrow(matrix, numbers, rows * n, &out(i, 0));
  }
}

template <class T>
bool Hdf5Reader::can_be_read(index_t matrix) {
  const index_t row_bytes = source_.n * static_cast<index_t>(sizeof(T));
  const index_t step = std::clamp<index_t>(stored_->scratch_bytes() / row_bytes, 1, source_.m);
  Batch<T> rows(1, step, source_.n);
  for (index_t i = 0; i < source_.m; i += step) {
    if (!stored_->read_tile(matrix, i,
                            rows.view()[0].row_block(0, std::min(step, source_.m - i)))) {
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
  std::string error = stored_->error();
  bool overflowed = stored_->overflowed();
  index_t matrix = first;
  // Reading one matrix at a time finds the first that is damaged.
  for (index_t b = first; count > 1 && b < first + count; ++b) {
    stored_->forget_overflow();
    if (can_be_read<T>(b)) continue;
    error = stored_->error();
    overflowed = stored_->overflowed();
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
