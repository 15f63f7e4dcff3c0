// SPDX-License-Identifier: Apache-2.0
// tall_qr.cpp: factors leaves in groups that fill the SIMD lanes when their R factors are combined.
#include "core/cpu/tall/tall_qr.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <type_traits>

#include "core/cpu/tall/block_qr.hpp"
#include "core/cpu/tall/gram_leaf.hpp"
#include "core/machine/parallel.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool {

namespace {

/// The most leaves in a group. The nodes of a group of narrow leaves fill the lanes of float32 in
/// AVX-512.
index_t most_leaves_at_once(const TallShape& shape) {
  return TallShape::is_narrow(shape.n()) ? 16 : 1;
}

struct Range {
  index_t first = 0, count = 0;
};

template <class T>
MatrixView<T> part(MatrixView<T> a, Range rows) {
  return a.row_block(rows.first, rows.count);
}

/// Returns the rows that the R factors of `rows` rows from row `first` on have in the stack of all
/// R factors, where rows are cut into blocks of block_rows.
Range stack_range(const TallShape& shape, index_t first, index_t rows, index_t block_rows) {
  return {shape.stacked_rows(first, block_rows), shape.stacked_rows(rows, block_rows)};
}

}  // namespace

/// Factors leaves on one thread, for R only or for Q as well.
template <class T>
class CpuLeaves<T>::Worker {
 public:
  Worker(const TallShape& shape, bool wants_q, bool may_use_gram)
      : shape_(shape),
        blocks_(shape.n(), shape.block_rows(), wants_q),
        nodes_(shape.n(), shape.node_rows(), wants_q),
        product_(shape.n()),
        stack_(1, stack_rows(shape), shape.n()) {
    if (may_use_gram && std::is_same_v<T, float> && TallShape::is_narrow(shape.n()))
      gram_.emplace(shape.n());
  }

  static std::size_t workspace_bytes(const TallShape& shape, bool wants_q) {
    return BlockQr<T>::workspace_bytes(shape.n(), shape.block_rows(), wants_q) +
           BlockQr<T>::workspace_bytes(shape.n(), shape.node_rows(), wants_q) +
           RowProduct<T>::workspace_bytes(shape.n()) +
           static_cast<std::size_t>(stack_rows(shape) * shape.n()) * sizeof(T) +
           GramLeaf::workspace_bytes(shape.n());
  }

  /// Forms R only: leaf by leaf from A'A, and then, together and by reflectors, the leaves for
  /// which A'A is too inaccurate.
  LeafOutcome factor(MatrixView<const T> a, MatrixView<T> r) {
    LeafOutcome all;
    for (index_t first = 0; first < a.rows; first += shape_.leaf_rows()) {
      index_t end = first;
      while (end < a.rows && !factor_by_gram(a, end, r, all)) end += shape_.leaf_rows();
      end = std::min(end, a.rows);
      const MatrixView<const T> rest = a.row_block(first, end - first);
      if (rest.rows > 0)
        all.include(factor_by_reflectors(rest, part(r, leaves_of(first, rest.rows))));
      first = end;
    }
    return all;
  }

  /// Forms R and, unless q is empty, the Q of blocks in q and the Q of nodes in `stack`.
  LeafOutcome factor(MatrixView<const T> a, MatrixView<T> r, MatrixView<T> stack, MatrixView<T> q) {
    LeafOutcome outcome = factor_blocks(a, stack, q);
    if (!has_nodes()) {
      if (r.data != stack.data) copy(stack, r);
      return outcome;
    }
    const MatrixView<T> node_q = q.data == nullptr ? q : stack;
    outcome.r_fits = nodes_.factor(stack, r, node_q) && outcome.r_fits;
    return outcome;
  }

  void multiply(MatrixView<T> stack, MatrixView<const T> z, MatrixView<T> q) {
    if (has_nodes()) {
      product_.multiply_blocks(stack, shape_.node_rows(), z);
      z = stack;
      z.cols = q.cols;
    }
    product_.multiply_blocks(q, shape_.block_rows(), z);
  }

  void form_q(MatrixView<const T> a, MatrixView<const T> z, MatrixView<T> q) {
    const Batch<T> r(1, z.rows, shape_.n());
    const MatrixView<T> stack = stack_of(a.rows);
    factor(a, r.view()[0], stack, q);
    multiply(stack, z, q);
  }

 private:
  LeafOutcome factor_by_reflectors(MatrixView<const T> a, MatrixView<T> r) {
    LeafOutcome outcome = factor(a, r, has_nodes() ? stack_of(a.rows) : r, {});
    if (gram_) outcome.route = Route::reflectors;
    return outcome;
  }
  /// Factors the leaf that begins at row `first`.
  bool factor_by_gram(MatrixView<const T> a, index_t first, MatrixView<T> r, LeafOutcome& all) {
    if constexpr (std::is_same_v<T, float>) {
      const index_t rows = std::min(shape_.leaf_rows(), a.rows - first);
      LeafOutcome leaf;
      if (!gram_ || !gram_->factor(a.row_block(first, rows), part(r, leaves_of(first, rows)), leaf))
        return false;
      leaf.route = Route::first_pass;
      all.include(leaf);
      return true;
    }
    return false;
  }
  Range leaves_of(index_t first, index_t rows) const {
    return stack_range(shape_, first, rows, shape_.leaf_rows());
  }

  static index_t stack_rows(const TallShape& shape) {
    return most_leaves_at_once(shape) * shape.blocks_per_leaf() * shape.n();
  }
  static void copy(MatrixView<const T> from, MatrixView<T> to) {
    for (index_t i = 0; i < from.rows; ++i) std::copy_n(&from(i, 0), from.cols, &to(i, 0));
  }
  bool has_nodes() const { return shape_.blocks_per_leaf() > 1; }
  MatrixView<T> stack_of(index_t rows) const {
    return stack_.view()[0].row_block(0, shape_.stacked_rows(rows, shape_.block_rows()));
  }

  /// Goes leaf by leaf, so that the rows of a leaf are still in the cache when they are factored.
  LeafOutcome factor_blocks(MatrixView<const T> a, MatrixView<T> r, MatrixView<T> q) {
    LeafOutcome outcome;
    for (index_t row = 0, at = 0; row < a.rows; row += shape_.leaf_rows()) {
      const index_t rows = std::min(shape_.leaf_rows(), a.rows - row);
      const index_t stacked = shape_.stacked_rows(rows, shape_.block_rows());
      const MatrixView<const T> leaf = a.row_block(row, rows);
      outcome.magnitude.include(magnitude_of(leaf));
      outcome.r_fits = blocks_.factor(leaf, r.row_block(at, stacked),
                                      q.data == nullptr ? q : q.row_block(row, rows)) &&
                       outcome.r_fits;
      at += stacked;
    }
    return outcome;
  }

  TallShape shape_;
  BlockQr<T> blocks_, nodes_;
  RowProduct<T> product_;
  Batch<T> stack_;  // the R factors of the blocks of a group of leaves
  std::optional<GramLeaf> gram_;
};

template <class T>
CpuLeaves<T>::CpuLeaves(const TallShape& shape, int threads, bool needs_q)
    : shape_(shape),
      threads_(threads),
      needs_q_(needs_q),
      r_workers_(static_cast<std::size_t>(threads)),
      q_workers_(static_cast<std::size_t>(threads)) {}

template <class T>
CpuLeaves<T>::~CpuLeaves() = default;

template <class T>
std::size_t CpuLeaves<T>::workspace_bytes(const TallShape& shape, bool wants_q) {
  return Worker::workspace_bytes(shape, false) +
         (wants_q ? Worker::workspace_bytes(shape, true) : 0);
}

/// Calls body(worker, rows of A, their rows in the stack of the leaves) for groups of leaves, which
/// the threads share evenly.
template <class T>
template <class Body>
void CpuLeaves<T>::for_groups(index_t all_rows, bool wants_q, Body body) {
  const auto divide = [](index_t x, index_t by) { return (x + by - 1) / by; };
  const index_t leaves = divide(all_rows, shape_.leaf_rows());
  const index_t rounds = divide(leaves, most_leaves_at_once(shape_) * threads_);
  const index_t at_once = divide(leaves, std::max<index_t>(1, rounds * threads_));
  const index_t groups = at_once == 0 ? 0 : divide(leaves, at_once);
  auto& workers = wants_q ? q_workers_ : r_workers_;
  parallel_for(groups, threads_, [&](index_t group, int number) {
    auto& worker = workers[static_cast<std::size_t>(number)];
    if (!worker) worker = std::make_unique<Worker>(shape_, wants_q, !needs_q_);
    const index_t row = group * at_once * shape_.leaf_rows();
    const index_t rows = std::min(at_once * shape_.leaf_rows(), all_rows - row);
    body(*worker, Range{row, rows}, stack_range(shape_, row, rows, shape_.leaf_rows()));
  });
}

template <class T>
LeafOutcome CpuLeaves<T>::factor(MatrixView<const T> a, MatrixView<T> r) {
  LeafOutcome all;
  std::mutex mutex;
  for_groups(a.rows, false, [&](Worker& worker, Range rows, Range leaves) {
    const LeafOutcome outcome = worker.factor(part(a, rows), part(r, leaves));
    const std::lock_guard lock(mutex);
    all.include(outcome);
  });
  return all;
}

template <class T>
void CpuLeaves<T>::form_q(MatrixView<const T> a, MatrixView<const T> z, MatrixView<T> q) {
  for_groups(a.rows, true, [&](Worker& worker, Range rows, Range leaves) {
    worker.form_q(part(a, rows), part(z, leaves), part(q, rows));
  });
}

template <class T>
LeafOutcome CpuLeaves<T>::factor_keeping(MatrixView<const T> a, MatrixView<T> r, MatrixView<T> kept,
                                         MatrixView<T> q) {
  LeafOutcome all;
  std::mutex mutex;
  for_groups(a.rows, true, [&](Worker& worker, Range rows, Range leaves) {
    const Range blocks = stack_range(shape_, rows.first, rows.count, shape_.block_rows());
    LeafOutcome outcome =
        worker.factor(part(a, rows), part(r, leaves), part(kept, blocks), part(q, rows));
    const std::lock_guard lock(mutex);
    all.include(outcome);
  });
  return all;
}

template <class T>
void CpuLeaves<T>::multiply_kept(MatrixView<T> kept, MatrixView<const T> z, MatrixView<T> q) {
  for_groups(q.rows, true, [&](Worker& worker, Range rows, Range leaves) {
    const Range blocks = stack_range(shape_, rows.first, rows.count, shape_.block_rows());
    worker.multiply(part(kept, blocks), part(z, leaves), part(q, rows));
  });
}

template <class T>
TallQr<T>::TallQr(const Problem& problem, int threads)
    : problem_(problem),
      shape_(problem.m, problem.n),
      leaves_(shape_, threads, leaves_need_q(problem)),
      tree_(shape_),
      kept_(1, problem.wants_q() ? CpuLeaves<T>::kept_rows(shape_) : 0, problem.n) {}

template <class T>
LeafOutcome TallQr<T>::factor(MatrixView<const T> a, MatrixView<T> q, MatrixView<T> r) {
  const bool wants_q = problem_.wants_q();
  const MatrixView<T> kept = kept_.view()[0];
  MatrixView<T> nodes = tree_.nodes(0, shape_.leaves());
  LeafOutcome outcome =
      wants_q ? leaves_.factor_keeping(a, nodes, kept, q) : leaves_.factor(a, nodes);
  if (!outcome.magnitude.finite || !outcome.r_fits) return outcome;
  const MatrixView<const T> top = a.row_block(0, shape_.rows_of_leaf(0));
  outcome.r_fits = finish_r(tree_, problem_.sign, wants_q, leaves_, top, r);
  nodes.cols = shape_.k();
  if (wants_q && outcome.r_fits) leaves_.multiply_kept(kept, nodes, q);
  return outcome;
}

template <class T>
std::size_t TallQr<T>::workspace_bytes(const Problem& problem, int threads) {
  const TallShape shape(problem.m, problem.n);
  const auto kept = static_cast<std::size_t>(CpuLeaves<T>::kept_rows(shape) * problem.n);
  return TallTree<T>::bytes(shape) + (problem.wants_q() ? kept * sizeof(T) : 0) +
         static_cast<std::size_t>(threads) *
             CpuLeaves<T>::workspace_bytes(shape, problem.wants_q());
}

#define QRTOOL_FOR(T)          \
  template class CpuLeaves<T>; \
  template class TallQr<T>;
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
