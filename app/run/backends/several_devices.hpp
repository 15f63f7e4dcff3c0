// SPDX-License-Identifier: Apache-2.0
// several_devices.hpp: spreads a batch over equal devices.
#pragma once

#include <memory>
#include <vector>

#include "core/backend/backend.hpp"

namespace qrtool {

/// Puts equal devices behind one backend. Each factors an equal part of every chunk, at the same
/// time. The bits are those of one device, because they depend neither on the chunk nor on the
/// position.
class SeveralDevices final : public Backend {
 public:
  /// `devices`: at least one. They are equal, so the limits of the first hold for all.
  explicit SeveralDevices(std::vector<std::unique_ptr<Backend>> devices);

  std::string name() const override { return devices_.front()->name(); }
  /// Returns "2 x NVIDIA H200 (driver 580.65)".
  std::string device() const override;
  std::span<const Variant> variants() const override { return devices_.front()->variants(); }
  Limits limits() const override { return devices_.front()->limits(); }
  HostMemory allocate(std::size_t bytes) override { return devices_.front()->allocate(bytes); }

  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override;

 private:
  template <class T>
  ChunkSeconds factor_parts(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                            std::span<MatrixReport> report);

  std::vector<std::unique_ptr<Backend>> devices_;
};

}  // namespace qrtool
