// SPDX-License-Identifier: Apache-2.0
// attack.hpp: families of matrices that try to break a QR by A'A and its guards. Each matrix draws
// how hard it is from a range that reaches from harmless to hopeless, so that many of them lie next
// to the line at which a guard stops trusting A'A.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "core/batch.hpp"

namespace qrtool::test {

class Draw;

struct AttackFamily {
  std::string_view name;
  std::string_view summary;
  void (*fill)(Draw& draw, MatrixView<double> a);
};

/// Returns every family. No two have the same name.
std::span<const AttackFamily> attack_families();

/// The families of matrices with many rows that are alike, whose products round alike.
std::span<const AttackFamily> families_of_alike_rows();

struct AttackShape {
  index_t m, n;
};

/// Returns shapes from 17 to 600 columns. `gram` takes up to 96 columns and `gram_tiles` works in
/// squares of 128; there are shapes that fill their tiles and shapes that leave a part of them
/// empty. Rows that are alike need many rows: the last shapes have up to 1,000,000.
std::span<const AttackShape> attack_shapes();

/// Fills matrix number `index` of a family. It depends on the arguments, the shape and the type
/// alone: for double the hardness reaches twice as many digits.
template <class T>
void fill_attack(const AttackFamily& family, std::uint64_t seed, index_t index, MatrixView<T> a);

/// Makes the matrices `first`, `first` + 1, .. of the list that has `per_family` matrices of each
/// of the families, one family after another. Uses several threads.
template <class T>
void fill_attack_batch(std::span<const AttackFamily> families, index_t per_family,
                       std::uint64_t seed, index_t first, int threads, BatchView<T> a);

}  // namespace qrtool::test
