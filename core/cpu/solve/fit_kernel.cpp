// SPDX-License-Identifier: Apache-2.0
// fit_kernel.cpp: f = A x, r = b - f and the sums of r, b and A'r for some rows and right sides,
// compiled once for every instruction set. A vector holds entries of neighbouring rows, and four
// right sides share what is read of A.
#include "core/cpu/solve/fit_kernel.hpp"

#include "core/cpu/batched/tiles.hpp"
#include "core/simd/simd.hpp"

namespace qrtool::fit {
namespace {

template <class T>
class FitKernel : Lanes<double, double> {
  using Base = Lanes<double, double>;
  using Base::lanes;
  using typename Base::V;
  using VP = typename VectorOf<double, lanes>::unaligned;
  /// The number of right sides that share a pass over A.
  static constexpr int group = 4;
  static_assert(most_sides % group == 0);

 public:
  FitKernel(const Rows& rows, const Sides<T>& sides, double* workspace)
      : rows_(rows), sides_(sides), stride_(rows.stride) {
    b_ = workspace;
    w_ = b_ + most_sides * stride_;
    r_ = w_ + most_sides * stride_;
  }
  void run() {
    load();
    for (index_t c = 0; c < sides_.count; ++c) sum_up_b(c);
    if (sides_.x == nullptr) return;
    for (index_t c = 0; c < sides_.count; c += group) multiply(c);
    sides_.is_single ? store<float>() : store<double>();
    for (index_t c = 0; c < sides_.count; ++c) sum_up_r(c);
    for (index_t c = 0; c < sides_.count; c += group) {
      if (has_shared_weights() && c > 0) {
        sum_columns<group, 0>(c);
      } else if (sides_.count - c == 1) {
        sum_columns<1, 1>(c);
      } else {
        has_shared_weights() ? sum_columns<group, 1>(c) : sum_columns<group, group>(c);
      }
    }
  }

 private:
  static V get(const double* from) { return *reinterpret_cast<const VP*>(from); }
  static void put(double* to, V x) { *reinterpret_cast<VP*>(to) = x; }
  static double sum_of(V x) {
    double entries[lanes], sum = 0;
    __builtin_memcpy(entries, &x, sizeof(x));
    for (const double each : entries) sum += each;
    return sum;
  }
  static double largest_of(V x) {
    double entries[lanes];
    __builtin_memcpy(entries, &x, sizeof(x));
    double largest = entries[0];
    for (const double each : entries) largest = each > largest ? each : largest;
    return largest;
  }

  /// Calls use(c, i, x) with entries i, .., i + lanes - 1 of right side c, for all of them. Entries
  /// beyond the last row may be anything finite that the data hold, or 0.
  template <class In, class Use>
  void read(const In* from, index_t row_step, index_t side_step, Use use) const {
    using VIn = typename VectorOf<In, lanes>::type;
    using UnalignedIn = typename VectorOf<In, lanes>::unaligned;
    const index_t count = sides_.count, rows = rows_.rows;
    if (row_step != 1) {
      for (index_t i = 0; i < rows; i += lanes)
        batched::Tiles<In, lanes>::read({from + i * row_step, count, row_step}, rows_from(i), 1,
                                        count, [&]<int N>(const VIn* x, index_t, index_t c) {
#pragma GCC unroll 16
                                          for (int e = 0; e < N; ++e)
                                            use(c + e, i, __builtin_convertvector(x[e], V));
                                        });
      return;
    }
    for (index_t c = 0; c < count; ++c) {
      const In* side = from + c * side_step;
      index_t i = 0;
      for (; i + lanes <= rows; i += lanes) {
        const VIn x = *reinterpret_cast<const UnalignedIn*>(side + i);
        use(c, i, __builtin_convertvector(x, V));
      }
      if (i == rows) continue;
      VIn x{};
      __builtin_memcpy(&x, side + i, static_cast<std::size_t>(rows - i) * sizeof(In));
      use(c, i, __builtin_convertvector(x, V));
    }
  }
  /// Returns the rows of a vector that begins with row i.
  index_t rows_from(index_t i) const {
    return rows_.rows - i < lanes ? rows_.rows - i : index_t{lanes};
  }

  /// Loads b, with NaN as it was read. Weights are 0 in rows that do not count.
  void load() {
    read(sides_.b, sides_.row_step, sides_.side_step,
         [&](index_t c, index_t i, V x) { put(b_ + c * stride_ + i, x * sides_.scale); });
    if (sides_.w != nullptr)
      read(sides_.w, sides_.w_row_step, sides_.w_side_step, [&](index_t c, index_t i, V x) {
        put(w_ + c * stride_ + i, x * get(rows_.counts + i));
      });
    if (!sides_.skips_missing) return;
    for (index_t c = 0; c < sides_.count; ++c)
      for (index_t i = 0; i < rows_.rows; i += lanes) {
        const V b = get(b_ + c * stride_ + i);
        const V w = get((sides_.w == nullptr ? rows_.counts : w_ + c * stride_) + i);
        put(w_ + c * stride_ + i, b == b ? w : V{});
      }
  }
  /// Whether all right sides have the weights of the rows, which are ones and zeros.
  bool has_plain_weights() const { return sides_.w == nullptr && !sides_.skips_missing; }
  /// Whether the weights of a row are the same for all right sides.
  bool has_shared_weights() const {
    return has_plain_weights() || (sides_.w_side_step == 0 && !sides_.skips_missing);
  }
  const double* weights_of(index_t c) const {
    return has_plain_weights() ? rows_.counts : w_ + c * stride_;
  }

  void sum_up_b(index_t c) {
    const double *b = b_ + c * stride_, *w = weights_of(c);
    V weight{}, sum{}, b_squares{}, most = V{} - __builtin_inf(), least = most;
    for (index_t i = 0; i < rows_.rows; i += lanes) {
      const V wi = get(w + i), bi = wi > 0 ? get(b + i) : V{};
      weight += wi;
      sum += wi * bi;
      b_squares += wi * bi * bi;
      const V up = wi > 0 ? bi : V{} - __builtin_inf(), down = wi > 0 ? -bi : V{} - __builtin_inf();
      most = up > most ? up : most;
      least = down > least ? down : least;
    }
    Sums& sums = sides_.sums[c];
    sums.b.weight = sum_of(weight);
    sums.b.mean = sums.b.weight > 0 ? sum_of(sum) / sums.b.weight : 0;
    sums.b.b_squares = sum_of(b_squares);
    sums.b.most = largest_of(most);
    sums.b.least = -largest_of(least);
    sums.apart_squares = sums.fitted_apart_squares = 0;
    V squares{};
    for (index_t i = 0; i < rows_.rows; i += lanes) {
      const V wi = get(w + i), d = wi > 0 ? get(b + i) - sums.b.mean : V{};
      squares += wi * d * d;
    }
    sums.b.squares = sum_of(squares);
  }

  /// r_ := A x for `group` right sides.
  void multiply(index_t c) {
    const index_t n = rows_.n;
    const double* x[group];
    for (index_t q = 0; q < group; ++q)
      x[q] = sides_.x + (c + q < sides_.count ? c + q : sides_.count - 1) * n;
    for (index_t i = 0; i < rows_.rows; i += 2 * lanes) {
      const bool has_two = i + lanes < rows_.rows;
      const index_t second = has_two ? i + lanes : i;
      V f[2][group] = {};
      for (index_t j = 0; j < n; ++j) {
        const double* a = rows_.a + j * stride_;
        const V a0 = get(a + i), a1 = get(a + second);
        for (int q = 0; q < group; ++q) {
          f[0][q] += a0 * x[q][j];
          f[1][q] += a1 * x[q][j];
        }
      }
      for (int q = 0; q < group; ++q) {
        put(r_ + (c + q) * stride_ + i, f[0][q]);
        if (has_two) put(r_ + (c + q) * stride_ + second, f[1][q]);
      }
    }
  }

  /// Stores fitted values and residuals as asked, then sets r_ to w times the stored residual, or
  /// to 0 if the row does not count. A missing row of A has NaN.
  template <class Out>
  void store() {
    for_vectors([&](index_t at, index_t i) {
      const V nan = V{} + __builtin_nan("");
      put(r_ + at, get(rows_.counts + i) == 0 ? nan : get(r_ + at));
    });
    if (sides_.fitted != nullptr) write(static_cast<Out*>(sides_.fitted));
    if (sides_.given_fitted != nullptr)
      compare(static_cast<const Out*>(sides_.given_fitted), &Sums::fitted_apart_squares,
              [](index_t, V) {});
    for_vectors([&](index_t at, index_t) {
      const V r = get(b_ + at) - get(r_ + at);
      const bool is_stored = sides_.residuals != nullptr || sides_.given_residuals != nullptr;
      put(r_ + at, is_stored ? rounded<Out>(r) : r);
    });
    if (sides_.residuals != nullptr) write(static_cast<Out*>(sides_.residuals));
    if (sides_.given_residuals != nullptr)
      compare(static_cast<const Out*>(sides_.given_residuals), &Sums::apart_squares,
              [&](index_t at, V x) { put(r_ + at, x); });
  }
  /// Sums the differences between the given numbers and r_, which is rounded as they were, and
  /// calls use(place in r_, given).
  template <class Out, class Use>
  void compare(const Out* given, double Sums::*apart_squares, Use use) {
    V apart[most_sides] = {};
    read(given, sides_.row_step, sides_.side_step, [&](index_t c, index_t i, V stored) {
      const V x = stored * sides_.scale, w = get(weights_of(c) + i);
      const V r = rounded<Out>(get(r_ + c * stride_ + i)), d = x - r;
      V squares = w > 0 ? w * d * d : V{};
      const index_t rows = rows_from(i);
      for (index_t l = 0; l < rows; ++l)
        if (r[l] != r[l] && x[l] == x[l]) squares[l] = __builtin_inf();
      apart[c] += squares;
      use(c * stride_ + i, x);
    });
    for (index_t c = 0; c < sides_.count; ++c) sides_.sums[c].*apart_squares = sum_of(apart[c]);
  }
  /// Calls use(place in b_, w_ and r_, row) for all vectors of right sides.
  template <class Use>
  void for_vectors(Use use) const {
    for (index_t c = 0; c < sides_.count; ++c)
      for (index_t i = 0; i < rows_.rows; i += lanes) use(c * stride_ + i, i);
  }
  template <class Out>
  static V rounded(V x) {
    using VO = typename VectorOf<Out, lanes>::type;
    return __builtin_convertvector(__builtin_convertvector(x, VO), V);
  }
  /// Stores r_ in the places of b.
  template <class Out>
  void write(Out* to) const {
    using VO = typename VectorOf<Out, lanes>::type;
    using UnalignedVO = typename VectorOf<Out, lanes>::unaligned;
    const index_t count = sides_.count, step = sides_.row_step;
    if (step != 1) {
      for (index_t i = 0; i < rows_.rows; i += lanes)
        batched::Tiles<Out, lanes>::write({to + i * step, count, step}, rows_from(i), 1, count,
                                          [&]<int N>(index_t, index_t c, VO* x) {
#pragma GCC unroll 16
                                            for (int e = 0; e < N; ++e)
                                              x[e] = __builtin_convertvector(
                                                  get(r_ + (c + e) * stride_ + i), VO);
                                          });
      return;
    }
    for (index_t c = 0; c < count; ++c)
      for (index_t i = 0; i < rows_.rows; i += lanes) {
        const VO x = __builtin_convertvector(get(r_ + c * stride_ + i), VO);
        Out* at = to + c * sides_.side_step + i;
        if (rows_from(i) == lanes) {
          *reinterpret_cast<UnalignedVO*>(at) = x;
        } else {
          __builtin_memcpy(at, &x, static_cast<std::size_t>(rows_from(i)) * sizeof(Out));
        }
      }
  }

  void sum_up_r(index_t c) {
    double* r = r_ + c * stride_;
    const double* w = weights_of(c);
    V squares{};
    for (index_t i = 0; i < rows_.rows; i += lanes) {
      const V wi = get(w + i), ri = wi > 0 ? get(r + i) : V{}, weighted = wi * ri;
      squares += weighted * ri;
      put(r + i, weighted);
    }
    sides_.sums[c].r_squares = sum_of(squares);
  }

  /// Sums the gradient and the squares of the columns, for at most `most` right sides with as many
  /// sets of weights, or one for all of them; 0: the squares of the first right side are used.
  template <int most, int sets>
  void sum_columns(index_t c) {
    const index_t n = rows_.n;
    const index_t count = sides_.count - c < most ? sides_.count - c : index_t{most};
    const double *r = r_ + c * stride_, *w = weights_of(c);
    for (index_t j = 0; j < n; ++j) {
      const double* a = rows_.a + j * stride_;
      V g[most] = {}, squares[sets == 0 ? 1 : sets] = {};
      for (index_t i = 0; i < rows_.rows; i += lanes) {
        const V ai = get(a + i), square = ai * ai;
        for (int q = 0; q < most; ++q) g[q] += ai * get(r + q * stride_ + i);
        for (int q = 0; q < sets; ++q) squares[q] += square * get(w + q * stride_ + i);
      }
      for (index_t q = 0; q < count; ++q) {
        sides_.gradient[(c + q) * n + j] = sum_of(g[q]);
        sides_.columns[(c + q) * n + j] =
            sets == 0 ? sides_.columns[j] : sum_of(squares[sets == 1 ? 0 : q]);
      }
    }
  }

  const Rows& rows_;
  const Sides<T>& sides_;
  index_t stride_;
  double *b_, *w_, *r_;  // most_sides x stride
};

template <class T>
void run(const Rows& rows, const Sides<T>& sides, double* workspace) {
  FitKernel<T>(rows, sides, workspace).run();
}

index_t workspace_size(index_t stride) { return 3 * most_sides * stride; }

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET), workspace_size,
                                                   run<float>, run<double>};

}  // namespace qrtool::fit
