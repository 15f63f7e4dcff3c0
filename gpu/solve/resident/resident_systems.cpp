// SPDX-License-Identifier: Apache-2.0
// resident_systems.cpp: repeated runs on systems that stay on the device.
#include "gpu/solve/resident/resident_systems.hpp"

#include <limits>
#include <optional>

#include "gpu/pipeline/flights.hpp"
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
      : engine(used_engine),
        problem(solved),
        posed(with_ridge_rows(solved)),
        factored_form(is_wide(solved) ? turned(posed) : posed),
        factor(plan),
        setup{used_engine, factored_form, gpu_variant(*plan.variant), body},
        input_shape{.systems = plan.problem.count,
                    .sides = solved.has_weights ? 1 : std::ssize(b) / (solved.m * a.count),
                    .shares_a = solved.has_weights,
                    .by_pairs = solved.has_weights},
        route(!is_wide(solved) &&
                      takes_normal_equations(posed, input_shape.sides, engine.info.limits)
                  ? first
                  : SystemRoute::factors),
        layout(system_layout(posed, input_shape.sides, engine.info.limits)),
        factor_pool(*engine.session.context),
        system_pool(*engine.session.context) {
    const MatrixBytes all = matrix_bytes(setup.variant, plan.problem);
    guard([&] {
      const MatrixBytes bytes = input_shape.by_pairs ? bytes_of_r(all) : all;
      factored.emplace(factor_pool.get(plan.problem, plan.params, bytes, count(), 0));
      system.emplace(system_pool.get(layout, count(), 0));
      input = input_buffers(problem, input_shape, factored->job, *system, 0, system_pool);
      if (is_wide(problem))
        wide = wide_buffers(problem, count(), input_shape.sides, 0, system_pool);
      repeat(input.uploaded.a, {a.data, static_cast<std::size_t>(a.count * problem.m * problem.n)},
             problem.m * problem.n * input_shape.matrices());
      repeat(input.uploaded.b, b, problem.m * input_shape.sides * count());
      if (!weights.empty()) repeat(input.uploaded.w, weights, problem.m * count());
      engine.upload->finish();
    });
  }

  index_t count() const { return factor.problem.count; }

  void repeat(const Buffer& to, std::span<const T> from, index_t entries) const {
    upload_repeated(engine, to, from.data(), from.size_bytes(),
                    static_cast<std::size_t>(entries) * sizeof(T));
  }

  /// body() must end with a wait.
  template <class Body>
  void guard(Body body) const {
    run_or_explain(engine, "the systems", body);
  }

  template <class Number>
  std::vector<Number> read(const Buffer& buffer, index_t numbers) const {
    std::vector<Number> host;
    guard([&] {
      host = engine.compute->read_list<Number>(buffer, static_cast<std::size_t>(numbers));
    });
    return host;
  }

  FactorEngine& engine;
  const SolveProblem& problem;
  SolveProblem posed, factored_form;  // with a ridge, longer A and b; of wide systems, A'
  const Plan& factor;
  SystemSetup setup;
  InputShape input_shape;
  SystemRoute route;
  SystemLayout layout;
  BufferPool factor_pool;
  SystemPool system_pool;
  std::optional<DeviceBuffers> factored;
  std::optional<SystemBuffers> system;
  SystemInput input;
  WideBuffers wide;
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
      system_shape(s.posed, s.count(), s.input_shape.sides, VectorPlaces::rows(s.posed.m),
                   VectorPlaces::rows(s.posed.n));
  s.guard([&] {
    begun = s.engine.compute->mark();
    enqueue_ridge(s.engine, s.problem, s.input, s.input_shape);
    longer = s.engine.compute->mark();
    if (s.input_shape.by_pairs) {
      PairBuffers pairs = pair_buffers(s.posed, s.count(), s.system_pool);
      pairs.weights = s.input.ready.w;
      pairs.left_out = s.system->left_out;
      events = enqueue_pairs(s.setup, s.factored->job, s.input.ready.a, pairs, *s.system, shape);
    } else if (is_wide(s.problem)) {
      s.wide.a = s.input.ready.a;
      events = enqueue_wide(s.setup, s.factored->job, s.wide, *s.system, shape);
    } else {
      events = enqueue_systems(s.setup, s.factored->job, *s.system, shape, s.route);
    }
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
    s.engine.factor(s.setup.variant, s.factored->job, factored);
    s.engine.compute->finish();
  });
  return seconds_between(begun, factored);
}

template <class T>
std::vector<T> ResidentSystems<T>::solutions() const {
  const State& s = *state_;
  return s.template read<T>(s.system->x, s.count() * s.input_shape.sides * s.problem.n);
}

template <class T>
std::vector<SolutionErrors> ResidentSystems<T>::errors() const {
  const State& s = *state_;
  return s.template read<SolutionErrors>(s.system->errors, s.count() * s.input_shape.sides);
}

template <class T>
std::vector<double> ResidentSystems<T>::least_norm_errors() const {
  const State& s = *state_;
  if (!is_wide(s.problem)) return {};
  return s.template read<double>(s.wide.least_norms, s.count() * s.input_shape.sides);
}

template class ResidentSystems<float>;
template class ResidentSystems<double>;

}  // namespace qrtool
