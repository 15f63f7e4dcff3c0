// SPDX-License-Identifier: Apache-2.0
// held_on_device.cpp: copies of pieces, one at a time, and the run between them.
#include "gpu/pipeline/held_on_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <future>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/machine/clock.hpp"
#include "core/machine/driver_scope.hpp"
#include "core/measure/checksum.hpp"
#include "core/measure/magnitude.hpp"
#include "gpu/check/host_check.hpp"
#include "gpu/pipeline/checked_copies.hpp"
#include "gpu/registry.hpp"

namespace qrtool {
namespace {

/// The factor of this name.
Summed summed_of(std::string_view factor) {
  const auto* const found = std::find(summed_names.begin(), summed_names.end(), factor);
  if (found == summed_names.end()) throw InternalError(fmt::format("there is no {}", factor));
  return static_cast<Summed>(found - summed_names.begin());
}

template <class T>
class HeldOnDevice final : public HeldMatrix<T> {
 public:
  HeldOnDevice(FactorEngine& engine, const Plan& plan)
      : engine_(engine),
        problem_(plan.problem),
        sums_(problem_),
        threads_(engine.info.limits.threads) {
    guarded("to make room for a matrix", [&] { make_room(plan); });
    prepare();
  }
  ~HeldOnDevice() override {
    if (preparing_.valid()) preparing_.wait();
  }
  HeldOnDevice(const HeldOnDevice&) = delete;
  HeldOnDevice& operator=(const HeldOnDevice&) = delete;

  void put(index_t first_row, MatrixView<const T> rows) override {
    const T* const data = rows.data;
    guarded("in an upload", [&] {
      Event copied;
      engine_.upload->start_write(room_->buffers->job.a, data, place_of(first_row, rows), &copied);
      engine_.upload->flush();
      add_to_sum(Summed::a, first_row, rows);
      if (!is_checked()) magnitude_.include(magnitude_of(rows));
      copied->wait();
      seconds_.upload += seconds_of({&copied, 1});
    });
  }

  MatrixReport factor(const Plan& plan) override {
    guarded("in a run", [&] {
      if (plan.variant != room_->plan.variant || plan.params != room_->plan.params) {
        wait_for_kernels();
        make_room(plan);
        prepare();
      }
      run();
    });
    return report_;
  }

  void get(std::string_view factor, index_t first_row, MatrixView<T> rows) override {
    const Summed which = summed_of(factor);
    guarded("in a download", [&] {
      Event copied;
      engine_.download->start_read(buffer_of(*room_->buffers, which), rows.data,
                                   place_of(first_row, rows), &copied);
      copied->wait();
      seconds_.download += seconds_of({&copied, 1});
    });
    add_to_sum(which, first_row, rows);
    const bool holds_r = which == Summed::r || which == Summed::v;
    if (!is_checked() && holds_r) look_at_r(first_row, rows);
  }

  MatrixReport report() override {
    for (const Summed which : summed_factors) compare(which);
    if (is_checked()) return report_;
    MatrixReport line = report_;
    line.scale = magnitude_.finite ? magnitude_.scale() : 0;
    line.status = !magnitude_.finite ? Status::non_finite
                  : is_r_finite_     ? Status::unchecked
                                     : Status::r_overflows;
    return line;
  }

  ChunkSeconds seconds() const override { return seconds_; }

 private:
  /// The buffers of a plan, which refer to it.
  struct Room {
    explicit Room(const Plan& of) : plan(of), variant(gpu_variant(*plan.variant)) {}
    const Plan plan;
    const GpuVariant& variant;
    std::optional<DeviceBuffers> buffers;
  };

  bool is_checked() const { return problem_.check != Check::none; }
  template <class U>
  static Queue::Rows place_of(index_t first_row, MatrixView<U> rows) {
    return {static_cast<std::size_t>(first_row * rows.cols) * sizeof(T),
            static_cast<std::size_t>(rows.rows * rows.cols) * sizeof(T)};
  }
  std::uint64_t& sum_of(Summed which) { return host_sums_[static_cast<std::size_t>(which)]; }

  template <class Body>
  void guarded(const char* where, Body body) {
    engine_.guarded(where,
                    fmt::format("{} has no memory left for one {}x{} matrix", engine_.info.text(),
                                problem_.m, problem_.n),
                    body);
  }

  /// The pool gives the same buffers for A and its factors, whatever the variant is.
  void make_room(const Plan& plan) {
    auto room = std::make_unique<Room>(plan);
    const MatrixBytes bytes = matrix_bytes(room->variant, problem_);
    cut_chunk(problem_, bytes, engine_.info.limits, 1, 0);  // refuses what does not fit
    if (room_ != nullptr) {
      // Its work memory first goes back: only A and its factors are needed.
      room_->buffers.reset();
      engine_.pool.clear_work();
    }
    room->buffers.emplace(
        engine_.pool.get(room->plan.problem, room->plan.params, bytes, /*count=*/1, /*set=*/0));
    room_ = std::move(room);
  }

  /// Builds the kernels, or takes them from the driver's cache, while A goes to the device.
  void prepare() {
    preparing_ = std::async(std::launch::async, [this] {
      const DriverScope driver;
      const auto start = Clock::now();
      engine_.prepare(room_->variant, *room_->buffers, is_checked());
      return seconds_since(start);
    });
  }
  void wait_for_kernels() {
    if (preparing_.valid()) seconds_.kernels += preparing_.get();
  }

  void run() {
    const DeviceBuffers& buffers = *room_->buffers;
    wait_for_kernels();
    job_ = {};
    engine_.run(room_->variant, buffers, is_checked(), job_);
    device_sums_.resize(sums_.sums_of_matrix());
    engine_.compute->start_read(buffers.errors, &errors_, {0, sizeof(errors_)});
    engine_.compute->read(buffers.sums, device_sums_.data(),
                          sizeof(std::uint64_t) * device_sums_.size());
    seconds_.factor += seconds_between(job_.begun, job_.factored);
    if (is_checked()) seconds_.check += seconds_between(job_.factored, job_.checked);
    compare(Summed::a);
    for (const Summed which : summed_factors) sum_of(which) = 0;
    is_r_finite_ = true;
    report_ = {};
    if (is_checked()) {
      sum_of(Summed::errors) = checksum<Word>(words_of(packed(&errors_, 1, 1, 1))[0]);
      compare(Summed::errors);
      report_ = judge_device(problem_, errors_);
    }
    if (!job_.routes.empty()) report_.route = static_cast<Route>(job_.routes.front());
  }

  void add_to_sum(Summed which, index_t first_row, MatrixView<const T> rows) {
    const auto start = Clock::now();
    const auto words = static_cast<index_t>(sizeof(T) / sizeof(std::uint32_t));
    sum_of(which) += checksum<T>(rows, first_row * rows.cols * words, threads_);
    seconds_.check += seconds_since(start);
  }
  void compare(Summed which) {
    if (sums_.words(which) > 0 && sums_.checksum(device_sums_, 0, which) != sum_of(which))
      throw_changed(engine_.info, summed_names[static_cast<std::size_t>(which)],
                    which == Summed::a);
  }
  void look_at_r(index_t first_row, MatrixView<const T> rows) {
    for (index_t i = 0; i < std::min(rows.rows, problem_.k() - first_row); ++i)
      for (index_t j = first_row + i; j < rows.cols; ++j)
        is_r_finite_ = is_r_finite_ && std::isfinite(rows(i, j));
  }

  FactorEngine& engine_;
  Problem problem_;
  SumLayout sums_;
  int threads_;
  std::unique_ptr<Room> room_;
  std::future<double> preparing_;  // the seconds that the kernels of room_ took
  std::array<std::uint64_t, summed_buffers> host_sums_{};
  // The queue reads into these, also while an error goes up to guarded(), which drains it.
  JobRun job_;
  DeviceErrors errors_{};
  std::vector<std::uint64_t> device_sums_;
  Magnitude magnitude_;  // of A, and whether R is finite: where nothing else is checked
  bool is_r_finite_ = true;
  MatrixReport report_;
  ChunkSeconds seconds_;
};

}  // namespace

template <class T>
HeldPointer<T> hold_on_device(FactorEngine& engine, const Plan& plan) {
  return std::make_unique<HeldOnDevice<T>>(engine, plan);
}
template HeldPointer<float> hold_on_device(FactorEngine&, const Plan&);
template HeldPointer<double> hold_on_device(FactorEngine&, const Plan&);

}  // namespace qrtool
