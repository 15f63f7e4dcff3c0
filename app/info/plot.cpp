// SPDX-License-Identifier: Apache-2.0
// plot.cpp: one histogram below the other.
#include "app/info/plot.hpp"

#include <fmt/format.h>

#include "app/process/gnuplot.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

std::string range_text(const Histogram& histogram, std::size_t i) {
  if (i == 0) return "below " + edge_text(histogram.to(0));
  if (i == histogram.edges.size()) return "from " + edge_text(histogram.from(i));
  return edge_text(histogram.from(i)) + " to " + edge_text(histogram.to(i));
}

std::string table_of(const Histogram& histogram, const Histogram::Column& column, int number) {
  std::string table = fmt::format("$counts{} << END\n", number);
  for (std::size_t i = 0; i < column.counts.size(); ++i)
    table += fmt::format("{}\t{}\n", range_text(histogram, i), column.counts[i]);
  return table + "END\n";
}

}  // namespace

int histograms_of(std::span<const OutputSummary> outputs) {
  int number = 0;
  for (const OutputSummary& output : outputs)
    number += static_cast<int>(output.histogram.columns.size());
  return number;
}

std::string plot_script(std::span<const OutputSummary> outputs, const std::string& file) {
  std::string tables, plots;
  int number = 0;
  for (const OutputSummary& output : outputs)
    for (const Histogram::Column& column : output.histogram.columns) {
      tables += table_of(output.histogram, column, ++number);
      const std::string& dataset = output.stored.dataset;
      const std::string title = fmt::format("{}{} over its bar (1 and less passes)",
                                            dataset.empty() ? "" : dataset + ": ", column.name);
      plots += fmt::format("set title {}\nplot $counts{} using 0:2:xtic(1) with boxes notitle\n",
                           gnuplot_text(title), number);
    }
  return tables +
         fmt::format(
             "set datafile separator \"\\t\"\nset multiplot layout {},1 title {}\n"
             "set style fill solid 0.8 noborder\nset boxwidth 0.9\nset grid y\n"
             "set xtics rotate by -30\nset yrange [0:*]\nset ylabel {}\n",
             number, gnuplot_text(file),
             gnuplot_text(!outputs.empty() && outputs[0].has_solutions ? "solutions"
                                                                       : "matrices")) +
         plots + "unset multiplot\n";
}

}  // namespace qrtool
