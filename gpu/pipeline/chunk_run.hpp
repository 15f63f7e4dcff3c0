// SPDX-License-Identifier: Apache-2.0
// chunk_run.hpp: one call of OpenclBackend::factor, whose matrices go through the device in parts.
//
// The device sums what arrived and what it sends back, and the host compares these checksums with
// its own: a copy that changes a bit ends the run. The host measures a sample again.
#pragma once

#include <array>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/backend.hpp"
#include "gpu/check/host_check.hpp"
#include "gpu/pipeline/flights.hpp"

namespace qrtool {

/// The host's checksum of what the device has measured.
std::uint64_t checksum_of(const DeviceErrors& errors);
/// Throws the error of a copy that has changed `which`; `of_matrix` continues its name.
[[noreturn]] void throw_changed(const DeviceInfo& info, Summed which,
                                std::string_view of_matrix = {});

/// The state of some matrices of a chunk from upload to download.
struct MatrixFlight {
  index_t first = 0, count = 0;
  std::unique_ptr<DeviceBuffers> buffers;
  std::vector<Event> uploads, downloads;
  Event summed;
  JobRun run;
  std::vector<DeviceErrors> errors;
  std::vector<std::uint64_t> sums;  // by the device, in the layout of SumLayout
  // By the host, one per matrix, of A and its factors.
  std::array<std::vector<std::uint64_t>, summed_buffers> host_sums;

  std::vector<std::uint64_t>& sums_by_host(Summed which) {
    return host_sums[static_cast<std::size_t>(which)];
  }
};

template <class T>
class ChunkRun final : private FlightWork<MatrixFlight> {
 public:
  ChunkRun(FactorEngine& engine, const Plan& plan, const ChunkToFactor<T>& chunk);

  /// Errors: DeviceError, LimitError.
  ChunkSeconds run();

 private:
  SubChunks cut(index_t count) const override;
  void begin(int set, index_t first, index_t count) override;
  void launch(int set) override;
  void collect(int set) override;
  void free_buffers() override {}
  std::string item() const override;
  std::string place(index_t number) const override;

  template <class Body>
  void for_matrices(index_t count, Body body) const;
  /// The place of a factor in the caller's chunk.
  const BatchView<T>& place_of(Summed factor) const;
  /// Enqueues the copies of the factors, and what the device has measured, after event `summed`.
  void download(MatrixFlight& flight);
  std::uint64_t sum_of(MatrixView<const T> matrix) const;
  void sum_factors(MatrixFlight& flight) const;
  void compare_sums(MatrixFlight& flight) const;
  void compare_with_device(const MatrixFlight& flight, index_t i, Summed which,
                           std::uint64_t sum_of_host) const;
  /// Whether the device measures the errors, or the host in its place.
  bool is_checked() const { return wants_check() && can_check(); }
  bool is_checked_by_host() const { return wants_check() && !can_check(); }
  bool can_check() const { return engine_.info.limits.has_float64; }
  bool wants_check() const { return plan_.problem.check != Check::none; }
  void refuse_denormals(const MatrixFlight& flight) const;
  void judge_all(const MatrixFlight& flight);
  void compare_samples(const MatrixFlight& flight);

  FactorEngine& engine_;
  const Plan& plan_;
  const GpuVariant& variant_;
  MatrixBytes bytes_;
  SumLayout sums_;
  BatchView<const T> a_;
  const Factors<T>& out_;
  std::span<MatrixReport> report_;
  bool goes_through_ring_;
  int threads_;                           // of the host
  std::deque<HostCheck<T>> host_checks_;  // one for a thread; the first takes the samples
  bool is_prepared_ = false;              // the kernels are built
  ChunkSeconds seconds_;
};

}  // namespace qrtool
