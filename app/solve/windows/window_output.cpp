// SPDX-License-Identifier: Apache-2.0
// window_output.cpp: text line by line, and arrays some rows at a time.
#include "app/solve/windows/window_output.hpp"

#include <fmt/format.h>

#include <functional>

#include "app/solve/groups/group_result.hpp"
#include "app/solve/solve_columns.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/join.hpp"
#include "core/report/ratios.hpp"
#include "io/file/text_output.hpp"
#include "io/open/output.hpp"

namespace qrtool {
namespace {

constexpr index_t windows_of_a_write = 4096;

/// Returns numbers for each response of each row; x of several responses is a matrix.
MatrixDataset dataset_of(const char* name, const KeyedInput& input, bool has_terms) {
  const bool has_dims = !input.window_dims.empty();
  Dims dims{input.source.m};
  if (has_terms) dims.push_back(input.system.terms());
  if (has_dims) dims.push_back(input.system.count_responses());
  return array_dataset(name, ElementType::float64, dims, !(has_terms && has_dims));
}

}  // namespace

WindowOutput::WindowOutput(const SolveOptions& o, const KeyedInput& input, const Limits& limits)
    : o_(o), input_(input), threads_(limits.threads) {
  if (!is_group_table(o.output)) {
    writer_ = create_output(arrays());
    return;
  }
  table_.emplace(input.table);
  if (o.residuals) columns_.emplace_back(o.output, "residuals", input.responses, o.force);
  if (o.fitted) columns_.emplace_back(o.output, "fitted", input.responses, o.force);
}

OutputSpec WindowOutput::arrays() const {
  const SolveProblem& problem = input_.system.problem;
  const WindowOptions& window = input_.system.window;
  Dims of_solutions = input_.window_dims;
  of_solutions.insert(of_solutions.begin(), input_.source.m);
  OutputSpec spec{
      .path = o_.output,
      .force = o_.force,
      .leading = {},
      .datasets = {dataset_of("X", input_, true)},
      .numbers = solve_columns(
          {.of_solutions = of_solutions,
           .of_matrices = of_solutions,
           .bar = solution_bar(ElementType::float64, window.rows, input_.system.terms())}),
      .attributes = {{"format", "qrtool"},
                     {"format_version", "1.2"},
                     {"qrtool_version", QRTOOL_VERSION},
                     {"command", "solve"},
                     {"source_file", without_directory(input_.source.file)},
                     {"source_dataset", input_.source.dataset},
                     {"right_side_file", without_directory(input_.source_of_b.file)},
                     {"right_side_dataset", input_.source_of_b.dataset},
                     {"window", window.expands ? "expanding" : fmt::format("{}", window.rows)},
                     {"min_rows", fmt::format("{}", window.least)},
                     {"precision", "double"},
                     {"solution", o_.basic ? "basic" : "least-norm"},
                     {"rank_tolerance", fmt::format("{}", problem.rank.tolerance)},
                     {"missing", input_.system.skips_missing ? "skip" : "error"},
                     {"weights", without_directory(o_.system.weights)},
                     {"response", o_.system.response},
                     {"intercept", o_.system.intercept ? "yes" : "no"},
                     {"a", o_.system.a},
                     {"polynomial", o_.system.polynomial},
                     {"columns", join(input_.table.terms, ",")},
                     {"responses", join(input_.responses, ",")},
                     {"order", std::string(name_of(input_.source.order))},
                     {"backend", "cpu"},
                     {"device", CpuBackend({.threads = threads_}).device()},
                     {"eps", precision_of(ElementType::float64).u}},
      .threads = threads_};
  if (input_.table.has_se) spec.datasets.push_back(dataset_of("se", input_, true));
  if (o_.residuals) spec.datasets.push_back(dataset_of("residuals", input_, false));
  if (o_.fitted) spec.datasets.push_back(dataset_of("fitted", input_, false));
  return spec;
}

std::size_t WindowOutput::memory_bytes() const {
  const auto numbers = static_cast<std::size_t>(2 * input_.system.terms());
  return static_cast<std::size_t>(windows_of_a_write * input_.system.count_responses()) *
         (numbers * sizeof(double) + sizeof(WindowLine));
}

void WindowOutput::add(const WindowResults& results, const double* window) {
  if (table_) return add_line(results, window);
  const index_t n = input_.system.terms(), p = input_.system.count_responses();
  // x of several responses is n x p.
  for (index_t j = 0; j < n; ++j) {
    for (index_t r = 0; r < p; ++r) {
      x_.push_back(results.x(window, r)[static_cast<std::size_t>(j)]);
      if (input_.table.has_se) se_.push_back(results.se(window, r)[static_cast<std::size_t>(j)]);
    }
  }
  for (index_t r = 0; r < p; ++r) lines_.push_back(results.line(window, r));
  if (std::ssize(lines_) >= windows_of_a_write * p) write_arrays();
}

void WindowOutput::add_line(const WindowResults& results, const double* window) {
  const index_t p = input_.system.count_responses();
  std::vector<double> residuals, fitted;
  for (index_t r = 0; r < p; ++r) {
    const WindowLine found = results.line(window, r);
    const GroupLine& line = found.line;
    table_->add({.keys = input_.table.keys.empty()
                             ? std::vector<std::string_view>{}
                             : input_.keys.keys_of(WindowResults::group_of(window)),
                 .response = input_.responses[static_cast<std::size_t>(r)],
                 .rows = line.rows,
                 .x = results.x(window, r),
                 .se = input_.table.has_se ? results.se(window, r) : std::span<const double>(),
                 .rank = line.findings.rank,
                 .r2 = line.r2,
                 .condition = line.findings.condition,
                 .status = status_word(line, input_.system.terms())});
    residuals.push_back(found.residual);
    fitted.push_back(found.fitted);
  }
  auto column = columns_.begin();
  if (o_.residuals) (column++)->add(residuals);
  if (o_.fitted) column->add(fitted);
}

/// Writes a number of each line.
template <class Field>
void WindowOutput::write_column(const char* name, Field field) {
  std::vector<double> values;
  for (const WindowLine& line : lines_)
    values.push_back(static_cast<double>(std::invoke(field, line)));
  writer_->write_numbers(name, written_ * input_.system.count_responses(), values);
}

void WindowOutput::write_arrays() {
  const index_t n = input_.system.terms(), p = input_.system.count_responses();
  const index_t rows = std::ssize(lines_) / p;
  if (rows == 0) return;
  const bool is_matrix = !input_.window_dims.empty();
  const auto write = [&](const char* name, const std::vector<double>& values) {
    writer_->write(name, written_,
                   packed(values.data(), rows, is_matrix ? n : 1, is_matrix ? p : n));
  };
  write("X", x_);
  if (input_.table.has_se) write("se", se_);
  const auto of_report = [](auto member) {
    return [member](const WindowLine& line) { return line.line.report.*member; };
  };
  write_column("residual_norm", of_report(&SolutionReport::residual_norm));
  write_column("backward_error", of_report(&SolutionReport::backward_error));
  write_column("least_norm_error", of_report(&SolutionReport::least_norm_error));
  write_column("status", of_report(&SolutionReport::status));
  write_column("tries", of_report(&SolutionReport::tries));
  write_column("degrees_of_freedom", of_report(&SolutionReport::freedom));
  const auto of_findings = [](auto member) {
    return [member](const WindowLine& line) { return line.line.findings.*member; };
  };
  write_column("rank", of_findings(&MatrixFindings::rank));
  write_column("condition", of_findings(&MatrixFindings::condition));
  write_column("scaled_condition", of_findings(&MatrixFindings::scaled_condition));
  write_column("r_squared", [](const WindowLine& line) { return line.line.r2; });
  const auto write_fit = [&](const char* name, double WindowLine::*fit) {
    std::vector<double> values;
    for (const WindowLine& line : lines_) values.push_back(line.*fit);
    writer_->write_part(name, written_ * p, std::span<const double>(values));
  };
  if (o_.residuals) write_fit("residuals", &WindowLine::residual);
  if (o_.fitted) write_fit("fitted", &WindowLine::fitted);
  written_ += rows;
  x_.clear();
  se_.clear();
  lines_.clear();
}

void WindowOutput::commit() {
  if (table_) return table_->commit(columns_);
  write_arrays();
  writer_->commit();
}

std::vector<std::string> WindowOutput::paths() const {
  if (writer_) return writer_->files();
  std::vector<std::string> paths{input_.table.path};
  for (const RowColumns& file : columns_) paths.push_back(file.path());
  return paths;
}

}  // namespace qrtool
