// SPDX-License-Identifier: Apache-2.0
// host_sample.cpp: counts operations and bytes of a measurement by the host.
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"

#include "core/measure/error_meter.hpp"
#include "core/problem/operations.hpp"

namespace qrtool {

index_t sampled_q_cols(const Problem& p) { return p.mode == Mode::raw ? p.k() : p.q_cols(); }

index_t sampled_r_rows(const Problem& p) { return p.mode == Mode::raw ? p.k() : p.r_rows(); }

double sample_operations(const Problem& p) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
  const auto q = static_cast<double>(sampled_q_cols(p));
  const double formed_q = p.mode == Mode::raw ? 4 * m * q * q : 0;
  return operations_in(p.type) *
         (formed_q + (q > 0 ? 2 * m * q * (n + q) : 2 * m * n * n + 2 * q * n * n));
}

std::size_t host_check_bytes(const Problem& p) {
  if (p.is_empty() || sample_operations(p) > tuning::host_sample_largest) return 0;
  const std::size_t meter = ErrorMeter::workspace_bytes(
      p.m, p.n, sampled_q_cols(p), sampled_r_rows(p), /*most_threads=*/1, is_complex(p.type));
  const index_t raw = p.mode == Mode::raw ? parts_in(p.type) * 3 * p.m * (p.k() + p.n) : 0;
  return meter + sizeof(double) * static_cast<std::size_t>(raw);
}

}  // namespace qrtool
