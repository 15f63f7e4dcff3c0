// SPDX-License-Identifier: Apache-2.0
// resident_systems.cpp: repeated runs on systems that stay on the device.
#include "gpu/solve/resident/resident_systems.hpp"

#include <limits>
#include <optional>

#include "gpu/registry.hpp"
#include "gpu/solve/from_r/wide.hpp"
#include "gpu/solve/input/ridge.hpp"
#include "gpu/solve/input/system_input.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/normal/pairs.hpp"
#include "gpu/solve/parts/system_buffers.hpp"
#include "gpu/solve/resident/resident_data.hpp"
#include "gpu/solve/system_launches.hpp"
#include "gpu/solve/system_layout.hpp"

namespace qrtool {

template <class T>
struct ResidentSystems<T>::State {
  State(FactorEngine& used_engine, const SolveProblem& solved, const Plan& plan,
        BatchView<const T> a, std::span<const T> b, SystemRoute first, std::string_view body,
        std::span<const T> weights)
      : problem(solved),
        setup(used_engine, solved, plan, body),
        engine(used_engine),
        input_shape{.systems = plan.problem.count,
                    .sides = solved.has_weights ? 1 : std::ssize(b) / (solved.m * a.count),
                    .shares_a = solved.has_weights,
                    .by_pairs = solved.has_weights},
        route(!setup.is_wide &&
                      takes_normal_equations(setup.posed, input_shape.sides, engine.info.limits)
                  ? first
                  : SystemRoute::factors),
        factor_pool(*engine.session.context),
        system_pool(*engine.session.context) {
    guard([&] {
      placed = std::make_unique<PlacedSystems>(
          place_systems(setup, input_shape, 0, factor_pool, system_pool));
      const SystemInput::Arrays& input = placed->input.uploaded;
      repeat(input.a, {a.data, static_cast<std::size_t>(a.count * problem.m * problem.n)},
             problem.m * problem.n * input_shape.matrices());
      repeat(input.b, b, problem.m * input_shape.sides * count());
      if (!weights.empty()) repeat(input.w, weights, problem.m * count());
      engine.upload->finish();
    });
  }

  index_t count() const { return input_shape.systems; }

  void repeat(const Buffer& to, std::span<const T> from, index_t entries) const {
    upload_repeated(engine, to, from.data(), from.size_bytes(),
                    static_cast<std::size_t>(entries) * sizeof(T));
  }

  /// body() must end with a wait.
  template <class Body>
  void guard(Body body) const {
    engine.guarded("in a run", "the systems do not fit " + engine.info.text() + " at once", body);
  }

  template <class Number>
  std::vector<Number> read(const Buffer& buffer, index_t numbers) const {
    std::vector<Number> host;
    guard([&] {
      host = engine.compute->read_list<Number>(buffer, static_cast<std::size_t>(numbers));
    });
    return host;
  }

  const SolveProblem& problem;
  SystemSetup setup;
  FactorEngine& engine;
  InputShape input_shape;
  SystemRoute route;
  BufferPool factor_pool;
  SystemPool system_pool;
  std::unique_ptr<PlacedSystems> placed;
};

template <class T>
ResidentSystems<T>::ResidentSystems(OpenclBackend& backend, const SolveProblem& problem,
                                    const Plan& factor, BatchView<const T> a, std::span<const T> b,
                                    SystemRoute route, std::string_view body,
                                    std::span<const T> weights)
    : state_(
          std::make_unique<State>(backend.engine(), problem, factor, a, b, route, body, weights)) {}

template <class T>
ResidentSystems<T>::~ResidentSystems() = default;

template <class T>
typename ResidentSystems<T>::Seconds ResidentSystems<T>::run() {
  State& s = *state_;
  SystemEvents events;
  Event begun, longer;
  const SystemShape shape =
      system_shape(s.setup.posed, s.count(), s.input_shape.sides,
                   VectorPlaces::rows(s.setup.posed.m), VectorPlaces::rows(s.setup.posed.n));
  s.guard([&] {
    begun = s.engine.compute->mark();
    enqueue_ridge(s.engine, s.problem, s.placed->input, s.input_shape);
    longer = s.engine.compute->mark();
    events = enqueue_systems(s.setup, *s.placed, shape, s.route, s.system_pool);
    s.engine.compute->finish();
  });
  const bool is_normal = s.route != SystemRoute::factors;
  return {(s.problem.ridge > 0 ? seconds_between(begun, longer) : 0) +
              (is_normal ? 0 : seconds_between(events.begun, events.factored)),
          seconds_between(events.factored, events.solved),
          seconds_between(events.solved, events.checked)};
}

template <class T>
SystemRoute ResidentSystems<T>::route() const {
  return state_->route;
}

template <class T>
double ResidentSystems<T>::factor_seconds() {
  State& s = *state_;
  Event begun, factored;
  s.guard([&] {
    begun = s.engine.compute->mark();
    s.engine.factor(s.setup.variant, s.placed->factor.job);
    factored = s.engine.compute->mark();
    s.engine.compute->finish();
  });
  return seconds_between(begun, factored);
}

template <class T>
std::vector<T> ResidentSystems<T>::solutions() const {
  const State& s = *state_;
  return s.template read<T>(s.placed->system.x, s.count() * s.input_shape.sides * s.problem.n);
}

template <class T>
std::vector<SolutionErrors> ResidentSystems<T>::errors() const {
  const State& s = *state_;
  return s.template read<SolutionErrors>(s.placed->system.errors, s.count() * s.input_shape.sides);
}

template <class T>
std::vector<double> ResidentSystems<T>::least_norm_errors() const {
  const State& s = *state_;
  if (!s.setup.is_wide) return {};
  return s.template read<double>(s.placed->wide.least_norms, s.count() * s.input_shape.sides);
}

template class ResidentSystems<float>;
template class ResidentSystems<double>;

}  // namespace qrtool
