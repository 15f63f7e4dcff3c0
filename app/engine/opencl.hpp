// SPDX-License-Identifier: Apache-2.0
// opencl.hpp: what app knows of devices that factor and solve. opencl.cpp is built with the gpu
// layer; without it no_opencl.cpp also has what app calls of gpu/host and gpu/estimate.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend/backend.hpp"
#include "core/solve/engines/system_device.hpp"
#include "gpu/estimate/rates.hpp"
#include "gpu/host/device.hpp"

namespace qrtool {

// gpu/host/driver.hpp, gpu/pipeline/stream_engine.hpp, gpu/solve/stream_systems.hpp, which few
// read.
class CallerArrays;
struct StreamAllocator;
class StreamEngine;
struct SystemArrays;
struct SystemResults;
struct SystemsPlan;

/// `host` holds the user's memory and threads; `portable`: only kernel bodies that run on any
/// device are used. Errors: DeviceError.
std::unique_ptr<Backend> make_opencl_backend(const DeviceInfo& device, const Limits& host,
                                             bool portable = false);

/// Whether `backend` is a device that has got no page-locked memory for its copies.
bool opencl_is_pageable(const Backend& backend);

/// What the device of `backend` offers to calls on arrays of a caller. Null: nothing.
const CallerArrays* opencl_caller_arrays(Backend& backend);
/// `backend`, which has such arrays, outlives the engine. Errors: DeviceError.
std::unique_ptr<StreamEngine> make_opencl_stream_engine(Backend& backend,
                                                        const StreamAllocator& allocator);

/// Calls solve_on_stream().
template <class T>
SystemResults solve_on_opencl_stream(StreamEngine& engine, void* stream,
                                     const SolveProblem& problem, const SystemArrays& arrays,
                                     const std::function<SystemsPlan()>& make_plan);

std::span<const Variant> list_opencl_variants();

/// Calls build_factor_programs() and build_solve_programs(). `backend` is one of
/// make_opencl_backend().
void build_opencl_factors(Backend& backend, const Plan& plan);
void build_opencl_systems(Backend& backend, const SolveProblem& problem);

/// Returns the reason why the device of `backend` does not solve such systems, or an empty text.
std::string opencl_system_objection(const Backend& backend, const SolveProblem& problem);

/// Calls takes_normal_equations().
bool opencl_has_normal_equations(const Backend& backend, const SolveProblem& problem,
                                 index_t sides);

/// Whether the device of `backend` can solve for right sides of one A that leave out different
/// rows, if make_opencl_shared() cannot.
bool opencl_takes_gaps(const Backend& backend, const SolveProblem& problem);

/// `backend` is one of make_opencl_backend(), `factor` its plan of R. Both and the problem outlive
/// the result.
template <class T>
std::unique_ptr<SystemDevice<T>> make_opencl_systems(Backend& backend, const SolveProblem& problem,
                                                     const Plan& factor, SystemRoute route);

/// Calls shared_objection() for one A that serves all right sides.
std::string opencl_shared_objection(const Backend& backend, const SolveProblem& problem,
                                    index_t side_by_side);

/// Calls make_shared_device(). `backend` is one of make_opencl_backend().
template <class T>
std::unique_ptr<SharedDevice<T>> make_opencl_shared(Backend& backend, const SolveProblem& problem,
                                                    MatrixView<const T> a,
                                                    const SharedFactors& factors,
                                                    SidesLayout layout);

}  // namespace qrtool
