// SPDX-License-Identifier: Apache-2.0
// factor.cpp: qrtool_factor: the caller's arrays as chunks of a plan, as they are or by copies.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "app/capi/arrays.hpp"
#include "app/capi/context.hpp"
#include "app/capi/device_calls.hpp"
#include "app/capi/overlap.hpp"
#include "app/capi/reports.hpp"
#include "core/machine/parallel.hpp"

namespace qrtool::capi {
namespace {

Problem problem_of(const qrtool_matrices& a, const qrtool_factor_options& o) {
  require_within("mode", o.mode, QRTOOL_RAW);
  require_within("sign", o.sign, QRTOOL_LAPACK);
  require_within("check", o.check, QRTOOL_NO_CHECK);
  require_within("arithmetic", o.arithmetic, QRTOOL_MIXED);
  require_within("pivoting", o.pivoting, 1);
  require_within("condition", o.condition, 1);
  require_within("no_wait", o.no_wait, 1);
  constexpr Mode modes[] = {Mode::reduced, Mode::complete, Mode::r, Mode::raw};
  constexpr Check checks[] = {Check::full, Check::probe, Check::none};
  constexpr Arithmetic arithmetics[] = {Arithmetic::any, Arithmetic::strict, Arithmetic::mixed};
  const Mode mode = modes[o.mode];
  const bool has_lapack_signs =
      o.sign == QRTOOL_LAPACK || (o.sign == QRTOOL_USUAL_SIGN && mode == Mode::raw);
  return {.count = a.count,
          .m = a.rows,
          .n = a.columns,
          .type = type_of(a, "a"),
          .mode = mode,
          .sign = has_lapack_signs ? Sign::lapack : Sign::positive,
          .arithmetic = arithmetics[o.arithmetic],
          .check = checks[o.check],
          .pivots = o.pivoting == 1,
          .wants_condition = o.condition == 1};
}

/// Refuses combinations of options that do not exist. Errors: UsageError.
void require_offered(const Problem& p, const qrtool_factor_options& o) {
  if (p.mode == Mode::raw && o.sign == QRTOOL_POSITIVE)
    throw UsageError("mode raw has LAPACK's signs; sign may not be positive");
  if (p.mode == Mode::raw && p.pivots)
    throw UsageError("mode raw is not pivoted; use reduced or r");
  if (p.arithmetic == Arithmetic::mixed && p.type != ElementType::float32)
    throw UsageError("mixed is for float32 matrices");
  if (o.reserved != 0) throw UsageError("qrtool_factor_options: reserved is not 0");
}

/// The places for the factors of a call.
template <class T>
struct Places {
  Strided<T> q, r, v, tau;
  std::int64_t* p;

  Places slice(index_t first, index_t count, index_t columns) const {
    return {q.slice(first, count), r.slice(first, count), v.slice(first, count),
            tau.slice(first, count), p == nullptr ? nullptr : p + first * columns};
  }
};

template <class T>
Places<T> places_of(const Problem& p, const qrtool_factors& out) {
  const bool is_raw = p.mode == Mode::raw;
  const qrtool_place none{};
  Places<T> places{.q = place_for<T>(p.wants_q() ? out.q : none, "q", p.count, p.m, p.q_cols()),
                   .r = place_for<T>(is_raw ? none : out.r, "r", p.count, p.r_rows(), p.n),
                   .v = place_for<T>(is_raw ? out.v : none, "v", p.count, p.m, p.n),
                   .tau = place_for<T>(is_raw ? out.tau : none, "tau", p.count, 1, p.k()),
                   .p = out.p};
  const Strided<T>& needed = is_raw ? places.v : places.r;
  if (!needed.is_there() && needed.count * needed.rows * needed.cols > 0)
    throw UsageError(is_raw ? "v: its place is NULL" : "r: its place is NULL");
  if (p.pivots && out.p == nullptr && p.count * p.n > 0)
    throw UsageError("p: its place is NULL, and pivoting is asked for");
  return places;
}

/// Checks that no output shares memory with another output or with an input. Errors: UsageError.
template <class T>
void require_apart(const Problem& p, const Strided<const T>& a, const Places<T>& places,
                   const Reports& reports, const std::int32_t* statuses) {
  const Footprint outputs[] = {
      {"q", places.q},
      {"r", places.r},
      {"v", places.v},
      {"tau", places.tau},
      {"p", p.pivots ? places.p : nullptr, p.count * p.n, sizeof(std::int64_t)},
      {"reports", reports.first(), p.count, reports.size()},
      {"statuses", statuses, p.count, sizeof(std::int32_t)}};
  const Footprint inputs[] = {{"a", a}};
  require_apart(outputs, inputs);
}

/// The factors of some matrices: in the caller's places, or in memory of ours that is copied there.
template <class T>
class ChunkFactors {
 public:
  ChunkFactors(const Problem& p, const Places<T>& places, index_t matrices)
      : problem_(p), places_(places) {
    if (p.wants_q()) q_ = memory_for(places.q, matrices);
    if (p.mode != Mode::raw) r_ = memory_for(places.r, matrices);
    if (p.mode == Mode::raw) v_ = memory_for(places.v, matrices);
    if (p.mode == Mode::raw) tau_ = memory_for(places.tau, matrices);
    if (p.pivots) p_ = Batch<double>(matrices, 1, p.n);
  }

  Factors<T> views(index_t first, index_t count) const {
    const bool is_raw = problem_.mode == Mode::raw;
    Factors<T> views;
    if (problem_.wants_q()) views.q = view(places_.q, q_, first, count);
    if (!is_raw) views.r = view(places_.r, r_, first, count);
    if (is_raw) views.v = view(places_.v, v_, first, count);
    if (is_raw) views.tau = view(places_.tau, tau_, first, count);
    if (problem_.pivots) views.p = p_.view().slice(0, count);
    return views;
  }
  void hand_over(index_t first, index_t count, int threads) const {
    hand_over(places_.q, q_, first, count, threads);
    hand_over(places_.r, r_, first, count, threads);
    hand_over(places_.v, v_, first, count, threads);
    hand_over(places_.tau, tau_, first, count, threads);
    if (!problem_.pivots) return;
    const double* const numbers = p_.view().data;
    std::transform(numbers, numbers + count * problem_.n, places_.p + first * problem_.n,
                   [](double column) { return static_cast<std::int64_t>(column); });
  }

 private:
  static Batch<T> memory_for(const Strided<T>& place, index_t matrices) {
    if (place.is_there() && place.is_by_rows()) return {};
    return {matrices, place.rows, place.cols};
  }
  static BatchView<T> view(const Strided<T>& place, const Batch<T>& memory, index_t first,
                           index_t count) {
    if (memory.view().data != nullptr) return memory.view().slice(0, count);
    return place.slice(first, count).view();
  }
  static void hand_over(const Strided<T>& place, const Batch<T>& memory, index_t first,
                        index_t count, int threads) {
    if (memory.view().data == nullptr || !place.is_there()) return;
    copy<T, T>(packed_in(memory).slice(0, count), place.slice(first, count), threads);
  }

  const Problem& problem_;
  const Places<T>& places_;
  Batch<T> q_, r_, v_, tau_;
  Batch<double> p_;
};

/// Returns the number of matrices of a chunk. Between chunks a call may be stopped, and a device is
/// idle. If all arrays are the caller's, only the reports need our memory, and chunks for a device
/// are larger than in the plan.
template <class T>
index_t matrices_at_once(const Plan& plan, const Backend& backend, const Places<T>& places) {
  constexpr std::size_t bytes_at_once = std::size_t{1} << 30;
  constexpr std::size_t most_matrices = (std::size_t{64} << 20) / sizeof(MatrixReport);
  const bool has_copies = std::ranges::any_of(
      std::array{&places.q, &places.r, &places.v, &places.tau},
      [](const Strided<T>* place) { return place->is_there() && !place->is_by_rows(); });
  if (has_copies || plan.problem.pivots || backend.name() == "cpu") return plan.chunk_matrices;
  const std::size_t of_matrix = plan.problem.input_bytes() + plan.problem.output_bytes();
  const std::size_t fitting = bytes_at_once / std::max<std::size_t>(of_matrix, 1);
  return std::max(plan.chunk_matrices, static_cast<index_t>(std::min(fitting, most_matrices)));
}

/// Factors matrices of a problem, in which they follow others: `number` is that of the first one.
template <class T>
void run(qrtool_context& context, PlannedBackend& planned, const Problem& problem,
         const Strided<const T>& a, const Places<T>& places, Reports& reports, index_t number) {
  const Plan& plan = planned.plan_for(problem);
  Backend& backend = planned.checked->backend_for(problem);
  const int threads = context.limits.threads;
  const bool is_copied = !a.is_by_rows();
  const index_t at_once =
      std::min(a.count, is_copied ? plan.chunk_matrices : matrices_at_once(plan, backend, places));
  const Batch<T> copied = is_copied ? Batch<T>(at_once, a.rows, a.cols) : Batch<T>();
  const ChunkFactors<T> factors(problem, places, at_once);
  std::vector<MatrixReport> lines(static_cast<std::size_t>(at_once));
  for (index_t first = 0; first < a.count; first += at_once) {
    if (first > 0) context.require_going_on();
    const index_t count = std::min(at_once, a.count - first);
    const Strided<const T> part = a.slice(first, count);
    if (is_copied) copy<T, T>(part, packed_in(copied).slice(0, count), threads);
    const BatchView<const T> view = is_copied ? copied.view().slice(0, count) : part.view();
    const std::span<MatrixReport> found = std::span(lines).first(static_cast<std::size_t>(count));
    backend.factor<T>(plan, view, factors.views(first, count), found, ArraysOf::caller);
    factors.hand_over(first, count, threads);
    for (index_t b = 0; b < count; ++b)
      reports.add(number + first + b, report_of(lines[static_cast<std::size_t>(b)]));
  }
  context.last.variant = plan.variant->name;
  context.last.arithmetic = plan.arithmetic();
  context.last.threads = plan.all_threads();
}

/// The arrays of a call that are in the memory of a device.
template <class T>
class DeviceFactors {
 public:
  DeviceFactors(qrtool_context& context, const Problem& problem, void* stream,
                const Strided<const T>& a, const Places<T>& places, Reports& reports)
      : context_(context),
        problem_(problem),
        stream_(stream),
        a_(a),
        places_(places),
        reports_(reports),
        engine_(context.device_calls()) {}

  void run(bool no_wait, std::int32_t* statuses) {
    if (const std::string why = engine_->objection(problem_); !why.empty()) {
      if (statuses != nullptr)
        throw UsageError("statuses are those of work on the device, and here " + why);
      by_host(0, problem_.count, why);
      return;
    }
    const Looks looks = problem_.check != Check::none                        ? Looks::at_errors
                        : reports_.first() != nullptr || statuses != nullptr ? Looks::at_range
                                                                             : Looks::at_nothing;
    engine_->factor(stream_, problem_,
                    {device_matrices(a_), device_matrices(places_.q), device_matrices(places_.r),
                     device_matrices(places_.v), device_matrices(places_.tau), statuses},
                    looks);
    const Plan& plan = engine_->plan_for(problem_);
    context_.show_on_device(plan.variant->name, plan.arithmetic());
    if (no_wait) return;
    engine_->wait();
    if (looks != Looks::at_nothing) take_reports();
  }

 private:
  /// Neighbours that may be better by reflectors go to the host together, where they begin again as
  /// matrices of the host would.
  void take_reports() {
    constexpr index_t at_once = 2048;  // a thread takes them in the time in which another one wakes
    std::vector<char> fails(static_cast<std::size_t>(problem_.count));
    std::atomic<bool> are_good = true;
    parallel_for(
        (problem_.count + at_once - 1) / at_once, context_.limits.threads, [&](index_t part, int) {
          for (index_t b = part * at_once; b < std::min((part + 1) * at_once, problem_.count); ++b)
            if (!take_report(b, fails[static_cast<std::size_t>(b)])) are_good = false;
        });
    reports_.count(are_good);
    for (auto next = fails.begin(); (next = std::find(next, fails.end(), 1)) != fails.end();) {
      const auto end = std::find(next, fails.end(), 0);
      by_host(next - fails.begin(), end - next, {});
      next = end;
    }
  }
  /// Returns whether the matrix is good, or goes to the host.
  bool take_report(index_t matrix, char& fails) const {
    const MatrixReport line = engine_->report(matrix);
    fails = problem_.check != Check::none &&
            (line.status == Status::above_bar || line.status == Status::r_overflows);
    return fails != 0 || reports_.put(matrix, report_of(line));
  }

  void by_host(index_t first, index_t count, const std::string& why) {
    const Places<T> places = places_.slice(first, count, problem_.n);
    HostCopies copies(engine_, stream_);
    const Strided<const T> a = copies.input(a_.slice(first, count));
    const Places<T> on_host{copies.output(places.q), copies.output(places.r),
                            copies.output(places.v), copies.output(places.tau), places.p};
    context_.on_backend(
        problem_,
        [&](PlannedBackend& planned) {
          capi::run<T>(context_, planned, problem_, a, on_host, reports_, first);
        },
        why);
    copies.write_back();
  }

  qrtool_context& context_;
  const Problem& problem_;
  void* stream_;
  Strided<const T> a_;
  const Places<T>& places_;
  Reports& reports_;
  DeviceCalls::Engine engine_;
};

template <class T>
int factor(qrtool_context& context, const Problem& problem, const qrtool_factor_options& o,
           const Strided<const T>& a, const qrtool_factors& out) {
  Reports reports(out.reports, out.report_size);
  if (o.no_wait == 1 && (problem.check != Check::none || reports.first() != nullptr))
    throw UsageError("no_wait needs QRTOOL_NO_CHECK, and no reports");
  if (o.statuses != nullptr && o.no_wait == 0)
    throw UsageError("statuses need no_wait; otherwise reports have them");
  if (problem.count == 0) return QRTOOL_OK;
  const Places<T> places = places_of<T>(problem, out);
  require_apart(problem, a, places, reports, o.statuses);
  const CallArray arrays[] = {call_array("a", a),
                              call_array("q", places.q),
                              call_array("r", places.r),
                              call_array("v", places.v),
                              call_array("tau", places.tau),
                              {"statuses", o.statuses, o.statuses != nullptr}};
  const CallArray of_host[] = {{"reports", reports.first(), true},
                               {"p", places.p, problem.pivots && problem.n > 0}};
  if (context.are_on_device(arrays, of_host, o.stream, o.no_wait == 1)) {
    DeviceFactors<T>(context, problem, o.stream, a, places, reports)
        .run(o.no_wait == 1, o.statuses);
    return reports.code();
  }
  context.on_backend(problem, [&](PlannedBackend& planned) {
    reports.restart();
    run<T>(context, planned, problem, a, places, reports, 0);
  });
  return reports.code();
}

}  // namespace
}  // namespace qrtool::capi

using namespace qrtool;
using namespace qrtool::capi;

int qrtool_factor(qrtool_context* context, const qrtool_matrices* a,
                  const qrtool_factor_options* options, const qrtool_factors* out) {
  return on_context(context, [&](qrtool_context& c) {
    if (a == nullptr || out == nullptr) throw UsageError("qrtool_factor: a or out is NULL");
    require_valid(*a, "a");
    const qrtool_factor_options o = taken(options, "qrtool_factor_options");
    const qrtool_factors places = taken(out, "qrtool_factors");
    const Problem problem = problem_of(*a, o);
    require_offered(problem, o);
    return with_type(problem.type, [&](auto zero) {
      using T = decltype(zero);
      return factor<T>(c, problem, o, strided<T>(*a), places);
    });
  });
}

int qrtool_workspace(qrtool_context* context, const qrtool_matrices* a,
                     const qrtool_factor_options* options, uint64_t* bytes) {
  return on_context(context, [&](qrtool_context& c) {
    if (a == nullptr || bytes == nullptr) throw UsageError("qrtool_workspace: a or bytes is NULL");
    const qrtool_factor_options o = taken(options, "qrtool_factor_options");
    require_valid_shape(*a, "a");
    const Problem problem = problem_of(*a, o);
    require_offered(problem, o);
    DeviceCalls::Engine engine(c.device_calls());
    *bytes = 0;
    if (!engine->objection(problem).empty()) return static_cast<int>(QRTOOL_OK);
    // Addresses that are aligned, of which only the strides count.
    void* const address = reinterpret_cast<void*>(std::uintptr_t{1} << 20);
    with_type(problem.type, [&](auto zero) {
      using T = decltype(zero);
      qrtool_factors out{};
      out.q = out.r = out.v = out.tau = {address, 0, 0, 0};
      const Places<T> places = places_of<T>(problem, out);
      Strided<const T> matrices = strided<T>(*a);
      if (!matrices.is_there()) matrices.data = static_cast<const T*>(address);
      const Looks looks = problem.check != Check::none ? Looks::at_errors : Looks::at_range;
      *bytes = engine->workspace_bytes(
          problem,
          {device_matrices(matrices), device_matrices(places.q), device_matrices(places.r),
           device_matrices(places.v), device_matrices(places.tau)},
          looks);
    });
    return static_cast<int>(QRTOOL_OK);
  });
}
