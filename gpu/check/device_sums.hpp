// SPDX-License-Identifier: Apache-2.0
// device_sums.hpp: checksums that show whether data arrived on the device and came back as they
// were sent (sums.cl). The host's are in core/measure/checksum.hpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/batch.hpp"
#include "gpu/model/gpu_variant.hpp"

namespace qrtool {

/// The buffers of a sub-chunk that are summed, in the order of their sums.
enum class Summed { a, q, r, v, tau, errors };
inline constexpr std::size_t summed_buffers = 6;
inline constexpr std::array summed_factors{Summed::q, Summed::r, Summed::v, Summed::tau};
inline constexpr std::array<std::string_view, summed_buffers> summed_names{
    "A", "Q", "R", "V", "tau", "the errors"};

/// The places of the sums of one matrix.
class SumLayout {
 public:
  explicit SumLayout(const Problem& problem);

  /// Sums of one matrix, all buffers together.
  std::size_t sums_of_matrix() const { return sums_of_matrix_; }
  std::size_t bytes() const { return sums_of_matrix_ * sizeof(std::uint64_t); }
  /// 0 where the problem has no such buffer.
  index_t words(Summed buffer) const { return words_[static_cast<std::size_t>(buffer)]; }
  SumShape shape(Summed buffer) const;
  /// Returns the device's checksum of one matrix; `sums` holds the sums of all matrices.
  std::uint64_t checksum(std::span<const std::uint64_t> sums, index_t matrix, Summed buffer) const;

 private:
  std::array<index_t, summed_buffers> words_;
  std::array<int, summed_buffers> first_;
  std::size_t sums_of_matrix_ = 0;
};

Defines sum_defines();
inline constexpr std::string_view sum_file = "gpu/check/sums.cl";
/// The kernel that enqueue_sums() launches, for ProgramCache::prepare().
WantedKernels wanted_sums();

/// Enqueues the sums of `count` matrices in `buffer`.
void enqueue_sums(const SumLayout& layout, Summed which, const Buffer& buffer, index_t count,
                  const Buffer& sums, Launcher& launch);

}  // namespace qrtool
