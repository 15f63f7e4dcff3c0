// SPDX-License-Identifier: Apache-2.0
// rates.cpp: the time that a run will take on a GPU, estimated from measurements.
#include "gpu/estimate/rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/plan/plan.hpp"
#include "core/problem/operations.hpp"
#include "gpu/estimate/measured.hpp"
#include "gpu/estimate/programs.hpp"
#include "gpu/model/costs.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/pipeline/tuning.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// What the measured device takes, for another one.
double on_device(double seconds, const Problem& p, const Limits& device) {
  const double share = device.compute_units > 0
                           ? static_cast<double>(device.compute_units) / tuning::measured_units
                           : 1.0;
  const bool is_slow = real_of(p.type) == ElementType::float64 && !device.fast_float64;
  return seconds / share * (is_slow ? tuning::slow_float64 : 1.0);
}

/// Without the check.
double seconds_of(const Problem& p, const Limits& device, const Variant& variant) {
  const double seconds = variant.seconds(p, device);
  return device.costs != nullptr ? seconds : on_device(seconds, p, device);
}

double kernel_seconds(const Problem& p, const Limits& device, const Variant& variant) {
  return (1 + (p.check == Check::none ? 0 : tuning::check_share)) * seconds_of(p, device, variant);
}

/// x and the errors of right sides of one matrix, which the CPU has factored.
double shared_seconds(const Problem& p, index_t sides, const Limits& device) {
  const double rate = p.type == ElementType::float32 ? tuning::shared_entries_per_second
                                                     : tuning::shared_wide_entries_per_second;
  return on_device(static_cast<double>(p.m * p.n) * static_cast<double>(sides) / rate, p, device);
}

double systems_seconds(const Problem& p, index_t sides, const Limits& device) {
  // Every right side is solved and checked with R and A of its own.
  return on_device(h200_runs().nearest_seconds("run/solve", p) * static_cast<double>(sides), p,
                   device);
}

/// Sub-chunks of a whole run, and of one matrix each at the least.
double sub_chunks(const Problem& p, double bytes) {
  const double wanted = std::ceil(bytes / static_cast<double>(tuning::sub_chunk_bytes));
  return std::clamp(wanted, 1.0, static_cast<double>(p.count));
}

/// The second measurement by the host of the first and the last matrix of a sub-chunk.
double sample_seconds(const Problem& p, double parts) {
  if (p.check == Check::none) return 0;
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
  const auto q = static_cast<double>(p.q_cols()), k = static_cast<double>(p.k());
  const double one = operations_in(p.type) * (q > 0 ? 2 * m * q * (n + q) : 2 * (m + k) * n * n);
  if (one > tuning::host_sample_largest) return 0;
  const double samples = std::min(2 * parts, static_cast<double>(p.count));
  const double chunks = std::max(1.0, parts / 4);
  // Two matrices of a sub-chunk are measured before the budget is looked at.
  return std::min(samples * one, chunks * (tuning::host_sample_usual_operations + 2 * one)) /
         tuning::host_sample_rate;
}

double copied_in(const Problem& p, double bytes) {
  const bool is_large = 2 * bytes / static_cast<double>(p.count) > tuning::sub_chunk_bytes;
  return bytes /
         (is_large ? tuning::copied_bytes_per_second_of_large : tuning::copied_bytes_per_second);
}

/// Copies and kernels overlap, but for the first sub-chunk and the last.
double overlapped(double copies, double kernels, double parts) {
  return std::max(copies, kernels) + std::min(copies, kernels) / parts;
}

/// Bytes of the buffers that go through the pipeline, at the most: four chunks of 64 MiB.
double pinned_bytes(double bytes) { return std::min(bytes, 4 * 0x1p26); }

double bytes_of(const Problem& p) {
  return static_cast<double>(p.count) * static_cast<double>(p.input_bytes() + p.output_bytes());
}

/// From host memory to host memory, with the check.
double run_seconds(const Problem& p, const DeviceInfo& device, const Variant& variant) {
  const double bytes = bytes_of(p);
  const double parts = sub_chunks(p, bytes);
  const double kernels = kernel_seconds(p, device.limits, variant);
  return overlapped(copied_in(p, bytes), kernels, parts) + sample_seconds(p, parts) +
         tuning::chunk_seconds * parts;
}

double factors_seconds(const Problem& p, const DeviceInfo& device, const Variant& variant) {
  const double seconds = run_seconds(p, device, variant);
  if (p.mode != Mode::r) return seconds;
  // The measured times of some shapes are longer for R alone than for Q and R.
  Problem with_q = p;
  with_q.mode = Mode::reduced;
  const Variant* const of_both = least_costly(with_q, opencl_variants(), device.limits);
  return of_both == nullptr ? seconds : std::min(seconds, run_seconds(with_q, device, *of_both));
}

/// From host memory to host memory, with the check; `bytes` are copied.
double solutions_seconds(const Work& work, double bytes, const Limits& device,
                         const Variant& variant) {
  const Problem& p = work.problem;
  const bool shares = has_shared_systems(work, device);
  const double parts =
      shares ? std::max(1.0, bytes / static_cast<double>(tuning::solve_sub_chunk_bytes))
             : sub_chunks(p, bytes);
  const double kernels = (shares ? shared_seconds(p, work.right_sides, device)
                                 : systems_seconds(p, work.right_sides, device)) +
                         (work.is_wide ? seconds_of(p, device, variant) : 0);
  const double copies = shares ? bytes / tuning::copied_bytes_per_second : copied_in(p, bytes);
  return overlapped(copies, kernels, parts) + tuning::chunk_seconds * parts;
}

/// The bytes of A, b, x and weights.
double bytes_of_systems(const Work& work) {
  const Problem& p = work.problem;
  const index_t of_side = p.m + p.n + (work.shares_a ? p.m : 0);
  const std::size_t vectors =
      size_of(p.type) * static_cast<std::size_t>(of_side * work.right_sides);
  return static_cast<double>(p.count) *
         static_cast<double>((work.shares_a ? 0 : p.input_bytes()) + vectors);
}

bool is_measured(const DeviceInfo& device) {
  const auto is_in_name = [&](std::string_view part) {
    return device.name.find(part) != std::string::npos;
  };
  return device.limits.costs != nullptr ||
         std::ranges::any_of(tuning::measured_devices, is_in_name);
}

}  // namespace

double copy_seconds(const Problem& p) {
  if (p.is_empty()) return 0;
  return pinned_bytes(bytes_of(p)) / tuning::pinned_bytes_per_second + copied_in(p, bytes_of(p));
}

DeviceWork device_work(const Work& work, const DeviceInfo& device, const Variant* variant) {
  const Problem& p = work.problem;
  DeviceWork result{.variant = {}, .programs = {}, .is_measured = is_measured(device)};
  if (p.is_empty()) return result;
  const bool solves = work.right_sides > 0;
  if (variant == nullptr) variant = least_costly(p, opencl_variants(), device.limits);
  if (variant == nullptr || (solves && !device.limits.has_float64)) {
    result.run_seconds = never;
    return result;
  }
  const double bytes = solves ? bytes_of_systems(work) : bytes_of(p);
  result.variant = variant->name;
  result.programs = programs_of(*variant, work, device);
  result.pin_seconds = pinned_bytes(bytes) / tuning::pinned_bytes_per_second;
  result.run_seconds = solves ? solutions_seconds(work, bytes, device.limits, *variant)
                              : factors_seconds(p, device, *variant);
  return result;
}

}  // namespace qrtool
