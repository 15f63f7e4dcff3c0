// SPDX-License-Identifier: Apache-2.0
// array.cpp: finds numbers, and separates the matrices of a batch in Fortran order.
#include "io/npy/array.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/transpose.hpp"

namespace qrtool::npy {
namespace {

// The bytes that are read at a time where matrices must be separated.
constexpr index_t block_bytes = index_t{32} << 20;

/// Errors: InputError, also for what is no regular file.
Descriptor open_for_reading(const std::string& path) {
  if (!is_standard_input(path)) readable_size(path);
  return Descriptor(open_rereadable(path));
}

std::uint64_t size_of(int descriptor) {
  struct stat now {};
  fstat(descriptor, &now);
  return static_cast<std::uint64_t>(now.st_size);
}

void read_fully(const OpenFile& file, std::uint64_t position, std::size_t bytes, std::byte* to) {
  const TwoParts parts{{{to, bytes}, {nullptr, 0}}};
  if (read_at(file.descriptor, position, parts) == bytes) return;
  if (errno != 0)
    throw InputError(fmt::format("cannot read '{}': {}", file.shown, std::strerror(errno)));
  struct stat now {};
  fstat(file.descriptor, &now);
  throw InputError(
      fmt::format("{}: truncated: {} of {} bytes", file.shown, now.st_size, file.size));
}

/// The position in C order of the element at `position` in Fortran order.
index_t c_position(index_t position, std::span<const index_t> dims) {
  index_t before = 0, stride = 1;
  for (const index_t extent : dims) stride *= extent;
  for (const index_t extent : dims) {
    stride /= extent;
    before += position % extent * stride;
    position /= extent;
  }
  return before;
}

/// out(j, i) := in(i, j), some columns of `in` at a time.
template <class Word>
void transpose_on_threads(MatrixView<const Word> in, MatrixView<Word> out, int threads) {
  constexpr index_t step = 256;
  parallel_for((in.cols + step - 1) / step, threads, [&](index_t part, int) {
    const index_t first = part * step, columns = std::min(step, in.cols - first);
    transpose<Word>({in.data + first, in.rows, columns, in.ld}, out.row_block(first, columns));
  });
}

}  // namespace

OpenFile::OpenFile(const std::string& path)
    : name(is_standard_input(path) ? std::string(standard_input) : path),
      shown(escape(name)),
      descriptor(open_for_reading(path)),
      size(size_of(descriptor)),
      stamp(descriptor) {}

StoredArray::StoredArray(ArrayParts parts, std::size_t matrix_rank, CopyMeans means)
    : parts_(std::move(parts)), matrix_rank_(matrix_rank), means_(std::move(means)) {}

index_t StoredArray::matrix_elements() const {
  index_t product = 1;
  const std::vector<index_t>& dims = header().dims;
  for (std::size_t d = dims.size() - matrix_rank_; d < dims.size(); ++d) product *= dims[d];
  return product;
}

/// Whether the matrices of a batch lie among each other, or not in the order of the batch.
bool StoredArray::is_interleaved() const {
  const index_t elements = matrix_elements();
  if (!header().is_fortran || header().elements() <= elements) return false;
  if (elements > 1) return true;
  // Matrices of one number lie in Fortran order themselves, which is C order along one dimension.
  const std::vector<index_t>& dims = header().dims;
  return std::ranges::count_if(dims, [](index_t extent) { return extent > 1; }) > 1;
}

void StoredArray::load_from(const Place& place, std::uint64_t offset, std::size_t bytes,
                            std::byte* to) const {
  if (place.memory) {
    std::memcpy(to, place.memory.get() + offset, bytes);
  } else {
    read_fully(file(), place.start + offset, bytes, to);
  }
}

void StoredArray::load(std::uint64_t offset, std::size_t bytes, std::byte* to) {
  std::call_once(is_found_, [&] {
    place_ = parts_.find_numbers();
    if (is_interleaved()) place_ = separate(place_);
  });
  load_from(place_, offset, bytes, to);
}

Place StoredArray::separate(const Place& interleaved) const {
  switch (header().type.bytes) {
    case 1:
      return separate_words<std::uint8_t>(interleaved);
    case 2:
      return separate_words<std::uint16_t>(interleaved);
    case 4:
      return separate_words<std::uint32_t>(interleaved);
    default:
      return separate_words<std::uint64_t>(interleaved);
  }
}

/// In Fortran order element p of all matrices comes before element p + 1 of any, where p counts
/// along the columns: the file is a table of matrix_elements() x count numbers, which is transposed
/// some rows at a time. The first leading dimension is the fastest within a row of the table.
template <class Word>
Place StoredArray::separate_words(const Place& interleaved) const {
  const std::vector<index_t>& dims = header().dims;
  const index_t elements = matrix_elements(), count = header().elements() / elements;
  const index_t fastest = dims.front(), others = count / fastest;
  const std::span<const index_t> other_dims(dims.data() + 1, dims.size() - matrix_rank_ - 1);
  const auto bytes = header().data_bytes();
  Place separated{.memory = scratch_for(shown(), means_.scratch, bytes)};
  auto* const to = reinterpret_cast<Word*>(separated.memory.get());
  const auto row_bytes = count * static_cast<index_t>(sizeof(Word));
  const index_t step = std::clamp<index_t>(block_bytes / row_bytes, 1, elements);
  const HostMemory block = allocate_host(static_cast<std::size_t>(step * row_bytes));
  const auto* const from = reinterpret_cast<const Word*>(block.get());
  for (index_t p = 0; p < elements; p += step) {
    const index_t rows = std::min(step, elements - p);
    load_from(interleaved, static_cast<std::uint64_t>(p * row_bytes),
              static_cast<std::size_t>(rows * row_bytes), block.get());
    for (index_t other = 0; other < others; ++other) {
      const MatrixView<const Word> table{from + other * fastest, rows, fastest, count};
      const index_t first_matrix = c_position(other, other_dims);
      const MatrixView<Word> matrices{to + first_matrix * elements + p, fastest, rows,
                                      others * elements};
      transpose_on_threads(table, matrices, means_.threads);
    }
  }
  return separated;
}

HostMemory scratch_for(const std::string& shown, const std::string& scratch, std::uint64_t bytes) {
  const std::string directory = scratch.empty() ? default_scratch() : scratch;
  try {
    return map_scratch(directory, bytes);
  } catch (const OutputError& error) {
    throw OutputError(
        fmt::format("{}: its numbers must be copied before they are read; {}", shown, error.what()),
        "give --scratch DIR or set TMPDIR to a directory with more room, or store the "
        "array in C order, not compressed: numpy.save('a.npy', "
        "numpy.ascontiguousarray(a))");
  }
}

ArrayParts open_array(const std::string& path) {
  auto file = std::make_shared<const OpenFile>(path);
  std::string first(std::min<std::uint64_t>(file->size, most_header_bytes), '\0');
  read_fully(*file, 0, first.size(), reinterpret_cast<std::byte*>(first.data()));
  ArrayParts parts{.file = file,
                   .shown = file->shown,
                   .header = parse_header(first, file->size, file->shown),
                   .find_numbers = {},
                   .needs_copy = false};
  parts.find_numbers = [start = parts.header.bytes] { return Place{.memory = {}, .start = start}; };
  return parts;
}

}  // namespace qrtool::npy
