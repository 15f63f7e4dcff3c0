// SPDX-License-Identifier: Apache-2.0
// condition.hpp: norms of A and estimates of its condition, from R' of as many systems as a SIMD
// vector has lanes. Private to core/cpu, compiled once for every instruction set (simd.hpp).
#pragma once

#include "core/cpu/solve/arithmetic.hpp"
#include "core/cpu/solve/triangle.hpp"

namespace qrtool::systems {
namespace {

/// Estimates the condition. Each vector of an estimate for A stands beside one for A with columns
/// scaled to norm 1.
template <class T>
class Condition : SolveArithmetic<T> {
  using Base = SolveArithmetic<T>;
  using Base::broadcast, Base::infinity, Base::is_beyond, Base::larger, Base::most_exponent,
      Base::power, Base::square_roots;
  using typename Base::Int, typename Base::V;

 public:
  Condition(const Shape& shape, const SystemColumns<T>& columns, const Triangle<T>& triangle,
            typename SystemColumns<T>::Workspace& workspace)
      : s_(shape), columns_(columns), triangle_(triangle) {
    for (int v : {scaled, plain}) {
      scale_by_[v] = workspace.take(s_.n);
      unscale_by_[v] = workspace.take(s_.n);
    }
    size_ = workspace.take(s_.n);
  }

  /// Return ||S||, by which solutions are judged; the size of column i of A, by which S is divided;
  /// and the factor that turns row i of R'^-1 into row i of S^-1.
  V norm() const { return norm_; }
  V size(index_t i) const { return size_[i]; }
  V unscale(index_t i) const { return unscale_by_[scaled][i]; }
  /// Returns the systems that are left to core/solve/system_solver.
  Int needs_care() const { return needs_care_; }

  /// The powers of two that make R of R', and S, which has columns of norm 1 to a factor of 2.
  /// scale(j) returns the exponent that column j had lost before.
  template <class Scale>
  void choose_scales(Scale scale) {
    matrix_needs_care_ = Int{};
    for (index_t j = 0; j < s_.n && s_.is_gram; ++j)
      matrix_needs_care_ |= is_beyond(columns_.exponent(j), most_gram_exponent);
    Int most = columns_.exponent(0) + scale(0);
    for (index_t j = 1; j < s_.n; ++j) {
      const Int exponent = columns_.exponent(j) + scale(j);
      most = exponent > most ? exponent : most;
    }
    matrix_needs_care_ |= is_beyond(most, most_exponent);
    V squares{};
    longest_[scaled] = longest_[plain] = V{} - 1;
    for (index_t j = 0; j < s_.n; ++j) {
      const Int down = columns_.exponent(j) + scale(j) - most;
      matrix_needs_care_ |= is_beyond(down, most_exponent);
      const V sum = columns_.square(j), norm = square_roots(sum);
      const Int e =
          (reinterpret_cast<Int>(norm) >> Format<double>::mantissa) - (Format<double>::bias - 1);
      scale_by_[scaled][j] = power(-e);
      unscale_by_[scaled][j] = power(e);
      scale_by_[plain][j] = power(down);
      unscale_by_[plain][j] = power(-down);
      if (!s_.is_gram) columns_.inverse(j) = 1 / columns_.r_at(j, j);
      matrix_needs_care_ |= columns_.r_at(j, j) == 0;
      size_[j] = power(columns_.exponent(j) + e);
      squares += sum * scale_by_[scaled][j] * scale_by_[scaled][j];
      for (int v : {scaled, plain}) {
        const V length = norm * scale_by_[v][j];
        which_[v] = length > longest_[v] ? Int{} + j : which_[v];
        longest_[v] = larger(longest_[v], length);
      }
    }
    norm_ = square_roots(squares);
  }

  /// As estimate_singular_values() in core/solve/ranked/triangular: steps of inverse iteration that
  /// begin with a vector for which each sign lets the next entry grow, and steps of the power
  /// method that begin with the longest column. `y` has room for four vectors, `other` for two.
  void estimate(V* y, V* other) {
    for (index_t i = 0; i < 2 * s_.n; ++i) y[i] = V{};
    triangle_.template substitute<2>(y, [&](int v, index_t j, V sum) {
      const V x = sum * scale_by_[v][j];
      return (x > 0 ? x + 1 : x - 1) * unscale_by_[v][j];
    });
    Growth inverse;
    start_growth(y, inverse);
    for (int i = 0; i < iterations; ++i) {
      bring_near_one(y, inverse);
      triangle_.template solve_upper<2>(y);
      multiply_by(unscale_by_, y);
      take_growth(y, inverse);
      bring_near_one(y, inverse);
      multiply_by(unscale_by_, y);
      triangle_.template solve_upper_transposed<2>(y);
      take_growth(y, inverse);
    }
    for (index_t i = 0; i < s_.n; ++i)
      for (int v = 0; v < 2; ++v) y[i * 2 + v] = which_[v] == i ? broadcast(1) : V{};
    Growth forward;
    start_growth(y, forward);
    for (int i = 0; i < iterations; ++i) {
      bring_near_one(y, forward);
      multiply_by(scale_by_, y);
      triangle_.multiply_both_ways(y, other, y + 2 * s_.n);
      take_growth(other, forward);
      for (index_t e = 0; e < 2 * s_.n; ++e) y[e] = y[e + 2 * s_.n];
      multiply_by(scale_by_, y);
      take_growth(y, forward);
    }
    for (int v = 0; v < 2; ++v)
      condition_[v] = square_roots(larger(forward.most[v], longest_[v] * longest_[v])) *
                      square_roots(inverse.most[v]);
    smallest_ = 1 / square_roots(inverse.most[scaled]);
  }

  void judge(const Rules& rules, const Pack<T>& pack) {
    // Each comparison is written so that NaN needs care.
    const Int is_finite = columns_.is_finite();
    needs_care_ = matrix_needs_care_ | ~is_finite;
    needs_care_ |= ~(smallest_ > rules.least_singular_value);
    needs_care_ |= ~(condition_[scaled] <= rules.most_condition);
    needs_care_ |= ~(condition_[plain] < infinity());
    for (index_t l = 0; l < pack.count; ++l)
      pack.matrices[l] = {condition_[plain][l], condition_[scaled][l], is_finite[l] != 0};
  }

 private:
  static constexpr int scaled = 0, plain = 1;
  /// The largest exponent for which products of entries scaled by powers of two are as exact as
  /// products of the entries.
  static constexpr int most_gram_exponent = 200;
  /// Steps of an estimate of a singular value, each with R and with R'.
  static constexpr int iterations = 3;

  void multiply_by(V* const (&factors)[2], V* y) const {
    for (index_t i = 0; i < s_.n; ++i)
      for (int v = 0; v < 2; ++v) y[i * 2 + v] *= factors[v][i];
  }

  /// The two vectors of an estimate: the squares of their norms, and of the largest growth so far.
  struct Growth {
    V squares[2] = {}, most[2] = {};
  };
  void start_growth(const V* y, Growth& growth) const { find_squares(y, growth.squares); }
  void find_squares(const V* y, V (&squares)[2]) const {
    V even[2] = {}, odd[2] = {};
    index_t i = 0;
    for (; i + 2 <= s_.n; i += 2)
      for (int v = 0; v < 2; ++v) {
        even[v] += y[i * 2 + v] * y[i * 2 + v];
        odd[v] += y[i * 2 + 2 + v] * y[i * 2 + 2 + v];
      }
    for (int v = 0; v < 2; ++v) {
      if (i < s_.n) even[v] += y[i * 2 + v] * y[i * 2 + v];
      squares[v] = even[v] + odd[v];
    }
  }
  /// Adds to `growth` how much longer y is than the vectors from which a step made it.
  void take_growth(const V* y, Growth& growth) const {
    V squares[2];
    find_squares(y, squares);
    for (int v = 0; v < 2; ++v) {
      const V ratio = squares[v] / growth.squares[v];
      growth.most[v] = larger(growth.most[v], ratio);
      growth.squares[v] = squares[v];
    }
  }
  /// The vectors are brought to a norm of about 1 by a power of two.
  void bring_near_one(V* y, Growth& growth) const {
    for (int v = 0; v < 2; ++v) {
      const Int half = ((reinterpret_cast<Int>(growth.squares[v]) >> Format<double>::mantissa) -
                        Format<double>::bias) >>
                       1;
      const V down = power(-half);
      growth.squares[v] *= down * down;
      for (index_t i = 0; i < s_.n; ++i) y[i * 2 + v] *= down;
    }
  }

  const Shape& s_;
  const SystemColumns<T>& columns_;
  const Triangle<T>& triangle_;
  V *scale_by_[2], *unscale_by_[2];
  V* size_;
  Int matrix_needs_care_, needs_care_, which_[2] = {};
  V norm_, longest_[2], condition_[2], smallest_;
};

}  // namespace
}  // namespace qrtool::systems
