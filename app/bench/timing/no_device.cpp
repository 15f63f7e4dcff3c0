// SPDX-License-Identifier: Apache-2.0
// no_device.cpp: takes the place of device.cpp in a build without the gpu layer.
#include "app/bench/timing/device.hpp"
#include "app/bench/timing/gemm.hpp"
#include "core/error.hpp"

namespace qrtool {

std::unique_ptr<TimedRun> make_resident_run(Backend&, Plan, const MatrixRequest&, double) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

std::unique_ptr<ResidentBatches> make_resident_batches(Backend&, const Problem&, std::uint64_t) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

std::unique_ptr<TimedRun> make_resident_systems(Backend&, Plan, const SolveProblem&, SystemRoute,
                                                std::uint64_t, std::string_view) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

std::vector<SampledBody> sampled_bodies(const Backend&, const SolveProblem&) { return {}; }

std::unique_ptr<TimedRun> make_resident_shared(Backend&, const SolveProblem&, index_t,
                                               std::uint64_t) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

double device_rate(Backend&, std::size_t) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

void flush_device(Backend&) {
  throw DeviceError("this build has no OpenCL", "--backend cpu works everywhere");
}

ExitCode run_bench_gemm(const BenchOptions&) {
  throw DeviceError("this build has no OpenCL", "products are measured on a device");
}

}  // namespace qrtool
