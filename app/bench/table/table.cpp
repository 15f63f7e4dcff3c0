// SPDX-License-Identifier: Apache-2.0
// table.cpp: prints the table as text and as Markdown from one list of columns.
#include "app/bench/table/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "app/bench/table/choice.hpp"
#include "core/join.hpp"
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
  if (result.header.kinds.size() > 1)
    columns.push_back(
        {.heading = "kind", .width = 14, .is_text = true, .cell = [](const BenchRow& row) {
           return row.size.kind;
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
         return row.variant.empty() ? std::string(skipped) : row.variant;
       }});
  columns.push_back({.heading = tool_heading(result.header),
                     .width = 9,
                     .is_text = false,
                     .cell = [](const BenchRow& row) { return milliseconds(row.tool); }});
  if (result.header.seeds > 1)
    columns.push_back(
        {.heading = "worst ms", .width = 9, .is_text = false, .cell = [](const BenchRow& row) {
           return row.tool ? format_figure(row.tool->worst() * 1e3) : std::string(skipped);
         }});
  if (result.header.has_first_run)
    columns.push_back(
        {.heading = "first ms", .width = 9, .is_text = false, .cell = [](const BenchRow& row) {
           return row.tool && row.tool->first_seconds
                      ? format_figure(*row.tool->first_seconds * 1e3)
                      : std::string(skipped);
         }});
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

/// Adds columns for the tool's choice, for the fastest, and for how many times as long the choice
/// took.
void add_choice_columns(std::vector<Column>& columns, const std::string& taken,
                        std::optional<BenchChoice> BenchRow::*choice) {
  const auto add = [&](std::string heading, std::size_t width, bool is_text, auto cell) {
    columns.push_back({.heading = std::move(heading),
                       .width = width,
                       .is_text = is_text,
                       .cell = [choice, cell](const BenchRow& row) {
                         const std::optional<BenchChoice>& c = row.*choice;
                         return c ? cell(*c) : std::string(skipped);
                       }});
  };
  const std::size_t width = taken == "plan" ? 16 : 6;
  add(taken, width, true, [](const BenchChoice& c) { return c.taken; });
  add(taken + " ms", 9, false,
      [](const BenchChoice& c) { return format_figure(c.taken_seconds * 1e3); });
  add("best", width, true, [](const BenchChoice& c) { return c.best; });
  add("behind", 7, false, [](const BenchChoice& c) {
    return fmt::format("{:.2f}{}", c.behind(), c.behind() > most_behind ? " !" : "  ");
  });
}

void add_shapes_columns(std::vector<Column>& columns, const BenchResult& result) {
  if (result.header.bytes_per_second > 0)
    columns.push_back(
        {.heading = "x floor", .width = 7, .is_text = false, .cell = [](const BenchRow& row) {
           if (!row.tool || !row.floor_seconds) return std::string(skipped);
           return format_figure(row.tool->median() / *row.floor_seconds, 3);
         }});
  if (result.header.has_choice_of_backend) add_choice_columns(columns, "auto", &BenchRow::backend);
  if (result.header.has_choice_of_variant) add_choice_columns(columns, "plan", &BenchRow::plan);
}

void add_quality_columns(std::vector<Column>& columns, const BenchResult& result) {
  const BenchHeader header = result.header;
  columns.push_back(
      {.heading = "GFLOP/s", .width = 8, .is_text = false, .cell = [header](const BenchRow& row) {
         if (!row.tool) return std::string(skipped);
         return format_figure(
             case_flops(row.size, header.type, header.mode, header.task, header.ridge) /
             row.tool->median() * 1e-9);
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
  add_shapes_columns(columns, result);
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
  const std::string solve =
      "least squares" + (h.ridge > 0 ? fmt::format(" with ridge {:g}", h.ridge) : "");
  switch (h.task) {
    case BenchTask::solve:
      return solve + ", one right side for each matrix";
    case BenchTask::solve_shared:
      return solve + ", one matrix for all right sides";
    case BenchTask::solve_weighed:
      return solve + ", one matrix for all right sides, each with weights of its own";
    default:
      return fmt::format("mode {}{}", name_of(h.mode),
                         h.mode != Mode::raw && h.sign == Sign::lapack ? ", LAPACK's signs" : "");
  }
}

std::string matrices_text(const BenchHeader& h) {
  std::string text = h.kinds == BenchHeader{}.kinds
                         ? std::string("Gaussian matrices")
                         : fmt::format("{} matrices", join(h.kinds, ", "));
  text += h.seeds == 1 ? fmt::format(", seed {}", h.seed)
                       : fmt::format(", seeds {} to {}", h.seed,
                                     h.seed + static_cast<std::uint64_t>(h.seeds) - 1);
  if (h.is_cold) text += ", caches emptied before each run";
  if (h.is_portable) text += ", portable kernels";
  return text;
}

/// How often each time was taken, and which runs were checked.
std::string repeats_text(const BenchHeader& h) {
  std::string text = fmt::format("median of {} after {} warm-up{}", h.repeats.timed,
                                 h.repeats.warm_up, h.repeats.warm_up == 1 ? "" : "s");
  if (h.repeats.most > h.repeats.timed)
    text += fmt::format(", of more where its standard error is above {:.0f} %",
                        100 * most_standard_error);
  if (h.seeds > 1) text += "; median of the batches' medians, and the worst of these";
  return text + "; the errors are of a run that the seed chose";
}

/// Returns the lines of the header, each with its label.
std::vector<std::pair<std::string, std::string>> header_lines(const BenchHeader& h) {
  const std::string threads = fmt::format("{} thread{}", h.threads, h.threads == 1 ? "" : "s");
  const std::string arithmetic = h.arithmetic == Arithmetic::any
                                     ? std::string()
                                     : fmt::format(", arithmetic {}", name_of(h.arithmetic));
  std::vector<std::pair<std::string, std::string>> lines;
  lines.emplace_back("qrtool", fmt::format("{}, {}{}, {}, {}", QRTOOL_VERSION, name_of(h.type),
                                           arithmetic, task_text(h), matrices_text(h)));
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
  lines.emplace_back("each time", repeats_text(h));
  if (h.bytes_per_second > 0)
    lines.emplace_back(
        "x floor", fmt::format("the data of a case move once, at the rate of a copy, {:.3g} GB/s",
                               h.bytes_per_second * 1e-9));
  if (h.has_choice_of_backend)
    lines.emplace_back(
        "auto", fmt::format("--backend auto for one case, from host memory to host memory with the "
                            "check, a device with its start; ! is {} times the best or more",
                            most_behind));
  if (h.has_choice_of_variant)
    lines.emplace_back(
        "plan",
        fmt::format("the variant of the plan, data resident, without the check; ! is {} times "
                    "the best or more",
                    most_behind));
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

std::string html_text(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '&'   ? std::string("&amp;")
           : c == '<' ? std::string("&lt;")
           : c == '>' ? std::string("&gt;")
           : c == '"' ? std::string("&quot;")
                      : std::string(1, c);
  return out;
}

constexpr std::string_view html_head = R"(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>qrtool bench</title>
<style>
body { font: 16px/1.5 sans-serif; max-width: 72rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff; }
dt { font-weight: bold; float: left; clear: left; width: 8rem; }
dd { margin-left: 9rem; }
div { overflow-x: auto; }
svg { width: 60rem; max-width: 100%; height: auto; }
table { border-collapse: collapse; }
th, td { padding: 0.25rem 0.75rem; border-bottom: 1px solid #ccc; text-align: left; white-space: nowrap; }
th.number, td.number { text-align: right; font-variant-numeric: tabular-nums; }
</style>
</head>
<body>
<h1>qrtool bench</h1>
)";

/// `tag`: th or td.
std::string html_line(const std::vector<Column>& columns, std::string_view tag,
                      const std::function<std::string(const Column&)>& cell) {
  std::string line = "<tr>";
  for (const Column& column : columns)
    line += fmt::format("<{0}{1}>{2}</{0}>", tag, column.is_text ? "" : " class=\"number\"",
                        html_text(cell(column)));
  return line + "</tr>\n";
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

std::string to_html(const BenchResult& result, const std::string& picture) {
  std::string page = std::string(html_head) + "<h2>What was measured</h2>\n<dl>\n";
  auto lines = header_lines(result.header);
  lines.emplace_back(
      "host", fmt::format("{}, {} thread{}", escape(result.header.processor), result.header.threads,
                          result.header.threads == 1 ? "" : "s"));
  for (const auto& [label, line] : lines)
    page += fmt::format("<dt>{}</dt><dd>{}</dd>\n", html_text(label), html_text(line));
  page += "</dl>\n";
  if (!picture.empty())
    page += fmt::format("<h2>Times and speed-ups</h2>\n<div>{}</div>\n", picture);
  const std::vector<Column> columns = columns_of(result);
  page +=
      "<h2>Table</h2>\n<p>Speed-up is the time of the program before it divided by the time of "
      "qrtool.</p>\n<div><table>\n<thead>\n" +
      html_line(columns, "th", [](const Column& column) { return column.heading; }) +
      "</thead>\n<tbody>\n";
  for (const BenchRow& row : result.rows)
    page += html_line(columns, "td", [&](const Column& column) { return column.cell(row); });
  page += "</tbody>\n</table></div>\n";
  if (!result.notes.empty()) {
    page += "<ol>\n";
    for (const std::string& note : result.notes) page += "<li>" + html_text(note) + "</li>\n";
    page += "</ol>\n";
  }
  return page + "</body>\n</html>\n";
}

}  // namespace qrtool
