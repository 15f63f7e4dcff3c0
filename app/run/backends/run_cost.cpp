// SPDX-License-Identifier: Apache-2.0
// run_cost.cpp: measures a small part of each step and multiplies.
#include "app/run/backends/run_cost.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/engine/opencl.hpp"
#include "app/engine/timings.hpp"
#include "app/options/print_options.hpp"
#include "app/process/console.hpp"
#include "app/process/stopwatch.hpp"
#include "app/run/backends/timings_file.hpp"
#include "app/run/matrices/factor_matrices.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/matrix/matrices.hpp"
#include "core/problem/operations.hpp"
#include "core/text.hpp"
#include "io/file/atomic_file.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/open/formats.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
constexpr index_t read_sample_bytes = index_t{32} << 20;
constexpr std::size_t write_sample_bytes = std::size_t{16} << 20;
// The operations of a part of a problem that takes a CPU about a tenth of a second.
constexpr double factor_sample_flops = 2e9;
constexpr std::size_t factor_sample_bytes = std::size_t{32} << 20;
// The bytes of one matrix's line of a report: as numbers, and as text.
constexpr std::uint64_t line_bytes = 38, line_text_bytes = 180;
/// The bytes, about, of the names, attributes and headers of an output beside its numbers.
constexpr std::uint64_t record_bytes = 2048;

double flops_of(const Problem& problem) { return std::max(lapack_operations(problem), 1.0); }

/// Returns a part of the matrices, or one matrix of the same form that is smaller.
Problem sample_of(Problem problem) {
  Problem one = problem;
  one.count = 1;
  // Pivoting small matrices takes some ten times as long as factoring them.
  const double most_flops = problem.ranks() ? factor_sample_flops / 10 : factor_sample_flops;
  const auto is_small = [&](const Problem& p) {
    return flops_of(p) <= most_flops && p.input_bytes() <= factor_sample_bytes;
  };
  if (is_small(one)) {
    const double by_flops = most_flops / flops_of(one);
    const double by_bytes = static_cast<double>(factor_sample_bytes / one.input_bytes());
    const auto most = static_cast<index_t>(std::min(std::min(by_flops, by_bytes), 1e9));
    problem.count = std::clamp<index_t>(most, 1, problem.count);
    return problem;
  }
  while (!is_small(one)) {
    const bool is_tall = one.m >= 2 * one.n, is_wide = one.n >= 2 * one.m;
    if (!is_wide) one.m = (one.m + 1) / 2;
    if (!is_tall) one.n = (one.n + 1) / 2;
  }
  return one;
}

Plan plan_of_sample(const Problem& sample, const Backend& backend, const std::string& variant) {
  try {
    return make_plan(sample, backend.variants(), backend.limits(), variant);
  } catch (const UsageError&) {  // the variant takes only larger matrices
    return make_plan(sample, backend.variants(), backend.limits());
  }
}

template <class T>
SampleSeconds time_plan(Backend& backend, const Plan& plan) {
  MatrixChunk<T> chunk = allocate_matrices<T>(backend, plan);
  chunk.count = std::min(plan.chunk_matrices, plan.problem.count);
  for (index_t b = 0; b < chunk.count; ++b)
    fill_matrix(MatrixRequest{.kind = "uniform"}, b, interleaved(chunk.a.view()[b]));
  double seconds[2];
  for (double& each : seconds) {
    const Stopwatch watch;
    backend.factor<T>(plan, chunk.matrices(chunk.a), factors_of(chunk), lines_of(chunk));
    each = watch.seconds();
  }
  SampleSeconds sample{.problem = plan.problem, .first = seconds[0], .again = seconds[1]};
  sample.problem.count = chunk.count;
  return sample;
}

template <class T>
double time_reading(Reader& reader, index_t passes) {
  const Source& source = reader.source();
  const index_t numbers = source.n * parts_in(source.type);  // of a row
  const index_t size = source.m * numbers * static_cast<index_t>(sizeof(T)), count = source.count();
  if (source.needs_copy) return unknown;
  if (size == 0 || count == 0) return 0;
  const index_t matrices = std::clamp<index_t>(read_sample_bytes / size, 0, count);
  const index_t rows = std::clamp<index_t>(read_sample_bytes / (size / source.m), 1, source.m);
  const Batch<T> sample(std::max<index_t>(matrices, 1), matrices > 0 ? source.m : rows, numbers);
  const Stopwatch watch;
  if (matrices > 0) {
    reader.read(0, sample.view());
  } else {
    reader.read_rows(0, 0, sample.view()[0]);
  }
  const double parts = matrices > 0 ? static_cast<double>(count) / static_cast<double>(matrices)
                                    : static_cast<double>(count) * static_cast<double>(source.m) /
                                          static_cast<double>(rows);
  return watch.seconds() * parts * static_cast<double>(passes);
}

/// Returns the estimate from the table of a measured device. A sample of one large matrix is a
/// smaller one, which the host would measure again, and so it says too much.
std::optional<double> known_seconds(const Backend& backend, const Problem& problem) {
  const std::optional<DeviceInfo> device = started_device(backend);
  if (!device) return std::nullopt;
  const DeviceWork work = device_work(problem, *device);
  return work.is_measured ? std::optional(work.run_seconds) : std::nullopt;
}

/// The bytes and the speed of numbers as text.
struct TextRate {
  double bytes = 0, seconds = 0;  // of one number
};
template <class T>
TextRate text_rate() {
  constexpr int numbers = 20000;
  std::string text;
  const Stopwatch watch;
  for (int i = 0; i < numbers; ++i)
    fmt::format_to(std::back_inserter(text), FMT_COMPILE("{},"),
                   static_cast<T>(normal(/*seed=*/0, /*stream=*/0, static_cast<std::uint64_t>(i))));
  return {.bytes = static_cast<double>(text.size()) / numbers,
          .seconds = watch.seconds() / numbers};
}

/// Returns the bytes per second of the disk, until they are written; NaN if that cannot be
/// measured.
double disk_rate(const std::string& output, std::uint64_t bytes) {
  const std::vector<std::byte> data(std::min<std::uint64_t>(bytes, write_sample_bytes),
                                    std::byte{0x5a});
  const Descriptor file = create_nameless(directory_of(output));
  if (data.empty() || file < 0 || reserve_space(file, data.size()) != 0) return unknown;
  const Stopwatch watch;
  for (std::size_t at = 0; at < data.size();) {
    const ssize_t written = write(file, data.data() + at, data.size() - at);
    if (written <= 0) return unknown;
    at += static_cast<std::size_t>(written);
  }
  if (fdatasync(file) != 0) return unknown;
  return static_cast<double>(data.size()) / watch.seconds();
}

std::string seconds_text(double seconds) {
  return std::isnan(seconds) ? "not measured" : format_seconds(seconds);
}

/// Returns "kernels   3 of 5 programs were not built before: about 3.6 s".
std::string text_of(const ProgramsEstimate& programs) {
  if (programs.unseen == 0) return "kernels   all were built before\n";
  return fmt::format("kernels   {} of {} programs {} not built before: about {}\n", programs.unseen,
                     programs.all, programs.unseen == 1 ? "was" : "were",
                     format_seconds(programs.seconds));
}

std::string text_of(const RunCost& cost) {
  std::string text = cost.plan;
  if (cost.programs) text += text_of(*cost.programs);
  text += fmt::format("input     {}: {}\n", escape(cost.input), format_bytes(cost.input_bytes));
  text += fmt::format("output    {}{}\n", cost.is_output_estimated ? "about " : "",
                      format_bytes(cost.output_bytes));
  return text + fmt::format("time      about {}: start {}, read {}, compute {}, write {}{}\n",
                            format_seconds(cost.total_seconds()), seconds_text(cost.start_seconds),
                            seconds_text(cost.read_seconds), seconds_text(cost.compute_seconds),
                            seconds_text(cost.write_seconds),
                            cost.chunks > 1 ? "; the last three overlap" : "");
}

/// The bytes of all files of an output, and the bytes that are free on its file system.
struct OutputRoom {
  std::string output;
  std::uint64_t bytes = 0;
  std::optional<std::uint64_t> free_bytes;  // not known for standard output
  bool suffices() const { return !free_bytes || bytes <= *free_bytes; }
};

OutputRoom room_for(const std::string& output, const std::vector<RunCost>& costs) {
  OutputRoom room{.output = output, .free_bytes = {}};
  for (const RunCost& cost : costs) room.bytes += cost.output_bytes;
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory_of(output), error);
  if (!error && !is_standard_output(output)) room.free_bytes = space.available;
  return room;
}

std::string text_of(const OutputRoom& room) {
  if (!room.free_bytes) return "";
  const std::string where = escape(directory_of(room.output));
  if (room.suffices())
    return fmt::format("free      {} in {}, enough for {}\n", format_bytes(*room.free_bytes), where,
                       format_bytes(room.bytes));
  return fmt::format("free      only {} in {}; {} are needed\n", format_bytes(*room.free_bytes),
                     where, format_bytes(room.bytes));
}

/// Returns the mean number of threads, of all programs, that wanted a core in the last minute; NaN
/// if it is not known.
double machine_load() {
  double load = unknown;
  return getloadavg(&load, 1) == 1 ? load : unknown;
}

/// Returns a warning if the machine has other work, which the estimated times ignore.
std::string text_of_load() {
  const double load = machine_load();
  const int cores = machine_cores();
  if (!(load > 0.25 * cores)) return "";
  return fmt::format("load      {:.1f} on {} core{}: with other work the run may take longer\n",
                     load, cores, cores == 1 ? "" : "s");
}

Json json_of(double seconds) { return std::isnan(seconds) ? Json() : Json(seconds); }

Json json_of(const std::optional<ProgramsEstimate>& programs) {
  if (!programs) return nullptr;
  return {{"all", programs->all}, {"unseen", programs->unseen}, {"seconds", programs->seconds}};
}

Json json_of(const RunCost& cost) {
  return {{"input", cost.input},
          {"plan", cost.plan},
          {"input_bytes", cost.input_bytes},
          {"output_bytes", cost.output_bytes},
          {"output_is_estimated", cost.is_output_estimated},
          {"memory_bytes", cost.memory_bytes},
          {"memory_limit_bytes", cost.memory_limit_bytes},
          {"device_bytes", cost.device_bytes},
          {"scratch_bytes", cost.scratch_bytes},
          {"programs", json_of(cost.programs)},
          {"seconds",
           {{"start", json_of(cost.start_seconds)},
            {"read", json_of(cost.read_seconds)},
            {"compute", json_of(cost.compute_seconds)},
            {"write", json_of(cost.write_seconds)},
            {"total", json_of(cost.total_seconds())}}}};
}

}  // namespace

double RunCost::total_seconds() const {
  const auto known = [](double step) { return std::isnan(step) ? 0 : step; };
  const double files = known(read_seconds) + known(write_seconds), compute = known(compute_seconds);
  const double sum = files + compute;
  // Steps that overlap share the cores. Those of a device leave them alone.
  const double shared = files / machine_cores() + (device_bytes > 0 ? 0 : compute);
  const double longest = std::max({known(read_seconds), known(write_seconds), compute, shared});
  return start_seconds + longest +
         (sum - longest) / static_cast<double>(std::max<index_t>(chunks, 1));
}

double seconds_to_read(Reader& reader, ElementType type, index_t passes) {
  return real_of(type) == ElementType::float32 ? time_reading<float>(reader, passes)
                                               : time_reading<double>(reader, passes);
}

SampleSeconds time_sample(Backend& backend, const Problem& problem, const std::string& variant) {
  const Plan plan = plan_of_sample(sample_of(problem), backend, variant);
  return with_type(problem.type,
                   [&](auto zero) { return time_plan<decltype(zero)>(backend, plan); });
}

void enter_compute(Backend& backend, const Problem& problem, const std::string& variant,
                   RunCost& cost) {
  if (problem.is_empty()) return;
  const SampleSeconds sample = time_sample(backend, problem, variant);
  const double by_sample = sample.again / flops_of(sample.problem) * flops_of(problem);
  cost.start_seconds += std::max(sample.first - sample.again, 0.0);
  cost.compute_seconds =
      variant.empty() ? known_seconds(backend, problem).value_or(by_sample) : by_sample;
}

std::optional<DeviceInfo> started_device(const Backend& backend) {
  for (const DeviceTimes& times : device_times())
    if (backend.name() == "opencl" && times.info.text() == backend.device()) return times.info;
  return std::nullopt;
}

void enter_programs(const Work& work, const Backend& backend, const Variant* variant,
                    RunCost& cost) {
  const std::optional<DeviceInfo> device = started_device(backend);
  if (device && timings_path())
    cost.programs = estimate(work, *device, load_timings(), variant).programs;
}

void enter_output(const OutputSpec& spec, RunCost& cost) {
  const bool is_text = format_of_output(spec.path).is_text;
  std::uint64_t lines = 1, numbers = 0, bytes = 0;
  for (const index_t extent : spec.leading) lines *= static_cast<std::uint64_t>(extent);
  for (const MatrixDataset& dataset : spec.datasets) {
    std::uint64_t each =
        static_cast<std::uint64_t>(dataset.rows) * static_cast<std::uint64_t>(dataset.cols);
    for (const index_t extent : dataset.leading.value_or(spec.leading))
      each *= static_cast<std::uint64_t>(extent);
    numbers += each * static_cast<std::uint64_t>(parts_in(dataset.type));
    bytes += each * dataset.stored_bytes();
  }
  std::uint64_t of_digits = 0;  // text of the columns of small whole numbers
  for (const NumberDataset& column : spec.numbers) {
    std::uint64_t each = 1;
    for (const index_t extent : column.dims) each *= static_cast<std::uint64_t>(extent);
    const bool is_real = column.kind == NumberKind::real;
    bytes += each * bytes_of(column.kind);
    (is_real ? numbers : of_digits) += each * (is_real ? 1 : 2);
  }
  cost.is_output_estimated = is_text;
  double formatting = 0;
  if (is_text && !spec.datasets.empty()) {
    const bool is_single = real_of(spec.datasets.front().type) == ElementType::float32;
    const TextRate rate = is_single ? text_rate<float>() : text_rate<double>();
    bytes = static_cast<std::uint64_t>(rate.bytes * static_cast<double>(numbers)) + of_digits;
    formatting = rate.seconds * static_cast<double>(numbers);
  }
  bytes += record_bytes;
  if (spec.with_report) bytes += lines * (is_text ? line_text_bytes : line_bytes);
  cost.output_bytes = bytes;
  if (!is_standard_output(spec.path))
    cost.write_seconds = formatting + static_cast<double>(bytes) / disk_rate(spec.path, bytes);
}

void require_place(const std::string& output, const std::string& report, bool force) {
  std::vector<std::string> names = format_of_output(output).files_of_output(output);
  if (!report.empty()) names.push_back(report);
  for (const std::string& name : names) require_writable(name, force);
}

void print_costs(const PrintOptions& o, const char* command, const std::string& output,
                 const std::vector<RunCost>& costs) {
  const OutputRoom room = room_for(output, costs);
  if (o.json) {
    Json runs = Json::array();
    for (const RunCost& cost : costs) runs.push_back(json_of(cost));
    write_json({{"schema", "qrtool.dry-run/1"},
                {"version", QRTOOL_VERSION},
                {"command", command},
                {"output", output},
                {"output_bytes", room.bytes},
                {"free_bytes", room.free_bytes ? Json(*room.free_bytes) : Json()},
                {"suffices", room.suffices()},
                {"load", json_of(machine_load())},
                {"runs", runs},
                {"exit", 0}});
    return;
  }
  if (o.quiet) return;
  for (const RunCost& cost : costs) write_stdout(text_of(cost));
  write_stdout(text_of_load());
  write_stdout(text_of(room));
  write_stdout("a dry run: nothing was written\n");
}

}  // namespace qrtool
