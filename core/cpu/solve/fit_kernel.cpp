// SPDX-License-Identifier: Apache-2.0
// fit_kernel.cpp: f = A x, r = b - f and the sums of r, b and A'r for some rows and right sides,
// compiled once for every instruction set. A vector holds entries of neighbouring rows, and four
// right sides share what is read of A.
#include "core/cpu/solve/fit_kernel.hpp"

#include "core/simd/simd.hpp"

namespace qrtool::fit {
namespace {

template <class T>
class Fit : Lanes<double, double> {
  using Base = Lanes<double, double>;
  using Base::lanes;
  using typename Base::V;
  using VP = typename VectorOf<double, lanes>::unaligned;
  /// Right sides that share a pass over A.
  static constexpr int group = 4;
  static_assert(most_sides % group == 0);

 public:
  Fit(const Rows& rows, const Sides<T>& sides, double* workspace)
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
    for (index_t c = 0; c < sides_.count; c += group) add_gradient(c);
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

  /// w is 0 for a row that does not count. b keeps what was read, NaN too.
  void load() {
    const index_t count = sides_.count;
    if (sides_.row_step == 1) {
      for (index_t c = 0; c < count; ++c)
        for (index_t i = 0; i < rows_.rows; ++i) load_entry(i, c);
    } else {
      for (index_t i = 0; i < rows_.rows; ++i)
        for (index_t c = 0; c < count; ++c) load_entry(i, c);
    }
    // The sides that fill up the last group have no b, and no weight.
    const index_t all = (count + group - 1) / group * group;
    for (index_t c = 0; c < all; ++c)
      for (index_t i = c < count ? rows_.rows : 0; i < stride_; ++i)
        b_[c * stride_ + i] = w_[c * stride_ + i] = 0;
  }
  void load_entry(index_t i, index_t c) {
    const double b =
        static_cast<double>(sides_.b[i * sides_.row_step + c * sides_.side_step]) * sides_.scale;
    double w = rows_.counts[i];
    if (sides_.w != nullptr)
      w *= static_cast<double>(sides_.w[i * sides_.w_row_step + c * sides_.w_side_step]);
    b_[c * stride_ + i] = b;
    w_[c * stride_ + i] = sides_.skips_missing && b != b ? 0 : w;
  }

  void sum_up_b(index_t c) {
    const double *b = b_ + c * stride_, *w = w_ + c * stride_;
    V weight{}, sum{}, b_squares{}, a_squares{}, most = V{} - __builtin_inf(), least = most;
    for (index_t i = 0; i < stride_; i += lanes) {
      const V wi = get(w + i), bi = wi > 0 ? get(b + i) : V{};
      weight += wi;
      sum += wi * bi;
      b_squares += wi * bi * bi;
      a_squares += wi * get(rows_.norms + i);
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
    sums.a_squares = sum_of(a_squares);
    V squares{};
    for (index_t i = 0; i < stride_; i += lanes) {
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
    for (index_t i = 0; i < stride_; i += 2 * lanes) {
      const bool has_two = i + lanes < stride_;
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

  /// Stores fitted values and residuals, and leaves w r in r_, of r as it is stored; 0 where the
  /// row does not count. A row that is missing has NaN.
  template <class Out>
  void store() {
    if (sides_.row_step == 1) {
      for (index_t c = 0; c < sides_.count; ++c)
        for (index_t i = 0; i < rows_.rows; ++i) store_entry<Out>(i, c);
    } else {
      for (index_t i = 0; i < rows_.rows; ++i)
        for (index_t c = 0; c < sides_.count; ++c) store_entry<Out>(i, c);
    }
  }
  template <class Out>
  void store_entry(index_t i, index_t c) {
    const index_t at = c * stride_ + i, place = i * sides_.row_step + c * sides_.side_step;
    const double b = b_[at];
    const bool is_missing = rows_.counts[i] == 0 || (sides_.skips_missing && b != b);
    const double f = is_missing ? __builtin_nan("") : r_[at];
    const auto r = static_cast<Out>(b - f);
    if (sides_.fitted != nullptr) static_cast<Out*>(sides_.fitted)[place] = static_cast<Out>(f);
    if (sides_.residuals != nullptr) static_cast<Out*>(sides_.residuals)[place] = r;
    const bool is_stored = sides_.residuals != nullptr;
    r_[at] = w_[at] > 0 ? (is_stored ? static_cast<double>(r) : b - f) : 0;
  }

  void sum_up_r(index_t c) {
    double* r = r_ + c * stride_;
    const double* w = w_ + c * stride_;
    for (index_t i = rows_.rows; i < stride_; ++i) r[i] = 0;
    V squares{};
    for (index_t i = 0; i < stride_; i += lanes) {
      const V ri = get(r + i), weighted = get(w + i) * ri;
      squares += weighted * ri;
      put(r + i, weighted);
    }
    sides_.sums[c].r_squares = sum_of(squares);
  }

  void add_gradient(index_t c) {
    const index_t n = rows_.n;
    const index_t count = sides_.count - c < group ? sides_.count - c : index_t{group};
    const double* r = r_ + c * stride_;
    for (index_t j = 0; j < n; ++j) {
      const double* a = rows_.a + j * stride_;
      V g[group] = {};
      for (index_t i = 0; i < stride_; i += lanes) {
        const V ai = get(a + i);
        for (int q = 0; q < group; ++q) g[q] += ai * get(r + q * stride_ + i);
      }
      for (index_t q = 0; q < count; ++q) sides_.gradient[(c + q) * n + j] += sum_of(g[q]);
    }
  }

  const Rows& rows_;
  const Sides<T>& sides_;
  index_t stride_;
  double *b_, *w_, *r_;  // most_sides x stride
};

template <class T>
void run(const Rows& rows, const Sides<T>& sides, double* workspace) {
  Fit<T>(rows, sides, workspace).run();
}

index_t workspace_size(index_t stride) { return 3 * most_sides * stride; }

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET), workspace_size,
                                                   run<float>, run<double>};

}  // namespace qrtool::fit
