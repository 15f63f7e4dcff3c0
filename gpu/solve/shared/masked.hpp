// SPDX-License-Identifier: Apache-2.0
// masked.hpp: right sides of one matrix with gaps, for which masked.cl leaves rows out.
#pragma once

#include <vector>

#include "core/solve/packing.hpp"
#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// Whether rows with missing entries are left out on the device, by a Gram matrix for each right
/// side. For matrices with more columns the device solves right sides without gaps alone.
bool masks_on_device(const SolveProblem& problem);

/// The defines of masked.cl that differ from those of shared.cl.
Params masked_params(const SolveProblem& problem);
/// Rows of SLAB_COLUMNS entries: the products of the entries of each row of A (m x n), and the row.
std::vector<double> masked_rows(MatrixView<const double> a, const Params& params);

}  // namespace qrtool
