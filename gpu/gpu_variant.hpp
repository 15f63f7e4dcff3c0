// SPDX-License-Identifier: Apache-2.0
// gpu_variant.hpp: a variant of the OpenCL backend: what the plan sees, and how its kernels are
// launched.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/variant.hpp"
#include "gpu/common/shapes.clh"
#include "gpu/host/launcher.hpp"
#include "gpu/host/program_cache.hpp"

namespace qrtool {

/// A sub-chunk on the device: `count` packed row-major matrices.
struct FactorJob {
  const Problem& problem;
  const Params& params;
  index_t count;
  cl::Buffer a;                  // in,  count x m x n
  cl::Buffer q, r;               // out, reduced, complete and r
  cl::Buffer v, tau;             // out, raw
  cl::Buffer magnitudes;         // out, count: exponent of max |a_ij|, or a MAGNITUDE_ code
  std::vector<cl::Buffer> work;  // as workspace() asked, in its order
  cl::Buffer slots;
};

/// Work memory of groups that go from matrix to matrix: one slot each, no more than matrices.
struct Slots {
  std::size_t bytes = 0;  // of one
  index_t most = 0;
  std::size_t total_bytes(index_t count) const {
    return bytes * static_cast<std::size_t>(std::min(count, most));
  }
};

struct GpuVariant {
  Variant plan;
  std::string_view file;  // "gpu/variants/small/small.cl"
  /// Bytes per matrix of each work buffer.
  std::vector<std::size_t> (*workspace)(const Problem&);
  /// Enqueues all steps, in order. `launch` knows the program built from `file` with STORED, REAL
  /// and the plan's Params as defines.
  void (*enqueue)(const FactorJob& job, Launcher& launch);
  /// REAL: the type that a problem is computed in.
  ElementType (*computes_in)(const Problem&);
  /// A work buffer that does not grow with the batch; null: there is none.
  Slots (*slots)(const Problem&) = nullptr;
  /// What does the matrices again whose route is `reflectors` in this variant's first work buffer;
  /// the work buffers of that one follow. Null: there are no routes.
  GpuVariant (*again)(const Problem&) = nullptr;
  /// Whether the host reads the routes and enqueues `again` where one needs it: worth a wait where
  /// `again` is many launches. Else it is enqueued always, and its groups look for themselves.
  bool host_decides = false;
  /// Whether the kernels can be built with FLAGGED. If not, flagged matrices are done one by one.
  bool takes_flags = false;
  /// Local memory of the work-group that takes most, bytes. Null: not stated.
  std::size_t (*local_bytes)(const Problem&, const Limits&) = nullptr;
  /// Whether the errors are measured without barriers too (check_vector.cl), for CPU devices.
  bool checks_by_vectors = false;
};

FactorShape factor_shape(const Problem& problem, index_t count);

/// Of the variants by Gram matrices (gram, gram_tiles): what they compute in, why they do not take
/// a problem on any device, or an empty reason.
inline constexpr std::string_view gram_arithmetic = "float32, sums in float64";
std::string gram_objection(const Problem& problem);
/// What ||I - Q'Q|| of a float32 problem may be where its accuracy is float32's.
double orthogonality_bar(const Problem& problem);
/// What the guard of gpu/common/gram_guard.clh goes by, g being `per_root` sqrt(m), at least 8.
FactorLimits gram_limits(const Problem& problem, double per_root);
/// Work buffers of a variant with routes: a route per matrix, then those of `again`.
std::vector<std::size_t> flagged_workspace(const GpuVariant& again, const Problem& problem);

/// float32 with fewer rows than `few_rows` is computed in float64.
ElementType computed_type(const Problem& problem, index_t few_rows);
/// Why no kernel takes a problem on this device, or an empty reason where nothing stands against
/// it.
std::string general_objection(const Problem& problem, const Limits& limits);

/// STORED, REAL and the plan's Params.
Defines defines_for(const Problem& problem, const Params& params, ElementType real);

/// Entries that may be moved at a time where rows begin at multiples of `entries`: 1, 2 or 4.
inline int aligned_entries(index_t entries) {
  return entries % 4 == 0 ? 4 : entries % 2 == 0 ? 2 : 1;
}

/// What a work-group wants of a device: an empty reason where the device has it.
std::string group_objection(int work_items, std::size_t local_bytes, const Limits& limits);

inline index_t ceil_divide(index_t a, index_t b) { return (a + b - 1) / b; }

}  // namespace qrtool
