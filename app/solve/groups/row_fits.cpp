// SPDX-License-Identifier: Apache-2.0
// row_fits.cpp: the numbers of a row are kept at the place of the row, whatever its group.
#include "app/solve/groups/row_fits.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/machine/parallel.hpp"
#include "core/solve/results/leverage.hpp"

namespace qrtool {

RowFits::RowFits(const SolveOptions& o, const KeyedInput& input, const Limits& limits)
    : input_(input), threads_(limits.threads) {
  const std::pair<Kind, const char*> kinds[] = {
      {Kind::residuals, "residuals"}, {Kind::fitted, "fitted"}, {Kind::leverage, "leverage"}};
  const bool are_wanted[] = {o.residuals, o.fitted, o.leverage};
  for (std::size_t i = 0; i < std::size(kinds); ++i) {
    if (!are_wanted[i]) continue;
    kinds_.push_back(kinds[i].first);
    columns_.emplace_back(o.output, kinds[i].second, input.responses, o.force);
  }
  if (kinds_.empty()) return;
  numbers_ = RowNumbers(input.source.m, width(), limits.host_bytes / 8, o.scratch);
}

index_t RowFits::add(std::span<const GroupRows> groups, const GroupAnswers& answers) {
  if (!is_wanted()) return 0;
  std::vector<Fits> fits(groups.size());
  parallel_for(std::ssize(groups), threads_, [&](index_t i, int) {
    const auto g = static_cast<std::size_t>(i);
    fits[g] = fits_of(groups[g], answers, i * input_.system.count_responses());
  });
  for (const Fits& each : fits) numbers_.set(each.rows, each.numbers.data());
  return std::ranges::count_if(fits, &Fits::is_off);
}

/// `first`: the place of the group's first response among the answers.
RowFits::Fits RowFits::fits_of(const GroupRows& rows, const GroupAnswers& answers,
                               index_t first) const {
  const GroupSystem& system = input_.system;
  const index_t responses = system.count_responses(), all = width();
  Fits fits;
  fits.numbers.resize(static_cast<std::size_t>(rows.count() * all));
  std::vector<double> leverages(static_cast<std::size_t>(rows.count()));
  for (index_t r = 0; r < responses; ++r) {
    const auto answer = static_cast<std::size_t>(first + r);
    const double* const x = &answers.x.view()[0](first + r, 0);
    for (std::size_t k = 0; k < kinds_.size(); ++k) {
      double* to = fits.numbers.data() + static_cast<index_t>(k) * responses + r;
      if (kinds_[k] == Kind::leverage)
        find_leverages(rows, answers.lines[answer], r, leverages, fits.is_off);
      index_t i = 0;
      rows.visit(0, rows.count(), [&](const double* numbers) {
        double fitted = system.problem.has_intercept ? x[0] : 0;
        index_t term = system.problem.has_intercept ? 1 : 0;
        for (const index_t place : system.others)
          fitted = std::fma(x[term++], numbers[place], fitted);
        const double b = numbers[system.responses[static_cast<std::size_t>(r)]];
        *to = kinds_[k] == Kind::fitted      ? fitted
              : kinds_[k] == Kind::residuals ? b - fitted
                                             : leverages[static_cast<std::size_t>(i)];
        if (k == 0 && r == 0) fits.rows.push_back(static_cast<index_t>(numbers[system.row]));
        to += all;
        ++i;
      });
    }
  }
  return fits;
}

/// Finds the leverages of the rows of a group for one response: NaN where a row is missing, 0 where
/// its weight is 0.
void RowFits::find_leverages(const GroupRows& rows, const GroupLine& line, index_t response,
                             std::span<double> leverages, bool& is_off) const {
  const GroupSystem& system = input_.system;
  const SolveProblem problem = system.problem_of(rows.count());
  std::ranges::fill(leverages, not_measured);
  if (std::isnan(line.report.residual_norm)) return;
  const auto write_rows = [&](index_t first, MatrixView<double> to) {
    index_t i = 0;
    rows.visit(first, to.rows, [&](const double* numbers) {
      const bool counts = system.counts(numbers, response);
      const double factor = system.weights < 0 ? 1 : std::sqrt(numbers[system.weights]);
      index_t j = 0;
      if (problem.has_intercept) to(i, j++) = counts ? factor : 0;
      for (const index_t place : system.others) to(i, j++) = counts ? numbers[place] * factor : 0;
      ++i;
    });
  };
  const std::optional<index_t> rank =
      line.findings.rank < 0 ? std::nullopt : std::optional<index_t>(line.findings.rank);
  LeverageReport report;
  if (is_small_for_leverage(problem.m, problem.n)) {
    const Batch<double> weighted(1, problem.m, problem.n);
    write_rows(0, weighted.view()[0]);
    report = small_leverages<double>(problem, rank, weighted.view()[0], leverages);
  } else {
    report = large_leverages<double>(problem, rank, 1,
                                     {.read = [](index_t, index_t) {}, .rows = write_rows},
                                     [&](index_t first, std::span<const double> some) {
                                       std::ranges::copy(some, leverages.begin() + first);
                                     });
  }
  is_off =
      is_off || report.error > solution_bar(ElementType::float64, problem.packed_rows(), problem.n);
  std::size_t i = 0;
  rows.visit(0, rows.count(), [&](const double* numbers) {
    double& leverage = leverages[i++];
    if (system.counts(numbers, response)) return;
    const bool has_weight = system.weights < 0 || numbers[system.weights] > 0;
    leverage = has_weight ? not_measured : 0;
  });
}

void RowFits::finish() {
  const auto responses = static_cast<std::size_t>(input_.system.count_responses());
  numbers_.visit([&](index_t, const double* numbers) {
    for (RowColumns& file : columns_) {
      file.add({numbers, responses});
      numbers += responses;
    }
  });
}

std::vector<std::string> RowFits::paths() const {
  std::vector<std::string> paths;
  for (const RowColumns& file : columns_) paths.push_back(file.path());
  return paths;
}

}  // namespace qrtool
