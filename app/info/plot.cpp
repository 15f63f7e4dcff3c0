// SPDX-License-Identifier: Apache-2.0
// plot.cpp: one histogram below the other.
#include <fmt/format.h>

#include "app/info/info_text.hpp"
#include "app/process/gnuplot.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

std::string table_of(const Histogram& histogram, const Histogram::Column& column, int number) {
  std::string table = fmt::format("$counts{} << END\n", number);
  for (std::size_t i = 0; i < column.counts.size(); ++i)
    table += fmt::format("{}\t{}\n", histogram.range(i), column.counts[i]);
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
             gnuplot_text((outputs.empty() ? subject_of_factors : outputs[0].subject()).many)) +
         plots + "unset multiplot\n";
}

}  // namespace qrtool
