// SPDX-License-Identifier: Apache-2.0
// host_sample.hpp: what it costs the host to measure a matrix of a device again.
#pragma once

#include <cstddef>

#include "core/problem/problem.hpp"

namespace qrtool {

/// The columns of Q and the rows of R that the host measures. From reflectors it forms a reduced Q.
index_t sampled_q_cols(const Problem& problem);
index_t sampled_r_rows(const Problem& problem);

/// The operations to measure one matrix: QR and Q'Q, or A'A and R'R, and Q where it is formed.
double sample_operations(const Problem& problem);

/// Returns the bytes of host memory for the measurement of one matrix, or 0 if the host does not
/// measure matrices of this size (tuning::host_sample_largest).
std::size_t host_check_bytes(const Problem& problem);

}  // namespace qrtool
