// SPDX-License-Identifier: Apache-2.0
// checksum.hpp: a checksum that shows whether a copy of a matrix is the same.
//
//     sum = w_0 + 3 w_1 + 5 w_2 + ..  (mod 2^64)      w_i: the words of 32 bits, row by row
//
// One changed bit changes the sum, because every weight is odd, and so do two words that change
// places. Integer sums have no order, so that every processor adds in the order that suits it.
#pragma once

#include <cstdint>
#include <span>

#include "core/batch.hpp"

namespace qrtool {

/// Returns the checksum of a matrix, or of some of its rows; the checksums of parts add up to the
/// checksum of the matrix. `first_word` is the number of words of the matrix before these rows.
template <class T>
std::uint64_t checksum(MatrixView<const T> matrix, index_t first_word = 0);

/// The same sum, computed by several threads.
template <class T>
std::uint64_t checksum(MatrixView<const T> matrix, index_t first_word, int threads);

/// Returns the checksum of any words of 32 bits.
std::uint64_t checksum(std::span<const std::uint32_t> words);

}  // namespace qrtool
