// SPDX-License-Identifier: Apache-2.0
// cpu_backend.hpp: the backend that is always there.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/backend/backend.hpp"

namespace qrtool {

/// Returns the variants of the CPU in order of preference: cpu/batched, cpu/tall, cpu/blocked,
/// cpu/eigen.
std::span<const Variant> cpu_variants();

/// Runs the CPU variants. It is not thread-safe, because workspaces stay from chunk to chunk.
class CpuBackend : public Backend {
 public:
  /// limits.host_bytes and limits.threads are the user's.
  explicit CpuBackend(const Limits& limits);
  ~CpuBackend() override;

  std::string name() const override { return "cpu"; }
  std::string device() const override;
  std::span<const Variant> variants() const override { return cpu_variants(); }
  Limits limits() const override { return limits_; }

  void free_workspace() override;

  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override;

 private:
  struct Kept;

  Limits limits_;
  std::unique_ptr<Kept> kept_;
};

}  // namespace qrtool
