// SPDX-License-Identifier: Apache-2.0
// factor.cpp: `qrtool factor`: read | factor and check | write, a chunk of matrices at a time.
#include <fmt/format.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "app/commands/commands.hpp"
#include "app/process/console.hpp"
#include "app/process/signals.hpp"
#include "app/ranks/deal.hpp"
#include "app/run/factor_rows.hpp"
#include "app/run/factor_summary.hpp"
#include "app/run/make_backend.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/host.hpp"
#include "core/text.hpp"
#include "io/file/atomic_file.hpp"
#include "io/report_file.hpp"

namespace qrtool {
namespace {

Problem problem_of(const Source& source, const FactorOptions& o) {
  const Sign usual = o.mode == Mode::raw ? Sign::lapack : Sign::positive;
  return {.count = source.count(),
          .m = source.m,
          .n = source.n,
          .type = o.precision.type.value_or(source.type),
          .mode = o.mode,
          .sign = o.sign.value_or(usual),
          .arithmetic = o.precision.is_mixed ? Arithmetic::mixed : o.arithmetic};
}

std::vector<MatrixDataset> datasets_of(const Problem& p) {
  const MatrixDataset q{"Q", p.type, p.m, p.q_cols()}, r{"R", p.type, p.r_rows(), p.n};
  if (p.mode == Mode::raw)
    return {{"V", p.type, p.m, p.n}, {"tau", p.type, 1, p.k(), /*is_vector=*/true}};
  if (p.mode == Mode::r) return {r};
  return {q, r};
}

OutputSpec output_spec(const FactorOptions& o, const Source& source, const Backend& backend,
                       const Plan& plan) {
  const Problem& p = plan.problem;
  OutputSpec spec;
  spec.path = o.output;
  spec.force = o.force;
  spec.leading = source.leading;
  spec.order = source.order;
  spec.datasets = datasets_of(p);
  spec.with_report = true;
  spec.threads = backend.limits().threads;
  // The name alone: directories are nobody's business where the file is sent to.
  const std::string name = source.file.substr(source.file.rfind('/') + 1);
  spec.attributes = {{"format", "qrtool"},
                     {"format_version", "1.0"},
                     {"qrtool_version", QRTOOL_VERSION},
                     {"source_file", name},
                     {"source_dataset", source.dataset},
                     {"mode", std::string(name_of(p.mode))},
                     {"precision", std::string(precision_name(p))},
                     {"arithmetic", plan.arithmetic()},
                     {"sign", std::string(name_of(p.sign))},
                     {"order", std::string(name_of(source.order))},
                     {"backend", backend.name()},
                     {"device", backend.device()},
                     {"variant", std::string(plan.variant->name)},
                     {"eps", precision_of(p).u}};
  return spec;
}

template <class T>
Batch<T> allocate(Backend& backend, index_t count, index_t rows, index_t cols) {
  return {backend.allocate(static_cast<std::size_t>(count * rows * cols) * sizeof(T)), count, rows,
          cols};
}

/// The matrices that go through the pipeline together, with their factors.
template <class T>
struct Chunk {
  index_t first = 0, count = 0;
  Batch<T> a, q, r, v, tau;
  std::vector<MatrixReport> report;

  Chunk(Backend& backend, const Plan& plan)
      : a(allocate<T>(backend, plan.chunk_matrices, plan.problem.m, plan.problem.n)),
        report(static_cast<std::size_t>(plan.chunk_matrices)) {
    const Problem& p = plan.problem;
    const index_t matrices = plan.chunk_matrices;
    if (p.wants_q()) q = allocate<T>(backend, matrices, p.m, p.q_cols());
    if (p.mode != Mode::raw) r = allocate<T>(backend, matrices, p.r_rows(), p.n);
    if (p.mode == Mode::raw) v = allocate<T>(backend, matrices, p.m, p.n);
    if (p.mode == Mode::raw) tau = allocate<T>(backend, matrices, 1, p.k());
  }

  BatchView<T> input() const { return a.view().slice(0, count); }
  Factors<T> factors() const {
    const auto part = [&](const Batch<T>& batch) {
      return batch.view().data == nullptr ? BatchView<T>{} : batch.view().slice(0, count);
    };
    return {part(q), part(r), part(v), part(tau)};
  }
  std::span<MatrixReport> lines() { return {report.data(), static_cast<std::size_t>(count)}; }
};

/// Where a finished chunk goes.
struct Outputs {
  std::unique_ptr<Writer> factors;
  std::unique_ptr<ReportFile> report;  // only with --report

  template <class T>
  void write(Chunk<T>& chunk) {
    const Factors<T> f = chunk.factors();
    const std::pair<std::string_view, BatchView<T>> named[] = {
        {"Q", f.q}, {"R", f.r}, {"V", f.v}, {"tau", f.tau}};
    for (const auto& [name, values] : named)
      if (values.data != nullptr) factors->write(name, chunk.first, values);
    write_report(chunk.first, chunk.lines());
  }

  void write_report(index_t first, std::span<const MatrixReport> lines) {
    factors->write_report(first, lines);
    if (report) report->write(lines);
  }

  void commit() {
    set_interrupt_message("qrtool: interrupted while the output was being finished\n");
    factors->commit();
    if (report) report->commit();
    set_interrupt_message("qrtool: interrupted; the output is complete\n");
  }
};

void add_to(Tally& tally, const Problem& problem, index_t first,
            std::span<const MatrixReport> report) {
  for (const MatrixReport& line : report) {
    // The report does not hold ||A||; scaled, it is at least 1/2.
    const Errors errors{line.residual, line.orthogonality, line.lower, line.diagonal_ratio,
                        0.5,           line.scale};
    tally.add(first++, line.status, errors,
              standard_bars(problem.m, problem.n, precision_of(problem), errors));
  }
}

/// The work of one run, on every rank. Where `outputs` lead and what is said is rank 0's alone.
struct Run {
  const FactorOptions& options;
  Reader& input;
  Backend& backend;
  Comm& comm;
  Outputs outputs;
  Stopwatch watch;  // since the start
  FactorResult result;
};

/// Chunks of whole matrices.
template <class T>
struct MatrixSteps {
  Run& run;
  Progress progress;

  const Plan& plan() const { return run.result.plan; }

  void read(Chunk<T>& chunk, index_t number) {
    cut(chunk, number);
    run.input.read(chunk.first, chunk.input());
  }
  void work(Chunk<T>& chunk, index_t) {
    const ChunkSeconds seconds =
        run.backend.factor(plan(), chunk.input(), chunk.factors(), chunk.lines());
    ChunkSeconds& total = run.result.chunks;
    total.factor += seconds.factor;
    total.check += seconds.check;
    total.upload += seconds.upload;
    total.download += seconds.download;
  }
  void keep(Chunk<T>& chunk, index_t) {
    run.outputs.write(chunk);
    add_to(run.result.tally, plan().problem, chunk.first, chunk.lines());
    progress.add(chunk.count);
  }
  void send(Chunk<T>& chunk, index_t) {
    for_parts(chunk,
              [&](auto* data, std::size_t count) { run.comm.send(0, bytes_of(data, count)); });
  }
  void receive(Chunk<T>& chunk, index_t number, int from) {
    cut(chunk, number);
    for_parts(chunk, [&](auto* data, std::size_t count) {
      run.comm.receive(from, writable_bytes_of(data, count));
    });
  }

 private:
  void cut(Chunk<T>& chunk, index_t number) const {
    chunk.first = number * plan().chunk_matrices;
    chunk.count = std::min(plan().chunk_matrices, plan().problem.count - chunk.first);
  }
  /// What one rank hands to another.
  template <class Body>
  static void for_parts(Chunk<T>& chunk, Body body) {
    const Factors<T> f = chunk.factors();
    for (const BatchView<T>& part : {f.q, f.r, f.v, f.tau})
      if (part.data != nullptr)
        body(part.data, static_cast<std::size_t>(part.count * part.rows * part.cols));
    body(chunk.lines().data(), chunk.lines().size());
  }
};

template <class T>
void run_by_matrices(Run& run, ProgressMode mode) {
  const Plan& plan = run.result.plan;
  std::vector<Chunk<T>> chunks;
  std::optional<Chunk<T>> foreign;
  together(run.comm, [&] {
    for (int i = 0; i < plan.buffers; ++i) chunks.emplace_back(run.backend, plan);
    if (run.comm.is_root() && run.comm.size() > 1) foreign.emplace(run.backend, plan);
  });
  run.result.start_seconds = run.watch.seconds();
  MatrixSteps<T> steps{run, {"factor", plan.problem.count, mode}};
  const index_t count = (plan.problem.count + plan.chunk_matrices - 1) / plan.chunk_matrices;
  run.result.stages = deal(run.comm, count, chunks, foreign ? &*foreign : nullptr, steps);
}

/// A matrix after another, each by rows.
template <class T>
void run_by_rows(Run& run, ProgressMode mode) {
  const Problem& problem = run.result.plan.problem;
  const index_t passes = problem.wants_q() ? 2 : 1;
  Progress progress("factor", problem.count * problem.m * passes, mode, "rows");
  std::optional<RowFactor<T>> factor;
  together(run.comm, [&] {
    factor.emplace(RowJob{run.result.plan, run.backend, run.input, run.outputs.factors.get(),
                          run.options.scratch, [&](index_t rows) { progress.add(rows); }},
                   run.comm);
  });
  run.result.start_seconds = run.watch.seconds();
  for (index_t b = 0; b < problem.count; ++b) {
    const MatrixReport line = factor->run(b);
    together(run.comm, [&] {
      if (!run.comm.is_root()) return;
      run.outputs.write_report(b, {&line, 1});
      add_to(run.result.tally, problem, b, {&line, 1});
    });
  }
  run.result.stages = factor->seconds().stages;
  run.result.chunks = factor->seconds().chunks;
}

void run_stages(Run& run) {
  const Plan& plan = run.result.plan;
  if (plan.problem.count == 0) return;
  const bool is_quiet = run.options.quiet || !run.comm.is_root();
  const ProgressMode mode = is_quiet ? ProgressMode::never : run.options.progress;
  const bool is_single = plan.problem.type == ElementType::float32;
  if (plan.by_rows()) {
    (is_single ? run_by_rows<float> : run_by_rows<double>)(run, mode);
  } else {
    (is_single ? run_by_matrices<float> : run_by_matrices<double>)(run, mode);
  }
}

void print_notes(const Source& source, const Problem& problem, const Limits& limits) {
  const std::string file = escape(source.file);
  print_message(fmt::format("{}: {} {} of {}, order {}, factored in {}", file,
                            source.dataset.empty() ? "table" : escape(source.dataset),
                            format_shape(source.leading, source.m, source.n), source.stored_type,
                            name_of(source.order), name_of(problem.type)));
  print_message(fmt::format("at most {} of host memory and {} threads",
                            format_bytes(limits.host_bytes), limits.threads));
}

void print_result(const FactorOptions& o, const FactorResult& result) {
  if (result.plan.problem.count == 0)
    print_message(fmt::format("{}: 0 matrices", escape(result.source.file)));
  print_bad_matrices(result);
  if (o.json) {
    write_json(to_json(result));
  } else if (!o.quiet) {
    write_stdout(summary(result));
  }
}

/// The same plan on every rank, whatever each finds free.
Plan plan_together(const Problem& problem, const Backend& backend, const std::string& variant,
                   Comm& comm) {
  Plan plan;
  together(comm, [&] { plan = make_plan(problem, backend.variants(), backend.limits(), variant); });
  std::array<index_t, 4> cut{plan.chunk_matrices, plan.chunk_rows, plan.buffers, plan.threads};
  broadcast(comm, cut.data(), cut.size());
  plan.chunk_matrices = cut[0];
  plan.chunk_rows = cut[1];
  plan.buffers = static_cast<int>(cut[2]);
  plan.threads = static_cast<int>(cut[3]);
  return plan;
}

/// Rank 0 may be killed: another rank then removes what it was writing, and says so.
void share_temporary_files(Comm& comm) {
  if (comm.size() == 1) return;
  std::string paths;
  if (comm.is_root()) {
    for (const std::string& path : live_temporary_files()) paths += path + '\0';
  }
  std::uint64_t bytes = paths.size();
  broadcast(comm, &bytes, 1);
  paths.resize(bytes);
  broadcast(comm, paths.data(), bytes);
  if (comm.is_root()) return;
  for (std::size_t at = 0; at < bytes; at = paths.find('\0', at) + 1)
    adopt_temporary_file(paths.data() + at);
}

void refuse_columns(const Source& source, const Plan& plan) {
  if (!plan.by_rows() || !plan.problem.wants_q() || source.order != Order::column) return;
  throw LimitError(
      fmt::format("{}: stored by columns: its Q cannot be written row by row", escape(source.file)),
      "raise --memory and use one process; or --mode r; or store the input by rows");
}

/// Everything from the plan to the committed output, on one backend. `watch` runs since the start.
FactorResult factor_on(Backend& backend, const FactorOptions& o, Reader& input, Comm& comm,
                       const Stopwatch& watch) {
  const Source& source = input.source();
  const Problem problem = problem_of(source, o);
  const Plan plan = plan_together(problem, backend, o.backend.variant, comm);
  if (o.verbose) print_notes(source, problem, backend.limits());
  if (o.explain) write_stderr(explain(plan, backend.limits()));

  const OutputSpec spec = output_spec(o, source, backend, plan);
  Run run{.options = o,
          .input = input,
          .backend = backend,
          .comm = comm,
          .outputs = {},
          .watch = watch,
          .result = {.source = source,
                     .plan = plan,
                     .backend = backend.name(),
                     .device = backend.device(),
                     .files = {},
                     .datasets = spec.datasets,
                     .tally = Tally(problem.mode != Mode::r),
                     .stages = {},
                     .chunks = {}}};
  together(comm, [&] {
    refuse_columns(source, plan);
    if (!comm.is_root()) return;
    set_interrupt_message("qrtool: interrupted; nothing written\n");
    run.outputs.factors = create_output(spec);
    if (!o.report.empty()) run.outputs.report = create_report_file(o.report, o.force);
    run.result.files = run.outputs.factors->files();
  });
  share_temporary_files(comm);
  run_stages(run);
  const Stopwatch sync;
  together(comm, [&] {
    if (comm.is_root()) run.outputs.commit();
  });
  run.result.sync_seconds = sync.seconds();
  run.result.total_seconds = watch.seconds();
  return std::move(run.result);
}

Limits limits_of(const FactorOptions& o, const Comm& comm) {
  Limits limits = rank_limits(o.memory_bytes, o.threads, comm);
  limits.has_scratch = !o.scratch.empty();
  return limits;
}

/// On the backend that was asked for. Where `auto` chose a device and the device fails, all is done
/// again on the CPU: results of two backends do not mix.
FactorResult factor_where_possible(const FactorOptions& o, Reader& input, Comm& comm,
                                   const Stopwatch& watch) {
  const Limits limits = limits_of(o, comm);
  const auto fall_back = [&](const Error& error) {
    print_message(fmt::format("note: {}; the CPU does it", error.what()));
    CpuBackend cpu(limits);
    return factor_on(cpu, o, input, comm, watch);
  };
  BackendRequest request = o.backend;
  request.rank = comm.rank();
  request.ranks = comm.size();
  BackendChoice choice;
  try {
    together(comm, [&] { choice = make_backend(request, problem_of(input.source(), o), limits); });
  } catch (const DeviceError& error) {
    if (o.backend.asks_for_device()) throw;
    return fall_back(error);
  }
  if (o.verbose)
    print_message(fmt::format("backend {}: {}", choice.backend->name(), choice.reason));
  const bool may_fall_back = choice.is_automatic && choice.backend->name() != "cpu";
  try {
    return factor_on(*choice.backend, o, input, comm, watch);
  } catch (const DeviceError& error) {
    if (!may_fall_back) throw;
    return fall_back(error);
  } catch (const LimitError& error) {
    if (!may_fall_back) throw;
    return fall_back(error);
  }
}

}  // namespace

ExitCode run_factor(const FactorOptions& o, Comm& comm) {
  const Stopwatch watch;
  std::unique_ptr<Reader> input;
  together(comm, [&] {
    refuse_same_file(o.input, o.output);
    if (!o.report.empty()) refuse_same_file(o.input, o.report);
    if (comm.size() > 1 && o.input == "-")
      throw UsageError("several ranks cannot share standard input", "name a file");
    input = open_input({.path = o.input,
                        .dataset = o.dataset,
                        .order = o.order,
                        .threads = limits_of(o, comm).threads});
  });
  const FactorResult result = factor_where_possible(o, *input, comm, watch);
  std::uint64_t failed = static_cast<std::uint64_t>(result.tally.failed());
  broadcast(comm, &failed, 1);
  print_result(o, result);
  return failed > 0 ? ExitCode::answer_is_no : ExitCode::good;
}

}  // namespace qrtool
