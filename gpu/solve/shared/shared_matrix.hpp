// SPDX-License-Identifier: Apache-2.0
// shared_matrix.hpp: one matrix on the device that serves all right sides, the buffers of some of
// these, and the launches of shared.cl and masked.cl. Private to gpu/solve.
#pragma once

#include <array>
#include <string>

#include "core/solve/engines/system_device.hpp"
#include "gpu/model/gpu_variant.hpp"
#include "gpu/pipeline/engine.hpp"
#include "gpu/solve/parts/system_buffers.hpp"

namespace qrtool {

/// The defines of shared.cl, or of masked.cl, for x and for the check.
struct SharedParams {
  SharedParams(const SolveProblem& problem, SidesLayout layout, bool weighs, const Limits& limits);
  Params solve, check;
};

/// Why the device does not solve such problems; empty where it does. `side_by_side`: the right
/// sides of a column layout in one matrix; 0 for rows.
std::string shared_objection(const SolveProblem& problem, index_t side_by_side,
                             const Limits& limits);

/// The matrix on the device, and the programs for it.
struct SharedSetup {
  SharedSetup(FactorEngine& used, const SolveProblem& solved, const SharedFactors& factors,
              SidesLayout of_sides);

  Launcher launcher(const Params& of) const;
  /// b_ld and x_ld: those of `count` right sides, packed.
  SharedShape shape(index_t count) const;
  /// The buffers of right sides. rows_used: the rows that count.
  enum Entry : std::size_t { b, x, se, errors, findings, rows_used, scratch, entries };
  /// Bytes of one right side in each; 0 where it is not needed.
  std::array<std::size_t, entries> bytes() const;

  FactorEngine& engine;
  const SolveProblem& problem;
  SidesLayout layout;
  bool is_masked;
  SharedParams params;
  Buffer a, q, r, weights, inverse_norms;
  Buffer powers;  // 2^-scale of each column
  double norm = 0, freedom = 0;
};

/// The device's buffers of `count` right sides; set `set` of the pool.
struct SharedBuffers {
  SharedBuffers(SystemPool& pool, const SharedSetup& setup, index_t count, int set);
  Buffer b, x, se, errors, findings, rows_used, scratch;
};

struct SharedEvents {
  Event begun, solved, checked;
};

/// Enqueues x, and then the errors. Results of an earlier run must not pass for those of this one.
SharedEvents enqueue_shared(const SharedSetup& setup, const SharedBuffers& buffers, index_t count);

}  // namespace qrtool
