// SPDX-License-Identifier: Apache-2.0
// complex_kernel.cpp: Householder QR of complex matrices, compiled once for every instruction set.
// Methods: complex_pack.hpp for packs of small matrices, complex_strips.hpp for one matrix.
#include "core/cpu/complex/complex_kernel.hpp"

#include "core/cpu/complex/complex_pack.hpp"
#include "core/cpu/complex/complex_strips.hpp"

namespace qrtool::complex_qr {
namespace {

template <class T, class C>
constexpr Routine<T> routine{.lanes = PackQr<T, C>::lanes,
                             .pack_bytes = PackQr<T, C>::workspace_bytes,
                             .factor_pack = PackQr<T, C>::factor,
                             .strip_bytes = StripQr<T, C>::workspace_bytes,
                             .factor_strips = StripQr<T, C>::factor};

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET),
                                                   routine<float, float>, routine<float, double>,
                                                   routine<double, double>};

}  // namespace qrtool::complex_qr
