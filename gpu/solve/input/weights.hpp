// SPDX-License-Identifier: Apache-2.0
// weights.hpp: rows with weights and missing rows, which change A and b on the device before the
// systems are solved.
#pragma once

#include "core/solve/packing.hpp"
#include "gpu/pipeline/engine.hpp"

namespace qrtool {

inline bool needs_weighing(const SolveProblem& p) { return p.has_weights || p.skips_missing; }

/// The buffers of some systems with one right side each.
struct WeighJob {
  index_t systems;
  Buffer source;  // A of all systems, or the same as a
  Buffer a, b;
  bool shares_a;
  Buffer w;             // m weights, or m for each system; unused without weights
  bool shares_weights;  // m weights
  Buffer left_out;      // for each system, how many rows do not count
};

/// Gives a the rows of A, and multiplies them and b by the roots of their weights, with 0 where a
/// row is left out.
void enqueue_weights(FactorEngine& engine, const SolveProblem& problem, const WeighJob& job);

/// The kernels take m - n for the degrees of freedom. Their standard errors times this factor are
/// those of m - left_out rows; NaN where no freedom is left.
double freedom_factor(const SolveProblem& problem, index_t left_out);

}  // namespace qrtool
