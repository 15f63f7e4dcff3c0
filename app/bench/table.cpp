// SPDX-License-Identifier: Apache-2.0
// table.cpp: prints the table as text and as Markdown from one list of columns.
#include "app/bench/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "app/run/join.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

constexpr std::string_view skipped = "--";

struct Column {
  std::string heading;
  std::size_t width;
  bool is_text;
  std::function<std::string(const BenchRow&)> cell;
};

std::string tool_heading(const BenchHeader& header) {
  if (header.ranks > 1) return "ranks ms";
  return header.is_on_device() ? "device ms" : "cpu ms";
}

std::string milliseconds(const std::optional<Timing>& timing) {
  return timing ? format_figure(timing->median() * 1e3) : std::string(skipped);
}

std::string shape_text(const BenchCase& size) { return format_shape({}, size.m, size.n); }

void add_tool_columns(std::vector<Column>& columns, const BenchResult& result) {
  std::size_t case_width = 9;
  for (const BenchCase& size : result.cases)
    case_width = std::max(case_width, shape_text(size).size());
  columns.push_back(
      {.heading = "case", .width = case_width, .is_text = true, .cell = [](const BenchRow& row) {
         return shape_text(row.size);
       }});
  columns.push_back(
      {.heading = "batch", .width = 6, .is_text = false, .cell = [](const BenchRow& row) {
         return format_count(row.size.batch);
       }});
  if (std::any_of(result.cases.begin(), result.cases.end(),
                  [](const BenchCase& size) { return size.threads > 0; }))
    columns.push_back({.heading = "threads",
                       .width = 7,
                       .is_text = false,
                       .cell = [threads = result.header.threads](const BenchRow& row) {
                         return fmt::format("{}",
                                            row.size.threads > 0 ? row.size.threads : threads);
                       }});
  columns.push_back(
      {.heading = "variant", .width = 15, .is_text = true, .cell = [](const BenchRow& row) {
         return row.tool ? row.variant : std::string(skipped);
       }});
  columns.push_back({.heading = tool_heading(result.header),
                     .width = 9,
                     .is_text = false,
                     .cell = [](const BenchRow& row) { return milliseconds(row.tool); }});
  columns.push_back({.heading = "check ms",
                     .width = 9,
                     .is_text = false,
                     .cell = [has_time = result.header.has_check_time()](const BenchRow& row) {
                       return row.tool && has_time ? format_figure(row.tool->check_seconds * 1e3)
                                                   : std::string(skipped);
                     }});
}

void add_baseline_columns(std::vector<Column>& columns, const BenchResult& result) {
  for (std::size_t i = 0; i < result.header.baselines.size(); ++i) {
    const std::string heading = result.header.baselines[i].name + " ms";
    columns.push_back(
        {.heading = heading,
         .width = std::max<std::size_t>(11, heading.size()),
         .is_text = false,
         .cell = [i](const BenchRow& row) { return milliseconds(row.baselines[i]); }});
    columns.push_back(
        {.heading = "speed-up", .width = 8, .is_text = false, .cell = [i](const BenchRow& row) {
           const std::optional<Timing>& baseline = row.baselines[i];
           if (!row.tool || !baseline) return std::string(skipped);
           return format_figure(baseline->median() / row.tool->median(), 3);
         }});
  }
}

void add_quality_columns(std::vector<Column>& columns, const BenchResult& result) {
  const BenchHeader header = result.header;
  columns.push_back(
      {.heading = "GFLOP/s", .width = 8, .is_text = false, .cell = [header](const BenchRow& row) {
         if (!row.tool) return std::string(skipped);
         return format_figure(case_flops(row.size, header.mode, header.task) / row.tool->median() *
                              1e-9);
       }});
  const auto error = [header](const BenchRow& row, double value) {
    const bool is_measured = row.accuracy.matrices > 0 && header.has_error();
    return is_measured ? fmt::format("{:.2e}", value) : std::string(skipped);
  };
  columns.push_back(
      {.heading = "mean error",
       .width = 10,
       .is_text = false,
       .cell = [error](const BenchRow& row) { return error(row, row.accuracy.mean()); }});
  columns.push_back(
      {.heading = "worst error",
       .width = 11,
       .is_text = false,
       .cell = [error](const BenchRow& row) { return error(row, row.accuracy.worst); }});
  columns.push_back(
      {.heading = "notes", .width = 5, .is_text = true, .cell = [](const BenchRow& row) {
         return join(row.notes, ",");
       }});
}

std::vector<Column> columns_of(const BenchResult& result) {
  std::vector<Column> columns;
  add_tool_columns(columns, result);
  add_baseline_columns(columns, result);
  add_quality_columns(columns, result);
  return columns;
}

template <class Cell>
std::string text_line(const std::vector<Column>& columns, Cell cell) {
  std::string line;
  for (const Column& column : columns)
    line += column.is_text ? fmt::format("{:<{}}  ", cell(column), column.width)
                           : fmt::format("{:>{}}  ", cell(column), column.width);
  line.resize(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string task_text(const BenchHeader& h) {
  switch (h.task) {
    case BenchTask::solve:
      return "least squares, one right side for each matrix";
    case BenchTask::solve_shared:
      return "least squares, one matrix for all right sides";
    default:
      return fmt::format("mode {}", name_of(h.mode));
  }
}

/// The lines of the header, each with its label.
std::vector<std::pair<std::string, std::string>> header_lines(const BenchHeader& h) {
  const std::string threads = fmt::format("{} thread{}", h.threads, h.threads == 1 ? "" : "s");
  const std::string arithmetic = h.arithmetic == Arithmetic::any
                                     ? std::string()
                                     : fmt::format(", arithmetic {}", name_of(h.arithmetic));
  std::vector<std::pair<std::string, std::string>> lines;
  lines.emplace_back("qrtool",
                     fmt::format("{}, {}{}, {}, Gaussian matrices, seed {}", QRTOOL_VERSION,
                                 name_of(h.type), arithmetic, task_text(h), h.seed));
  if (h.ranks > 1) {
    lines.emplace_back("ranks", fmt::format("{}, each {}; rows shared, data resident; wall time "
                                            "until R is on rank 0",
                                            h.ranks, escape(h.device)));
  } else if (h.is_on_device()) {
    lines.emplace_back("device", fmt::format("{}; its own clock, data resident, without the check",
                                             escape(h.device)));
  } else {
    lines.emplace_back("cpu",
                       fmt::format("{}, {}; wall time {} the check", escape(h.device), threads,
                                   h.has_check_time() ? "less the share of" : "with"));
  }
  for (const BenchHeader::Baseline& baseline : h.baselines)
    lines.emplace_back(baseline.name, escape(baseline.text));
  if (h.is_on_device() && !h.baselines.empty())
    lines.emplace_back(
        "baselines",
        fmt::format("{}, {}; wall time{}", escape(h.processor), threads,
                    h.task == BenchTask::factor ? " less the share of any check" : ""));
  lines.emplace_back("each time",
                     fmt::format("median of {} after {} warm-up{}", h.repeats.timed,
                                 h.repeats.warm_up, h.repeats.warm_up == 1 ? "" : "s"));
  lines.emplace_back("error", h.task != BenchTask::factor
                                  ? "backward error of x, as solve reports it"
                              : h.has_error() ? "||QR - A||, Frobenius norm, of one matrix"
                                              : "not measured: there is no Q");
  return lines;
}

std::string note_lines(const BenchResult& result, std::string_view pattern) {
  std::string text;
  for (std::size_t i = 0; i < result.notes.size(); ++i)
    text += fmt::format(fmt::runtime(pattern), i + 1, result.notes[i]);
  return text;
}

std::string markdown_line(const std::vector<std::string>& cells) {
  return "| " + join(cells, " | ") + " |\n";
}

}  // namespace

void BenchResult::add_note(BenchRow& row, const std::string& text) {
  const auto found = std::find(notes.begin(), notes.end(), text);
  const auto number = static_cast<int>(found - notes.begin()) + 1;
  if (found == notes.end()) notes.push_back(text);
  if (std::find(row.notes.begin(), row.notes.end(), number) == row.notes.end())
    row.notes.push_back(number);
}

bool BenchResult::has_failed() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const BenchRow& row) { return row.accuracy.failed > 0; });
}

std::string format_figure(double value, int digits) {
  if (!(value > 0) || std::isinf(value)) return fmt::format("{}", value);
  const int before_point = static_cast<int>(std::floor(std::log10(value))) + 1;
  return fmt::format("{:.{}f}", value, std::clamp(digits - before_point, 0, 4));
}

std::string text_head(const BenchResult& result) {
  std::string text;
  const auto lines = header_lines(result.header);
  std::size_t width = 11;
  for (const auto& [label, line] : lines) width = std::max(width, label.size() + 2);
  for (const auto& [label, line] : lines) text += fmt::format("{:<{}}{}\n", label, width, line);
  return text + "\n" +
         text_line(columns_of(result), [](const Column& column) { return column.heading; });
}

std::string text_row(const BenchResult& result, const BenchRow& row) {
  return text_line(columns_of(result), [&](const Column& column) { return column.cell(row); });
}

std::string text_notes(const BenchResult& result) {
  return result.notes.empty() ? "" : "\n" + note_lines(result, "[{}] {}\n");
}

std::string to_markdown(const BenchResult& result) {
  std::string text;
  for (const auto& [label, line] : header_lines(result.header))
    text += fmt::format("- {}: {}\n", label, line);
  const std::vector<Column> columns = columns_of(result);
  std::vector<std::string> headings, rules;
  for (const Column& column : columns) {
    headings.push_back(column.heading);
    rules.push_back(column.is_text ? "---" : "---:");
  }
  text += "\n" + markdown_line(headings) + markdown_line(rules);
  for (const BenchRow& row : result.rows) {
    std::vector<std::string> cells;
    for (const Column& column : columns) cells.push_back(column.cell(row));
    text += markdown_line(cells);
  }
  return result.notes.empty() ? text : text + "\n" + note_lines(result, "{}. {}\n");
}

}  // namespace qrtool
