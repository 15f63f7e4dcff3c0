// SPDX-License-Identifier: Apache-2.0
// factor_rows.cpp: two passes over the rows of a matrix, and R between them.
#include "app/run/matrices/factor_rows.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "app/process/stopwatch.hpp"
#include "app/run/matrices/leaf_stream.hpp"
#include "app/run/matrices/row_passes.hpp"
#include "app/run/pipeline/share_stages.hpp"
#include "core/cpu/tall/backend_leaves.hpp"
#include "core/cpu/tall/tall_qr.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/gram_probe.hpp"
#include "core/report/ratios.hpp"
#include "io/file/scratch_file.hpp"

namespace qrtool {
namespace {

// The outcome of a chunk is sent from rank to rank as bytes.
static_assert(std::is_trivially_copyable_v<LeafOutcome>);

template <class T>
std::size_t size_of(MatrixView<T> packed) {
  return static_cast<std::size_t>(packed.rows * packed.cols);
}

/// The leaves of a second try have the same cut, but any backend may factor them.
template <class T>
std::unique_ptr<LeafQr<T>> make_leaves(const RowJob& job, const TallShape& shape,
                                       bool by_reflectors) {
  const Plan& plan = job.plan;
  if (by_reflectors)
    return std::make_unique<BackendLeaves<T>>(job.backend.reflectors(), plan.problem, shape,
                                              plan.threads);
  if (plan.variant->leaf_rows == nullptr)
    return std::make_unique<CpuLeaves<T>>(shape, plan.threads, leaves_need_q(plan.problem));
  return std::make_unique<BackendLeaves<T>>(job.backend, plan.problem, shape, plan.threads);
}

/// Returns null if the leaves are needed a second time, or do not run on the CPU.
template <class T>
std::unique_ptr<LeafStream<T>> open_stream(const RowJob& job, const TallShape& shape) {
  const Plan& plan = job.plan;
  if (leaves_need_q(plan.problem) || plan.variant->leaf_rows != nullptr) return nullptr;
  const auto elements = static_cast<std::size_t>(plan.buffers * plan.chunk_rows * shape.n());
  return LeafStream<T>::open(job.input, shape, plan.threads, elements * sizeof(T));
}

}  // namespace

template <class T>
struct RowFactor<T>::State {
  State(const RowJob& asked, Comm& ranks, bool takes_reflectors)
      : job(asked),
        comm(ranks),
        by_reflectors(takes_reflectors),
        added([](index_t) {}),
        problem(asked.plan.problem),
        shape(asked.plan.row_shape()),
        tree(shape, [&](std::size_t bytes) { return allocate_state(bytes); }),
        leaves(make_leaves<T>(job, shape, by_reflectors)),
        r(1, problem.k(), problem.n),
        stream(by_reflectors ? nullptr : open_stream<T>(job, shape)),
        cut(shape, choose_leaves_per_chunk()) {
    if (problem.ranks()) pivoted.emplace(problem);
    if (!problem.wants_q() && problem.check != Check::none)
      probe.emplace(shape, [&](std::size_t bytes) { return allocate_state(bytes); });
    make_estimator();
    for (int i = 0; i < job.plan.buffers; ++i) buffers.push_back(make_chunk());
    if (comm.is_root() && comm.size() > 1) foreign = make_chunk();
  }

  void make_estimator() {
    if (!problem.wants_q() || problem.check != Check::probe) return;
    estimator.emplace(shape.leaf_rows(), problem.n, problem.k(), problem.k(), job.plan.threads);
  }
  HostMemory allocate_state(std::size_t bytes) const {
    return job.scratch.empty() ? allocate_host(bytes) : map_scratch(job.scratch, bytes);
  }
  /// Returns the leaves of a chunk. A stream holds no chunk, so one chunk may be all of the work.
  /// Several ranks take turns, so that rank 0 can show their progress.
  index_t choose_leaves_per_chunk() const {
    if (stream && comm.size() == 1) return shape.leaves();
    return job.plan.chunk_rows / shape.leaf_rows();
  }
  RowChunk<T> make_chunk() const {
    RowChunk<T> chunk;
    if (!stream) chunk.a = allocate(problem.n);
    if (problem.wants_q()) chunk.q = allocate(problem.k());
    return chunk;
  }
  Batch<T> allocate(index_t cols) const {
    const auto bytes = static_cast<std::size_t>(cut.chunk_rows() * cols) * sizeof(T);
    return {job.backend.allocate(bytes), 1, cut.chunk_rows(), cols};
  }

  MatrixReport factor(index_t matrix);
  LeafOutcome factor_leaves(index_t matrix);
  bool form_r(index_t matrix, MatrixReport& report);
  void rank(index_t matrix, MatrixReport& report);
  void pivot(index_t matrix);
  MatrixView<T> read_top(index_t matrix);
  Errors form_q(index_t matrix, int scale);
  Errors form_q(index_t matrix, int scale, const RowsDone& done);
  void write_nan(index_t matrix);
  void write_permutation(index_t matrix, const MatrixReport& report);
  template <class Pass>
  void run(Pass& pass);
  /// Returns a meter for Q and R, with R as it is.
  ErrorMeter new_meter(int scale) const {
    ErrorMeter meter(problem.m, problem.n, problem.k(), problem.k(), 1, is_complex_number<T>);
    meter.start(MatrixView<const T>(r.view()[0]), scale);
    return meter;
  }
  Errors probe_errors(int scale);
  /// Adds the time of work between the passes.
  void add_work(double& column, const Stopwatch& watch) {
    const double passed = watch.seconds();
    column += passed;
    seconds.stages.work += passed;
  }

  const RowJob job;
  Comm& comm;
  const bool by_reflectors;  // a second try
  RowsDone added;            // job.added in the first try
  const Problem problem;
  const TallShape shape;
  TallTree<T> tree;
  std::optional<GramProbe<T>> probe;             // for R alone
  std::optional<ErrorProbe> estimator;           // for Q and R
  std::optional<RankAndOrder<Wide<T>>> pivoted;  // where rank or condition are asked for
  const std::unique_ptr<LeafQr<T>> leaves;
  Batch<T> r;
  const std::unique_ptr<LeafStream<T>> stream;  // for R alone, where the file allows it
  const RowCut cut;
  std::vector<RowChunk<T>> buffers;
  RowChunk<T> foreign;
  RowSeconds seconds;
};

/// Every chunk through one pass, shared by the ranks.
template <class T>
template <class Pass>
void RowFactor<T>::State::run(Pass& pass) {
  seconds.stages += comm.size() > 1 ? share_stages(comm, cut.chunks(), buffers, foreign, pass)
                                    : run_stages(cut.chunks(), buffers, pass);
  // A stream reads while others only work.
  seconds.stages.read += pass.seconds.read;
  seconds.stages.work -= pass.seconds.read;
  seconds.chunks.factor += pass.seconds.factor;
  seconds.chunks.check += pass.seconds.check;
}

/// Puts the R_i into the tree of rank 0, and sends the findings about A to all ranks.
template <class T>
LeafOutcome RowFactor<T>::State::factor_leaves(index_t matrix) {
  const RowsDone nothing = [](index_t) {};
  const bool streams_alone = stream && comm.size() == 1;
  LeafPass<T> pass{.cut = cut,
                   .input = job.input,
                   .matrix = matrix,
                   .leaves = *leaves,
                   .stream = stream.get(),
                   .tree = tree,
                   .probe = probe ? &*probe : nullptr,
                   .threads = job.plan.threads,
                   .streamed = streams_alone ? added : nothing,
                   .kept = streams_alone ? nothing : added};
  run(pass);
  broadcast(comm, &pass.total, 1);
  return pass.total;
}

/// Returns the rows of A in the first leaf.
template <class T>
MatrixView<T> RowFactor<T>::State::read_top(index_t matrix) {
  const MatrixView<T> top = buffers.front().a.view()[0].row_block(0, shape.rows_of_leaf(0));
  job.input.read_rows(matrix, 0, interleaved(top));
  return top;
}

/// Finds rank and condition, on rank 0.
template <class T>
void RowFactor<T>::State::rank(index_t matrix, MatrixReport& report) {
  pivoted->template set<T>(r.view()[0], report.scale);
  pivoted->enter(report);
  if (problem.pivots) pivot(matrix);
}

/// R P = Q2 R2: R2 replaces R.
template <class T>
void RowFactor<T>::State::pivot(index_t matrix) {
  pivoted->pivot();
  if (problem.wants_q() && problem.sign == Sign::lapack) {
    const MatrixView<T> top = read_top(matrix);
    const Batch<T> top_of_q(1, top.rows, problem.k());
    const MatrixView<T> q = top_of_q.view()[0];
    MatrixView<T> z = tree.nodes(0, 1);
    z.cols = problem.k();
    leaves->form_q(top, z, q);
    pivoted->multiply(q, job.plan.threads);
    pivoted->apply_signs(lapack_signs<T>(q.row_block(0, problem.k())));
  }
  pivoted->store_r(r.view()[0]);
}

/// Finds R and the Z_i on rank 0, and sends them to all ranks. Returns false if R overflows.
template <class T>
bool RowFactor<T>::State::form_r(index_t matrix, MatrixReport& report) {
  std::uint64_t fits = 1;
  together(comm, [&] {
    if (!comm.is_root()) return;
    const Stopwatch watch;
    // The signs of pivoted columns are found later.
    const Sign sign = problem.pivots ? Sign::positive : problem.sign;
    const MatrixView<T> top = sign == Sign::lapack ? read_top(matrix) : MatrixView<T>{};
    fits = finish_r<T>(tree, sign, problem.wants_q(), *leaves, top, r.view()[0]);
    if (fits != 0 && pivoted) rank(matrix, report);
    add_work(seconds.chunks.factor, watch);
  });
  broadcast(comm, &fits, 1);
  if (problem.wants_q() && comm.size() > 1) {
    const MatrixView<T> z = tree.nodes(0, shape.leaves());
    broadcast(comm, z.data, size_of(z));
    broadcast(comm, r.view().data, size_of(r.view()[0]));
    if (problem.pivots) pivoted->share(comm);
  }
  return fits != 0;
}

/// Estimates of --check probe whose bound is above the bar are measured in another pass.
template <class T>
Errors RowFactor<T>::State::form_q(index_t matrix, int scale) {
  if (!estimator) return form_q(matrix, scale, added);
  if constexpr (!is_complex_number<T>) estimator->start<T>(r.view()[0], scale);
  form_q(matrix, scale, added);
  const Errors estimates = estimator->finish();
  const Bars bars = standard_bars(problem.m, problem.n, precision_of(problem), estimates);
  if (judge(upper_bounds(estimates), bars, true) == Status::ok) return estimates;
  estimator.reset();
  job.output->restart("Q", matrix);
  const Errors errors = form_q(matrix, scale, [](index_t) {});
  make_estimator();
  return errors;
}

/// Writes Q and measures the errors, unless there is an estimator, which gets the rows then.
template <class T>
Errors RowFactor<T>::State::form_q(index_t matrix, int scale, const RowsDone& done) {
  QPass<T> pass{.cut = cut,
                .input = job.input,
                .matrix = matrix,
                .leaves = *leaves,
                .tree = tree,
                .r = r.view()[0],
                .threads = job.plan.threads,
                .output = job.output,
                .total = new_meter(scale),
                .pivoted = problem.pivots ? &*pivoted : nullptr,
                .measures = problem.check != Check::none && !estimator,
                .estimator = estimator ? &*estimator : nullptr,
                .done = done};
  run(pass);
  const Stopwatch watch;
  const Errors errors = pass.total.finish();
  add_work(seconds.chunks.check, watch);
  return errors;
}

/// Checks R alone. The sums belong to A, so R gets its columns back in A's order.
template <class T>
Errors RowFactor<T>::State::probe_errors(int scale) {
  if (!problem.pivots) return probe->finish(r.view()[0], scale);
  const Batch<T> ordered(1, problem.k(), problem.n);
  const MatrixView<T> from = r.view()[0], to = ordered.view()[0];
  for (index_t i = 0; i < from.rows; ++i)
    for (index_t j = 0; j < from.cols; ++j) to(i, pivoted->permutation()[j]) = from(i, j);
  Errors errors = probe->finish(to, scale);
  errors.diagonal_ratio = pivoted->diagonal_ratio();
  return errors;
}

/// Fills in the values for factors that do not exist.
template <class T>
void RowFactor<T>::State::write_nan(index_t matrix) {
  const T nan = not_a_number<T>();
  std::fill_n(r.view().data, size_of(r.view()[0]), nan);
  if (!problem.wants_q()) return;
  const MatrixView<T> q = buffers.front().q.view()[0];
  std::fill_n(q.data, size_of(q), nan);
  for (index_t number = 0; number < cut.chunks(); ++number)
    job.output->write_rows("Q", matrix, cut.first_row(number),
                           interleaved(MatrixView<const T>(q.row_block(0, cut.rows(number)))));
}

/// Sums over the columns of A, if there are no factors.
template <class T>
void RowFactor<T>::State::write_permutation(index_t matrix, const MatrixReport& report) {
  const Batch<double> numbers(1, 1, problem.n);
  const MatrixView<double> p = numbers.view()[0];
  if (report.rank < 0) {
    std::iota(p.data, p.data + p.cols, 0.0);
  } else {
    std::copy(pivoted->permutation().begin(), pivoted->permutation().end(), p.data);
  }
  job.output->write("P", matrix, BatchView<const double>(numbers.view()));
}

/// R is in `r` afterwards, and Q in the output, unless the status says that they do not exist.
/// Every rank gets the report.
template <class T>
MatrixReport RowFactor<T>::State::factor(index_t matrix) {
  const LeafOutcome found = factor_leaves(matrix);
  MatrixReport report;
  report.scale = found.magnitude.scale();
  report.route = found.route;
  report.tries = found.tries;
  const bool has_r = found.magnitude.finite && found.r_fits && form_r(matrix, report);
  if (!has_r) {
    report.status = found.magnitude.finite ? Status::r_overflows : Status::non_finite;
  } else if (problem.wants_q()) {
    const Errors errors = form_q(matrix, report.scale);
    if (problem.check != Check::none) enter_errors(problem, errors, report);
  } else if (comm.is_root() && probe) {  // the other ranks have neither R nor all sums
    const Stopwatch watch;
    enter_errors(problem, probe_errors(report.scale), report);
    add_work(seconds.chunks.check, watch);
  }
  broadcast(comm, &report, 1);
  return report;
}

template <class T>
RowFactor<T>::RowFactor(const RowJob& job, Comm& comm)
    : state_(std::make_unique<State>(job, comm, false)) {}

template <class T>
RowFactor<T>::~RowFactor() = default;

template <class T>
const RowSeconds& RowFactor<T>::seconds() const {
  return state_->seconds;
}

/// Frees the memory of one way to factor before the other allocates its own. The output's part for
/// `matrix` is written again.
template <class T>
void RowFactor<T>::remake(bool by_reflectors, index_t matrix) {
  const RowJob job = state_->job;
  const RowSeconds seconds = state_->seconds;
  const Stopwatch watch;
  Comm& comm = state_->comm;
  together(comm, [&] {
    state_ = nullptr;
    state_ = std::make_unique<State>(job, comm, by_reflectors);
    state_->seconds = seconds;
    state_->add_work(state_->seconds.chunks.factor, watch);
    if (comm.is_root() && state_->problem.wants_q()) job.output->restart("Q", matrix);
  });
}

/// Keeps the better of two results. Q and R of the second try replace those of the first; if the
/// first is better, it is computed again, since equal inputs give equal bits.
template <class T>
MatrixReport RowFactor<T>::try_again(index_t matrix, const MatrixReport& first) {
  remake(true, matrix);
  MatrixReport second = state_->factor(matrix);
  if (is_better(state_->problem.mode, second, first)) {
    second.route = Route::reflectors;
    second.tries = 2;
    return second;
  }
  remake(false, matrix);
  return state_->factor(matrix);
}

template <class T>
MatrixReport RowFactor<T>::run(index_t matrix) {
  if (state_->by_reflectors) remake(false, matrix);
  state_->added = state_->job.added;
  MatrixReport report = state_->factor(matrix);
  if (report.status == Status::above_bar) report = try_again(matrix, report);
  State& s = *state_;
  together(s.comm, [&] {
    if (!s.comm.is_root()) return;
    const Stopwatch watch;
    if (report.status == Status::non_finite || report.status == Status::r_overflows)
      s.write_nan(matrix);
    s.job.output->write("R", matrix, interleaved(BatchView<const T>(s.r.view())));
    if (s.problem.pivots) s.write_permutation(matrix, report);
    s.seconds.stages.write += watch.seconds();
  });
  return report;
}

template class RowFactor<float>;
template class RowFactor<double>;
template class RowFactor<std::complex<float>>;
template class RowFactor<std::complex<double>>;

}  // namespace qrtool
