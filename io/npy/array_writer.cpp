// SPDX-License-Identifier: Apache-2.0
// array_writer.cpp: one thread writes pieces while another one sums up the next.
#include "io/npy/array_writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/measure/checksum.hpp"
#include "io/file/prepare_and_write.hpp"
#include "io/npy/header.hpp"

namespace qrtool::npy {
namespace {

// The bytes that one call writes: many enough that the cost of the call does not matter.
constexpr index_t written_bytes = index_t{1} << 20;
// The system is told to write data to the disk after this many bytes. Smaller groups would need too
// many calls.
constexpr index_t group_bytes = index_t{8} << 20;

static_assert(std::endian::native == std::endian::little, "headers say '<'");

std::vector<index_t> dims_of(const MatrixDataset& dataset, const std::vector<index_t>& leading) {
  std::vector<index_t> dims = dataset.leading.value_or(leading);
  if (!dataset.is_vector) dims.push_back(dataset.rows);
  dims.push_back(dataset.cols);
  return dims;
}

std::string header_of(const MatrixDataset& dataset, const std::vector<index_t>& leading) {
  constexpr auto descr_of = [](ElementType type) {
    switch (type) {
      case ElementType::float32:
        return "<f4";
      case ElementType::complex64:
        return "<c8";
      case ElementType::complex128:
        return "<c16";
      case ElementType::float64:
        break;
    }
    return "<f8";
  };
  return make_header(dataset.is_whole ? "<i4" : descr_of(dataset.type), dims_of(dataset, leading));
}

}  // namespace

std::uint64_t array_bytes(const MatrixDataset& dataset, const std::vector<index_t>& leading) {
  auto bytes = static_cast<index_t>(dataset.stored_bytes());
  bool overflow = false;
  for (const index_t extent : dims_of(dataset, leading))
    overflow |= __builtin_mul_overflow(bytes, extent, &bytes);
  const auto header = static_cast<index_t>(header_of(dataset, leading).size());
  overflow |= __builtin_add_overflow(bytes, header, &bytes);
  if (overflow) throw LimitError("the output would be larger than a file can be");
  return static_cast<std::uint64_t>(bytes);
}

void write_fully(const OutputFile& file, std::uint64_t position, const void* bytes,
                 std::size_t count) {
  const TwoParts parts{{{const_cast<void*>(bytes), count}, {nullptr, 0}}};
  const int error = write_at(file.descriptor, position, parts);
  if (error == 0) return;
  const char* reason = error == EFBIG ? "the file size limit is reached" : std::strerror(error);
  throw OutputError(fmt::format("cannot write '{}': {}", file.shown, reason));
}

ArrayWriter::ArrayWriter(MatrixDataset dataset, Target target)
    : file_(std::move(target.file)),
      dataset_(std::move(dataset)),
      threads_(useful_writing_threads(target.threads)),
      has_checksums_(target.has_checksums) {
  const std::string header = header_of(dataset_, target.leading);
  write_fully(file_, 0, header.data(), header.size());
  start_ = header.size();
  dataset_ = in_real_numbers(std::move(dataset_));
}

template <class T>
void ArrayWriter::append(const T* values, index_t count) {
  constexpr auto group = group_bytes / static_cast<index_t>(sizeof(T));
  for (index_t done = 0; done < count; done += group)
    append_group(values + done, std::min(group, count - done));
}

/// While a group is written, the system begins to sync the group before it.
template <class T>
void ArrayWriter::append_group(const T* values, index_t count) {
  constexpr auto element = static_cast<index_t>(sizeof(T)), step = written_bytes / element;
  const auto place_of = [&](index_t done) {
    return start_ + static_cast<std::uint64_t>((position_ + done) * element);
  };
  prepare_and_write((count + step - 1) / step, threads_, [](index_t) {},
                    [&](index_t piece) {
                      const index_t done = piece * step;
                      write_fully(file_, place_of(done), values + done,
                                  static_cast<std::size_t>(std::min(step, count - done) * element));
                    },
                    [&] { begin_sync(file_.descriptor, written_); });
  written_ = {};
  if (count >= step) written_ = {place_of(0), static_cast<std::uint64_t>(count * element)};
  position_ += count;
}

template <class T>
void ArrayWriter::append_matrices(BatchView<const T> values,
                                  const std::function<void(index_t)>& sum_up) {
  constexpr auto element = static_cast<index_t>(sizeof(T));
  const index_t size = matrix_elements();
  const index_t at_once =
      std::max<index_t>(written_bytes / std::max<index_t>(size * element, 1), 1);
  const auto place_of = [&](index_t b) {
    return start_ + static_cast<std::uint64_t>((position_ + b * size) * element);
  };
  const auto end_of = [&](index_t piece) { return std::min((piece + 1) * at_once, values.count); };
  prepare_and_write((values.count + at_once - 1) / at_once, threads_,
                    [&](index_t piece) {
                      for (index_t b = piece * at_once; b < end_of(piece); ++b) sum_up(b);
                    },
                    [&](index_t piece) {
                      const index_t from = piece * at_once;
                      write_fully(
                          file_, place_of(from), values.data + from * size,
                          static_cast<std::size_t>((end_of(piece) - from) * size * element));
                    },
                    [&] { begin_sync(file_.descriptor, written_); });
  const index_t bytes = values.count * size * element;
  written_ = {};
  if (bytes >= written_bytes) written_ = {place_of(0), static_cast<std::uint64_t>(bytes)};
  position_ += values.count * size;
}

template <class T>
void ArrayWriter::write(index_t first, BatchView<const T> values) {
  if (values.rows != dataset_.rows || values.cols != dataset_.cols ||
      element_type<T> != dataset_.type || first * matrix_elements() != position_) {
    throw InternalError(fmt::format("write: {} has another shape, type or place", dataset_.name));
  }
  if (has_checksums_) {
    const std::size_t before = checksums_.size();
    checksums_.resize(before + static_cast<std::size_t>(values.count));
    const auto sum_up = [&](index_t b) {
      checksums_[before + static_cast<std::size_t>(b)] = checksum(values[b]);
    };
    if (values.is_packed() && values.count > 1 && !dataset_.is_whole) {
      append_matrices(values, sum_up);
      return;
    }
    parallel_for(values.count, threads_, [&](index_t b, int) { sum_up(b); });
  }
  if (dataset_.is_whole) {
    // The checksum covers the values before they are converted to int32.
    const index_t count = values.count * matrix_elements();
    const std::vector<std::int32_t> numbers(values.data, values.data + count);
    append(numbers.data(), count);
  } else if (values.is_packed()) {
    append(values.data, values.count * matrix_elements());
  } else {
    for (index_t b = 0; b < values.count; ++b)
      for (index_t i = 0; i < values.rows; ++i) append(&values[b](i, 0), values.cols);
  }
}

template <class T>
void ArrayWriter::write_rows(index_t matrix, index_t first_row, MatrixView<const T> rows) {
  const index_t before = first_row * dataset_.cols;
  if (rows.cols != dataset_.cols || rows.ld != rows.cols || element_type<T> != dataset_.type ||
      matrix * matrix_elements() + before != position_) {
    throw InternalError(
        fmt::format("write_rows: {} has another shape, type or place", dataset_.name));
  }
  append(rows.data, rows.rows * rows.cols);
  if (!has_checksums_) return;
  sum_ += checksum(rows, before * static_cast<index_t>(sizeof(T) / 4), threads_);
  if (first_row + rows.rows < dataset_.rows) return;
  checksums_.push_back(sum_);
  sum_ = 0;
}

/// Writes parts of rows. No checksums of matrices are computed for them.
template <class T>
void ArrayWriter::write_part(index_t first, std::span<const T> values) {
  if (first != position_ || element_type<T> != dataset_.type || has_checksums_)
    throw InternalError(fmt::format("write_part: {} has another type or place", dataset_.name));
  append(values.data(), std::ssize(values));
}

void ArrayWriter::restart(index_t matrix) {
  const index_t first = matrix * matrix_elements();
  if (position_ == first) return;
  if (position_ < first || position_ > first + matrix_elements())
    throw InternalError(fmt::format("restart: {} is at another matrix", dataset_.name));
  if (has_checksums_ && position_ == first + matrix_elements()) checksums_.pop_back();
  position_ = first;
  sum_ = 0;
}

Checksums join_checksums(std::span<const Checksums> of_arrays, std::size_t matrices) {
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15;
  Checksums joined(matrices);
  for (const Checksums& sums : of_arrays) {
    for (std::size_t b = 0; b < matrices; ++b) joined[b] = joined[b] * factor + sums[b];
  }
  return joined;
}

template void ArrayWriter::write(index_t, BatchView<const float>);
template void ArrayWriter::write(index_t, BatchView<const double>);
template void ArrayWriter::write_rows(index_t, index_t, MatrixView<const float>);
template void ArrayWriter::write_rows(index_t, index_t, MatrixView<const double>);
template void ArrayWriter::write_part(index_t, std::span<const float>);
template void ArrayWriter::write_part(index_t, std::span<const double>);

}  // namespace qrtool::npy
