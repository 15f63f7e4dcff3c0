// SPDX-License-Identifier: Apache-2.0
// systems.cpp: sub-chunks of systems through a device. Device half: systems.cl.
#include "gpu/solve/systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <optional>
#include <span>

#include "core/checksum.hpp"
#include "core/driver_scope.hpp"
#include "core/error.hpp"
#include "gpu/host/chunk_run.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/normal.hpp"
#include "gpu/solve/sample.hpp"
#include "gpu/solve/system_buffers.hpp"
#include "gpu/solve/tall_systems.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

/// Work-items that solve a system: a power of two, 4 or more.
int team_size(index_t n) {
  if (n > tuning::solve_team_columns) return n <= 2 * tuning::solve_team_columns ? 128 : 256;
  return static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::max<index_t>(n, 4))));
}

/// The arrays of DECLARE_ROOM, and the weights of measure_factors, of one team.
std::size_t room_bytes(index_t n, std::size_t element, int team, int rows, bool has_triangle) {
  const index_t tile = rows * (n | 1), triangle = has_triangle ? n * (n + 1) / 2 : 0;
  return element * static_cast<std::size_t>(std::max(tile, triangle)) +
         sizeof(double) * static_cast<std::size_t>(4 * n + team + rows);
}

int group_size(const Params& params) { return params.at("TEAM") * params.at("TEAMS"); }

}  // namespace

SystemShape system_shape(const SolveProblem& p, index_t count, index_t sides,
                         const VectorPlaces& of_b, const VectorPlaces& of_x) {
  const auto side = [](const VectorPlaces& places) {
    return places.group == 1 ? places.group_stride : places.stride;
  };
  const double u = p.type == ElementType::float32 ? 0x1p-23 : 0x1p-52;
  return {.b_system = sides * p.m,
          .b_side = side(of_b),
          .b_step = of_b.step,
          .x_system = sides * p.n,
          .x_side = side(of_x),
          .x_step = of_x.step,
          .enough = tuning::solve_enough * std::sqrt(u),
          .least_value = tuning::solve_rank_margin * p.rank.tolerance,
          .count = static_cast<int>(count),
          .m = static_cast<int>(p.m),
          .sides = static_cast<int>(sides),
          .wants_se = p.wants_se};
}

std::size_t system_local_bytes(index_t n, ElementType type, const Params& params) {
  const std::size_t team = room_bytes(n, size_of(type), params.at("TEAM"), params.at("TILE_ROWS"),
                                      params.at("TRIANGLE") != 0);
  return team * static_cast<std::size_t>(params.at("TEAMS")) + 2 * sizeof(int);
}

Params system_params(index_t n, ElementType type, const Limits& limits) {
  const int team = team_size(n), teams = std::max(1, tuning::solve_least_group / team);
  const auto row = static_cast<std::size_t>((n | 1) * teams) * size_of(type);
  int rows = tuning::solve_tile_rows;
  while (rows > 1 && static_cast<std::size_t>(rows) * row > tuning::solve_tile_bytes) rows /= 2;
  const std::size_t room =
      room_bytes(n, size_of(type), team, rows, true) * static_cast<std::size_t>(teams);
  const bool has_room = room + 2 * sizeof(int) <= limits.local_bytes;
  return {{"COLUMNS", static_cast<int>(n)},
          {"TEAM", team},
          {"TEAMS", teams},
          {"TILE_ROWS", rows},
          {"TRIANGLE", has_room},
          {"MOST_STEPS", tuning::solve_most_steps}};
}

std::string system_objection(const SolveProblem& p, const Limits& limits) {
  const std::string general = system_device_objection(p);
  if (!general.empty()) return general;
  if (!limits.has_float64) return "the device has no float64";
  if (p.n > tuning::solve_most_columns)
    return fmt::format("more than {} columns", tuning::solve_most_columns);
  const SystemParams params(p.n, p.type, limits);
  const std::string of_group = group_objection(
      group_size(params.group), system_local_bytes(p.n, p.type, params.group), limits);
  if (!of_group.empty() || !is_tall_system(p.m)) return of_group;
  return group_objection(params.tall.at("TEAM"), system_local_bytes(p.n, p.type, params.tall),
                         limits);
}

namespace {

Launcher launcher(Engine& engine, const SystemJob& job, const char* file, const Params& params) {
  const Problem problem{.type = job.type};
  return {engine.kernels,
          engine.compute,
          engine.session.programs,
          {file, defines_for(problem, params, ElementType::float64), "solving systems"}};
}

Launcher group_launcher(Engine& engine, const SystemJob& job) {
  return launcher(engine, job, "gpu/solve/systems.cl", job.params);
}

Launcher normal_launcher(Engine& engine, const SystemJob& job) {
  return launcher(engine, job, "gpu/solve/normal.cl", job.normal_params);
}

Launcher tall_launcher(Engine& engine, const SystemJob& job) {
  return launcher(engine, job, "gpu/solve/tall_systems.cl", job.tall_params);
}

/// x for every right side, from A, b and R.
void enqueue_solve(Engine& engine, const SystemJob& job) {
  if (is_tall_system(job.shape.m)) {
    Launcher launch = tall_launcher(engine, job);
    enqueue_tall_solve(job, launch);
    return;
  }
  Launcher launch = group_launcher(engine, job);
  const index_t sides = job.shape.count * static_cast<index_t>(job.shape.sides);
  launch("solve_systems", ceil_divide(sides, job.params.at("TEAMS")), group_size(job.params), job.a,
         job.b, job.r, job.x, job.shape);
}

/// x and R, from A and b.
void enqueue_normal(Engine& engine, const SystemJob& job) {
  Launcher launch = normal_launcher(engine, job);
  enqueue_normal_solve(job, launch);
}

/// The findings, the errors and the standard errors.
void enqueue_check(Engine& engine, const SystemJob& job) {
  const int group = group_size(job.params), teams = job.params.at("TEAMS");
  const index_t sides = job.shape.count * static_cast<index_t>(job.shape.sides);
  Launcher launch = group_launcher(engine, job);
  launch("measure_factors", std::min(ceil_divide(job.shape.count, teams), job.factor_groups), group,
         job.r, job.findings, job.inverse_norms, job.scratch, job.shape);
  if (is_tall_system(job.shape.m)) {
    Launcher launch_tall = tall_launcher(engine, job);
    enqueue_tall_check(job, launch_tall);
    return;
  }
  launch("check_solutions", ceil_divide(sides, teams), group, job.a, job.b, job.r, job.x,
         job.findings, job.inverse_norms, job.errors, job.se, job.shape);
}

}  // namespace

SystemEvents enqueue_systems(const SystemSetup& setup, const FactorJob& factor,
                             const SystemBuffers& system, SystemShape shape, SystemRoute route) {
  Engine& engine = setup.engine;
  const bool is_normal = route == SystemRoute::normal_equations;
  if (is_normal) shape.least_value = normal_least_value(setup.problem.type, shape.least_value);
  const SystemJob job = system.job(factor, setup.params, shape);
  system.poison(engine.compute, shape.count);
  SystemEvents events;
  engine.compute.enqueueMarkerWithWaitList(nullptr, &events.begun);
  if (is_normal) {
    engine.compute.enqueueMarkerWithWaitList(nullptr, &events.factored);
    enqueue_normal(engine, job);
  } else {
    engine.factor(setup.variant, factor, events.factored);
    enqueue_solve(engine, job);
  }
  engine.compute.enqueueMarkerWithWaitList(nullptr, &events.solved);
  enqueue_check(engine, job);
  engine.compute.enqueueMarkerWithWaitList(nullptr, &events.checked);
  return events;
}

namespace {

/// Some of the systems of a block, one after another, and room for their results.
template <class T>
struct SystemCopies {
  SystemCopies(const SolveProblem& p, index_t right_sides, std::span<const index_t> systems,
               BatchView<const T> from, const RightSideBlock<T>& block)
      : m(p.m), n(p.n), sides(right_sides) {
    for (const index_t i : systems) {
      a.insert(a.end(), from[i].data, from[i].data + m * n);
      b.insert(b.end(), block.b + i * m * sides, block.b + (i + 1) * m * sides);
    }
    const std::size_t count = systems.size() * static_cast<std::size_t>(sides);
    x.resize(count * static_cast<std::size_t>(n));
    if (block.se != nullptr) se.resize(x.size());
    reports.resize(count);
    if (!block.findings.empty()) findings.resize(count);
  }

  RightSideBlock<T> block(const RightSideBlock<T>& of) {
    RightSideBlock<T> block = of;
    block.count = std::ssize(reports);
    block.b = b.data();
    block.x = x.data();
    block.se = se.empty() ? nullptr : se.data();
    block.reports = reports;
    block.findings = findings;
    return block;
  }

  /// Copies the results to where those of the systems belong.
  void give_back(std::span<const index_t> systems, const RightSideBlock<T>& to) const {
    for (index_t i = 0; i < std::ssize(systems); ++i) {
      const index_t s = systems[static_cast<std::size_t>(i)], each = n * sides;
      std::copy_n(x.data() + i * each, each, to.x + s * each);
      if (!se.empty()) std::copy_n(se.data() + i * each, each, to.se + s * each);
      std::copy_n(reports.begin() + i * sides, sides, to.reports.begin() + s * sides);
      if (!findings.empty())
        std::copy_n(findings.begin() + i * sides, sides, to.findings.begin() + s * sides);
    }
  }

  index_t m, n, sides;
  std::vector<T> a, b, x, se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
};

template <class T>
class SystemsOnDevice final : public SystemDevice<T> {
 public:
  SystemsOnDevice(Engine& engine, const SolveProblem& problem, const Plan& plan, SystemRoute first)
      : engine_(engine),
        problem_(problem),
        plan_(plan),
        first_(first),
        setup_(engine, problem, gpu_variant(*plan.variant)),
        factor_bytes_(matrix_bytes(setup_.variant, plan.problem)),
        sums_of_a_(plan.problem),
        pool_(engine.session.context),
        sample_(problem, plan.threads) {}

  std::vector<index_t> run(BatchView<const T> a, const RightSideBlock<T>& block) override;
  SolveSeconds seconds() const override { return seconds_; }

 private:
  /// A sub-chunk from upload to download.
  struct Flight {
    index_t first = 0, count = 0;
    std::unique_ptr<DeviceBuffers> factor;
    std::optional<SystemBuffers> system;
    std::vector<cl::Event> downloads;
    SystemEvents events;
    std::vector<FactorFindings> findings;
    std::vector<SolutionErrors> errors;
    std::vector<std::uint64_t> a_sums, b_sums, x_sums;  // by the device
  };

  /// The run of one call.
  struct Call {
    BatchView<const T> a;
    const RightSideBlock<T>& block;
    index_t sides;
    SystemRoute route;
    std::vector<index_t> refused = {};
    index_t open = 0;  // the first system without results
  };

  std::vector<index_t> try_all(BatchView<const T> a, const RightSideBlock<T>& block,
                               SystemRoute route);
  std::vector<index_t> try_again(BatchView<const T> a, const RightSideBlock<T>& block,
                                 std::span<const index_t> systems);
  SubChunks cut(const Call& call, std::size_t wanted_bytes) const;
  void run_from_first_open(Call& call, SubChunks cut, std::vector<Flight>& flights);
  void start(const Call& call, Flight& flight, int set);
  void enqueue_sums_of(const Flight& flight);
  void download(const Call& call, Flight& flight);
  void collect(Call& call, Flight& flight);
  void compare_sums(const Call& call, const Flight& flight) const;
  void judge(Call& call, const Flight& flight);

  SystemLayout layout(index_t sides) const {
    return {problem_, sides, setup_.params.group, engine_.info.limits};
  }
  SumLayout vector_sums(index_t length, index_t sides) const {
    return SumLayout({.m = length, .n = sides, .type = problem_.type, .mode = Mode::r});
  }
  static T* first_of(T* data, index_t length, const Call& call, const Flight& flight) {
    return data + flight.first * length * call.sides;
  }

  Engine& engine_;
  const SolveProblem& problem_;
  const Plan& plan_;
  SystemRoute first_;
  SystemSetup setup_;
  MatrixBytes factor_bytes_;
  SumLayout sums_of_a_;
  SystemPool pool_;
  SystemSample<T> sample_;
  SolveSeconds seconds_;
};

template <class T>
std::vector<index_t> SystemsOnDevice<T>::run(BatchView<const T> a, const RightSideBlock<T>& block) {
  const DriverScope driver;
  if (block.count < a.count || a.count == 0) return {};
  if (first_ == SystemRoute::factors ||
      !takes_normal_equations(problem_, block.count / a.count, engine_.info.limits))
    return try_all(a, block, SystemRoute::factors);
  const std::vector<index_t> refused = try_all(a, block, SystemRoute::normal_equations);
  return try_again(a, block, refused);
}

/// Solves some systems by factors, in copies of at most solve_again_bytes or one system. Returns
/// those that are refused again.
template <class T>
std::vector<index_t> SystemsOnDevice<T>::try_again(BatchView<const T> a,
                                                   const RightSideBlock<T>& block,
                                                   std::span<const index_t> systems) {
  const index_t m = problem_.m, n = problem_.n, sides = block.count / a.count;
  const auto step = static_cast<std::size_t>(std::max<index_t>(
      1, static_cast<index_t>(tuning::solve_again_bytes / plan_.problem.input_bytes())));
  std::vector<index_t> refused;
  for (std::size_t from = 0; from < systems.size(); from += step) {
    const auto part = systems.subspan(from, std::min(step, systems.size() - from));
    const index_t count = std::ssize(part);
    SystemCopies<T> copies(problem_, sides, part, a, block);
    for (const index_t i :
         try_all(packed(copies.a.data(), count, m, n), copies.block(block), SystemRoute::factors))
      refused.push_back(part[static_cast<std::size_t>(i)]);
    copies.give_back(part, block);
  }
  return refused;
}

template <class T>
std::vector<index_t> SystemsOnDevice<T>::try_all(BatchView<const T> a,
                                                 const RightSideBlock<T>& block,
                                                 SystemRoute route) {
  Call call{.a = a, .block = block, .sides = block.count / a.count, .route = route};
  std::size_t wanted_bytes = tuning::solve_sub_chunk_bytes;
  while (call.open < a.count) {
    const SubChunks parts = cut(call, wanted_bytes);
    // Declared outside `try`, because copies into it may be running until the queues are drained.
    std::vector<Flight> flights(static_cast<std::size_t>(parts.sets));
    try {
      run_from_first_open(call, parts, flights);
    } catch (const cl::Error& error) {
      engine_.drain();
      engine_.pool.clear();
      pool_.clear();
      if (!is_memory_short(error))
        throw_device_error(error, engine_.info,
                           fmt::format("at system {} of the chunk", call.open));
      if (parts.matrices == 1)
        throw LimitError(fmt::format("{} has no memory left for one {}x{} system",
                                     engine_.info.text(), problem_.m, problem_.n),
                         "--backend cpu works in host memory");
      wanted_bytes = plan_.problem.input_bytes() * static_cast<std::size_t>(parts.matrices) / 2;
    } catch (...) {
      engine_.drain();
      throw;
    }
  }
  return std::move(call.refused);
}

template <class T>
SubChunks SystemsOnDevice<T>::cut(const Call& call, std::size_t wanted_bytes) const {
  MatrixBytes bytes = factor_bytes_;
  const std::vector<std::size_t> own = layout(call.sides).bytes;
  bytes.io.insert(bytes.io.end(), own.begin(), own.end());
  return cut_chunk(plan_.problem, bytes, engine_.info.limits, call.a.count - call.open,
                   wanted_bytes);
}

template <class T>
void SystemsOnDevice<T>::run_from_first_open(Call& call, SubChunks cut,
                                             std::vector<Flight>& flights) {
  const index_t first = call.open, parts = ceil_divide(call.a.count - first, cut.matrices);
  const index_t behind = cut.sets - 1;
  for (index_t i = 0; i < parts + behind; ++i) {
    if (i < parts) {
      Flight& flight = flights[static_cast<std::size_t>(i % cut.sets)];
      flight = {};
      flight.first = first + i * cut.matrices;
      flight.count = std::min(cut.matrices, call.a.count - flight.first);
      start(call, flight, static_cast<int>(i % cut.sets));
    }
    if (i >= behind) collect(call, flights[static_cast<std::size_t>((i - behind) % cut.sets)]);
  }
}

/// Enqueues all work of a sub-chunk.
template <class T>
void SystemsOnDevice<T>::start(const Call& call, Flight& flight, int set) {
  const index_t p = call.sides, m = problem_.m;
  flight.factor = std::make_unique<DeviceBuffers>(
      engine_.pool.get(plan_.problem, plan_.params, factor_bytes_, flight.count, set));
  flight.system.emplace(pool_.get(layout(p), flight.count, set));
  const auto systems = static_cast<std::size_t>(flight.count);
  engine_.upload.enqueueWriteBuffer(flight.factor->job.a, CL_FALSE, 0,
                                    systems * plan_.problem.input_bytes(),
                                    call.a[flight.first].data);
  std::vector<cl::Event> uploaded(1);
  engine_.upload.enqueueWriteBuffer(flight.system->b, CL_FALSE, 0,
                                    systems * static_cast<std::size_t>(m * p) * sizeof(T),
                                    call.block.b + flight.first * m * p, nullptr, &uploaded[0]);
  engine_.upload.flush();

  engine_.compute.enqueueBarrierWithWaitList(&uploaded);
  flight.events = enqueue_systems(
      setup_, flight.factor->job, *flight.system,
      system_shape(problem_, flight.count, p, call.block.b_places, call.block.x_places),
      call.route);
  enqueue_sums_of(flight);
  download(call, flight);
}

template <class T>
void SystemsOnDevice<T>::enqueue_sums_of(const Flight& flight) {
  const index_t p = flight.system->layout.sides;
  engine_.sum(*flight.factor, std::array{Summed::a});
  Launcher launch(engine_.kernels, engine_.compute, engine_.session.programs,
                  {sum_file, sum_defines(), "checksums"});
  enqueue_sums(vector_sums(problem_.m, p), Summed::a, flight.system->b, flight.count,
               flight.system->b_sums, launch);
  enqueue_sums(vector_sums(problem_.n, p), Summed::a, flight.system->x, flight.count,
               flight.system->x_sums, launch);
}

template <class T>
void SystemsOnDevice<T>::download(const Call& call, Flight& flight) {
  std::vector<cl::Event> summed(1);
  engine_.compute.enqueueMarkerWithWaitList(nullptr, &summed[0]);
  engine_.compute.flush();
  engine_.download.enqueueBarrierWithWaitList(&summed);
  const auto systems = static_cast<std::size_t>(flight.count);
  const auto read = [&](const cl::Buffer& buffer, auto& host, std::size_t count) {
    host.resize(count);
    engine_.download.enqueueReadBuffer(buffer, CL_FALSE, 0, count * sizeof(host[0]), host.data());
  };
  const index_t p = call.sides, n = problem_.n;
  const std::size_t x_bytes = systems * static_cast<std::size_t>(n * p) * sizeof(T);
  engine_.download.enqueueReadBuffer(flight.system->x, CL_FALSE, 0, x_bytes,
                                     first_of(call.block.x, n, call, flight));
  if (problem_.wants_se && call.block.se != nullptr)
    engine_.download.enqueueReadBuffer(flight.system->se, CL_FALSE, 0, x_bytes,
                                       first_of(call.block.se, n, call, flight));
  read(flight.factor->sums, flight.a_sums, systems * sums_of_a_.sums_of_matrix());
  read(flight.system->b_sums, flight.b_sums, systems * vector_sums(problem_.m, p).sums_of_matrix());
  read(flight.system->x_sums, flight.x_sums, systems * vector_sums(n, p).sums_of_matrix());
  read(flight.system->findings, flight.findings, systems);
  read(flight.system->errors, flight.errors, systems * static_cast<std::size_t>(p));
  flight.downloads.emplace_back();
  engine_.download.enqueueMarkerWithWaitList(nullptr, &flight.downloads.back());
  engine_.download.flush();
}

template <class T>
void SystemsOnDevice<T>::collect(Call& call, Flight& flight) {
  cl::Event::waitForEvents(flight.downloads);
  seconds_.factor += seconds_between(flight.events.begun, flight.events.factored);
  seconds_.solve += seconds_between(flight.events.factored, flight.events.checked);
  compare_sums(call, flight);
  judge(call, flight);
  call.open = flight.first + flight.count;
}

/// Errors: DeviceError where a system did not arrive, or x did not come back, as it was sent.
template <class T>
void SystemsOnDevice<T>::compare_sums(const Call& call, const Flight& flight) const {
  const index_t p = call.sides, m = problem_.m, n = problem_.n;
  const auto compare = [&](const SumLayout& layout, const std::vector<std::uint64_t>& sums,
                           index_t i, MatrixView<const T> host, const char* what) {
    if (layout.checksum(sums, i, Summed::a) == checksum<T>(host)) return;
    throw DeviceError(fmt::format("{}: {} of system {} of the chunk was changed by a copy "
                                  "(checksums differ)",
                                  engine_.info.text(), what, flight.first + i),
                      "--backend cpu works without this device");
  };
  const SumLayout of_b = vector_sums(m, p), of_x = vector_sums(n, p);
  for (index_t i = 0; i < flight.count; ++i) {
    const index_t system = flight.first + i;
    compare(sums_of_a_, flight.a_sums, i, call.a[system], "A");
    compare(of_b, flight.b_sums, i, {call.block.b + system * m * p, 1, m * p, m * p}, "b");
    compare(of_x, flight.x_sums, i, {call.block.x + system * n * p, 1, n * p, n * p}, "x");
  }
}

/// Writes the reports. A system with a right side that the check has not accepted is refused, and
/// so are all of the sub-chunk where the host comes to another verdict on one of its sample.
template <class T>
void SystemsOnDevice<T>::judge(Call& call, const Flight& flight) {
  const double bar = solution_bar(problem_.type, problem_.m, problem_.n);
  std::vector<index_t> accepted, refused;
  for (index_t i = 0; i < flight.count; ++i) {
    const index_t first = (flight.first + i) * call.sides;
    const FactorFindings& found = flight.findings[static_cast<std::size_t>(i)];
    bool is_accepted = true;
    for (index_t j = 0; j < call.sides; ++j) {
      const SolutionErrors& errors = flight.errors[static_cast<std::size_t>(i * call.sides + j)];
      is_accepted = is_accepted && errors.error <= bar;
      SolutionReport& report = call.block.reports[static_cast<std::size_t>(first + j)] = {};
      report.residual_norm = errors.residual_norm;
      report.backward_error = errors.error;
      report.bar = bar;
      report.status = Status::ok;
    }
    (is_accepted ? accepted : refused).push_back(flight.first + i);
    if (!call.block.findings.empty())
      call.block.findings[static_cast<std::size_t>(first)] = {
          .rank = static_cast<std::int32_t>(problem_.n),
          .condition = found.condition,
          .scaled_condition = found.scaled_condition};
  }
  if (!sample_.agrees(call.a, call.block, call.sides, accepted)) {
    refused.resize(static_cast<std::size_t>(flight.count));
    for (index_t i = 0; i < flight.count; ++i)
      refused[static_cast<std::size_t>(i)] = flight.first + i;
  }
  call.refused.insert(call.refused.end(), refused.begin(), refused.end());
}

}  // namespace

template <class T>
std::unique_ptr<SystemDevice<T>> make_system_device(OpenclBackend& backend,
                                                    const SolveProblem& problem, const Plan& plan,
                                                    SystemRoute first) {
  return std::make_unique<SystemsOnDevice<T>>(backend.engine(), problem, plan, first);
}
template std::unique_ptr<SystemDevice<float>> make_system_device(OpenclBackend&,
                                                                 const SolveProblem&, const Plan&,
                                                                 SystemRoute);
template std::unique_ptr<SystemDevice<double>> make_system_device(OpenclBackend&,
                                                                  const SolveProblem&, const Plan&,
                                                                  SystemRoute);

}  // namespace qrtool
