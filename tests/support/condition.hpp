// SPDX-License-Identifier: Apache-2.0
// condition.hpp: how close to singular a matrix is, apart from the size of its columns.
#pragma once

#include "core/batch.hpp"

namespace qrtool::test {

/// An estimate of cond(R D^-1), D the norms of R's columns, by a few steps of the power method for
/// the largest and the smallest singular value. It is a lower bound, usually within a few percent.
/// Infinite where R has fewer rows than columns, is singular or not finite.
template <class T>
double scaled_condition(MatrixView<const T> r);

}  // namespace qrtool::test
