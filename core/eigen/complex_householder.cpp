// SPDX-License-Identifier: Apache-2.0
// complex_householder.cpp: compiles Eigen's reflectors for complex matrices.
#include "core/eigen/householder.hpp"

namespace qrtool {

template void householder::factor<householder::Complex128>(Matrix<Complex128>&,
                                                           Vector<Complex128>&);
template void householder::form_q<householder::Complex128>(const Matrix<Complex128>&,
                                                           const Vector<Complex128>&,
                                                           Matrix<Complex128>&);
template void householder::form_q_carefully<householder::Complex128>(const Matrix<Complex128>&,
                                                                     const Vector<Complex128>&,
                                                                     Matrix<Complex128>&);
template void householder::apply<householder::Complex128>(const Matrix<Complex128>&,
                                                          const Vector<Complex128>&, bool,
                                                          Matrix<Complex128>&);

}  // namespace qrtool
