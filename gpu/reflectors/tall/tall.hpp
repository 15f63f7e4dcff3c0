// SPDX-License-Identifier: Apache-2.0
// tall.hpp: matrices with many rows (tall.cl, narrow_passes.cl).
#pragma once

#include <cstddef>

#include "core/plan/plan.hpp"
#include "gpu/model/further.hpp"

namespace qrtool {

GpuVariant tall_variant();
/// The largest number of columns that `tall` takes, for a type and signs.
index_t tall_most_columns(const Problem& problem);
/// Further passes in float32 for what a guard refuses.
FurtherRoute narrow_passes();

// Sizes and bounds that both share.

/// How often an entry of A'A and of its factor is rounded, one after the other; body is GRAM_BODY.
double tall_rounded_terms(const Problem& problem, int body);
/// The largest ||A||^2 ||A^-1||^2, for columns scaled to norm 1, that keeps A R^-1 orthogonal
/// within its part of the bar; rounding Q to float32 takes 2^-23 sqrt(n).
double tall_condition_limit(const Problem& problem, int body);

/// PRODUCT_GROUP.
int tall_product_group(int body);
/// Local memory of a group that factors A'A in its registers (tall_square.clh), and of one that
/// multiplies rows by an n x n matrix of numbers of some bytes (tall_plain_product.clh).
std::size_t tall_square_local_bytes(index_t n);
std::size_t tall_product_local_bytes(index_t n, std::size_t number_bytes);

}  // namespace qrtool
