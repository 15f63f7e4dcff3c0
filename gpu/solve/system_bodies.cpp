// SPDX-License-Identifier: Apache-2.0
// system_bodies.cpp: the lists, and the choice from them.
#include "gpu/solve/system_bodies.hpp"

#include <algorithm>
#include <array>

namespace qrtool {

std::span<const SystemBody> normal_bodies() {
  static const std::array list{tall_normal_body(), normal_lane_body(), normal_tile_body(),
                               normal_group_body(), normal_body()};
  return list;
}

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
  const auto found = std::ranges::find_if(bodies, [&](const SystemBody& body) {
    return body.fits(p, limits) && (body.pays == nullptr || body.pays(p, limits));
  });
  return found == bodies.end() ? nullptr : &*found;
}

const SystemBody* chosen_normal_body(const SolveProblem& p, index_t sides, const Limits& limits,
                                     std::string_view forced) {
  if (sides != 1) return nullptr;
  const SystemBody* const chosen = chosen_body(normal_bodies(), p, limits);
  if (chosen == nullptr || forced.empty()) return chosen;
  return &*std::ranges::find(normal_bodies(), forced, &SystemBody::name);
}

}  // namespace qrtool
