// SPDX-License-Identifier: Apache-2.0
// resident_shared.cpp: repeated runs on right sides that stay on the device.
#include "gpu/solve/resident/resident_shared.hpp"

#include <algorithm>
#include <optional>

#include "gpu/solve/resident/resident_data.hpp"
#include "gpu/solve/shared/shared_matrix.hpp"

namespace qrtool {

template <class T>
struct ResidentShared<T>::State {
  State(FactorEngine& used, const SolveProblem& problem, const SharedFactors& factors,
        std::span<const T> b, index_t sides, SidesLayout layout)
      : engine(used),
        setup(used, problem, factors, layout),
        pool(*used.session.context),
        count(sides) {
    guard([&] {
      buffers.emplace(pool, setup, count, 0);
      layout == SidesLayout::rows ? repeat_rows(b) : repeat_columns(b);
      engine.upload->finish();
    });
  }

  void repeat_rows(std::span<const T> b) const {
    upload_repeated(engine, buffers->b, b.data(), b.size_bytes(),
                    static_cast<std::size_t>(count * setup.problem.m) * sizeof(T));
  }

  /// A row of all right sides at a time.
  void repeat_columns(std::span<const T> b) const {
    const index_t m = setup.problem.m, some = std::ssize(b) / m;
    std::vector<T> row(static_cast<std::size_t>(count));
    for (index_t i = 0; i < m; ++i) {
      for (index_t s = 0; s < std::min(some, count); ++s)
        row[static_cast<std::size_t>(s)] = b[static_cast<std::size_t>(s * m + i)];
      for (index_t s = some; s < count; ++s)
        row[static_cast<std::size_t>(s)] = row[static_cast<std::size_t>(s - some)];
      engine.upload->write(buffers->b, row.data(), row.size() * sizeof(T),
                           static_cast<std::size_t>(i) * row.size() * sizeof(T));
    }
  }

  /// body() must end with a wait.
  template <class Body>
  void guard(Body body) const {
    engine.guarded("in a run", "the right sides do not fit " + engine.info.text() + " at once",
                   body);
  }

  FactorEngine& engine;
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
    s.engine.compute->finish();
  });
  return {seconds_between(events.begun, events.solved),
          seconds_between(events.solved, events.checked)};
}

template <class T>
std::vector<SolutionErrors> ResidentShared<T>::errors() const {
  const State& s = *state_;
  std::vector<SolutionErrors> errors;
  s.guard([&] {
    errors = s.engine.compute->template read_list<SolutionErrors>(
        s.buffers->errors, static_cast<std::size_t>(s.count));
  });
  return errors;
}

template class ResidentShared<float>;
template class ResidentShared<double>;

}  // namespace qrtool
