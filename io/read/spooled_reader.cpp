// SPDX-License-Identifier: Apache-2.0
// spooled_reader.cpp: keeps numbers in a mapped file, and reads them by rows.
#include "io/read/spooled_reader.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <type_traits>

#include "core/error.hpp"
#include "io/file/rereadable.hpp"

namespace qrtool {
namespace {

constexpr std::size_t buffer_numbers = std::size_t{1} << 16;

}  // namespace

Spool::Spool(std::string shown) : shown_(std::move(shown)), file_(create_unnamed(shown_)) {}

Spool::~Spool() {
  if (numbers_ != nullptr) munmap(numbers_, mapped_bytes_);
  close(file_);
}

void Spool::add(double number) {
  buffer_.push_back(number);
  if (buffer_.size() == buffer_numbers) flush();
}

void Spool::map() {
  flush();
  mapped_bytes_ = static_cast<std::size_t>(count_) * sizeof(double);
  if (count_ == 0) return;
  void* memory = mmap(nullptr, mapped_bytes_, PROT_READ, MAP_SHARED, file_, 0);
  if (memory == MAP_FAILED) throw_cannot_be_kept(shown_, errno);
  numbers_ = static_cast<double*>(memory);
}

void Spool::flush() {
  append_all(shown_, file_, reinterpret_cast<const char*>(buffer_.data()),
             buffer_.size() * sizeof(double));
  count_ += std::ssize(buffer_);
  buffer_.clear();
}

template <class T>
void SpooledReader::read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out) {
  const index_t parts = is_complex(source_.type) ? 2 : 1;
  if (matrix < 0 || matrix >= source_.count() || first_row < 0 ||
      first_row + out.rows > source_.m || out.cols != source_.n * parts)
    throw InternalError("read_rows: a range or shape outside the file");
  if (out.cols == 0) return;  // of any number of rows
  // Entries are copied in tiles, because most of these files are stored by columns.
  constexpr index_t tile = 32;
  for (index_t i0 = 0; i0 < out.rows; i0 += tile)
    for (index_t j = 0; j < out.cols; ++j)
      for (index_t i = i0; i < std::min(i0 + tile, out.rows); ++i) {
        const double value = element(matrix, first_row + i, j / parts, j % parts);
        if constexpr (std::is_same_v<T, float>)
          if (std::isinf(static_cast<float>(value)) && !std::isinf(value))
            throw InputError(fmt::format("{}: {} in row {}, column {} is too large for float32",
                                         shown_, value, first_row + i + 1, j / parts + 1),
                             "use --precision double");
        out(i, j) = static_cast<T>(value);
      }
}

template void SpooledReader::read_any_rows(index_t, index_t, MatrixView<float>);
template void SpooledReader::read_any_rows(index_t, index_t, MatrixView<double>);

}  // namespace qrtool
