// SPDX-License-Identifier: Apache-2.0
// magnitude.hpp: the largest entry of a matrix, from which its scale follows.
#pragma once

#include "core/batch.hpp"

namespace qrtool {

/// The largest |a_ij| of a matrix, of complex entries the larger of the parts of any; and whether
/// all its entries are finite.
struct Magnitude {
  double largest = 0;
  bool finite = true;

  /// Returns the exponent e with `largest` in [2^(e-1), 2^e), or 0 if `largest` is 0 or an entry is
  /// not finite.
  int scale() const;
  /// Adds another part of the same matrix.
  void include(const Magnitude& other);
};
template <class T>
Magnitude magnitude_of(MatrixView<const T> a);

}  // namespace qrtool
