// SPDX-License-Identifier: Apache-2.0
// hard_systems.cpp: the kinds of A and b.
#include "tests/support/hard_systems.hpp"

#include <algorithm>
#include <cmath>

#include "tests/support/draw.hpp"

namespace qrtool::test {
namespace {

struct Kind {
  const char* name;
  const char* family;
  double scale = 1;
  bool is_graded = false;
};
const Kind kinds[] = {{"gauss", "gauss"},
                      {"graded", "graded-columns", 1, true},
                      {"dependent", "exact-duplicates"},
                      {"nearly dependent", "duplicate-groups"},
                      {"common mean", "offset"},
                      {"common profile", "common-profile"},
                      {"few entries differ", "few-entries-differ"},
                      {"tiny", "gauss", 1e-30},
                      {"huge", "gauss", 1e30}};

struct RightSideKind {
  const char* name;
  double residual;  // relative to A x; below zero: b = 0
};
const RightSideKind right_sides[] = {{"random b", 1},
                                     {"consistent", 0},
                                     {"nearly consistent", 1e-5},
                                     {"huge residual", 1e6},
                                     {"zero b", -1}};

}  // namespace

template <class T>
HardSystems<T> make_hard_systems(index_t m, index_t n, index_t each, std::uint64_t seed) {
  HardSystems<T> out{.m = m, .n = n, .a = {}, .b = {}, .names = {}, .is_graded = {}};
  out.count = each * std::ssize(kinds) * std::ssize(right_sides);
  out.a.resize(static_cast<std::size_t>(out.count * m * n));
  index_t number = 0;
  for (const Kind& kind : kinds) {
    for (const RightSideKind& side : right_sides) {
      for (index_t i = 0; i < each; ++i, ++number) {
        T* a = &out.a[static_cast<std::size_t>(number * m * n)];
        fill_attack<T>(attack_family(kind.family), seed, number, {a, m, n, n});
        for (index_t e = 0; e < m * n; ++e) a[e] *= static_cast<T>(kind.scale);
        Draw draw(mix_bits(mix_bits(seed) ^ static_cast<std::uint64_t>(number)), 0);
        const std::vector<double> x = draw.normals(n), noise = draw.normals(m);
        const auto largest = static_cast<double>(std::abs(
            *std::max_element(a, a + m * n, [](T y, T z) { return std::abs(y) < std::abs(z); })));
        for (index_t r = 0; r < m; ++r) {
          double sum = std::max(side.residual, 0.0) * largest * noise[r];
          for (index_t j = 0; j < n; ++j) sum += static_cast<double>(a[r * n + j]) * x[j];
          out.b.push_back(static_cast<T>(side.residual < 0 ? 0.0 : sum));
        }
        out.names.push_back(std::string(kind.name) + ", " + side.name);
        out.is_graded.push_back(kind.is_graded);
      }
    }
  }
  return out;
}

template <class T>
HardSystems<T> with_column_scales(HardSystems<T> systems, std::uint64_t seed) {
  Draw draw(mix_bits(seed), 0);
  const index_t m = systems.m, n = systems.n;
  for (index_t i = 0; i < systems.count; ++i) {
    T* a = &systems.a[static_cast<std::size_t>(i * m * n)];
    const T largest = std::abs(
        *std::max_element(a, a + m * n, [](T y, T z) { return std::abs(y) < std::abs(z); }));
    const double up = largest > T(1e15)    ? 0
                      : largest < T(1e-15) ? column_decades
                                           : column_decades / 2;
    for (index_t j = 0; j < n; ++j) {
      double scale = draw.power_of_ten(up - column_decades, up);
      if (i % 2 == 0) scale = std::exp2(std::round(std::log2(scale)));
      for (index_t r = 0; r < m; ++r)
        a[r * n + j] = static_cast<T>(static_cast<double>(a[r * n + j]) * scale);
    }
    systems.names[i] += ", column scales";
    systems.is_graded[i] = true;
  }
  return systems;
}

template HardSystems<float> with_column_scales(HardSystems<float>, std::uint64_t);
template HardSystems<double> with_column_scales(HardSystems<double>, std::uint64_t);
template HardSystems<float> make_hard_systems(index_t, index_t, index_t, std::uint64_t);
template HardSystems<double> make_hard_systems(index_t, index_t, index_t, std::uint64_t);

}  // namespace qrtool::test
