// SPDX-License-Identifier: Apache-2.0
// resident_systems.cpp: repeated runs on systems that stay on the device.
#include "gpu/solve/resident_systems.hpp"

#include <limits>
#include <optional>

#include "gpu/factor/flights.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/normal.hpp"
#include "gpu/solve/pairs.hpp"
#include "gpu/solve/resident_data.hpp"
#include "gpu/solve/system_buffers.hpp"
#include "gpu/solve/system_launches.hpp"

namespace qrtool {

template <class T>
struct ResidentSystems<T>::State {
  State(Engine& used_engine, const SolveProblem& solved, const Plan& plan, BatchView<const T> a,
        std::span<const T> b, SystemRoute first, std::string_view body, std::span<const T> weights)
      : engine(used_engine),
        problem(solved),
        factor(plan),
        setup{used_engine, solved, gpu_variant(*plan.variant), body},
        by_pairs(solved.has_weights),
        sides(by_pairs ? 1 : std::ssize(b) / (solved.m * a.count)),
        route(takes_normal_equations(solved, sides, engine.info.limits) ? first
                                                                        : SystemRoute::factors),
        layout(solved, sides, engine.info.limits),
        factor_pool(engine.session.context),
        system_pool(engine.session.context) {
    const MatrixBytes all = matrix_bytes(setup.variant, plan.problem);
    guard([&] {
      const MatrixBytes bytes = by_pairs ? bytes_of_r(all) : all;
      factored.emplace(factor_pool.get(plan.problem, plan.params, bytes, count(), 0));
      system.emplace(system_pool.get(layout, count(), 0));
      const std::size_t of_a = plan.problem.input_bytes();
      const index_t right_sides = std::ssize(b) / (solved.m * sides);
      if (by_pairs) {
        one_a = system_pool.grown({0, SystemLayout::shared_a}, of_a);
        upload_repeated(engine, one_a, a.data, of_a, of_a);
        repeat(system->weights, layout.bytes[SystemLayout::weights], weights.data(), right_sides);
      } else {
        repeat(factored->job.a, of_a, a.data, a.count);
      }
      repeat(system->b, layout.bytes[SystemLayout::b], b.data(), right_sides);
      engine.upload.finish();
    });
  }

  index_t count() const { return factor.problem.count; }

  void repeat(const cl::Buffer& to, std::size_t bytes, const void* from, index_t some) const {
    upload_repeated(engine, to, from, static_cast<std::size_t>(some) * bytes,
                    static_cast<std::size_t>(count()) * bytes);
  }

  /// body() must end with a wait.
  template <class Body>
  void guard(Body body) const {
    run_or_explain(engine, "the systems", body);
  }

  template <class Number>
  std::vector<Number> read(const cl::Buffer& buffer, index_t numbers) const {
    std::vector<Number> host(static_cast<std::size_t>(numbers));
    guard([&] {
      engine.compute.enqueueReadBuffer(buffer, CL_TRUE, 0, host.size() * sizeof(Number),
                                       host.data());
    });
    return host;
  }

  Engine& engine;
  const SolveProblem& problem;
  const Plan& factor;
  SystemSetup setup;
  bool by_pairs;
  index_t sides;
  SystemRoute route;
  SystemLayout layout;
  BufferPool factor_pool;
  SystemPool system_pool;
  std::optional<DeviceBuffers> factored;
  std::optional<SystemBuffers> system;
  cl::Buffer one_a;  // by_pairs
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
  const SystemShape shape =
      system_shape(s.problem, s.count(), s.sides, VectorPlaces::rows(s.problem.m),
                   VectorPlaces::rows(s.problem.n));
  s.guard([&] {
    if (s.by_pairs) {
      PairBuffers pairs = pair_buffers(s.problem, s.count(), s.system_pool);
      pairs.weights = s.system->weights;
      pairs.left_out = s.system->left_out;
      events = enqueue_pairs(s.setup, s.factored->job, s.one_a, pairs, *s.system, shape);
    } else {
      events = enqueue_systems(s.setup, s.factored->job, *s.system, shape, s.route);
    }
    s.engine.compute.finish();
  });
  const bool is_normal = s.route != SystemRoute::factors;
  return {is_normal ? 0 : seconds_between(events.begun, events.factored),
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
  cl::Event begun, factored;
  s.guard([&] {
    s.engine.compute.enqueueMarkerWithWaitList(nullptr, &begun);
    s.engine.factor(s.setup.variant, s.factored->job, factored);
    s.engine.compute.finish();
  });
  return seconds_between(begun, factored);
}

template <class T>
std::vector<T> ResidentSystems<T>::solutions() const {
  const State& s = *state_;
  return s.template read<T>(s.system->x, s.count() * s.sides * s.problem.n);
}

template <class T>
std::vector<SolutionErrors> ResidentSystems<T>::errors() const {
  const State& s = *state_;
  return s.template read<SolutionErrors>(s.system->errors, s.count() * s.sides);
}

template class ResidentSystems<float>;
template class ResidentSystems<double>;

}  // namespace qrtool
