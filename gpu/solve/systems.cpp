// SPDX-License-Identifier: Apache-2.0
// systems.cpp: takes systems through a device in sub-chunks, and looks at the errors that it found.
#include "gpu/solve/systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <future>
#include <span>

#include "core/machine/driver_scope.hpp"
#include "core/solve/engines/side_copies.hpp"
#include "gpu/pipeline/checked_copies.hpp"
#include "gpu/pipeline/flights.hpp"
#include "gpu/solve/from_r/wide.hpp"
#include "gpu/solve/input/ridge.hpp"
#include "gpu/solve/input/weights.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/pairs.hpp"
#include "gpu/solve/parts/sample.hpp"
#include "gpu/solve/parts/tuning.hpp"
#include "gpu/solve/system_launches.hpp"

namespace qrtool {
namespace {

/// What the device sends back of a sub-chunk. The host examines it.
struct Answers {
  index_t first = 0, count = 0;
  CheckedCopies copies;
  std::vector<FactorFindings> findings;
  std::vector<SolutionErrors> errors;
  std::vector<double> least_norms;  // errors, of wide systems
  std::vector<int> left_out;        // rows of each system
};

/// A sub-chunk from upload to download.
struct SystemFlight {
  std::unique_ptr<PlacedSystems> placed;
  SystemEvents events;
  Answers answers;
};

template <class T>
class SystemsOnDevice final : public SystemDevice<T>, private FlightWork<SystemFlight> {
 public:
  SystemsOnDevice(FactorEngine& engine, const SolveProblem& problem, const Plan& plan,
                  SystemRoute first)
      : engine_(engine),
        problem_(problem),
        plan_(plan),
        first_(first),
        setup_(engine, problem, plan),
        pool_(*engine.session.context),
        sample_(problem, plan.threads) {}

  void prepare(index_t sides, bool shares_a) override;
  std::vector<index_t> run(BatchView<const T> a, const RightSideBlock<T>& block) override;
  SolveSeconds seconds() const override { return seconds_; }

 private:
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

  std::vector<index_t> try_all(BatchView<const T> a, const RightSideBlock<T>& block,
                               SystemRoute route);
  std::vector<index_t> try_again(BatchView<const T> a, const RightSideBlock<T>& block,
                                 std::span<const index_t> systems);
  // The parts of a call.
  SubChunks cut(index_t count) const override;
  void begin(int set, index_t first, index_t count) override;
  void launch(int set) override;
  void collect(int set) override;
  void free_buffers() override { pool_.clear(); }
  std::string item() const override { return fmt::format("{}x{} system", problem_.m, problem_.n); }
  std::string place(index_t number) const override {
    return fmt::format("system {} of the chunk", number);
  }

  InputShape input_shape(index_t count) const {
    const bool shares_a = call_->a.stride == 0;
    return {.systems = count,
            .sides = call_->sides,
            .shares_a = shares_a,
            .shares_weights = call_->block.w_places.group_stride == 0,
            .by_pairs = !setup_.is_wide && shares_a &&
                        call_->route == SystemRoute::normal_equations &&
                        takes_pairs(setup_.solved, engine_.info.limits),
            .sides_are_rows = call_->block.b_places.group == 1};
  }
  void add_copies(SystemFlight& flight) const;
  void download(SystemFlight& flight);
  std::vector<index_t> look_at(Answers& answers);
  std::vector<index_t> judge(const Answers& answers);
  void correct_errors(index_t system, index_t left_out);

  SystemShape system_shape_of(const InputShape& of) const {
    const index_t m = setup_.posed.m;
    return system_shape(
        setup_.posed, of.systems, of.sides,
        of.sides_are_rows ? VectorPlaces::rows(m) : VectorPlaces::columns(m, of.sides),
        call_->block.x_places);
  }
  /// The vectors of the systems of a sub-chunk.
  template <class Number>
  BatchView<Number> vectors(Number* data, index_t length, const Answers& of) const {
    const index_t sides = call_->sides;
    return packed(data + of.first * length * sides, of.count, length, sides);
  }

  FactorEngine& engine_;
  const SolveProblem& problem_;
  const Plan& plan_;
  SystemRoute first_;
  SystemSetup setup_;
  SystemPool pool_;
  SystemSample<T> sample_;
  SolveSeconds seconds_;
  std::future<void> preparing_;
  Call* call_ = nullptr;  // the present one
};

template <class T>
void SystemsOnDevice<T>::prepare(index_t sides, bool shares_a) {
  ProgramCache& programs = engine_.session.programs;
  if (!programs.has_parts()) return;
  std::vector<WantedKernels> wanted =
      wanted_by_systems(setup_.posed, sides, engine_.info.limits, first_, shares_a);
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
  if (first_ == SystemRoute::factors || setup_.is_wide ||
      !takes_normal_equations(setup_.solved, block.count / a.count, engine_.info.limits))
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
  call_ = &call;
  run_in_parts(engine_, *this, a.count);
  call.finish_look();
  return std::move(call.refused);
}

template <class T>
SubChunks SystemsOnDevice<T>::cut(index_t count) const {
  const InputShape shape = input_shape(count);
  return cut_chunk(
      plan_.problem, setup_.bytes(shape), engine_.info.limits, count,
      shape.shares_a ? tuning::solve_made_sub_chunk_bytes : tuning::solve_sub_chunk_bytes);
}

template <class T>
void SystemsOnDevice<T>::begin(int set, index_t first, index_t count) {
  SystemFlight& flight = flight_of(set);
  flight = {};
  flight.answers.first = first;
  flight.answers.count = count;
  flight.placed = std::make_unique<PlacedSystems>(
      place_systems(setup_, input_shape(count), set, engine_.pool, pool_));
  add_copies(flight);
  flight.answers.copies.upload(engine_);
}

template <class T>
void SystemsOnDevice<T>::add_copies(SystemFlight& flight) const {
  const PlacedSystems& placed = *flight.placed;
  const InputShape& shape = placed.shape;
  const SystemInput::Arrays& to = placed.input.uploaded;
  const RightSideBlock<T>& block = call_->block;
  const index_t m = problem_.m, first = flight.answers.first;
  CheckedCopies& copies = flight.answers.copies;
  copies.send<T>("A", to.a, packed(call_->a[first].data, shape.matrices(), m, problem_.n),
                 placed.factor.sums);
  if (problem_.has_weights)
    copies.send<T>(
        "the weights", to.w,
        packed(block.w + (shape.shares_weights ? 0 : first * m), shape.vectors_of_weights(), m, 1),
        placed.system.w_sums);
  copies.send<T>("b", to.b, vectors(block.b, m, flight.answers), placed.system.b_sums);
  copies.receive<T>("x", placed.system.x, vectors(block.x, problem_.n, flight.answers),
                    placed.system.x_sums);
}

template <class T>
void SystemsOnDevice<T>::launch(int set) {
  SystemFlight& flight = flight_of(set);
  CheckedCopies& copies = flight.answers.copies;
  PlacedSystems& placed = *flight.placed;
  const InputShape& shape = placed.shape;
  const SystemInput& input = placed.input;
  copies.await_uploads(engine_);
  copies.sum_sent(engine_);  // before rows are weighed
  if (needs_weighing(problem_) && !shape.by_pairs)
    enqueue_weights(engine_, problem_,
                    {.systems = shape.systems,
                     .source = input.uploaded.a,
                     .a = input.weighed_a,
                     .b = input.uploaded.b,
                     .shares_a = shape.shares_a,
                     .w = input.uploaded.w,
                     .shares_weights = shape.shares_weights,
                     .left_out = placed.system.left_out});
  enqueue_ridge(engine_, problem_, input, shape);
  flight.events = enqueue_systems(setup_, placed, system_shape_of(shape), call_->route, pool_);
  copies.sum_received(engine_);
  copies.end_kernels(engine_);
  download(flight);
}

template <class T>
void SystemsOnDevice<T>::download(SystemFlight& flight) {
  Answers& answers = flight.answers;
  const SystemBuffers& system = flight.placed->system;
  const index_t systems = answers.count, sides = systems * call_->sides;
  answers.copies.download(engine_);
  if (problem_.wants_se && call_->block.se != nullptr)
    answers.copies.read(engine_, system.se, vectors(call_->block.se, problem_.n, answers));
  if (needs_weighing(problem_))
    answers.copies.read(engine_, system.left_out, answers.left_out, systems);
  answers.copies.read(engine_, system.findings, answers.findings, systems);
  answers.copies.read(engine_, system.errors, answers.errors, sides);
  if (setup_.is_wide)
    answers.copies.read(engine_, flight.placed->wide.least_norms, answers.least_norms, sides);
  answers.copies.end_download(engine_);
}

template <class T>
void SystemsOnDevice<T>::collect(int set) {
  SystemFlight& flight = flight_of(set);
  flight.answers.copies.wait();
  seconds_.factor += seconds_between(flight.events.begun, flight.events.factored);
  seconds_.solve += seconds_between(flight.events.factored, flight.events.checked);
  call_->finish_look();
  // Without a thread this one looks when it asks for the result.
  call_->look = std::async(
      std::launch::async | std::launch::deferred,
      [this, answers = std::move(flight.answers)]() mutable { return look_at(answers); });
}

/// Compares the checksums beside the verdicts: both read A.
template <class T>
std::vector<index_t> SystemsOnDevice<T>::look_at(Answers& answers) {
  std::future<void> compared = std::async(std::launch::async | std::launch::deferred, [&] {
    const int threads = engine_.info.limits.threads;
    answers.copies.sum_on_host(/*is_sent=*/true, threads);
    answers.copies.sum_on_host(/*is_sent=*/false, threads);
    answers.copies.compare(engine_.info, [&](index_t i) { return place(answers.first + i); });
  });
  std::vector<index_t> refused = judge(answers);
  compared.get();
  return refused;
}

template <class T>
std::vector<index_t> SystemsOnDevice<T>::judge(const Answers& answers) {
  const SystemFindings found{.first = answers.first,
                             .count = answers.count,
                             .sides = call_->sides,
                             .errors = answers.errors,
                             .factors = answers.findings,
                             .left_out = answers.left_out,
                             .least_norms = answers.least_norms,
                             .freedom = static_cast<double>(problem_.m - problem_.k()),
                             .has_ridge_rows = problem_.ridge > 0};
  std::vector<index_t> refused = sample_.judge(found, call_->a, call_->block);
  for (std::size_t i = 0; i < answers.left_out.size(); ++i)
    correct_errors(answers.first + static_cast<index_t>(i), answers.left_out[i]);
  return refused;
}

/// Rows that are left out give no degree of freedom.
template <class T>
void SystemsOnDevice<T>::correct_errors(index_t system, index_t left_out) {
  if (left_out == 0 || call_->block.se == nullptr) return;
  const double factor = freedom_factor(problem_, left_out);
  T* se = call_->block.se + system * problem_.n;
  for (index_t j = 0; j < problem_.n; ++j) se[j] = static_cast<T>(se[j] * factor);
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
