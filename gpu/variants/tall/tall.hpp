// SPDX-License-Identifier: Apache-2.0
// tall.hpp: sizes and bounds that the host halves of tall.cl and narrow_passes.cl share.
#pragma once

#include <cstddef>

#include "core/plan/plan.hpp"

namespace qrtool {

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
