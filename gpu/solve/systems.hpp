// SPDX-License-Identifier: Apache-2.0
// systems.hpp: many least-squares problems on an OpenCL device: R by a variant, solutions and their
// check by systems.cl, and a sample checked again by the host.
//
//   upload    | 0 | 1 | 2 |             sub-chunks of systems, as in gpu/pipeline/flights.hpp
//   compute       | 0 | 1 | 2 |         R -> x -> check, or x and R at once -> check
//   download          | 0 | 1 | 2 |     x, standard errors, findings, errors, checksums
//   host                  | 0 | 1 | 2 | verdicts; the host solves a sample again and compares
#pragma once

#include <memory>

#include "core/solve/engines/system_device.hpp"
#include "gpu/pipeline/opencl_backend.hpp"

namespace qrtool {

/// `plan` is that of R alone by a variant of `backend`. problem, backend and plan outlive the
/// device.
template <class T>
std::unique_ptr<SystemDevice<T>> make_system_device(
    OpenclBackend& backend, const SolveProblem& problem, const Plan& plan,
    SystemRoute first = SystemRoute::normal_equations);

}  // namespace qrtool
