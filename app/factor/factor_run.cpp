// SPDX-License-Identifier: Apache-2.0
// factor_run.cpp: the plan, the outputs, and the ways through the matrices: whole, in pieces or by
// rows.
#include "app/factor/factor_run.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <vector>

#include "app/process/console.hpp"
#include "app/run/files/name_dimensions.hpp"
#include "app/run/files/source_notes.hpp"
#include "app/run/matrices/factor_matrices.hpp"
#include "app/run/matrices/factor_pieces.hpp"
#include "app/run/matrices/factor_rows.hpp"
#include "app/run/matrices/leverage_run.hpp"
#include "app/run/pipeline/share_stages.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/open/input.hpp"
#include "io/open/output.hpp"
#include "io/read/repeated_reader.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool {
namespace {

std::vector<MatrixDataset> datasets_of(const Problem& p) {
  const MatrixDataset q{.name = "Q", .type = p.type, .rows = p.m, .cols = p.q_cols()};
  const MatrixDataset r{.name = "R", .type = p.type, .rows = p.r_rows(), .cols = p.n};
  const MatrixDataset v{.name = "V", .type = p.type, .rows = p.m, .cols = p.n};
  const MatrixDataset tau{
      .name = "tau", .type = p.type, .rows = 1, .cols = p.k(), .is_vector = true};
  const MatrixDataset permutation{.name = "P",
                                  .type = ElementType::float64,
                                  .rows = 1,
                                  .cols = p.n,
                                  .is_vector = true,
                                  .is_whole = true,
                                  .description = "columns of A, counted from 0: A[:, P] = Q R"};
  if (p.mode == Mode::raw) return {v, tau};
  std::vector<MatrixDataset> datasets{r};
  if (p.mode != Mode::r) datasets.insert(datasets.begin(), q);
  if (p.pivots) datasets.push_back(permutation);
  return datasets;
}

/// Returns the output datasets of a run, as far as they are known without a plan.
OutputSpec output_spec(const FactorOptions& o, const Source& source, int threads) {
  const Problem problem = problem_of(source, o);
  OutputSpec spec = planned_output(source, problem);
  spec.path = o.output;
  spec.force = o.force;
  spec.threads = threads;
  spec.attributes = common_attributes(source);
  const std::pair<std::string, AttributeValue> more[] = {
      {"source_dataset", source.dataset},
      {"mode", std::string(name_of(problem.mode))},
      {"precision", std::string(precision_name(problem))},
      {"sign", std::string(name_of(problem.sign))},
      {"order", std::string(name_of(source.order))},
      {"eps", precision_of(problem).u}};
  spec.attributes.insert(spec.attributes.end(), std::begin(more), std::end(more));
  if (problem.pivots) spec.attributes.emplace_back("pivot", "yes");
  // Leverages come before R, whose text holds the comments.
  if (o.leverage)
    spec.datasets.insert(spec.datasets.begin(),
                         leverage_dataset(source.leading, source.m, problem.type));
  for (const auto& [name, word] : source.details) spec.attributes.emplace_back(name, word);
  name_dimensions_of_factors(source, spec);
  return spec;
}

/// Returns the lines of a text one after the other; the lines of a build log are indented.
std::string in_one_line(std::string_view text) {
  std::string line;
  for (const char c : text) {
    const bool is_blank = c == '\n' || c == ' ';
    if (!is_blank || !line.ends_with(' ')) line += is_blank ? ' ' : c;
  }
  return line;
}

/// Errors: UsageError if complex matrices are to be factored in mixed precision.
void refuse_mixed_complex(const FactorOptions& o, const Source& source) {
  if (!o.precision.is_mixed || !is_complex(source.type)) return;
  throw UsageError(fmt::format("{}: is {}, and --precision mixed is for real matrices",
                               escape(source.file), source.stored_type),
                   "leave --precision mixed away");
}

}  // namespace

std::vector<std::pair<std::string, AttributeValue>> common_attributes(const Source& source) {
  // The name is recorded without its directories, which should not be published with the output.
  const std::string name = source.file.substr(source.file.rfind('/') + 1);
  return {{"format", "qrtool"},
          {"format_version", "1.2"},
          {"qrtool_version", QRTOOL_VERSION},
          {"source_file", name}};
}

OutputSpec planned_output(const Source& source, const Problem& problem) {
  OutputSpec spec;
  spec.leading = source.leading;
  spec.order = source.order;
  spec.complex_form = source.complex_form;
  spec.datasets = datasets_of(problem);
  spec.with_report = true;
  spec.report_columns = report_columns(problem);
  return spec;
}

Outputs create_outputs_of(const FactorOptions& o, const Source& source, int threads,
                          OutputFile* shared) {
  OutputSpec spec = output_spec(o, source, threads);
  if (shared == nullptr) return Outputs::create(spec, o.report);
  spec.name = name_in_output(source.dataset);
  return Outputs::create_in(*shared, spec);
}

std::unique_ptr<Reader> open_input_of(const FactorOptions& o, const Limits& limits) {
  refuse_same_file(o.input, o.output);
  if (!o.report.empty()) refuse_same_file(o.input, o.report);
  require_named_device(o.backend);
  check_output_names(o.output, o.report, o.force);
  std::unique_ptr<Reader> input = open_input({.path = o.input,
                                              .dataset = o.dataset,
                                              .order = o.order,
                                              .threads = limits.threads,
                                              .memory_bytes = limits.host_bytes / 2,
                                              .scratch = o.scratch,
                                              .csv = o.csv,
                                              .raw_values = o.raw_values,
                                              .takes_complex = true,
                                              .has_ones = o.intercept,
                                              .skips_missing = o.skips_missing.value_or(false)});
  refuse_mixed_complex(o, input->source());
  if (!o.quiet) print_source_notes(input->source());
  if (!o.quiet) note_empty_selection(input->source());
  return input;
}

Limits limits_beside_files(const FactorOptions& o, const Reader& input, Limits limits) {
  const Problem problem = problem_of(input.source(), o);
  OutputSpec output = planned_output(input.source(), problem);
  output.path = o.output;
  const std::size_t bytes = input.workspace_bytes(problem.type) + output_workspace_bytes(output);
  return limits_beside(input.source().file, bytes, limits);
}

Problem problem_of(const Source& source, const FactorOptions& o) {
  const Sign usual = o.mode == Mode::raw ? Sign::lapack : Sign::positive;
  const ElementType type = o.precision.type.value_or(real_of(source.type));
  return {.count = source.count(),
          .m = source.m,
          .n = source.n,
          .type = is_complex(source.type) ? complex_of(type) : type,
          .mode = o.mode,
          .sign = o.sign.value_or(usual),
          .arithmetic = o.precision.is_mixed ? Arithmetic::mixed : o.arithmetic,
          .check = o.check,
          .pivots = o.pivot,
          .wants_condition = o.condition};
}

FactorRun::FactorRun(const FactorOptions& options, Reader& input, Backend& backend, Laps& laps)
    : options_(options),
      input_(input),
      backend_(backend),
      checked_(backend),
      laps_(laps),
      result_{.source = input.source(),
              .plan = {},
              .backend = backend.name(),
              .device = backend.device(),
              .shown_device = name_of_device(backend),
              .files = {},
              .datasets = {},
              .verdict = Verdict(subject_of_factors, named_by(input.source().leading)),
              .chunks = {}} {}

void FactorRun::make_plan() {
  Limits limits = backend_.limits();
  // Data that are stored by columns cannot be read or written row by row.
  if (input_.source().order != Order::column) limits.piece_bytes = backend_.piece_bytes();
  result_.plan = qrtool::make_plan(problem_of(input_.source(), options_), backend_.variants(),
                                   limits, options_.backend.variant);
  result_.datasets = datasets_of(plan().problem);
}

void FactorRun::say_plan() const {
  const Source& source = input_.source();
  const Limits limits = backend_.limits();
  if (options_.verbose) {
    print_message(fmt::format("{}: {} {} of {}, order {}, factored in {}", escape(source.file),
                              source.dataset.empty() ? "table" : escape(source.dataset),
                              format_shape(source.leading, source.m, source.n), source.stored_type,
                              name_of(source.order), name_of(result_.plan.problem.type)));
    print_source_details(source);
    print_message(fmt::format("at most {} of host memory and {} threads",
                              format_bytes(limits.host_bytes + limits.file_bytes), limits.threads));
  }
  if (options_.explain) write_stderr(explain(result_.plan, limits));
}

void FactorRun::refuse_columns() const {
  const Plan& plan = result_.plan;
  const Source& source = input_.source();
  if (!plan.by_rows() || !plan.problem.wants_q() || source.order != Order::column) return;
  throw LimitError(
      fmt::format("{}: stored by columns: its Q cannot be written row by row", escape(source.file)),
      "raise --memory and use one process; or --mode r; or store the input by rows");
}

void FactorRun::take_outputs(Outputs outputs) {
  refuse_columns();
  outputs_ = std::move(outputs);
  const Variant& variant = *plan().variant;
  for (const auto& [name, value] :
       Attributes{{"arithmetic", plan().arithmetic()},
                  {"backend", backend_.name()},
                  {"device", backend_.device()},
                  {"variant", std::string(variant.name)},
                  {"rates", variant.rates(backend_.limits())},
                  {"check", std::string(name_of(plan().problem.check))}})
    outputs_.factors->add_attribute(name, value);
  if (plan().problem.pivots)
    outputs_.ranks.resize(static_cast<std::size_t>(plan().problem.count), -1);
  result_.name = outputs_.name;
  result_.files = outputs_.factors->files();
}

/// read | factor and check | write, a chunk of whole matrices at a time.
template <class T>
void FactorRun::factor_by_matrices(Comm& comm, ProgressMode mode) {
  std::vector<MatrixChunk<T>> buffers(static_cast<std::size_t>(plan().buffers));
  MatrixChunk<T> foreign;
  together(comm, [&] {
    if (comm.is_root() && comm.size() > 1) foreign = allocate_matrices<T>(backend_, plan());
  });
  result_.times.start = laps_.lap();
  Progress progress("factor", plan().problem.count, mode);
  MatrixSteps<T> steps{.plan = plan(),
                       .input = input_,
                       .backend = checked_.backend_for(plan().problem),
                       .outputs = outputs_,
                       .verdict = result_.verdict,
                       .seconds = result_.chunks,
                       .progress = progress};
  result_.times.stages = comm.size() > 1
                             ? share_stages(comm, steps.chunks(), buffers, foreign, steps)
                             : qrtool::run_stages(steps.chunks(), buffers, steps);
  end_stages();
}

/// read | to the device, factor and check, from the device | write, a piece of a matrix at a time.
template <class T>
void FactorRun::factor_by_pieces(ProgressMode mode) {
  PieceSteps<T> steps(plan(), result_.datasets, input_, checked_.tries(), outputs_,
                      result_.verdict);
  std::vector<Piece<T>> buffers(static_cast<std::size_t>(plan().buffers));
  result_.times.start = laps_.lap();
  Progress progress("factor", steps.rows(), mode, "rows");
  steps.show(progress);
  result_.times.stages = qrtool::run_stages(steps.pieces(), buffers, steps);
  result_.chunks = steps.seconds();
  end_stages();
}

/// Factors one matrix after another, a few rows at a time.
template <class T>
void FactorRun::factor_by_rows(Comm& comm, ProgressMode mode) {
  const Problem& problem = plan().problem;
  const index_t passes = problem.wants_q() ? 2 : 1;
  Progress progress("factor", problem.count * problem.m * passes, mode, "rows");
  RepeatedReader repeated(input_);
  Reader& input = passes == 2 ? repeated : input_;
  std::optional<RowFactor<T>> factor;
  together(comm, [&] {
    factor.emplace(RowJob{.plan = plan(),
                          .backend = checked_.tries(),
                          .input = input,
                          .output = outputs_.factors.get(),
                          .scratch = options_.scratch,
                          .added = [&](index_t rows) { progress.add(rows); }},
                   comm);
  });
  result_.times.start = laps_.lap();
  for (index_t b = 0; b < problem.count; ++b) {
    const MatrixReport line = factor->run(b);
    together(comm, [&] {
      if (!comm.is_root()) return;
      outputs_.write_report(b, {&line, 1});
      add_to_verdict(result_.verdict, problem, b, {&line, 1});
    });
  }
  result_.times.stages = factor->seconds().stages;
  result_.chunks = factor->seconds().chunks;
  end_stages();
}

void FactorRun::run_stages(Comm& comm) {
  result_.ranks = comm.size();
  if (plan().problem.count == 0) {
    result_.times.start = laps_.lap();
    return;
  }
  const ProgressMode mode = comm.is_root() ? options_.progress_mode() : ProgressMode::never;
  with_type(plan().problem.type, [&](auto zero) {
    using T = decltype(zero);
    if (plan().by_rows()) return factor_by_rows<T>(comm, mode);
    if constexpr (!is_complex_number<T>) {  // which no device takes in pieces
      if (plan().in_pieces()) return factor_by_pieces<T>(mode);
    }
    factor_by_matrices<T>(comm, mode);
  });
  result_.times.free = laps_.lap();
  together(comm, [&] { input_.require_unchanged(); });
}

SolveProblem FactorRun::systems_of(ElementType precision) const {
  const Problem& problem = result_.plan.problem;
  return {.type = problem.type,
          .m = problem.m,
          .n = problem.n,
          .rank = {.tolerance = default_rank_tolerance(precision, problem.n)}};
}

void FactorRun::compare_ranks() {
  const Problem& problem = plan().problem;
  if (real_of(problem.type) != ElementType::float32) return;
  std::vector<DependentColumns> dependent;
  for (index_t b = 0; b < std::ssize(outputs_.ranks); ++b) {
    const std::int32_t rank = outputs_.ranks[static_cast<std::size_t>(b)];
    if (rank >= 0 && rank < problem.k() && dependent.size() < most_compared_ranks)
      dependent.push_back({b, rank});
  }
  if (dependent.empty()) return;
  const SolveProblem systems = systems_of(ElementType::float64);
  const Limits limits = backend_.limits();
  const std::string note = qrtool::compare_ranks(
      {.a = input_, .matrices = problem.count, .problem = systems, .limits = limits}, dependent,
      input_.source().file, *outputs_.factors);
  if (!options_.quiet && !note.empty()) print_message(note);
  result_.times.free += laps_.lap();
}

void FactorRun::write_leverages() {
  if (!options_.leverage) return;
  const Problem& problem = plan().problem;
  const SolveProblem systems = systems_of(problem.type);
  const Limits limits = backend_.limits();
  result_.wrong_leverages = qrtool::write_leverages({.a = input_,
                                                     .matrices = problem.count,
                                                     .problem = systems,
                                                     .limits = limits,
                                                     .ranks = outputs_.ranks},
                                                    *outputs_.factors);
  input_.require_unchanged();
  result_.times.leverage = laps_.lap();
}

void FactorRun::commit() {
  if (const std::string way = way_text(result_); !way.empty())
    outputs_.factors->add_attribute("way", way);
  outputs_.commit();
  result_.times.sync = laps_.lap();
}

FactorResult FactorRun::finish() {
  if (const std::string& trouble = checked_.tries().reflectors().trouble(); !trouble.empty())
    print_message(fmt::format("note: {}; the CPU made the second try", in_one_line(trouble)));
  if (!options_.quiet) note_slow_copies(backend_);
  if (!options_.quiet) note_rounded(input_.source());
  if (plan().problem.count == 0)
    print_message(fmt::format("{}: 0 matrices", escape(input_.source().file)));
  result_.times.total = laps_.total();
  return std::move(result_);
}

}  // namespace qrtool
