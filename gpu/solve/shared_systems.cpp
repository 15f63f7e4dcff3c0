// SPDX-License-Identifier: Apache-2.0
// shared_systems.cpp: the matrix on the device, sub-chunks of right sides, and what the host makes
// of their errors. Device half: shared.cl, masked.cl.
#include "gpu/solve/shared_systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/checksum.hpp"
#include "core/driver_scope.hpp"
#include "core/error.hpp"
#include "core/solve/backward_error.hpp"
#include "gpu/check/device_sums.hpp"
#include "gpu/host/chunk_run.hpp"
#include "gpu/solve/masked.hpp"
#include "gpu/solve/sample.hpp"
#include "gpu/solve/system_buffers.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

index_t rounded_up(index_t x, index_t step) { return ceil_divide(x, step) * step; }

int block_of(index_t n) {
  return n > tuning::shared_block ? tuning::shared_block : static_cast<int>(rounded_up(n, 2));
}

index_t width_of(index_t n) { return rounded_up(n, block_of(n)); }

std::size_t local_bytes(ElementType type, const Params& params) {
  const auto at = [&](const char* name) { return static_cast<std::size_t>(params.at(name)); };
  const std::size_t fetched = at("GROUP") * at("SIDES") * (at("ROWS") | 1) * size_of(type);
  return at("SLAB_ROWS") * (at("BLOCK") + at("WEIGHS")) * sizeof(double) +
         (at("IN_ROWS") != 0 ? fetched : 0);
}

}  // namespace

SharedParams::SharedParams(const SolveProblem& p, SidesLayout layout, bool weighs) {
  const bool in_rows = layout == SidesLayout::rows, is_masked = masks_on_device(p);
  const int rows =
      in_rows ? tuning::shared_row_bytes / static_cast<int>(size_of(p.type)) : tuning::shared_rows;
  solve = {{"COLUMNS", static_cast<int>(p.n)},
           {"BLOCK", block_of(p.n)},
           {"GROUP", tuning::shared_group},
           {"SIDES", 2},
           {"ROWS", rows},
           {"IN_ROWS", in_rows},
           {"WEIGHS", weighs}};
  if (is_masked)
    for (const auto& [name, value] : masked_params(p)) solve[name] = value;
  const int slab = tuning::shared_slab_bytes / static_cast<int>(sizeof(double)) / solve.at("BLOCK");
  solve["SLAB_ROWS"] = std::max(1, slab / rows) * rows;
  check = solve;
  check["SIDES"] = is_masked || solve.at("BLOCK") > 8 ? 1 : 2;
}

std::string shared_objection(const SolveProblem& p, index_t side_by_side, const Limits& limits) {
  if (p.n == 0 || p.m == 0) return "nothing to compute";
  if (!limits.has_float64) return "the device has no float64";
  if (p.packed_rows() < p.n) return "fewer rows than columns";
  if (p.n > tuning::shared_most_columns)
    return fmt::format("one A of more than {} columns serves all right sides",
                       tuning::shared_most_columns);
  if (p.packed_rows() > tuning::shared_most_rows)
    return fmt::format("one A of more than {} rows serves all right sides",
                       tuning::shared_most_rows);
  if (side_by_side > 0 && side_by_side < tuning::shared_least_side_by_side)
    return fmt::format("fewer than {} right sides lie side by side",
                       tuning::shared_least_side_by_side);
  const SharedParams params(p, SidesLayout::rows, true);
  return group_objection(params.solve.at("GROUP"), local_bytes(p.type, params.solve), limits);
}

namespace {

template <class Number>
cl::Buffer uploaded(Engine& engine, const std::vector<Number>& numbers) {
  const cl::Buffer buffer(engine.session.context, CL_MEM_READ_ONLY,
                          std::max<std::size_t>(numbers.size() * sizeof(Number), 64));
  if (!numbers.empty())
    engine.upload.enqueueWriteBuffer(buffer, CL_TRUE, 0, numbers.size() * sizeof(Number),
                                     numbers.data());
  return buffer;
}

/// rows x width with zeros after the last column, times 2^scale.
std::vector<double> padded(MatrixView<const double> from, index_t rows, index_t width, int scale) {
  std::vector<double> to(static_cast<std::size_t>(rows * width));
  for (index_t i = 0; i < rows; ++i)
    for (index_t j = 0; j < from.cols; ++j)
      to[static_cast<std::size_t>(i * width + j)] = std::ldexp(from(i, j), scale);
  return to;
}

/// R 2^scale with the reciprocals of its diagonal, and 1 after the last one.
std::vector<double> triangle(const SharedFactors& factors, index_t n, index_t width) {
  std::vector<double> r(static_cast<std::size_t>(width * width));
  for (index_t i = 0; i < width; ++i)
    for (index_t j = i; j < width; ++j) {
      const double entry = j < n ? std::ldexp(factors.r(i, j), factors.scale) : 0;
      r[static_cast<std::size_t>(i * width + j)] = i < j ? entry : j < n ? 1 / entry : 1;
    }
  return r;
}

/// The matrix on the device, and the programs for it.
struct SharedSetup {
  SharedSetup(Engine& used, const SolveProblem& solved, const SharedFactors& factors,
              SidesLayout of_sides)
      : engine(used),
        problem(solved),
        layout(of_sides),
        is_masked(masks_on_device(solved)),
        params(solved, of_sides, !factors.row_factors.empty()) {
    if (engine.info.limits.is_cpu)
      params.solve["GROUP"] = params.check["GROUP"] = tuning::shared_group_on_cpu;
    const index_t m = problem.packed_rows(), n = problem.n, width = width_of(n);
    const std::vector<double> rows = padded(factors.a, m, width, factors.scale);
    a = uploaded(engine, is_masked ? masked_rows({rows.data(), m, n, width}, params.solve) : rows);
    q = uploaded(engine, padded(factors.q, m, width, 0));
    r = uploaded(engine, triangle(factors, n, width));
    std::vector<double> of_rows(factors.row_factors.begin(), factors.row_factors.end());
    if (!of_rows.empty()) of_rows.resize(static_cast<std::size_t>(m));
    weights = uploaded(engine, of_rows);
    std::vector<double> norms(factors.inverse_norms.begin(), factors.inverse_norms.end());
    for (double& of_row : norms) of_row = std::ldexp(of_row, -factors.scale);
    inverse_norms = uploaded(engine, norms);
    double squares = 0;
    for (index_t i = 0; i < n; ++i)
      for (index_t j = i; j < n; ++j) squares += factors.r(i, j) * factors.r(i, j);
    norm = std::ldexp(std::sqrt(squares), factors.scale);
    freedom = factors.freedom;
  }

  Launcher launcher(const Params& of) const {
    const Problem typed{.type = problem.type};
    return {engine.kernels,
            engine.compute,
            engine.session.programs,
            {is_masked ? "gpu/solve/masked.cl" : "gpu/solve/shared.cl",
             defines_for(typed, of, ElementType::float64), "solving systems"}};
  }

  /// b_ld and x_ld: those of `count` right sides, packed.
  SharedShape shape(index_t count) const {
    const bool in_rows = layout == SidesLayout::rows;
    const double least = tuning::solve_rank_margin * problem.rank.tolerance;
    const bool is_double = problem.type == ElementType::float64;
    return {
        .b_ld = in_rows ? problem.m : count,
        .x_ld = in_rows ? problem.n : count,
        .count = count,
        .norm = norm,
        .least_value = is_double ? std::max(least, 1 / tuning::masked_most_condition) : least,
        .root_freedom = freedom > 0 ? std::sqrt(freedom) : std::numeric_limits<double>::quiet_NaN(),
        .m = static_cast<int>(problem.packed_rows()),
        .data_rows = static_cast<int>(problem.m),
        .wants_se = problem.wants_se,
        .reserved = 0};
  }

  /// Bytes of one right side: b, x, se, errors, findings, scratch.
  std::vector<std::size_t> bytes() const {
    const auto m = static_cast<std::size_t>(problem.m), n = static_cast<std::size_t>(problem.n);
    const auto width = static_cast<std::size_t>(width_of(problem.n));
    const std::size_t element = size_of(problem.type);
    const bool has_blocks = problem.n > tuning::shared_block;
    const auto rows = static_cast<std::size_t>(problem.packed_rows());
    return {element * m,
            element * n,
            problem.wants_se ? element * n : 0,
            sizeof(SolutionErrors),
            is_masked ? sizeof(FactorFindings) : 0,
            has_blocks ? sizeof(double) * (rows + 1 + width) : 0};
  }

  Engine& engine;
  const SolveProblem& problem;
  SidesLayout layout;
  bool is_masked;
  SharedParams params;
  cl::Buffer a, q, r, weights, inverse_norms;
  double norm = 0, freedom = 0;
};

struct SharedBuffers {
  cl::Buffer b, x, se, errors, findings, scratch;

  SharedBuffers(SystemPool& pool, const SharedSetup& setup, index_t count, int set) {
    const std::vector<std::size_t> bytes = setup.bytes();
    std::size_t entry = 0;
    for (cl::Buffer* buffer : {&b, &x, &se, &errors, &findings, &scratch}) {
      *buffer = pool.grown({set, entry}, bytes[entry] * static_cast<std::size_t>(count));
      ++entry;
    }
  }
};

struct SharedEvents {
  cl::Event begun, solved, checked;
};

void enqueue_solve(const SharedSetup& setup, const SharedBuffers& buffers,
                   const SharedShape& shape) {
  const Params& params = setup.params.solve;
  const int group = params.at("GROUP");
  const index_t groups = ceil_divide(shape.count, group * params.at("SIDES"));
  Launcher launch = setup.launcher(params);
  if (setup.is_masked) {
    launch("solve_masked", groups, group, buffers.b, setup.a, setup.weights, buffers.x, shape);
  } else {
    launch("solve_shared", groups, group, buffers.b, setup.q, setup.r, setup.weights,
           buffers.scratch, buffers.x, shape);
  }
}

void enqueue_check(const SharedSetup& setup, const SharedBuffers& buffers,
                   const SharedShape& shape) {
  const Params& params = setup.params.check;
  const int group = params.at("GROUP");
  const index_t groups = ceil_divide(shape.count, group * params.at("SIDES"));
  Launcher launch = setup.launcher(params);
  if (setup.is_masked) {
    launch("check_masked", groups, group, buffers.b, setup.a, setup.weights, buffers.x,
           buffers.findings, buffers.errors, buffers.se, shape);
  } else if (setup.problem.n <= tuning::shared_block) {
    launch("check_shared", groups, group, buffers.b, setup.a, setup.r, setup.weights, buffers.x,
           setup.inverse_norms, buffers.errors, buffers.se, shape);
  } else {
    launch("find_residuals", groups, group, buffers.b, setup.a, setup.weights, buffers.x,
           buffers.scratch, shape);
    launch("check_residuals", groups, group, buffers.scratch, setup.a, setup.r, setup.weights,
           buffers.x, setup.inverse_norms, buffers.errors, buffers.se, shape);
  }
}

/// x, and then the errors. Results of an earlier run must not pass for those of this one.
SharedEvents enqueue_shared(const SharedSetup& setup, const SharedBuffers& buffers, index_t count) {
  cl::CommandQueue& queue = setup.engine.compute;
  const SharedShape shape = setup.shape(count);
  const std::vector<std::size_t> bytes = setup.bytes();
  const auto sides = static_cast<std::size_t>(count);
  constexpr cl_uint nan = 0xffffffff;
  queue.enqueueFillBuffer(buffers.x, nan, 0, sides * bytes[1]);
  queue.enqueueFillBuffer(buffers.errors, nan, 0, sides * bytes[3]);
  SharedEvents events;
  queue.enqueueMarkerWithWaitList(nullptr, &events.begun);
  enqueue_solve(setup, buffers, shape);
  queue.enqueueMarkerWithWaitList(nullptr, &events.solved);
  enqueue_check(setup, buffers, shape);
  queue.enqueueMarkerWithWaitList(nullptr, &events.checked);
  return events;
}

// ---- sub-chunks

/// Some neighbours of a block.
struct SharedPart {
  index_t first = 0, count = 0;
};

template <class T>
class SharedOnDevice final : public SharedDevice<T> {
 public:
  SharedOnDevice(Engine& engine, const SolveProblem& problem, MatrixView<const T> a,
                 const SharedFactors& factors, SidesLayout layout)
      : engine_(engine),
        problem_(problem),
        a_(a),
        setup_(engine, problem, factors, layout),
        pool_(engine.session.context),
        sample_(problem, /*threads=*/2) {}

  std::vector<index_t> run(const RightSideBlock<T>& block) override;
  double seconds() const override { return seconds_; }

 private:
  struct Flight {
    SharedPart part;
    std::optional<SharedBuffers> buffers;
    cl::Buffer sums_of_b, sums_of_x;
    SharedEvents events;
    std::vector<cl::Event> downloads;
    std::vector<SolutionErrors> errors;
    std::vector<FactorFindings> findings;
    std::vector<std::uint64_t> b_sums, x_sums;  // by the device
  };

  void run_parts(const RightSideBlock<T>& block, std::span<const SharedPart> parts, index_t sets,
                 std::vector<Flight>& flights);
  std::vector<SharedPart> parts_of(const RightSideBlock<T>& block, index_t at_once) const;
  void start(const RightSideBlock<T>& block, Flight& flight, int set);
  void upload(const RightSideBlock<T>& block, const Flight& flight, cl::Event& uploaded);
  void enqueue_sums_of(Flight& flight, int set);
  void download(const RightSideBlock<T>& block, Flight& flight);
  void collect(const RightSideBlock<T>& block, Flight& flight);
  void compare_sums(const RightSideBlock<T>& block, const Flight& flight) const;
  void judge(const RightSideBlock<T>& block, const Flight& flight);

  /// All vectors of a part as one matrix.
  SumLayout sums_of(index_t length, index_t count) const {
    return SumLayout({.m = length, .n = count, .type = problem_.type, .mode = Mode::r});
  }
  /// Rows of `length` neighbours, or `length` rows of the part's right sides.
  template <class Number>
  MatrixView<Number> view_of(const SharedPart& part, Number* data, const VectorPlaces& places,
                             index_t length) const {
    Number* first = data + places.start(part.first);
    if (setup_.layout == SidesLayout::rows) return {first, part.count, length, places.group_stride};
    return {first, length, part.count, places.step};
  }

  Engine& engine_;
  const SolveProblem& problem_;
  MatrixView<const T> a_;
  SharedSetup setup_;
  SystemPool pool_;
  SystemSample<T> sample_;
  std::vector<index_t> refused_;
  double seconds_ = 0;
};

using Place = std::array<std::size_t, 3>;

/// The bytes of a row, and the rows.
template <class T>
Place region_of(const MatrixView<T>& host) {
  return {static_cast<std::size_t>(host.cols) * sizeof(T), static_cast<std::size_t>(host.rows), 1};
}

/// The device's rows are packed.
template <class T>
void write_rows(const cl::CommandQueue& queue, const cl::Buffer& to, MatrixView<const T> host,
                cl::Event* written) {
  const Place region = region_of(host);
  if (host.ld == host.cols) {
    queue.enqueueWriteBuffer(to, CL_FALSE, 0, region[0] * region[1], host.data, nullptr, written);
  } else {
    queue.enqueueWriteBufferRect(to, CL_FALSE, Place{}, Place{}, region, region[0], 0,
                                 static_cast<std::size_t>(host.ld) * sizeof(T), 0, host.data,
                                 nullptr, written);
  }
}

template <class T>
void read_rows(const cl::CommandQueue& queue, const cl::Buffer& from, MatrixView<T> host) {
  const Place region = region_of(host);
  if (host.ld == host.cols) {
    queue.enqueueReadBuffer(from, CL_FALSE, 0, region[0] * region[1], host.data);
  } else {
    queue.enqueueReadBufferRect(from, CL_FALSE, Place{}, Place{}, region, region[0], 0,
                                static_cast<std::size_t>(host.ld) * sizeof(T), 0, host.data);
  }
}

/// Parts end where a matrix of columns ends.
template <class T>
std::vector<SharedPart> SharedOnDevice<T>::parts_of(const RightSideBlock<T>& block,
                                                    index_t at_once) const {
  const bool in_rows = setup_.layout == SidesLayout::rows;
  const index_t group = in_rows ? block.count : block.b_places.group;
  std::vector<SharedPart> parts;
  for (index_t first = 0; first < block.count; first += parts.back().count)
    parts.push_back({first, std::min({at_once, block.count - first, group - first % group})});
  return parts;
}

template <class T>
std::vector<index_t> SharedOnDevice<T>::run(const RightSideBlock<T>& block) {
  const DriverScope driver;
  if (block.count == 0) return {};
  refused_.clear();
  const Problem one{.count = block.count, .m = problem_.m, .n = 1, .type = problem_.type};
  const SubChunks cut = cut_chunk(one, {.io = setup_.bytes(), .work = {}, .check = {}},
                                  engine_.info.limits, block.count, tuning::solve_sub_chunk_bytes);
  // Declared outside `try`, because copies into it may be running until the queues are drained.
  std::vector<Flight> flights(static_cast<std::size_t>(cut.sets));
  try {
    run_parts(block, parts_of(block, cut.matrices), cut.sets, flights);
  } catch (const cl::Error& error) {
    engine_.drain();
    pool_.clear();
    if (!is_memory_short(error))
      throw_device_error(error, engine_.info, "at right sides of the chunk");
    throw LimitError(
        fmt::format("{} has no memory left for {} right sides", engine_.info.text(), cut.matrices),
        "--backend cpu works in host memory");
  } catch (...) {
    engine_.drain();
    throw;
  }
  return std::move(refused_);
}

template <class T>
void SharedOnDevice<T>::run_parts(const RightSideBlock<T>& block, std::span<const SharedPart> parts,
                                  index_t sets, std::vector<Flight>& flights) {
  const index_t count = std::ssize(parts), behind = sets - 1;
  for (index_t i = 0; i < count + behind; ++i) {
    if (i < count) {
      Flight& flight = flights[static_cast<std::size_t>(i % sets)];
      flight = {};
      flight.part = parts[static_cast<std::size_t>(i)];
      start(block, flight, static_cast<int>(i % sets));
    }
    if (i >= behind && i - behind < count)
      collect(block, flights[static_cast<std::size_t>((i - behind) % sets)]);
  }
}

/// Enqueues all work of a part.
template <class T>
void SharedOnDevice<T>::start(const RightSideBlock<T>& block, Flight& flight, int set) {
  flight.buffers.emplace(pool_, setup_, flight.part.count, set);
  std::vector<cl::Event> uploaded(1);
  write_rows<T>(engine_.upload, flight.buffers->b,
                view_of(flight.part, block.b, block.b_places, problem_.m), &uploaded[0]);
  engine_.upload.flush();
  engine_.compute.enqueueBarrierWithWaitList(&uploaded);
  flight.events = enqueue_shared(setup_, *flight.buffers, flight.part.count);
  enqueue_sums_of(flight, set);
  download(block, flight);
}

template <class T>
void SharedOnDevice<T>::enqueue_sums_of(Flight& flight, int set) {
  Launcher launch(engine_.kernels, engine_.compute, engine_.session.programs,
                  {sum_file, sum_defines(), "checksums"});
  const auto enqueue = [&](index_t length, const cl::Buffer& of, std::size_t entry) {
    const SumLayout layout = sums_of(length, flight.part.count);
    const cl::Buffer sums = pool_.grown({set, entry}, layout.bytes());
    enqueue_sums(layout, Summed::a, of, 1, sums, launch);
    return sums;
  };
  const std::size_t entries = setup_.bytes().size();
  flight.sums_of_b = enqueue(problem_.m, flight.buffers->b, entries);
  flight.sums_of_x = enqueue(problem_.n, flight.buffers->x, entries + 1);
}

template <class T>
void SharedOnDevice<T>::download(const RightSideBlock<T>& block, Flight& flight) {
  std::vector<cl::Event> summed(1);
  engine_.compute.enqueueMarkerWithWaitList(nullptr, &summed[0]);
  engine_.compute.flush();
  engine_.download.enqueueBarrierWithWaitList(&summed);
  const auto read = [&](const cl::Buffer& buffer, auto& host, std::size_t count) {
    host.resize(count);
    engine_.download.enqueueReadBuffer(buffer, CL_FALSE, 0, count * sizeof(host[0]), host.data());
  };
  const SharedPart& part = flight.part;
  const index_t m = problem_.m, n = problem_.n;
  const auto count = static_cast<std::size_t>(part.count);
  read_rows<T>(engine_.download, flight.buffers->x, view_of(part, block.x, block.x_places, n));
  if (problem_.wants_se && block.se != nullptr)
    read_rows<T>(engine_.download, flight.buffers->se, view_of(part, block.se, block.x_places, n));
  read(flight.buffers->errors, flight.errors, count);
  if (setup_.is_masked) read(flight.buffers->findings, flight.findings, count);
  read(flight.sums_of_b, flight.b_sums, sums_of(m, part.count).sums_of_matrix());
  read(flight.sums_of_x, flight.x_sums, sums_of(n, part.count).sums_of_matrix());
  flight.downloads.emplace_back();
  engine_.download.enqueueMarkerWithWaitList(nullptr, &flight.downloads.back());
  engine_.download.flush();
}

template <class T>
void SharedOnDevice<T>::collect(const RightSideBlock<T>& block, Flight& flight) {
  cl::Event::waitForEvents(flight.downloads);
  seconds_ += seconds_between(flight.events.begun, flight.events.checked);
  compare_sums(block, flight);
  judge(block, flight);
}

/// Errors: DeviceError where b did not arrive, or x did not come back, as it was sent.
template <class T>
void SharedOnDevice<T>::compare_sums(const RightSideBlock<T>& block, const Flight& flight) const {
  const SharedPart& part = flight.part;
  const auto compare = [&](std::span<const std::uint64_t> sums, MatrixView<const T> host,
                           index_t length, const char* what) {
    if (sums_of(length, part.count).checksum(sums, 0, Summed::a) == checksum<T>(host)) return;
    throw DeviceError(
        fmt::format("{}: {} of right sides {} to {} of the chunk was changed by a copy "
                    "(checksums differ)",
                    engine_.info.text(), what, part.first, part.first + part.count - 1),
        "--backend cpu works without this device");
  };
  compare(flight.b_sums, view_of<const T>(part, block.b, block.b_places, problem_.m), problem_.m,
          "b");
  compare(flight.x_sums, view_of<const T>(part, block.x, block.x_places, problem_.n), problem_.n,
          "x");
}

/// Writes the reports. Right sides that the check has not accepted are refused, and so are all of
/// the part where the host comes to another verdict on one of its sample.
template <class T>
void SharedOnDevice<T>::judge(const RightSideBlock<T>& block, const Flight& flight) {
  const double bar = solution_bar(problem_.type, problem_.packed_rows(), problem_.n);
  std::vector<index_t> accepted, refused;
  for (index_t i = 0; i < flight.part.count; ++i) {
    const index_t side = flight.part.first + i;
    const auto from = static_cast<std::size_t>(i), to = static_cast<std::size_t>(side);
    const SolutionErrors& errors = flight.errors[from];
    (errors.error <= bar ? accepted : refused).push_back(side);
    SolutionReport& report = block.reports[to] = {};
    report.residual_norm = errors.residual_norm;
    report.backward_error = errors.error;
    report.bar = bar;
    report.status = Status::ok;
    if (setup_.is_masked && !block.findings.empty())
      block.findings[to] = {.rank = static_cast<std::int32_t>(problem_.n),
                            .condition = flight.findings[from].condition,
                            .scaled_condition = flight.findings[from].scaled_condition};
  }
  const BatchView<const T> same_a{a_.data, block.count, a_.rows, a_.cols, a_.ld, /*stride=*/0};
  if (!sample_.agrees(same_a, block, /*sides=*/1, accepted)) {
    refused.clear();
    for (index_t i = 0; i < flight.part.count; ++i) refused.push_back(flight.part.first + i);
  }
  refused_.insert(refused_.end(), refused.begin(), refused.end());
}

}  // namespace

template <class T>
std::unique_ptr<SharedDevice<T>> make_shared_device(OpenclBackend& backend,
                                                    const SolveProblem& problem,
                                                    MatrixView<const T> a,
                                                    const SharedFactors& factors,
                                                    SidesLayout layout) {
  return std::make_unique<SharedOnDevice<T>>(backend.engine(), problem, a, factors, layout);
}
template std::unique_ptr<SharedDevice<float>> make_shared_device(OpenclBackend&,
                                                                 const SolveProblem&,
                                                                 MatrixView<const float>,
                                                                 const SharedFactors&, SidesLayout);
template std::unique_ptr<SharedDevice<double>> make_shared_device(OpenclBackend&,
                                                                  const SolveProblem&,
                                                                  MatrixView<const double>,
                                                                  const SharedFactors&,
                                                                  SidesLayout);

// ---- right sides that stay on the device

template <class T>
struct ResidentShared<T>::State {
  State(Engine& used, const SolveProblem& problem, const SharedFactors& factors,
        std::span<const T> b, index_t sides, SidesLayout layout)
      : engine(used),
        setup(used, problem, factors, layout),
        pool(used.session.context),
        count(sides) {
    guard([&] {
      buffers.emplace(pool, setup, count, 0);
      layout == SidesLayout::rows ? repeat(b.data(), std::ssize(b)) : repeat_columns(b);
      engine.upload.finish();
    });
  }

  /// Uploads some numbers of b and copies them as often as needed.
  void repeat(const T* from, index_t some) const {
    const std::size_t all = static_cast<std::size_t>(count * setup.problem.m) * sizeof(T);
    std::size_t there = std::min(static_cast<std::size_t>(some) * sizeof(T), all);
    engine.upload.enqueueWriteBuffer(buffers->b, CL_TRUE, 0, there, from);
    while (there < all) {
      const std::size_t more = std::min(there, all - there);
      engine.upload.enqueueCopyBuffer(buffers->b, buffers->b, 0, there, more);
      there += more;
    }
  }

  /// The same, a row of all right sides at a time.
  void repeat_columns(std::span<const T> b) const {
    const index_t m = setup.problem.m, some = std::ssize(b) / m;
    std::vector<T> row(static_cast<std::size_t>(count));
    for (index_t i = 0; i < m; ++i) {
      for (index_t s = 0; s < std::min(some, count); ++s)
        row[static_cast<std::size_t>(s)] = b[static_cast<std::size_t>(s * m + i)];
      for (index_t s = some; s < count; ++s)
        row[static_cast<std::size_t>(s)] = row[static_cast<std::size_t>(s - some)];
      engine.upload.enqueueWriteBuffer(buffers->b, CL_TRUE,
                                       static_cast<std::size_t>(i) * row.size() * sizeof(T),
                                       row.size() * sizeof(T), row.data());
    }
  }

  /// body() must end with a wait.
  template <class Body>
  void guard(Body body) const {
    run_or_explain(engine, "the right sides", body);
  }

  Engine& engine;
  SharedSetup setup;
  SystemPool pool;
  index_t count;
  std::optional<SharedBuffers> buffers;
};

template <class T>
ResidentShared<T>::ResidentShared(OpenclBackend& backend, const SolveProblem& problem,
                                  const SharedFactors& factors, std::span<const T> b, index_t count,
                                  SidesLayout layout)
    : state_(std::make_unique<State>(backend.engine(), problem, factors, b, count, layout)) {}

template <class T>
ResidentShared<T>::~ResidentShared() = default;

template <class T>
typename ResidentShared<T>::Seconds ResidentShared<T>::run() {
  State& s = *state_;
  SharedEvents events;
  s.guard([&] {
    events = enqueue_shared(s.setup, *s.buffers, s.count);
    s.engine.compute.finish();
  });
  return {seconds_between(events.begun, events.solved),
          seconds_between(events.solved, events.checked)};
}

template <class T>
std::vector<SolutionErrors> ResidentShared<T>::errors() const {
  const State& s = *state_;
  std::vector<SolutionErrors> errors(static_cast<std::size_t>(s.count));
  s.guard([&] {
    s.engine.compute.enqueueReadBuffer(s.buffers->errors, CL_TRUE, 0,
                                       errors.size() * sizeof(SolutionErrors), errors.data());
  });
  return errors;
}

template class ResidentShared<float>;
template class ResidentShared<double>;

}  // namespace qrtool
