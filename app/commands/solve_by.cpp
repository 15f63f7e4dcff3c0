// SPDX-License-Identifier: Apache-2.0
// solve_by.cpp: reads rows by their groups, solves some groups at a time, and writes
// them in the order in which their keys came first; or solves the window of every row, and writes
// it in the order of the rows.
#include <fmt/format.h>

#include <algorithm>

#include "app/commands/solve.hpp"
#include "app/process/console.hpp"
#include "app/process/progress.hpp"
#include "app/process/signals.hpp"
#include "app/process/stopwatch.hpp"
#include "app/run/backends/run_cost.hpp"
#include "app/run/files/source_notes.hpp"
#include "app/solve/groups/group_result.hpp"
#include "app/solve/groups/group_solver.hpp"
#include "app/solve/groups/keyed_input.hpp"
#include "app/solve/groups/row_fits.hpp"
#include "app/solve/solve_inputs.hpp"
#include "app/solve/windows/expanding_solver.hpp"
#include "app/solve/windows/window_output.hpp"
#include "app/solve/windows/window_solver.hpp"
#include "core/cpu/cpu_rates.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/open/output.hpp"
#include "io/write/writer.hpp"

namespace qrtool {
namespace {

/// The bytes of answers that are in memory together, unless an eighth of the memory is less.
constexpr std::size_t most_answer_bytes = std::size_t{2} << 20;

std::size_t answer_bytes(const Limits& limits) {
  return std::min(most_answer_bytes, limits.host_bytes / 8);
}

void print_notes_of(const SolveOptions& o, const KeyedInput& input) {
  if (o.quiet) return;
  const Source& source = input.source;
  print_source_notes(source, /*with_order=*/false);
  note_rounded(source);
  if (o.verbose) print_source_details(source);
  if (const std::vector<std::string> same = input.keys.same_number(); !same.empty())
    print_message(
        fmt::format("note: {}: the keys '{}' and '{}' are one number and two groups: a key is text",
                    escape(source.file), escape(same[0]), escape(same[1])));
}

/// Returns the limits with the memory that keys, rows, answers and what waits to be written leave
/// for the solver.
Limits limits_of_solver(Limits limits, const KeyedInput& input, std::size_t waiting) {
  const std::size_t used =
      input.key_bytes() + answer_bytes(limits) + input.rows->memory_bytes() + waiting;
  limits.host_bytes -= std::min(limits.host_bytes, used);
  return limits;
}

/// The bytes of a number in a table, about.
constexpr std::uint64_t bytes_of_number = 18;

/// The numbers of residuals, fitted values and leverages.
std::uint64_t numbers_of_fits(const SolveOptions& o, const KeyedInput& input) {
  return static_cast<std::uint64_t>(input.source.m * input.system.count_responses()) *
         static_cast<std::uint64_t>(o.residuals + o.fitted + o.leverage);
}

/// Returns the results for a row without their values.
WindowResults results_of(const KeyedInput& input) {
  return {input.system.count_responses(), input.system.terms()};
}

/// Returns the time for `lines` windows: beside R of each fixed one, or with R that grows. It is
/// within a quarter of the processor time with 2, 5 and 20 columns (AMD EPYC, 2026-12-01).
double window_seconds(const WindowOptions& window, index_t lines, index_t terms, int threads) {
  const auto n = static_cast<double>(terms);
  const double each = window.expands ? 3.5e-6 + 0.8e-6 * n + 0.03e-6 * n * n : 2e-6;
  return each * static_cast<double>(lines) / threads;
}

/// Reads the table, which alone says how many groups there are, and keeps no row.
ExitCode dry_run(const SolveOptions& o, const Limits& limits) {
  require_place(o.output, /*report=*/"", o.force);
  const Stopwatch watch;
  const KeyedInput input = read_keyed_input(o, limits, KeepRows::count);
  print_notes_of(o, input);
  const index_t groups = input.keys.groups(), terms = input.system.terms();
  const bool has_windows = o.window.are_given();
  const index_t problems = has_windows ? input.source.m : groups;
  const index_t lines = problems * input.system.count_responses();
  const index_t mean = std::max<index_t>(input.source.m / std::max<index_t>(groups, 1), 1);
  const auto [least, most] = std::minmax_element(input.counts.begin(), input.counts.end());
  const std::uint64_t fits = numbers_of_fits(o, input);
  const auto columns = static_cast<std::uint64_t>(columns_of(input.table).size());
  const std::uint64_t row_bytes = sizeof(double) * static_cast<std::uint64_t>(input.source.n + 2);
  const std::uint64_t rows = row_bytes * static_cast<std::uint64_t>(input.source.m);
  const std::uint64_t in_memory = std::min<std::uint64_t>(rows, limits.host_bytes / 2);
  // Windows of several groups wait for the order of the table.
  const auto waiting = !has_windows ? fits
                       : groups > 1
                           ? static_cast<std::uint64_t>(input.source.m * results_of(input).width())
                           : 0;
  RunCost cost{
      .input = o.a,
      .plan = fmt::format("problem   {}{} groups of {} to {} rows, {} columns, float64\n"
                          "variant   one regression for each {} on cpu\n",
                          o.window.expands    ? "expanding windows in "
                          : o.window.rows > 0 ? fmt::format("windows of {} rows in ", o.window.rows)
                                              : "",
                          format_count(groups), format_count(*least), format_count(*most), terms,
                          has_windows ? "row" : "group"),
      .input_bytes = input.input_bytes,
      .output_bytes = (static_cast<std::uint64_t>(lines) * columns + fits) * bytes_of_number,
      .is_output_estimated = true,
      .memory_bytes = in_memory + input.key_bytes() +
                      std::min<std::uint64_t>(waiting * sizeof(double), limits.host_bytes / 8),
      .memory_limit_bytes = limits.host_bytes,
      .scratch_bytes = rows > in_memory ? 2 * rows : 0,
      .read_seconds = watch.seconds(),
      .compute_seconds = has_windows ? window_seconds(o.window, lines, terms, limits.threads) : 0};
  if (!o.window.expands)
    cost.compute_seconds += cpu_seconds({{.count = lines,
                                          .m = has_windows ? o.window.rows : mean,
                                          .n = terms,
                                          .type = ElementType::float64,
                                          .mode = Mode::r},
                                         1},
                                        limits.threads);
  print_costs(o, "solve", o.output, {cost});
  return ExitCode::good;
}

/// What the groups are written to.
struct GroupOutputs {
  GroupTable table;
  RowFits fits;
};

/// Solves the groups of a part that is loaded, some at a time, and writes them.
void solve_part(const RowStore::Part& part, GroupSolver& solver, GroupResult& result,
                const Limits& limits, GroupOutputs& outputs, Progress& progress) {
  const KeyedInput& input = result.input;
  double& seconds = result.seconds.columns[1].seconds;
  const index_t responses = input.system.count_responses(), terms = input.system.terms();
  const auto of_group =
      responses * static_cast<index_t>(sizeof(GroupLine) +
                                       2 * sizeof(double) * static_cast<std::size_t>(terms));
  const auto at_once = std::max<index_t>(1, static_cast<index_t>(answer_bytes(limits)) / of_group);
  const Limits of_solver = limits_of_solver(limits, input, outputs.fits.memory_bytes());
  for (index_t done = 0; done < part.groups; done += at_once) {
    std::vector<GroupRows> groups;
    for (index_t g = done; g < std::min(done + at_once, part.groups); ++g)
      groups.push_back(input.rows->rows_of(part.first_group + g));
    const Stopwatch watch;
    const GroupAnswers answers = solver.solve(groups, of_solver);
    seconds += watch.seconds();
    result.off_leverages += outputs.fits.add(groups, answers);
    for (index_t i = 0; i < std::ssize(answers.lines); ++i) {
      const GroupLine& line = answers.lines[static_cast<std::size_t>(i)];
      const index_t number = (part.first_group + done) * responses + i;
      const auto numbers = [&](const Batch<double>& of) {
        return std::span<const double>(&of.view()[0](i, 0), static_cast<std::size_t>(terms));
      };
      result.add(number, line);
      outputs.table.add({.keys = input.keys.keys_of(number / responses),
                         .response = input.responses[static_cast<std::size_t>(i % responses)],
                         .rows = line.rows,
                         .x = numbers(answers.x),
                         .se = input.table.has_se ? numbers(answers.se) : std::span<const double>(),
                         .rank = line.findings.rank,
                         .r2 = line.r2,
                         .condition = line.findings.condition,
                         .status = status_word(line, terms)});
    }
    progress.add(std::ssize(groups));
  }
}

/// Passes the rows of all groups to a solver of windows, as many at a time as it takes.
/// keep(windows) gets the results.
template <class Solver, class Keep>
void solve_windows(RowStore& store, Solver& solver, Keep keep) {
  std::vector<WindowRun> runs;
  index_t windows = 0;
  const auto solve = [&] {
    keep(solver.solve(runs));
    runs.clear();
    windows = 0;
  };
  for (const RowStore::Part& part : store.parts()) {
    store.load(part);
    for (index_t g = part.first_group; g < part.first_group + part.groups; ++g) {
      const GroupRows rows = store.rows_of(g);
      for (index_t first = 0; first < rows.count(); first += runs.back().count) {
        if (windows == solver.most_windows()) solve();
        const index_t count = std::min(rows.count() - first, solver.most_windows() - windows);
        runs.push_back({.rows = rows, .group = g, .first = first, .count = count});
        windows += count;
      }
    }
    solve();
  }
}

/// Solves the window of every row, and writes all in the order of the rows. Those of several groups
/// wait until all are there.
void solve_windows(const SolveOptions& o, const Limits& limits, KeyedInput& input,
                   GroupResult& result, WindowOutput& output) {
  const index_t responses = input.system.count_responses();
  const WindowResults parts = results_of(input);
  const bool wait = input.keys.groups() > 1;
  RowNumbers waiting;
  if (wait) waiting = RowNumbers(input.source.m, parts.width(), limits.host_bytes / 8, o.scratch);
  const auto put = [&](index_t row, const double* window) {
    output.add(parts, window);
    for (index_t r = 0; r < responses; ++r)
      result.add(row * responses + r, parts.line(window, r).line);
  };
  Progress progress("solve", input.source.m, o.progress_mode(), "rows");
  const auto keep = [&](const WindowResults& found) {
    if (wait) waiting.set(found.rows, found.numbers.data());
    for (index_t i = 0; i < std::ssize(found.rows) && !wait; ++i)
      put(found.rows[static_cast<std::size_t>(i)], found.window(i));
    progress.add(std::ssize(found.rows));
  };
  const Limits of_solver =
      limits_of_solver(limits, input, waiting.memory_bytes() + output.memory_bytes());
  if (o.window.expands) {
    ExpandingSolver solver(input.system, of_solver);
    solve_windows(*input.rows, solver, keep);
  } else {
    const auto longest = std::max_element(input.counts.begin(), input.counts.end());
    WindowSolver solver(input.system, longest == input.counts.end() ? 0 : *longest, of_solver);
    solve_windows(*input.rows, solver, keep);
  }
  if (wait) waiting.visit(put);
}

/// Commits the output of a run.
template <class Commit>
void finish(GroupResult& result, Commit commit) {
  const Stopwatch sync;
  set_interrupt_message(interrupted_while_finishing);
  commit();
  set_interrupt_message(interrupted_when_complete);
  result.seconds.columns[2].seconds = sync.seconds();
}

void run_groups(const SolveOptions& o, const Limits& limits, KeyedInput& input,
                GroupResult& result) {
  GroupOutputs outputs{.table = GroupTable(input.table), .fits = RowFits(o, input, limits)};
  {
    GroupSolver solver(input.system);
    Progress progress("solve", input.keys.groups(), o.progress_mode(), "groups");
    for (const RowStore::Part& part : input.rows->parts()) {
      input.rows->load(part);
      solve_part(part, solver, result, limits, outputs, progress);
    }
  }
  outputs.fits.finish();
  result.files = outputs.fits.paths();
  result.files.insert(result.files.begin(), input.table.path);
  finish(result, [&] { outputs.table.commit(outputs.fits.files()); });
}

void run_windows(const SolveOptions& o, const Limits& limits, KeyedInput& input,
                 GroupResult& result) {
  const Stopwatch watch;
  WindowOutput output(o, input, limits);
  solve_windows(o, limits, input, result, output);
  result.seconds.columns[1].seconds = watch.seconds();
  result.files = output.paths();
  finish(result, [&] { output.commit(); });
}

/// Errors: InputError if A is no table; UsageError if it is a part of one.
void require_whole_table(const std::string& path) {
  require_table(path);
  if (split_location(path).dataset.empty()) return;
  throw UsageError(fmt::format("{}: --by reads a whole table, not a part of it", escape(path)),
                   "name the file alone; --columns chooses columns");
}

}  // namespace

ExitCode solve_by(const SolveOptions& o) {
  const Stopwatch watch;
  const Limits limits = host_limits(o.memory_bytes, o.threads);
  if (!o.by.empty()) require_whole_table(o.a);
  for (const std::string& file : {o.a, o.b, o.system.weights, o.groups})
    if (!file.empty()) refuse_same_file(file, o.output);
  check_output_names(o.output, /*report=*/"", o.force);
  if (is_group_table(o.output)) check_table_names(o.output, o.force);
  if (o.dry_run) return dry_run(o, limits);
  set_interrupt_message("qrtool: interrupted; nothing written\n");
  KeyedInput input = read_keyed_input(o, limits, KeepRows::store);
  print_notes_of(o, input);
  GroupResult result(input, limits.threads);
  result.seconds.columns = {{"read", watch.seconds()}, {"solve"}, {"sync"}};
  (o.window.are_given() ? run_windows : run_groups)(o, limits, input, result);
  result.seconds.total = watch.seconds();
  return print(o, outcome_of(o, result));
}

}  // namespace qrtool
