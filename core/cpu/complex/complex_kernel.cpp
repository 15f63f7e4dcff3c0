// SPDX-License-Identifier: Apache-2.0
// complex_kernel.cpp: Householder QR of complex matrices in strips, compiled once for every
// instruction set.
#include "core/cpu/complex/complex_kernel.hpp"

#include "core/cpu/complex/complex_strips.hpp"

namespace qrtool::complex_qr {
namespace {

template <class T, class C>
constexpr Routine<T> routine{StripQr<T, C>::workspace_bytes, StripQr<T, C>::factor};

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){
    QRTOOL_NAME(QRTOOL_TARGET),
    batched::QRTOOL_KERNELS(QRTOOL_TARGET),
    {routine<float, float>, routine<float, double>, routine<double, double>}};

}  // namespace qrtool::complex_qr
