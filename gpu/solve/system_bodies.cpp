// SPDX-License-Identifier: Apache-2.0
// system_bodies.cpp: the lists, and the choice from them.
#include "gpu/solve/system_bodies.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "gpu/model/costs.hpp"

namespace qrtool {
namespace {

/// Systems that fill any device.
constexpr index_t many_systems = 1 << 20;

}  // namespace

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
  const auto found =
      std::ranges::find_if(bodies, [&](const SystemBody& body) { return body.fits(p, limits); });
  return found == bodies.end() ? nullptr : &*found;
}

std::string name_in_costs(const SystemBody& body) { return fmt::format("solve/{}", body.name); }

std::vector<const SystemBody*> fitting_normal_bodies(const SolveProblem& p, const Limits& limits) {
  std::vector<const SystemBody*> fitting;
  for (const SystemBody& body : normal_bodies())
    if (body.fits(p, limits)) fitting.push_back(&body);
  return fitting;
}

const SystemBody* chosen_normal_body(const SolveProblem& p, index_t sides, const Limits& limits,
                                     std::string_view forced) {
  if (sides != 1) return nullptr;
  const std::vector<const SystemBody*> fitting = fitting_normal_bodies(p, limits);
  if (fitting.empty()) return nullptr;
  if (!forced.empty()) return &*std::ranges::find(normal_bodies(), forced, &SystemBody::name);
  if (fitting.size() == 1) return fitting.front();
  const CostTable& costs = device_costs(limits);
  const Problem many{.count = many_systems, .m = p.m, .n = p.n, .type = p.type, .mode = Mode::r};
  return *std::ranges::min_element(fitting, {}, [&](const SystemBody* body) {
    return costs.seconds(name_in_costs(*body), many);
  });
}

}  // namespace qrtool
