// SPDX-License-Identifier: Apache-2.0
// row_sum.cpp: compiles Eigen's products, of row-major matrices and with a triangle.
#include "core/eigen/row_sum.hpp"

#include <complex>

namespace qrtool {

template <class S>
void add_product(std::type_identity_t<MatrixView<const S>> a,
                 std::type_identity_t<MatrixView<const S>> b, MatrixView<S> sum) {
  mapped(sum).noalias() += mapped(a) * mapped(b);
}
template <class S>
void add_adjoint_product(std::type_identity_t<MatrixView<const S>> a,
                         std::type_identity_t<MatrixView<const S>> b, MatrixView<S> sum) {
  mapped(sum).noalias() += mapped(a).adjoint() * mapped(b);
}

template <class S>
void apply_upper(const ColumnMajor<S>& r, bool is_adjoint, bool solves, ColumnMajor<S>& c) {
  const auto upper = r.template triangularView<Eigen::Upper>();
  if (solves)
    is_adjoint ? upper.adjoint().solveInPlace(c) : upper.solveInPlace(c);
  else
    c = is_adjoint ? ColumnMajor<S>(upper.adjoint() * c) : ColumnMajor<S>(upper * c);
}

#define QRTOOL_FOR(S)                                                                            \
  template void add_product<S>(MatrixView<const S>, MatrixView<const S>, MatrixView<S>);         \
  template void add_adjoint_product<S>(MatrixView<const S>, MatrixView<const S>, MatrixView<S>); \
  template void apply_upper<S>(const ColumnMajor<S>&, bool, bool, ColumnMajor<S>&);
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
