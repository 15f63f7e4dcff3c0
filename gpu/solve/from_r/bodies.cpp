// SPDX-License-Identifier: Apache-2.0
// bodies.cpp: the lists, and the choice of the first that fits.
#include "gpu/solve/from_r/bodies.hpp"

#include <algorithm>
#include <array>

namespace qrtool {

std::span<const SystemBody> solving_bodies() {
  static const std::array list{tall_systems_body(), systems_body()};
  return list;
}

std::span<const SystemBody> measuring_bodies() {
  static const std::array list{system_lanes_measures(), measures_body()};
  return list;
}

std::span<const SystemBody> checking_bodies() {
  static const std::array list{tall_systems_check(), system_lanes_check(), systems_check()};
  return list;
}

const SystemBody* chosen_body(std::span<const SystemBody> bodies, const SolveProblem& p,
                              const Limits& limits) {
  const auto found =
      std::ranges::find_if(bodies, [&](const SystemBody& body) { return body.fits(p, limits); });
  return found == bodies.end() ? nullptr : &*found;
}

}  // namespace qrtool
