// SPDX-License-Identifier: Apache-2.0
// window_solver.cpp: rows of groups one after another in memory, and the windows that end in them.
#include "app/solve/windows/window_solver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/engine/solve_plan.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/machine/parallel.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// The way of a window is decided from its shape alone, as if there were this many.
constexpr index_t windows_of_a_plan = 64;
/// The bytes of rows and results that are in memory together, as in the last cache, unless windows
/// are long or memory is scarce.
constexpr std::size_t usual_bytes = std::size_t{8} << 20;
/// The windows that a thread finishes at a time.
constexpr index_t windows_at_once = 256;

/// Returns the plan for the windows. Trees over the rows of one matrix are for all threads, and
/// each window has one.
Plan plan_of(const SolveProblem& problem, const Limits& limits) {
  const Plan plan = plan_factor(problem, windows_of_a_plan, 1, limits, {});
  if (plan.variant->row_state_bytes == nullptr) return plan;
  return plan_factor(problem, windows_of_a_plan, 1, limits, "cpu/eigen");
}

std::size_t bytes_of_row(const GroupSystem& system) {
  const index_t numbers = 3 * system.terms() + system.count_responses() + 2;
  return static_cast<std::size_t>(numbers) * sizeof(double) + sizeof(SolutionReport) +
         sizeof(MatrixFindings);
}

std::size_t bytes_of_window(const GroupSystem& system) {
  const WindowResults results(system.count_responses(), system.terms());
  return bytes_of_row(system) + static_cast<std::size_t>(results.width()) * sizeof(double) + 64;
}

}  // namespace

WindowSolver::WindowSolver(const GroupSystem& system, index_t longest, const Limits& limits)
    : system_(system),
      rows_(std::max(std::min(system.window.rows, longest), system.terms())),
      has_weights_(system.weights >= 0),
      limits_(limits),
      problem_(system.problem_of(rows_)),
      cpu_(limits),
      results_(system.count_responses(), system.terms()) {
  problem_.skips_missing = system.skips_missing;
  const std::size_t of_rows = 2 * static_cast<std::size_t>(rows_) * bytes_of_row(system);
  if (of_rows > limits.host_bytes / 4)
    throw LimitError(fmt::format("{}: --window {}: a window takes {} of memory",
                                 escape(system.file), system.window.rows, format_bytes(of_rows)),
                     hint_of_memory(8 * of_rows));
  const std::size_t of_window = bytes_of_window(system);
  const std::size_t usual = usual_bytes / of_window;
  const std::size_t room = (limits.host_bytes / 4 - of_rows) / of_window;
  most_windows_ = std::max<index_t>(
      1,
      static_cast<index_t>(std::min(std::max<std::size_t>(usual, 4 * of_rows / of_window), room)));
  const index_t rows = most_windows_ + 2 * (rows_ - 1), n = problem_.n;
  a_ = Batch<double>(1, rows, n);
  b_ = Batch<double>(1, rows, system.count_responses());
  w_ = Batch<double>(1, has_weights_ ? rows : 0, 1);
  for (const Batch<double>* numbers : {&a_, &b_, &w_})
    std::fill_n(numbers->view().data, numbers->view().rows * numbers->view().cols, 0.0);
  x_ = Batch<double>(1, rows, n);
  se_ = Batch<double>(1, rows, n);
  reports_.resize(static_cast<std::size_t>(rows));
  findings_.resize(reports_.size());
  counted_.resize(reports_.size() + 1);
  limits_.host_bytes -= std::min(limits.host_bytes / 2, memory_bytes());
  engine_.emplace(problem_, cpu_, plan_of(problem_, limits_), limits.threads);
  for (int i = 0; i < limits.threads; ++i) fits_.emplace_back(problem_, FitWishes{});
}

std::size_t WindowSolver::memory_bytes() const {
  return reports_.size() * bytes_of_row(system_) +
         static_cast<std::size_t>(most_windows_) * bytes_of_window(system_);
}

/// Copies the rows of the runs, and the rows before the first run that its windows reach.
void WindowSolver::load(std::span<const WindowRun> runs) {
  windows_.clear();
  results_.resize(0);
  index_t row = 0;
  for (const WindowRun& run : runs) {
    const index_t before = std::min(run.first, rows_ - 1), end = run.first + run.count;
    index_t in_group = run.first - before;
    run.rows.visit(in_group, end - in_group, [&](const double* numbers) {
      system_.divide(numbers, a(row), b(row));
      if (has_weights_) *w(row) = numbers[system_.weights];
      if (in_group >= run.first) {
        windows_.push_back({.place = row, .present = std::min(rows_, in_group + 1)});
        results_.rows.push_back(static_cast<index_t>(numbers[system_.row]));
      }
      ++in_group;
      ++row;
    });
  }
  results_.resize(std::ssize(windows_));
  double* to = results_.numbers.data();
  for (const WindowRun& run : runs)
    for (index_t i = 0; i < run.count; ++i, to += results_.width())
      *to = static_cast<double>(run.group);
}

const WindowResults& WindowSolver::solve(std::span<const WindowRun> runs) {
  load(runs);
  for (index_t r = 0; r < system_.count_responses(); ++r) solve_response(r);
  return results_;
}

/// Whether a row in memory counts for a response: GroupSystem::counts() of its numbers.
bool WindowSolver::counts(index_t row, index_t response) const {
  if (has_weights_ && *w(row) == 0) return false;
  if (!system_.skips_missing) return true;
  const auto is_missing = [](double x) { return std::isnan(x); };
  return !std::isnan(b(row)[response]) && std::none_of(a(row), a(row) + problem_.n, is_missing);
}

void WindowSolver::count_rows(index_t response) {
  if (windows_.empty()) return;
  for (index_t row = 0; row <= windows_.back().place; ++row)
    counted_[static_cast<std::size_t>(row + 1)] =
        counted_[static_cast<std::size_t>(row)] + counts(row, response);
}

void WindowSolver::solve_response(index_t response) {
  count_rows(response);
  systems_.clear();
  const auto all = static_cast<std::size_t>(windows_.empty() ? 0 : windows_.back().place + 1);
  std::fill_n(x_.view().data, static_cast<index_t>(all) * problem_.n, not_measured);
  std::fill_n(se_.view().data, static_cast<index_t>(all) * problem_.n, not_measured);
  for (const Window& window : windows_) {
    const auto end = static_cast<std::size_t>(window.place + 1);
    const index_t count = counted_[end] - counted_[end - static_cast<std::size_t>(window.present)];
    reports_[end - 1] = {.status = Status::too_few_rows};
    findings_[end - 1] = {};
    if (count >= system_.window.least)
      systems_.push_back({.a = a(window.place + 1 - rows_),
                          .first = window.place,
                          .absent = rows_ - window.present});
  }
  const index_t p = system_.count_responses();
  engine_->run(systems_, {.count = static_cast<index_t>(all),
                          .b = b(1 - rows_) + response,
                          .b_places = {.group_stride = p, .step = p},
                          .w = has_weights_ ? w(1 - rows_) : nullptr,
                          .w_places = {.group_stride = 1},
                          .x = x_.view().data,
                          .se = problem_.wants_se ? se_.view().data : nullptr,
                          .x_places = VectorPlaces::rows(problem_.n),
                          .reports = reports_,
                          .findings = findings_});
  const index_t windows = std::ssize(windows_);
  parallel_for((windows + windows_at_once - 1) / windows_at_once, limits_.threads,
               [&](index_t i, int thread) {
                 const index_t end = std::min(windows, (i + 1) * windows_at_once);
                 for (index_t k = i * windows_at_once; k < end; ++k)
                   finish(k, response, fits_[static_cast<std::size_t>(thread)]);
               });
}

/// Finds R^2 from the rows that are present. The solution is judged by it, too.
FitReport WindowSolver::fit_of(const Window& window, index_t response, FitWorker<double>& worker) {
  const index_t first = window.place + 1 - window.present, p = system_.count_responses();
  SolutionReport& report = reports_[static_cast<std::size_t>(window.place)];
  FitRows<double> rows{.a = {a(first), window.present, problem_.n, problem_.n},
                       .count = 1,
                       .b = b(first) + response,
                       .row_step = p,
                       .w = has_weights_ ? w(first) : nullptr};
  const double* const x = &x_.view()[0](window.place, 0);
  const std::span<FitSums> sums = worker.empty_sums(1);
  worker.add(rows, sums);
  if (!worker.needs_scales(sums.front(), report)) return worker.judge(sums.front(), x, report);
  const ScaledFit scaled = scaled_fit(sums.front().sums.b, largest_finite<double>(rows.a, 0),
                                      {x, static_cast<std::size_t>(problem_.n)});
  rows.scale_a = scaled.a;
  rows.scale_b = scaled.b;
  std::vector<FitSums> again = worker.new_sums(1);
  worker.add(rows, again);
  return worker.judge(again.front(), scaled.x.data(), report, {scaled.a, scaled.b});
}

/// Stores the results of a window.
void WindowSolver::finish(index_t number, index_t response, FitWorker<double>& worker) {
  const Window& window = windows_[static_cast<std::size_t>(number)];
  const auto place = static_cast<std::size_t>(window.place);
  const double* const x = &x_.view()[0](window.place, 0);
  WindowLine line;
  if (reports_[place].status != Status::too_few_rows)
    line.line.r2 = fit_of(window, response, worker).r_squared;
  line.line.rows =
      counted_[place + 1] - counted_[place + 1 - static_cast<std::size_t>(window.present)];
  line.line.report = reports_[place];
  line.line.findings = findings_[place];
  line.fitted = 0;
  for (index_t j = 0; j < problem_.n; ++j)
    line.fitted = std::fma(x[j], a(window.place)[j], line.fitted);
  line.residual = b(window.place)[response] - line.fitted;
  results_.set(results_.window(number), response, x, &se_.view()[0](window.place, 0), line);
}

}  // namespace qrtool
