// SPDX-License-Identifier: Apache-2.0
// apply_run.hpp: the inputs, the plan and the stages of `qrtool apply`.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <span>

#include "app/options/options.hpp"
#include "app/run/pipeline/pipeline.hpp"
#include "core/apply/apply.hpp"
#include "core/solve/shapes.hpp"
#include "io/read/stored_factors.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Stored factors and B, which fit each other.
struct ApplyInputs {
  StoredFactors factors;
  ApplyProblem problem;
  std::unique_ptr<Reader> b = {};
  RightSides sides = {};
  ElementType type = ElementType::float64;  // of X

  /// Returns Q, R, or V, whichever is read.
  Reader& factor() const;
  /// Returns all that is read: factor(), B, tau, P; null: not there, or not needed.
  std::array<Reader*, 4> readers() const;
  /// Returns the bytes of a number while it is in memory.
  std::size_t element_bytes() const { return is_complex(type) ? 16 : 8; }
};
/// Errors: InputError if FACTORS hold no factors, or not those that the product needs, or if B does
/// not fit them; UsageError if it fits in two ways.
ApplyInputs open_apply_inputs(const ApplyOptions& options, const Limits& limits);

/// A group is all right sides of a matrix, or one that is a row of its file. Q that does not fit
/// the memory is read by rows, twice.
struct ApplyPlan {
  index_t group_size = 1, groups = 0, chunk_groups = 1;
  index_t block_rows = 0;  // of Q at a time; 0: whole matrices
  int buffers = 1;
  std::size_t host_bytes = 0;
};
/// Errors: LimitError.
ApplyPlan plan_apply(const ApplyInputs& inputs, const Limits& limits);

/// Computes, checks and writes X. found(first right side, reports): in ascending order.
using SidesFound = std::function<void(index_t first, std::span<const SideReport>)>;
StageSeconds run_apply(const ApplyInputs& inputs, const ApplyPlan& plan, int threads,
                       Writer& output, const SidesFound& found);

}  // namespace qrtool
