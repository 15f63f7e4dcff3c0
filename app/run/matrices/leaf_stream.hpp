// SPDX-License-Identifier: Apache-2.0
// leaf_stream.hpp: factors the leaves of a matrix straight from its file. A thread reads a piece
// and factors it while the piece is in its cache.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/cpu/tall/tall.hpp"
#include "core/cpu/tall/tall_qr.hpp"
#include "core/measure/gram_probe.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// Factors leaves as they are read. Only for R alone, which needs no row twice, so that each thread
/// holds no more of the matrix than a leaf and a piece.
template <class T>
class LeafStream {
 public:
  /// Returns null if several readers are no faster than `input`, or would need more than `bytes`
  /// and the memory of `input`, which is not used then.
  static std::unique_ptr<LeafStream> open(const Reader& input, const TallShape& shape, int threads,
                                          std::size_t bytes);

  /// Writes R_i of leaves first .. first + count - 1 into r, one below the other, and adds their
  /// rows to `probe`, if there is one. Calls `added` with the number of rows that are done, from
  /// one thread at a time.
  LeafOutcome factor(index_t matrix, index_t first, index_t count, MatrixView<T> r,
                     GramProbe<T>* probe, const std::function<void(index_t rows)>& added);

  /// Return the mean seconds of all threads so far for reading and for checking.
  double read_seconds() const { return mean(&Worker::read_seconds); }
  double check_seconds() const { return mean(&Worker::check_seconds); }

 private:
  struct Worker {
    std::unique_ptr<Reader> input;
    std::unique_ptr<CpuLeaves<T>> leaves;
    Batch<T> rows;
    double read_seconds = 0, check_seconds = 0;
  };
  /// A range of rows of the matrix.
  struct Span {
    index_t first, count;
  };

  LeafStream(const TallShape& shape, std::vector<Worker> workers)
      : shape_(shape), workers_(std::move(workers)) {}
  LeafOutcome factor_span(Worker& worker, index_t matrix, Span span, MatrixView<T> r,
                          GramProbe<T>* probe) const;
  double mean(double Worker::*seconds) const;

  TallShape shape_;
  std::vector<Worker> workers_;
};

}  // namespace qrtool
