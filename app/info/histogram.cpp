// SPDX-License-Identifier: Apache-2.0
// histogram.cpp: chooses intervals, counts, and draws bars of text.
#include "app/info/histogram.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/text.hpp"

namespace qrtool {
namespace {

constexpr std::size_t most_intervals = 14;
constexpr int bar_width = 20;
// Double precision has no smaller ratio of an error to its bar that means anything.
constexpr double least_edge = 1e-12, most_edge = 1e12;

/// Returns the rising edges from the last that is at most `least` to the first that is above
/// `most`.
std::vector<double> edges_between(double least, double most, std::span<const double> steps) {
  std::vector<double> edges;
  for (int power = -12; power <= 12; ++power)
    for (const double step : steps) {
      // Going through decimal text gives the number that a reader of the table would type.
      const double edge = std::stod(fmt::format("{}e{}", step, power));
      if (edge <= least) edges.clear();
      if (edges.empty() || edges.back() <= most) edges.push_back(edge);
    }
  return edges;
}

std::vector<double> choose_edges(double least, double most) {
  constexpr double finest[] = {1, 1.5, 2, 3, 5, 7}, fine[] = {1, 2, 5}, coarse[] = {1};
  least = std::clamp(least, least_edge, most_edge);
  most = std::clamp(most, least_edge, most_edge);
  std::vector<double> edges = edges_between(least, most, finest);
  if (edges.size() + 1 > most_intervals) edges = edges_between(least, most, fine);
  if (edges.size() + 1 > most_intervals) edges = edges_between(least, most, coarse);
  while (edges.size() + 1 > most_intervals) edges.erase(edges.begin());
  return edges;
}

std::size_t interval_of(double ratio, std::span<const double> edges) {
  return static_cast<std::size_t>(std::upper_bound(edges.begin(), edges.end(), ratio) -
                                  edges.begin());
}

/// Returns "0.02" or "5e-06".
std::string edge_text(double edge) {
  return edge >= 1e-4 && edge < 1e5 ? fmt::format("{}", edge) : fmt::format("{:.0e}", edge);
}

}  // namespace

std::string Histogram::range(std::size_t i) const {
  if (i == 0) return "below " + (edges.empty() ? "inf" : edge_text(edges.front()));
  const std::string from = edge_text(edges[i - 1]);
  return i == edges.size() ? "from " + from : from + " to " + edge_text(edges[i]);
}

Histogram count_ratios(std::span<const Ratios> errors) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const Ratios& error : errors)
    for (const double ratio : error.values) {
      if (ratio > 0) least = std::min(least, ratio);
      if (ratio > 0) most = std::max(most, ratio);
    }
  Histogram histogram;
  if (most > 0) histogram.edges = choose_edges(least, most);
  for (const Ratios& error : errors) {
    std::vector<index_t> counts(histogram.edges.size() + 1, 0);
    for (const double ratio : error.values)
      if (!std::isnan(ratio)) ++counts[interval_of(ratio, histogram.edges)];
    histogram.columns.push_back({error.name, std::move(counts)});
  }
  return histogram;
}

std::string to_text(const Histogram& histogram) {
  index_t most = 1;
  for (const auto& column : histogram.columns)
    most = std::max(most, *std::max_element(column.counts.begin(), column.counts.end()));
  std::string text = fmt::format("{:<18}", "error over its bar");
  for (const auto& column : histogram.columns)
    text += fmt::format("  {:>9} {:<20}", "", column.name);
  text.erase(text.find_last_not_of(' ') + 1);
  text += '\n';
  for (std::size_t i = 0; i <= histogram.edges.size(); ++i) {
    const bool is_empty = std::all_of(histogram.columns.begin(), histogram.columns.end(),
                                      [i](const auto& column) { return column.counts[i] == 0; });
    // The first and the last interval are open.
    if (is_empty && (i == 0 || i == histogram.edges.size())) continue;
    std::string line = fmt::format("{:<18}", histogram.range(i));
    for (const auto& column : histogram.columns) {
      const index_t count = column.counts[i];
      const int length = static_cast<int>(
          std::ceil(static_cast<double>(count) * bar_width / static_cast<double>(most)));
      line += fmt::format("  {:>9} {:<20}", format_count(count), std::string(length, '#'));
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

}  // namespace qrtool
