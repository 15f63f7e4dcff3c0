// SPDX-License-Identifier: Apache-2.0
// writer.cpp: keeps the numbers by columns until a matrix is complete, and then writes them as
// text.
#include "io/mtx/writer.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/checksum/number_hash.hpp"
#include "io/factors/row_collector.hpp"
#include "io/factors/set_writer.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/mtx/reader.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

// The bytes of rows that are transposed at a time.
constexpr std::size_t block_bytes = std::size_t{1} << 20;
// The bytes of a column that are made text at a time.
constexpr std::size_t piece_bytes = std::size_t{1} << 18;

/// Writes one dataset for SetWriter. The numbers are kept in the order of columns, in a file
/// without a name beside the output. Rows come in ascending order; some wait in memory until each
/// column has enough for one write.
class MtxFile {
 public:
  MtxFile(const OutputSpec& spec, const MatrixDataset& described)
      : output_(factor_file(spec.path, described.name), spec.force),
        dataset_(in_real_numbers(without_vectors(described))),
        entry_numbers_(parts_in(described.type)),
        columns_(
            directory_of(spec.path),
            static_cast<std::uint64_t>(dataset_.rows * dataset_.cols) * size_of(dataset_.type)) {}

  const MatrixDataset& dataset() const { return dataset_; }
  const std::string& path() const { return output_.path(); }
  template <class T>
  void write(index_t first, BatchView<const T> values) {
    for (index_t b = 0; b < values.count; ++b) write_rows(0, (first + b) * values.rows, values[b]);
  }
  template <class T>
  void write_rows(index_t matrix, index_t first, MatrixView<const T> rows);
  template <class T>
  void write_part(index_t first, std::span<const T> values) {
    parts_.add(dataset_, first, values, [&](index_t matrix, index_t row, MatrixView<const T> rows) {
      write_rows(matrix, row, rows);
    });
  }
  /// The rows are written again, from the first on.
  void restart(index_t matrix);
  /// Returns the checksum of all numbers, row by row.
  Checksums take_checksums(std::size_t) const { return {hash_.value()}; }
  void finish(FileSet& files);

 private:
  template <class T>
  void flush();
  template <class T>
  void write_text();
  template <class T>
  void write_complex_text();

  TextOutput output_;
  MatrixDataset dataset_;  // of real numbers, of which a complex one has two
  index_t entry_numbers_;
  ScratchFile columns_;
  std::vector<std::byte> waiting_;  // rows written_ .. end_ - 1
  index_t written_ = 0, end_ = 0;
  NumberHash hash_;
  RowCollector parts_;
};

template <class T>
void MtxFile::write_rows(index_t matrix, index_t first, MatrixView<const T> rows) {
  if (matrix != 0 || first != end_ || first + rows.rows > dataset_.rows ||
      rows.cols != dataset_.cols)
    throw InternalError(fmt::format("write: rows {} of {}, not {}", first, dataset_.name, end_));
  const std::size_t row_bytes = static_cast<std::size_t>(rows.cols) * sizeof(T);
  if (row_bytes == 0) return;
  const std::size_t all = row_bytes * static_cast<std::size_t>(dataset_.rows);
  waiting_.reserve(std::min(all, block_bytes + row_bytes));
  for (index_t i = 0; i < rows.rows; ++i) {
    const T* const row = rows.data + i * rows.ld;
    for (index_t j = 0; j < rows.cols; ++j) hash_.add(static_cast<double>(row[j]));
    const auto* const bytes = reinterpret_cast<const std::byte*>(row);
    waiting_.insert(waiting_.end(), bytes, bytes + row_bytes);
    ++end_;
    if (waiting_.size() + row_bytes > block_bytes) flush<T>();
  }
}

template <class T>
void MtxFile::flush() {
  const auto* const rows = reinterpret_cast<const T*>(waiting_.data());
  const index_t count = end_ - written_;
  std::vector<T> column(static_cast<std::size_t>(count));
  for (index_t j = 0; j < dataset_.cols && count > 0; ++j) {
    for (index_t i = 0; i < count; ++i)
      column[static_cast<std::size_t>(i)] = rows[i * dataset_.cols + j];
    columns_.write(static_cast<std::uint64_t>(j * dataset_.rows + written_) * sizeof(T),
                   column.data(), column.size() * sizeof(T));
  }
  waiting_.clear();
  written_ = end_;
}

void MtxFile::restart(index_t matrix) {
  if (matrix != 0) throw InternalError(fmt::format("restart: there is no matrix {}", matrix));
  waiting_.clear();
  written_ = end_ = 0;
  hash_ = {};
}

template <class T>
void MtxFile::write_text() {
  flush<T>();
  fmt::memory_buffer& buffer = output_.buffer();
  const auto to = std::back_inserter(buffer);
  buffer.append(
      fmt::format("%%MatrixMarket matrix array {} general\n", dataset_.is_whole     ? "integer"
                                                              : entry_numbers_ == 2 ? "complex"
                                                                                    : "real"));
  if (dataset_.type == ElementType::float32) buffer.append(fmt::format("{}\n", mtx_single_marker));
  buffer.append(fmt::format("{} {}\n", dataset_.rows, dataset_.cols / entry_numbers_));
  if (entry_numbers_ == 2) return write_complex_text<T>();
  std::vector<T> piece(piece_bytes / sizeof(T));
  const std::uint64_t all = static_cast<std::uint64_t>(dataset_.rows * dataset_.cols);
  for (std::uint64_t done = 0; done < all; done += piece.size()) {
    const std::size_t count = std::min<std::uint64_t>(piece.size(), all - done);
    columns_.read(done * sizeof(T), piece.data(), count * sizeof(T));
    for (const T number : std::span(piece).first(count)) {
      fmt::format_to(to, FMT_COMPILE("{}\n"), number);
      output_.flush_if_full();
    }
  }
}

/// The columns of real and of imaginary parts lie side by side.
template <class T>
void MtxFile::write_complex_text() {
  const auto to = std::back_inserter(output_.buffer());
  const auto most = static_cast<index_t>(piece_bytes / (2 * sizeof(T)));
  std::vector<T> re(static_cast<std::size_t>(std::min(most, dataset_.rows))), im(re.size());
  for (index_t j = 0; j < dataset_.cols; j += 2) {
    for (index_t i = 0; i < dataset_.rows; i += most) {
      const auto count = static_cast<std::size_t>(std::min(most, dataset_.rows - i));
      const auto at = static_cast<std::uint64_t>(j * dataset_.rows + i) * sizeof(T);
      columns_.read(at, re.data(), count * sizeof(T));
      columns_.read(at + static_cast<std::uint64_t>(dataset_.rows) * sizeof(T), im.data(),
                    count * sizeof(T));
      for (std::size_t k = 0; k < count; ++k) {
        fmt::format_to(to, FMT_COMPILE("{} {}\n"), re[k], im[k]);
        output_.flush_if_full();
      }
    }
  }
}

/// The text is written when no more rows come.
void MtxFile::finish(FileSet& files) {
  dataset_.type == ElementType::float32 ? write_text<float>() : write_text<double>();
  output_.finish(files);
}

}  // namespace

constinit const FactorCodec mtx_codec{
    .report_ending = ".json",
    .open = [](const std::string& file, bool, int) { return open_mtx_factor(file); },
    .join = join_number_hashes,
};

std::size_t mtx_workspace_bytes(const OutputSpec& spec) {
  // The text is written when no more rows come.
  std::size_t bytes = 2 * TextOutput::full_bytes;
  for (const MatrixDataset& dataset : spec.datasets) {
    const std::size_t row = static_cast<std::size_t>(dataset.cols) * size_of(dataset.type);
    bytes += std::min(block_bytes + row, static_cast<std::size_t>(dataset.rows) * row);
  }
  return bytes;
}

std::unique_ptr<Writer> create_mtx(const OutputSpec& spec) {
  for (const MatrixDataset& dataset : spec.datasets) {
    index_t count = 1;
    for (const index_t extent : without_vectors(dataset).leading.value_or(spec.leading))
      count *= extent;
    if (count != 1)
      throw UsageError(fmt::format("'{}': a Matrix Market file holds one matrix, not {}",
                                   escape(spec.path), count),
                       "write HDF5 or CSV: let the name end in .h5 or .csv");
  }
  return std::make_unique<SetWriter<MtxFile>>(spec, mtx_codec);
}

}  // namespace qrtool
