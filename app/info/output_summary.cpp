// SPDX-License-Identifier: Apache-2.0
// output_summary.cpp: finds the worst errors, their bars and how the others lie below them.
#include "app/info/output_summary.hpp"

#include <algorithm>
#include <cmath>

#include "core/report/ratios.hpp"

namespace qrtool {
namespace {

constexpr const char* errors_of_factors[] = {"residual", "orthogonality"};
constexpr const char* errors_of_solutions[] = {"backward_error", "least_norm_error"};

/// Returns the dimensions of a factor, or none if there is no such dataset.
std::vector<index_t> dims_of(std::string_view factor, const StoredOutput& stored,
                             std::span<const Entry> entries) {
  for (const Entry& entry : entries) {
    std::string_view name = entry.name;
    if (name.starts_with('/')) name.remove_prefix(1);
    if (!stored.dataset.empty() && !name.ends_with(stored.dataset)) continue;
    name = name.substr(0, name.find('/'));
    if (name == factor) return entry.dims;
  }
  return {};
}

/// The shape of the matrices, as far as the shapes of the factors tell it. If only a square R is
/// stored, the rows of A are not known.
struct MatrixShape {
  index_t m = 0, n = 0;
  bool is_known() const { return m > 0 && n > 0; }
};

MatrixShape shape_of(const StoredOutput& stored, std::span<const Entry> entries) {
  const std::vector<index_t> q = dims_of("Q", stored, entries), r = dims_of("R", stored, entries),
                             v = dims_of("V", stored, entries);
  const auto rows = [](const std::vector<index_t>& dims) { return dims[dims.size() - 2]; };
  if (v.size() >= 2) return {rows(v), v.back()};
  if (r.size() < 2) return {};
  if (q.size() >= 2) return {rows(q), r.back()};
  if (rows(r) < r.back()) return {rows(r), r.back()};
  return {};
}

/// Returns the bar of residual and orthogonality, without the part for denormal numbers, or 0 if
/// the shape or the precision is not known.
double usual_bar(const StoredOutput& stored, std::span<const Entry> entries) {
  const MatrixShape shape = shape_of(stored, entries);
  const std::string precision = stored.attribute("precision");
  if (!shape.is_known() || stored.attribute("order") == "column") return 0;
  const bool is_single = std::any_of(entries.begin(), entries.end(), [](const Entry& entry) {
    return entry.stored_type == "float32";
  });
  const Precision u = precision == "mixed"                 ? mixed_precision
                      : precision == "single" || is_single ? single_precision
                                                           : double_precision;
  return standard_bars(shape.m, shape.n, u, {}).orthogonality;
}

ErrorSummary summary_of(const ReportNumbers& numbers, double usual) {
  ErrorSummary summary{.name = numbers.name, .bar = numbers.bar > 0 ? numbers.bar : usual};
  for (std::size_t i = 0; i < numbers.values.size(); ++i) {
    const double error = numbers.values[i];
    if (std::isnan(error) || (summary.where >= 0 && error <= summary.worst)) continue;
    summary.worst = error;
    summary.where = static_cast<index_t>(i);
  }
  return summary;
}

Ratios ratios_of(const ReportNumbers& numbers, const ErrorSummary& summary) {
  Ratios ratios{summary.name, numbers.values};
  for (double& value : ratios.values) value /= summary.bar;
  return ratios;
}

void count_states(OutputSummary& summary) {
  if (const ReportNumbers* status = summary.stored.find("status")) {
    summary.leading = status->dims;
    summary.count = static_cast<index_t>(status->values.size());
    for (const double value : status->values)
      if (value >= 0 && value < static_cast<double>(summary.status.size()))
        ++summary.status[static_cast<std::size_t>(value)];
  }
  if (const ReportNumbers* tries = summary.stored.find("tries"))
    summary.second_tries = std::count(tries->values.begin(), tries->values.end(), 2.0);
}

}  // namespace

OutputSummary sum_up(StoredOutput stored, std::span<const Entry> entries) {
  OutputSummary summary{.stored = std::move(stored)};
  summary.has_solutions = summary.stored.find("backward_error") != nullptr;
  count_states(summary);
  const double usual = summary.has_solutions ? 0 : usual_bar(summary.stored, entries);
  const auto& names = summary.has_solutions ? errors_of_solutions : errors_of_factors;
  for (const char* name : names)
    if (const ReportNumbers* numbers = summary.stored.find(name))
      summary.errors.push_back(summary_of(*numbers, usual));
  std::vector<Ratios> ratios;
  for (const ErrorSummary& error : summary.errors)
    if (error.bar > 0 && error.where >= 0)
      ratios.push_back(ratios_of(*summary.stored.find(error.name), error));
  summary.histogram = count_ratios(ratios);
  return summary;
}

}  // namespace qrtool
