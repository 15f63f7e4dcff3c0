// SPDX-License-Identifier: Apache-2.0
// range.hpp: what is said about matrices whose errors are not measured (range.cl).
#pragma once

#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// The program of both functions below.
ProgramSource range_source(const Problem& problem);

/// Enqueues the magnitudes of A in job.a, for jobs that no variant has factored.
void enqueue_magnitudes(const FactorJob& job, Queue& queue, Launcher& launch);
/// Enqueues what is known of each matrix: its magnitude, which is known already, and whether R is
/// finite. The other members of `found` become NaN.
void enqueue_range(const FactorJob& job, const Buffer& found, Queue& queue, Launcher& launch);
/// Afterwards, the numbers of Status of matrices whose errors are not measured.
void enqueue_statuses(const Buffer& found, const Buffer& statuses, index_t count, Launcher& launch);

}  // namespace qrtool
