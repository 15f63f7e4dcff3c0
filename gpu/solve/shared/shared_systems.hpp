// SPDX-License-Identifier: Apache-2.0
// shared_systems.hpp: many right sides of one matrix on an OpenCL device, in sub-chunks that are
// uploaded, solved, checked and downloaded beside each other. The CPU has factored the matrix.
#pragma once

#include <memory>

#include "core/solve/engines/system_device.hpp"
#include "gpu/pipeline/opencl_backend.hpp"

namespace qrtool {

/// `a` (m x n, packed) is the matrix that `factors` are of; these are copied. `layout` is that of
/// all blocks. backend, problem and a outlive the device.
template <class T>
std::unique_ptr<SharedDevice<T>> make_shared_device(OpenclBackend& backend,
                                                    const SolveProblem& problem,
                                                    MatrixView<const T> a,
                                                    const SharedFactors& factors,
                                                    SidesLayout layout);

}  // namespace qrtool
