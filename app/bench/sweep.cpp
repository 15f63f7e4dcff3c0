// SPDX-License-Identifier: Apache-2.0
// sweep.cpp: predicts, prepares and times a case cell by cell, and adds notes.
#include "app/bench/sweep.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <new>
#include <utility>

#include "app/bench/table/choice.hpp"
#include "app/bench/table/floor.hpp"
#include "app/bench/timing/cold.hpp"
#include "app/process/console.hpp"
#include "app/process/progress.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Shows one line on standard error while a cell is measured, if that is a terminal. With `always`
/// it is printed line by line elsewhere.
class StatusLine {
 public:
  StatusLine(ProgressMode mode, const std::string& text)
      : is_shown_(mode != ProgressMode::never && is_terminal(STDERR_FILENO)) {
    if (is_shown_) show_line(text);
    if (!is_shown_ && mode == ProgressMode::always) write_stderr(text + "\n");
  }
  ~StatusLine() {
    if (is_shown_) show_line("");
  }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

 private:
  bool is_shown_;
};

bool is_gpu(const Backend& backend) { return backend.name() != "cpu" && !backend.limits().is_cpu; }

bool has_both(const BenchHeader& header) {
  return std::ranges::all_of(baselines_of_choice, [&](std::string_view name) {
    return std::ranges::find(header.baselines, name, &BenchHeader::Baseline::name) !=
           header.baselines.end();
  });
}

}  // namespace

Sweep::Sweep(const BenchOptions& options, const BenchSchedule& schedule, const BenchSetup& setup)
    : options_(options), schedule_(schedule), setup_(setup) {
  const bool is_cpu = setup.backend.limits().is_cpu, is_planned = setup.variant.empty();
  columns_.push_back({make_tool(setup), CostHistory(is_cpu, !is_cpu && is_planned)});
  for (const Baseline* baseline : baselines_of(options))
    columns_.push_back(
        {baseline->make(setup), CostHistory(is_cpu || !baseline->is_on_device,
                                            !is_cpu && is_planned && baseline->is_on_device)});
  const std::size_t baselines = columns_.size() - 1;
  if (options.against_variants) {
    for (std::unique_ptr<Contestant>& variant : make_variants(setup, type_of(options)))
      columns_.push_back({std::move(variant), CostHistory(is_cpu)});
  }
  if (options.cold) {
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const bool is_of_backend =
          i == 0 || i > baselines || baselines_of(options)[i - 1]->is_on_device;
      columns_[i].flush = is_of_backend ? flush_of(setup.backend, setup.limits.threads)
                                        : flush_of_host(setup.limits.threads);
    }
  }
  result_.header = header(setup);
  if (options.sweep_kind == SweepKind::shapes) {
    result_.header.bytes_per_second = moved_bytes_per_second(setup.backend);
    result_.header.has_choice_of_variant = options.against_variants;
    result_.header.has_choice_of_backend = is_gpu(setup.backend) && has_both(result_.header);
  }
  result_.cases = schedule.cases;
}

BenchHeader Sweep::header(const BenchSetup& setup) const {
  BenchHeader header{.backend = setup.backend.name(),
                     .device = setup.backend.device(),
                     .type = type_of(options_),
                     .arithmetic = options_.arithmetic,
                     .mode = options_.mode,
                     .sign = sign_of(options_),
                     .kinds = options_.kinds,
                     .is_cold = options_.cold,
                     .is_portable = options_.backend.portable,
                     .seeds = schedule_.seeds,
                     .task = task_of(options_),
                     .ridge = setup.ridge,
                     .seed = options_.seed,
                     .repeats = schedule_.repeats,
                     .processor = CpuBackend(setup.limits).device(),
                     .threads = setup.limits.threads,
                     .baselines = {},
                     .has_first_run = options_.first_run};
  for (std::size_t i = 1; i < columns_.size(); ++i)
    header.baselines.push_back({columns_[i].contestant->name(), columns_[i].contestant->text()});
  return header;
}

const BenchRow& Sweep::measure(const BenchCase& size) {
  BenchRow row;
  row.size = size;
  const int cores = machine_cores();
  if (size.threads > cores)
    result_.add_note(row, fmt::format("more threads than cores, of which there are {}", cores));
  row.tool = measure(columns_.front(), row);
  for (std::size_t i = 1; i < columns_.size(); ++i)
    row.baselines.push_back(measure(columns_[i], row));
  add_choices(row);
  return result_.rows.emplace_back(std::move(row));
}

void Sweep::add_choices(BenchRow& row) const {
  const BenchHeader& header = result_.header;
  if (header.bytes_per_second > 0)
    row.floor_seconds = floor_seconds(header, row.size, header.bytes_per_second);
  if (header.has_choice_of_backend) row.backend = choice_of_backend(row, header, setup_);
  if (header.has_choice_of_variant) row.plan = choice_of_variant(row, header);
}

std::optional<Timing> Sweep::measure(Column& column, BenchRow& row) {
  const auto skip = [&](std::string_view why) {
    result_.add_note(row, fmt::format("{}: {}", column.contestant->name(), why));
    return std::nullopt;
  };
  try {
    const Timing timing = time(column, row);
    if (has_built(column, timing)) return std::nullopt;
    return timing;
  } catch (const std::bad_alloc&) {
    return skip("out of memory");
  } catch (const std::exception& error) {
    return skip(error.what());
  }
}

Timing Sweep::time(Column& column, BenchRow& row) {
  const std::string name = column.contestant->name();
  const double flops =
      case_flops(row.size, result_.header.type, options_.mode, result_.header.task, setup_.ridge);
  const double limit = seconds_left();
  refuse_if_too_slow(column.history.predict(row.size, flops), limit);
  const StatusLine status(
      options_.progress_mode(),
      fmt::format("{}/{}  {} x {}  {}", result_.rows.size() + 1, result_.cases.size(),
                  format_shape({}, row.size.m, row.size.n), format_count(row.size.batch), name));
  const auto seeds = static_cast<std::uint64_t>(schedule_.seeds);
  const double share = limit / static_cast<double>(seeds);
  Timing timing = time(column, row, setup_.seed, share);
  column.history.add(row.size, flops, timing.median() + timing.check_seconds);
  for (std::uint64_t i = 1; i < seeds; ++i)
    timing.include(time(column, row, setup_.seed + i, share));
  if (&column == &columns_.front()) {
    keep_quality(timing, row);
  } else if (timing.accuracy.failed > 0) {
    result_.add_note(row,
                     fmt::format("{}: {} of {} failed", name, format_count(timing.accuracy.failed),
                                 format_count(timing.accuracy.matrices)));
  }
  add_timing_notes(column, timing, row);
  return timing;
}

/// The time for building kernels in the first run on a device, in addition to the limit.
constexpr double most_build_seconds = 60;

/// Times the batch of one seed.
Timing Sweep::time(Column& column, BenchRow& row, std::uint64_t seed, double limit_seconds) {
  Problem problem = problem_of(row.size, type_of(options_), options_.mode, sign_of(options_));
  problem.arithmetic = options_.arithmetic;
  const std::unique_ptr<TimedRun> run =
      column.contestant->prepare(problem, {.kind = row.size.kind, .seed = seed}, row.size.threads);
  const bool is_tool = &column == &columns_.front();
  if (is_tool) row.variant = run->variant();
  return time_runs(
      *run, schedule_.repeats, limit_seconds,
      {.before = column.flush,
       .seed = seed,
       .build_seconds = is_tool && result_.header.is_on_device() ? most_build_seconds : 0,
       .first_run = is_tool && options_.first_run});
}

void Sweep::keep(MachineState before, MachineState after) {
  result_.before = std::move(before);
  result_.after = std::move(after);
  const std::string text = disturbance(result_.before, result_.after);
  if (!text.empty() && std::ranges::find(result_.notes, text) == result_.notes.end())
    result_.notes.push_back(text);
}

/// Returns the running time that the next cell may use.
double Sweep::seconds_left() const {
  if (!schedule_.total_seconds) return schedule_.cell_seconds;
  return std::min(schedule_.cell_seconds, *schedule_.total_seconds - watch_.seconds());
}

void Sweep::refuse_if_too_slow(double predicted_seconds, double limit_seconds) const {
  if (predicted_seconds <= limit_seconds) return;
  if (limit_seconds < schedule_.cell_seconds)
    throw LimitError(fmt::format("left out, as --quick ends after {}",
                                 format_seconds(*schedule_.total_seconds)));
  throw LimitError(fmt::format("a run would take about {}; --limit-seconds is {}",
                               format_seconds(predicted_seconds), schedule_.cell_seconds));
}

void Sweep::keep_quality(const Timing& timing, BenchRow& row) {
  row.accuracy = timing.accuracy;
  if (row.accuracy.failed > 0)
    result_.add_note(
        row, fmt::format("{}: {} of {} {} above their bar", row.variant,
                         format_count(row.accuracy.failed), format_count(row.accuracy.matrices),
                         options_.solve ? "solutions" : "matrices"));
  if (row.accuracy.left_to_cpu > 0)
    result_.add_note(row, fmt::format("{}: {} systems are left to the CPU, which is not timed",
                                      row.variant, format_count(row.accuracy.left_to_cpu)));
}

bool Sweep::has_built(const Column& column, const Timing& timing) const {
  return !timing.is_warm && &column == &columns_.front() && result_.header.is_on_device();
}

void Sweep::add_timing_notes(const Column& column, const Timing& timing, BenchRow& row) {
  const std::string name = column.contestant->name();
  const auto runs = static_cast<std::size_t>(
      std::ranges::min_element(timing.batches, {}, &BatchTiming::runs)->runs);
  if (has_built(column, timing)) {
    result_.add_note(row, fmt::format("{}: no time: there was time for one run alone, of {}, which "
                                      "may have built kernels; see --limit-seconds",
                                      name, format_seconds(timing.seconds.front())));
  } else if (!timing.is_warm) {
    result_.add_note(row, fmt::format("{}: one run, not warmed up, because time was short", name));
  } else if (std::cmp_less(runs, schedule_.repeats.timed)) {
    result_.add_note(row, fmt::format("{}: {} timed run{}, because time was short", name, runs,
                                      runs == 1 ? "" : "s"));
  }
  if (schedule_.seeds == 1 && timing.has_outlier())
    result_.add_note(row,
                     fmt::format("{}: one run in twenty took more than twice the median", name));
}

}  // namespace qrtool
