// SPDX-License-Identifier: Apache-2.0
// systems.cpp: takes systems through a device in sub-chunks, and judges the errors that it found.
#include "gpu/solve/systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <future>
#include <optional>
#include <span>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"
#include "core/measure/checksum.hpp"
#include "core/solve/engines/side_copies.hpp"
#include "gpu/pipeline/flights.hpp"
#include "gpu/pipeline/tuning.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/from_r/wide.hpp"
#include "gpu/solve/input/ridge.hpp"
#include "gpu/solve/input/system_input.hpp"
#include "gpu/solve/input/weights.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/pairs.hpp"
#include "gpu/solve/parts/sample.hpp"
#include "gpu/solve/parts/system_buffers.hpp"
#include "gpu/solve/parts/tuning.hpp"
#include "gpu/solve/system_launches.hpp"
#include "gpu/solve/system_layout.hpp"

namespace qrtool {
namespace {

template <class T>
class SystemsOnDevice final : public SystemDevice<T> {
 public:
  SystemsOnDevice(FactorEngine& engine, const SolveProblem& problem, const Plan& plan,
                  SystemRoute first)
      : engine_(engine),
        problem_(problem),
        is_wide_(is_wide(problem)),
        posed_(with_ridge_rows(problem)),
        solved_(is_wide_ ? turned(posed_) : posed_),
        plan_(plan),
        first_(first),
        setup_{engine, solved_, gpu_variant(*plan.variant)},
        factor_bytes_(matrix_bytes(setup_.variant, plan.problem)),
        sums_of_a_(vector_sums(problem.m, problem.n)),
        pool_(*engine.session.context),
        sample_(problem, plan.threads) {}

  void prepare(index_t sides, bool shares_a) override;
  std::vector<index_t> run(BatchView<const T> a, const RightSideBlock<T>& block) override;
  SolveSeconds seconds() const override { return seconds_; }

 private:
  /// Everything but x that the device sends back of a sub-chunk. The host examines it.
  struct Answers {
    index_t first = 0, count = 0;
    std::vector<FactorFindings> findings;
    std::vector<SolutionErrors> errors;
    std::vector<double> least_norms;                            // errors, of wide systems
    std::vector<int> left_out;                                  // rows of each system
    std::vector<std::uint64_t> a_sums, b_sums, x_sums, w_sums;  // by the device
  };

  /// A sub-chunk from upload to download.
  struct Flight {
    std::unique_ptr<DeviceBuffers> factor;
    std::optional<SystemBuffers> system;
    WideBuffers wide;
    InputShape shape;
    SystemInput input;
    Event uploaded, downloaded;
    SystemEvents events;
    Answers answers;
  };

  /// The arguments of one call, and the systems that it refuses. A thread examines a sub-chunk
  /// while the device goes on; `look` gives what it refuses.
  struct Call {
    BatchView<const T> a;
    const RightSideBlock<T>& block;
    index_t sides;
    SystemRoute route;
    std::vector<index_t> refused = {};
    std::future<std::vector<index_t>> look = {};

    void finish_look() {
      if (!look.valid()) return;
      const std::vector<index_t> more = look.get();
      refused.insert(refused.end(), more.begin(), more.end());
    }
  };

  /// The parts of one call.
  class Parts final : public FlightWork<Flight> {
   public:
    Parts(SystemsOnDevice& all, Call& call) : all_(all), call_(call) {}

    SubChunks cut(index_t count) const override { return all_.cut(call_, count); }
    void begin(int set, index_t first, index_t count) override {
      Flight& flight = this->flight_of(set);
      flight = {};
      flight.answers.first = first;
      flight.answers.count = count;
      all_.upload(call_, flight, set);
    }
    void launch(int set) override { all_.launch(call_, this->flight_of(set)); }
    void collect(int set) override { all_.collect(call_, this->flight_of(set)); }
    void free_buffers() override { all_.pool_.clear(); }
    std::string item() const override {
      return fmt::format("{}x{} system", all_.problem_.m, all_.problem_.n);
    }
    std::string place(index_t number) const override {
      return fmt::format("system {} of the chunk", number);
    }

   private:
    SystemsOnDevice& all_;
    Call& call_;
  };

  std::vector<index_t> try_all(BatchView<const T> a, const RightSideBlock<T>& block,
                               SystemRoute route);
  std::vector<index_t> try_again(BatchView<const T> a, const RightSideBlock<T>& block,
                                 std::span<const index_t> systems);
  SubChunks cut(const Call& call, index_t count) const;
  void upload(const Call& call, Flight& flight, int set);
  void launch(const Call& call, Flight& flight);
  void enqueue_sums_of_input(const Flight& flight);
  void enqueue_sums_of_x(const Flight& flight);
  void correct_errors(const Call& call, index_t system, index_t left_out);
  InputShape input_shape(const Call& call, index_t count) const {
    const bool shares_a = call.a.stride == 0;
    return {.systems = count,
            .sides = call.sides,
            .shares_a = shares_a,
            .shares_weights = call.block.w_places.group_stride == 0,
            .by_pairs = !is_wide_ && shares_a && call.route == SystemRoute::normal_equations &&
                        takes_pairs(solved_, engine_.info.limits),
            .sides_are_rows = call.block.b_places.group == 1};
  }
  void download(const Call& call, Flight& flight);
  void collect(Call& call, Flight& flight);
  std::vector<index_t> look_at(const Call& call, const Answers& answers);
  void compare_sums(const Call& call, const Answers& answers) const;
  std::vector<index_t> judge(const Call& call, const Answers& answers);

  bool has_ridge() const { return problem_.ridge > 0; }
  SystemLayout layout(index_t sides) const {
    return system_layout(posed_, sides, engine_.info.limits);
  }
  SystemShape system_shape_of(const Call& call, const InputShape& of) const {
    const index_t m = posed_.m;
    return system_shape(
        posed_, of.systems, of.sides,
        of.sides_are_rows ? VectorPlaces::rows(m) : VectorPlaces::columns(m, of.sides),
        call.block.x_places);
  }
  SumLayout vector_sums(index_t length, index_t sides) const {
    return SumLayout({.m = length, .n = sides, .type = problem_.type, .mode = Mode::r});
  }
  static T* first_of(T* data, index_t length, const Call& call, const Flight& flight) {
    return data + flight.answers.first * length * call.sides;
  }

  FactorEngine& engine_;
  const SolveProblem& problem_;
  bool is_wide_;
  SolveProblem posed_;   // with a ridge, longer A and b
  SolveProblem solved_;  // what R is of: of wide systems A'
  const Plan& plan_;
  SystemRoute first_;
  SystemSetup setup_;
  MatrixBytes factor_bytes_;
  SumLayout sums_of_a_;
  SystemPool pool_;
  SystemSample<T> sample_;
  SolveSeconds seconds_;
  std::future<void> preparing_;
};

template <class T>
void SystemsOnDevice<T>::prepare(index_t sides, bool shares_a) {
  ProgramCache& programs = engine_.session.programs;
  if (!programs.has_parts()) return;
  std::vector<WantedKernels> wanted =
      wanted_by_systems(posed_, sides, engine_.info.limits, first_, shares_a);
  wanted.push_back(wanted_sums());
  std::erase_if(wanted, [&](const WantedKernels& each) { return programs.has(each); });
  if (wanted.empty()) return;
  preparing_ = std::async(std::launch::async | std::launch::deferred,
                          [&programs, wanted = std::move(wanted)] {
                            const DriverScope driver;
                            programs.prepare(wanted);
                          });
}

template <class T>
std::vector<index_t> SystemsOnDevice<T>::run(BatchView<const T> a, const RightSideBlock<T>& block) {
  if (preparing_.valid()) preparing_.get();
  if (block.count < a.count || a.count == 0) return {};
  if (first_ == SystemRoute::factors || is_wide_ ||
      !takes_normal_equations(solved_, block.count / a.count, engine_.info.limits))
    return try_all(a, block, SystemRoute::factors);
  const std::vector<index_t> refused = try_all(a, block, first_);
  return try_again(a, block, refused);
}

/// Solves some systems by factors, in copies of at most solve_again_bytes or one system. Each has
/// one right side, as normal equations take them. Returns those that are refused again.
template <class T>
std::vector<index_t> SystemsOnDevice<T>::try_again(BatchView<const T> a,
                                                   const RightSideBlock<T>& block,
                                                   std::span<const index_t> systems) {
  const auto step = static_cast<std::size_t>(std::max<index_t>(
      1, static_cast<index_t>(tuning::solve_again_bytes / plan_.problem.input_bytes())));
  std::vector<index_t> refused;
  for (std::size_t from = 0; from < systems.size(); from += step) {
    const auto part = systems.subspan(from, std::min(step, systems.size() - from));
    SideCopies<T> copies(problem_, block, part, plan_.threads);
    const index_t count = std::ssize(part);
    const bool shares_a = a.stride == 0;
    const Batch<T> own(shares_a ? 0 : count, a.rows, a.cols);
    for (index_t i = 0; i < own.view().count; ++i)
      std::copy_n(a[part[static_cast<std::size_t>(i)]].data, a.rows * a.cols, own.view()[i].data);
    const BatchView<const T> matrices =
        shares_a ? BatchView<const T>{a.data, count, a.rows, a.cols, a.ld, 0} : own.view();
    for (const index_t i : try_all(matrices, copies.copies(), SystemRoute::factors))
      refused.push_back(part[static_cast<std::size_t>(i)]);
    copies.give_back();
  }
  return refused;
}

template <class T>
std::vector<index_t> SystemsOnDevice<T>::try_all(BatchView<const T> a,
                                                 const RightSideBlock<T>& block,
                                                 SystemRoute route) {
  Call call{.a = a, .block = block, .sides = block.count / a.count, .route = route};
  Parts parts(*this, call);
  run_in_parts(engine_, parts, a.count);
  call.finish_look();
  return std::move(call.refused);
}

template <class T>
SubChunks SystemsOnDevice<T>::cut(const Call& call, index_t count) const {
  const InputShape shape = input_shape(call, count);
  MatrixBytes bytes = shape.by_pairs ? pair_bytes(factor_bytes_, solved_) : factor_bytes_;
  const auto own = layout(call.sides).bytes;
  bytes.io.insert(bytes.io.end(), own.begin(), own.end());
  if (has_ridge()) {
    // A, b and the weights as they are uploaded.
    const index_t entries = problem_.m * ((shape.by_pairs ? 0 : problem_.n) + call.sides + 1);
    bytes.io.push_back(static_cast<std::size_t>(entries) * sizeof(T));
  }
  if (is_wide_) bytes.io.push_back(wide_bytes(problem_, call.sides));
  return cut_chunk(
      plan_.problem, bytes, engine_.info.limits, count,
      shape.shares_a ? tuning::solve_made_sub_chunk_bytes : tuning::solve_sub_chunk_bytes);
}

template <class T>
void SystemsOnDevice<T>::upload(const Call& call, Flight& flight, int set) {
  const InputShape& shape = flight.shape = input_shape(call, flight.answers.count);
  const index_t m = problem_.m, first = flight.answers.first;
  flight.factor = std::make_unique<DeviceBuffers>(engine_.pool.get(
      plan_.problem, plan_.params, shape.by_pairs ? bytes_of_r(factor_bytes_) : factor_bytes_,
      shape.systems, set));
  flight.system.emplace(pool_.get(layout(shape.sides), shape.systems, set));
  flight.input = input_buffers(problem_, shape, flight.factor->job, *flight.system, set, pool_);
  if (is_wide_) flight.wide = wide_buffers(problem_, shape.systems, shape.sides, set, pool_);
  const auto write = [&](const Buffer& to, const T* from, index_t entries) {
    engine_.upload->start_write(to, from, {0, static_cast<std::size_t>(entries) * sizeof(T)});
  };
  write(flight.input.uploaded.a, call.a[first].data, shape.matrices() * m * problem_.n);
  if (problem_.has_weights)
    write(flight.input.uploaded.w, call.block.w + (shape.shares_weights ? 0 : first * m),
          shape.vectors_of_weights() * m);
  write(flight.input.uploaded.b, call.block.b + first * m * shape.sides,
        shape.systems * m * shape.sides);
  flight.uploaded = engine_.upload->mark();
  engine_.upload->flush();
}

template <class T>
void SystemsOnDevice<T>::launch(const Call& call, Flight& flight) {
  const InputShape& shape = flight.shape;
  const SystemInput& input = flight.input;
  const FactorJob& factor = flight.factor->job;
  SystemBuffers& system = *flight.system;
  engine_.compute->wait_for({&flight.uploaded, 1});
  enqueue_sums_of_input(flight);
  if (needs_weighing(problem_) && !shape.by_pairs)
    enqueue_weights(engine_, problem_,
                    {.systems = shape.systems,
                     .source = input.uploaded.a,
                     .a = input.weighed_a,
                     .b = input.uploaded.b,
                     .shares_a = shape.shares_a,
                     .w = input.uploaded.w,
                     .shares_weights = shape.shares_weights,
                     .left_out = system.left_out});
  enqueue_ridge(engine_, problem_, input, shape);
  const SystemShape of_systems = system_shape_of(call, shape);
  if (shape.by_pairs) {
    PairBuffers pairs = pair_buffers(solved_, shape.systems, pool_);
    pairs.weights = input.ready.w;
    pairs.shares_weights = shape.shares_weights;
    pairs.left_out = system.left_out;
    flight.events = enqueue_pairs(setup_, factor, input.ready.a, pairs, system, of_systems);
  } else if (is_wide_) {
    flight.wide.a = input.ready.a;
    flight.events = enqueue_wide(setup_, factor, flight.wide, system, of_systems);
  } else {
    flight.events = enqueue_systems(setup_, factor, system, of_systems, call.route);
  }
  enqueue_sums_of_x(flight);
  download(call, flight);
}

/// Before rows are weighed.
template <class T>
void SystemsOnDevice<T>::enqueue_sums_of_input(const Flight& flight) {
  const InputShape& shape = flight.shape;
  const SystemInput::Arrays& from = flight.input.uploaded;
  Launcher launch = engine_.launcher({sum_file, sum_defines(), "checksums"});
  enqueue_sums(sums_of_a_, Summed::a, from.a, shape.matrices(), flight.factor->sums, launch);
  enqueue_sums(vector_sums(problem_.m, shape.sides), Summed::a, from.b, shape.systems,
               flight.system->b_sums, launch);
  if (problem_.has_weights)
    enqueue_sums(vector_sums(problem_.m, 1), Summed::a, from.w, shape.vectors_of_weights(),
                 flight.system->w_sums, launch);
}

template <class T>
void SystemsOnDevice<T>::enqueue_sums_of_x(const Flight& flight) {
  const index_t p = flight.system->layout.sides;
  Launcher launch = engine_.launcher({sum_file, sum_defines(), "checksums"});
  enqueue_sums(vector_sums(problem_.n, p), Summed::a, flight.system->x, flight.answers.count,
               flight.system->x_sums, launch);
}

template <class T>
void SystemsOnDevice<T>::download(const Call& call, Flight& flight) {
  const Event summed = engine_.compute->mark();
  engine_.compute->flush();
  engine_.download->wait_for({&summed, 1});
  const auto systems = static_cast<std::size_t>(flight.answers.count);
  const auto read = [&](const Buffer& buffer, auto& host, std::size_t count) {
    host.resize(count);
    engine_.download->start_read(buffer, host.data(), {0, count * sizeof(host[0])});
  };
  const index_t p = call.sides, n = problem_.n;
  const std::size_t x_bytes = systems * static_cast<std::size_t>(n * p) * sizeof(T);
  engine_.download->start_read(flight.system->x, first_of(call.block.x, n, call, flight),
                               {0, x_bytes});
  if (problem_.wants_se && call.block.se != nullptr)
    engine_.download->start_read(flight.system->se, first_of(call.block.se, n, call, flight),
                                 {0, x_bytes});
  read(flight.factor->sums, flight.answers.a_sums,
       static_cast<std::size_t>(flight.shape.matrices()) * sums_of_a_.sums_of_matrix());
  read(flight.system->b_sums, flight.answers.b_sums,
       systems * vector_sums(problem_.m, p).sums_of_matrix());
  read(flight.system->x_sums, flight.answers.x_sums, systems * vector_sums(n, p).sums_of_matrix());
  if (problem_.has_weights)
    read(flight.system->w_sums, flight.answers.w_sums,
         static_cast<std::size_t>(flight.shape.vectors_of_weights()) *
             vector_sums(problem_.m, 1).sums_of_matrix());
  if (needs_weighing(problem_)) read(flight.system->left_out, flight.answers.left_out, systems);
  read(flight.system->findings, flight.answers.findings, systems);
  read(flight.system->errors, flight.answers.errors, systems * static_cast<std::size_t>(p));
  if (is_wide_)
    read(flight.wide.least_norms, flight.answers.least_norms,
         systems * static_cast<std::size_t>(p));
  flight.downloaded = engine_.download->mark();
  engine_.download->flush();
}

template <class T>
void SystemsOnDevice<T>::collect(Call& call, Flight& flight) {
  flight.downloaded->wait();
  seconds_.factor += seconds_between(flight.events.begun, flight.events.factored);
  seconds_.solve += seconds_between(flight.events.factored, flight.events.checked);
  call.finish_look();
  // Without a thread this one looks when it asks for the result.
  call.look = std::async(
      std::launch::async | std::launch::deferred,
      [this, &call, answers = std::move(flight.answers)] { return look_at(call, answers); });
}

/// Compares the checksums beside the verdicts: both read A.
template <class T>
std::vector<index_t> SystemsOnDevice<T>::look_at(const Call& call, const Answers& answers) {
  std::future<void> compared =
      std::async(std::launch::async | std::launch::deferred, [&] { compare_sums(call, answers); });
  std::vector<index_t> refused = judge(call, answers);
  compared.get();
  return refused;
}

/// Errors: DeviceError where a system did not arrive, or x did not come back, as it was sent.
template <class T>
void SystemsOnDevice<T>::compare_sums(const Call& call, const Answers& answers) const {
  const index_t p = call.sides, m = problem_.m, n = problem_.n;
  const auto compare = [&](const SumLayout& layout, const std::vector<std::uint64_t>& sums,
                           index_t i, MatrixView<const T> host, const char* what) {
    if (layout.checksum(sums, i, Summed::a) == checksum<T>(host)) return;
    throw DeviceError(fmt::format("{}: {} of system {} of the chunk was changed by a copy "
                                  "(checksums differ)",
                                  engine_.info.text(), what, answers.first + i),
                      "--backend cpu works without this device");
  };
  const InputShape shape = input_shape(call, answers.count);
  const SumLayout of_b = vector_sums(m, p), of_x = vector_sums(n, p), of_w = vector_sums(m, 1);
  const std::size_t bytes = plan_.problem.input_bytes() * static_cast<std::size_t>(answers.count);
  for_items(answers.count, bytes, engine_.info.limits.threads, [&](index_t i) {
    const index_t system = answers.first + i;
    if (i < shape.matrices()) compare(sums_of_a_, answers.a_sums, i, call.a[system], "A");
    compare(of_b, answers.b_sums, i, {call.block.b + system * m * p, 1, m * p, m * p}, "b");
    compare(of_x, answers.x_sums, i, {call.block.x + system * n * p, 1, n * p, n * p}, "x");
  });
  const index_t first = shape.shares_weights ? 0 : answers.first;
  for (index_t i = 0; problem_.has_weights && i < shape.vectors_of_weights(); ++i)
    compare(of_w, answers.w_sums, i, {call.block.w + (first + i) * m, 1, m, m}, "the weights");
}

/// Rows that are left out give no degree of freedom.
template <class T>
void SystemsOnDevice<T>::correct_errors(const Call& call, index_t system, index_t left_out) {
  if (left_out == 0 || call.block.se == nullptr) return;
  const double factor = freedom_factor(problem_, left_out);
  T* se = call.block.se + system * problem_.n;
  for (index_t j = 0; j < problem_.n; ++j) se[j] = static_cast<T>(se[j] * factor);
}

/// Writes the reports, and returns what is refused: a system with a right side that the check has
/// not accepted, and all of the sub-chunk where the host comes to another verdict on one of its
/// sample.
template <class T>
std::vector<index_t> SystemsOnDevice<T>::judge(const Call& call, const Answers& answers) {
  const double bar = solution_bar(problem_.type, problem_.packed_rows(), problem_.n);
  std::vector<index_t> accepted, refused;
  for (index_t i = 0; i < answers.count; ++i) {
    const index_t first = (answers.first + i) * call.sides;
    const auto place = static_cast<std::size_t>(i);
    const FactorFindings& found = answers.findings[place];
    const index_t left_out = answers.left_out.empty() ? 0 : answers.left_out[place];
    bool is_accepted = problem_.m - left_out >= problem_.least_rows();
    for (index_t j = 0; j < call.sides; ++j) {
      const SolutionErrors& errors = answers.errors[static_cast<std::size_t>(i * call.sides + j)];
      is_accepted = is_accepted && errors.error <= tuning::solve_most_of_bar * bar;
      SolutionReport& report = call.block.reports[static_cast<std::size_t>(first + j)] = {};
      report.residual_norm = errors.residual_norm;
      if (has_ridge()) {
        const VectorPlaces& places = call.block.x_places;
        report.residual_norm = norm_without_ridge(
            problem_, errors.residual_norm, call.block.x + places.start(first + j), places.step);
      }
      report.backward_error = errors.error;
      report.bar = bar;
      report.freedom = static_cast<double>(problem_.m - problem_.k() - left_out);
      report.status = Status::ok;
      if (is_wide_) {
        report.least_norm_error = answers.least_norms[static_cast<std::size_t>(i * call.sides + j)];
        is_accepted = is_accepted && report.least_norm_error <= tuning::solve_most_of_bar * bar;
      }
    }
    (is_accepted ? accepted : refused).push_back(answers.first + i);
    correct_errors(call, answers.first + i, left_out);
    if (!call.block.findings.empty())
      call.block.findings[static_cast<std::size_t>(first)] = {
          .rank = static_cast<std::int32_t>(problem_.k()),
          .condition = found.condition,
          // A wide matrix has one condition, that with scaled columns.
          .scaled_condition = is_wide_ ? found.condition : found.scaled_condition};
  }
  if (!sample_.agrees(call.a, call.block, call.sides, accepted)) {
    refused.resize(static_cast<std::size_t>(answers.count));
    for (index_t i = 0; i < answers.count; ++i)
      refused[static_cast<std::size_t>(i)] = answers.first + i;
  }
  return refused;
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
