// SPDX-License-Identifier: Apache-2.0
// gpu_variant.hpp: a variant of the OpenCL backend: its description for the plan, and the function
// that launches its kernels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/plan/variant.hpp"
#include "gpu/common/shapes.clh"
#include "gpu/host/launcher.hpp"
#include "gpu/host/program_cache.hpp"

namespace qrtool {

/// A sub-chunk on the device: `count` packed row-major matrices.
struct FactorJob {
  const Problem& problem;
  const Params& params;
  index_t count;
  Buffer a;                  // input, count x m x n
  Buffer q, r;               // output: reduced, complete and r
  Buffer v, tau;             // output: raw
  Buffer magnitudes;         // output, count: exponent of max |a_ij|, or a MAGNITUDE_ code
  std::vector<Buffer> work;  // buffers of the sizes that workspace() gives, in its order
  Buffer slots;
};

/// Work memory of groups that process one matrix after another: a slot for each group, and never
/// more slots than matrices.
struct Slots {
  std::size_t bytes = 0;  // of one slot
  index_t most = 0;
  std::size_t total_bytes(index_t count) const {
    return bytes * static_cast<std::size_t>(std::min(count, most));
  }
};

/// Takes the next `count` float64 numbers of a slot, in whole lines of 128 bytes, and returns the
/// place of the first one. `end` is the end of the slot so far.
index_t take_place(index_t& end, index_t count);

struct GpuVariant;

/// How a variant lets another one factor first: the leading square block of every matrix, or the
/// matrices for another mode.
struct InnerVariant {
  GpuVariant (*variant)(const Problem&) = nullptr;  // null: the variant has no such step
  Problem (*problem)(const Problem&) = nullptr;     // what that variant factors
  /// The sub-chunk of it, for that problem and with that variant's params.
  FactorJob (*job)(const FactorJob&, const Problem&, const Params&) = nullptr;
  /// Enqueues the steps that follow the second job, which that variant has done.
  void (*enqueue)(const FactorJob&, const FactorJob&, Launcher&) = nullptr;
  /// True: matrices that the guard of that variant refuses, and that further passes cannot factor,
  /// keep the route `reflectors`; the steps that follow leave them to `again` of this variant.
  bool leaves_refused = false;
};

struct GpuVariant {
  Variant plan;
  std::string_view file;  // "gpu/reflectors/small/small.cl"
  /// Sizes of the work buffers, in bytes per matrix.
  std::vector<std::size_t> (*workspace)(const Problem&);
  /// Enqueues all steps in order. `launch` holds the program that was built from `file` with
  /// STORED, REAL and the plan's Params as defines.
  void (*enqueue)(const FactorJob& job, Launcher& launch);
  /// The type that a problem is computed in (REAL).
  ElementType (*computes_in)(const Problem&);
  /// Enqueues, after `enqueue`, what only matrices need whose route is neither `first pass` nor
  /// `further passes`. Null: `enqueue` does everything.
  void (*enqueue_rest)(const FactorJob& job, Launcher& launch) = nullptr;
  /// A work buffer whose size does not grow with the batch. Null: there is none.
  Slots (*slots)(const Problem&) = nullptr;
  InnerVariant inner = {};
  /// The variant that factors a matrix again if its route in the first work buffer of this variant
  /// is `reflectors`. Its own work buffers follow. Null: this variant needs no other.
  GpuVariant (*again)(const Problem&) = nullptr;
  /// Whether enqueue_rest is for what a guard refuses, so that further passes may come before it.
  /// Null: no.
  bool (*rest_is_refused)(const Problem&, const Limits&) = nullptr;
  /// The work buffer that still holds the sums of A'A over slabs of rows, as tall_sums.hpp cuts
  /// them, for further passes to begin with. Null: there is none.
  const Buffer* (*slab_sums)(const FactorJob&) = nullptr;
  /// The work buffer that holds the route of every matrix (ROUTE_*); null if there is no choice.
  /// Null: the variant has no routes.
  const Buffer* (*routes)(const FactorJob&) = nullptr;
  /// The place of the first Q, where a float64 variant by Gram matrices finds refused matrices with
  /// scaled columns when it is enqueued once more, with the define SCALED
  /// (gpu/pipeline/refused.cl). Null: it does not.
  const Buffer& (*first_q)(const FactorJob&) = nullptr;
  /// Whether the kernels can be built with FLAGGED. If not, flagged matrices are factored one at a
  /// time.
  bool takes_flags = false;
  /// Bytes of local memory of the work-group that needs most. Null: not stated.
  std::size_t (*local_bytes)(const Problem&, const Limits&) = nullptr;
  /// Kernels that take long to build, half a second and more on NVIDIA's compiler.
  std::span<const std::string_view> heavy_kernels = {};
  /// Whether the errors can also be measured without barriers (check_vector.cl), for CPU devices.
  bool checks_by_vectors = false;
};

/// The index in workspace() of the buffer that may be in the memory of the slots: the largest one
/// of `again`, which runs when the slots are not needed any more. If Q is not wanted, it is not the
/// one that the variant may borrow (borrowed_buffer). 0: none.
std::size_t shared_work_buffer(const GpuVariant& variant, const Problem& problem);

FactorShape factor_shape(const Problem& problem, index_t count);

/// The matrices as their kernels see them: a row of n complex numbers is a row of 2 n real ones,
/// the parts of each beside each other.
Problem real_form(const Problem& problem);
/// Its columns.
inline index_t real_columns(const Problem& p) { return parts_in(p.type) * p.n; }

/// For the variants by Gram matrices (gram, gram_group, gram_tiles): the text for their arithmetic,
/// the reason why all reject a problem, which is empty if they do not, and the number of work-items
/// of a warp (gpu/common/mma.clh).
std::string gram_arithmetic(const Problem& problem);
std::string gram_objection(const Problem& problem, const Limits& limits);
/// Why a device is not fit for kernels that multiply blocks of float64 (gpu/common/mma.clh).
std::string products_objection(const Limits& limits);
inline int warp_lanes(const Params& params) { return params.at("MMA") != 0 ? 32 : 1; }
/// The largest allowed ||I - Q'Q|| of a float32 problem whose required accuracy is that of float32.
double orthogonality_bar(const Problem& problem);
/// The limits for the guard of gpu/gram/steps/gram_guard.clh, for the real form of a complex
/// problem.
FactorLimits gram_limits(const FactorJob& job);
/// The largest ||D X||_F^2 of the first pass in float64 with which R needs no second one
/// (gpu/gram/steps/departure.clh), for sums of `terms` products.
double most_in_one_pass(const Problem& problem, index_t terms);
/// A parameter that no plan has. With it the guards of gram, gram_tiles and tall accept every bound
/// that is a number, so that tests find matrices for the second try.
inline const std::string unguarded = "UNGUARDED";
/// Sizes of the work buffers of a variant with `again`, in bytes per matrix: the routes, then the
/// buffers of `again`.
std::vector<std::size_t> flagged_workspace(const GpuVariant& again, const Problem& problem);
/// The index in such a list of a buffer of `again` that has room for the matrix. The variant may
/// use it, because `again` runs later. 0, which is the index of the routes: there is none.
std::size_t borrowed_buffer(const GpuVariant& again, const Problem& problem);
/// The same list for a variant that stores a first Q, even if Q is not wanted: such a buffer of
/// `again` has it then, or one more at the end.
std::vector<std::size_t> first_q_workspace(const GpuVariant& again, const Problem& problem);
const Buffer& place_of_first_q(const GpuVariant& again, const FactorJob& job);
inline const Buffer* flagged_routes(const FactorJob& job) { return &job.work[0]; }

/// The type that a problem is computed in: float64 for float32 with fewer rows than `few_rows`. On
/// a device without float64 it is float32 (gpu/common/common.clh).
ElementType computed_type(const Problem& problem, index_t few_rows);
/// The reason why no kernel accepts a problem on this device, or an empty text if there is none.
/// `needed`: the problem's type for kernels that do without float64 where there is none.
std::string general_objection(const Problem& problem, const Limits& limits,
                              ElementType needed = ElementType::float64);

/// The defines of a program: STORED, REAL and the plan's Params.
Defines defines_for(const Problem& problem, const Params& params, ElementType real);

/// Number of entries that may be moved at a time if all rows begin at multiples of `entries`: 1, 2
/// or 4.
inline int aligned_entries(index_t entries) {
  return entries % 4 == 0 ? 4 : entries % 2 == 0 ? 2 : 1;
}

/// The same, but at most 16 bytes, which a copy to local memory takes (gpu/common/copy.clh).
inline int copied_entries(index_t entries, ElementType type) {
  return std::min(aligned_entries(entries), 16 / static_cast<int>(size_of(type)));
}

/// The reason why the device cannot run a work-group of this size, or an empty text if it can.
std::string group_objection(int work_items, std::size_t local_bytes, const Limits& limits);

inline index_t ceil_divide(index_t a, index_t b) { return (a + b - 1) / b; }

}  // namespace qrtool
