// SPDX-License-Identifier: Apache-2.0
// checksum.cpp: sums row by row with the widest kernel of this processor.
#include "core/measure/checksum.hpp"

#include <algorithm>
#include <complex>
#include <numeric>
#include <vector>

#include "core/machine/parallel.hpp"
#include "core/measure/scan_kernel.hpp"

namespace qrtool {

template <class T>
std::uint64_t checksum(MatrixView<const T> matrix, index_t first_word) {
  constexpr auto words = static_cast<index_t>(sizeof(T) / sizeof(std::uint32_t));
  const bool is_packed = matrix.ld == matrix.cols;
  const index_t rows = is_packed ? 1 : matrix.rows;
  const index_t row_words = words * (is_packed ? matrix.rows * matrix.cols : matrix.cols);
  const auto sum_words = scan::kernels().front()->sum_words;
  std::uint64_t sum = 0;
  for (index_t i = 0; i < rows; ++i)
    sum += sum_words(matrix.data + i * matrix.ld, row_words, first_word + i * row_words);
  return sum;
}

template <class T>
std::uint64_t checksum(MatrixView<const T> matrix, index_t first_word, int threads) {
  constexpr index_t least_entries = (index_t{1} << 20) / static_cast<index_t>(sizeof(T));
  constexpr auto words = static_cast<index_t>(sizeof(T) / sizeof(std::uint32_t));
  const index_t parts = std::clamp<index_t>(matrix.rows * matrix.cols / least_entries, 1,
                                            std::min<index_t>(4 * threads, matrix.rows + 1));
  if (threads <= 1 || parts <= 1) return checksum(matrix, first_word);
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(parts));
  parallel_for(parts, threads, [&](index_t part, int) {
    const index_t first = matrix.rows * part / parts, end = matrix.rows * (part + 1) / parts;
    sums[static_cast<std::size_t>(part)] =
        checksum(matrix.row_block(first, end - first), first_word + first * matrix.cols * words);
  });
  return std::accumulate(sums.begin(), sums.end(), std::uint64_t{0});
}

std::uint64_t checksum(std::span<const std::uint32_t> words) {
  return scan::kernels().front()->sum_words(words.data(), std::ssize(words), 0);
}

#define QRTOOL_CHECKSUM(T)                                       \
  template std::uint64_t checksum(MatrixView<const T>, index_t); \
  template std::uint64_t checksum(MatrixView<const T>, index_t, int);
QRTOOL_CHECKSUM(std::uint32_t)
QRTOOL_CHECKSUM(float)
QRTOOL_CHECKSUM(double)
QRTOOL_CHECKSUM(std::complex<float>)
QRTOOL_CHECKSUM(std::complex<double>)
#undef QRTOOL_CHECKSUM

}  // namespace qrtool
