// SPDX-License-Identifier: Apache-2.0
// draw.hpp: the random numbers of the matrices and systems that attack a method.
#pragma once

#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/matrix/matrices.hpp"

namespace qrtool::test {

/// Draws the random numbers of one matrix. A seed always gives the same numbers in the same order,
/// with every standard library.
class Draw {
 public:
  /// `most_digits` is how many digits the type of the matrix holds, and a few more.
  Draw(std::uint64_t seed, double most_digits) : state_(seed), digits_(most_digits) {}

  std::uint64_t bits() { return mix_bits(state_ += 0x9e3779b97f4a7c15u); }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  /// A whole number from low to high, both of which can come.
  index_t whole(index_t low, index_t high) {
    return low + static_cast<index_t>(uniform() * static_cast<double>(high - low + 1));
  }
  bool chance(double probability) { return uniform() < probability; }
  double sign() { return chance(0.5) ? 1 : -1; }
  /// Returns 10^x with a random x in [low, high).
  double power_of_ten(double low, double high) { return std::pow(10.0, between(low, high)); }
  /// Returns the size of a small difference, from 10^-1 down to less than the type resolves.
  double distance() { return power_of_ten(-digits_, -1); }
  double digits() const { return digits_; }

  /// Numbers of mean 0 and variance 1. Each is the sum of four uniform numbers: nearly normal, no
  /// larger than 3.5, and computed without a logarithm, so that a million matrices take minutes.
  void normals(double* out, index_t count) {
    const std::uint64_t start = bits();
    for (index_t i = 0; i < count; ++i) {
      const std::uint64_t x = mix_bits(start + static_cast<std::uint64_t>(i));
      const std::uint64_t sum = (x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48);
      // The four parts have 16 bits each. Without further bits below them, squares and sums in
      // float64 would be exact, and rounding errors are what the attack is about.
      const auto fine = static_cast<double>((x * 0xd1342543de82ef95u) >> 12) * 0x1p-52;
      out[i] = ((static_cast<double>(sum) + fine) * 0x1p-16 - 2) * 1.7320508075688772;
    }
  }
  double normal() {
    double x;
    normals(&x, 1);
    return x;
  }
  std::vector<double> normals(index_t count) {
    std::vector<double> x(static_cast<std::size_t>(count));
    normals(x.data(), count);
    return x;
  }

  /// Returns 0 .. extent - 1 in a random order.
  std::vector<index_t> places(index_t extent) {
    std::vector<index_t> order(static_cast<std::size_t>(extent));
    std::iota(order.begin(), order.end(), index_t{0});
    for (index_t i = extent - 1; i > 0; --i) std::swap(order[i], order[whole(0, i)]);
    return order;
  }

 private:
  std::uint64_t state_;
  double digits_;
};

}  // namespace qrtool::test
