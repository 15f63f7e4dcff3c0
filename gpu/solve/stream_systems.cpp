// SPDX-License-Identifier: Apache-2.0
// stream_systems.cpp: the steps of systems.cpp without copies, and without the host's sample.
#include "gpu/solve/stream_systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "core/runs.hpp"
#include "gpu/pipeline/pack.hpp"
#include "gpu/pipeline/stream_work.hpp"
#include "gpu/solve/input/ridge.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/parts/sample.hpp"
#include "gpu/solve/system_launches.hpp"

namespace qrtool {
namespace {

/// The plan of a call, to which the setup refers, and all that follows from it.
struct KeptSystems final : StreamWork::Kept {
  KeptSystems(FactorEngine& engine, const SolveProblem& of, const SystemArrays& arrays,
              SystemsPlan its_plan)
      : problem(of), count(arrays.x.count), sides(arrays.b.cols), plan(std::move(its_plan)) {
    if (!plan.objection.empty()) return;
    setup.emplace(engine, problem, plan.factor);
    const SystemBody* const body =
        setup->is_wide ? nullptr : chosen_normal_body(setup->solved, sides, engine.info.limits);
    if (body == nullptr) plan.route = SystemRoute::factors;
    if (body != nullptr) setup->forced_body = body->name;
  }
  bool is_for(const SolveProblem& other, const SystemArrays& arrays) const {
    return problem == other && count == arrays.x.count && sides == arrays.b.cols;
  }

  SolveProblem problem;
  index_t count, sides;
  SystemsPlan plan;
  std::optional<SystemSetup> setup;  // where the device solves them
};

/// Numbers of each system, and of each right side, in the host's memory for results.
template <class Number>
struct ResultList {
  Number* first;
  index_t of_system;

  std::span<const Number> all(index_t systems) const {
    return {first, static_cast<std::size_t>(systems * of_system)};
  }
};

template <class T>
class SystemsOnStream {
 public:
  /// places: of the systems that are solved, ascending; null: all of them.
  SystemsOnStream(StreamWork& work, KeptSystems& kept, const SystemArrays& arrays,
                  SystemRoute route, const std::vector<index_t>* places = nullptr)
      : work_(work),
        engine_(work.engine()),
        kept_(kept),
        setup_(*kept.setup),
        arrays_(arrays),
        route_(route),
        places_(places),
        sides_(kept.sides),
        pool_(engine_.memory) {
    if (route != kept.plan.route) setup_.is_prepared = false;
  }

  SystemResults run(void* stream) {
    work_.run(stream, "in its work on systems", [&] {
      reserve_results();
      work_.in_parts(
          systems(), most_at_once(), fmt::format("{}x{} system", kept_.problem.m, kept_.problem.n),
          [&](index_t first, index_t count) { enqueue(first, count); }, [&] { pool_.clear(); });
      pool_.clear();
    });
    work_.wait();
    return judged();
  }

 private:
  index_t systems() const { return places_ == nullptr ? arrays_.x.count : std::ssize(*places_); }
  bool needs_x() const { return setup_.given.ridge > 0; }
  InputShape shape(index_t count) const {
    return {.systems = count, .sides = sides_, .sides_are_rows = false};
  }

  void reserve_results() {
    std::size_t bytes = 0;
    std::byte* at = nullptr;
    const auto place = [&]<class Number>(ResultList<Number>& list, index_t of_system) {
      list = {reinterpret_cast<Number*>(at + bytes), of_system};
      bytes += (static_cast<std::size_t>(systems() * of_system) * sizeof(Number) + 7) / 8 * 8;
    };
    const auto place_all = [&] {
      bytes = 0;
      place(errors_, sides_);
      place(findings_, 1);
      place(least_norms_, setup_.is_wide ? sides_ : 0);
      place(x_, needs_x() ? kept_.problem.n * sides_ : 0);
    };
    place_all();
    at = work_.results(bytes);
    place_all();
  }

  index_t most_at_once() const {
    MatrixBytes bytes = setup_.bytes(shape(systems()));
    const std::size_t first = setup_.factor_bytes.io.size();
    if (are_in_place(arrays_.a) && !setup_.makes_a()) bytes.io[0] = 0;
    if (are_in_place(arrays_.b) && !setup_.makes_b()) bytes.io[first + SystemLayout::b] = 0;
    if (are_in_place(arrays_.x)) bytes.io[first + SystemLayout::x] = 0;
    return cut_chunk(setup_.plan.problem, bytes, engine_.info.limits, systems(),
                     std::numeric_limits<std::size_t>::max(), /*most_sets=*/1)
        .matrices;
  }

  bool are_in_place(const DeviceMatrices& all) const {
    return places_ == nullptr && is_in_place(all);
  }
  /// Some of the systems where they are; none where these are not packed.
  Buffer in_place(const DeviceMatrices& all, index_t first, index_t count) const {
    const DeviceMatrices some = slice(all, first, count, sizeof(T));
    if (some.data == nullptr || places_ != nullptr || !is_in_place(some)) return {};
    return Buffer::of_caller(some.data, sizeof(T) * static_cast<std::size_t>(some.entries()));
  }

  /// Calls copy(some of the caller's matrices, their places in packed memory).
  template <class Copy>
  void copy_some(const DeviceMatrices& all, const Buffer& packed, index_t first, index_t count,
                 Copy copy) const {
    if (all.data == nullptr) return;
    const auto copy_run = [&](index_t begin, index_t i, index_t run) {
      const DeviceMatrices some = slice(all, begin, run, sizeof(T));
      copy(some, slice(packed_in(packed, some), i, run, sizeof(T)));
    };
    if (places_ == nullptr) return copy_run(first, 0, count);
    const auto place = [&](index_t i) { return (*places_)[static_cast<std::size_t>(first + i)]; };
    for_runs(count, 1, place,
             [&](index_t i, index_t begin, index_t run) { copy_run(begin, i, run); });
  }

  void enqueue(index_t first, index_t count) {
    const GivenArrays given{in_place(arrays_.a, first, count), in_place(arrays_.b, first, count),
                            in_place(arrays_.x, first, count), in_place(arrays_.se, first, count)};
    PlacedSystems placed =
        place_systems(setup_, shape(count), /*set=*/0, engine_.pool, pool_, given);
    const SystemInput::Arrays& input = placed.input.uploaded;
    const auto pack = [&](const DeviceMatrices& all, const Buffer& is_given, const Buffer& to) {
      if (is_given) return;
      copy_some(all, to, first, count, [&](const auto& theirs, const auto& ours) {
        enqueue_copy(engine_, element_type<T>, theirs, ours);
      });
    };
    const auto unpack = [&](const Buffer& from, const Buffer& is_given, const DeviceMatrices& all) {
      if (is_given) return;
      copy_some(all, from, first, count, [&](const auto& theirs, const auto& ours) {
        enqueue_copy(engine_, element_type<T>, ours, theirs);
      });
    };
    pack(arrays_.a, given.a, input.a);
    pack(arrays_.b, given.b, input.b);
    enqueue_ridge(engine_, kept_.problem, placed.input, placed.shape);
    const index_t m = setup_.posed.m;
    enqueue_systems(setup_, placed,
                    system_shape(setup_.posed, count, sides_, VectorPlaces::columns(m, sides_),
                                 VectorPlaces::columns(kept_.problem.n, sides_)),
                    route_, pool_);
    setup_.is_prepared = true;
    unpack(placed.system.x, given.x, arrays_.x);
    unpack(placed.system.se, given.se, arrays_.se);
    read(placed.system.errors, errors_, first, count);
    read(placed.system.findings, findings_, first, count);
    read(placed.wide.least_norms, least_norms_, first, count);
    read(placed.system.x, x_, first, count);
  }

  template <class Number>
  void read(const Buffer& from, const ResultList<Number>& to, index_t first, index_t count) {
    const auto numbers = static_cast<std::size_t>(count * to.of_system);
    if (numbers > 0)
      engine_.compute->start_read(from, to.first + first * to.of_system,
                                  {0, numbers * sizeof(Number)});
  }

  SystemResults judged() const {
    const SolveProblem& p = kept_.problem;
    const auto sides = static_cast<std::size_t>(systems() * sides_);
    SystemResults results{.variant = kept_.plan.variant,
                          .reports = std::vector<SolutionReport>(sides),
                          .findings = std::vector<MatrixFindings>(sides)};
    const RightSideBlock<T> block{.count = systems() * sides_,
                                  .x = x_.first,
                                  .x_places = VectorPlaces::columns(p.n, sides_),
                                  .reports = results.reports,
                                  .findings = results.findings};
    const std::vector<char> accepted = judge_systems(p,
                                                     {.first = 0,
                                                      .count = systems(),
                                                      .sides = sides_,
                                                      .errors = errors_.all(systems()),
                                                      .factors = findings_.all(systems()),
                                                      .left_out = {},
                                                      .least_norms = least_norms_.all(systems()),
                                                      .freedom = static_cast<double>(p.m - p.k()),
                                                      .has_ridge_rows = p.ridge > 0},
                                                     block);
    for (index_t i = 0; i < systems(); ++i)
      if (accepted[static_cast<std::size_t>(i)] == 0) results.refused.push_back(i);
    return results;
  }

  StreamWork& work_;
  FactorEngine& engine_;
  KeptSystems& kept_;
  SystemSetup& setup_;
  const SystemArrays& arrays_;
  SystemRoute route_;
  const std::vector<index_t>* places_;
  index_t sides_;
  SystemPool pool_;
  ResultList<SolutionErrors> errors_ = {};
  ResultList<FactorFindings> findings_ = {};
  ResultList<double> least_norms_ = {};
  ResultList<T> x_ = {};
};

/// Solves the refused systems again, and puts what was found in its place.
template <class T>
void solve_refused(SystemsOnStream<T> some, void* stream, index_t sides, SystemResults& results) {
  const SystemResults again = some.run(stream);
  const std::vector<index_t> places = std::exchange(results.refused, {});
  for (std::size_t i = 0; i < places.size(); ++i) {
    const auto from = static_cast<std::ptrdiff_t>(i) * sides, to = places[i] * sides;
    std::copy_n(again.reports.begin() + from, sides, results.reports.begin() + to);
    std::copy_n(again.findings.begin() + from, sides, results.findings.begin() + to);
  }
  for (const index_t i : again.refused)
    results.refused.push_back(places[static_cast<std::size_t>(i)]);
}

}  // namespace

template <class T>
SystemResults solve_on_stream(StreamEngine& engine, void* stream, const SolveProblem& problem,
                              const SystemArrays& arrays,
                              const std::function<SystemsPlan()>& make_plan) {
  StreamWork& work = engine.work();
  auto* kept = dynamic_cast<KeptSystems*>(work.kept.get());
  if (kept == nullptr || !kept->is_for(problem, arrays)) {
    auto made = std::make_unique<KeptSystems>(work.engine(), problem, arrays, make_plan());
    kept = made.get();
    work.kept = std::move(made);
  }
  if (!kept->setup) return {.objection = kept->plan.objection};
  const SystemRoute route = kept->plan.route;
  SystemResults results = SystemsOnStream<T>(work, *kept, arrays, route).run(stream);
  if (!results.refused.empty() && route != SystemRoute::factors) {
    const std::vector<index_t> refused = results.refused;
    solve_refused(SystemsOnStream<T>(work, *kept, arrays, SystemRoute::factors, &refused), stream,
                  kept->sides, results);
  }
  return results;
}
template SystemResults solve_on_stream<float>(StreamEngine&, void*, const SolveProblem&,
                                              const SystemArrays&,
                                              const std::function<SystemsPlan()>&);
template SystemResults solve_on_stream<double>(StreamEngine&, void*, const SolveProblem&,
                                               const SystemArrays&,
                                               const std::function<SystemsPlan()>&);

}  // namespace qrtool
