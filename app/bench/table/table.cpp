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

/// Formats a number with `digits` significant digits. Returns an empty text if there is no value.
std::string figure(const std::optional<double>& value, int digits = 4) {
  return value ? format_figure(*value, digits) : std::string(skipped);
}

std::optional<double> milliseconds(const std::optional<Timing>& timing) {
  return timing ? std::optional(timing->median() * 1e3) : std::nullopt;
}

std::string shape_text(const BenchCase& size) { return format_shape({}, size.m, size.n); }

/// Collects the columns.
class Columns {
 public:
  explicit Columns(const BenchResult& result) : result_(result), header_(result.header) {
    add_case();
    add_tool();
    add_baselines();
    add_shapes();
    add_quality();
  }
  std::vector<Column> list() && { return std::move(list_); }

 private:
  template <class Cell>
  void text(std::string heading, std::size_t width, Cell cell) {
    list_.push_back({std::move(heading), width, /*is_text=*/true, std::move(cell)});
  }
  template <class Cell>
  void number(std::string heading, std::size_t width, Cell cell) {
    list_.push_back({std::move(heading), width, /*is_text=*/false, std::move(cell)});
  }

  void add_case() {
    std::size_t width = 9;
    for (const BenchCase& size : result_.cases) width = std::max(width, shape_text(size).size());
    text("case", width, [](const BenchRow& row) { return shape_text(row.size); });
    number("batch", 6, [](const BenchRow& row) { return format_count(row.size.batch); });
    if (header_.kinds.size() > 1)
      text("kind", 14, [](const BenchRow& row) { return row.size.kind; });
    if (std::ranges::any_of(result_.cases, [](const BenchCase& size) { return size.threads > 0; }))
      number("threads", 7, [header = header_](const BenchRow& row) {
        return std::to_string(threads_of(header, row));
      });
  }

  void add_tool() {
    text("variant", 15, [](const BenchRow& row) {
      return row.variant.empty() ? std::string(skipped) : row.variant;
    });
    number(header_.is_on_device() ? "device ms" : "cpu ms", 9,
           [](const BenchRow& row) { return figure(milliseconds(row.tool)); });
    if (header_.seeds > 1)
      number("worst ms", 9, [](const BenchRow& row) {
        return row.tool ? figure(row.tool->worst() * 1e3) : std::string(skipped);
      });
    if (header_.has_first_run)
      number("first ms", 9, [](const BenchRow& row) {
        const bool has_first = row.tool && row.tool->first_seconds;
        return has_first ? figure(*row.tool->first_seconds * 1e3) : std::string(skipped);
      });
    number("check ms", 9, [has_time = header_.has_check_time()](const BenchRow& row) {
      return row.tool && has_time ? figure(row.tool->check_seconds * 1e3) : std::string(skipped);
    });
  }

  void add_baselines() {
    for (std::size_t i = 0; i < header_.baselines.size(); ++i) {
      const std::string heading = header_.baselines[i].name + " ms";
      number(heading, std::max<std::size_t>(11, heading.size()),
             [i](const BenchRow& row) { return figure(milliseconds(row.baselines[i])); });
      number("speed-up", 8, [i](const BenchRow& row) {
        const std::optional<Timing>& baseline = row.baselines[i];
        if (!row.tool || !baseline) return std::string(skipped);
        return figure(speed_up(row, *baseline), 3);
      });
    }
  }

  /// The tool's choice, the fastest, and how many times as long the choice took.
  void add_choice(const std::string& taken, std::optional<BenchChoice> BenchRow::*choice) {
    const auto of = [choice](auto cell) {
      return [choice, cell](const BenchRow& row) {
        const std::optional<BenchChoice>& c = row.*choice;
        return c ? cell(*c) : std::string(skipped);
      };
    };
    const std::size_t width = taken == "plan" ? 16 : 6;
    text(taken, width, of([](const BenchChoice& c) { return c.taken; }));
    number(taken + " ms", 9,
           of([](const BenchChoice& c) { return figure(c.taken_seconds * 1e3); }));
    text("best", width, of([](const BenchChoice& c) { return c.best; }));
    number("behind", 7, of([](const BenchChoice& c) {
             return fmt::format("{:.2f}{}", c.behind(), c.behind() > most_behind ? " !" : "  ");
           }));
  }

  void add_shapes() {
    if (header_.bytes_per_second > 0)
      number("x floor", 7, [](const BenchRow& row) {
        const bool is_known = row.tool && row.floor_seconds;
        return is_known ? figure(row.tool->median() / *row.floor_seconds, 3) : std::string(skipped);
      });
    if (header_.has_choice_of_backend) add_choice("auto", &BenchRow::backend);
    if (header_.has_choice_of_variant) add_choice("plan", &BenchRow::plan);
  }

  void add_quality() {
    number("GFLOP/s", 8, [header = header_](const BenchRow& row) {
      return row.tool ? figure(gflops(header, row)) : std::string(skipped);
    });
    const auto error = [has_error = header_.has_error()](const BenchRow& row, double value) {
      const bool is_measured = row.accuracy.matrices > 0 && has_error;
      return is_measured ? fmt::format("{:.2e}", value) : std::string(skipped);
    };
    number("mean error", 10,
           [error](const BenchRow& row) { return error(row, row.accuracy.mean()); });
    number("worst error", 11,
           [error](const BenchRow& row) { return error(row, row.accuracy.worst); });
    text("notes", 5, [](const BenchRow& row) { return join(row.notes, ","); });
  }

  const BenchResult& result_;
  const BenchHeader& header_;
  std::vector<Column> list_;
};

std::vector<Column> columns_of(const BenchResult& result) { return Columns(result).list(); }

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

/// Returns how often each time was taken, and which runs were checked.
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
  if (h.is_on_device()) {
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

double gflops(const BenchHeader& h, const BenchRow& row) {
  return case_flops(row.size, h.type, h.mode, h.task, h.ridge) / row.tool->median() * 1e-9;
}

double speed_up(const BenchRow& row, const Timing& baseline) {
  return baseline.median() / row.tool->median();
}

int threads_of(const BenchHeader& header, const BenchRow& row) {
  return row.size.threads > 0 ? row.size.threads : header.threads;
}

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
