// SPDX-License-Identifier: Apache-2.0
// bodies.cpp: the list, and the choice by the time that each body takes.
#include "gpu/solve/normal/bodies.hpp"

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
  if (!forced.empty()) return &*std::ranges::find(normal_bodies(), forced, &SystemBody::name);
  const std::vector<const SystemBody*> fitting = fitting_normal_bodies(p, limits);
  if (fitting.empty()) return nullptr;
  if (fitting.size() == 1) return fitting.front();
  const CostTable& costs = device_costs(limits);
  const Problem many{.count = many_systems, .m = p.m, .n = p.n, .type = p.type, .mode = Mode::r};
  return *std::ranges::min_element(fitting, {}, [&](const SystemBody* body) {
    return costs.seconds(name_in_costs(*body), many);
  });
}

bool takes_normal_equations(const SolveProblem& p, index_t sides, const Limits& limits) {
  return chosen_normal_body(p, sides, limits) != nullptr;
}

}  // namespace qrtool
