// SPDX-License-Identifier: Apache-2.0
// pack.hpp: copies of matrices on the device, between any strides (pack.cl).
#pragma once

#include "gpu/pipeline/engine.hpp"
#include "gpu/pipeline/stream_engine.hpp"

namespace qrtool {

/// Whether kernels can use the matrices where they are: they are packed by rows, and aligned to 16
/// bytes, which is the most that a work-item moves at a time.
bool is_in_place(const DeviceMatrices& matrices);
/// `shape`, in packed memory.
DeviceMatrices packed_in(const Buffer& memory, const DeviceMatrices& shape);
/// Some of the matrices, which have elements of so many bytes.
DeviceMatrices slice(const DeviceMatrices& all, index_t first, index_t count, std::size_t element);

/// Enqueues to := from in the compute queue, for matrices of one shape.
void enqueue_copy(FactorEngine& engine, ElementType type, const DeviceMatrices& from,
                  const DeviceMatrices& to);

}  // namespace qrtool
