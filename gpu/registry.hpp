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

/// The way by further passes for matrices that the guard of `first` refuses, which comes before
/// reflectors, or null: they do not take the problem on the device, or the reflectors of `first`
/// are faster, which hold small matrices in registers.
const FurtherRoute* further_route(const GpuVariant& first, const Problem& problem,
                                  const Limits& limits);

}  // namespace qrtool
