// SPDX-License-Identifier: Apache-2.0
// solve.cpp: qrtool_solve: the caller's arrays as groups of right sides.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <vector>

#include "app/capi/arrays.hpp"
#include "app/capi/context.hpp"
#include "app/capi/device_calls.hpp"
#include "app/capi/overlap.hpp"
#include "app/capi/reports.hpp"
#include "app/engine/group_engine.hpp"
#include "app/engine/opencl.hpp"
#include "app/engine/tall_rows.hpp"
#include "gpu/solve/stream_systems.hpp"

namespace qrtool::capi {
namespace {

/// The arrays of a call as they are given.
template <class T>
struct GivenSystems {
  Strided<const T> a = {}, b = {};
  Strided<const Real<T>> w = {};
  Strided<T> x = {};         // n x p
  Strided<Real<T>> se = {};  // so, too
};

/// The same, whose shapes fit each other. Weights are m x p for each place of the batch, or m x 1
/// for all. One A, or one B, may serve all places.
template <class T>
struct Systems : GivenSystems<T> {
  index_t count = 0, p = 0;
  bool shares_a = false, shares_weights = false;

  Strided<const T> b_of(index_t place) const {
    return this->b.slice(this->b.count == 1 ? 0 : place, 1);
  }
};

/// Refuses weights that are none. Errors: InputError.
template <class R>
void require_weights(const Strided<const R>& w) {
  for (index_t b = 0; b < w.count; ++b)
    for (index_t i = 0; i < w.rows; ++i)
      for (index_t j = 0; j < w.cols; ++j) {
        const R weight = w.at(b, i, j);
        if (!(weight >= 0) || std::isinf(weight))
          throw InputError(
              fmt::format("weights: {} at ({}, {}, {}) is none; weights are finite and "
                          "not negative",
                          weight, b, i, j));
      }
}

/// Returns the weights of all places. Errors: UsageError if they do not fit.
template <class T>
Strided<const Real<T>> weights_of(Strided<const Real<T>> w, Systems<T>& systems) {
  const index_t m = systems.a.rows;
  const bool fits = w.rows == m && (w.cols == 1 || w.cols == systems.p) &&
                    (w.count == 1 || w.count == systems.count);
  if (!fits)
    throw UsageError(
        fmt::format("weights are {} x {} x {}; they must be {} x 1 or {} x {}, one or {} "
                    "of them",
                    w.count, w.rows, w.cols, m, m, systems.p, systems.count));
  systems.shares_weights = w.count == 1 && w.cols == 1;
  if (systems.shares_weights) return w;
  if (w.count == 1) w.stride = 0;
  if (w.cols == 1) w.col_stride = 0;
  w.count = systems.count;
  w.cols = systems.p;
  return w;
}

template <class T>
Systems<T> systems_of(const GivenSystems<T>& given) {
  Systems<T> systems{given, given.x.count, given.b.cols, given.a.count == 1};
  if (given.w.is_there()) systems.w = weights_of(given.w, systems);
  return systems;
}

template <class T>
GivenSystems<T> given_systems(const qrtool_matrices& a, const qrtool_matrices& b,
                              const qrtool_matrices* weights, const qrtool_solutions& out) {
  if (a.rows != b.rows) throw UsageError(fmt::format("a has {} rows and b has {}", a.rows, b.rows));
  const index_t count = a.count == 1 ? b.count : a.count;
  if (b.count != count && b.count != 1)
    throw UsageError(
        fmt::format("a and b: {} and {} matrices do not belong together", a.count, b.count));
  GivenSystems<T> given{
      .a = strided<T>(a),
      .b = strided<T>(b),
      .x = place_for<T>(out.x, "x", count, a.columns, b.columns),
      .se = place_for<Real<T>>(out.errors, "errors", count, a.columns, b.columns)};
  if (weights != nullptr) given.w = strided<Real<T>>(*weights);
  if (!given.x.is_there() && count * a.columns * b.columns > 0)
    throw UsageError("x: its place is NULL");
  return given;
}

/// Checks that no output shares memory with another output or with an input. Errors: UsageError.
template <class T>
void require_apart(const Systems<T>& s, const Solutions& solutions) {
  const Footprint outputs[] = {{"x", s.x},
                               {"errors", s.se},
                               {"solutions", solutions.first(), s.count * s.p, solutions.size()}};
  const Footprint inputs[] = {{"a", s.a}, {"b", s.b}, {"weights", s.w}};
  require_apart(outputs, inputs);
}

/// Refuses an A whose column 0 is not all ones if the problem has an intercept. NaN is a missing
/// number. Errors: InputError.
template <class T>
void require_ones(const Strided<const T>& a) {
  if (a.cols == 0) throw UsageError("intercept: a has no columns");
  for (index_t b = 0; b < a.count; ++b)
    for (index_t i = 0; i < a.rows; ++i) {
      const T number = a.at(b, i, 0);
      if (number == T(1) || number != number) continue;
      throw InputError(
          fmt::format("a: with intercept its column 0 must be all ones; {} stands at "
                      "({}, {}, 0)",
                      std::real(number), b, i));
    }
}

template <class T>
SolveProblem problem_of(const Systems<T>& s, const qrtool_solve_options& o) {
  if (!(o.ridge >= 0) || std::isinf(o.ridge))
    throw UsageError(fmt::format("ridge is {}; it must be 0 or a positive number", o.ridge));
  if (!(o.rank_tolerance >= 0 && o.rank_tolerance < 1))
    throw UsageError(fmt::format("rank_tolerance is {}; it may be 0 to 1", o.rank_tolerance));
  for (const std::int32_t flag : {o.intercept, o.basic, o.skip_missing, o.least_norm})
    require_within("a flag of qrtool_solve_options", flag, 1);
  const index_t n = s.a.cols;
  const bool has_se = s.se.is_there();
  if (has_se && (s.a.rows <= n || o.ridge > 0))
    throw UsageError("errors: standard errors need more rows than columns, and no ridge");
  const double usual = default_rank_tolerance(element_type<T>, n);
  return {.type = element_type<T>,
          .m = s.a.rows,
          .n = n,
          .rank = {.tolerance = o.rank_tolerance > 0 ? o.rank_tolerance : usual,
                   .is_basic = o.basic == 1},
          .ridge = o.ridge,
          .has_intercept = o.intercept == 1,
          .has_weights = s.w.is_there(),
          .weighs_each = s.w.is_there() && !s.shares_weights,
          .skips_missing = o.skip_missing == 1,
          .wants_se = has_se,
          .takes_few_rows = o.least_norm == 1};
}

template <class T>
SystemsShape shape_of(const Systems<T>& s) {
  const Dims of_a = s.shares_a ? Dims{} : Dims{s.count};
  return {.sides = {.rows = RowsOfB::matrix,
                    .batch = {s.count},
                    .p = s.p,
                    .x_dims = {s.count, s.a.cols, s.p},
                    .solution_dims = {s.count, s.p},
                    .a_leading = of_a,
                    .b_leading = s.b.count == 1 ? Dims{} : Dims{s.count}},
          .has_weights = s.w.is_there(),
          .shares_weights = s.shares_weights,
          .name = "b"};
}

/// Copies `from` to packed memory.
template <class T>
Batch<T> copied(const Strided<const T>& from, int threads) {
  const Batch<T> to(from.count, from.rows, from.cols);
  copy<T, T>(from, packed_in(to), threads);
  return to;
}

/// How a call is solved.
template <class T>
struct SolveCall {
  const qrtool_context& context;
  const Systems<T>& systems;
  std::span<const index_t> places;  // of the systems in the call; empty: they are all of them
  const SolveProblem& problem;
  const SolvePlan& plan;
  Solutions& solutions;
  SolveDevice* device = nullptr;
};

/// The results for some places of the batch, in packed memory.
template <class T>
struct Found {
  Found(const SolveProblem& problem, index_t places, index_t p)
      : x(places, problem.n, p),
        reports(static_cast<std::size_t>(places * p)),
        findings(reports.size()) {
    if (problem.wants_se) se = Batch<Real<T>>(places, problem.n, p);
  }

  void hand_over(const SolveCall<T>& call, index_t first, index_t count) const {
    const int threads = call.context.limits.threads;
    const auto hand = [&]<class E>(const Batch<E>& from, const Strided<E>& to) {
      if (to.is_there())
        copy<E, E>(packed_in(from).slice(0, count), to.slice(first, count), threads);
    };
    hand(x, call.systems.x);
    if (call.problem.wants_se) hand(se, call.systems.se);
    const index_t p = call.systems.p;
    for (index_t s = 0; s < count * p; ++s) {
      const auto i = static_cast<std::size_t>(s);
      const index_t system = first + s / p;
      const index_t place =
          call.places.empty() ? system : call.places[static_cast<std::size_t>(system)];
      call.solutions.add(place * p + s % p, report_of(reports[i], findings[i], call.problem.ridge));
    }
  }

  Batch<T> x;
  Batch<Real<T>> se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
};

/// Copies matrices that core needs without gaps.
template <class T>
class Matrices {
 public:
  Matrices(const Strided<const T>& all, bool is_for_device, int threads)
      : all_(all), is_for_device_(is_for_device), threads_(threads) {}

  BatchView<const T> take(index_t first, index_t count) {
    const Strided<const T> some = all_.slice(first, count);
    const bool has_gaps = !some.is_by_rows() || some.view().ld != some.cols ||
                          (is_for_device_ && !some.view().is_packed());
    if (!has_gaps) return some.view();
    if (copy_.view().count < count) copy_ = Batch<T>(count, some.rows, some.cols);
    copy<T, T>(some, packed_in(copy_).slice(0, count), threads_);
    return copy_.view().slice(0, count);
  }

 private:
  Strided<const T> all_;
  bool is_for_device_;
  int threads_;
  Batch<T> copy_;
};

/// The right sides of some places of the batch, as they are, or for a device packed.
template <class T>
RightSideBlock<T> block_of(const SolveCall<T>& call, index_t first, index_t count,
                           Found<T>& found) {
  const Systems<T>& s = call.systems;
  const index_t p = std::max<index_t>(s.p, 1);
  const auto solutions = static_cast<std::size_t>(count * s.p);
  const Strided<const T> b = s.b.count == 1 ? s.b : s.b.slice(first, count);
  RightSideBlock<T> block{
      .count = count * s.p,
      .b = b.data,
      .b_places = {p, s.b.count == 1 ? 0 : b.stride, b.col_stride, b.row_stride},
      .x = found.x.view().data,
      .se = call.problem.wants_se ? found.se.view().data : nullptr,
      .x_places = VectorPlaces::columns(call.problem.n, p),
      .reports = std::span(found.reports).first(solutions),
      .findings = std::span(found.findings).first(solutions)};
  if (!s.w.is_there()) return block;
  const Strided<const Real<T>> w = s.shares_weights ? s.w : s.w.slice(first, count);
  block.w = w.data;
  block.w_places = s.shares_weights ? VectorPlaces{1, 0, 0, w.row_stride}
                                    : VectorPlaces{p, w.stride, w.col_stride, w.row_stride};
  return block;
}

/// The findings of a system are at its first right side.
template <class T>
void spread_findings(Found<T>& found, index_t size) {
  for (std::size_t s = 0; s < found.findings.size(); ++s)
    found.findings[s] = found.findings[s - s % static_cast<std::size_t>(size)];
}

template <class T>
void solve_groups(const SolveCall<T>& call) {
  const Systems<T>& s = call.systems;
  const int threads = call.context.limits.threads;
  const bool is_for_device = call.device != nullptr;
  Matrices<T> matrices(s.a, is_for_device, threads);
  MatrixView<const T> shared;
  // A matrix without entries has no memory, but core needs an address.
  static constexpr T none = 0;
  if (s.shares_a) shared = matrices.take(0, 1)[0];
  if (s.shares_a && shared.data == nullptr) shared.data = &none;
  Batch<Real<T>> weights;
  if (s.shares_weights) weights = copied(s.w, 1);
  GroupEngine<T> engine({.problem = call.problem,
                         .plan = call.plan,
                         .limits = call.context.limits,
                         .device = call.device},
                        shared, weights.view().data);
  const index_t at_once = std::min(call.plan.chunk_groups, s.count);
  Found<T> found(call.problem, at_once, s.p);
  for (index_t first = 0; first < s.count; first += at_once) {
    if (first > 0) call.context.require_going_on();
    const index_t count = std::min(at_once, s.count - first);
    RightSideBlock<T> block = block_of(call, first, count, found);
    Batch<T> b;
    Batch<Real<T>> own_weights;
    if (is_for_device) {
      b = Batch<T>(count, s.b.rows, s.p);
      for (index_t i = 0; i < count; ++i)
        copy<T, T>(s.b_of(first + i), packed_in(b).slice(i, 1), threads);
      block.b = b.view().data;
      block.b_places = VectorPlaces::columns(s.b.rows, std::max<index_t>(s.p, 1));
      if (s.shares_weights) {
        block.w = weights.view().data;
        block.w_places.step = 1;
      } else if (s.w.is_there()) {
        own_weights = copied(s.w.slice(first, count), threads);
        block.w = own_weights.view().data;
        block.w_places = block.b_places;
      }
    }
    engine.run(s.shares_a ? BatchView<const T>{} : matrices.take(first, count), block);
    if (call.plan.route == SolveRoute::each)
      spread_findings(found, call.plan.system_size());
    else if (s.shares_a && !call.plan.splits)  // A was looked at once
      std::fill(found.findings.begin(), found.findings.end(), engine.findings());
    found.hand_over(call, first, count);
  }
}

/// Solves one tall system after another, with all threads on each.
template <class T>
void solve_tall(const SolveCall<T>& call) {
  const Systems<T>& s = call.systems;
  const SolveProblem& p = call.problem;
  const int threads = call.context.limits.threads;
  const index_t size = call.plan.system_size(), n = p.n;
  const TallShape shape(p.packed_rows(), n + size);
  // Rows that were just packed are in the cache when they are factored.
  constexpr index_t entries_at_once = index_t{1} << 20;
  const index_t leaves = std::max<index_t>(
      threads, entries_at_once / std::max<index_t>(shape.leaf_rows() * shape.n(), 1));
  const index_t at_once = std::min(leaves * shape.leaf_rows(), shape.m());
  const Batch<T> ab(1, at_once, shape.n());
  Matrices<T> matrices(s.a, false, threads);
  for (index_t place = 0; place < s.count; ++place) {
    const MatrixView<const T> a = matrices.take(s.shares_a ? 0 : place, 1)[0];
    Found<T> found(p, 1, s.p);
    for (index_t first = 0; first < s.p; first += size) {
      call.context.require_going_on();
      const Batch<T> b(1, p.m, size);
      Strided<const T> columns = s.b_of(place);
      columns.data += first * columns.col_stride;
      columns.cols = size;
      copy<T, T>(columns, packed_in(b), threads);
      Batch<Real<T>> w;
      if (s.w.is_there()) {
        Strided<const Real<T>> column = s.shares_weights ? s.w : s.w.slice(place, 1);
        if (!s.shares_weights) column.data += first * column.col_stride;
        column.cols = 1;
        w = copied(column, threads);
      }
      SweepFindings findings;
      const SweepRows<T> sweep = [&](const RowScales& scales, const VisitRows<T>& visit) {
        findings = {.a_is_finite = true,
                    .b_is_finite = std::vector<char>(static_cast<std::size_t>(size), 1),
                    .rows_used = 0};
        for (index_t row = 0; row < shape.m(); row += at_once) {
          const index_t rows = std::min(at_once, shape.m() - row);
          const index_t given = std::clamp<index_t>(p.m - row, 0, rows);
          const TallRows<T> part{.first = row,
                                 .a = given > 0 ? a.row_block(row, given) : MatrixView<const T>{},
                                 .b = {b.view().data + row * size, given, size, size}};
          const Real<T>* const its_w = w.view().data == nullptr ? nullptr : w.view().data + row;
          const MatrixView<T> to = ab.view()[0].row_block(0, rows);
          pack_tall_rows(p, part, factors_of_rows(p, part, its_w), scales, to, findings);
          visit(row, to);
        }
      };
      TallSystem<T> system(p, size, call.plan.threads, sweep, findings);
      const VectorPlaces places = VectorPlaces::columns(n, s.p);
      const auto from = static_cast<std::size_t>(first), count = static_cast<std::size_t>(size);
      system.run({.count = size,
                  .x = found.x.view().data + places.start(first),
                  .se = p.wants_se ? found.se.view().data + places.start(first) : nullptr,
                  .x_places = places,
                  .reports = std::span(found.reports).subspan(from, count),
                  .findings = std::span(found.findings).subspan(from, count)});
    }
    spread_findings(found, size);
    found.hand_over(call, place, 1);
  }
}

/// Solves for some places of a call, or for all, as they are solved with all places of it.
template <class T>
void run(qrtool_context& context, PlannedBackend& planned, const Systems<T>& all,
         const SolveProblem& problem, Solutions& solutions, const Systems<T>& systems,
         std::span<const index_t> places) {
  const SystemsShape shape = shape_of(all);
  Limits limits = context.limits;
  // The arrays belong to the caller, so the memory of one system is not counted.
  limits.host_bytes +=
      2 * static_cast<std::size_t>(problem.m * (problem.n + systems.p)) * sizeof(T);
  SolvePlan plan = plan_solve(shape, problem, limits);
  SolveDevice device{.backend = planned.backend};
  std::string objection = "not asked for";
  if (planned.backend->name() == "opencl") objection = objection_to_devices(shape, problem, plan);
  if (objection.empty()) objection = plan_on_device(shape, problem, plan, "", device);
  const bool is_on_device = objection.empty();
  if (is_on_device) take_device(shape, problem, limits, plan);
  const SolveCall<T> call{.context = context,
                          .systems = systems,
                          .places = places,
                          .problem = problem,
                          .plan = plan,
                          .solutions = solutions,
                          .device = is_on_device ? &device : nullptr};
  if (plan.route == SolveRoute::tall)
    solve_tall(call);
  else
    solve_groups(call);
  const bool is_shared = plan.route == SolveRoute::shared;
  context.last.variant = is_on_device ? device.variant()
                         : is_shared  ? "one QR for all"
                                      : std::string(plan.factor.variant->name);
  context.last.threads = plan.threads;
  if (!is_on_device && planned.backend->name() == "opencl")
    context.last.reason = "solved on the CPU: " + objection;
}

/// Solves `systems`, which are at some places of a call, or all. `why`: they are copies of a
/// device's.
template <class T>
void solve_on_host(qrtool_context& context, const Systems<T>& all, const SolveProblem& problem,
                   Solutions& solutions, const Systems<T>& systems,
                   std::span<const index_t> places = {}, const std::string& why = {}) {
  if (systems.count == 0 || systems.p == 0) return;
  const Work work = work_of_systems(problem, all.shares_a ? 1 : all.count,
                                    all.p * (all.shares_a ? all.count : 1));
  context.on_backend(
      work,
      [&](PlannedBackend& planned) {
        if (&all == &systems) solutions.restart();
        run(context, planned, all, problem, solutions, systems, places);
      },
      why);
}

/// The systems of a call that are in the memory of a device.
template <class T>
class DeviceSystems {
 public:
  DeviceSystems(qrtool_context& context, const GivenSystems<T>& given, const SolveProblem& problem,
                void* stream, Solutions& solutions)
      : context_(context),
        given_(given),
        all_(systems_of(given)),
        problem_(problem),
        stream_(stream),
        solutions_(solutions),
        engine_(context.device_calls()) {}

  void run() {
    if (problem_.has_intercept) {
      HostCopies ones(engine_, stream_);
      Strided<const T> column = given_.a;
      if (column.cols > 0) column.cols = 1;
      require_ones(ones.input(column));
    }
    if (all_.count == 0 || all_.p == 0) return;
    std::string why = "complex systems are solved on the CPU";
    if constexpr (!is_complex_number<T>) why = solve_there();
    if (!why.empty()) by_host({}, why);
  }

 private:
  /// Returns why the device does not solve them, if it does not.
  std::string solve_there() {
    if (problem_.has_weights || problem_.skips_missing)
      return "rows have weights, or may be missing";
    if (given_.a.count != all_.count) return "one A serves several right sides";
    Strided<const T> b = given_.b;
    if (b.count != all_.count) b.stride = 0;
    b.count = all_.count;
    const SystemResults found =
        solve_on_opencl_stream<T>(*engine_, stream_, problem_,
                                  {device_matrices(given_.a), device_matrices(b),
                                   device_matrices(given_.x), device_matrices(given_.se)},
                                  [&] { return plan(); });
    if (!found.objection.empty()) return found.objection;
    context_.show_on_device(found.variant, {});
    take(found);
    return {};
  }

  SystemsPlan plan() const {
    SystemsShape shape = shape_of(all_);
    shape.sides.a_leading = shape.sides.b_leading = Dims{all_.count};
    Limits limits = context_.limits;
    limits.host_bytes = std::numeric_limits<std::size_t>::max() / 4;  // they do not come there
    const SolvePlan plan = plan_solve(shape, problem_, limits);
    SolveDevice device{.backend = context_.device_calls().backend()};
    std::string why = objection_to_devices(shape, problem_, plan);
    if (why.empty()) why = plan_on_device(shape, problem_, plan, "", device);
    if (why.empty()) why = engine_->objection(device.factor.problem);
    if (!why.empty()) return {.objection = why};
    return {.factor = device.factor, .route = device.route, .variant = device.variant()};
  }

  /// What the device refuses goes to the host together.
  void take(const SystemResults& found) {
    for (index_t place = 0; place < all_.count; ++place)
      if (!std::ranges::binary_search(found.refused, place)) add(found, place);
    if (!found.refused.empty()) by_host(found.refused, {});
  }
  void add(const SystemResults& found, index_t place) {
    const index_t first = place * all_.p;
    for (index_t s = first; s < first + all_.p; ++s)
      solutions_.add(s, report_of(found.reports[static_cast<std::size_t>(s)],
                                  found.findings[static_cast<std::size_t>(first)], problem_.ridge));
  }

  /// No places: all of them.
  void by_host(std::span<const index_t> places, const std::string& why) {
    HostCopies copies(engine_, stream_);
    const auto input = [&](const auto& from) {
      return places.empty() ? copies.input(from) : copies.input(from, places);
    };
    const auto output = [&](const auto& to) {
      return places.empty() ? copies.output(to) : copies.output(to, places);
    };
    const GivenSystems<T> here{input(given_.a), input(given_.b), input(given_.w), output(given_.x),
                               output(given_.se)};
    if (here.w.is_there()) require_weights(here.w);
    Systems<T> some = systems_of(here);
    some.shares_a = all_.shares_a;
    solve_on_host(context_, all_, problem_, solutions_, some, places, why);
    copies.write_back();
  }

  qrtool_context& context_;
  const GivenSystems<T>& given_;
  Systems<T> all_;
  const SolveProblem& problem_;
  void* stream_;
  Solutions& solutions_;
  DeviceCalls::Engine engine_;
};

template <class T>
int solve(qrtool_context& context, const qrtool_matrices& a, const qrtool_matrices& b,
          const qrtool_matrices* weights, const qrtool_solve_options& o,
          const qrtool_solutions& out) {
  const GivenSystems<T> given = given_systems<T>(a, b, weights, out);
  const Systems<T> systems = systems_of(given);
  const SolveProblem problem = problem_of(systems, o);
  Solutions solutions(out.solutions, out.solution_size);
  require_apart(systems, solutions);
  const CallArray arrays[] = {call_array("a", given.a), call_array("b", given.b),
                              call_array("weights", given.w), call_array("x", given.x),
                              call_array("errors", given.se)};
  const CallArray of_host[] = {{"solutions", solutions.first(), systems.count * systems.p > 0}};
  if (context.are_on_device(arrays, of_host, o.stream)) {
    DeviceSystems<T>(context, given, problem, o.stream, solutions).run();
    return solutions.code();
  }
  if (given.w.is_there()) require_weights(given.w);
  if (problem.has_intercept) require_ones(given.a);
  solve_on_host(context, systems, problem, solutions, systems);
  return solutions.code();
}

}  // namespace
}  // namespace qrtool::capi

using namespace qrtool;
using namespace qrtool::capi;

int qrtool_solve(qrtool_context* context, const qrtool_matrices* a, const qrtool_matrices* b,
                 const qrtool_matrices* weights, const qrtool_solve_options* options,
                 const qrtool_solutions* out) {
  return on_context(context, [&](qrtool_context& c) {
    if (a == nullptr || b == nullptr || out == nullptr)
      throw UsageError("qrtool_solve: a, b or out is NULL");
    require_valid(*a, "a");
    require_valid(*b, "b");
    if (weights != nullptr) require_valid(*weights, "weights");
    const ElementType type = type_of(*a, "a");
    if (type_of(*b, "b") != type) throw UsageError("a and b must have the same type");
    if (weights != nullptr && type_of(*weights, "weights") != real_of(type))
      throw UsageError("weights must be real numbers of the precision of a");
    const qrtool_solve_options o = taken(options, "qrtool_solve_options");
    const qrtool_solutions places = taken(out, "qrtool_solutions");
    return with_type(
        type, [&](auto zero) { return solve<decltype(zero)>(c, *a, *b, weights, o, places); });
  });
}
