// SPDX-License-Identifier: Apache-2.0
// baselines.cpp: the list of baselines, and the contestants that are backends of this tool.
#include "app/bench/contestants/baselines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/bench/contestants/lapack.hpp"
#include "app/bench/contestants/lapack_systems.hpp"
#include "app/bench/contestants/systems.hpp"
#include "app/bench/timing/cases.hpp"
#include "app/bench/timing/data.hpp"
#include "app/bench/timing/device.hpp"
#include "app/engine/opencl.hpp"
#include "app/process/stopwatch.hpp"
#include "app/run/matrices/factor_matrices.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"

namespace qrtool {
namespace {

/// A backend whose data are in host memory of its own allocation. Every chunk of a batch uses the
/// same input, so that the memory stays small however large the batch is.
template <class T>
class HostRun final : public TimedRun {
 public:
  HostRun(Backend& backend, Plan plan, const MatrixRequest& request)
      : backend_(backend), plan_(std::move(plan)), chunk_(allocate_matrices<T>(backend, plan_)) {
    const Problem& p = plan_.problem;
    const BenchData<T> data(plan_.chunk_matrices, p.m, p.n, request, plan_.all_threads());
    norms_ = data.norms();
    const T* from = data.view().data;
    std::copy(from, from + plan_.chunk_matrices * p.m * p.n, chunk_.a.view().data);
  }

  std::string variant() const override { return std::string(plan_.variant->name); }
  Accuracy accuracy() const override { return accuracy_; }

  RunSeconds run() override {
    accuracy_ = {};
    RunSeconds total;
    for (index_t first = 0; first < plan_.problem.count; first += plan_.chunk_matrices) {
      chunk_.count = std::min(plan_.chunk_matrices, plan_.problem.count - first);
      const ChunkSeconds seconds = backend_.factor<T>(plan_, chunk_.matrices(chunk_.a),
                                                      factors_of(chunk_), lines_of(chunk_));
      total.factor += seconds.factor;
      total.check += seconds.check;
      add_lines(accuracy_, lines_of(chunk_), norms_);
    }
    return total;
  }

 private:
  Backend& backend_;
  Plan plan_;
  MatrixChunk<T> chunk_;
  std::vector<double> norms_;
  Accuracy accuracy_;
};

/// Returns the reason why a variant of this name cannot run the problem, or an empty text.
std::string objection_of(const Backend& backend, std::string_view name, const Problem& problem) {
  for (const Variant& variant : backend.variants())
    if (variant.name == name) {
      Fit fit = variant.takes(problem, backend.limits());
      return fit.ok ? std::string() : std::move(fit.reason);
    }
  return fmt::format("there is no {}", name);
}

/// Makes the plan for one case. Errors: UsageError if a forced variant cannot run the case.
Plan plan_for(const Backend& backend, const std::string& forced, const Problem& problem,
              int threads = 0) {
  if (!forced.empty()) {
    const std::string objection = objection_of(backend, forced, problem);
    if (!objection.empty()) throw UsageError(objection);
  }
  Limits limits = backend.limits();
  if (threads > 0) limits.threads = threads;
  return make_plan(problem, backend.variants(), limits, forced);
}

/// Times a backend from host memory to host memory.
class HostContestant final : public Contestant {
 public:
  /// Uses the tool's backend.
  HostContestant(std::string name, Backend& backend, std::string forced)
      : name_(std::move(name)),
        text_(name_ == forced ? "forced" : "the same backend, from host memory to host memory"),
        forced_(std::move(forced)),
        backend_(backend) {}
  /// Uses its own CPU backend with all threads, whatever backend the tool uses.
  HostContestant(const BenchSetup& setup, std::string name, std::string forced, std::string text)
      : name_(std::move(name)),
        text_(std::move(text)),
        forced_(std::move(forced)),
        own_(std::make_unique<CpuBackend>(setup.limits)),
        backend_(*own_) {}

  std::string name() const override { return name_; }
  std::string text() const override { return text_; }

  std::unique_ptr<TimedRun> prepare(const Problem& problem, const MatrixRequest& request,
                                    int threads) override {
    Plan plan = plan_for(backend_, forced_, problem, own_ ? 0 : threads);
    return with_type(problem.type, [&](auto zero) -> std::unique_ptr<TimedRun> {
      return std::make_unique<HostRun<decltype(zero)>>(backend_, std::move(plan), request);
    });
  }

 private:
  std::string name_, text_, forced_;
  std::unique_ptr<Backend> own_;
  Backend& backend_;
};

/// Errors: LimitError if the batch does not fit the device's memory.
void require_room(const Backend& backend, const Plan& plan) {
  const Problem& p = plan.problem;
  const std::size_t bytes =
      p.input_bytes() + p.output_bytes() + plan.variant->device_workspace_bytes(p);
  const std::string objection = objection_to_residence(p, bytes, backend.limits());
  if (!objection.empty()) throw LimitError(objection);
}

class DeviceContestant final : public Contestant {
 public:
  DeviceContestant(std::string name, const BenchSetup& setup, std::string forced)
      : name_(std::move(name)), setup_(setup), forced_(std::move(forced)) {}

  std::string name() const override { return name_; }
  std::string text() const override {
    return setup_.backend.name() == "cpu" ? "needs --backend opencl"
                                          : "the same device, data resident";
  }

  std::unique_ptr<TimedRun> prepare(const Problem& problem, const MatrixRequest& request,
                                    int) override {
    if (setup_.backend.name() == "cpu")
      throw DeviceError("runs on an OpenCL device: --backend opencl");
    Plan plan = plan_for(setup_.backend, forced_, problem);
    require_room(setup_.backend, plan);
    const Stopwatch watch;
    if (setup_.builds_first) build_opencl_factors(setup_.backend, plan);
    const double seconds = setup_.builds_first ? watch.seconds() : 0;
    return make_resident_run(setup_.backend, std::move(plan), request, seconds);
  }

 private:
  std::string name_;
  BenchSetup setup_;
  std::string forced_;
};

class HostSamples final : public SampleRuns {
 public:
  explicit HostSamples(const BenchSetup& setup) : setup_(setup) {}
  std::unique_ptr<TimedRun> prepare(std::string_view variant, const Problem& problem) override {
    return HostContestant("", setup_.backend, std::string(variant))
        .prepare(problem, {.seed = setup_.seed}, /*threads=*/2);
  }

 private:
  BenchSetup setup_;
};

class DeviceSamples final : public SampleRuns {
 public:
  DeviceSamples(const BenchSetup& setup, const Problem& most)
      : setup_(setup), batches_(make_resident_batches(setup.backend, most, setup.seed)) {}
  std::unique_ptr<TimedRun> prepare(std::string_view variant, const Problem& problem) override {
    Plan plan = plan_for(setup_.backend, std::string(variant), problem);
    require_room(setup_.backend, plan);
    return batches_->run_of(std::move(plan));
  }

 private:
  BenchSetup setup_;
  std::unique_ptr<ResidentBatches> batches_;
};

constexpr Baseline all_baselines[] = {
    {.name = "eigen",
     .takes_complex = true,
     .make = [](const BenchSetup& setup) -> std::unique_ptr<Contestant> {
       return std::make_unique<HostContestant>(
           setup, "eigen", "cpu/eigen", "Eigen " QRTOOL_EIGEN_VERSION ", one matrix per thread");
     }},
    {.name = cpu_baseline,
     .takes_complex = true,
     .make = [](const BenchSetup& setup) -> std::unique_ptr<Contestant> {
       return std::make_unique<HostContestant>(setup, "cpu", "", "qrtool --backend cpu");
     }},
    {.name = from_host_baseline,
     .is_on_device = true,
     .takes_complex = true,
     .make = [](const BenchSetup& setup) -> std::unique_ptr<Contestant> {
       return std::make_unique<HostContestant>("from-host", setup.backend, setup.variant);
     }},
    {.name = "lapack",
     .takes_complex = true,
     .make = [](const BenchSetup& setup) { return make_lapack(setup.limits); }},
    {.name = "textbook",
     .make = [](const BenchSetup& setup) -> std::unique_ptr<Contestant> {
       return std::make_unique<DeviceContestant>("textbook", setup, "opencl/textbook");
     }},
    {.name = "gels",
     .solves = true,
     .takes_complex = true,
     .make = [](const BenchSetup& setup) { return make_lapack_solver(LapackMethod::gels, setup); }},
    {.name = "gelsy",
     .solves = true,
     .make =
         [](const BenchSetup& setup) { return make_lapack_solver(LapackMethod::gelsy, setup); }},
    {.name = "normal-equations", .solves = true, .make = [](const BenchSetup& setup) {
       return make_lapack_solver(LapackMethod::normal_equations, setup);
     }}};

std::unique_ptr<Contestant> make_forced(const BenchSetup& setup, std::string name,
                                        const std::string& variant) {
  if (setup.task != BenchTask::factor) return make_solver(setup, std::move(name), variant);
  if (setup.backend.name() == "cpu")
    return std::make_unique<HostContestant>(std::move(name), setup.backend, variant);
  return std::make_unique<DeviceContestant>(std::move(name), setup, variant);
}

}  // namespace

std::unique_ptr<Contestant> make_tool(const BenchSetup& setup) {
  return make_forced(setup, setup.backend.name() == "cpu" ? "cpu" : "device", setup.variant);
}

std::vector<std::unique_ptr<Contestant>> make_variants(const BenchSetup& setup, ElementType type) {
  std::vector<std::unique_ptr<Contestant>> contestants;
  for (const Variant& variant : setup.backend.variants()) {
    if (variant.only_when_forced || !variant.is_for(type)) continue;
    const std::string name(variant.name);
    contestants.push_back(make_forced(setup, name, name));
  }
  return contestants;
}

std::unique_ptr<SampleRuns> make_sample_runs(const BenchSetup& setup, const Problem& most) {
  if (setup.backend.name() == "cpu") return std::make_unique<HostSamples>(setup);
  return std::make_unique<DeviceSamples>(setup, most);
}

std::span<const Baseline> baselines() { return all_baselines; }

const Baseline* find_baseline(std::string_view name) {
  const auto found =
      std::ranges::find_if(baselines(), [&](const Baseline& each) { return each.name == name; });
  return found == baselines().end() ? nullptr : &*found;
}

std::vector<const Baseline*> baselines_of(const BenchOptions& o) {
  if (o.against && !o.against->empty()) return *o.against;
  if (o.weighed && !o.against) return {};
  if (o.sweep_kind == SweepKind::shapes && o.backend.asks_for_device() &&
      (!o.against || o.against_variants)) {
    std::vector<const Baseline*> both;
    for (const std::string_view name : baselines_of_choice) both.push_back(find_baseline(name));
    return both;
  }
  return o.against.value_or(std::vector{find_baseline(o.solve ? "gels" : "eigen")});
}

}  // namespace qrtool
