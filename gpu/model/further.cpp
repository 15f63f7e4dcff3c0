// SPDX-License-Identifier: Apache-2.0
// further.cpp: the numbers that every way by further passes has in common.
#include "gpu/model/further.hpp"
#include <algorithm>
#include <cmath>

#include "core/report/ratios.hpp"
#include "gpu/model/tuning.hpp"

namespace qrtool {
namespace {

bool is_single(const Problem& p) { return real_of(p.type) == ElementType::float32; }

/// The largest ||Q'Q - I||_F^2, as computed, with which Q in float32 is good as it is: the bar less
/// the rounding of Q and the error of Q'Q. In float64 these are more than the bar. Of complex
/// matrices it is the norm of the real form, sqrt(2) times their own.
double most_as_it_is(const Problem& p) {
  if (!is_single(p)) return 0;
  const double root = std::sqrt(static_cast<double>(real_columns(p)));
  const double errors = 0x1p-23 * root + static_cast<double>(p.m) * 0x1p-53 * (root + 1);
  const double most = tuning::gram_guard_share * orthogonality_bar(p) - errors;
  return most > 0 ? most * most : 0;
}

}  // namespace

FurtherShape further_shape(const Problem& p, index_t terms) {
  FurtherShape further{};
  const auto roundings = static_cast<double>(parts_in(p.type) * (terms + p.n));
  further.shift = tuning::further_shift * roundings * 0x1p-53;
  further.noise = is_single(p) ? 0x1p-25 : 0x1p-52;
  further.enough = most_as_it_is(p);
  // SERIES_DEPARTURE, for the bar of the type.
  const auto units = static_cast<double>(std::min(std::max<index_t>(p.m, 16), 30 * p.n));
  further.series = (is_single(p) ? 0x1p-26 : 0x1p-55) * units;
  return further;
}

PassCounts further_pass_counts(const Problem& p) {
  using namespace tuning;
  return is_single(p) ? PassCounts{further_usual_single, further_passes_single}
                      : PassCounts{further_usual_double, further_passes_double};
}

double most_measured_departure(const Problem& p) {
  const auto m = static_cast<double>(p.m), root = std::sqrt(static_cast<double>(real_columns(p)));
  const double growth =
      is_single(p) ? m : std::max(8.0, tuning::gram_guard_per_root * std::sqrt(m));
  const double bar = standard_bars(p.m, p.n, precision_of(p.type), {}).orthogonality;
  const double most = tuning::gram_guard_share * bar - growth * 0x1p-53 * (root + 1);
  return most > 0 ? most * most : 0;
}

GroupPasses passes_of_refused(const Problem& p) {
  GroupPasses how{};
  how.enough = most_measured_departure(p);
  how.shift = tuning::further_shift * static_cast<double>(p.m) * 0x1p-53;
  how.noise = 0.75 * (is_single(p) ? 0x1p-25 : 0x1p-52);  // quad_noise is between 1 and 2
  how.passes = further_pass_counts(p).most;
  return how;
}

bool has_room_for_slot(const Slots& slots, const Problem& p, const Limits& limits) {
  return slots.bytes <= limits.max_allocation_bytes &&
         slots.bytes + p.input_bytes() + p.output_bytes() <= limits.device_bytes;
}

std::size_t further_bytes(const FurtherRoute& route, const Problem& p, const Limits& limits,
                          std::size_t free_bytes, index_t count) {
  const Slots slots = route.slots(p);
  const std::size_t most =
      std::min({tuning::further_most_bytes, limits.device_bytes / tuning::further_share_of_device,
                limits.max_allocation_bytes});
  const auto fitting = std::max<index_t>(1, static_cast<index_t>(most / slots.bytes));
  const auto free = static_cast<index_t>(free_bytes / slots.bytes);
  return slots.total_bytes(std::min({fitting, free, count}));
}

}  // namespace qrtool
