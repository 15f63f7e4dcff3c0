// SPDX-License-Identifier: Apache-2.0
// attack.cpp: the list of families, the shapes, and the filling of a matrix. A family fills a
// matrix of float64, which is rounded to the type at the end. Rounding is part of the attack:
// columns that agree to 10^-7 differ by a few last bits.
#include "tests/support/attack.hpp"

#include <array>
#include <vector>

#include "core/parallel.hpp"
#include "tests/support/attack_fill.hpp"

namespace qrtool::test {
namespace {

constexpr std::array shapes{
    AttackShape{17, 17},     AttackShape{33, 20},    AttackShape{48, 40},
    AttackShape{64, 48},     AttackShape{64, 64},    AttackShape{80, 80},
    AttackShape{100, 81},    AttackShape{96, 96},    AttackShape{300, 88},
    AttackShape{128, 64},    AttackShape{200, 64},   AttackShape{300, 40},
    AttackShape{130, 100},   AttackShape{256, 128},  AttackShape{200, 130},
    AttackShape{300, 257},   AttackShape{512, 256},  AttackShape{600, 600},
    AttackShape{4000, 64},   AttackShape{4096, 17},  AttackShape{4000, 100},
    AttackShape{3000, 160},  AttackShape{20000, 33}, AttackShape{65536, 130},
    AttackShape{1000000, 20}};

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0;
  for (const char c : text) hash = mix_bits(hash ^ static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

std::span<const AttackFamily> attack_families() {
  static const std::vector<AttackFamily> all = [] {
    std::vector<AttackFamily> list = column_families();
    list.insert(list.end(), row_families().begin(), row_families().end());
    return list;
  }();
  return all;
}

std::span<const AttackFamily> families_of_alike_rows() { return attack_families().last(5); }

std::span<const AttackShape> attack_shapes() { return shapes; }

template <class T>
void fill_attack(const AttackFamily& family, std::uint64_t seed, index_t index, MatrixView<T> a) {
  if (a.rows == 0 || a.cols == 0) return;
  thread_local std::vector<double> memory;
  memory.resize(static_cast<std::size_t>(a.rows * a.cols));
  const Matrix wide{memory.data(), a.rows, a.cols, a.cols};
  // From the family's name, not its place: a family more leaves the matrices of others as they are.
  Draw draw(
      mix_bits(mix_bits(seed) ^ hash_of(family.name)) ^ mix_bits(static_cast<std::uint64_t>(index)),
      sizeof(T) == 4 ? 8 : 16);
  family.fill(draw, wide);
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = static_cast<T>(wide(i, j));
  }
}

template <class T>
void fill_attack_batch(std::span<const AttackFamily> chosen, index_t per_family, std::uint64_t seed,
                       index_t first, int threads, BatchView<T> a) {
  parallel_for(a.count, threads, [&](index_t b, int) {
    const index_t number = first + b;
    fill_attack<T>(chosen[static_cast<std::size_t>(number / per_family)], seed, number % per_family,
                   a[b]);
  });
}

template void fill_attack(const AttackFamily&, std::uint64_t, index_t, MatrixView<float>);
template void fill_attack(const AttackFamily&, std::uint64_t, index_t, MatrixView<double>);
template void fill_attack_batch(std::span<const AttackFamily>, index_t, std::uint64_t, index_t, int,
                                BatchView<float>);
template void fill_attack_batch(std::span<const AttackFamily>, index_t, std::uint64_t, index_t, int,
                                BatchView<double>);

}  // namespace qrtool::test
