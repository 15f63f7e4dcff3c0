// SPDX-License-Identifier: Apache-2.0
// solve_stages.hpp: read | solve and check | write, for each route of a plan.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "app/engine/solve_device.hpp"
#include "app/engine/solve_plan.hpp"
#include "app/solve/solve_inputs.hpp"
#include "app/solve/solve_result.hpp"

namespace qrtool {

/// Receives the results. Numbers of solutions and groups ascend without gaps.
template <class T>
struct SolveSink {
  /// Takes X and standard errors of `groups` groups; se may be null.
  std::function<void(index_t first_group, index_t groups, const T* x, const Real<T>* se)> keep_x;
  std::function<void(index_t first_solution, std::span<const SolutionReport>)> keep_reports;
  /// Receives findings: once for all (shared), for each group, or for each right side (splits).
  std::function<void(index_t first, std::span<const MatrixFindings>)> keep_findings;
  /// Receives n x n numbers for each solution. It is called only if the problem wants covariances.
  std::function<void(index_t first_solution, index_t solutions, const T* values)> keep_covariance =
      {};
  /// Receives the results about the fits. If it is empty, they are not measured.
  std::function<void(index_t first_solution, std::span<const FitReport>)> keep_fits = {};
  /// Receives residuals and fitted values, in the order of B, each null if it is not wanted.
  std::function<void(index_t first, index_t count, const void* residuals, const void* fitted)>
      keep_fitted = {};
  /// Receives the state of each group. It is called only if the problem wants states.
  std::function<void(index_t group, const SystemState<T>& state)> keep_state = {};
};

/// The work of a run. x: the solutions that `verify` checks; null for `solve`, which writes them.
/// device: null for the CPU.
struct SolveJob {
  const SolveInputs& inputs;
  const SolveProblem& problem;
  const SolvePlan& plan;
  const Limits& limits;
  Reader* x = nullptr;
  // With x: given fits, each set if inputs.fits says that it is checked, too.
  Reader *fitted = nullptr, *residuals = nullptr;
  SolveDevice* device = nullptr;
};

/// Numbers of fits that are checked, in the places of b and the type of FitWishes; null: not given.
struct GivenFits {
  GivenFits() = default;
  GivenFits(const FitWishes& wishes, index_t numbers);

  HostMemory fitted, residuals;
};
/// Reads `count` numbers of each file of fits, from the one that belongs to number `first` of B on,
/// and stores them in `given` from number `place` on.
void read_given(const SolveJob& job, index_t first, index_t count, index_t place,
                const GivenFits& given);

struct SolveTimes {
  double start = 0;  // until the first read: engines, programs of a device
  StageSeconds stages;
  SolveSeconds seconds;
  double wall = 0;  // until the last write
};

template <class T>
SolveTimes run_solve_stages(const SolveJob& job, const SolveSink<T>& sink);

}  // namespace qrtool
