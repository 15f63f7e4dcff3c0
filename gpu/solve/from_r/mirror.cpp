// SPDX-License-Identifier: Apache-2.0
// mirror.cpp: the launch. Device half: mirror.cl.
#include <utility>

#include "gpu/solve/from_r/bodies.hpp"

namespace qrtool {

std::vector<SystemStep> after_mirror(SystemStep step) {
  if (step.params.at("TRIANGLE") != 0) return {std::move(step)};
  const auto mirror = [](const SystemJob& job, const Params&, Launcher& launch) {
    constexpr int side = 32, group = 8 * side;  // MIRRORED and the work-group
    const index_t squares = ceil_divide(job.n, side);
    launch("mirror_factors", job.shape.count * squares * squares, group, job.r);
  };
  const Params params{{"COLUMNS", step.params.at("COLUMNS")}};
  return {{"gpu/solve/from_r/mirror.cl", params, mirror}, std::move(step)};
}

}  // namespace qrtool
