// SPDX-License-Identifier: Apache-2.0
// system_bodies.hpp: the lists of what solves systems on a device, and of what checks them.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/solve/system_device.hpp"
#include "gpu/model/gpu_variant.hpp"
#include "gpu/solve/parts/system_buffers.hpp"

namespace qrtool {

/// The kernels of one file as they are built for some systems, and their launches.
struct SystemStep {
  std::string_view file;
  Params params;
  void (*enqueue)(const SystemJob&, const Params&, Launcher&);
  bool in_float64 = false;  // whether the kernels are built for float64, whatever the systems are
};

/// One way to solve systems, or to measure or check them.
struct SystemBody {
  std::string_view name;
  /// Whether the kernels take such systems on a device with such limits.
  bool (*fits)(const SolveProblem&, const Limits&);
  /// What runs, in this order.
  std::vector<SystemStep> (*steps)(const SolveProblem&, const Limits&);
  /// Of normal equations: the smallest singular value, with scaled columns, above which their R in
  /// float64 tells the rank. Null: R is not theirs.
  double (*least_value)(const SolveProblem&, const Limits&) = nullptr;
};

/// x and the upper triangle of R for one right side of each matrix by normal equations in float64.
std::span<const SystemBody> normal_bodies();
/// x from R; what R says of each matrix; the errors and standard errors. In order of preference.
std::span<const SystemBody> solving_bodies();
std::span<const SystemBody> measuring_bodies();
std::span<const SystemBody> checking_bodies();

/// The first of a list that fits; null where none does.
const SystemBody* chosen_body(std::span<const SystemBody> bodies, const SolveProblem& problem,
                              const Limits& limits);

/// What a body of normal_bodies() is called in a table of costs (core/plan/cost.hpp), whose samples
/// of it are times of x, measurements and checks left out: "solve/normal".
std::string name_in_costs(const SystemBody& body);
/// The bodies of normal_bodies() that fit.
std::vector<const SystemBody*> fitting_normal_bodies(const SolveProblem& problem,
                                                     const Limits& limits);
/// The body that solves systems with `sides` right sides each by normal equations: the one that
/// takes many of them in the least time by the device's table of costs, or the one called `forced`.
/// Null where normal equations do not take them. It does not depend on the number of systems.
const SystemBody* chosen_normal_body(const SolveProblem& problem, index_t sides,
                                     const Limits& limits, std::string_view forced = {});

// One function per body, in the file of its name.
SystemBody normal_lane_body();
SystemBody normal_tile_body();
SystemBody normal_group_body();
SystemBody normal_body();
SystemBody tall_normal_body();
SystemBody systems_body();
SystemBody systems_check();
SystemBody tall_systems_body();
SystemBody tall_systems_check();
SystemBody measures_body();
SystemBody system_lanes_measures();
SystemBody system_lanes_check();

}  // namespace qrtool
