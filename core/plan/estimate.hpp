// SPDX-License-Identifier: Apache-2.0
// estimate.hpp: how long a run will take. core/cpu/cpu_rates.hpp answers for the CPU,
// gpu/estimate/rates.hpp for the work of a device, and app/engine/automatic.hpp adds its start.
#pragma once

#include <string>

#include "core/problem/problem.hpp"

namespace qrtool {

/// What a run does: it factors, or it solves least squares with A = QR.
struct Work {
  Work(const Problem& factored, index_t sides = 0) : problem(factored), right_sides(sides) {}
  /// Returns the reason why only the CPU can do it, or an empty text if a device may.
  std::string objection_to_devices() const {
    return right_sides > 0 && is_complex(problem.type) ? "A is complex" : "";
  }

  Problem problem;        // of R where it solves
  index_t right_sides;    // of each matrix; 0: it factors
  bool shares_a = false;  // one A serves all, whose rows have weights of their own for each side
  bool is_wide = false;   // A has fewer rows than columns, so that R is that of A'
};

/// The programs of a run: those that this user has never built on the device, and the seconds until
/// all are built, or taken from the driver's cache.
struct ProgramsEstimate {
  int all = 0, unseen = 0;
  double seconds = 0;
};

/// The seconds of a run by its parts; those of the CPU are work alone.
struct Estimate {
  double start = 0;  // of a device and of the process that uses it
  ProgramsEstimate programs = {};
  double work = 0;        // from host memory to host memory, with the check
  bool is_guess = false;  // the device was never measured

  double total() const { return start + programs.seconds + work; }
};

}  // namespace qrtool
