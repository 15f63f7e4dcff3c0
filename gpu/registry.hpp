// SPDX-License-Identifier: Apache-2.0
// registry.hpp: the list of variants of the OpenCL backend.
#pragma once

#include <span>

#include "gpu/gpu_variant.hpp"

namespace qrtool {

/// Every variant, in the order of preference.
std::span<const GpuVariant> gpu_variants();

/// The same variants in the form that the plan uses.
std::span<const Variant> opencl_variants();

/// The variant that a plan chose. Errors: InternalError if it belongs to another backend.
const GpuVariant& gpu_variant(const Variant& variant);

/// Bytes of one matrix on the device in addition to A, Q, R, V and tau: the workspaces of the
/// variant and of the check.
std::size_t device_workspace_bytes(const GpuVariant& variant, const Problem& problem);

// One function per variant, in variants/<name>/<name>.cpp.
GpuVariant gram_variant();
GpuVariant gram_tiles_variant();
GpuVariant small_variant();
/// `small` for the flagged matrices of other variants. There are few of them, so each gets more
/// lanes.
GpuVariant flagged_small_variant();
GpuVariant blocked_variant();
GpuVariant tall_variant();
GpuVariant large_variant();
GpuVariant textbook_variant();
GpuVariant vector_variant();

}  // namespace qrtool
