// SPDX-License-Identifier: Apache-2.0
// plot.cpp: tables for gnuplot, and how it draws them.
#include "app/bench/table/plot.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/bench/table/floor.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

std::string case_text(const BenchCase& size) {
  const std::string threads =
      size.threads > 0 ? fmt::format(", {} thread{}", size.threads, size.threads == 1 ? "" : "s")
                       : "";
  return fmt::format("{}{}{}", size.batch == 1 ? "" : format_count(size.batch) + " of ",
                     format_shape({}, size.m, size.n), threads);
}

std::string number(bool is_known, double value) {
  return is_known ? fmt::format("\t{:.6g}", value) : "\tNaN";
}

/// Writes one line for each case, below a heading. Columns are separated by tabs.
std::string times_of(const BenchResult& result, double bytes_per_second) {
  std::string table = "$times << END\ncase\tqrtool";
  for (const auto& baseline : result.header.baselines)
    table += fmt::format("\t{}", escape(baseline.name));
  if (bytes_per_second > 0) table += "\tdata moved once";
  for (const BenchRow& row : result.rows) {
    table += "\n" + case_text(row.size) +
             number(row.tool.has_value(), row.tool ? row.tool->median() * 1e3 : 0);
    for (const std::optional<Timing>& each : row.baselines)
      table += number(each.has_value(), each ? each->median() * 1e3 : 0);
    if (bytes_per_second > 0)
      table += number(true, floor_seconds(result.header, row.size, bytes_per_second) * 1e3);
  }
  return table + "\nEND\n";
}

std::string speed_ups_of(const BenchResult& result) {
  std::string table = "$ups << END\ncase";
  for (const auto& baseline : result.header.baselines)
    table += fmt::format("\t{} / qrtool", escape(baseline.name));
  for (const BenchRow& row : result.rows) {
    table += "\n" + case_text(row.size);
    for (const std::optional<Timing>& each : row.baselines)
      table += number(row.tool && each, row.tool && each ? speed_up(row, *each) : 0);
  }
  return table + "\nEND\n";
}

std::string title_of(const BenchHeader& h) {
  return fmt::format("QR, {}, mode {}: qrtool on {} ({})", name_of(h.type), name_of(h.mode),
                     h.backend, escape(h.device));
}

}  // namespace

PictureSize plot_size(const BenchResult& result) {
  const int cases = static_cast<int>(result.rows.size());
  return {.width = std::clamp(300 + 60 * cases, 700, 2400),
          .height = result.header.baselines.empty() ? 460 : 820};
}

std::string plot_script(const BenchResult& result, double bytes_per_second) {
  const std::size_t baselines = result.header.baselines.size();
  const std::size_t lines = baselines + (bytes_per_second > 0 ? 2 : 1);
  std::string script = times_of(result, bytes_per_second);
  if (baselines > 0) script += speed_ups_of(result);
  script += fmt::format(
      "set datafile separator \"\\t\"\nset datafile missing 'NaN'\n"
      "set multiplot layout {},1 title {}\n"
      "set lmargin 12\nset rmargin 24\nset bmargin 7\nset key at screen 0.995, graph 1 right top\n"
      "set grid y\nset xtics rotate by -40\n"
      "set xrange [-0.6:{}]\n"
      "set logscale y\nset format y '%g'\nset ylabel 'ms for the whole batch'\n"
      "plot for [i=2:{}] $times using 0:i:xtic(1) with linespoints linewidth 2 pointtype 7 "
      "title columnheader(i)\n",
      baselines > 0 ? 2 : 1, gnuplot_text(title_of(result.header)),
      static_cast<double>(result.rows.size()) - 0.4, lines + 1);
  if (baselines > 0)
    script += fmt::format(
        "set ylabel 'times as fast'\nset yrange [0.1<*<0.5:*]\n"
        "set style data histograms\nset style histogram clustered gap 1\n"
        "set style fill solid 0.8 noborder\n"
        "plot for [i=2:{}] $ups using i:xtic(1) linetype i title columnheader(i), "
        "1 with lines linecolor black dashtype 2 title 'as fast'\n",
        baselines + 1);
  return script + "unset multiplot\n";
}

}  // namespace qrtool
