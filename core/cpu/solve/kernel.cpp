// SPDX-License-Identifier: Apache-2.0
// kernel.cpp: least-squares problems with one matrix per SIMD lane, compiled once for every
// instruction set. Everything is computed in float64.
//
//   A' = A D^-1, b' = b 2^-e     D: powers of two that bring every column to a largest entry of 1
//   A' = Q R',  z = Q'b'         core/cpu/batched
//   x  = D^-1 R'^-1 z 2^e        rounded to its type
//   r  = b - A x,  g = A'r       A is read once more, some rows at a time
//
// The backward error is bounded as in core/solve/backward_error.hpp. The condition is estimated
// twice, for A and for A with columns scaled to norm 1, in the same passes over R'. Systems whose
// bound is not clearly within the bar, or whose rank or range is in doubt, are left to
// core/solve/system_solver.
#include "core/cpu/solve/kernel.hpp"

#include "core/cpu/batched/columns.hpp"

namespace qrtool::systems {
namespace {

using batched::block;
using batched::width;

/// Exponents beyond these could overflow in products of two or three numbers.
constexpr int most_exponent = 400, most_shift = 1000;
/// The vectors of A that are read at a time: they stay in the first-level cache.
constexpr index_t tile_vectors = 256;
/// Steps of an estimate of a singular value, each with R and with R'.
constexpr int iterations = 3;
/// Right sides that share a pass over A.
constexpr int group = 4;

/// The smallest size of x where its rounding to denormal numbers need not be counted.
template <class T>
constexpr double least_solution = sizeof(T) == 4 ? 0x1p-100 : 0x1p-900;

template <class T>
class Systems : batched::Columns<T, double> {
  using Base = batched::Columns<T, double>;
  using Base::at, Base::broadcast, Base::exponent_of, Base::largest_, Base::panels_of,
      Base::power_of_two, Base::r_at, Base::row_of, Base::top_;
  using typename Base::Int, typename Base::InMemory, typename Base::V, typename Base::VT,
      typename Base::Workspace;

 public:
  using Base::lanes;

  static std::size_t workspace_bytes(const Shape& shape) {
    Workspace parts(nullptr);
    const Systems systems(shape, parts);
    return parts.bytes();
  }

  static void solve(const Shape& shape, const Rules& rules, const Pack<T>& pack,
                    std::byte* workspace) {
    if (pack.count > lanes) {
      solve_same_mask(shape, rules, pack, workspace);
      return;
    }
    Workspace parts(workspace);
    Systems s(shape, parts);
    s.prepare(rules, pack);
    s.solve_right_sides(rules, pack);
  }

  static void take_factor(const Shape& shape, std::byte* workspace, const Place& place, double* r,
                          double* z) {
    Workspace parts(workspace);
    const Systems s(shape, parts);
    for (index_t j = 0; j < shape.n; ++j) {
      const int up = static_cast<int>(s.exponent(j)[place.lane]) - place.scale;
      for (index_t i = 0; i < shape.n; ++i)
        r[i * shape.n + j] = j < i ? 0 : __builtin_ldexp(s.r_at(i, j)[place.lane], up);
    }
    for (index_t i = 0; i < shape.n; ++i)
      for (index_t j = 0; j < shape.p; ++j) z[i * shape.p + j] = s.r_at(i, shape.n + j)[place.lane];
  }

 private:
  /// R and what is known of it.
  void prepare(const Rules& rules, const Pack<T>& pack) {
    Systems& s = *this;
    s.clear();
    if (s_.is_masked) {
      s.load_masked(pack);
      s.factor_gram(pack.shared);
      s.find_z(pack.shared);
    } else if (s_.is_factored) {
      s.load_factor(pack);
    } else {
      s.load(pack);
      s.factor_columns();
    }
    s.choose_scales();
    s.estimate_condition();
    s.judge_matrices(rules, pack);
    if (pack.se != nullptr && rules.wants_se) s.find_row_norms();
  }

  void solve_right_sides(const Rules& rules, const Pack<T>& pack) {
    for (index_t first = 0; first < s_.p; first += group) {
      const index_t count = s_.p - first < group ? s_.p - first : index_t{group};
      for (index_t q = 0; q < count; ++q) find_solution(rules, pack, first, q);
      count == 1 ? find_residuals<1>(pack, first, count)
                 : find_residuals<group>(pack, first, count);
      // R of a Gram matrix of float64 data gives x to half of the digits only.
      if (s_.is_masked && sizeof(T) == 8 && !rules.is_given) correct(rules, pack);
      for (index_t q = 0; q < count; ++q) judge_solution(rules, pack, first, q, count);
    }
  }

  /// All right sides leave out the same rows, so that R of the first ones serves all others. Each
  /// gets the bits that it gets among right sides with other gaps.
  static void solve_same_mask(const Shape& shape, const Rules& rules, const Pack<T>& pack,
                              std::byte* workspace) {
    Workspace parts(workspace);
    Systems s(shape, parts);
    s.prepare(rules, part_of(pack, shape, 0));
    for (index_t first = 0; first < pack.count; first += lanes) {
      const Pack<T> part = part_of(pack, shape, first);
      if (first > 0) s.take_next(rules, part);
      s.solve_right_sides(rules, part);
    }
  }

  static Pack<T> part_of(const Pack<T>& pack, const Shape& shape, index_t first) {
    Pack<T> part = pack;
    const index_t left = pack.count - first;
    part.count = left < lanes ? left : index_t{lanes};
    part.b.data += first * pack.b.stride;
    part.x += first * shape.n;
    if (pack.se != nullptr) part.se += first * shape.n;
    if (pack.shifts != nullptr) part.shifts += first;
    part.solutions += first;
    part.matrices += first;
    return part;
  }

  /// Two vectors of one index: of A with scaled columns, and of A.
  static constexpr int scaled = 0, plain = 1;

  Systems(const Shape& shape, Workspace& workspace)
      : Base(shape.is_factored || shape.is_masked ? shape.n : shape.m, shape.n + shape.p, shape.n,
             0, workspace),
        s_(shape) {
    inverse_ = workspace.take(s_.n);
    for (int v : {scaled, plain}) {
      scale_by_[v] = workspace.take(s_.n);
      unscale_by_[v] = workspace.take(s_.n);
    }
    y_ = workspace.take(group * s_.n);
    x_ = workspace.take(group * s_.n);
    gradient_ = workspace.take(group * s_.n);
    row_norms_ = workspace.take(s_.n);
    tile_ = workspace.take(tile_rows() * s_.n);
    right_sides_ = workspace.take(tile_rows() * group);
    if (!s_.is_masked) return;
    mask_ = workspace.take(s_.m);
    b_ = workspace.take(s_.m);
    root_inverse_ = workspace.take(s_.n);
  }

  index_t tile_rows() const {
    const index_t rows = s_.n > 0 ? tile_vectors / s_.n : 1;
    return rows < 4 ? 4 : rows / 4 * 4;
  }

  static V square_roots(V x) {
    double entries[lanes];
    __builtin_memcpy(entries, &x, sizeof(x));
    for (double& entry : entries) entry = square_root(entry);
    __builtin_memcpy(&x, entries, sizeof(x));
    return x;
  }
  static V larger(V x, V y) { return x > y ? x : y; }
  static V smaller(V x, V y) { return x < y ? x : y; }
  static V size_of(V x) { return x < 0 ? -x : x; }
  static V infinity() { return broadcast(__builtin_inf()); }

  /// The exponent of the largest entry of column j, 0 for a column of zeros.
  Int exponent(index_t j) const { return __builtin_convertvector(exponent_of(largest_[j]), Int); }
  /// 2^e for |e| <= most_shift; other exponents are in no lane that is used.
  static V power(Int e) {
    e = e > most_shift ? Int{} + most_shift : e;
    return power_of_two(e < -most_shift ? Int{} - most_shift : e);
  }
  static Int is_beyond(Int e, int most) { return (e > most) | (e < -most); }

  void load(const Pack<T>& pack) {
    Base::load(pack.a, pack.count, s_.n);
    read_right_sides(pack, 0, s_.p, 0, s_.m, [&](VT x, index_t i, index_t j) {
      auto& largest = largest_[s_.n + j];
      const auto bits = this->magnitude_bits(x);
      largest = bits > largest ? bits : largest;
      at(i, s_.n + j) = __builtin_convertvector(x, V);
    });
    this->find_scale();
  }

  /// D scales the columns of R as it would scale those of A.
  void load_factor(const Pack<T>& pack) {
    Base::load(pack.r, pack.count, s_.n + s_.p);
    for (index_t j = 0; j < s_.p; ++j) largest_[s_.n + j] = decltype(this->scale_){};
    read_right_sides(pack, 0, s_.p, 0, s_.m, [&](VT x, index_t, index_t j) {
      auto& largest = largest_[s_.n + j];
      const auto bits = this->magnitude_bits(x);
      largest = bits > largest ? bits : largest;
    });
    this->find_scale();
    for (index_t p = 0; p < panels_of(s_.n + s_.p); ++p) this->scale_panel(p);
    for (index_t i = 0; i < s_.n; ++i)
      for (index_t q = 0; q < width; ++q) top_[i * width + q] = row_of(i / width, i)[q];
  }

  // ---- one matrix without some of its rows

  /// b_ := b 2^-e, and mask_ := 1 in the rows that count, 0 in all others.
  void load_masked(const Pack<T>& pack) {
    const double* factors = pack.shared.row_factors;
    used_ = V{};
    read_right_sides(pack, 0, 1, 0, s_.data_rows, [&](VT stored, index_t i, index_t) {
      const V x = __builtin_convertvector(stored, V);
      const bool counts = factors == nullptr || factors[i] != 0;
      mask_[i] = counts ? (x == x ? broadcast(1) : V{}) : V{};
      b_[i] = mask_[i] != 0 ? x * (factors == nullptr ? 1 : factors[i]) : V{};
      used_ += mask_[i];
      const auto bits = this->magnitude_bits(__builtin_convertvector(b_[i], VT));
      auto& largest = largest_[s_.n];
      largest = bits > largest ? bits : largest;
    });
    for (index_t i = s_.data_rows; i < s_.m; ++i) {
      mask_[i] = broadcast(1);
      b_[i] = V{};
    }
    // Columns of A are not scaled: an entry of 1/2 has the exponent 0.
    for (index_t j = 0; j < s_.n; ++j) largest_[j] = this->magnitude_bits(VT{} + T(0.5));
    this->find_scale();
    // A right side that is not finite must not reach R, which the next one in its lane may share.
    const Int keep = __builtin_convertvector(this->is_finite_, Int);
    const V down = power(-exponent(s_.n));
    for (index_t i = 0; i < s_.data_rows; ++i) b_[i] = keep ? b_[i] * down : V{};
  }

  /// Columns 4p, .., 4p + 3 of row i of R and Q'b.
  V* upper_row(index_t i, index_t p) const {
    return p == i / width ? top_ + i * width : row_of(p, i);
  }

  /// R'R = A'MA with the mask M, by Cholesky's method.
  void factor_gram(const SharedMatrix& shared) {
    const index_t n = s_.n, panels = panels_of(n);
    for (index_t right = 0; right < panels; ++right)
      for (index_t left = 0; left <= right; ++left) multiply_masked(shared, left, right);
    for (index_t i = 0; i < n; ++i) {
      const V inverse = root_inverse_[i] = 1 / square_roots(r_at(i, i));
      for (index_t p = i / width; p < panels; ++p)
        for (index_t q = 0; q < width; ++q) upper_row(i, p)[q] *= inverse;
      for (index_t j = i + 1; j < n; ++j) {
        const V factor = r_at(i, j);
        for (index_t p = j / width; p < panels; ++p) {
          const V* from = upper_row(i, p);
          V* to = upper_row(j, p);
#pragma GCC unroll 4
          for (index_t q = 0; q < width; ++q) to[q] -= factor * from[q];
        }
      }
    }
  }

  /// R'z = A'Mb. In one function, so that all right sides get their bits from the same
  /// instructions.
  [[gnu::noinline]] void find_z(const SharedMatrix& shared) {
    for (index_t left = 0; left < panels_of(s_.n); ++left) multiply_right_side(shared, left);
    const auto z = [&](index_t i) -> V& { return upper_row(i, s_.n / width)[s_.n % width]; };
    for (index_t i = 0; i < s_.n; ++i) {
      const V known = z(i) *= root_inverse_[i];
      for (index_t j = i + 1; j < s_.n; ++j) z(j) -= r_at(i, j) * known;
    }
  }

  /// Rows 4 left, .. and columns 4 right, .. of A'MA.
  [[gnu::noinline]] void multiply_masked(const SharedMatrix& shared, index_t left, index_t right) {
    V sums[width][width] = {};
    for (index_t i = 0; i < s_.m; ++i) {
      const double *row = shared.a + i * shared.ld, *x = row + left * width,
                   *y = row + right * width;
      const V mask = mask_[i];
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q) {
        const V masked = mask * y[q];
#pragma GCC unroll 4
        for (int o = 0; o < width; ++o) sums[o][q] += x[o] * masked;
      }
    }
    for (index_t o = 0; o < columns_of(left); ++o)
      for (int q = 0; q < width; ++q) upper_row(left * width + o, right)[q] = sums[o][q];
  }

  void multiply_right_side(const SharedMatrix& shared, index_t left) {
    V sums[width] = {};
    for (index_t i = 0; i < s_.m; ++i)
#pragma GCC unroll 4
      for (int o = 0; o < width; ++o) sums[o] += shared.a[i * shared.ld + left * width + o] * b_[i];
    for (index_t o = 0; o < columns_of(left); ++o)
      upper_row(left * width + o, s_.n / width)[s_.n % width] = sums[o];
  }

  /// Right sides with the masks of the ones before.
  void take_next(const Rules& rules, const Pack<T>& pack) {
    largest_[s_.n] = decltype(this->scale_){};
    load_masked(pack);
    find_z(pack.shared);
    judge_matrices(rules, pack);
  }

  /// x := x + R^-1 R^-T g, where g is that of x.
  void correct(const Rules& rules, const Pack<T>& pack) {
    for (index_t i = 0; i < s_.n; ++i) y_[i] = gradient_[i];
    solve_upper_transposed<1>(y_);
    solve_upper<1>(y_);
    for (index_t i = 0; i < s_.n; ++i) y_[i] += x_[i * group];
    round_solution(rules, pack, 0, 0);
    find_residuals<1>(pack, 0, 1);
  }

  /// Calls body(x, i, j) for entry i of right side j, in some of the rows of some right sides.
  template <class Body>
  [[gnu::always_inline]] void read_right_sides(const Pack<T>& pack, index_t first, index_t count,
                                               index_t row, index_t rows, Body body) const {
    const Strided<const T>& b = pack.b;
    if (pack.b_has_rows) {
      InMemory::read({b.data + first * b.ld + row, b.ld, b.stride}, pack.count, count, rows,
                     [&]<int N>(const VT* x, index_t j, index_t i) {
                       for (int e = 0; e < N; ++e) body(x[e], row + i + e, first + j);
                     });
    } else {
      InMemory::read({b.data + row * b.ld + first, b.ld, b.stride}, pack.count, rows, count,
                     [&]<int N>(const VT* x, index_t i, index_t j) {
                       for (int e = 0; e < N; ++e) body(x[e], row + i, first + j + e);
                     });
    }
  }

  // ---- R' and its condition

  /// The powers of two that make R of R', and S, which has columns of norm 1 to a factor of 2.
  void choose_scales() {
    matrix_needs_care_ = Int{};
    scale_a_ = exponent(0);
    for (index_t j = 1; j < s_.n; ++j) scale_a_ = exponent(j) > scale_a_ ? exponent(j) : scale_a_;
    matrix_needs_care_ |= is_beyond(scale_a_, most_exponent);
    V squares{};
    longest_[scaled] = longest_[plain] = V{} - 1;
    for (index_t j = 0; j < s_.n; ++j) {
      const Int down = exponent(j) - scale_a_;
      matrix_needs_care_ |= is_beyond(down, most_exponent);
      V sum{};
      for (index_t i = 0; i <= j; ++i) sum += r_at(i, j) * r_at(i, j);
      const V norm = square_roots(sum);
      const Int e =
          (reinterpret_cast<Int>(norm) >> Format<double>::mantissa) - (Format<double>::bias - 1);
      scale_by_[scaled][j] = power(-e);
      unscale_by_[scaled][j] = power(e);
      scale_by_[plain][j] = power(down);
      unscale_by_[plain][j] = power(-down);
      const V diagonal = r_at(j, j);
      inverse_[j] = 1 / diagonal;
      matrix_needs_care_ |= diagonal == 0;
      squares += sum * scale_by_[plain][j] * scale_by_[plain][j];
      for (int v : {scaled, plain}) {
        const V length = norm * scale_by_[v][j];
        which_[v] = length > longest_[v] ? Int{} + j : which_[v];
        longest_[v] = larger(longest_[v], length);
      }
    }
    norm_ = square_roots(squares);
  }

  /// y := R'^-1 y for K vectors; entry i of vector v is y[i K + v].
  template <int K>
  [[gnu::noinline]] void solve_upper(V* y) const {
    for (index_t p = panels_of(s_.n) - 1; p >= 0; --p) {
      const index_t first = p * width, columns = columns_of(p);
      const V* top = top_ + first * width;
      for (index_t q = columns - 1; q >= 0; --q) {
        for (int v = 0; v < K; ++v) {
          V sum = y[(first + q) * K + v];
          for (index_t o = q + 1; o < columns; ++o)
            sum -= top[q * width + o] * y[(first + o) * K + v];
          y[(first + q) * K + v] = sum * inverse_[first + q];
        }
      }
      V known[width][K];
      for (index_t q = 0; q < width; ++q)
        for (int v = 0; v < K; ++v) known[q][v] = q < columns ? y[(first + q) * K + v] : V{};
      const V* r = row_of(p, 0);
      for (index_t i = 0; i < first; ++i) {
#pragma GCC unroll 4
        for (int v = 0; v < K; ++v) {
          V sum = y[i * K + v];
#pragma GCC unroll 4
          for (int q = 0; q < width; ++q) sum -= r[i * width + q] * known[q][v];
          y[i * K + v] = sum;
        }
      }
    }
  }

  /// sums := the rows above panel p of R', transposed, times y.
  template <int K>
  [[gnu::always_inline]] void multiply_above(index_t p, const V* y, V (&sums)[width][K]) const {
    for (auto& sum : sums)
      for (V& each : sum) each = V{};
    const V* r = row_of(p, 0);
    for (index_t i = 0; i < p * width; ++i) {
#pragma GCC unroll 4
      for (int q = 0; q < width; ++q)
#pragma GCC unroll 4
        for (int v = 0; v < K; ++v) sums[q][v] += r[i * width + q] * y[i * K + v];
    }
  }

  /// y_j := step(v, j, y_j - sum over i < j of R'_ij y_i) / R'_jj, in ascending order: with step =
  /// the identity this is R'^-T y.
  template <int K, class Step>
  [[gnu::always_inline]] void substitute(V* y, Step step) const {
    for (index_t p = 0; p < panels_of(s_.n); ++p) {
      const index_t first = p * width, columns = columns_of(p);
      const V* top = top_ + first * width;
      V sums[width][K];
      multiply_above<K>(p, y, sums);
      for (index_t q = 0; q < columns; ++q) {
        for (int v = 0; v < K; ++v) {
          V sum = sums[q][v];
          for (index_t o = 0; o < q; ++o) sum += top[o * width + q] * y[(first + o) * K + v];
          V& yj = y[(first + q) * K + v];
          yj = step(v, first + q, yj - sum) * inverse_[first + q];
        }
      }
    }
  }
  template <int K>
  [[gnu::noinline]] void solve_upper_transposed(V* y) const {
    substitute<K>(y, [](int, index_t, V x) { return x; });
  }

  /// y := R' x and y := R'x transposed, for the two vectors of an estimate.
  [[gnu::noinline]] void multiply(const V* x, V* y) const {
    for (index_t i = 0; i < 2 * s_.n; ++i) y[i] = V{};
    for (index_t p = 0; p < panels_of(s_.n); ++p) {
      const index_t first = p * width, columns = columns_of(p);
      V known[width][2];
      for (index_t q = 0; q < width; ++q)
        for (int v = 0; v < 2; ++v) known[q][v] = q < columns ? x[(first + q) * 2 + v] : V{};
      const V* r = row_of(p, 0);
      for (index_t i = 0; i < first; ++i)
#pragma GCC unroll 2
        for (int v = 0; v < 2; ++v) {
          V sum = y[i * 2 + v];
#pragma GCC unroll 4
          for (int q = 0; q < width; ++q) sum += r[i * width + q] * known[q][v];
          y[i * 2 + v] = sum;
        }
      for (index_t i = first; i < first + columns; ++i)
        for (index_t j = i; j < first + columns; ++j)
          for (int v = 0; v < 2; ++v) y[i * 2 + v] += r_at(i, j) * x[j * 2 + v];
    }
  }
  [[gnu::noinline]] void multiply_transposed(const V* x, V* y) const {
    for (index_t p = 0; p < panels_of(s_.n); ++p) {
      const index_t first = p * width;
      V sums[width][2];
      multiply_above<2>(p, x, sums);
      for (index_t j = first; j < first + columns_of(p); ++j)
        for (int v = 0; v < 2; ++v) {
          V sum = sums[j - first][v];
          for (index_t i = first; i <= j; ++i) sum += r_at(i, j) * x[i * 2 + v];
          y[j * 2 + v] = sum;
        }
    }
  }

  index_t columns_of(index_t p) const {
    return s_.n - p * width < width ? s_.n - p * width : index_t{width};
  }

  /// norms := those of the two vectors, which are brought to norm 1.
  void normalize(V* y, V (&norms)[2]) const {
    V squares[2] = {};
    for (index_t i = 0; i < s_.n; ++i)
      for (int v = 0; v < 2; ++v) squares[v] += y[i * 2 + v] * y[i * 2 + v];
    for (int v = 0; v < 2; ++v) {
      norms[v] = square_roots(squares[v]);
      const V inverse = norms[v] > 0 ? 1 / norms[v] : V{};
      for (index_t i = 0; i < s_.n; ++i) y[i * 2 + v] *= inverse;
    }
  }
  void multiply_by(V* const (&factors)[2], V* y) const {
    for (index_t i = 0; i < s_.n; ++i)
      for (int v = 0; v < 2; ++v) y[i * 2 + v] *= factors[v][i];
  }

  /// As estimate_singular_values() in core/solve/triangular: steps of inverse iteration that begin
  /// with a vector for which each sign lets the next entry grow, and steps of the power method that
  /// begin with the longest column.
  void estimate_condition() {
    V *y = y_, *other = x_;
    V norms[2], inverse_norms[2] = {}, largest[2] = {longest_[scaled], longest_[plain]};
    const auto keep = [](V(&most)[2], const V(&found)[2]) {
      for (int v = 0; v < 2; ++v) most[v] = larger(most[v], found[v]);
    };
    for (index_t i = 0; i < 2 * s_.n; ++i) y[i] = V{};
    substitute<2>(y, [&](int v, index_t j, V sum) {
      const V x = sum * scale_by_[v][j];
      return (x > 0 ? x + 1 : x - 1) * unscale_by_[v][j];
    });
    normalize(y, norms);
    for (int i = 0; i < iterations; ++i) {
      solve_upper<2>(y);
      multiply_by(unscale_by_, y);
      normalize(y, norms);
      keep(inverse_norms, norms);
      multiply_by(unscale_by_, y);
      solve_upper_transposed<2>(y);
      normalize(y, norms);
      keep(inverse_norms, norms);
    }
    for (index_t i = 0; i < s_.n; ++i)
      for (int v = 0; v < 2; ++v) y[i * 2 + v] = which_[v] == i ? broadcast(1) : V{};
    for (int i = 0; i < iterations; ++i) {
      multiply_by(scale_by_, y);
      multiply(y, other);
      normalize(other, norms);
      keep(largest, norms);
      multiply_transposed(other, y);
      multiply_by(scale_by_, y);
      normalize(y, norms);
      keep(largest, norms);
    }
    for (int v = 0; v < 2; ++v) condition_[v] = largest[v] * inverse_norms[v];
    smallest_ = 1 / inverse_norms[scaled];
  }

  void judge_matrices(const Rules& rules, const Pack<T>& pack) {
    // Each comparison is written so that NaN needs care.
    needs_care_ = matrix_needs_care_ | ~__builtin_convertvector(this->is_finite_, Int);
    needs_care_ |= ~(smallest_ > rules.least_singular_value);
    needs_care_ |= ~(condition_[scaled] <= rules.most_condition);
    needs_care_ |= ~(condition_[plain] < infinity());
    for (index_t l = 0; l < pack.count; ++l)
      pack.matrices[l] = {condition_[plain][l], condition_[scaled][l], this->is_finite_[l] != 0};
  }

  /// The norm of each row of R'^-1, four of its columns at a time.
  void find_row_norms() {
    for (index_t i = 0; i < s_.n; ++i) row_norms_[i] = V{};
    for (index_t first = 0; first < s_.n; first += group) {
      for (index_t e = 0; e < group * s_.n; ++e) y_[e] = V{};
      for (index_t q = 0; q < group && first + q < s_.n; ++q)
        y_[(first + q) * group + q] = broadcast(1);
      solve_upper<group>(y_);
      for (index_t i = 0; i < s_.n && i < first + group; ++i)
        for (int q = 0; q < group; ++q) row_norms_[i] += y_[i * group + q] * y_[i * group + q];
    }
    for (index_t i = 0; i < s_.n; ++i) row_norms_[i] = square_roots(row_norms_[i]);
  }

  // ---- solutions

  Int shift_of(const Pack<T>& pack, index_t j) const {
    Int shift{};
    if (pack.shifts == nullptr) return shift;
    for (index_t l = 0; l < pack.count; ++l) shift[l] = pack.shifts[l * s_.p + j];
    return shift;
  }

  /// Entry i of right side q of the group is x_[i group + q], times 2^-e, where e is the exponent
  /// of b: x as it is stored, so that the check measures what the caller gets.
  void find_solution(const Rules& rules, const Pack<T>& pack, index_t first, index_t q) {
    if (!rules.is_given) {
      for (index_t i = 0; i < s_.n; ++i) y_[i] = r_at(i, s_.n + first + q);
      solve_upper<1>(y_);
    }
    round_solution(rules, pack, first, q);
  }
  /// y_ holds the solution, unless it is given.
  void round_solution(const Rules& rules, const Pack<T>& pack, index_t first, index_t q) {
    const index_t j = first + q;
    const Int e = exponent(s_.n + j), shift = shift_of(pack, j);
    Int is_bad = needs_care_ | is_beyond(e, most_exponent);
    V largest{}, squares{};
    Int is_beyond_type{};
    for (index_t i = 0; i < s_.n; ++i) {
      const Int up = e - exponent(i) + shift, down = -shift - e;
      is_bad |= is_beyond(up, most_shift) | is_beyond(down, most_shift);
      VT stored{};
      if (rules.is_given) {
        for (index_t l = 0; l < pack.count; ++l) stored[l] = pack.x[(l * s_.p + j) * s_.n + i];
      } else {
        stored = __builtin_convertvector(y_[i] * power(up), VT);
        for (index_t l = 0; l < pack.count; ++l) pack.x[(l * s_.p + j) * s_.n + i] = stored[l];
      }
      const V x = __builtin_convertvector(stored, V);
      largest = larger(largest, size_of(x));
      is_beyond_type |= ~(size_of(x) < infinity());
      const V down_x = x * power(down);
      x_[i * group + q] = down_x;
      const V relative = down_x * power(scale_a_);
      squares += relative * relative;
    }
    is_bad |= is_beyond_type | ((largest < least_solution<T>)&(largest > 0));
    solution_norm_[q] = square_roots(squares);
    is_bad_[q] = is_bad;
  }

  /// r'r, b'b and the gradient of `count` right sides in one pass over A; each vector of A is
  /// multiplied with all of them. K = 1 or `group`.
  template <int K>
  [[gnu::noinline]] void find_residuals(const Pack<T>& pack, index_t first, index_t count) {
    // Vectors of one right side are close together.
    V* x = y_;
    for (index_t i = 0; i < s_.n; ++i)
      for (int q = 0; q < K; ++q) {
        x[i * K + q] = q < count ? x_[i * group + q] : V{};
        gradient_[i * K + q] = V{};
      }
    for (int q = 0; q < K; ++q) sums_[q] = {};
    const index_t step = tile_rows();
    for (index_t row = 0; row < s_.m; row += step) {
      const index_t rows = s_.m - row < step ? s_.m - row : step;
      if (s_.is_masked) {
        load_masked_rows(pack.shared, row, rows);
      } else {
        load_rows(pack, row, rows);
        load_right_sides(pack, first, count, row, rows);
      }
      index_t i = 0;
      for (; i + 4 <= rows; i += 4) add_rows<K, 4>(x, row, i);
      for (; i < rows; ++i) add_rows<K, 1>(x, row, i);
    }
  }

  void load_rows(const Pack<T>& pack, index_t row, index_t rows) {
    InMemory::read({pack.a.data + row * pack.a.ld, pack.a.ld, pack.a.stride}, pack.count, rows,
                   s_.n, [&]<int N>(const VT* from, index_t i, index_t j) {
                     V* to = tile_ + i * s_.n + j;
#pragma GCC unroll 16
                     for (int e = 0; e < N; ++e) to[e] = __builtin_convertvector(from[e], V);
                   });
  }
  void load_masked_rows(const SharedMatrix& shared, index_t row, index_t rows) {
    for (index_t i = 0; i < rows; ++i) {
      for (index_t j = 0; j < s_.n; ++j)
        tile_[i * s_.n + j] = mask_[row + i] * shared.a[(row + i) * shared.ld + j];
      right_sides_[i * group] = b_[row + i];
    }
  }

  /// The right sides of a tile, scaled.
  void load_right_sides(const Pack<T>& pack, index_t first, index_t count, index_t row,
                        index_t rows) {
    V down[group];
    for (index_t q = 0; q < count; ++q) down[q] = power(-exponent(s_.n + first + q));
    read_right_sides(pack, first, count, row, rows, [&](VT x, index_t i, index_t j) {
      right_sides_[(i - row) * group + j - first] = __builtin_convertvector(x, V) * down[j - first];
    });
    for (index_t q = count; q < group; ++q)
      for (index_t i = 0; i < rows; ++i) right_sides_[i * group + q] = V{};
  }

  template <int K, int R>
  [[gnu::always_inline]] void add_rows(const V* x, index_t row, index_t i) {
    const V* a = tile_ + i * s_.n;
    V r[R][K] = {};
    for (index_t j = 0; j < s_.n; ++j)
#pragma GCC unroll 4
      for (int o = 0; o < R; ++o)
#pragma GCC unroll 4
        for (int q = 0; q < K; ++q) r[o][q] -= a[o * s_.n + j] * x[j * K + q];
#pragma GCC unroll 4
    for (int o = 0; o < R; ++o) {
#pragma GCC unroll 4
      for (int q = 0; q < K; ++q) {
        const V b = right_sides_[(i + o) * group + q];
        r[o][q] += b;
        const V square = r[o][q] * r[o][q];
        sums_[q].b += b * b;
        sums_[q].r += square;
        if (row + i + o < s_.data_rows) sums_[q].data += square;
      }
    }
    for (index_t j = 0; j < s_.n; ++j)
#pragma GCC unroll 4
      for (int q = 0; q < K; ++q) {
        V sum = gradient_[j * K + q];
#pragma GCC unroll 4
        for (int o = 0; o < R; ++o) sum += a[o * s_.n + j] * r[o][q];
        gradient_[j * K + q] = sum;
      }
  }

  void judge_solution(const Rules& rules, const Pack<T>& pack, index_t first, index_t q,
                      index_t count) {
    const index_t j = first + q, stride = count == 1 ? 1 : group;
    const V r = square_roots(sums_[q].r), b = square_roots(sums_[q].b);
    const V down = power(-scale_a_);
    V squares{};
    for (index_t i = 0; i < s_.n; ++i) {
      V& g = gradient_[i * stride + q];
      g *= down;
      squares += g * g;
    }
    const V g = square_roots(squares), ax = norm_ * solution_norm_[q];
    const V size = square_roots(ax * ax + b * b), e = r / size;
    const Int is_exact = (r == 0) | (g == 0);
    V error = smaller(g / (norm_ * r), e);
    const Int is_doubtful = ~(error <= rules.bar / 2) & ~is_exact;
    if (any(is_doubtful & ~is_bad_[q])) {
      // ||R^-T g||, where R^-T = R'^-T 2^-(e_j - scale)
      for (index_t i = 0; i < s_.n; ++i) y_[i] = gradient_[i * stride + q] * unscale_by_[plain][i];
      solve_upper_transposed<1>(y_);
      V sum{};
      for (index_t i = 0; i < s_.n; ++i) sum += y_[i] * y_[i];
      error = is_doubtful ? smaller(e * square_roots(sum) / r, error) : error;
    }
    error = is_exact ? V{} : error;
    const Int needs_care = is_bad_[q] | ~(error <= rules.bar / 2);
    const Int up = exponent(s_.n + j);
    const V residual = square_roots(sums_[q].data) * power(up);
    for (index_t l = 0; l < pack.count; ++l)
      pack.solutions[l * s_.p + j] = {residual[l], error[l], needs_care[l] != 0};
    if (pack.se != nullptr && rules.wants_se) store_errors(pack, j, r);
  }

  /// sigma ||row i of R^-1||
  void store_errors(const Pack<T>& pack, index_t j, V r) const {
    V freedom = used_ - static_cast<double>(s_.n);
    for (index_t l = 0; l < pack.count && !s_.is_masked; ++l)
      freedom[l] = static_cast<double>(pack.rows_used[l] - s_.n);
    const V sigma = freedom > 0 ? r / square_roots(freedom) : broadcast(__builtin_nan(""));
    const Int e = exponent(s_.n + j) + shift_of(pack, j);
    for (index_t i = 0; i < s_.n; ++i) {
      const V error = sigma * row_norms_[i] * power(e - exponent(i));
      for (index_t l = 0; l < pack.count; ++l)
        pack.se[(l * s_.p + j) * s_.n + i] = static_cast<T>(error[l]);
    }
  }

  struct Sums {
    V r{}, data{}, b{};
  };

  const Shape s_;
  V* inverse_;  // of the diagonal of R'
  V *y_, *x_, *gradient_, *row_norms_, *tile_, *right_sides_;
  V *mask_ = nullptr, *b_ = nullptr;
  V* root_inverse_ = nullptr;  // of the pivots of A'MA
  V *scale_by_[2], *unscale_by_[2];
  Int scale_a_, matrix_needs_care_, needs_care_, which_[2] = {};
  V used_{};  // rows that count, where there is a mask
  V norm_, longest_[2], condition_[2], smallest_;
  Int is_bad_[group];
  V solution_norm_[group];
  Sums sums_[group];
};

template <class T>
constexpr Routine<T> routine{Systems<T>::lanes, Systems<T>::workspace_bytes, Systems<T>::solve,
                             Systems<T>::take_factor};

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET), routine<float>,
                                                   routine<double>};

}  // namespace qrtool::systems
