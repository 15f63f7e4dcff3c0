// SPDX-License-Identifier: Apache-2.0
// backend.cpp: what a backend does that takes no complex matrices.
#include "core/backend.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace qrtool {
namespace {

[[noreturn]] void refuse_complex(const Backend& backend) {
  throw InternalError(fmt::format("the backend {} was given complex matrices", backend.name()));
}

}  // namespace

ChunkSeconds Backend::factor_complex(const Plan&, BatchView<const std::complex<float>>,
                                     const Factors<std::complex<float>>&, std::span<MatrixReport>) {
  refuse_complex(*this);
}

ChunkSeconds Backend::factor_complex(const Plan&, BatchView<const std::complex<double>>,
                                     const Factors<std::complex<double>>&,
                                     std::span<MatrixReport>) {
  refuse_complex(*this);
}

}  // namespace qrtool
