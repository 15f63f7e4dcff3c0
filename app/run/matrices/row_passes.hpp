// SPDX-License-Identifier: Apache-2.0
// row_passes.hpp: the two passes over the rows of a matrix, each as steps for run_stages() and
// share_stages(). No pass knows of another.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "app/run/matrices/leaf_stream.hpp"
#include "app/run/pipeline/pipeline.hpp"
#include "core/cpu/tall/tall.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/error_probe.hpp"
#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// The results of a pass for some rows: of the first pass the outcome, of the second the sums of
/// the errors of every leaf. They are added leaf by leaf, however many leaves a chunk has.
struct RowFindings {
  LeafOutcome outcome;
  std::vector<double> sums;
};

/// Some rows of A and of Q.
template <class T>
using RowChunk = Chunk<T, RowFindings>;

/// Called with a number of rows that a pass has done.
using RowsDone = std::function<void(index_t rows)>;

/// How the rows of one matrix are cut into chunks of whole leaves.
class RowCut {
 public:
  RowCut(const TallShape& shape, index_t leaves_per_chunk)
      : shape_(shape), leaves_per_chunk_(leaves_per_chunk) {}

  index_t leaf_rows() const { return shape_.leaf_rows(); }
  index_t chunk_rows() const { return leaves_per_chunk_ * shape_.leaf_rows(); }
  index_t chunks() const { return (shape_.leaves() + leaves_per_chunk_ - 1) / leaves_per_chunk_; }
  index_t first_row(index_t number) const { return number * chunk_rows(); }
  index_t rows(index_t number) const {
    return std::min(chunk_rows(), shape_.m() - first_row(number));
  }
  index_t first_leaf(index_t first_row) const { return first_row / shape_.leaf_rows(); }
  index_t leaves(index_t first_row) const {
    return std::min(leaves_per_chunk_, shape_.leaves() - first_leaf(first_row));
  }

  template <class T>
  void begin(RowChunk<T>& chunk, index_t number) const {
    chunk.first = first_row(number);
    chunk.count = rows(number);
  }
  /// R_i or Z_i of the leaves of a chunk.
  template <class T>
  MatrixView<T> nodes(const TallTree<T>& tree, const RowChunk<T>& chunk) const {
    return tree.nodes(first_leaf(chunk.first), leaves(chunk.first));
  }

 private:
  TallShape shape_;
  index_t leaves_per_chunk_;
};

/// Seconds that a pass has spent apart from its stages.
struct PassSeconds {
  double read = 0, factor = 0, check = 0;
};

/// The first pass: R_i of every leaf into the tree. With `probe` for R alone that is checked, since
/// there is no second pass.
template <class T>
struct LeafPass {
  const RowCut& cut;
  Reader& input;
  index_t matrix;
  LeafQr<T>& leaves;
  LeafStream<T>* stream;  // reads and factors for itself, for R alone; null: `leaves` factors
  TallTree<T>& tree;
  GramProbe<T>* probe;       // null: nothing is checked
  int threads;               // that check
  const RowsDone& streamed;  // while a stream works on a chunk
  const RowsDone& kept;      // when a chunk is kept
  LeafOutcome total = {};
  PassSeconds seconds = {};

  void begin(RowChunk<T>& chunk, index_t number) const { cut.begin(chunk, number); }
  void read(RowChunk<T>& chunk) {
    if (stream == nullptr) input.read_rows(matrix, chunk.first, interleaved(chunk.rows(chunk.a)));
  }
  void work(RowChunk<T>& chunk);
  void keep(RowChunk<T>& chunk);
  std::vector<std::span<std::byte>> parts(RowChunk<T>& chunk) const;
};

/// The second pass: Q_i Z_i of every leaf, its errors, and its rows of Q to the output.
template <class T>
struct QPass {
  const RowCut& cut;
  Reader& input;
  index_t matrix;
  LeafQr<T>& leaves;
  const TallTree<T>& tree;
  MatrixView<const T> r;
  int threads;                           // that measure
  Writer* output;                        // of the rank that keeps; null elsewhere
  ErrorMeter total;                      // started with R, without any rows
  const RankAndOrder<Wide<T>>* pivoted;  // with the columns in another order; null: as they are
  bool measures;                         // else `total` gets no rows
  ErrorProbe* estimator;  // gets all rows; null: there is none, as for complex matrices
  const RowsDone& done;
  const std::size_t sums_of_a_leaf = measures ? total.sums().size() : 0;
  PassSeconds seconds = {};

  void begin(RowChunk<T>& chunk, index_t number) const {
    cut.begin(chunk, number);
    chunk.found.sums.resize(static_cast<std::size_t>(cut.leaves(chunk.first)) * sums_of_a_leaf);
  }
  void read(RowChunk<T>& chunk) {
    input.read_rows(matrix, chunk.first, interleaved(chunk.rows(chunk.a)));
  }
  void work(RowChunk<T>& chunk);
  void keep(RowChunk<T>& chunk);
  std::vector<std::span<std::byte>> parts(RowChunk<T>& chunk) const;
};

}  // namespace qrtool
