// SPDX-License-Identifier: Apache-2.0
// table.hpp: the result of `qrtool bench` as text, Markdown, CSV and JSON.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/bench/timing/cases.hpp"
#include "app/bench/timing/machine_state.hpp"
#include "app/bench/timing/timing.hpp"
#include "core/matrix/matrices.hpp"

namespace qrtool {

/// The description above the table.
struct BenchHeader {
  struct Baseline {
    std::string name, text;
  };
  std::string backend, device;  // of the tool
  ElementType type = ElementType::float32;
  Arithmetic arithmetic = Arithmetic::any;
  Mode mode = Mode::reduced;
  Sign sign = Sign::positive;
  std::vector<std::string> kinds{std::string(MatrixRequest{}.kind)};
  bool is_cold = false, is_portable = false;
  int seeds = 1;
  BenchTask task = BenchTask::factor;
  double ridge = 0;  // of least squares
  std::uint64_t seed = 0;
  Repeats repeats;
  std::string processor;  // of the host, where the baselines run
  int threads = 1;
  std::vector<Baseline> baselines;
  double bytes_per_second = 0;  // of a copy in the memory of the device; 0: not measured
  bool has_first_run = false;   // the times of a first run, which builds its kernels
  bool has_choice_of_backend = false, has_choice_of_variant = false;

  bool is_on_device() const { return backend != "cpu"; }
  /// Whether the check has its own time. On the CPU x and its check are computed together.
  bool has_check_time() const { return is_on_device() || task == BenchTask::factor; }
  /// Whether ||QR - A|| exists, which it does not for R alone.
  bool has_error() const { return task != BenchTask::factor || mode != Mode::r; }
};

/// The tool's choice for a case, and the fastest one.
struct BenchChoice {
  std::string taken, best;
  double taken_seconds = 0, best_seconds = 0;
  double behind() const { return taken_seconds / best_seconds; }
};

/// One line of the table, which is one case. A cell without a timing was skipped, and a note says
/// why.
struct BenchRow {
  BenchCase size;
  std::string variant;
  std::optional<Timing> tool;
  Accuracy accuracy;  // of the tool
  std::vector<std::optional<Timing>> baselines;
  std::vector<int> notes;                    // numbers, from 1
  std::optional<double> floor_seconds;       // in which its data move once
  std::optional<BenchChoice> backend, plan;  // --sweep shapes
};

struct BenchResult {
  BenchHeader header;
  std::vector<BenchCase> cases;  // all that were asked for
  std::vector<BenchRow> rows;    // the cases that are done
  std::vector<std::string> notes;
  MachineState before, after;

  /// Adds a note to a row. Equal texts share a number.
  void add_note(BenchRow& row, const std::string& text);
  bool has_failed() const;
};

/// Returns numbers that follow from a row, for all forms of the table. `row` has a time of the
/// tool.
double gflops(const BenchHeader& header, const BenchRow& row);
double speed_up(const BenchRow& row, const Timing& baseline);
/// Returns the number of CPU threads that the tool may use.
int threads_of(const BenchHeader& header, const BenchRow& row);

/// Formats significant digits, at most four after the point, without an exponent: "0.8432",
/// "12.34", "1234".
std::string format_figure(double value, int digits = 4);

/// Returns the parts of a table that is printed row by row: everything above the first row, one
/// row, and everything below the last.
std::string text_head(const BenchResult& result);
std::string text_row(const BenchResult& result, const BenchRow& row);
std::string text_notes(const BenchResult& result);

std::string to_markdown(const BenchResult& result);
/// Returns a page that needs no other file. `picture`: an <svg> element; empty: the page has none.
std::string to_html(const BenchResult& result, const std::string& picture);
/// Returns the table as CSV, with one line for each case; a skipped cell is empty.
std::string to_csv(const BenchResult& result);
/// Returns the table as JSON of the schema qrtool.bench/1, with times in seconds.
std::string to_json(const BenchResult& result);

}  // namespace qrtool
