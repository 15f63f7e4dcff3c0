// SPDX-License-Identifier: Apache-2.0
// leaf_stream.hpp: R of the leaves of a matrix straight from its file: a thread reads a piece and
// factors it while it is in the thread's cache.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/cpu/tall/tall_qr.hpp"
#include "core/tall.hpp"
#include "io/reader.hpp"

namespace qrtool {

/// For R alone: nothing that is read is needed a second time, so no more of the matrix is in memory
/// than a leaf and a piece per thread.
template <class T>
class LeafStream {
 public:
  /// Null where several readers are no faster than `input`, or would take more than `bytes`.
  static std::unique_ptr<LeafStream> open(const Reader& input, const TallShape& shape, int threads,
                                          std::size_t bytes);

  /// R_i of leaves first .. first + count - 1 into r, one below the other. `added` is told how many
  /// rows are done, by one thread at a time.
  LeafOutcome factor(index_t matrix, index_t first, index_t count, MatrixView<T> r,
                     const std::function<void(index_t rows)>& added);

  /// Of all threads together, divided by their number.
  double read_seconds() const;

 private:
  struct Worker {
    std::unique_ptr<Reader> input;
    std::unique_ptr<CpuLeaves<T>> leaves;
    Batch<T> rows;
    double read_seconds = 0;
  };
  /// Rows of the matrix.
  struct Span {
    index_t first, count;
  };

  LeafStream(const TallShape& shape, std::vector<Worker> workers)
      : shape_(shape), workers_(std::move(workers)) {}
  LeafOutcome factor_span(Worker& worker, index_t matrix, Span span, MatrixView<T> r) const;

  TallShape shape_;
  std::vector<Worker> workers_;
};

}  // namespace qrtool
