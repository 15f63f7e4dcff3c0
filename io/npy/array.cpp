// SPDX-License-Identifier: Apache-2.0
// array.cpp: finds numbers, and separates the matrices of a batch in Fortran order.
#include "io/npy/array.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <complex>
#include <cstring>
#include <utility>

#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/transpose.hpp"

namespace qrtool::npy {
namespace {

/// Opens a regular file, or standard input. Errors: InputError, also for other kinds of files.
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

/// A batch in Fortran order, seen as a table. Element p of all matrices comes before element p + 1
/// of any matrix, where p counts down the columns. For one p the index of the first leading
/// dimension is the fastest and the index of the last one the slowest; in C order the last one is
/// the fastest.
struct Interleaved {
  index_t elements = 1;                     // of a matrix
  index_t first = 1, middle = 1, last = 1;  // extents of the leading dimensions; last may be 1
  std::vector<index_t> middle_dims;
  index_t count() const { return first * middle * last; }

  /// Returns the position in C order of the middle index that is at `position` in Fortran order.
  index_t c_position(index_t position) const {
    index_t before = 0, stride = middle;
    for (const index_t extent : middle_dims) {
      stride /= extent;
      before += position % extent * stride;
      position /= extent;
    }
    return before;
  }
};

static Interleaved table_of(std::span<const index_t> dims, std::size_t matrix_rank) {
  Interleaved table;
  for (const index_t extent : dims.last(matrix_rank)) table.elements *= extent;
  std::vector<index_t> leading;
  for (const index_t extent : dims.first(dims.size() - matrix_rank))
    if (extent > 1) leading.push_back(extent);
  if (!leading.empty()) table.first = leading.front();
  if (leading.size() > 1) table.last = leading.back();
  for (std::size_t d = 1; d + 1 < leading.size(); ++d) {
    table.middle_dims.push_back(leading[d]);
    table.middle *= leading[d];
  }
  return table;
}

/// A part of the table: elements p .. p + ps - 1 of the matrices whose first index is f .. f + fs -
/// 1 and whose last index is l .. l + ls - 1, at one middle index.
struct Tile {
  const Interleaved& table;
  index_t p, ps, f, fs, l, ls, middle;
};

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

void StoredArray::load_from(const NumbersPlace& place, std::uint64_t offset, std::size_t bytes,
                            std::byte* to) const {
  if (place.scratch) {
    place.scratch.read(offset, to, bytes);
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

NumbersPlace StoredArray::separate(const NumbersPlace& interleaved) const {
  switch (header().element_bytes()) {
    case 1:
      return separate_words<std::uint8_t>(interleaved);
    case 2:
      return separate_words<std::uint16_t>(interleaved);
    case 4:
      return separate_words<std::uint32_t>(interleaved);
    case 16:
      return separate_words<std::complex<double>>(interleaved);
    default:
      return separate_words<std::uint64_t>(interleaved);
  }
}

template <class Word>
void StoredArray::separate_tile(const Tile& tile, const NumbersPlace& interleaved,
                                const NumbersPlace& separated) const {
  const auto& [table, p0, ps, f0, fs, l0, ls, middle] = tile;
  constexpr std::uint64_t word = sizeof(Word);
  std::vector<Word> in(static_cast<std::size_t>(ps * ls * fs)), out(in.size());
  // Without other dimensions the numbers of several last indices follow each other.
  const index_t together = fs == table.first && table.middle == 1 ? ls : 1;
  parallel_for(ps * ls / together, means_.threads, [&](index_t part, int) {
    const Interleaved& from = tile.table;
    const index_t p = tile.p + part * together / tile.ls, l = tile.l + part * together % tile.ls;
    const index_t column = tile.f + from.first * (tile.middle + from.middle * l);
    load_from(interleaved, static_cast<std::uint64_t>(p * from.count() + column) * word,
              static_cast<std::size_t>(together * tile.fs) * word,
              reinterpret_cast<std::byte*>(in.data() + part * together * tile.fs));
  });
  for (index_t l = 0; l < ls; ++l)
    transpose_on_threads<Word>({in.data() + l * fs, ps, fs, ls * fs},
                               {out.data() + l * ps, fs, ps, ls * ps}, means_.threads);
  // The number of elements that are contiguous in the result: all of them, a few matrices of one
  // first index, or a part of one matrix.
  const bool has_whole = ps == table.elements;
  const index_t of_f = table.middle * table.last,
                first_of_f = table.c_position(middle) * table.last;
  const index_t run = !has_whole ? ps : of_f == 1 ? fs * ps : ls * ps;
  for (index_t at = 0; at < ps * ls * fs; at += run) {
    const index_t f = f0 + at / (ls * ps), l = l0 + at / ps % ls;
    const index_t matrix = f * of_f + first_of_f + l;
    separated.scratch.write(static_cast<std::uint64_t>(matrix * table.elements + p0) * word,
                            out.data() + at, static_cast<std::size_t>(run) * word);
  }
}

/// The bytes that are separated at a time; half of them again for the result.
std::size_t StoredArray::block_bytes() const {
  constexpr std::size_t least = std::size_t{1} << 20, most = std::size_t{16} << 20;
  return std::clamp(means_.memory_bytes / 8, least, most);
}

/// Tiles have about as many bytes in a run of the table as in a run of the result, so that neither
/// reading nor writing needs many calls.
template <class Word>
NumbersPlace StoredArray::separate_words(const NumbersPlace& interleaved) const {
  const Interleaved table = table_of(header().dims, matrix_rank_);
  NumbersPlace separated{.scratch = scratch_for(shown(), means_.scratch, header().data_bytes())};
  const auto words = static_cast<index_t>(block_bytes() / sizeof(Word));
  const auto root = static_cast<index_t>(std::sqrt(static_cast<double>(words)));
  // A run of the result is several whole matrices if they are small, else a part of one.
  const index_t ps = std::min(table.elements, std::max(root, words / table.count()));
  index_t ls = std::clamp<index_t>(root / ps, 1, table.last);
  const index_t fs = std::clamp<index_t>(words / (ps * ls), 1, table.first);
  if (fs == table.first) ls = std::clamp<index_t>(words / (ps * fs), 1, table.last);
  for (index_t middle = 0; middle < table.middle; ++middle)
    for (index_t l = 0; l < table.last; l += ls)
      for (index_t f = 0; f < table.first; f += fs)
        for (index_t p = 0; p < table.elements; p += ps) {
          separate_tile<Word>({.table = table,
                               .p = p,
                               .ps = std::min(ps, table.elements - p),
                               .f = f,
                               .fs = std::min(fs, table.first - f),
                               .l = l,
                               .ls = std::min(ls, table.last - l),
                               .middle = middle},
                              interleaved, separated);
        }
  return separated;
}

ScratchFile scratch_for(const std::string& shown, const std::string& scratch, std::uint64_t bytes) {
  const std::string directory = scratch.empty() ? default_scratch() : scratch;
  try {
    return {directory, bytes};
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
  parts.find_numbers = [start = parts.header.bytes] {
    return NumbersPlace{.scratch = {}, .start = start};
  };
  return parts;
}

}  // namespace qrtool::npy
