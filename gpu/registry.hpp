// SPDX-License-Identifier: Apache-2.0
// registry.hpp: the list of variants of the OpenCL backend.
#pragma once

#include <span>

#include "gpu/model/further.hpp"
#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// Every variant, in order of preference.
std::span<const GpuVariant> gpu_variants();

/// The same as the plan sees them.
std::span<const Variant> opencl_variants();

/// The variant that a plan chose. Errors: InternalError for one of another backend.
const GpuVariant& gpu_variant(const Variant& variant);

// One function per variant, in gram and in reflectors/<name>/<name>.cpp.
GpuVariant gram_variant();
GpuVariant gram_group_variant();
GpuVariant gram_tiles_variant();
GpuVariant gram_twice_variant();
/// Complex matrices, in gram/twice/gram_passes.cpp.
GpuVariant gram_passes_variant();
GpuVariant small_variant();
/// `small` for the flagged matrices of others: few, so that more lanes take each.
GpuVariant flagged_small_variant();
GpuVariant blocked_variant();
GpuVariant tall_variant();
GpuVariant large_variant();
GpuVariant textbook_variant();
GpuVariant complex_variant();
GpuVariant vector_variant();
/// The first of blocked, tall and large that takes the rows and columns of a problem that `small`
/// does not factor again: its rows decide about blocked, and its columns about tall.
GpuVariant reflectors_beyond_small(const Problem& problem);
/// The largest number of columns that `tall` takes, for a type and signs.
index_t tall_most_columns(const Problem& problem);
GpuVariant tiny_variant();
GpuVariant leading_variant();
GpuVariant reconstruct_variant();

/// The way by further passes for matrices that the guard of `first` refuses, which comes before
/// reflectors, or null: they do not take the problem on the device, or the reflectors of `first`
/// are faster, which hold small matrices in registers.
const FurtherRoute* further_route(const GpuVariant& first, const Problem& problem,
                                  const Limits& limits);
FurtherRoute further_passes();
FurtherRoute narrow_passes();
FurtherRoute group_passes();

}  // namespace qrtool
