// SPDX-License-Identifier: Apache-2.0
// buffers.cpp: divides the device's memory among sub-chunks and keeps buffers for later chunks.
#include "gpu/pipeline/buffers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.hpp"
#include "core/text.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/check/device_sums.hpp"
#include "gpu/registry.hpp"

namespace qrtool {
namespace {

std::size_t sum(const std::vector<std::size_t>& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), std::size_t{0});
}

std::size_t largest(const MatrixBytes& bytes) {
  std::size_t most = 1;
  for (const auto* list : {&bytes.io, &bytes.work, &bytes.check}) {
    for (const std::size_t b : *list) most = std::max(most, b);
  }
  return std::max(most, bytes.slots.bytes);
}

/// Of the matrices that a guard may refuse: that of `variant`, or of the one that works for it.
std::size_t further_bytes_of(const GpuVariant& variant, const Problem& p, const Limits& limits,
                             index_t count) {
  const FurtherRoute* route = further_route(variant, p, limits);
  const std::size_t own =
      route == nullptr ? 0 : further_bytes(*route, p, limits, limits.device_bytes, count);
  if (variant.inner.variant == nullptr) return own;
  return std::max(
      own, further_bytes_of(variant.inner.variant(p), variant.inner.problem(p), limits, count));
}

/// Of a matrix that `variant`, or the one that works for it, factors again on its own.
std::size_t flagged_bytes(const GpuVariant& variant, const Problem& p) {
  const bool has_copies = variant.again != nullptr && !variant.again(p).takes_flags;
  const std::size_t own = has_copies ? p.input_bytes() + p.output_bytes() + sizeof(int) : 0;
  if (variant.inner.variant == nullptr) return own;
  return std::max(own, flagged_bytes(variant.inner.variant(p), variant.inner.problem(p)));
}

[[noreturn]] void refuse(const Problem& p, std::size_t needed, std::string_view what,
                         std::size_t available) {
  throw LimitError(
      fmt::format("one {}x{} matrix of {} needs {} of device memory{}; the device "
                  "gives {}",
                  p.m, p.n, name_of(p.type), format_bytes(needed), what, format_bytes(available)),
      "--backend cpu works in host memory");
}

}  // namespace

std::size_t MatrixBytes::own_work() const { return sum(work) - shared_work(); }

std::size_t MatrixBytes::slots_buffer(index_t count) const {
  return std::max(slots.total_bytes(count), shared_work() * static_cast<std::size_t>(count));
}

std::size_t MatrixBytes::total(index_t count) const {
  return (sum(io) + own_work() + sum(check)) * static_cast<std::size_t>(count) +
         slots_buffer(count);
}

std::vector<std::size_t> matrix_io_bytes(const Problem& p) {
  const std::size_t element = size_of(p.type);
  const auto m = static_cast<std::size_t>(p.m), n = static_cast<std::size_t>(p.n);
  const auto k = static_cast<std::size_t>(p.k()), q_cols = static_cast<std::size_t>(p.q_cols());
  const bool is_raw = p.mode == Mode::raw;
  const std::size_t r = is_raw ? 0 : element * static_cast<std::size_t>(p.r_rows()) * n;
  return {element * m * n,
          element * m * q_cols,
          r,
          is_raw ? element * m * n : 0,
          is_raw ? element * k : 0,
          sizeof(int),
          sizeof(DeviceErrors),
          SumLayout(p).bytes()};
}

MatrixBytes matrix_bytes(const GpuVariant& variant, const Problem& p) {
  return {matrix_io_bytes(p),
          variant.workspace(p),
          check_workspace(p),
          variant.slots != nullptr ? variant.slots(p) : Slots{},
          shared_work_buffer(variant, p),
          flagged_bytes(variant, p),
          &variant};
}

SubChunks cut_chunk(const Problem& p, const MatrixBytes& bytes, const Limits& limits, index_t count,
                    std::size_t wanted_bytes, int most_sets) {
  const std::size_t io = sum(bytes.io), work = bytes.own_work() + sum(bytes.check);
  const std::size_t one_buffer = largest(bytes);
  if (one_buffer > limits.max_allocation_bytes) {
    refuse(p, one_buffer, " in one piece", limits.max_allocation_bytes);
  }
  const std::size_t least = io + work + bytes.slots_buffer(1);
  if (least > limits.device_bytes) refuse(p, least, "", limits.device_bytes);
  // Where all slots leave room for one matrix, they are all there; else as many as the matrices of
  // a sub-chunk need.
  const std::size_t all_slots = bytes.slots.total_bytes(count);
  const bool has_all_slots = io + work + all_slots <= limits.device_bytes;
  const std::size_t of_slots = has_all_slots ? all_slots : 0;
  const std::size_t own_slot = has_all_slots ? 0 : bytes.slots.bytes;

  SubChunks cut;
  cut.sets = most_sets;
  const auto fitting = [&](std::size_t available) {
    const std::size_t per_matrix = static_cast<std::size_t>(cut.sets) * io + work;
    const std::size_t beside_slots = available - std::min(available, of_slots);
    return std::min(beside_slots / (per_matrix + own_slot),
                    available / (per_matrix + bytes.shared_work()));
  };
  while (cut.sets > 1 && fitting(limits.device_bytes) == 0) --cut.sets;
  std::size_t matrices = fitting(limits.device_bytes);
  if (matrices > 1) {
    const std::size_t further =
        bytes.guarded == nullptr ? 0 : further_bytes_of(*bytes.guarded, p, limits, count);
    const std::size_t copies = std::min(limits.device_bytes, bytes.flagged + further);
    matrices = std::max<std::size_t>(1, fitting(limits.device_bytes - copies));
  }
  const std::size_t most = std::min({limits.max_allocation_bytes / one_buffer, matrices,
                                     std::max<std::size_t>(wanted_bytes / io, 1)});
  cut.matrices = std::min(count, static_cast<index_t>(most));
  cut.sets = static_cast<int>(std::min<index_t>(cut.sets, ceil_divide(count, cut.matrices)));
  return cut;
}

Buffer BufferPool::grown(std::size_t entry, std::size_t bytes) {
  if (entries_.size() <= entry) entries_.resize(entry + 1);
  return memory_.grown(entries_[entry], bytes);
}

std::size_t BufferPool::bytes_beside_refused() const {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < entries_.size(); ++i)
    if (i < refused_entry || i >= most_shared) bytes += entries_[i].bytes();
  return bytes;
}

std::optional<BufferPool::OfRefused> BufferPool::of_refused(std::size_t slots_bytes,
                                                            std::size_t list_bytes) {
  if (slots_bytes == 0) return std::nullopt;
  try {
    return OfRefused{grown(refused_entry, slots_bytes), grown(refused_entry + 1, list_bytes),
                     grown(refused_entry + 2, sizeof(int))};
  } catch (const DeviceFailure& failure) {
    if (!failure.is_memory_short()) throw;
    return std::nullopt;
  }
}

void BufferPool::clear_work() {
  for (std::size_t i = 0; i < std::min(entries_.size(), most_shared); ++i) entries_[i] = {};
}

DeviceBuffers BufferPool::get(const Problem& problem, const Params& params,
                              const MatrixBytes& bytes, index_t count, int set) {
  const auto matrices = static_cast<std::size_t>(count);
  std::size_t entry = 0;
  const auto take = [&](std::size_t per_matrix) { return grown(entry++, per_matrix * matrices); };

  const Buffer slots = grown(entry++, bytes.slots_buffer(count));
  std::vector<Buffer> work, check_work;
  for (std::size_t i = 0; i < bytes.work.size(); ++i) {
    const bool is_shared = i > 0 && i == bytes.shared;
    work.push_back(is_shared ? slots : take(bytes.work[i]));
  }
  for (const std::size_t b : bytes.check) check_work.push_back(take(b));
  entry = most_shared + bytes.io.size() * static_cast<std::size_t>(set);
  std::vector<Buffer> io;
  for (const std::size_t b : bytes.io) io.push_back(take(b));
  return {
      {problem, params, count, io[0], io[1], io[2], io[3], io[4], io[5], std::move(work), slots},
      io[6],
      io[7],
      std::move(check_work)};
}

}  // namespace qrtool
