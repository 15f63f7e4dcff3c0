// SPDX-License-Identifier: Apache-2.0
// system_buffers.hpp: the device's buffers for systems, beside those of their factors.
#pragma once

#include <array>
#include <map>
#include <utility>

#include "core/solve/engines/system_device.hpp"
#include "core/solve/packing.hpp"
#include "gpu/model/gpu_variant.hpp"
#include "gpu/pipeline/engine.hpp"

namespace qrtool {

/// What tall_systems.cl and normal_sums.cl keep between their launches, for each right side: sums
/// of each slab, sums of all rows, and x with a flag. Only where systems are tall.
struct TallBuffers {
  Buffer partial, sums, state;
};

/// What pairs.cl makes of one A and of right sides with weights or gaps of their own, and what it
/// reads of them beside a and b.
struct PairBuffers {
  Buffer pairs, wide, gaps;       // of A: products of entries, A in float64, rows with a gap
  Buffer weights;                 // m for all, or for each right side; unused without weights
  Buffer left_out;                // for each right side, how many rows do not count
  Buffer scaled, exponents;       // the weights times 4^-exponent
  Buffer of_w, of_b;              // weights, and weighed b: a row for each row of A
  Buffer gram, right;             // the sums of each right side
  int gram_ld = 0, right_ld = 0;  // their distances
  bool has_weights = false, shares_weights = false, skips_missing = false;
};

/// Whether several x have the same fit: A has fewer rows than columns, rows of a ridge included.
inline bool is_wide(const SolveProblem& p) { return p.packed_rows() < p.n; }

/// What wide.cl makes and reads beside a, b, r and x, which hold A' and its R.
struct WideBuffers {
  Buffer a;            // as it came: m x n
  Buffer scaled;       // D^-1 A'
  Buffer weights;      // D^-1
  Buffer of_r;         // FactorFindings of R; those of D^-1 A' go to the findings
  Buffer multipliers;  // w with x = A'w, of each right side
  Buffer least_norms;  // the error of the norm of each x
  int length = 0;      // n
};

/// Systems on the device; the buffers are packed.
struct SystemJob {
  ElementType type;
  index_t n;
  SystemShape shape;
  Buffer a = {}, r = {};           // input, and its factor
  Buffer b = {}, x = {}, se = {};  // se: only where it is wanted
  Buffer findings = {};            // FactorFindings of each system
  Buffer of_columns = {};          // NUMBERS_OF_COLUMNS of each system (columns.clh)
  Buffer scratch = {};             // n^2 for each team of factor_groups
  Buffer errors = {};              // SolutionErrors of each right side
  index_t factor_groups = 0;       // work-groups of measure_factors
  TallBuffers tall = {};
  PairBuffers pairs = {};  // only where right sides of one A have weights or gaps of their own
  WideBuffers wide = {};   // only with fewer rows than columns
};

/// The sizes of the buffers for systems with `sides` right sides each (system_layout.hpp).
struct SystemLayout {
  /// The buffers of every system; checksums of b, x and the weights, and left_out (weights.hpp).
  enum Entry : std::size_t {
    b,
    x,
    se,
    findings,
    of_columns,
    errors,
    b_sums,
    x_sums,
    weights,
    w_sums,
    left_out,
    tall_partial,
    tall_sums,
    tall_state,
    entries,
    // Not of the layout: one A that serves all systems; A, b and weights as they are uploaded,
    // where the device makes longer or turned ones of them; one A for all with the rows of a
    // ridge; the buffers of WideBuffers.
    shared_a,
    short_a,
    short_b,
    short_weights,
    longer_shared_a,
    wide_scaled,
    wide_weights,
    wide_of_r,
    wide_multipliers,
    wide_least_norms
  };

  index_t sides = 0;
  std::array<std::size_t, entries> bytes{};  // of one system in each; 0 where it is not needed
  index_t factor_groups = 0;                 // at the most
  std::size_t scratch_bytes = 0;             // of each of these groups
};

/// The buffers of a sub-chunk.
struct SystemBuffers {
  SystemLayout layout;
  Buffer b, x, se, findings, of_columns, errors, b_sums, x_sums, weights, w_sums, left_out;
  TallBuffers tall;
  Buffer scratch;

  /// `factor` makes R of the same matrices.
  SystemJob job(const FactorJob& factor, const SystemShape& shape) const;
  /// Sets x and the errors to NaN: those of an earlier run must not pass for those of this one
  /// where a kernel does not run.
  void poison(Queue& queue, index_t count) const;
};

/// Buffers that grow if needed and are kept for the next chunks.
class SystemPool {
 public:
  explicit SystemPool(const DeviceMemory& memory) : memory_(memory) {}
  /// The buffers of set `set` for `count` systems. Errors: DeviceFailure.
  SystemBuffers get(const SystemLayout& layout, index_t count, int set);
  /// Buffer number `entry` of a set, of at least so many bytes. Errors: DeviceFailure.
  Buffer grown(std::pair<int, std::size_t> place, std::size_t bytes);
  /// Buffer number `entry`, 1 or more, of those that all sets use.
  Buffer shared(int entry, std::size_t bytes);
  void clear() { buffers_.clear(); }

 private:
  const DeviceMemory& memory_;
  std::map<std::pair<int, std::size_t>, Buffer> buffers_;
};

}  // namespace qrtool
