// SPDX-License-Identifier: Apache-2.0
// held_on_device.hpp: one matrix on a device, to which its rows go in pieces and from which its
// factors come in pieces. As in chunk_run.hpp the device sums what arrived and what it sends back,
// and the host compares these checksums with its own.
#pragma once

#include <memory>

#include "core/backend/held_matrix.hpp"
#include "gpu/pipeline/engine.hpp"

namespace qrtool {

/// The device must have float64, with which it measures errors, and must not take small float32
/// numbers as 0. `engine` and `plan` outlive the result. Errors: DeviceError, LimitError.
template <class T>
HeldPointer<T> hold_on_device(FactorEngine& engine, const Plan& plan);

}  // namespace qrtool
