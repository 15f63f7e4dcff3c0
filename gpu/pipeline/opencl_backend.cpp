// SPDX-License-Identifier: Apache-2.0
// opencl_backend.cpp: QR on an OpenCL device.
#include "gpu/pipeline/opencl_backend.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"
#include "core/report/ratios.hpp"
#include "gpu/pipeline/chunk_run.hpp"
#include "gpu/pipeline/held_on_device.hpp"
#include "gpu/registry.hpp"

namespace qrtool {
namespace {

DeviceInfo with_options(DeviceInfo info, const OpenclOptions& options) {
  info.limits.host_bytes = options.host.host_bytes;
  info.limits.file_bytes = options.host.file_bytes;
  info.limits.threads = options.host.threads;
  info.limits.ranks = options.host.ranks;
  info.limits.has_scratch = options.host.has_scratch;
  if (options.pretend_max_allocation > 0) {
    info.limits.max_allocation_bytes = options.pretend_max_allocation;
  }
  if (options.portable) {
    info.sub_groups = SubGroups::local_memory;
    info.limits.shuffle_lanes = shuffle_lanes(info.sub_groups);
    info.limits.float64_products = false;
    info.limits.has_nvidia_mma = false;
  }
  return info;
}

/// Writes the factors of a matrix without rows or columns: Q = I, and R has no entries.
template <class T>
void fill_empty(const Problem& problem, index_t count, const Factors<T>& out,
                std::span<MatrixReport> report) {
  const Errors none{.residual = 0, .orthogonality = 0, .lower = 0, .diagonal_ratio = 0};
  for (index_t b = 0; b < count; ++b) {
    const MatrixView<T> q = out.q[b];
    for (index_t i = 0; i < q.rows; ++i) {
      for (index_t j = 0; j < q.cols; ++j) q(i, j) = i == j ? T(1) : T(0);
    }
    enter_errors(problem, none, report[b]);
  }
}

template <class T>
ChunkSeconds factor_chunk(FactorEngine& engine, const Plan& plan, const ChunkToFactor<T>& chunk) {
  if (plan.problem.is_empty() || chunk.a.count == 0) {
    fill_empty(plan.problem, chunk.a.count, chunk.out, chunk.report);
    return {};
  }
  return ChunkRun<T>(engine, plan, chunk).run();
}

}  // namespace

OpenclBackend::OpenclBackend(const DeviceInfo& device, const OpenclOptions& options) {
  const DeviceInfo info = with_options(device, options);
  const DriverScope driver;
  try {
    engine_ = std::make_unique<FactorEngine>(info, session_for(info));
  } catch (const DeviceFailure& failure) {
    throw_device_error(failure, info, "to start");
  }
}

OpenclBackend::~OpenclBackend() = default;

std::string OpenclBackend::device() const { return engine_->info.text(); }

std::span<const Variant> OpenclBackend::variants() const { return opencl_variants(); }

Limits OpenclBackend::limits() const { return engine_->info.limits; }

HostMemory OpenclBackend::allocate(std::size_t bytes) {
  const DriverScope driver;
  return engine_->allocate(bytes);
}

bool OpenclBackend::is_pageable() const { return engine_->is_pageable; }

void OpenclBackend::free_workspace() {
  const DriverScope driver;
  engine_->pool.clear();
}

ChunkSeconds OpenclBackend::factor_any(const Plan& plan, const AnyChunk& any) {
  return std::visit([&](const auto& chunk) { return factor_chunk(*engine_, plan, chunk); }, any);
}

std::size_t OpenclBackend::piece_bytes() const {
  return engine_->info.has_denormals ? engine_->info.piece_bytes : 0;
}

AnyHeldMatrix OpenclBackend::hold_any(const Plan& plan) {
  return with_type(plan.problem.type, [&]<class T>(T) -> AnyHeldMatrix {
    if constexpr (is_complex_number<T>)
      return HeldPointer<T>();  // complex matrices do not go in pieces
    else
      return hold_on_device<T>(*engine_, plan);
  });
}

}  // namespace qrtool
