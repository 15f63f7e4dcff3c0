// SPDX-License-Identifier: Apache-2.0
// attack.cpp: the list of families, the shapes, and the filling of a matrix. A family fills a
// matrix of float64, which is rounded to the type at the end. Rounding is part of the attack:
// columns that agree to 10^-7 differ by a few last bits.
#include "tests/support/attack.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "core/error.hpp"
#include "core/machine/parallel.hpp"
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

constexpr std::array few_rows{
    AttackShape{15, 15}, AttackShape{15, 16},  AttackShape{15, 17},  AttackShape{16, 15},
    AttackShape{16, 16}, AttackShape{16, 17},  AttackShape{17, 15},  AttackShape{17, 16},
    AttackShape{17, 17}, AttackShape{31, 31},  AttackShape{31, 32},  AttackShape{31, 33},
    AttackShape{32, 31}, AttackShape{32, 32},  AttackShape{32, 33},  AttackShape{33, 31},
    AttackShape{33, 32}, AttackShape{33, 33},  AttackShape{16, 40},  AttackShape{15, 132},
    AttackShape{16, 80}, AttackShape{16, 132}, AttackShape{15, 300}, AttackShape{16, 300},
    AttackShape{32, 132}};

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

std::span<const AttackFamily> families_of_alike_rows() { return attack_families().last(6); }

const AttackFamily& attack_family(std::string_view name) {
  const std::span<const AttackFamily> all = attack_families();
  const auto found = std::ranges::find(all, name, &AttackFamily::name);
  if (found == all.end())
    throw UsageError("there is no family '" + std::string(name) + "'; see --list");
  return *found;
}

std::span<const AttackShape> attack_shapes() { return shapes; }

std::span<const AttackShape> shapes_of_few_rows() { return few_rows; }

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

std::string AttackList::name_of(index_t number) const {
  return std::string(family_of(number).name) + " number " + std::to_string(number % per_family);
}

template <class T>
void AttackList::fill(index_t first, int threads, BatchView<T> a) const {
  parallel_for(a.count, threads, [&](index_t b, int) {
    fill_attack<T>(family_of(first + b), seed, (first + b) % per_family, a[b]);
  });
}

template void fill_attack(const AttackFamily&, std::uint64_t, index_t, MatrixView<float>);
template void fill_attack(const AttackFamily&, std::uint64_t, index_t, MatrixView<double>);
template void AttackList::fill(index_t, int, BatchView<float>) const;
template void AttackList::fill(index_t, int, BatchView<double>) const;

}  // namespace qrtool::test
