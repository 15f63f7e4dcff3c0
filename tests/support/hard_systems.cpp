// SPDX-License-Identifier: Apache-2.0
// hard_systems.cpp: the kinds of A and b, made in float64 and rounded once.
#include "tests/support/hard_systems.hpp"

#include <cmath>
#include <random>

namespace qrtool::test {
namespace {

using Random = std::mt19937_64;
using Numbers = std::vector<double>;

struct Maker {
  index_t m, n;
  double u;
  Random& random;

  double normal() { return std::normal_distribution<double>()(random); }
  double uniform() { return std::uniform_real_distribution<double>()(random); }
  Numbers gaussian(index_t count) {
    Numbers out(static_cast<std::size_t>(count));
    for (double& x : out) x = normal();
    return out;
  }
  /// Column j := its sum with `factor` times column 0.
  void mix(Numbers& a, index_t j, double own, double factor) const {
    for (index_t i = 0; i < m; ++i) a[i * n + j] = own * a[i * n + j] + factor * a[i * n];
  }
};

Numbers gaussian(Maker& k) { return k.gaussian(k.m * k.n); }
Numbers graded(Maker& k) {
  Numbers a = k.gaussian(k.m * k.n);
  for (index_t i = 0; i < k.m; ++i)
    for (index_t j = 0; j < k.n; ++j)
      a[i * k.n + j] *= std::pow(10.0, -15.0 * static_cast<double>(j) / static_cast<double>(k.n));
  return a;
}
/// Whole numbers, so that the columns are dependent in the rounded matrix, too.
Numbers dependent(Maker& k) {
  Numbers a = k.gaussian(k.m * k.n);
  for (double& x : a) x = std::round(8 * x);
  for (index_t j = 1; j < k.n; j += 2) k.mix(a, j, 0, static_cast<double>(j + 1));
  return a;
}
Numbers nearly_dependent(Maker& k) {
  Numbers a = k.gaussian(k.m * k.n);
  const double noise = k.u * std::pow(10.0, 4 * k.uniform());
  for (index_t j = 1; j < k.n; j += 2) k.mix(a, j, noise, 1);
  return a;
}
Numbers common_mean(Maker& k) {
  Numbers a = k.gaussian(k.m * k.n);
  const double spread = std::pow(10.0, -4 * k.uniform());
  for (double& x : a) x = 1 + spread * x;
  return a;
}
Numbers near_collinear(Maker& k) {
  Numbers a = k.gaussian(k.m * k.n);
  const double noise = std::pow(k.u, 0.3 + 0.4 * k.uniform());
  for (index_t j = 1; j < k.n; ++j) k.mix(a, j, noise, 1);
  return a;
}
Numbers zero_columns(Maker& k) {
  Numbers a = k.gaussian(k.m * k.n);
  for (index_t j = 0; j < k.n; j += 3) k.mix(a, j, 0, 0);
  return a;
}
Numbers tiny(Maker& k) {
  Numbers a = k.gaussian(k.m * k.n);
  for (double& x : a) x *= 1e-30;
  return a;
}
Numbers huge(Maker& k) {
  Numbers a = k.gaussian(k.m * k.n);
  for (double& x : a) x *= 1e30;
  return a;
}

struct Kind {
  const char* name;
  Numbers (*make)(Maker&);
  bool is_graded;
};
const Kind kinds[] = {{"gaussian", gaussian, false},
                      {"graded", graded, true},
                      {"dependent", dependent, false},
                      {"nearly dependent", nearly_dependent, false},
                      {"common mean", common_mean, false},
                      {"near-collinear", near_collinear, false},
                      {"zero columns", zero_columns, false},
                      {"tiny", tiny, false},
                      {"huge", huge, false}};

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
  Random random(seed);
  HardSystems<T> out{.m = m, .n = n, .a = {}, .b = {}, .names = {}, .is_graded = {}};
  Maker maker{m, n, sizeof(T) == 4 ? 0x1p-23 : 0x1p-52, random};
  for (const Kind& kind : kinds) {
    for (const RightSideKind& side : right_sides) {
      for (index_t i = 0; i < each; ++i) {
        const Numbers a = kind.make(maker), x = maker.gaussian(n);
        double largest = 0;
        for (const double entry : a) largest = std::max(largest, std::abs(entry));
        for (const double entry : a) out.a.push_back(static_cast<T>(entry));
        for (index_t r = 0; r < m; ++r) {
          double sum = 0;
          for (index_t j = 0; j < n; ++j) sum += a[r * n + j] * x[j];
          sum += std::max(side.residual, 0.0) * largest * maker.normal();
          out.b.push_back(static_cast<T>(side.residual < 0 ? 0.0 : sum));
        }
        out.names.push_back(std::string(kind.name) + ", " + side.name);
        out.is_graded.push_back(kind.is_graded);
        ++out.count;
      }
    }
  }
  return out;
}

template HardSystems<float> make_hard_systems(index_t, index_t, index_t, std::uint64_t);
template HardSystems<double> make_hard_systems(index_t, index_t, index_t, std::uint64_t);

}  // namespace qrtool::test
