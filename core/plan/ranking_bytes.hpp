// SPDX-License-Identifier: Apache-2.0
// ranking_bytes.hpp: the memory of what core/factor does behind a backend for rank, condition and
// pivoted columns. A plan counts it.
#pragma once

#include <cstddef>

#include "core/measure/error_probe.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// Returns the bytes that a RankAndOrder (core/factor/rank_and_order.hpp) takes.
std::size_t ranking_bytes(const Problem& problem);

/// Returns the bytes that a worker of RankedBackend (core/factor/ranked_backend.hpp) takes.
std::size_t ranked_worker_bytes(const Problem& problem, int threads_per_matrix);

/// Returns the kind of factors that such a worker measures.
ErrorFinder::Shape measured_shape(const Problem& problem, int threads);

/// Whether such a worker may factor a matrix again. Q of pivoted columns is a product of two
/// orthogonal matrices, whose errors add up.
bool may_factor_again(const Problem& problem);

}  // namespace qrtool
