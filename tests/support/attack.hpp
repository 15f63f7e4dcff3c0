// SPDX-License-Identifier: Apache-2.0
// attack.hpp: families of matrices that try to break a QR by A'A and its guards. Each matrix draws
// how hard it is from a range that reaches from harmless to hopeless, so that many of them lie next
// to the line at which a guard stops trusting A'A.
#pragma once

#include <cstdint>
#include <span>
#include <string>
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

/// The family with this name. Errors: UsageError where there is none.
const AttackFamily& attack_family(std::string_view name);

/// The families of matrices with many rows that are alike, whose products round alike.
std::span<const AttackFamily> families_of_alike_rows();

struct AttackShape {
  index_t m, n;
};

/// Returns shapes from 17 to 600 columns. `gram` takes up to 96 columns and `gram_tiles` works in
/// squares of 128; there are shapes that fill their tiles and shapes that leave a part of them
/// empty. Rows that are alike need many rows: the last shapes have up to 1,000,000.
std::span<const AttackShape> attack_shapes();

/// Returns shapes of 15 to 17 and of 31 to 33 rows and columns, and wide ones: there the bar is
/// closest to the rounding errors of a good QR.
std::span<const AttackShape> shapes_of_few_rows();

/// Fills matrix number `index` of a family. It depends on the arguments, the shape and the type
/// alone: for double the hardness reaches twice as many digits.
template <class T>
void fill_attack(const AttackFamily& family, std::uint64_t seed, index_t index, MatrixView<T> a);

/// `per_family` matrices of each family, one family after another.
struct AttackList {
  std::span<const AttackFamily> families;
  index_t per_family = 1;
  std::uint64_t seed = 7;

  index_t count() const { return std::ssize(families) * per_family; }
  const AttackFamily& family_of(index_t number) const {
    return families[static_cast<std::size_t>(number / per_family)];
  }
  /// Such as "offset number 3".
  std::string name_of(index_t number) const;
  /// Fills a with the matrices `first`, `first` + 1, .. of the list.
  template <class T>
  void fill(index_t first, int threads, BatchView<T> a) const;
};

}  // namespace qrtool::test
