// SPDX-License-Identifier: Apache-2.0
// chunk_run.hpp: one call of OpenclBackend::factor: upload, compute and download of sub-chunks
// overlap.
//
//   upload    | 0 | 1 | 2 | 3 |              The queues are in order. Events give this order:
//   compute       | 0 | 1 | 2 | 3 |          upload -> factor, check -> download
//   download          | 0 | 1 | 2 | 3 |
//   host                  | 0 | 1 | 2 | 3 |  verdicts; the host measures a sample again
//
// The device sums what arrived and what it sends back, and the host compares these checksums with
// its own: a copy that changes a bit ends the run.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/backend.hpp"
#include "gpu/check/host_check.hpp"
#include "gpu/factor/engine.hpp"

namespace qrtool {

/// Seconds from the end of `first` to the end of `last`, by the device's clock.
double seconds_between(const cl::Event& first, const cl::Event& last);
/// Seconds from the start of the first event to the end of the last one.
double seconds_of(const std::vector<cl::Event>& events);

/// Whether the error is a lack of memory, so that smaller sub-chunks may help.
bool is_memory_short(const cl::Error& error);
/// Throws the error of a failed call with a message for the user.
[[noreturn]] void throw_device_error(const cl::Error& error, const DeviceInfo& info,
                                     std::string_view where);

/// The host's checksum of what the device has measured.
std::uint64_t checksum_of(const DeviceErrors& errors);
/// Throws the error of a copy that has changed `which`; `of_matrix` continues its name.
[[noreturn]] void throw_changed(const DeviceInfo& info, Summed which,
                                std::string_view of_matrix = {});

template <class T>
class ChunkRun {
 public:
  ChunkRun(Engine& engine, const Plan& plan, BatchView<const T> a, const Factors<T>& out,
           std::span<MatrixReport> report);

  /// Errors: DeviceError, LimitError.
  ChunkSeconds run();

 private:
  /// The state of a sub-chunk from upload to download.
  struct Flight {
    index_t first = 0, count = 0;
    std::unique_ptr<DeviceBuffers> buffers;
    std::vector<cl::Event> uploads, downloads;
    JobRun run;
    std::vector<DeviceErrors> errors;
    std::vector<std::uint64_t> sums;    // by the device, in the layout of sums_
    std::vector<std::uint64_t> a_sums;  // by the host, one per matrix
  };

  void run_from_first_open(SubChunks cut, std::vector<Flight>& flights);
  void begin(Flight& flight, index_t first, index_t count, int set);
  void launch(Flight& flight);
  void collect(Flight& flight);
  template <class Body>
  void for_matrices(index_t count, Body body) const;
  std::uint64_t sum_of(MatrixView<const T> matrix) const;
  void compare_sums(const Flight& flight) const;
  void compare_with_device(const Flight& flight, index_t i, Summed which,
                           std::uint64_t sum_of_host) const;
  /// Whether the device measures the errors, or the host in its place.
  bool is_checked() const { return wants_check() && engine_.info.limits.has_float64; }
  bool is_checked_by_host() const { return wants_check() && !engine_.info.limits.has_float64; }
  bool wants_check() const { return plan_.problem.check != Check::none; }
  void refuse_denormals(const Flight& flight) const;
  void judge_all(const Flight& flight);
  void compare_samples(const Flight& flight);

  Engine& engine_;
  const Plan& plan_;
  const GpuVariant& variant_;
  MatrixBytes bytes_;
  SumLayout sums_;
  BatchView<const T> a_;
  const Factors<T>& out_;
  std::span<MatrixReport> report_;
  HostCheck<T> host_check_;
  bool is_prepared_ = false;  // the kernels are built
  ChunkSeconds seconds_;
  index_t open_ = 0;  // first matrix whose results are not yet on the host
};

}  // namespace qrtool
