// SPDX-License-Identifier: Apache-2.0
// several_devices.cpp: runs one thread per device.
#include "app/run/backends/several_devices.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/machine/parallel.hpp"

namespace qrtool {

SeveralDevices::SeveralDevices(std::vector<std::unique_ptr<Backend>> devices)
    : devices_(std::move(devices)) {}

std::string SeveralDevices::device() const {
  const std::string one = devices_.front()->device();
  return devices_.size() == 1 ? one : fmt::format("{} x {}", devices_.size(), one);
}

template <class T>
ChunkSeconds SeveralDevices::factor_parts(const Plan& plan, BatchView<const T> a,
                                          const Factors<T>& out, std::span<MatrixReport> report) {
  const auto count = static_cast<index_t>(devices_.size());
  std::vector<ChunkSeconds> seconds(devices_.size());
  parallel_for(count, static_cast<int>(count), [&](index_t i, int) {
    const index_t first = a.count * i / count, part = a.count * (i + 1) / count - first;
    if (part == 0) return;
    seconds[static_cast<std::size_t>(i)] = devices_[static_cast<std::size_t>(i)]->factor<T>(
        plan, a.slice(first, part), slice(out, first, part),
        report.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(part)));
  });
  ChunkSeconds slowest;
  for (const ChunkSeconds& s : seconds) {
    slowest.kernels = std::max(slowest.kernels, s.kernels);
    slowest.factor = std::max(slowest.factor, s.factor);
    slowest.check = std::max(slowest.check, s.check);
    slowest.upload = std::max(slowest.upload, s.upload);
    slowest.download = std::max(slowest.download, s.download);
  }
  return slowest;
}

ChunkSeconds SeveralDevices::factor_any(const Plan& plan, const AnyChunk& any) {
  return std::visit(
      [&](const auto& chunk) { return factor_parts(plan, chunk.a, chunk.out, chunk.report); }, any);
}

}  // namespace qrtool
