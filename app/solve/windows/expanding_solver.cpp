// SPDX-License-Identifier: Apache-2.0
// expanding_solver.cpp: rows one after another, solutions on all threads, and the second look at
// those in doubt.
#include "app/solve/windows/expanding_solver.hpp"

#include <algorithm>
#include <cmath>

#include "core/machine/parallel.hpp"

namespace qrtool {
namespace {

/// One window in so many is measured from its rows.
constexpr index_t windows_of_a_check = 1000;
/// The bytes of problems that have grown, in memory together.
constexpr std::size_t most_bytes_of_growths = std::size_t{16} << 20;

std::size_t bytes_of_growth(const GroupSystem& system) {
  const auto width = static_cast<std::size_t>(system.terms() + 1);
  const WindowResults results(system.count_responses(), system.terms());
  return (3 * width * width + 4 * width +
          static_cast<std::size_t>(results.width() + system.count_responses())) *
             sizeof(double) +
         256;
}

}  // namespace

ExpandingSolver::ExpandingSolver(const GroupSystem& system, const Limits& limits)
    : system_(system),
      limits_(limits),
      problem_(system.problem_of(system.terms() + 1)),
      fits_(problem_, {.fitted = true}),
      growths_(static_cast<std::size_t>(system.count_responses()),
               Growth{.system = GrowingSystem(system.terms())}),
      results_(system.count_responses(), system.terms()) {
  const std::size_t room = std::min(most_bytes_of_growths, limits.host_bytes / 8);
  most_windows_ = std::max<index_t>(1, static_cast<index_t>(room / bytes_of_growth(system)));
  problem_.skips_missing = system.skips_missing;
  grown_.assign(static_cast<std::size_t>(most_windows_), growths_.front());
  a_ = Batch<double>(1, most_windows_, system.terms());
  b_ = Batch<double>(1, most_windows_, system.count_responses());
  limits_.host_bytes -= limits.host_bytes / 4;
}

/// Begins a group: its numbers are divided by powers of two that bring them near to 1.
void ExpandingSolver::begin(const WindowRun& run) {
  std::vector<index_t> places = system_.others;
  if (problem_.has_intercept) places.insert(places.begin(), -1);
  places.insert(places.end(), system_.responses.begin(), system_.responses.end());
  std::vector<double> largest(places.size(), 0);
  run.rows.visit(0, run.rows.count(), [&](const double* numbers) {
    const double root = system_.weights < 0 ? 1 : std::sqrt(numbers[system_.weights]);
    for (std::size_t j = 0; j < places.size(); ++j) {
      const double size = (places[j] < 0 ? 1 : std::abs(numbers[places[j]])) * root;
      if (size > largest[j] && std::isfinite(size)) largest[j] = size;
    }
  });
  scales_.assign(places.size(), 0);
  for (std::size_t j = 0; j < places.size(); ++j) std::frexp(largest[j], &scales_[j]);
  std::ranges::fill(growths_, Growth{.system = GrowingSystem(system_.terms())});
  trees_.assign(growths_.size(), RowTree(system_.terms() + 1));
}

void ExpandingSolver::add_row(const double* numbers, index_t response) {
  if (!system_.counts(numbers, response)) return;
  Growth& growth = growths_[static_cast<std::size_t>(response)];
  const index_t n = system_.terms();
  ++growth.rows;
  const double weight = system_.weights < 0 ? 1 : numbers[system_.weights];
  const double root = std::sqrt(weight);
  std::vector<double> row(static_cast<std::size_t>(n + 1));
  index_t j = 0;
  if (problem_.has_intercept) row[j++] = 1;
  for (const index_t place : system_.others) row[j++] = numbers[place];
  row[n] = numbers[system_.responses[static_cast<std::size_t>(response)]];
  const int of_b = scales_[static_cast<std::size_t>(n + response)];
  const double b = std::ldexp(row[n], -of_b);
  for (j = 0; j <= n; ++j) {
    row[j] = std::ldexp(row[j] * root, -(j < n ? scales_[j] : of_b));
    growth.is_finite = growth.is_finite && std::isfinite(row[j]);
  }
  if (!growth.is_finite) return;
  growth.system.add_row(row.data(), trees_[static_cast<std::size_t>(response)]);
  merge(growth.b,
        {.weight = weight, .mean = b, .b_squares = weight * b * b, .least = b, .most = b});
}

const WindowResults& ExpandingSolver::solve(std::span<const WindowRun> runs) {
  index_t windows = 0;
  for (const WindowRun& run : runs) windows += run.count;
  results_.resize(windows);
  index_t first = 0;
  for (const WindowRun& run : runs) {
    if (run.first == 0) begin(run);
    load(run, first);
    std::vector<char> is_in_doubt(static_cast<std::size_t>(run.count), 0);
    for (index_t r = 0; r < system_.count_responses(); ++r) {
      grow(run, r);
      parallel_for(run.count, limits_.threads, [&](index_t i, int) {
        const WindowLine line = solve_grown(i, first + i, r);
        is_in_doubt[static_cast<std::size_t>(i)] |= line.line.report.status == Status::above_bar;
      });
      compare_with_rows(run, first, r, is_in_doubt);
    }
    solve_from_rows(run, first, is_in_doubt);
    first += run.count;
  }
  return results_;
}

/// Keeps the rows at which windows end, the first of them as window `window`.
void ExpandingSolver::load(const WindowRun& run, index_t window) {
  index_t i = 0;
  run.rows.visit(run.first, run.count, [&](const double* numbers) {
    system_.divide(numbers, &a_.view()[0](i, 0), &b_.view()[0](i, 0));
    ++i;
    results_.rows[static_cast<std::size_t>(window)] = static_cast<index_t>(numbers[system_.row]);
    *results_.window(window++) = static_cast<double>(run.group);
  });
}

void ExpandingSolver::grow(const WindowRun& run, index_t response) {
  std::size_t i = 0;
  run.rows.visit(run.first, run.count, [&](const double* numbers) {
    add_row(numbers, response);
    grown_[i++] = growths_[static_cast<std::size_t>(response)];
  });
}

/// Solves window `window`, the i-th of a run, from what has grown, and returns its line.
WindowLine ExpandingSolver::solve_grown(index_t i, index_t window, index_t response) {
  Growth& growth = grown_[static_cast<std::size_t>(i)];
  const index_t n = system_.terms();
  std::vector<double> x(static_cast<std::size_t>(n), not_measured), se = x;
  WindowLine line;
  line.line.rows = growth.rows;
  SolutionReport& report = line.line.report;
  if (growth.rows < system_.window.least) {
    report.status = Status::too_few_rows;
  } else if (!growth.is_finite) {
    report.status = Status::non_finite;
  } else {
    const int of_b = scales_[static_cast<std::size_t>(n + response)];
    SystemSolver<double> solver(system_.problem_of(growth.rows).rules());
    solver.take_factor(growth.system.r(), std::span(scales_).first(static_cast<std::size_t>(n)));
    solver.solve(growth.system, 0, growth.system.z(), {&of_b, 1},
                 {.x = {x.data(), n, 1, 1},
                  .se = {se.data(), n, 1, 1},
                  .reports = {&report, 1},
                  .rows_used = {&growth.rows, 1}});
    line.line.findings = solver.findings();
    const double residual_norm = std::ldexp(report.residual_norm, -of_b);
    line.line.r2 = explain(growth.b, residual_norm, problem_.has_intercept, report).r_squared;
  }
  set(i, window, response, x, se, line);
  return line;
}

/// Measures residuals and gradients of one in so many windows from all of their rows, which are
/// read once for all of a run.
void ExpandingSolver::compare_with_rows(const WindowRun& run, index_t first, index_t response,
                                        std::vector<char>& is_in_doubt) {
  const index_t n = system_.terms(), step = windows_of_a_check;
  std::vector<index_t> checked;  // of the run
  std::vector<double> x;
  for (index_t i = step - 1 - run.first % step; i < run.count; i += step) {
    const double* const window = results_.window(first + i);
    if (results_.line(window, response).line.report.status != Status::ok) continue;
    checked.push_back(i);
    x.insert(x.end(), results_.x(window, response).begin(), results_.x(window, response).end());
  }
  if (checked.empty()) return;
  const Batch<double> a(1, step, n), b(1, step, 1), w(1, system_.weights < 0 ? 0 : step, 1);
  std::vector<double> responses(system_.responses.size());
  std::vector<FitSums> sums = fits_.new_sums(std::ssize(checked));
  index_t rows = 0;
  std::size_t done = 0;  // windows that have all of their rows
  run.rows.visit(0, run.first + checked.back() + 1, [&](const double* numbers) {
    const index_t i = rows++ % step;
    system_.divide(numbers, &a.view()[0](i, 0), responses.data());
    b.view()[0](i, 0) = responses[static_cast<std::size_t>(response)];
    if (system_.weights >= 0) w.view()[0](i, 0) = numbers[system_.weights];
    if (rows % step != 0) return;
    fits_.add({.a = a.view()[0],
               .count = std::ssize(checked) - static_cast<index_t>(done),
               .b = b.view().data,
               .w = system_.weights < 0 ? nullptr : w.view().data,
               .x = x.data() + static_cast<index_t>(done) * n},
              std::span(sums).subspan(done));
    if (rows == run.first + checked[done] + 1) ++done;
  });
  for (std::size_t k = 0; k < checked.size(); ++k) {
    SolutionReport report =
        results_.line(results_.window(first + checked[k]), response).line.report;
    fits_.judge(sums[k], x.data() + static_cast<index_t>(k) * n, report);
    is_in_doubt[static_cast<std::size_t>(checked[k])] |=
        fits_.needs_scales(sums[k], report) || report.status != Status::ok;
  }
}

/// Solves the windows in doubt as groups of their own.
void ExpandingSolver::solve_from_rows(const WindowRun& run, index_t first,
                                      const std::vector<char>& is_in_doubt) {
  std::vector<GroupRows> groups;
  std::vector<index_t> places;
  for (index_t i = 0; i < run.count; ++i) {
    if (is_in_doubt[static_cast<std::size_t>(i)] == 0) continue;
    groups.push_back(run.rows.first(run.first + i + 1));
    places.push_back(i);
  }
  if (groups.empty()) return;
  const GroupAnswers answers = GroupSolver(system_).solve(groups, limits_);
  const index_t p = system_.count_responses();
  const auto n = static_cast<std::size_t>(system_.terms());
  for (index_t k = 0; k < std::ssize(answers.lines); ++k) {
    const index_t i = places[static_cast<std::size_t>(k / p)];
    if (answers.lines[static_cast<std::size_t>(k)].rows < system_.window.least) continue;
    set(i, first + i, k % p, {&answers.x.view()[0](k, 0), n}, {&answers.se.view()[0](k, 0), n},
        {.line = answers.lines[static_cast<std::size_t>(k)]});
  }
}

/// Stores the results of a window, with the fit of its last row.
void ExpandingSolver::set(index_t i, index_t window, index_t response, std::span<const double> x,
                          std::span<const double> se, WindowLine line) {
  line.fitted = 0;
  for (std::size_t j = 0; j < x.size(); ++j)
    line.fitted = std::fma(x[j], a_.view()[0](i, static_cast<index_t>(j)), line.fitted);
  line.residual = b_.view()[0](i, response) - line.fitted;
  results_.set(results_.window(window), response, x.data(), se.data(), line);
}

}  // namespace qrtool
