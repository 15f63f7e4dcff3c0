// SPDX-License-Identifier: Apache-2.0
// build_kernels.cpp: finds the problems, plans each of them on the device and builds its programs.
#include <fmt/format.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "app/commands/commands.hpp"
#include "app/engine/opencl.hpp"
#include "app/engine/solve_device.hpp"
#include "app/engine/timings.hpp"
#include "app/process/console.hpp"
#include "app/process/progress.hpp"
#include "app/process/stopwatch.hpp"
#include "app/run/backends/opencl_process.hpp"
#include "app/run/backends/timings_file.hpp"
#include "core/machine/host.hpp"
#include "core/plan/plan.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/open/contents.hpp"
#include "io/open/input.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// The shapes of BENCHMARKS.md: count, rows, columns.
constexpr index_t usual_shapes[][3] = {{1000000, 16, 4},  {150000, 17, 17},  {150000, 64, 64},
                                       {65536, 288, 97},  {10000, 256, 256}, {200, 512, 512},
                                       {200, 2000, 2000}, {1, 5000, 5000},   {1, 1000000, 128}};

/// The programs that were built, or taken from the driver's cache.
struct Built {
  int programs = 0, unseen = 0;
  double seconds = 0;
  index_t refused = 0;  // problems that no variant takes
};

void add_problem(const Source& source, std::vector<Problem>& problems) {
  if (source.count() == 0 || source.m == 0 || source.n == 0) return;
  problems.push_back({.count = source.count(), .m = source.m, .n = source.n, .type = source.type});
}

/// Returns the matrices of one dataset, or of every dataset of a file that holds some.
std::vector<Problem> problems_of_file(const std::string& path) {
  std::vector<Problem> problems;
  const Location location = split_location(path);
  if (!location.dataset.empty() || !has_datasets(location.file)) {
    add_problem(open_input({.path = path, .dataset = {}})->source(), problems);
    return problems;
  }
  for (const Entry& entry : list_entries(location.file)) {
    if (!entry.problem.empty() || entry.stored_type.empty()) continue;
    add_problem(open_input({.path = location.file, .dataset = entry.name})->source(), problems);
  }
  if (problems.empty())
    throw InputError(fmt::format("{}: holds no matrices", escape(location.file)));
  return problems;
}

std::vector<Problem> problems_of(const DevicesOptions& o) {
  if (!o.build_file.empty()) return problems_of_file(o.build_file);
  std::vector<Problem> problems;
  if (o.has_shape) {
    problems.push_back({.count = 1, .m = o.m, .n = o.n, .type = o.type});
    for (const index_t extent : o.leading) problems.back().count *= extent;
    return problems;
  }
  for (const auto& [count, m, n] : usual_shapes)
    for (const ElementType type : {ElementType::float32, ElementType::float64})
      problems.push_back({.count = count, .m = m, .n = n, .type = type});
  return problems;
}

/// Returns nothing if no variant of the device can run the problem, or if one matrix does not fit.
std::optional<Plan> plan_of(const Backend& backend, const Problem& problem) {
  try {
    return make_plan(problem, backend.variants(), backend.limits());
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Builds the programs for Q and R, for R alone, and for solutions with one right side. Returns
/// false if the device cannot run the problem.
bool build(Backend& backend, Problem problem) {
  for (const Mode mode : {Mode::reduced, Mode::r}) {
    problem.mode = mode;
    const std::optional<Plan> plan = plan_of(backend, problem);
    if (!plan) return false;
    build_opencl_factors(backend, *plan);
  }
  const SolveProblem systems{.type = problem.type, .m = problem.m, .n = problem.n, .rank = {}};
  if (!opencl_system_objection(backend, systems).empty()) return true;
  if (problem.m < problem.n) {  // R is that of A'
    const std::optional<Plan> plan = plan_of(backend, factored_on_device(systems, problem.count));
    if (!plan) return true;
    build_opencl_factors(backend, *plan);
  }
  build_opencl_systems(backend, systems);
  return true;
}

Built build_all(const DevicesOptions& o, const DeviceInfo& device,
                const std::vector<Problem>& problems) {
  const std::unique_ptr<Backend> backend = make_opencl_backend(device, host_limits({}, 0));
  const Timings timings = load_timings();
  const KeptDevice* const kept = timings.find(device);
  Built built;
  Progress progress("build", std::ssize(problems), o.progress_mode(), "shapes");
  for (const Problem& problem : problems) {
    built.refused += build(*backend, problem) ? 0 : 1;
    progress.add(1);
  }
  for (const DeviceTimes& times : device_times()) {
    for (const ProgramTime& program : times.programs) {
      ++built.programs;
      built.unseen += kept == nullptr || kept->find(program.id) == nullptr ? 1 : 0;
      built.seconds += program.seconds;
    }
  }
  return built;
}

}  // namespace

ExitCode build_kernels(const DevicesOptions& o) {
  const DeviceInfo device = choose_opencl_devices(o.device).front();
  const std::vector<Problem> problems = problems_of(o);
  const Built built = build_all(o, device, problems);
  if (o.json) {
    write_json({{"schema", "qrtool.build/1"},
                {"version", QRTOOL_VERSION},
                {"device", device.text()},
                {"shapes", problems.size()},
                {"refused", built.refused},
                {"programs", built.programs},
                {"unseen", built.unseen},
                {"seconds", built.seconds},
                {"exit", 0}});
    return ExitCode::good;
  }
  if (o.quiet) return ExitCode::good;
  write_stdout(fmt::format("{}: {} programs for {} shape{} in {}, {} of them never built before\n",
                           escape(device.text()), built.programs, problems.size(),
                           problems.size() == 1 ? "" : "s", format_seconds(built.seconds),
                           built.unseen));
  if (built.refused > 0)
    write_stdout(fmt::format("{} of the shapes {} not taken by the device\n", built.refused,
                             built.refused == 1 ? "is" : "are"));
  return ExitCode::good;
}

}  // namespace qrtool
