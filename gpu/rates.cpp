// SPDX-License-Identifier: Apache-2.0
// rates.cpp: the time that a problem will take on a GPU, estimated from measurements.
#include "gpu/rates.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/operations.hpp"
#include "gpu/registry.hpp"
#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

/// The variant that the plan chooses without a word from the user; null if there is none.
const Variant* chosen_variant(const Problem& p, const Limits& device) {
  for (const Variant& variant : opencl_variants()) {
    const bool pays = variant.pays == nullptr || variant.pays(p, device).ok;
    if (!variant.only_when_forced && pays && variant.fits(p, device).ok) return &variant;
  }
  return nullptr;
}

/// Distance of the shapes, in powers of two.
double distance(const Problem& p, const tuning::MeasuredTime& time) {
  const auto apart = [](index_t one, index_t other) {
    return std::abs(std::log2(static_cast<double>(one) / static_cast<double>(other)));
  };
  return apart(p.count, time.count) + apart(p.m, time.m) + apart(p.n, time.n);
}

const tuning::MeasuredTime& nearest_time(const Problem& p, std::string_view variant) {
  const auto is_like = [&](const tuning::MeasuredTime& time) {
    return time.type == p.type && time.variant == variant;
  };
  const bool has_variant = std::ranges::any_of(tuning::measured_times, is_like);
  const auto rank = [&](const tuning::MeasuredTime& time) {
    const bool counts = has_variant ? is_like(time) : time.type == p.type;
    return counts ? distance(p, time) : never;
  };
  return *std::ranges::min_element(tuning::measured_times, {}, rank);
}

double kernel_seconds(const Problem& p, const Limits& device, std::string_view variant) {
  const tuning::MeasuredTime& time = nearest_time(p, variant);
  const Problem measured{time.count, time.m, time.n, p.type, p.wants_q() ? Mode::reduced : Mode::r};
  const double seconds = (p.wants_q() ? time.q_ms : time.r_ms) * 1e-3;
  const double share = device.compute_units > 0
                           ? static_cast<double>(device.compute_units) / tuning::measured_units
                           : 1.0;
  const bool is_slow = p.type == ElementType::float64 && !device.fast_float64;
  return seconds * operations(p) / operations(measured) / share *
         (is_slow ? tuning::slow_float64 : 1.0);
}

}  // namespace

double device_seconds(const Problem& p, const Limits& device) {
  if (p.is_empty()) return 0;
  const Variant* const variant = chosen_variant(p, device);
  if (variant == nullptr) return never;
  const double bytes =
      static_cast<double>(p.count) * static_cast<double>(p.input_bytes() + p.output_bytes());
  return std::max(kernel_seconds(p, device, variant->name),
                  bytes / tuning::copied_bytes_per_second);
}

}  // namespace qrtool
