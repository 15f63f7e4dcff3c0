// SPDX-License-Identifier: Apache-2.0
// solve_run.cpp: the plan, the output and the stages of `qrtool solve`.
#include "app/solve/solve_run.hpp"

#include <fmt/format.h>

#include <cmath>

#include <algorithm>
#include <functional>

#include "app/process/console.hpp"
#include "app/process/progress.hpp"
#include "app/process/signals.hpp"
#include "app/run/backends/make_backend.hpp"
#include "app/run/files/name_dimensions.hpp"
#include "app/solve/solve_columns.hpp"
#include "app/solve/solve_stages.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/report/ratios.hpp"
#include "core/text.hpp"
#include "io/file/text_output.hpp"
#include "io/open/output.hpp"

namespace qrtool {
namespace {

/// Right sides that are rows in the file give rows of n.
MatrixDataset solutions_dataset(const char* name, const RightSides& sides, ElementType type) {
  return array_dataset(name, type, sides.x_dims, sides.as_rows);
}

std::string text_of(double number) { return fmt::format("{}", number); }

/// Returns the reason why the systems of a run stay on the CPU, whatever the device, or an empty
/// text.
std::string objection_to(const SolveOptions& o, const SystemsShape& shape,
                         const SolveProblem& problem, const SolvePlan& plan) {
  std::string objection = objection_to_devices(shape, problem, plan);
  if (!objection.empty() || !is_shared(shape, problem, plan) || o.backend.variant.empty())
    return objection;
  return "the CPU factors an A that serves all right sides";
}

void say_why_not(const SolveOptions& o, const std::string& reason) {
  if (o.backend.asks_for_device() ? !o.quiet : o.verbose)
    print_message(fmt::format("note: solved on the CPU: {}", reason));
}

/// Returns nothing if the CPU solves: because it is asked for, because the device's start is not
/// worth it, or because no device solves such systems; a note says the last if a device was asked
/// for. `before`: as for make_backend(). Errors: as make_backend() and make_plan().
std::optional<SolveDevice> choose_solve_device(const SolveOptions& o, const SolveInputs& inputs,
                                               const SolveProblem& problem, const SolvePlan& plan,
                                               const Limits& limits,
                                               const std::shared_ptr<Backend>& before) {
  if (o.backend.device == "all")
    throw UsageError("--device all: solve uses one device", "name one; see qrtool devices");
  const SystemsShape shape = inputs.shape();
  const std::string objection = objection_to(o, shape, problem, plan);
  if (!objection.empty() && !o.backend.asks_for_device()) {
    say_why_not(o, objection);
    return std::nullopt;
  }
  const Work work = solve_work_of(shape, problem, plan);
  const BackendChoice choice = choose_backend(o.backend, work, limits, o.verbose, before);
  if (!o.quiet) note_advice(choice);
  SolveDevice device{.backend = choice.backend};
  if (device.backend->name() != "opencl") return std::nullopt;
  const std::string of_device =
      objection.empty() ? plan_on_device(shape, problem, plan, o.backend.variant, device)
                        : objection;
  if (of_device.empty()) return device;
  say_why_not(o, of_device);
  return std::nullopt;
}

}  // namespace

SolveRun::SolveRun(const SolveOptions& options, const SolveInputs& inputs, const Limits& limits,
                   Laps& laps)
    : options_(options),
      inputs_(inputs),
      limits_(limits),
      laps_(laps),
      problem_(solve_problem(inputs, options.system, type_of(inputs, options.precision))),
      result_{.a = inputs.all_rows(),
              .b = inputs.b->source(),
              .sides = inputs.sides,
              .type = problem_.type,
              .bar = solution_bar(problem_.type, problem_.packed_rows(), problem_.n),
              .fit_bar = fit_bar(problem_, inputs.fits)} {
  problem_.rank.is_basic = options.basic;
  const bool is_x_alone =
      is_standard_output(options.output) && (!is_table() || options.output != standard_output_text);
  problem_.wants_se =
      !options.no_se && problem_.m > problem_.n && problem_.ridge == 0 && !is_x_alone;
  if (options.confidence > 0 && !problem_.wants_se)
    throw InputError(
        fmt::format("{}: --confidence needs more rows than columns, and A is {}x{}",
                    escape(result_.a.file), problem_.m, problem_.n),
        "without spare rows nothing says how large the errors of b are; leave --confidence away");
  if (options.leverage) require_one_leverage(inputs, problem_);
  problem_.wants_covariance = options.covariance;
  problem_.wants_state = options.state;
  if (options.covariance && problem_.m <= problem_.n)
    throw InputError(
        fmt::format("{}: --covariance needs more rows than columns, and A is {}x{}",
                    escape(result_.a.file), problem_.m, problem_.n),
        "without spare rows nothing says how large the errors of b are; leave --covariance away");
}

/// Standard output gets only solutions.
bool SolveRun::has_report() const { return !is_standard_output(options_.output); }

std::vector<MatrixDataset> SolveRun::datasets() const {
  std::vector<MatrixDataset> all{solutions_dataset("X", inputs_.sides, problem_.type)};
  if (problem_.wants_se)
    all.push_back(solutions_dataset("se", inputs_.sides, real_of(problem_.type)));
  if (problem_.wants_covariance)
    all.push_back({.name = "covariance",
                   .type = problem_.type,
                   .rows = problem_.n,
                   .cols = problem_.n,
                   .leading = inputs_.sides.solution_dims});
  for (MatrixDataset& dataset : fit_datasets(inputs_)) all.push_back(std::move(dataset));
  if (options_.leverage)
    all.push_back(leverage_dataset(inputs_.sides.a_leading, inputs_.m(), problem_.type));
  if (problem_.wants_state)
    for (MatrixDataset& dataset : state_datasets(inputs_, problem_))
      all.push_back(std::move(dataset));
  return all;
}

void SolveRun::make_plan(const std::shared_ptr<Backend>& before) {
  // The plan says how many findings there are; no more than there are solutions.
  const Dims& of_solutions = inputs_.sides.solution_dims;
  const OutputSpec output{
      .path = options_.output,
      .leading = {},
      .datasets = datasets(),
      .numbers = solve_columns(
          {.of_solutions = of_solutions, .of_matrices = of_solutions, .fits = inputs_.fits}),
      .attributes = {}};
  limits_ = limits_beside_files(inputs_, problem_.type, output_workspace_bytes(output), limits_);
  const std::string& variant = options_.backend.variant;
  plan_ =
      plan_solve(inputs_.shape(), problem_, limits_, variant.starts_with("cpu/") ? variant : "");
  device_ = choose_solve_device(options_, inputs_, problem_, plan_, limits_, before);
  if (device_) take_device(inputs_.shape(), problem_, limits_, plan_);
  result_.variant = device_ ? device_->variant()
                    : plan_.route == SolveRoute::shared
                        ? (problem_.weighs_each ? "a Gram matrix for each" : "one QR for all")
                        : std::string(plan_.factor.variant->name);
  result_.backend = device_ ? device_->backend->name() : "cpu";
  result_.device = device_ ? name_of_device(*device_->backend) : "cpu";
  result_.threads = plan_.threads;
  if (options_.verbose)
    print_message(fmt::format("{} right sides at a time, {} in flight",
                              format_count(plan_.chunk_groups * plan_.group_size), plan_.buffers));
}

std::string SolveRun::device() const {
  return device_ ? device_->backend->device() : CpuBackend(limits_).device();
}

std::string SolveRun::rates() const {
  if (!device_) return cpu_variants().front().rates(limits_);
  return device_->backend->variants().front().rates(device_->backend->limits());
}

/// Returns the dimensions of findings about A: one place for A, one for each place of the batch, or
/// one for each right side.
Dims SolveRun::findings_dims() const {
  if (plan_.splits) return inputs_.sides.solution_dims;
  return inputs_.sides.shares_a() && plan_.route == SolveRoute::shared ? Dims{}
                                                                       : inputs_.sides.batch;
}

OutputSpec SolveRun::output_spec() const {
  const RightSides& sides = inputs_.sides;
  const Source &a = result_.a, &b = result_.b;
  const Dims of_a = findings_dims();
  OutputSpec spec{
      .path = options_.output,
      .force = options_.force,
      .leading = {},
      .datasets = datasets(),
      .complex_form = a.complex_form,
      .numbers = solve_columns({.of_solutions = sides.solution_dims,
                                .of_matrices = of_a,
                                .bar = result_.bar,
                                .fits = inputs_.fits,
                                .fit_bar = result_.fit_bar}),
      .attributes = {{"format", "qrtool"},
                     {"format_version", "1.2"},
                     {"qrtool_version", QRTOOL_VERSION},
                     {"command", "solve"},
                     {"source_file", without_directory(a.file)},
                     {"source_dataset", a.dataset},
                     {"right_side_file", without_directory(b.file)},
                     {"right_side_dataset", b.dataset},
                     {"rows", std::string(name_of(sides.rows))},
                     {"precision",
                      real_of(problem_.type) == ElementType::float32 ? "single" : "double"},
                     {"solution", options_.basic ? "basic" : "least-norm"},
                     {"rank_tolerance", text_of(problem_.rank.tolerance)},
                     {"missing", problem_.skips_missing ? "skip" : "error"},
                     {"least_norm", problem_.takes_few_rows ? "yes" : "no"},
                     {"ridge", text_of(options_.system.ridge.value_or(0))},
                     {"weights", inputs_.w_is_column ? options_.system.weights
                                                     : without_directory(options_.system.weights)},
                     {"weights_are", inputs_.w_is_column ? "column"
                                     : inputs_.w         ? "file"
                                                         : "none"},
                     {"response", options_.system.response},
                     {"intercept", options_.system.intercept ? "yes" : "no"},
                     {"a", options_.system.a},
                     {"polynomial", options_.system.polynomial},
                     {"columns", join(inputs_.names, ",")},
                     {"responses", join(inputs_.responses, ",")},
                     {"order", std::string(name_of(a.order))},
                     {"right_side_order", inputs_.b_is_column ? "column" : "row"},
                     {"backend", result_.backend},
                     {"device", device()},
                     {"variant", result_.variant},
                     {"rates", rates()},
                     {"eps", precision_of(problem_.type).u}},
      .threads = limits_.threads};
  if (options_.leverage) spec.numbers.push_back(leverage_column(inputs_.sides.a_leading, problem_));
  if (problem_.wants_state) {
    spec.numbers.push_back(state_column(inputs_, problem_));
    spec.attributes.emplace_back("state", "yes");
  }
  if (!has_report()) spec.numbers.clear();
  if (is_table()) spec.coefficients = coefficients();
  if (options_.system.rows != RowsOfB::automatic) spec.stated.emplace_back("rows");
  if (options_.system.rank_tolerance) spec.stated.emplace_back("rank_tolerance");
  if (options_.order != Order::automatic) spec.stated.emplace_back("order");
  for (const auto& [name, word] : a.details) spec.attributes.emplace_back(name, word);
  if (options_.system.response.empty())
    for (const auto& [name, word] : b.details)
      spec.attributes.emplace_back("right_side_" + name, word);
  name_dimensions_of_solutions(b, sides, inputs_.names, spec);
  return spec;
}

void SolveRun::create_output() {
  set_interrupt_message("qrtool: interrupted; nothing written\n");
  output_ = qrtool::create_output(output_spec());
  result_.files = output_->files();
}

/// Writes X, or its standard errors, of some groups; null: there are none.
template <class E>
void SolveRun::write_groups(const char* name, index_t group, index_t groups, const E* values) {
  const MatrixDataset shape = solutions_dataset("X", inputs_.sides, problem_.type);
  const index_t of_matrix = shape.rows * shape.cols, of_group = problem_.n * plan_.group_size;
  if (of_matrix == 0 || values == nullptr) return;
  output_->write(
      name, group * of_group / of_matrix,
      interleaved(packed(values, groups * of_group / of_matrix, shape.rows, shape.cols)));
}

/// Returns a field of some lines of the report, or the result of a function for each line.
template <class Lines, class Field>
void SolveRun::write_column(const char* name, index_t first, const Lines& lines, Field field) {
  if (options_.output == standard_output_npy || (!has_report() && !is_table())) return;
  std::vector<double> values;
  for (const auto& line : lines) values.push_back(static_cast<double>(std::invoke(field, line)));
  output_->write_numbers(name, first, values);
}

void SolveRun::keep_reports(index_t first, std::span<const SolutionReport> reports) {
  // The weights were divided by a power of four before they were read.
  const auto residual_norm_of = [this](const SolutionReport& report) {
    return std::ldexp(report.residual_norm, inputs_.weight_exponent / 2);
  };
  write_column("residual_norm", first, reports, residual_norm_of);
  write_column("backward_error", first, reports, &SolutionReport::backward_error);
  write_column("least_norm_error", first, reports, &SolutionReport::least_norm_error);
  write_column("status", first, reports, &SolutionReport::status);
  write_column("tries", first, reports, &SolutionReport::tries);
  // A ridge leaves a number of them that is not whole.
  const auto freedom_of = [this](const SolutionReport& report) {
    return problem_.ridge > 0 ? not_measured : report.freedom;
  };
  write_column("degrees_of_freedom", first, reports, freedom_of);
  for (const SolutionReport& report : reports) {
    result_.verdict.add(judged(first++, report));
    result_.verdict.second_tries += report.tries > 1;
    if (!is_table()) continue;
    result_.residual_norms.push_back(residual_norm_of(report));
    result_.freedoms.push_back(freedom_of(report));
  }
}

void SolveRun::keep_fits(index_t first, std::span<const FitReport> fits) {
  write_column("r_squared", first, fits, &FitReport::r_squared);
  if (inputs_.fits.any()) write_column("orthogonality", first, fits, &FitReport::orthogonality);
  result_.fits.add(first, fits);
  for (const FitReport& fit : fits)
    if (is_table()) result_.fits_of_responses.push_back(fit);
}

void SolveRun::write_fits(index_t first, index_t count, const void* residuals, const void* fitted) {
  const auto write = [&]<class T>(const char* name, const T* values) {
    constexpr index_t parts = parts_of<T>;
    if (values != nullptr)
      output_->write_part(name, parts * first,
                          std::span(reinterpret_cast<const Real<T>*>(values),
                                    static_cast<std::size_t>(parts * count)));
  };
  const auto write_both = [&]<class T>(T) {
    write("residuals", static_cast<const T*>(residuals));
    write("fitted", static_cast<const T*>(fitted));
  };
  with_type(inputs_.fits.type, write_both);
}

void SolveRun::keep_findings(index_t first, std::span<const MatrixFindings> findings) {
  write_column("rank", first, findings, &MatrixFindings::rank);
  write_column("condition", first, findings, &MatrixFindings::condition);
  write_column("scaled_condition", first, findings, &MatrixFindings::scaled_condition);
  for (const MatrixFindings& each : findings)
    result_.verdict.ranks.include(0, each.rank, each.condition, problem_.k());
  for (const MatrixFindings& each : findings)
    if (is_table()) result_.ranks.push_back(each.rank);
  keep_ranks(first, findings);
}

/// Findings belong to the one A, to the places of the batch, or to right sides (findings_dims()).
void SolveRun::keep_ranks(index_t first, std::span<const MatrixFindings> findings) {
  const RightSides& sides = inputs_.sides;
  const bool may_differ = real_of(problem_.type) == ElementType::float32;
  if (options_.leverage) ranks_.resize(static_cast<std::size_t>(count_of(sides.a_leading)), -1);
  for (const MatrixFindings& each : findings) {
    const index_t side = plan_.splits ? first : first * sides.p;
    if (options_.leverage) ranks_[static_cast<std::size_t>(sides.place(side).a)] = each.rank;
    if (may_differ && each.rank >= 0 && each.rank < problem_.k() &&
        dependent_.size() < most_compared_ranks)
      dependent_.push_back({side, each.rank});
    ++first;
  }
}

void SolveRun::compare_ranks() {
  if (dependent_.empty()) return;
  SolveProblem problem = problem_;
  if (!options_.system.rank_tolerance)
    problem.rank.tolerance = default_rank_tolerance(ElementType::float64, problem.n);
  const std::string note = qrtool::compare_ranks(job_of_sides(inputs_, problem, limits_),
                                                 dependent_, result_.a.file, *output_);
  if (!options_.quiet && !note.empty()) print_message(note);
  result_.times.free += laps_.lap();
}

/// Whether X has the names of a table's columns.
bool SolveRun::is_table() const { return !inputs_.responses.empty() && !inputs_.sides.as_rows; }

CoefficientTable SolveRun::coefficients() const {
  return {
      .terms = inputs_.names, .responses = inputs_.responses, .confidence = options_.confidence};
}

template <class T>
void SolveRun::run_typed() {
  Progress progress("solve", count_of(inputs_.sides.solution_dims), options_.progress_mode(),
                    "right sides");
  const SolveSink<T> sink{
      .keep_x =
          [&](index_t group, index_t groups, const T* x, const Real<T>* se) {
            write_groups("X", group, groups, x);
            write_groups("se", group, groups, se);
            if constexpr (!is_complex_number<T>) {
              if (!is_table()) return;
              const index_t entries = problem_.n * plan_.group_size;
              result_.x.assign(x, x + entries);
              if (se != nullptr) result_.se.assign(se, se + entries);
            }
          },
      .keep_reports =
          [&](index_t first, std::span<const SolutionReport> reports) {
            keep_reports(first, reports);
            progress.add(std::ssize(reports));
          },
      .keep_findings = [&](index_t first, auto findings) { keep_findings(first, findings); },
      .keep_covariance =
          [&](index_t first, index_t solutions, const T* values) {
            if (problem_.n > 0)
              output_->write("covariance", first,
                             interleaved(packed(values, solutions, problem_.n, problem_.n)));
          },
      .keep_fits = [&](index_t first, auto fits) { keep_fits(first, fits); },
      .keep_fitted = [&](index_t first, index_t count, const void* residuals,
                         const void* fitted) { write_fits(first, count, residuals, fitted); },
      .keep_state =
          [&](index_t group, const SystemState<T>& state) {
            write_state(group, problem_.n, state, *output_);
          }};
  result_.times.start = laps_.lap();
  const SolveTimes times = run_solve_stages<T>({.inputs = inputs_,
                                                .problem = problem_,
                                                .plan = plan_,
                                                .limits = limits_,
                                                .device = device_ ? &*device_ : nullptr},
                                               sink);
  result_.times.start += times.start;
  result_.times.stages = times.stages;
  result_.seconds = times.seconds;
  result_.times.free = laps_.lap() - times.wall;
}

void SolveRun::run_stages() {
  with_type(problem_.type, [&](auto zero) { run_typed<decltype(zero)>(); });
  inputs_.require_unchanged();
}

void SolveRun::write_leverages() {
  if (!options_.leverage) return;
  LeverageJob job = leverage_job(inputs_, problem_, limits_, ranks_);
  job.has_report = has_report();
  result_.wrong_leverages = qrtool::write_leverages(job, *output_);
  inputs_.require_unchanged();
  result_.times.leverage = laps_.lap();
}

void SolveRun::commit() {
  set_interrupt_message(interrupted_while_finishing);
  output_->commit();
  set_interrupt_message(interrupted_when_complete);
  result_.times.sync = laps_.lap();
}

SolveResult SolveRun::finish() {
  if (device_ && !options_.quiet) note_slow_copies(*device_->backend);
  result_.times.total = laps_.total();
  if (is_table()) result_.table = coefficients();
  return std::move(result_);
}

}  // namespace qrtool
