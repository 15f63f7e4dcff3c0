// SPDX-License-Identifier: Apache-2.0
// tall_rows.hpp: rows of one tall system as TallSystem visits them.
#pragma once

#include "core/solve/engines/tall_system.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// Some rows of [A B], from packed row `first` on. The rows of A are followed by the rows of a
/// ridge.
template <class T>
struct TallRows {
  index_t first = 0;
  MatrixView<const T> a, b;  // of the rows that A has
};

/// Returns the factors of the rows: the roots of their weights (w: one for each; null: none), or 0
/// for a row that is left out.
template <class T>
RowFactors factors_of_rows(const SolveProblem& problem, const TallRows<T>& rows, const Real<T>* w);

/// ab (packed rows x (n + p)) := the rows, weighted and scaled. Adds the findings to `found`.
template <class T>
void pack_tall_rows(const SolveProblem& problem, const TallRows<T>& rows, const RowFactors& factors,
                    const RowScales& scales, MatrixView<T> ab, SweepFindings& found);

}  // namespace qrtool
