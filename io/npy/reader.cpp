// SPDX-License-Identifier: Apache-2.0
// reader.cpp: several threads read an array piece by piece, convert and transpose.
#include "io/npy/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/text.hpp"
#include "io/file/read_write_at.hpp"
#include "io/file/transpose.hpp"
#include "io/npy/numbers.hpp"
#include "io/read/part_reader.hpp"
#include "io/read/reader_of.hpp"

namespace qrtool::npy {
namespace {

// The bytes of a piece: enough to make the cost of a call small, and few enough for the cache of a
// core.
constexpr index_t piece_bytes = index_t{1} << 20;

ElementType element_type_of(const NumberType& type) {
  const bool is_single = type.kind == Kind::floating && type.bytes <= 4;
  const ElementType real = is_single ? ElementType::float32 : ElementType::float64;
  return type.parts == 2 ? complex_of(real) : real;
}

class ArrayReader final : public ReaderOf<ArrayReader>, public PartReader {
 public:
  ArrayReader(std::shared_ptr<StoredArray> array, Source source, bool is_vector, bool remainders,
              int threads)
      : array_(std::move(array)),
        is_vector_(is_vector),
        remainders_(remainders),
        threads_(useful_reading_threads(threads)),
        stored_(static_cast<std::size_t>(threads_)),
        converted_(stored_.size()) {
    source_ = std::move(source);
  }

  template <class T>
  void read_any(index_t first, BatchView<T> out);
  template <class T>
  void read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out);
  bool can_read_parts() const override { return !array_->is_transposed(); }
  void read_part(index_t first, index_t count, float* out) override {
    read_numbers(first, count, out);
  }
  void read_part(index_t first, index_t count, double* out) override {
    read_numbers(first, count, out);
  }
  void require_unchanged() const override {
    array_->file().stamp.require_unchanged(array_->file().descriptor, array_->file().shown);
  }
  std::size_t workspace_bytes(ElementType type) const override {
    const bool is_same = real_of(type) == ElementType::float32
                             ? is_native<float>(array_->header().type)
                             : is_native<double>(array_->header().type);
    std::size_t piece = is_same ? 0 : piece_bytes;
    if (array_->is_transposed())
      piece += static_cast<std::size_t>(piece_numbers()) * sizeof(double);
    return piece * static_cast<std::size_t>(threads_) + array_->copy_bytes();
  }
  std::unique_ptr<Reader> another() const override {
    // If matrices are stored by columns, pieces of rows are short, and one reader for all threads
    // is faster.
    if (array_->is_transposed()) return nullptr;
    return std::make_unique<ArrayReader>(array_, source_, is_vector_, remainders_, 1);
  }

 private:
  // Sizes count real numbers, of which a complex element has two.
  index_t number_bytes() const { return static_cast<index_t>(array_->header().type.bytes); }
  index_t piece_numbers() const { return piece_bytes / number_bytes(); }
  index_t parts() const { return array_->header().type.parts; }
  index_t row_numbers() const { return source_.n * parts(); }

  template <class T>
  void read_numbers(index_t first, index_t count, T* out);
  template <class E>
  void read_columns(index_t first, BatchView<E> out);
  template <class E>
  void read_small_transposed(index_t first, BatchView<E> out);
  template <class E>
  void read_transposed(index_t matrix, index_t first_row, MatrixView<E> out);

  template <class T>
  void load(index_t first, index_t count, T* out, int worker);
  template <class T>
  void check_range();

  std::shared_ptr<StoredArray> array_;
  bool is_vector_;
  bool remainders_;
  int threads_;
  std::vector<HostMemory> stored_, converted_;        // of a piece, for each thread
  std::atomic<index_t> first_too_large_ = INT64_MAX;  // the first number that T cannot hold
};

/// Reads and converts count <= piece_numbers() numbers, by the thread `worker`.
template <class T>
void ArrayReader::load(index_t first, index_t count, T* out, int worker) {
  const auto offset = static_cast<std::uint64_t>(first * number_bytes());
  const auto bytes = static_cast<std::size_t>(count * number_bytes());
  if (is_native<T>(array_->header().type) && !remainders_) {
    array_->load(offset, bytes, reinterpret_cast<std::byte*>(out));
    return;
  }
  HostMemory& stored = stored_[static_cast<std::size_t>(worker)];
  if (!stored) stored = allocate_host(piece_bytes);
  array_->load(offset, bytes, stored.get());
  const NumberType& type = array_->header().type;
  if (remainders_) return convert_remainders(type, stored.get(), count, out);
  if (source_.rounds && has_rounded(type, stored.get(), count)) *source_.rounds = true;
  const index_t too_large = convert(type, stored.get(), count, out);
  if (too_large == count) return;
  index_t known = first_too_large_;
  while (first + too_large < known &&
         !first_too_large_.compare_exchange_weak(known, first + too_large)) {
  }
}

/// Throws the error that a thread has found. Call it after every parallel loop of load().
template <class T>
void ArrayReader::check_range() {
  const index_t number = first_too_large_.exchange(INT64_MAX);
  if (number == INT64_MAX) return;
  const std::string where =
      source_.leading.empty() ? ""
                              : fmt::format(" at matrix {}", number / (source_.m * row_numbers()));
  throw InputError(fmt::format("{}: holds a number{} that is too large for {}", array_->shown(),
                               where, name_of(element_type<T>)),
                   real_element_type<T> == ElementType::float32 ? "use --precision double" : "");
}

template <class T>
void ArrayReader::read_numbers(index_t first, index_t count, T* out) {
  const index_t step = piece_numbers();
  parallel_for((count + step - 1) / step, threads_, [&](index_t piece, int worker) {
    const index_t done = piece * step;
    load(first + done, std::min(step, count - done), out + done, worker);
  });
  check_range<T>();
}

/// Reads matrices that are stored by columns, as many at a time as fit a piece.
template <class E>
void ArrayReader::read_small_transposed(index_t first, BatchView<E> out) {
  using T = Real<E>;
  const index_t size = out.rows * out.cols * parts(), step = piece_numbers() / size;
  parallel_for((out.count + step - 1) / step, threads_, [&](index_t piece, int worker) {
    const index_t done = piece * step, matrices = std::min(step, out.count - done);
    HostMemory& memory = converted_[static_cast<std::size_t>(worker)];
    if (!memory) memory = allocate_host(static_cast<std::size_t>(piece_numbers()) * sizeof(double));
    T* const columns = reinterpret_cast<T*>(memory.get());
    load((first + done) * size, matrices * size, columns, worker);
    const auto stored =
        packed<const E>(reinterpret_cast<const E*>(columns), matrices, out.cols, out.rows);
    for (index_t b = 0; b < matrices; ++b) transpose(stored[b], out[done + b]);
  });
  check_range<T>();
}

/// Reads rows of a matrix that is stored by columns: tiles of some columns, and of the rows.
template <class E>
void ArrayReader::read_transposed(index_t matrix, index_t first_row, MatrixView<E> out) {
  using T = Real<E>;
  const index_t m = source_.m, n = source_.n, room = piece_numbers() / parts();
  const index_t tile_rows = std::min(out.rows, room);
  const index_t tile_cols = std::clamp<index_t>(room / tile_rows, 1, n);
  const index_t across = (n + tile_cols - 1) / tile_cols;
  const index_t tiles = (out.rows + tile_rows - 1) / tile_rows * across;
  parallel_for(tiles, threads_, [&](index_t tile, int worker) {
    const index_t i0 = tile / across * tile_rows, rows = std::min(tile_rows, out.rows - i0);
    const index_t j0 = tile % across * tile_cols, cols = std::min(tile_cols, n - j0);
    HostMemory& memory = converted_[static_cast<std::size_t>(worker)];
    if (!memory) memory = allocate_host(static_cast<std::size_t>(piece_numbers()) * sizeof(double));
    T* const columns = reinterpret_cast<T*>(memory.get());
    const index_t start = (matrix * n + j0) * m + first_row + i0;
    const index_t p = parts();
    if (rows == m) {
      load(start * p, cols * m * p, columns, worker);
    } else {
      for (index_t j = 0; j < cols; ++j)
        load((start + j * m) * p, rows * p, columns + j * rows * p, worker);
    }
    transpose<E>({reinterpret_cast<const E*>(columns), cols, rows, rows},
                 {out.data + i0 * out.ld + j0, rows, cols, out.ld});
  });
  check_range<T>();
}

template <class T>
void ArrayReader::read_any(index_t first, BatchView<T> out) {
  if (first < 0 || first + out.count > source_.count() || out.rows != source_.m ||
      out.cols != row_numbers() || !out.is_packed()) {
    throw InternalError("read: a range or shape outside the array");
  }
  const index_t size = out.rows * out.cols;
  if (out.count == 0 || size == 0) return;
  if (!array_->is_transposed()) {
    read_numbers(first * size, out.count * size, out.data);
  } else if (parts() == 2) {
    read_columns(first, as_complex(out));
  } else {
    read_columns(first, out);
  }
}

/// Reads matrices that are stored by columns.
template <class E>
void ArrayReader::read_columns(index_t first, BatchView<E> out) {
  if (out.rows * out.cols * parts() <= piece_numbers()) {
    read_small_transposed(first, out);
  } else {
    for (index_t b = 0; b < out.count; ++b) read_transposed(first + b, 0, out[b]);
  }
}

template <class T>
void ArrayReader::read_any_rows(index_t matrix, index_t first_row, MatrixView<T> out) {
  if (matrix < 0 || matrix >= source_.count() || first_row < 0 ||
      first_row + out.rows > source_.m || out.cols != row_numbers() || out.ld != out.cols) {
    throw InternalError("read_rows: a range or shape outside the array");
  }
  if (out.rows == 0 || out.cols == 0) return;
  if (array_->is_transposed() && parts() == 2) {
    read_transposed(matrix, first_row, as_complex(out));
  } else if (array_->is_transposed()) {
    read_transposed(matrix, first_row, out);
  } else {
    read_numbers((matrix * source_.m + first_row) * row_numbers(), out.rows * out.cols, out.data);
  }
}

}  // namespace

Obstacle obstacle_of(const Header& header, bool is_vector) {
  if (!header.problem.empty()) return {header.problem, header.problem_hint};
  const std::size_t rank = header.dims.size();
  if (rank >= (is_vector ? 1 : 2)) return {};
  if (rank == 0) return {"holds a single number, no matrix", ""};
  return {.text = fmt::format("has one dimension ({}); a matrix has two", header.dims.front()),
          .hint = "numpy.save('column.npy', a.reshape(-1, 1)), or a.reshape(1, -1) for a row"};
}

std::unique_ptr<Reader> read_array(ArrayParts parts, const std::string& dataset, bool is_vector,
                                   const InputSpec& spec) {
  const bool is_array = spec.takes_vectors && parts.header.dims.size() == 1;
  is_vector = is_vector || is_array;
  if (const Obstacle obstacle = obstacle_of(parts.header, is_vector); !obstacle.text.empty())
    throw InputError(fmt::format("{}: {}", parts.shown, obstacle.text), obstacle.hint);
  const std::size_t matrix_rank = is_vector ? 1 : 2;
  auto array = std::make_shared<StoredArray>(
      std::move(parts), matrix_rank,
      CopyMeans{
          .threads = spec.threads, .scratch = spec.scratch, .memory_bytes = spec.memory_bytes});
  const Header& header = array->header();
  const std::size_t before = header.dims.size() - matrix_rank;
  Source source{.file = array->file().name,
                .dataset = dataset,
                .leading = {header.dims.begin(), header.dims.begin() + static_cast<long>(before)},
                .m = is_vector ? 1 : header.dims[before],
                .n = header.dims.back(),
                .type = element_type_of(header.type),
                .stored_type = header.stored_type,
                .order = Order::row,
                .order_is_stated = true,
                .needs_copy = array->needs_copy(),
                .array_dims = is_array ? header.dims : std::vector<index_t>{}};
  if (is_long(header.type)) source.rounds = std::make_shared<std::atomic<bool>>(false);
  return std::make_unique<ArrayReader>(std::move(array), std::move(source), is_vector,
                                       spec.remainders, spec.threads);
}

std::unique_ptr<Reader> open_npy(const InputSpec& spec) {
  return read_array(open_array(spec.path), "", /*is_vector=*/false, spec);
}

}  // namespace qrtool::npy
