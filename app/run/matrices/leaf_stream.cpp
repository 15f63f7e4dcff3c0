// SPDX-License-Identifier: Apache-2.0
// leaf_stream.cpp: deals spans of leaves to threads, largest first; a thread reads its span piece
// by piece.
#include "app/run/matrices/leaf_stream.hpp"

#include <algorithm>
#include <mutex>

#include "app/process/stopwatch.hpp"
#include "core/machine/parallel.hpp"

namespace qrtool {
namespace {

// Two spans may share a piece of the file, which is then read twice; it is a small part of a span.
constexpr std::size_t least_span_bytes = std::size_t{8} << 20;
constexpr std::size_t most_span_bytes = std::size_t{128} << 20;

/// The leaves that no thread of a call has taken yet.
class LeavesLeft {
 public:
  LeavesLeft(index_t first, index_t count, int threads, index_t least, index_t most)
      : next_(first), left_(count), threads_(threads), least_(least), most_(most) {}

  /// Takes a quarter of a thread's share of the rest, so that all threads end at about the same
  /// time.
  std::pair<index_t, index_t> take() {
    const index_t count = std::min(left_, std::clamp(left_ / (4 * threads_), least_, most_));
    const index_t first = next_;
    next_ += count;
    left_ -= count;
    return {first, count};
  }
  void stop() { left_ = 0; }

 private:
  index_t next_, left_;
  int threads_;
  index_t least_, most_;
};

}  // namespace

template <class T>
std::unique_ptr<LeafStream<T>> LeafStream<T>::open(const Reader& input, const TallShape& shape,
                                                   int threads, std::size_t bytes) {
  const index_t rows = shape.leaf_rows() + input.most_piece_rows();
  std::size_t room = bytes + input.workspace_bytes(element_type<T>);
  std::vector<Worker> workers;
  for (int i = 0; i < threads; ++i) {
    std::unique_ptr<Reader> another = input.another();
    if (!another) return nullptr;
    const std::size_t needed = static_cast<std::size_t>(rows * shape.n()) * sizeof(T) +
                               another->workspace_bytes(element_type<T>);
    if (needed > room) return nullptr;
    room -= needed;
    workers.push_back({std::move(another),
                       std::make_unique<CpuLeaves<T>>(shape, 1, /*needs_q=*/false),
                       Batch<T>(1, rows, shape.n())});
  }
  return std::unique_ptr<LeafStream>(new LeafStream(shape, std::move(workers)));
}

template <class T>
LeafOutcome LeafStream<T>::factor_span(Worker& worker, index_t matrix, Span span, MatrixView<T> r,
                                       GramProbe<T>* probe) const {
  const MatrixView<T> rows = worker.rows.view()[0];
  const index_t n = shape_.n(), leaf = shape_.leaf_rows(), end = span.first + span.count;
  LeafOutcome outcome;
  // The memory holds rows at .. at + held - 1 of the matrix.
  for (index_t at = span.first, held = 0, stacked = 0; at < end;) {
    const Stopwatch watch;
    const index_t piece_end = std::min(worker.input->piece_end(matrix, at + held), end);
    worker.input->read_rows(matrix, at + held,
                            interleaved(rows.row_block(held, piece_end - at - held)));
    worker.read_seconds += watch.seconds();
    held = piece_end - at;
    const index_t done = piece_end == end ? held : held / leaf * leaf;
    const index_t done_stacked = shape_.stacked_rows(done, leaf);
    outcome.include(
        worker.leaves->factor(rows.row_block(0, done), r.row_block(stacked, done_stacked)));
    const Stopwatch check;
    if (probe != nullptr) probe->add(at / leaf, rows.row_block(0, done), 1);
    worker.check_seconds += check.seconds();
    stacked += done_stacked;
    held -= done;
    at += done;
    std::copy_n(&rows(done, 0), held * n, rows.data);  // forward: to lower addresses
  }
  return outcome;
}

template <class T>
LeafOutcome LeafStream<T>::factor(index_t matrix, index_t first, index_t count, MatrixView<T> r,
                                  GramProbe<T>* probe,
                                  const std::function<void(index_t rows)>& added) {
  const auto leaf_bytes = static_cast<std::size_t>(shape_.leaf_rows() * shape_.n()) * sizeof(T);
  const auto leaves_of = [&](std::size_t bytes) {
    return static_cast<index_t>(std::max<std::size_t>(bytes / leaf_bytes, 1));
  };
  const int threads = static_cast<int>(workers_.size());
  LeavesLeft left(first, count, threads, leaves_of(least_span_bytes), leaves_of(most_span_bytes));
  LeafOutcome all;
  std::mutex mutex;
  parallel_for(threads, threads, [&](index_t, int number) {
    try {
      while (true) {
        std::unique_lock lock(mutex);
        const auto [leaf, leaves] = left.take();
        if (leaves == 0) return;
        lock.unlock();
        const index_t row = leaf * shape_.leaf_rows();
        const Span span{row, std::min(leaves * shape_.leaf_rows(), shape_.m() - row)};
        const index_t stacked = shape_.stacked_rows(span.count, shape_.leaf_rows());
        const MatrixView<T> span_r = r.row_block((leaf - first) * shape_.n(), stacked);
        const LeafOutcome outcome =
            factor_span(workers_[static_cast<std::size_t>(number)], matrix, span, span_r, probe);
        lock.lock();
        all.include(outcome);
        added(span.count);
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      left.stop();
      throw;
    }
  });
  return all;
}

template <class T>
double LeafStream<T>::mean(double Worker::*seconds) const {
  double sum = 0;
  for (const Worker& worker : workers_) sum += worker.*seconds;
  return sum / static_cast<double>(workers_.size());
}

template class LeafStream<float>;
template class LeafStream<double>;
template class LeafStream<std::complex<float>>;
template class LeafStream<std::complex<double>>;

}  // namespace qrtool
