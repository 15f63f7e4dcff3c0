// SPDX-License-Identifier: Apache-2.0
// repeated_reader.cpp: a checksum for each range of rows.
#include "io/read/repeated_reader.hpp"

#include "core/text.hpp"
#include "io/checksum/fletcher32.hpp"
#include "io/file/input_file.hpp"

namespace qrtool {

template <class T>
void RepeatedReader::read_and_compare(index_t matrix, index_t first_row, MatrixView<T> out) {
  inner_.read_rows(matrix, first_row, out);
  if (matrix_ != matrix) sums_.clear();
  matrix_ = matrix;
  const auto bytes = static_cast<std::size_t>(out.rows * out.cols) * sizeof(T);
  const std::uint32_t sum = fletcher32(reinterpret_cast<const std::byte*>(out.data), bytes);
  const auto [before, is_new] = sums_.try_emplace({first_row, out.rows}, sum);
  if (!is_new && before->second != sum) throw_changed(escape(source_.file));
}

void RepeatedReader::read_rows(index_t matrix, index_t first_row, MatrixView<float> out) {
  read_and_compare(matrix, first_row, out);
}
void RepeatedReader::read_rows(index_t matrix, index_t first_row, MatrixView<double> out) {
  read_and_compare(matrix, first_row, out);
}

}  // namespace qrtool
