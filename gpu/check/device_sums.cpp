// SPDX-License-Identifier: Apache-2.0
// device_sums.cpp: where the checksums of a sub-chunk lie, and their launch.
#include "gpu/check/device_sums.hpp"

#include "gpu/check/tuning.hpp"

namespace qrtool {
SumLayout::SumLayout(const Problem& p) {
  const auto words = static_cast<index_t>(size_of(p.type) / sizeof(std::uint32_t));
  const bool is_raw = p.mode == Mode::raw;
  words_ = {words * p.m * p.n,
            words * p.m * p.q_cols(),
            is_raw ? 0 : words * p.r_rows() * p.n,
            is_raw ? words * p.m * p.n : 0,
            is_raw ? words * p.k() : 0,
            static_cast<index_t>(sizeof(DeviceErrors) / sizeof(std::uint32_t))};
  for (std::size_t i = 0; i < summed_buffers; ++i) {
    first_[i] = static_cast<int>(sums_of_matrix_);
    sums_of_matrix_ += static_cast<std::size_t>(ceil_divide(words_[i], tuning::sum_words));
  }
}

SumShape SumLayout::shape(Summed buffer) const {
  const auto i = static_cast<std::size_t>(buffer);
  return {.words = words_[i],
          .parts = static_cast<int>(ceil_divide(words_[i], tuning::sum_words)),
          .first_sum = first_[i],
          .sums_of_matrix = static_cast<int>(sums_of_matrix_),
          .reserved = 0};
}

std::uint64_t SumLayout::checksum(std::span<const std::uint64_t> sums, index_t matrix,
                                  Summed buffer) const {
  const SumShape at = shape(buffer);
  std::uint64_t sum = 0;
  const std::size_t first =
      static_cast<std::size_t>(matrix) * sums_of_matrix_ + static_cast<std::size_t>(at.first_sum);
  for (const std::uint64_t part : sums.subspan(first, static_cast<std::size_t>(at.parts)))
    sum += part;
  return sum;
}

Defines sum_defines() {
  return {{"SUM_GROUP", std::to_string(tuning::sum_group)},
          {"SUM_WORDS", std::to_string(tuning::sum_words)}};
}

WantedKernels wanted_sums() { return {{sum_file, sum_defines(), "checksums"}, {"sum_words"}, {}}; }

void enqueue_sums(const SumLayout& layout, Summed which, const Buffer& buffer, index_t count,
                  const Buffer& sums, Launcher& launch) {
  const SumShape shape = layout.shape(which);
  launch("sum_words", count * shape.parts, tuning::sum_group, buffer, sums, shape);
}

}  // namespace qrtool
