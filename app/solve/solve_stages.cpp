// SPDX-License-Identifier: Apache-2.0
// solve_stages.cpp: chunks of groups through the engines, and tall systems one after another.
#include "app/solve/solve_stages.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "app/engine/group_engine.hpp"
#include "app/run/pipeline/pipeline.hpp"
#include "app/solve/row_sweeper.hpp"
#include "app/solve/side_numbers.hpp"
#include "app/solve/tall_fits.hpp"
#include "core/runs.hpp"
#include "core/solve/engines/tall_system.hpp"

namespace qrtool {
namespace {

/// Some groups: their data and their results.
template <class T>
struct GroupChunk {
  index_t first = 0, count = 0;
  Batch<T> a, b, x, covariance;
  Batch<Real<T>> w, se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;  // one for each right side
  HostMemory fitted, residuals;          // in the places of b; null: not wanted
  GivenFits given;
  std::vector<FitReport> fits;
};

/// Reads one vector of all weights.
template <class R>
std::vector<R> read_shared_weights(const SolveJob& job) {
  if (!job.inputs.w_is_shared) return {};
  std::vector<R> w(static_cast<std::size_t>(job.problem.m));
  Reader& reader = *job.inputs.w;
  read_numbers(reader, 0, job.problem.m, w.data());
  require_weights(reader, w.data(), job.problem.m, 0);
  return w;
}

/// The steps for run_stages().
template <class T>
class GroupSteps {
 public:
  GroupSteps(const SolveJob& job, const SolveSink<T>& sink)
      : job_(job),
        sink_(sink),
        w_(read_shared_weights<Real<T>>(job)),
        a_(read_shared_matrix(job, read_seconds_)),
        engine_(
            {.problem = job.problem, .plan = job.plan, .limits = job.limits, .device = job.device},
            MatrixView<const T>(a_.view()[0]), w_.empty() ? nullptr : w_.data()) {
    if (sink.keep_fits) fits_.emplace(job.problem, job.inputs.fits, job.plan.threads);
  }

  GroupChunk<T> allocate() const {
    const SolveProblem& p = job_.problem;
    const index_t groups = job_.plan.chunk_groups, size = job_.plan.group_size;
    GroupChunk<T> chunk;
    if (!job_.inputs.sides.shares_a()) chunk.a = batch<T>(groups, p.m, p.n);
    chunk.b = batch<T>(groups, p.m, size);
    if (has_own_weights()) chunk.w = Batch<Real<T>>(groups, p.m, size);
    chunk.x = batch<T>(groups, p.n, size);
    if (p.wants_se) chunk.se = batch<Real<T>>(groups, p.n, size);
    if (p.wants_covariance) chunk.covariance = Batch<T>(groups * size, p.n, p.n);
    chunk.reports.resize(static_cast<std::size_t>(groups * size));
    chunk.findings.resize(chunk.reports.size());
    if (!fits_) return chunk;
    const FitWishes& wishes = job_.inputs.fits;
    const auto fit_bytes = static_cast<std::size_t>(groups * p.m * size) * size_of(wishes.type);
    if (wishes.fitted) chunk.fitted = allocate_host(fit_bytes);
    if (wishes.residuals) chunk.residuals = allocate_host(fit_bytes);
    chunk.given = GivenFits(wishes, groups * p.m * size);
    chunk.fits.resize(chunk.reports.size());
    return chunk;
  }

  void begin(GroupChunk<T>& chunk, index_t number) const {
    chunk.first = number * job_.plan.chunk_groups;
    chunk.count = std::min(job_.plan.chunk_groups, job_.plan.groups - chunk.first);
  }
  /// A buffer is allocated when it is first filled in, while the others are worked on.
  void read(GroupChunk<T>& chunk) {
    if (chunk.b.view().data == nullptr) {
      const auto [first, count] = std::pair(chunk.first, chunk.count);
      chunk = allocate();
      chunk.first = first;
      chunk.count = count;
    }
    const SolveProblem& p = job_.problem;
    const index_t size = p.m * job_.plan.group_size;
    const auto a_of = [&](index_t i) { return place_of(chunk.first + i).a; };
    const auto b_of = [&](index_t i) { return place_of(chunk.first + i).in_b; };
    if (chunk.a.view().data != nullptr && p.m * p.n > 0)
      for_runs(chunk.count, 1, a_of, [&](index_t i, index_t first, index_t count) {
        job_.inputs.a->read(first, interleaved(chunk.a.view().slice(i, count)));
      });
    for_runs(chunk.count, size, b_of, [&](index_t i, index_t first, index_t count) {
      if (size == 0) return;
      read_numbers(*job_.inputs.b, first, count * size, chunk.b.view()[i].data);
      if (!has_own_weights()) return;
      Real<T>* w = chunk.w.view()[i].data;
      read_numbers(*job_.inputs.w, first, count * size, w);
      require_weights(*job_.inputs.w, w, count * size, first);
    });
    if (size > 0)
      read_given(job_, place_of(chunk.first).in_fits, chunk.count * size, 0, chunk.given);
    const index_t of_x = p.n * job_.plan.group_size;
    if (job_.x != nullptr && of_x > 0)
      read_numbers(*job_.x, chunk.first * of_x, chunk.count * of_x, chunk.x.view().data);
  }
  void work(GroupChunk<T>& chunk) {
    const BatchView<T> a = chunk.a.view();
    engine_.run(a.data != nullptr ? a.slice(0, chunk.count) : a, block_of(chunk));
    if (engine_.is_on_device()) return;
    const Stopwatch watch;
    fit(chunk);
    fit_seconds_ += watch.seconds();
  }
  void keep(GroupChunk<T>& chunk) {
    // The fits are formed while a device solves the next chunk.
    if (engine_.is_on_device()) fit(chunk);
    const auto count = static_cast<std::size_t>(chunk.count * job_.plan.group_size);
    sink_.keep_x(chunk.first, chunk.count, chunk.x.view().data, chunk.se.view().data);
    if (job_.problem.wants_covariance)
      sink_.keep_covariance(chunk.first * job_.plan.group_size, static_cast<index_t>(count),
                            chunk.covariance.view().data);
    sink_.keep_reports(chunk.first * job_.plan.group_size, std::span(chunk.reports).first(count));
    keep_findings(chunk, count);
    if (fits_) keep_fits(chunk, count);
  }
  void after_work(std::vector<GroupChunk<T>>& chunks) {
    engine_.free_workspace();
    if (fits_) return;  // keep() may form them
    for (GroupChunk<T>& chunk : chunks) {
      chunk.a = chunk.b = {};
      chunk.w = {};
    }
  }

  /// Returns the time for reading the one A.
  double read_seconds() const { return read_seconds_; }
  SolveSeconds seconds() const {
    const SolveSeconds& engine = engine_.seconds();
    return {engine.factor, engine.solve + fit_seconds_};
  }

 private:
  /// In memory that the device copies from and to at full speed.
  template <class E>
  Batch<E> batch(index_t count, index_t rows, index_t cols) const {
    if (job_.device == nullptr) return {count, rows, cols};
    const auto bytes = static_cast<std::size_t>(count * rows * cols) * sizeof(E);
    return {job_.device->backend->allocate(bytes), count, rows, cols};
  }
  /// Reads the A of all right sides, if they share one.
  static Batch<T> read_shared_matrix(const SolveJob& job, double& seconds) {
    if (!job.inputs.sides.shares_a()) return {};
    const Batch<T> a(1, job.problem.m, job.problem.n);
    const Stopwatch watch;
    if (job.problem.m * job.problem.n > 0) job.inputs.a->read(0, interleaved(a.view()));
    seconds = watch.seconds();
    return a;
  }
  bool has_own_weights() const { return job_.inputs.w && !job_.inputs.w_is_shared; }
  /// Returns the place of the first right side of a group.
  SidePlace place_of(index_t group) const {
    return job_.inputs.sides.place(group * job_.plan.group_size);
  }

  RightSideBlock<T> block_of(GroupChunk<T>& chunk) const {
    const SolveProblem& p = job_.problem;
    const bool as_rows = job_.inputs.sides.as_rows;
    const index_t size = std::max<index_t>(job_.plan.group_size, 1);
    const auto places = [&](index_t length) {
      return as_rows ? VectorPlaces::rows(length) : VectorPlaces::columns(length, size);
    };
    const auto count = static_cast<std::size_t>(chunk.count * job_.plan.group_size);
    return {.count = static_cast<index_t>(count),
            .b = chunk.b.view().data,
            .b_places = places(p.m),
            .w = has_own_weights() ? chunk.w.view().data
                 : w_.empty()      ? nullptr
                                   : w_.data(),
            .w_places = has_own_weights() ? places(p.m) : VectorPlaces{1, 0, 0, 1},
            .x = chunk.x.view().data,
            .se = chunk.se.view().data,
            .x_places = places(p.n),
            .reports = std::span(chunk.reports).first(count),
            .findings = std::span(chunk.findings).first(count),
            .covariance = chunk.covariance.view().data};
  }
  const T* a_of(const GroupChunk<T>& chunk, index_t group) const {
    return a_.view().data != nullptr ? a_.view().data : chunk.a.view()[group].data;
  }
  /// Forms and measures the fits of x as it is written.
  void fit(GroupChunk<T>& chunk) {
    if (!fits_) return;
    FitBlock<T> block{.a = {},
                      .group_size = std::max<index_t>(job_.plan.group_size, 1),
                      .sides = block_of(chunk),
                      .fitted = chunk.fitted.get(),
                      .residuals = chunk.residuals.get(),
                      .given_fitted = chunk.given.fitted.get(),
                      .given_residuals = chunk.given.residuals.get(),
                      .reports = chunk.fits};
    for (index_t g = 0; g < chunk.count; ++g) block.a.push_back(a_of(chunk, g));
    fits_->run(block);
  }
  void keep_fits(const GroupChunk<T>& chunk, std::size_t count) {
    const index_t size = job_.plan.group_size, entries = job_.problem.m * size;
    sink_.keep_fits(chunk.first * size, std::span(chunk.fits).first(count));
    if (sink_.keep_fitted)
      sink_.keep_fitted(chunk.first * entries, chunk.count * entries, chunk.residuals.get(),
                        chunk.fitted.get());
  }
  void keep_findings(const GroupChunk<T>& chunk, std::size_t count) {
    const SolvePlan& plan = job_.plan;
    if (plan.splits) {
      sink_.keep_findings(chunk.first * plan.group_size, std::span(chunk.findings).first(count));
    } else if (plan.route == SolveRoute::shared && job_.inputs.sides.shares_a()) {
      if (chunk.first == 0) sink_.keep_findings(0, {&engine_.findings(), 1});
    } else {
      for (index_t g = 0; g < chunk.count && plan.group_size > 0; ++g)
        sink_.keep_findings(chunk.first + g, {&chunk.findings[g * plan.group_size], 1});
    }
  }

  const SolveJob& job_;
  const SolveSink<T>& sink_;
  std::vector<Real<T>> w_;   // weights of all right sides
  double read_seconds_ = 0;  // of a_
  Batch<T> a_;               // the one A
  GroupEngine<T> engine_;
  std::optional<FitEngine<T>> fits_;
  double fit_seconds_ = 0;  // beside the engine, where no device solves
};

/// Returns the state of a system that was solved. A solution is not good if its R is not.
template <class T>
SystemState<T> state_of(const SolveJob& job, index_t group, const TallSystem<T>& system,
                        const RowSweeper<T>& sweeper, std::span<SolutionReport> reports) {
  const index_t width = system.shape().n();
  SystemState<T> state{.r = Batch<T>(1, width, width),
                       .gram = Batch<Wide<T>>(1, width, width),
                       .sums = sweeper.sums()};
  system.put_state(state.r.view()[0], state.gram.view()[0]);
  if (job.inputs.before) {
    const Batch<Wide<T>> before(1, width, width);
    read_numbers(*job.inputs.before->gram, group * width * width, width * width,
                 before.view().data);
    for (index_t i = 0; i < width * width; ++i) state.gram.view().data[i] += before.view().data[i];
  }
  state.error = state_error<T>(state.r.view()[0], state.gram.view()[0]);
  if (!(state.error <= state_bar(job.inputs, job.problem)))
    for (SolutionReport& report : reports)
      if (report.status == Status::ok) report.status = Status::above_bar;
  return state;
}

/// Solves one tall system after another.
template <class T>
SolveTimes solve_tall(const SolveJob& job, const SolveSink<T>& sink) {
  const SolveProblem& p = job.problem;
  const index_t systems = job.plan.systems_of_group();
  const index_t size = job.plan.system_size();
  const Stopwatch watch;
  SolveTimes times;
  std::vector<T> x(static_cast<std::size_t>(p.n * job.plan.group_size));
  std::vector<Real<T>> se(x.size());
  std::vector<T> covariance(
      p.wants_covariance ? static_cast<std::size_t>(p.n * p.n * job.plan.group_size) : 0);
  std::vector<SolutionReport> reports(static_cast<std::size_t>(job.plan.group_size));
  std::vector<MatrixFindings> findings(reports.size());
  std::vector<FitReport> fits(reports.size());
  const bool as_rows = job.inputs.sides.as_rows;
  times.start = watch.seconds();
  for (index_t g = 0; g < job.plan.groups; ++g) {
    // Its memory is free when fits are formed.
    std::optional<RowSweeper<T>> sweeper(std::in_place, job, size, times.stages);
    const SweepRows<T> sweep = [&](const RowScales& scales, const VisitRows<T>& visit) {
      sweeper->sweep(scales, visit);
    };
    if (job.x != nullptr) read_numbers(*job.x, g * std::ssize(x), std::ssize(x), x.data());
    for (index_t s = 0; s < systems; ++s) {
      sweeper->go_to(g, s * size);
      TallSystem<T> system(p, size, job.plan.threads, sweep, sweeper->found());
      const index_t first = s * size;
      const auto place = static_cast<std::size_t>(first), count = static_cast<std::size_t>(size);
      const VectorPlaces places =
          as_rows ? VectorPlaces::rows(p.n) : VectorPlaces::columns(p.n, job.plan.group_size);
      const index_t start = places.start(first);
      times.seconds += system.run(
          {.count = size,
           .x = x.data() + start,
           .se = p.wants_se ? se.data() + start : nullptr,
           .x_places = places,
           .reports = std::span(reports).subspan(place, count),
           .findings = std::span(findings).subspan(place, count),
           .covariance = p.wants_covariance ? covariance.data() + first * p.n * p.n : nullptr});
      for (index_t c = 0; c < size; ++c) fits[place + c] = sweeper->fit_of(c, reports[place + c]);
      if (p.wants_state) sink.keep_state(g, state_of(job, g, system, *sweeper, std::span(reports)));
    }
    if (sink.keep_fits && job.inputs.fits.any()) {
      sweeper.reset();
      TallFits<T>(job, sink, times.stages).run(g, x, reports, fits);
    }
    const Stopwatch writing;
    sink.keep_x(g, 1, x.data(), p.wants_se ? se.data() : nullptr);
    if (p.wants_covariance)
      sink.keep_covariance(g * job.plan.group_size, job.plan.group_size, covariance.data());
    sink.keep_reports(g * job.plan.group_size, reports);
    sink.keep_findings(g * systems, std::span(findings).first(static_cast<std::size_t>(systems)));
    if (sink.keep_fits) sink.keep_fits(g * job.plan.group_size, fits);
    times.stages.write += writing.seconds();
  }
  times.seconds.solve += times.stages.work;  // the fits
  times.stages.work = times.seconds.factor + times.seconds.solve;
  times.wall = watch.seconds();
  return times;
}

}  // namespace

GivenFits::GivenFits(const FitWishes& wishes, index_t numbers) {
  const std::size_t bytes = static_cast<std::size_t>(numbers) * size_of(wishes.type);
  if (wishes.checks_fitted) fitted = allocate_host(bytes);
  if (wishes.checks_residuals) residuals = allocate_host(bytes);
}

void read_given(const SolveJob& job, index_t first, index_t count, index_t place,
                const GivenFits& given) {
  const auto read = [&](Reader* from, const HostMemory& memory) {
    if (!memory) return;
    std::byte* const to =
        memory.get() + static_cast<std::size_t>(place) * size_of(job.inputs.fits.type);
    with_type(job.inputs.fits.type, [&](auto zero) {
      read_numbers(*from, first, count, reinterpret_cast<decltype(zero)*>(to));
    });
  };
  read(job.fitted, given.fitted);
  read(job.residuals, given.residuals);
}

template <class T>
SolveTimes run_solve_stages(const SolveJob& job, const SolveSink<T>& sink) {
  if (count_of(job.inputs.sides.solution_dims) == 0) return {};
  if (job.plan.route == SolveRoute::tall) return solve_tall(job, sink);
  const Stopwatch watch;
  GroupSteps<T> steps(job, sink);
  std::vector<GroupChunk<T>> chunks(static_cast<std::size_t>(job.plan.buffers));
  SolveTimes times;
  times.start = watch.seconds() - steps.read_seconds();
  const index_t count = (job.plan.groups + job.plan.chunk_groups - 1) / job.plan.chunk_groups;
  times.stages = run_stages(count, chunks, steps);
  times.stages.read += steps.read_seconds();
  times.seconds = steps.seconds();
  times.wall = watch.seconds();
  return times;
}
template SolveTimes run_solve_stages(const SolveJob&, const SolveSink<float>&);
template SolveTimes run_solve_stages(const SolveJob&, const SolveSink<double>&);
template SolveTimes run_solve_stages(const SolveJob&, const SolveSink<std::complex<float>>&);
template SolveTimes run_solve_stages(const SolveJob&, const SolveSink<std::complex<double>>&);

}  // namespace qrtool
