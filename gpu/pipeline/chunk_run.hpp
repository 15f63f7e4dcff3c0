// SPDX-License-Identifier: Apache-2.0
// chunk_run.hpp: one call of OpenclBackend::factor, whose matrices go through the device in parts.
//
// The host measures a sample again.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/backend/backend.hpp"
#include "gpu/check/host_check.hpp"
#include "gpu/pipeline/checked_copies.hpp"
#include "gpu/pipeline/flights.hpp"

namespace qrtool {

/// The state of some matrices of a chunk from upload to download.
struct MatrixFlight {
  index_t first = 0, count = 0;
  std::unique_ptr<DeviceBuffers> buffers;
  CheckedCopies copies;
  JobRun run;
  std::vector<DeviceErrors> errors;
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

  /// The place of a factor in the caller's chunk.
  const BatchView<T>& place_of(Summed factor) const;
  /// Enqueues the copies of the factors and of the errors.
  void download(MatrixFlight& flight);
  int ring_threads() const { return goes_through_ring_ ? threads_ : 0; }
  /// All threads where there is one matrix: nothing is read or written at the same time.
  int sum_threads() const { return a_.count == 1 ? engine_.info.limits.threads : threads_; }
  bool is_checked() const { return plan_.problem.check != Check::none; }
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
  // For a caller's arrays all threads, in a pipeline at most two. There one thread adds words more
  // slowly than the device takes them, and more than two take cores and memory from the stages that
  // read and write, which work at the same time and are slower (gpu/NOTES.md).
  int threads_;
  HostCheck<T> host_check_;   // takes the samples
  bool is_prepared_ = false;  // the kernels are built
  ChunkSeconds seconds_;
};

}  // namespace qrtool
