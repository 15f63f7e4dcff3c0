// SPDX-License-Identifier: Apache-2.0
// factor_rows.cpp: two passes over the rows of a matrix, chunk by chunk, dealt to the ranks.
#include "app/run/factor_rows.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "app/ranks/deal.hpp"
#include "app/run/leaf_stream.hpp"
#include "core/backend_leaves.hpp"
#include "core/cpu/tall/tall_qr.hpp"
#include "core/ratios.hpp"
#include "io/file/scratch_file.hpp"

namespace qrtool {
namespace {

/// Some rows of A, of Q, and what was found out about them.
template <class T>
struct RowChunk {
  Batch<T> a, q;
  LeafOutcome outcome;
  std::vector<double> sums;  // of the errors
};

/// What all ranks must know after the first pass.
struct Findings {
  double largest = 0;
  std::uint64_t is_finite = 1, r_fits = 1;
};

template <class T>
MatrixView<T> rows_of(const Batch<T>& batch, index_t rows) {
  return batch.view()[0].row_block(0, rows);
}

template <class T>
std::size_t size_of(MatrixView<T> packed) {
  return static_cast<std::size_t>(packed.rows * packed.cols);
}

}  // namespace

template <class T>
struct RowFactor<T>::State {
  State(const RowJob& asked, Comm& ranks)
      : job(asked),
        comm(ranks),
        problem(asked.plan.problem),
        shape(job.plan.row_shape()),
        tree(shape,
             [&](std::size_t bytes) {
               return job.scratch.empty() ? allocate_host(bytes) : map_scratch(job.scratch, bytes);
             }),
        leaves(make_leaves()),
        r(1, problem.k(), problem.n),
        stream(open_stream()),
        leaves_per_chunk(choose_leaves_per_chunk()),
        chunk_rows(leaves_per_chunk * shape.leaf_rows()),
        chunks((shape.leaves() + leaves_per_chunk - 1) / leaves_per_chunk) {
    for (int i = 0; i < job.plan.buffers; ++i) buffers.push_back(make_chunk());
    if (comm.is_root() && comm.size() > 1) foreign = make_chunk();
  }

  bool is_on_cpu() const { return job.plan.variant->leaf_rows == nullptr; }

  std::unique_ptr<LeafQr<T>> make_leaves() const {
    const int threads = job.plan.threads;
    if (is_on_cpu()) return std::make_unique<CpuLeaves<T>>(shape, threads, leaves_need_q(problem));
    return std::make_unique<BackendLeaves<T>>(job.backend, problem, shape, threads);
  }
  std::unique_ptr<LeafStream<T>> open_stream() const {
    if (leaves_need_q(problem) || !is_on_cpu()) return nullptr;
    const Plan& plan = job.plan;
    const auto bytes = static_cast<std::size_t>(plan.buffers * plan.chunk_rows * problem.n);
    return LeafStream<T>::open(job.input, shape, plan.threads, bytes * sizeof(T));
  }
  /// A stream holds no chunk, so that one may be all of this rank's work; several ranks get turns
  /// that let rank 0 say how far they are.
  index_t choose_leaves_per_chunk() const {
    const index_t planned = job.plan.chunk_rows / shape.leaf_rows();
    if (!stream) return planned;
    return comm.size() == 1 ? shape.leaves() : planned;
  }

  RowChunk<T> make_chunk() const {
    RowChunk<T> chunk;
    if (!stream) chunk.a = allocate(problem.n);
    if (problem.wants_q()) chunk.q = allocate(problem.k());
    return chunk;
  }
  Batch<T> allocate(index_t cols) const {
    const auto bytes = static_cast<std::size_t>(chunk_rows * cols) * sizeof(T);
    return {job.backend.allocate(bytes), 1, chunk_rows, cols};
  }

  index_t first_row(index_t chunk) const { return chunk * chunk_rows; }
  index_t rows(index_t chunk) const { return std::min(chunk_rows, problem.m - first_row(chunk)); }
  /// R_i or Z_i of the leaves of a chunk.
  MatrixView<T> nodes(index_t chunk) const {
    const index_t first = chunk * leaves_per_chunk;
    return tree.nodes(first, std::min(leaves_per_chunk, shape.leaves() - first));
  }
  MatrixView<const T> r_view() const { return r.view()[0]; }

  void read(RowChunk<T>& chunk, index_t number) {
    job.input.read_rows(matrix, first_row(number), rows_of(chunk.a, rows(number)));
  }

  Findings factor_leaves();
  bool form_r();
  Errors form_q(int scale);
  void write_nan();
  /// For Q and R, with R as it is.
  ErrorMeter new_meter(int scale) const {
    ErrorMeter meter(problem.m, problem.n, problem.k(), problem.k());
    meter.start(r_view(), scale);
    return meter;
  }
  void add(const StageSeconds& pass) {
    seconds.stages.read += pass.read;
    seconds.stages.work += pass.work;
    seconds.stages.write += pass.write;
  }

  const RowJob job;
  Comm& comm;
  const Problem problem;
  const TallShape shape;
  TallTree<T> tree;
  const std::unique_ptr<LeafQr<T>> leaves;
  Batch<T> r;
  const std::unique_ptr<LeafStream<T>> stream;  // for R alone, where the file allows it
  const index_t leaves_per_chunk, chunk_rows, chunks;
  std::vector<RowChunk<T>> buffers;
  RowChunk<T> foreign;
  index_t matrix = 0;
  RowSeconds seconds;
};

namespace {

/// The first pass: R_i of every leaf to rank 0.
template <class State, class Chunk>
struct LeafSteps {
  State& s;
  LeafOutcome total;

  void read(Chunk& chunk, index_t number) {
    if (!s.stream) s.read(chunk, number);
  }
  void work(Chunk& chunk, index_t number) {
    const Stopwatch watch;
    if (s.stream) {
      const index_t first = number * s.leaves_per_chunk;
      const index_t count = std::min(s.leaves_per_chunk, s.shape.leaves() - first);
      const double read_before = s.stream->read_seconds();
      chunk.outcome = s.stream->factor(s.matrix, first, count, s.nodes(number), [&](index_t rows) {
        if (s.comm.size() == 1) s.job.added(rows);
      });
      const double read = s.stream->read_seconds() - read_before;
      s.seconds.stages.read += read;
      s.seconds.chunks.factor += watch.seconds() - read;
      return;
    }
    chunk.outcome = s.leaves->factor(rows_of(chunk.a, s.rows(number)), s.nodes(number));
    s.seconds.chunks.factor += watch.seconds();
  }
  void send(Chunk& chunk, index_t number) {
    const Findings found{chunk.outcome.magnitude.largest, chunk.outcome.magnitude.finite,
                         chunk.outcome.r_fits};
    const auto nodes = s.nodes(number);
    s.comm.send(0, bytes_of(&found, 1));
    s.comm.send(0, bytes_of(nodes.data, size_of(nodes)));
  }
  void receive(Chunk& chunk, index_t number, int from) {
    Findings found;
    const auto nodes = s.nodes(number);
    s.comm.receive(from, writable_bytes_of(&found, 1));
    s.comm.receive(from, writable_bytes_of(nodes.data, size_of(nodes)));
    chunk.outcome = {{found.largest, found.is_finite != 0}, found.r_fits != 0};
  }
  void keep(Chunk& chunk, index_t number) {
    total.include(chunk.outcome);
    if (!s.stream || s.comm.size() > 1) s.job.added(s.rows(number));
  }
};

/// The second pass: Q_i Z_i and the errors of these rows to rank 0, which writes.
template <class State, class Chunk, class T>
struct QSteps {
  State& s;
  int scale;
  ErrorMeter meter;  // rank 0: of all rows

  void read(Chunk& chunk, index_t number) { s.read(chunk, number); }
  void work(Chunk& chunk, index_t number) {
    const Stopwatch watch;
    const auto a = rows_of(chunk.a, s.rows(number)), q = rows_of(chunk.q, s.rows(number));
    s.leaves->form_q(a, s.nodes(number), q);
    const double formed = watch.seconds();
    ErrorMeter part = s.new_meter(scale);
    add_rows_by_parts<T>(a, q, s.r_view(), s.job.plan.threads, part);
    chunk.sums = part.sums();
    s.seconds.chunks.factor += formed;
    s.seconds.chunks.check += watch.seconds() - formed;
  }
  void send(Chunk& chunk, index_t number) {
    const auto q = rows_of(chunk.q, s.rows(number));
    s.comm.send(0, bytes_of(chunk.sums.data(), chunk.sums.size()));
    s.comm.send(0, bytes_of(q.data, size_of(q)));
  }
  void receive(Chunk& chunk, index_t number, int from) {
    const auto q = rows_of(chunk.q, s.rows(number));
    chunk.sums.resize(meter.sums().size());
    s.comm.receive(from, writable_bytes_of(chunk.sums.data(), chunk.sums.size()));
    s.comm.receive(from, writable_bytes_of(q.data, size_of(q)));
  }
  void keep(Chunk& chunk, index_t number) {
    s.job.output->write_rows("Q", s.matrix, s.first_row(number), rows_of(chunk.q, s.rows(number)));
    meter.add_sums(chunk.sums);
    s.job.added(s.rows(number));
  }
};

}  // namespace

template <class T>
Findings RowFactor<T>::State::factor_leaves() {
  LeafSteps<State, RowChunk<T>> steps{*this, {}};
  add(deal(comm, chunks, buffers, &foreign, steps));
  Findings found{steps.total.magnitude.largest, steps.total.magnitude.finite, steps.total.r_fits};
  broadcast(comm, &found, 1);
  return found;
}

/// R and the Z_i on rank 0, then everywhere. False where R overflows.
template <class T>
bool RowFactor<T>::State::form_r() {
  std::uint64_t fits = 1;
  together(comm, [&] {
    if (!comm.is_root()) return;
    const Stopwatch watch;
    const index_t top_rows = shape.rows_of_leaf(0);
    const MatrixView<T> top = rows_of(buffers.front().a, top_rows);
    if (problem.sign == Sign::lapack) job.input.read_rows(matrix, 0, top);
    fits = finish_r<T>(tree, problem.sign, problem.wants_q(), *leaves, top, r.view()[0]);
    seconds.chunks.factor += watch.seconds();
  });
  broadcast(comm, &fits, 1);
  if (problem.wants_q() && comm.size() > 1) {
    const MatrixView<T> z = tree.nodes(0, shape.leaves());
    broadcast(comm, z.data, size_of(z));
    broadcast(comm, r.view().data, size_of(r.view()[0]));
  }
  return fits != 0;
}

template <class T>
Errors RowFactor<T>::State::form_q(int scale) {
  QSteps<State, RowChunk<T>, T> steps{*this, scale, new_meter(scale)};
  add(deal(comm, chunks, buffers, &foreign, steps));
  return steps.meter.finish();
}

/// In place of factors that do not exist.
template <class T>
void RowFactor<T>::State::write_nan() {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  std::fill_n(r.view().data, size_of(r.view()[0]), nan);
  if (!problem.wants_q()) return;
  const MatrixView<T> q = rows_of(buffers.front().q, chunk_rows);
  std::fill_n(q.data, size_of(q), nan);
  for (index_t chunk = 0; chunk < chunks; ++chunk)
    job.output->write_rows("Q", matrix, first_row(chunk), q.row_block(0, rows(chunk)));
}

template <class T>
RowFactor<T>::RowFactor(const RowJob& job, Comm& comm)
    : state_(std::make_unique<State>(job, comm)) {}

template <class T>
RowFactor<T>::~RowFactor() = default;

template <class T>
const RowSeconds& RowFactor<T>::seconds() const {
  return state_->seconds;
}

template <class T>
MatrixReport RowFactor<T>::run(index_t matrix) {
  State& s = *state_;
  s.matrix = matrix;
  const Findings found = s.factor_leaves();
  const Magnitude magnitude{found.largest, found.is_finite != 0};
  MatrixReport report;
  report.scale = magnitude.scale();
  const bool has_r = magnitude.finite && found.r_fits != 0 && s.form_r();
  if (!has_r) {
    report.status = magnitude.finite ? Status::r_overflows : Status::non_finite;
  } else if (s.problem.wants_q()) {
    const Errors errors = s.form_q(report.scale);
    enter_errors(s.problem, errors, report);
  } else {
    report.diagonal_ratio = s.new_meter(report.scale).finish().diagonal_ratio;
    report.lower = 0;
  }
  together(s.comm, [&] {
    if (!s.comm.is_root()) return;
    if (!has_r) s.write_nan();
    s.job.output->write("R", matrix, BatchView<const T>(s.r.view()));
  });
  broadcast(s.comm, &report, 1);
  return report;
}

template class RowFactor<float>;
template class RowFactor<double>;

}  // namespace qrtool
