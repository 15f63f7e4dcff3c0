// SPDX-License-Identifier: Apache-2.0
// row_passes.cpp: what the passes do with a chunk of rows.
#include "app/run/matrices/row_passes.hpp"

#include <algorithm>

#include "app/process/stopwatch.hpp"
#include "core/machine/comm.hpp"
#include "core/measure/row_parts.hpp"

namespace qrtool {
namespace {

template <class T>
std::span<std::byte> packed_bytes(MatrixView<T> packed) {
  return writable_bytes_of(packed.data, static_cast<std::size_t>(packed.rows * packed.cols));
}

}  // namespace

template <class T>
void LeafPass<T>::work(RowChunk<T>& chunk) {
  const Stopwatch watch;
  const index_t first = cut.first_leaf(chunk.first);
  const MatrixView<T> nodes = cut.nodes(tree, chunk);
  double read = 0, check = 0;
  if (stream != nullptr) {
    read = -stream->read_seconds();
    check = -stream->check_seconds();
    chunk.found.outcome =
        stream->factor(matrix, first, cut.leaves(chunk.first), nodes, probe, streamed);
    read += stream->read_seconds();
    check += stream->check_seconds();
  } else {
    chunk.found.outcome = leaves.factor(chunk.rows(chunk.a), nodes);
    const double factored = watch.seconds();
    if (probe != nullptr) probe->add(first, MatrixView<const T>(chunk.rows(chunk.a)), threads);
    check = watch.seconds() - factored;
  }
  seconds.read += read;
  seconds.check += check;
  seconds.factor += watch.seconds() - read - check;
}

template <class T>
void LeafPass<T>::keep(RowChunk<T>& chunk) {
  total.include(chunk.found.outcome);
  kept(chunk.count);
}

template <class T>
std::vector<std::span<std::byte>> LeafPass<T>::parts(RowChunk<T>& chunk) const {
  std::vector<std::span<std::byte>> parts{writable_bytes_of(&chunk.found.outcome, 1),
                                          packed_bytes(cut.nodes(tree, chunk))};
  if (probe == nullptr) return parts;
  const std::span<double> sums = probe->sums(cut.first_leaf(chunk.first), cut.leaves(chunk.first));
  parts.push_back(writable_bytes_of(sums.data(), sums.size()));
  return parts;
}

template <class T>
void QPass<T>::work(RowChunk<T>& chunk) {
  const Stopwatch watch;
  const MatrixView<T> a = chunk.rows(chunk.a), q = chunk.rows(chunk.q);
  leaves.form_q(a, cut.nodes(tree, chunk), q);
  if (pivoted != nullptr) pivoted->multiply(q, threads);
  const double formed = watch.seconds();
  const bool is_checked = measures || estimator != nullptr;
  if (is_checked && pivoted != nullptr) permute_columns(a, pivoted->permutation());
  if (measures) chunk.found.sums = sums_of_parts<T>(a, q, r, {cut.leaf_rows(), threads}, total);
  if constexpr (!is_complex_number<T>) {
    // Rows are added leaf by leaf, so that estimates do not depend on the chunk.
    for (index_t row = 0; estimator != nullptr && row < a.rows; row += cut.leaf_rows()) {
      const index_t rows = std::min(cut.leaf_rows(), a.rows - row);
      estimator->add_rows<T>(a.row_block(row, rows), q.row_block(row, rows));
    }
  }
  seconds.factor += formed;
  seconds.check += watch.seconds() - formed;
}

template <class T>
void QPass<T>::keep(RowChunk<T>& chunk) {
  output->write_rows("Q", matrix, chunk.first,
                     interleaved(MatrixView<const T>(chunk.rows(chunk.q))));
  if (measures) add_sums_of_parts(chunk.found.sums, total);
  done(chunk.count);
}

template <class T>
std::vector<std::span<std::byte>> QPass<T>::parts(RowChunk<T>& chunk) const {
  std::vector<double>& sums = chunk.found.sums;
  return {writable_bytes_of(sums.data(), sums.size()), packed_bytes(chunk.rows(chunk.q))};
}

#define QRTOOL_FOR(T)          \
  template struct LeafPass<T>; \
  template struct QPass<T>;
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
