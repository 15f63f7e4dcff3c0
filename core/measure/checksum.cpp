// SPDX-License-Identifier: Apache-2.0
// checksum.cpp: sums row by row with the widest kernel of this processor.
#include "core/measure/checksum.hpp"

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

std::uint64_t checksum(std::span<const std::uint32_t> words) {
  return scan::kernels().front()->sum_words(words.data(), std::ssize(words), 0);
}

template std::uint64_t checksum(MatrixView<const float>, index_t);
template std::uint64_t checksum(MatrixView<const double>, index_t);

}  // namespace qrtool
