// SPDX-License-Identifier: Apache-2.0
// factor.cpp: `qrtool factor`: read | factor and check | write, a chunk of matrices at a time.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/commands.hpp"
#include "app/console.hpp"
#include "app/factor_summary.hpp"
#include "app/make_backend.hpp"
#include "app/signals.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/text.hpp"
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
    factors->write_report(chunk.first, chunk.lines());
    if (report) report->write(chunk.lines());
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

template <class T>
void run_stages(Reader& input, Backend& backend, Outputs& outputs, const Stopwatch& watch,
                Progress& progress, FactorResult& result) {
  const Plan& plan = result.plan;
  std::vector<Chunk<T>> chunks;
  for (int i = 0; i < plan.buffers; ++i) chunks.emplace_back(backend, plan);

  index_t next = 0;
  const auto read = [&](Chunk<T>& chunk) {
    chunk.first = next;
    chunk.count = std::min(plan.chunk_matrices, plan.problem.count - next);
    if (chunk.count == 0) return false;
    next += chunk.count;
    input.read(chunk.first, chunk.input());
    return true;
  };
  const auto factor = [&](Chunk<T>& chunk) {
    const ChunkSeconds seconds =
        backend.factor(plan, chunk.input(), chunk.factors(), chunk.lines());
    result.chunks.factor += seconds.factor;
    result.chunks.check += seconds.check;
    result.chunks.upload += seconds.upload;
    result.chunks.download += seconds.download;
  };
  const auto write = [&](Chunk<T>& chunk) {
    outputs.write(chunk);
    add_to(result.tally, plan.problem, chunk.first, chunk.lines());
    progress.add(chunk.count);
  };
  result.start_seconds = watch.seconds();
  result.stages = run_pipeline(chunks, read, factor, write);
}

void run_stages(Reader& input, Backend& backend, Outputs& outputs, const Stopwatch& watch,
                ProgressMode mode, FactorResult& result) {
  const Problem& problem = result.plan.problem;
  if (problem.count == 0) return;
  Progress progress("factor", problem.count, mode);
  if (problem.type == ElementType::float32) {
    run_stages<float>(input, backend, outputs, watch, progress, result);
  } else {
    run_stages<double>(input, backend, outputs, watch, progress, result);
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

/// Everything from the plan to the committed output, on one backend. `watch` runs since the start.
FactorResult factor_on(Backend& backend, const FactorOptions& o, Reader& input,
                       const Stopwatch& watch) {
  const Source& source = input.source();
  const Problem problem = problem_of(source, o);
  const Plan plan = make_plan(problem, backend.variants(), backend.limits(), o.backend.variant);
  if (o.verbose) print_notes(source, problem, backend.limits());
  if (o.explain) write_stderr(explain(plan, backend.limits()));

  set_interrupt_message("qrtool: interrupted; nothing written\n");
  const OutputSpec spec = output_spec(o, source, backend, plan);
  Outputs outputs{create_output(spec), nullptr};
  if (!o.report.empty()) outputs.report = create_report_file(o.report, o.force);

  FactorResult result{.source = source,
                      .plan = plan,
                      .backend = backend.name(),
                      .device = backend.device(),
                      .files = outputs.factors->files(),
                      .datasets = spec.datasets,
                      .tally = Tally(problem.mode != Mode::r),
                      .stages = {},
                      .chunks = {}};
  run_stages(input, backend, outputs, watch, o.quiet ? ProgressMode::never : o.progress, result);
  const Stopwatch sync;
  outputs.commit();
  result.sync_seconds = sync.seconds();
  result.total_seconds = watch.seconds();
  return result;
}

/// On the backend that was asked for. Where `auto` chose a device and the device fails, all is done
/// again on the CPU: results of two backends do not mix.
FactorResult factor_where_possible(const FactorOptions& o, Reader& input, const Stopwatch& watch) {
  const Limits limits = host_limits(o.memory_bytes, o.threads);
  const auto fall_back = [&](const Error& error) {
    print_message(fmt::format("note: {}; the CPU does it", error.what()));
    CpuBackend cpu(limits);
    return factor_on(cpu, o, input, watch);
  };
  BackendChoice choice;
  try {
    choice = make_backend(o.backend, problem_of(input.source(), o), limits);
  } catch (const DeviceError& error) {
    if (o.backend.asks_for_device()) throw;
    return fall_back(error);
  }
  if (o.verbose)
    print_message(fmt::format("backend {}: {}", choice.backend->name(), choice.reason));
  const bool may_fall_back = choice.is_automatic && choice.backend->name() != "cpu";
  try {
    return factor_on(*choice.backend, o, input, watch);
  } catch (const DeviceError& error) {
    if (!may_fall_back) throw;
    return fall_back(error);
  } catch (const LimitError& error) {
    if (!may_fall_back) throw;
    return fall_back(error);
  }
}

}  // namespace

ExitCode run_factor(const FactorOptions& o) {
  const Stopwatch watch;
  refuse_same_file(o.input, o.output);
  if (!o.report.empty()) refuse_same_file(o.input, o.report);

  const std::unique_ptr<Reader> input = open_input({o.input, o.dataset, o.order});
  const FactorResult result = factor_where_possible(o, *input, watch);
  print_result(o, result);
  return result.tally.failed() > 0 ? ExitCode::answer_is_no : ExitCode::good;
}

}  // namespace qrtool
