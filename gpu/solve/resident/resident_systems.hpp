// SPDX-License-Identifier: Apache-2.0
// resident_systems.hpp: least-squares problems whose data stay on the device, for measurements.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "core/solve/packing.hpp"
#include "gpu/common/shapes.clh"
#include "gpu/pipeline/opencl_backend.hpp"
#include "gpu/solve/systems.hpp"

namespace qrtool {

/// Solves systems that are uploaded once, any number of times. All must fit on the device at once.
template <class T>
class ResidentSystems {
 public:
  /// By the device's clock. `factor` is R of A, with the rows of a ridge; it is 0 where x comes
  /// from normal equations without a ridge. `solve` is x. `check` is findings, errors and standard
  /// errors. Of wide systems `factor` holds both R and the findings of the first, and `solve` holds
  /// the findings of the second.
  struct Seconds {
    double factor = 0, solve = 0, check = 0;
  };

  /// Uploads a and b, `sides` rows of m for each matrix of `a`, and repeats them on the device up
  /// to factor.problem.count systems. `problem` and `factor`, the plan of R, outlive the run; R is
  /// that of A with the rows of a ridge, or of A' where A is wide.
  /// Normal equations leave some systems, whose errors are then NaN or above the bar. weights: m
  /// for each row of b, which are repeated with it, where problem.has_weights; then `a` is one
  /// matrix for all of them, and pairs.hpp takes the problem. Errors: DeviceError, LimitError.
  ResidentSystems(OpenclBackend& backend, const SolveProblem& problem, const Plan& factor,
                  BatchView<const T> a, std::span<const T> b,
                  SystemRoute route = SystemRoute::normal_equations, std::string_view body = {},
                  std::span<const T> weights = {});
  ~ResidentSystems();

  /// Overwrites the last results with NaN, solves and checks. Returns when the device has finished.
  Seconds run();
  /// How x is had: by normal equations only where they are there for the shape.
  SystemRoute route() const;
  /// The time of R alone by the plan's variant. The solutions of the last run remain.
  double factor_seconds();
  /// The solutions of the last run, rows of n, and what its check found.
  std::vector<T> solutions() const;
  std::vector<SolutionErrors> errors() const;
  /// The errors of the norm of each solution; empty unless A is wide.
  std::vector<double> least_norm_errors() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace qrtool
