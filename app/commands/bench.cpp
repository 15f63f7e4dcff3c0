// SPDX-License-Identifier: Apache-2.0
// bench.cpp: `qrtool bench` times the tool and its baselines, case by case.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include "app/bench/contestants/systems.hpp"
#include "app/bench/rates.hpp"
#include "app/bench/sweep.hpp"
#include "app/bench/table/compare.hpp"
#include "app/bench/table/floor.hpp"
#include "app/bench/table/plot.hpp"
#include "app/bench/timing/gemm.hpp"
#include "app/cli/option_values.hpp"
#include "app/commands/commands.hpp"
#include "app/engine/solve_device.hpp"
#include "app/process/console.hpp"
#include "app/process/gnuplot.hpp"
#include "app/process/signals.hpp"
#include "app/run/backends/make_backend.hpp"
#include "app/run/backends/timings_file.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/read_text.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {
namespace {

/// A case is slower than in an earlier run if it takes longer by more than this fraction.
constexpr double usual_tolerance = 0.1;

/// Gives drivers an empty folder for the kernels that they keep, for the life of the process; the
/// folder is removed at its end.
class EmptyKernelCache {
 public:
  EmptyKernelCache() {
    std::string name = (std::filesystem::temp_directory_path() / "qrtool-kernels-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr)
      throw OutputError(fmt::format("--first-run: no folder for kernels can be made in {}",
                                    escape(std::filesystem::temp_directory_path().string())));
    folder_ = name;
    for (const char* variable : {"CUDA_CACHE_PATH", "POCL_CACHE_DIR"})
      setenv(variable, name.c_str(), /*replace=*/1);
  }
  ~EmptyKernelCache() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  EmptyKernelCache(const EmptyKernelCache&) = delete;
  EmptyKernelCache& operator=(const EmptyKernelCache&) = delete;

 private:
  std::filesystem::path folder_;
};

/// The files of --export-*. They are written once before any work, so that a file that cannot be
/// written stops the run at once, and again after every case.
class Exports {
 public:
  explicit Exports(const BenchOptions& o)
      : json_(o.export_json),
        csv_(o.export_csv),
        markdown_(o.export_markdown),
        html_(o.export_html),
        plot_(o.plot),
        force_(o.force) {
    if (!plot_.empty()) check_picture(plot_, force_);
  }

  void write(const BenchResult& result) {
    if (!json_.empty()) write(json_, to_json(result));
    if (!csv_.empty()) write(csv_, to_csv(result));
    if (!markdown_.empty()) write(markdown_, to_markdown(result));
    if (!html_.empty()) write(html_, to_html(result, ""));
    force_ = true;  // from now on the files belong to this run
  }

  /// Pictures are drawn once, when all cases are done.
  bool has_pictures() const { return !plot_.empty() || (!html_.empty() && has_gnuplot()); }
  void draw(const BenchResult& result, double bytes_per_second) const {
    if (plot_.empty() && html_.empty()) return;
    if (!plot_.empty())
      draw_picture(plot_, force_, plot_size(result), plot_script(result, bytes_per_second));
    if (html_.empty()) return;
    if (!has_gnuplot()) {
      print_message(
          fmt::format("note: {} has no picture: gnuplot is not installed", escape(html_)));
      return;
    }
    const std::string picture = draw_svg(plot_size(result), plot_script(result, bytes_per_second));
    write(html_, to_html(result, picture.substr(picture.find("<svg"))));
  }

  const char* interrupt_message() const {
    return json_.empty() && csv_.empty() && markdown_.empty() && html_.empty()
               ? "qrtool: interrupted\n"
               : "qrtool: interrupted; the exports hold the cases that were done\n";
  }

 private:
  void write(const std::string& path, const std::string& text) const {
    TextOutput output(path, force_);
    output.buffer().append(text);
    output.commit();
  }

  std::string json_, csv_, markdown_, html_, plot_;
  bool force_;
};

/// Returns the case with the most work, by which `auto` decides whether to use a device.
Work largest_work(const BenchOptions& o, const BenchSchedule& schedule) {
  const auto flops = [&](const BenchCase& size) {
    return case_flops(size, type_of(o), o.mode, task_of(o), o.ridge.value_or(0));
  };
  const Problem largest = problem_of(*std::max_element(schedule.cases.begin(), schedule.cases.end(),
                                                       [&](const BenchCase& a, const BenchCase& b) {
                                                         return flops(a) < flops(b);
                                                       }),
                                     type_of(o), o.mode);
  if (!o.solve) return largest;
  return work_of_systems(systems_of(largest, task_of(o), o.ridge.value_or(0)), largest.count,
                         /*sides=*/1);
}

std::shared_ptr<Backend> backend_of(const BenchOptions& o, const BenchSchedule& schedule,
                                    const Limits& limits) {
  // solve uses the CPU for one A with all right sides unless a device is asked for, and always for
  // complex systems.
  const bool is_for_cpu = o.shared || (o.solve && o.is_complex);
  if (is_for_cpu && !o.backend.asks_for_device()) return std::make_unique<CpuBackend>(limits);
  try {
    return make_backend(o.backend, largest_work(o, schedule), limits).backend;
  } catch (const DeviceError& error) {
    if (o.backend.asks_for_device()) throw;
    print_message(fmt::format("note: {}; the CPU is measured", error.what()));
    return std::make_unique<CpuBackend>(limits);
  }
}

/// Refuses a forced variant that does not exist. If a variant cannot run a case, a note of that
/// case says so.
void refuse_unknown_variant(const std::string& name, const Backend& backend) {
  std::vector<std::string_view> names;
  for (const Variant& variant : backend.variants()) names.push_back(variant.name);
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end())
    throw not_one_of("--variant", name, names);
}

void write_stdout_now(const std::string& text) {
  write_stdout(text);
  std::fflush(stdout);  // so that a sweep that is killed has shown its rows
}

/// Whether a case is slower than in the earlier run. Errors: LimitError if one has no time.
bool is_slower(const Comparison& earlier, const BenchOptions& o, const BenchResult& result) {
  const std::vector<std::string> slower =
      earlier.slower(result, o.tolerance.value_or(usual_tolerance));
  for (const std::string& line : slower) print_message(line);
  if (slower.empty()) return false;
  print_failure(fmt::format("bench: {} of {} cases are slower", slower.size(), result.rows.size()));
  return true;
}

ExitCode run_sweep(const BenchOptions& o, const BenchSchedule& schedule, const BenchSetup& setup,
                   const MachineState& before) {
  Sweep sweep(o, schedule, setup);
  std::optional<Comparison> comparison;
  if (!o.compare.empty()) comparison.emplace(o.compare, sweep.result());
  Exports exports(o);
  exports.write(sweep.result());
  set_interrupt_message(exports.interrupt_message());

  const bool prints_table = !o.quiet && !o.json;
  if (o.verbose)
    print_message(fmt::format("{} cases by {} on {}", schedule.cases.size(), setup.backend.name(),
                              setup.backend.device()));
  if (prints_table) write_stdout_now(text_head(sweep.result()));
  for (const BenchCase& size : schedule.cases) {
    const BenchRow& row = sweep.measure(size);
    sweep.keep(before, machine_state(setup.backend.name() != "cpu"));
    exports.write(sweep.result());
    if (prints_table) write_stdout_now(text_row(sweep.result(), row));
  }
  if (prints_table) write_stdout(text_notes(sweep.result()));
  exports.draw(sweep.result(), exports.has_pictures() ? moved_bytes_per_second(setup.backend) : 0);
  if (o.json) write_stdout(to_json(sweep.result()));
  const bool slower = comparison && is_slower(*comparison, o, sweep.result());
  if (!sweep.result().has_failed()) return slower ? ExitCode::answer_is_no : ExitCode::good;
  print_failure("bench: matrices are above their bar; the notes say in which cases");
  return ExitCode::answer_is_no;
}

/// Returns the file of --rates. Errors: UsageError if there is no place for the user's own table.
std::string rates_path(const BenchOptions& o, const Backend& backend) {
  if (o.rates != own_table) return o.rates;
  if (backend.name() == "cpu")
    throw UsageError("--rates: the CPU has one table for all, since results must not depend on it",
                     "--backend opencl measures a device; or name a file: --rates FILE");
  if (!o.shapes.empty() || !o.backend.variant.empty())
    throw UsageError(
        "--rates: your own table has all shapes and variants, so that they can be compared",
        "leave --shape and --variant away; or name a file: --rates FILE");
  const std::optional<std::string> path = own_rates_path(backend.device());
  if (!path)
    throw UsageError(
        "--rates: there is no place for your own table: QRTOOL_TIMINGS is empty, or "
        "there is no home",
        "name a file: --rates FILE");
  const std::filesystem::path folder = std::filesystem::path(*path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  return *path;
}

/// Returns the table to continue: the table in the file, or an empty one. Errors: InputError if the
/// file is no table, UsageError if it belongs to another device.
CostTable begun_table(const BenchOptions& o, const std::string& path, const std::string& device) {
  const std::optional<std::string> text = o.force ? std::nullopt : read_text(path);
  if (!text) return CostTable(device);
  CostTable table = CostTable::from_text(*text, escape(path));
  if (table.device() != device)
    throw UsageError(fmt::format("--rates: {} has the rates of {}, and this is {}", escape(path),
                                 escape(table.device()), device),
                     "name another file, or replace this one by --force");
  return table;
}

ExitCode run_rates(const BenchOptions& o, const BenchSetup& setup) {
  const std::string path = rates_path(o, setup.backend);
  // A plan must not choose by a part of the user's own table.
  const std::string begun = o.rates == own_table ? path + ".part" : path;
  CostTable table =
      begun_table(o, std::filesystem::exists(begun) ? begun : path, setup.backend.device());
  const std::vector<RateShape> shapes =
      o.shapes.empty() ? rate_shapes(setup.backend.name() == "cpu") : o.shapes;
  const auto save = [&](std::size_t left) {
    TextOutput output(begun, /*force=*/true);
    output.buffer().append(table.text());
    output.commit();
    if (o.verbose) print_message(fmt::format("{} shapes are left", left));
  };
  set_interrupt_message("qrtool: interrupted; the table holds the shapes that were done\n");
  save(shapes.size());
  const auto reach = o.shapes.empty() ? CostTable::Reach::grid : CostTable::Reach::shape;
  measure_rates(setup, shapes, reach, table, save);
  if (begun != path) std::filesystem::rename(begun, path);
  if (!o.quiet) print_message(fmt::format("{} has the rates of {}", escape(path), table.device()));
  return ExitCode::good;
}

}  // namespace

ExitCode run_bench(const BenchOptions& o) {
  // It must exist before OpenCL starts.
  std::optional<EmptyKernelCache> no_kernels;
  if (o.first_run) no_kernels.emplace();
  if (o.gemm) return run_bench_gemm(o);
  const MachineState before = machine_state(o.backend.name != "cpu");
  BenchSchedule schedule = schedule_of(o);
  const Limits limits = host_limits(o.memory_bytes, o.threads);
  const std::shared_ptr<Backend> backend = backend_of(o, schedule, limits);
  refuse_unknown_variant(o.backend.variant, *backend);
  if (backend->name() != "cpu") forget_threads(schedule.cases);
  const BenchSetup setup{.backend = *backend,
                         .variant = o.backend.variant,
                         .limits = limits,
                         .seed = o.seed,
                         .task = task_of(o),
                         .ridge = o.ridge.value_or(0),
                         .builds_first = o.first_run};
  return o.rates.empty() ? run_sweep(o, schedule, setup, before) : run_rates(o, setup);
}

}  // namespace qrtool
