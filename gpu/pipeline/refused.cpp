// SPDX-License-Identifier: Apache-2.0
// refused.cpp: the steps for refused matrices, and whether the host reads the routes between them.
#include "gpu/pipeline/refused.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <numeric>

#include "gpu/registry.hpp"

namespace qrtool {
namespace {

/// A, Q, R, V and tau, and the magnitudes, in the order of MatrixBytes.
constexpr std::array own_arrays{&FactorJob::a, &FactorJob::q,   &FactorJob::r,
                                &FactorJob::v, &FactorJob::tau, &FactorJob::magnitudes};

/// Launches of one program for the matrices with some routes. A launcher that only takes them down
/// gets those of a job in which all matrices have them.
struct Step {
  bool (*takes)(int route);
  ProgramSource source;
  std::span<const std::string_view> heavy;
  std::function<void(Launcher&)> enqueue;
  Buffer flags = {};  // `routes` of Launcher
  bool changes_routes = true;
};

bool is_scaled(int route) { return route == ROUTE_SCALED; }
bool is_refused(int route) { return route == ROUTE_REFLECTORS || is_scaled(route); }
/// The tree of `tall` also writes NaN for matrices that are not finite.
bool is_for_rest(int route) { return route != ROUTE_FIRST_PASS && route != ROUTE_FURTHER_PASSES; }

class Refused {
 public:
  Refused(FactorEngine& engine, const GpuVariant& first, const FactorJob& job, bool leaves_refused)
      : engine_(engine),
        first_(first),
        job_(job),
        leaves_refused_(leaves_refused),
        routes_(first.routes == nullptr ? nullptr : first.routes(job)) {}

  void run() {
    if (first_.again == nullptr && !has_rest()) return;
    looks_ = std::ranges::count(engine_.ready_for_refused, kernels()) == 0;
    // Some 40 us of the host, while the device is busy with a batch.
    const bool is_batch = job_.count > 1;
    if (is_batch) take_steps();
    if (number(first_.again == nullptr ? is_for_rest : is_refused) == 0) return;
    if (!is_batch) take_steps();
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      const Step& step = steps_[i];
      if (!goes_unread(i) && number(step.takes) == 0) continue;
      if (looks_) engine_.session.programs.prepare({&wanted_[i], 1});
      Launcher launch = engine_.launcher(step.source, step.flags);
      step.enqueue(launch);
      if (step.changes_routes) known_.clear();
    }
    if (looks_) note_if_ready();
  }

  void prepare(bool builds) {
    if (first_.again == nullptr && !has_rest()) return;
    add_steps();
    count_launches();
    if (!can_go_unread()) return;
    ProgramCache& programs = engine_.session.programs;
    for (const WantedKernels& wanted : wanted_)
      builds ? programs.prepare({&wanted, 1}) : programs.take_kept(wanted);
    note_if_ready();
  }

 private:
  const Problem& problem() const { return job_.problem; }

  void take_steps() {
    add_steps();
    if (looks_) count_launches();
  }

  void add_steps() {
    const Limits& limits = engine_.info.limits;
    if (first_.first_q != nullptr && real_of(problem().type) == ElementType::float64) add_scaled();
    further_ = further_route(first_, problem(), limits);
    if (further_ != nullptr) add_passes(further_->tune(problem(), limits));
    if (!leaves_refused_ || first_.again == nullptr) add_reflectors();
  }

  /// Takes down what all steps launch.
  void count_launches() {
    for (const Step& step : steps_) {
      std::vector<TakenLaunch> taken;
      Launcher recorder(taken);
      step.enqueue(recorder);
      WantedKernels& wanted = wanted_.emplace_back(WantedKernels{step.source, {}, step.heavy});
      for (const TakenLaunch& launch : taken) wanted.kernels.insert(launch.kernel);
      launches_.push_back(taken.size());
    }
  }

  /// Whether so many launches cost less than the wait for the routes.
  bool can_go_unread(std::size_t launches) const {
    const bool by_number = further_ == nullptr || further_->finds != Finds::list;
    return by_number && !is_one_by_one_ && launches <= engine_.most_unread_launches;
  }
  bool can_go_unread() const {
    return can_go_unread(std::reduce(launches_.begin(), launches_.end()));
  }
  /// Whether this step goes on without the routes, which may have changed since they were read.
  bool goes_unread(std::size_t i) const {
    return looks_ && i > 0 && known_.empty() && can_go_unread(launches_[i]) &&
           engine_.session.programs.has(wanted_[i]);
  }

  RefusedKernels kernels() const {
    RefusedKernels all{first_.file, problem(), leaves_refused_};
    all.problem.count = 0;
    return all;
  }
  /// Later jobs of this kind go on without the host.
  void note_if_ready() const {
    ProgramCache& programs = engine_.session.programs;
    const bool are_built = std::ranges::all_of(
        wanted_, [&](const WantedKernels& wanted) { return programs.has(wanted); });
    if (are_built && can_go_unread()) engine_.ready_for_refused.push_back(kernels());
  }

  /// How many matrices a step takes by their routes; it may be all, if the host does not look.
  index_t number(bool (*takes)(int route)) {
    if (!looks_) return job_.count;
    if (known_.empty()) known_ = engine_.read_routes(*routes_, job_.count);
    return std::ranges::count_if(known_, takes);
  }

  ProgramSource own_source() const {
    Params parts;
    if (is_complex(problem().type)) parts["ELEMENT_PARTS"] = 2;
    return {"gpu/pipeline/refused.cl", defines_for(problem(), parts, ElementType::float64),
            "refused matrices"};
  }

  /// Matrices whose columns are out of range begin again with scaled ones.
  void add_scaled() {
    constexpr int range_group = 64;  // RANGE_GROUP
    scaled_params_["SCALED"] = 1;
    steps_.push_back({is_scaled, own_source(), {}, [this](Launcher& launch) {
                        launch("scale_refused", job_.count, range_group, job_.a,
                               first_.first_q(job_), job_.magnitudes, *routes_,
                               factor_shape(real_form(problem()), job_.count));
                      }});
    steps_.push_back({is_scaled, source_of(first_, problem(), scaled_params_), first_.heavy_kernels,
                      [this](Launcher& launch) {
                        const FactorJob scaled{problem(), scaled_params_, job_.count,
                                               job_.a,    job_.q,         job_.r,
                                               job_.v,    job_.tau,       job_.magnitudes,
                                               job_.work, job_.slots};
                        first_.enqueue(scaled, launch);
                      }});
  }

  // ---- further passes

  void add_passes(Params params) {
    constexpr int list_group = 256;  // LIST_GROUP
    further_params_ = std::move(params);
    const auto list = [this](Launcher& launch) {
      launch("list_refused", has_memory(launch) ? 1 : 0, list_group, *routes_, own_.list,
             own_.listed, static_cast<int>(job_.count));
    };
    if (further_->finds != Finds::routes)
      steps_.push_back({is_refused, own_source(), {}, list, {}, /*changes_routes=*/false});
    steps_.push_back(
        {is_refused,
         {further_->file, defines_for(problem(), further_params_, ElementType::float64),
          "further passes"},
         further_->heavy_kernels,
         [this](Launcher& launch) {
           if (has_memory(launch)) enqueue_passes(launch);
         }});
  }

  std::size_t slot_bytes(index_t count, std::size_t taken) const {
    const std::size_t most = engine_.info.limits.device_bytes;
    return further_bytes(*further_, problem(), engine_.info.limits, most - std::min(most, taken),
                         count);
  }

  /// The slots of `first` are free, and serve where they are enough. Where not even one slot fits,
  /// reflectors factor these matrices, in memory that they have.
  void take_memory() {
    has_asked_ = true;
    const index_t count = number_taken();
    const std::size_t list_bytes = sizeof(int) * static_cast<std::size_t>(count);
    const std::size_t taken = engine_.pool.bytes_beside_refused() + list_bytes;
    const std::size_t needed = slot_bytes(count, taken);
    const bool is_there = needed > 0 && needed <= job_.slots.bytes();
    own_ = engine_.pool.of_refused(is_there ? 1 : needed, list_bytes)
               .value_or(BufferPool::OfRefused{});
    if (is_there && own_.slots) own_.slots = job_.slots;
  }
  bool has_memory(const Launcher& launch) {
    if (!launch.is_recorder() && !has_asked_) take_memory();
    return launch.is_recorder() || own_.slots;
  }
  /// The matrices that the passes are launched for.
  index_t number_taken() {
    return further_->finds == Finds::routes ? job_.count : number(is_refused);
  }

  void enqueue_passes(Launcher& launch) {
    const bool is_recorded = launch.is_recorder();
    const index_t count = is_recorded ? job_.count : number_taken();
    const Buffer slots =
        is_recorded ? Buffer::of_caller(nullptr, slot_bytes(count, 0)) : own_.slots;
    const Buffer* const sums = first_.slab_sums == nullptr ? nullptr : first_.slab_sums(job_);
    const FurtherJob job{problem(), further_params_, count, own_.list, job_.a,     job_.q,
                         job_.r,    *routes_,        slots, sums,      own_.listed};
    const std::size_t all_slots =
        static_cast<std::size_t>(count) * further_->slots(problem()).bytes;
    // A pass that no matrix needs costs more than reading the routes: 14 launches for 512 columns.
    const auto [usual, most] = further_pass_counts(problem());
    const bool is_in_parts =
        further_->finds == Finds::list && looks_ && !is_recorded && all_slots <= slots.bytes();
    for (PassRange range{0, is_in_parts ? usual : most}; range.first < most;
         range = {range.end, range.end + 1}) {
      further_->enqueue(job, range, launch);
      known_.clear();
      if (is_in_parts && number(is_refused) == 0) return;
    }
  }

  // ---- reflectors

  bool has_rest() const {
    if (first_.enqueue_rest == nullptr) return false;
    std::set<std::string> names;
    Launcher recorder(names);
    first_.enqueue_rest(job_, recorder);
    return !names.empty();
  }

  void add_reflectors() {
    if (first_.again == nullptr) {
      steps_.push_back({is_for_rest, source_of(first_, problem(), job_.params),
                        first_.heavy_kernels,
                        [this](Launcher& launch) { first_.enqueue_rest(job_, launch); }});
      return;
    }
    again_ = first_.again(problem());
    again_params_ = again_.plan.tune(problem(), engine_.info.limits);
    if (again_.takes_flags) again_params_.try_emplace("FLAGGED", 1);
    is_one_by_one_ = !again_.takes_flags;
    steps_.push_back({is_refused, source_of(again_, problem(), again_params_), again_.heavy_kernels,
                      [this](Launcher& launch) {
                        const FactorJob job = again_job();
                        if (is_one_by_one_ && job.count > 1 && !launch.is_recorder())
                          enqueue_one_by_one(job, launch);
                        else
                          enqueue_again(job, launch);
                      },
                      is_one_by_one_ ? Buffer() : *routes_});
  }

  FactorJob again_job() const {
    return {problem(),
            again_params_,
            job_.count,
            job_.a,
            job_.q,
            job_.r,
            job_.v,
            job_.tau,
            job_.magnitudes,
            {job_.work.begin() + 1, job_.work.end()},
            {}};
  }
  void enqueue_again(const FactorJob& job, Launcher& launch) const {
    again_.enqueue(job, launch);
    if (again_.enqueue_rest != nullptr) again_.enqueue_rest(job, launch);
  }

  /// In the same buffers, since the queue is in order.
  void enqueue_one_by_one(const FactorJob& job, Launcher& launch) const {
    const MatrixBytes bytes = matrix_bytes(again_, problem());
    FactorJob one = job;
    one.count = 1;
    for (std::size_t i = 0; i < own_arrays.size(); ++i)
      one.*own_arrays[i] = engine_.memory.allocate(bytes.io[i]);
    for (std::size_t b = 0; b < known_.size(); ++b) {
      if (known_[b] != ROUTE_REFLECTORS) continue;
      engine_.compute->copy(job.a, b * bytes.io[0], one.a, 0, bytes.io[0]);
      enqueue_again(one, launch);
      for (std::size_t i = 1; i < own_arrays.size() - 1; ++i)
        if (const std::size_t size = bytes.io[i]; size > 0)
          engine_.compute->copy(one.*own_arrays[i], 0, job.*own_arrays[i], b * size, size);
    }
  }

  FactorEngine& engine_;
  const GpuVariant& first_;
  const FactorJob& job_;
  bool leaves_refused_;
  const Buffer* routes_;
  const FurtherRoute* further_ = nullptr;
  GpuVariant again_ = {};
  Params scaled_params_ = job_.params, further_params_, again_params_;
  bool is_one_by_one_ = false, has_asked_ = false;
  std::vector<Step> steps_;
  std::vector<WantedKernels> wanted_;  // of each step
  std::vector<std::size_t> launches_;
  bool looks_ = true;
  std::vector<int> known_;  // the routes, where the host has read them since they last changed
  BufferPool::OfRefused own_;
};

}  // namespace

void factor_refused(FactorEngine& engine, const GpuVariant& first, const FactorJob& job,
                    bool leaves_refused) {
  Refused(engine, first, job, leaves_refused).run();
}

void prepare_refused(FactorEngine& engine, const GpuVariant& first, const FactorJob& job,
                     bool builds, bool leaves_refused) {
  Refused(engine, first, job, leaves_refused).prepare(builds);
}

}  // namespace qrtool
