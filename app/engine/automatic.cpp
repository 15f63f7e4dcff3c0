// SPDX-License-Identifier: Apache-2.0
// automatic.cpp: the estimates behind --backend auto.
#include "app/engine/automatic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "app/engine/opencl.hpp"
#include "core/cpu/cpu_rates.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// The start of a device that was never used. An NVIDIA H200 takes 0.24 to 0.26 s (driver 580,
/// 2026-11-23).
constexpr double usual_start_seconds = 0.3;
/// The time of a run on a device besides start, programs and work: queues, first launches, and the
/// end of the driver in the process. 100 of 64 x 64 on an H200 take 0.38 s, of which 0.24 are its
/// start and 0.02 programs.
constexpr double process_seconds = 0.12;
/// The build of a program if nothing was ever built: the median of 100 programs on an H200.
constexpr double usual_build_seconds = 1.2;
/// The time to load a program that was built once from the driver's cache. An H200 takes 0.003 to
/// 0.02 s.
constexpr double usual_load_seconds = 0.01;
/// The longest time of a measurement, about, and the largest fraction that it may have of the time
/// on the CPU.
constexpr double sample_seconds = 1, sample_share = 0.2;
/// Devices are looked for if the CPU takes longer than a device's start and the copies by this
/// factor. Looking takes 0.17 s on an H200, which is lost if none is chosen.
constexpr double worth_asking = 1.25;
/// Kernels are worth building ahead if the device takes at most this part of the CPU's time then.
constexpr double most_of_cpu_with_kernels = 0.5;
/// The largest distance between a problem and a measured one, in powers of two of rows and columns.
constexpr double most_sample_distance = 3;

/// The units of another GPU differ from the measured one's, and neither clock nor memory is known.
/// So its work is estimated to take longer than its number of units says, by this factor.
constexpr double guess_factor = 10;

/// Returns the mean time in which programs of this device were built.
double mean_build_seconds(const KeptDevice* device) {
  if (device == nullptr || device->programs.empty()) return usual_build_seconds;
  double sum = 0;
  for (const KeptProgram& program : device->programs) sum += program.first_seconds;
  return sum / static_cast<double>(device->programs.size());
}

double distance(const Problem& p, const Problem& measured) {
  const auto apart = [](index_t one, index_t other) {
    return std::abs(
        std::log2(static_cast<double>(std::max<index_t>(one, 1)) / static_cast<double>(other)));
  };
  const double other_mode = p.wants_q() == measured.wants_q() ? 0 : 1;
  return apart(p.m, measured.m) + apart(p.n, measured.n) + other_mode;
}

/// Returns the nearest measurement of the same type, or null if none is near.
const KeptSample* near_sample(const Problem& p, const KeptDevice* device) {
  const KeptSample* nearest = nullptr;
  double least = most_sample_distance;
  if (device == nullptr) return nullptr;
  for (const KeptSample& sample : device->samples) {
    const double apart = distance(p, sample.problem);
    if (sample.problem.type != p.type || apart > least) continue;
    nearest = &sample;
    least = apart;
  }
  return nearest;
}

ProgramsEstimate estimate_programs(std::span<const std::string> programs, const KeptDevice* kept) {
  ProgramsEstimate result;
  for (const std::string& id : programs) {
    const KeptProgram* const program = kept != nullptr ? kept->find(id) : nullptr;
    ++result.all;
    result.unseen += program == nullptr ? 1 : 0;
    result.seconds += program != nullptr ? program->least_seconds.value_or(usual_load_seconds)
                                         : mean_build_seconds(kept);
  }
  return result;
}

std::string device_text(const DeviceInfo& device, const Estimate& on_device) {
  std::string programs = fmt::format("kernels {:.2g}", on_device.programs.seconds);
  if (on_device.programs.unseen > 0)
    programs += fmt::format(" ({} not built before)", on_device.programs.unseen);
  return fmt::format(
      "{} takes about {:.2g} s (start {:.2g}, {}, work with copies and check {:.2g}{})",
      device.name, on_device.total(), on_device.start, programs, on_device.work,
      on_device.is_guess
          ? fmt::format(", a guess: {} times what follows from another device's times",
                        guess_factor)
          : "");
}

/// AutomaticChoice::advice, if the CPU was chosen.
std::string build_advice(const Work& work, const DeviceInfo& device, const Estimate& on_device,
                         double on_cpu) {
  // The command builds what one right side needs.
  if (on_device.is_guess || on_device.programs.unseen == 0 || work.right_sides > 1) return {};
  const Problem& p = work.problem;
  const double built = on_device.start + on_device.work +
                       usual_load_seconds * static_cast<double>(on_device.programs.all);
  if (built > most_of_cpu_with_kernels * on_cpu) return {};
  return fmt::format(
      "{} would take about {:.2g} s, and the CPU {:.2g}, if its kernels were built: qrtool devices "
      "--build --shape {}x{}x{} --precision {}",
      device.name, built, on_cpu, p.count, p.m, p.n,
      real_of(p.type) == ElementType::float32 ? "single" : "double");
}

std::string cpu_text(double seconds, int threads) {
  return fmt::format("the CPU about {:.2g} s with {} thread{}", seconds, threads,
                     threads == 1 ? "" : "s");
}

/// Returns the least time of a start that is to be expected.
double least_start_seconds(const Timings& timings) {
  return process_seconds + timings.least_start_seconds().value_or(usual_start_seconds);
}

}  // namespace

Estimate estimate(const Work& work, const DeviceInfo& device, const Timings& timings,
                  const Variant* variant) {
  const KeptDevice* const kept = timings.find(device);
  const DeviceWork planned = device_work(work, device, variant);
  Estimate result{.start = process_seconds + planned.pin_seconds +
                           (kept != nullptr ? kept->start_seconds : usual_start_seconds),
                  .programs = estimate_programs(planned.programs, kept),
                  .work = planned.run_seconds};
  if (planned.is_measured) return result;
  const KeptSample* const sample = near_sample(work.problem, kept);
  result.is_guess = sample == nullptr;
  result.work *= sample == nullptr
                     ? guess_factor
                     : sample->seconds / device_work(sample->problem, device).run_seconds;
  return result;
}

bool is_worth_a_device(const Work& work, const Limits& host, const Timings& timings) {
  const double least = least_start_seconds(timings) + copy_seconds(work.problem);
  return cpu_seconds(work, host.threads) > worth_asking * least;
}

bool is_worth_a_sample(const Work& work, const Limits& host, const DeviceInfo& device,
                       const Timings& timings) {
  if (device.limits.is_cpu) return false;
  const Estimate on_device = estimate(work, device, timings);
  return on_device.is_guess && std::isfinite(on_device.work) &&
         on_device.start + on_device.programs.seconds + sample_seconds <
             sample_share * cpu_seconds(work, host.threads);
}

AutomaticChoice choose_automatically(const Work& work, const Limits& host,
                                     std::span<const DeviceInfo> devices, const Timings& timings,
                                     bool is_started) {
  const double on_cpu = cpu_seconds(work, host.threads);
  if (!is_started && !is_worth_a_device(work, host, timings))
    return {nullptr, fmt::format("{}, a device at least {:.2g} s for its start and the copies",
                                 cpu_text(on_cpu, host.threads),
                                 least_start_seconds(timings) + copy_seconds(work.problem))};
  const auto gpu = std::find_if(devices.begin(), devices.end(),
                                [](const DeviceInfo& device) { return !device.limits.is_cpu; });
  if (gpu == devices.end()) return {nullptr, "there is no GPU"};
  Estimate on_gpu = estimate(work, *gpu, timings);
  if (is_started) on_gpu.start = 0;
  if (!std::isfinite(on_gpu.work))
    return {nullptr, fmt::format("{} does not take this work{}", gpu->name,
                                 gpu->limits.has_float64 ? "" : ": it has no float64")};
  const std::string reason =
      fmt::format("{}; {}", device_text(*gpu, on_gpu), cpu_text(on_cpu, host.threads));
  if (on_gpu.total() < on_cpu) return {&*gpu, reason};
  return {nullptr, reason, build_advice(work, *gpu, on_gpu, on_cpu)};
}

}  // namespace qrtool
