// SPDX-License-Identifier: Apache-2.0
// given_matrices.hpp: the caller's matrices, one at a time, in float64 or complex128 and by rows.
#pragma once

#include <type_traits>

#include "app/capi/arrays.hpp"

namespace qrtool::capi {

/// Matrices that are given, each in turn as core wants it: of T, by rows.
template <class T>
class GivenMatrices {
 public:
  GivenMatrices() = default;
  /// With `is_changed` each matrix is copied, because it will be changed.
  GivenMatrices(const qrtool_matrices& given, bool is_changed) {
    using Narrow = std::conditional_t<is_complex_number<T>, std::complex<float>, float>;
    if (size_of(type_of(given, "")) == sizeof(T))
      wide_ = strided<T>(given);
    else
      narrow_ = strided<Narrow>(given);
    is_copied_ = narrow_.is_there() || is_changed || !wide_.is_by_rows();
    if (is_copied_) copy_ = Batch<T>(1, given.rows, given.columns);
  }
  MatrixView<const T> matrix(index_t b) const { return is_copied_ ? copied(b) : wide_.view()[b]; }
  MatrixView<T> copied(index_t b) const {
    if (narrow_.is_there())
      copy(narrow_.slice(b, 1), packed_in(copy_), 1);
    else
      copy<T, T>(wide_.slice(b, 1), packed_in(copy_), 1);
    return copy_.view()[0];
  }

 private:
  using NarrowType =
      std::conditional_t<is_complex_number<T>, const std::complex<float>, const float>;
  Strided<const T> wide_;
  Strided<NarrowType> narrow_;
  bool is_copied_ = false;
  Batch<T> copy_;
};

}  // namespace qrtool::capi
