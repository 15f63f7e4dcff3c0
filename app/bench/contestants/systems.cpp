// SPDX-License-Identifier: Apache-2.0
// systems.cpp: times `solve` on the CPU, by the route that the command takes.
#include "app/bench/contestants/systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "app/bench/timing/data.hpp"
#include "app/bench/timing/device.hpp"
#include "app/engine/automatic.hpp"
#include "app/engine/opencl.hpp"
#include "app/engine/solve_device.hpp"
#include "app/engine/solve_plan.hpp"
#include "app/engine/tall_rows.hpp"
#include "app/process/stopwatch.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/solve/engines/shared_engine.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "core/solve/engines/tall_system.hpp"

namespace qrtool {
namespace {

/// Times Gaussian systems in host memory, which are solved and checked. Every chunk uses the same
/// input.
template <class T>
class HostSystems : public TimedRun {
 public:
  /// A chunk has `matrices` matrices and `sides` right sides.
  HostSystems(const Problem& problem, index_t matrices, index_t sides, const BenchSetup& setup,
              int threads)
      : problem_(problem),
        systems_(systems_of(problem, setup.task, setup.ridge)),
        chunk_(sides),
        threads_(threads),
        a_(matrices, problem.m, problem.n, setup.seed, threads),
        b_(sides, 1, problem.m, seed_of_b(setup.seed), threads),
        w_(draw_weights<T>(systems_.has_weights ? sides : 0, problem.m, setup.seed, threads)),
        x_(sides, 1, problem.n),
        reports_(static_cast<std::size_t>(sides)) {}

  Accuracy accuracy() const override { return accuracy_; }

  RunSeconds run() override {
    accuracy_ = {};
    double seconds = 0;
    const Stopwatch starting;
    begin();
    seconds += starting.seconds();
    for (index_t first = 0; first < problem_.count; first += chunk_) {
      const index_t sides = std::min(chunk_, problem_.count - first);
      const Stopwatch watch;
      solve(block_of(sides));
      seconds += watch.seconds();
      for (index_t s = 0; s < sides; ++s) accuracy_.add(reports_[static_cast<std::size_t>(s)]);
    }
    return {seconds, 0};
  }

 protected:
  /// begin() is called once in a run, and solve() for every chunk.
  virtual void begin() {}
  virtual void solve(const RightSideBlock<T>& block) = 0;

  const SolveProblem& systems() const { return systems_; }
  int threads() const { return threads_; }
  const T* matrix(index_t i) const { return a_.view()[i].data; }
  const T* right_side(index_t s) const { return b_.view()[s].data; }

 private:
  RightSideBlock<T> block_of(index_t sides) {
    return {.count = sides,
            .b = b_.view().data,
            .b_places = VectorPlaces::rows(problem_.m),
            .w = w_.empty() ? nullptr : w_.data(),
            .w_places = VectorPlaces::rows(problem_.m),
            .x = x_.view().data,
            .x_places = VectorPlaces::rows(problem_.n),
            .reports = std::span(reports_).first(static_cast<std::size_t>(sides))};
  }

  Problem problem_;
  SolveProblem systems_;
  index_t chunk_;
  int threads_;
  BenchData<T> a_, b_;
  std::vector<Real<T>> w_;
  Batch<T> x_;
  std::vector<SolutionReport> reports_;
  Accuracy accuracy_;
};

/// Times systems that have a matrix for each right side, or one matrix with a few right sides.
template <class T>
class EachSystem final : public HostSystems<T> {
 public:
  EachSystem(const Problem& problem, const Plan& factor, index_t sides_of_matrix, index_t chunk,
             const BenchSetup& setup)
      : HostSystems<T>(problem, chunk / sides_of_matrix, chunk, setup, factor.all_threads()),
        plan_(factor),
        backend_(setup.limits),
        engine_(this->systems(), backend_, plan_, setup.limits.threads),
        sides_of_matrix_(sides_of_matrix) {
    for (index_t i = 0; i < chunk / sides_of_matrix; ++i)
      all_.push_back({this->matrix(i), i * sides_of_matrix});
  }

  std::string variant() const override { return std::string(plan_.variant->name); }

 private:
  void solve(const RightSideBlock<T>& block) override {
    const auto systems = static_cast<std::size_t>(block.count / sides_of_matrix_);
    engine_.run(std::span(all_).first(systems), block);
  }

  Plan plan_;
  CpuBackend backend_;
  SystemEngine<T> engine_;
  index_t sides_of_matrix_;
  std::vector<SystemRef<T>> all_;
};

template <class T>
class SharedSystem final : public HostSystems<T> {
 public:
  SharedSystem(const Problem& problem, index_t chunk, const BenchSetup& setup, int threads)
      : HostSystems<T>(problem, 1, chunk, setup, threads),
        m_(problem.m),
        n_(problem.n),
        engine_(this->systems(), limits_with(setup.limits, threads)) {}

  std::string variant() const override {
    return this->systems().weighs_each ? "a Gram matrix for each" : "one QR for all";
  }

 private:
  static Limits limits_with(Limits limits, int threads) {
    limits.threads = threads;
    return limits;
  }
  void begin() override { engine_.take_matrix({this->matrix(0), m_, n_, n_}, nullptr, 1); }
  void solve(const RightSideBlock<T>& block) override { engine_.run(block); }

  index_t m_, n_;
  SharedEngine<T> engine_;
};

/// Solves one system after another, with all threads on its rows, which lie in memory as [A b].
template <class T>
class TallSystems final : public HostSystems<T> {
 public:
  TallSystems(const Problem& problem, const Plan& factor, const BenchSetup& setup, int threads)
      : HostSystems<T>(problem, 1, 1, setup, threads),
        plan_(factor),
        rows_(1, this->systems().packed_rows(), problem.n + 1) {
    pack({.b = {0}, .is_zero = {0}});
  }

  std::string variant() const override { return std::string(plan_.variant->name); }

 private:
  void solve(const RightSideBlock<T>& block) override {
    const SweepRows<T> sweep = [&](const RowScales& scales, const VisitRows<T>& visit) {
      // Gaussian rows need no scales, but those of a ridge may.
      if (scales.a != scales_.a || scales.b != scales_.b) pack(scales);
      visit(0, rows_.view()[0]);
    };
    TallSystem<T>(this->systems(), 1, this->threads(), sweep, found_).run(block);
  }

  void pack(const RowScales& scales) {
    const index_t m = this->systems().m, n = this->systems().n;
    scales_ = scales;
    found_ = {.b_is_finite = {1}};
    pack_tall_rows<T>(this->systems(),
                      {0, {this->matrix(0), m, n, n}, {this->right_side(0), m, 1, 1}},
                      RowFactors(m), scales, rows_.view()[0], found_);
  }

  Plan plan_;
  Batch<T> rows_;  // of [A b], with those of a ridge
  RowScales scales_;
  SweepFindings found_;
};

template <class T>
std::unique_ptr<TimedRun> make_run(const Problem& p, const BenchSetup& setup,
                                   const std::string& forced, int threads) {
  Limits limits = setup.limits;
  if (threads > 0) limits.threads = threads;
  BenchSetup own = setup;
  own.limits = limits;
  const SolveProblem problem = systems_of(p, setup.task, setup.ridge);
  const Problem packed = with_rows(p, problem.packed_rows());
  const bool is_shared = shares_matrix(setup.task);
  if (problem.weighs_each && !takes_own_weights(problem))
    throw LimitError("the CPU factors a copy of such a matrix for each right side");
  if (is_shared && pays_as_shared(p.n, p.count))
    return std::make_unique<SharedSystem<T>>(p, systems_at_once(packed, setup.task, limits), own,
                                             limits.threads);
  const index_t sides_of_matrix = is_shared ? p.count : 1;
  const Plan factor = plan_factor(problem, p.count, sides_of_matrix, limits, forced);
  const bool is_tall = factor.variant->row_state_bytes != nullptr;
  if (factor.by_rows() || (is_tall && 3 * packed.input_bytes() > limits.host_bytes))
    throw LimitError("a matrix does not fit the memory");
  if constexpr (!is_complex_number<T>) {  // which no variant takes by rows
    if (is_tall && sides_of_matrix == 1)
      return std::make_unique<TallSystems<T>>(p, factor, own, limits.threads);
  }
  const index_t chunk = is_shared ? p.count : systems_at_once(packed, setup.task, limits);
  return std::make_unique<EachSystem<T>>(p, factor, sides_of_matrix, chunk, own);
}

/// Errors: DeviceError if there is an objection.
void require_device(const std::string& objection) {
  if (!objection.empty()) throw DeviceError("solve takes such systems to the CPU: " + objection);
}

class Solver final : public Contestant {
 public:
  Solver(const BenchSetup& setup, std::string name, std::string forced)
      : setup_(setup), name_(std::move(name)), forced_(std::move(forced)) {}

  std::string name() const override { return name_; }
  std::string text() const override { return name_ == forced_ ? "forced" : "qrtool itself"; }

  std::unique_ptr<TimedRun> prepare(const Problem& p, const MatrixRequest& request,
                                    int threads) override {
    setup_.seed = request.seed;
    if (setup_.backend.name() != "cpu") return prepare_on_device(p);
    return with_type(
        p.type, [&](auto zero) { return make_run<decltype(zero)>(p, setup_, forced_, threads); });
  }

 private:
  std::unique_ptr<TimedRun> prepare_on_device(const Problem& p) const {
    require_device(Work(p, 1).objection_to_devices());
    const SolveProblem problem = systems_of(p, setup_.task, setup_.ridge);
    if (setup_.task == BenchTask::solve_shared) return prepare_shared_on_device(p, problem);
    require_device(opencl_system_objection(setup_.backend, problem));
    const Limits limits = setup_.backend.limits();
    const Problem factored = factored_on_device(problem, p.count);
    Plan plan = make_plan(factored, setup_.backend.variants(), limits, forced_);
    // The number of copies of A: the device makes another one for wide systems, and for a ridge.
    const std::size_t copies = p.m < p.n ? 2 : setup_.ridge > 0 ? 1 : 0;
    const std::size_t bytes = factored.input_bytes() + factored.output_bytes() +
                              copies * p.input_bytes() +
                              plan.variant->device_workspace_bytes(factored) +
                              static_cast<std::size_t>(p.m + 2 * p.n) * size_of(p.type);
    // The host holds a few systems only, unless the device is the host.
    Limits of_device = limits;
    if (!limits.is_cpu) of_device.host_bytes = std::numeric_limits<std::size_t>::max();
    // One A that serves all systems needs no room.
    const std::string objection =
        problem.has_weights ? "" : objection_to_residence(p, bytes, of_device);
    if (!objection.empty()) throw LimitError(objection);
    // As in `solve`, a variant that was named is the one that runs.
    const SystemRoute route =
        forced_.empty() ? SystemRoute::normal_equations : SystemRoute::factors;
    return make_resident_systems(setup_.backend, std::move(plan), problem, route, setup_.seed);
  }

  std::unique_ptr<TimedRun> prepare_shared_on_device(const Problem& p,
                                                     const SolveProblem& problem) const {
    require_device(pays_as_shared(p.n, p.count)
                       ? opencl_shared_objection(setup_.backend, problem, 0)
                       : "one A serves few right sides");
    return make_resident_shared(setup_.backend, problem, p.count, setup_.seed);
  }

  BenchSetup setup_;
  std::string name_, forced_;
};

}  // namespace

std::unique_ptr<Contestant> make_solver(const BenchSetup& setup, std::string name,
                                        std::string variant) {
  return std::make_unique<Solver>(setup, std::move(name), std::move(variant));
}

}  // namespace qrtool
