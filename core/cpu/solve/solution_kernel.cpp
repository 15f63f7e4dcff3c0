// SPDX-License-Identifier: Apache-2.0
// solution_kernel.cpp: least-squares problems with one matrix per SIMD lane, compiled once for
// every instruction set. Everything is computed in float64.
//
//   A' = A D^-1, b' = b 2^-e     D: powers of two that bring every column to a largest entry of 1
//   A' = Q R',  z = Q'b'         core/cpu/batched
//   x  = D^-1 R'^-1 z 2^e        rounded to its type
//   r  = b - A x,  g = A'r       A is read once more, some rows at a time
//
// By the normal equations (is_gram), R' is the Cholesky factor of A'^T A' and A stays in the pack.
// That takes half of the multiplications where A is tall, and stores no column twice. x is then
// wrong by some k^2 u, where k is the condition with columns scaled to norm 1 and u = 2^-53. For
// float32 data, whose products are exact, that is below their rounding for k <= 2^12. For float64
// data a correction squares it, k <= 10^4:
//
//   x := x + D^-1 d, R'^T R' d = D^-1 g
//
// Systems beyond that are left to reflectors.
//
//   system_columns.hpp   A and b come into panels of four columns, which R' and z overwrite
//   normal.hpp           R' and z by the normal equations
//   masked.hpp           the same for one A whose rows each right side weighs or leaves out
//   triangle.hpp         solves and products with R'
//   condition.hpp        the condition of A
//   residuals.hpp        r and g
//
// The backward error is bounded as in core/solve/backward_error.hpp, with columns scaled to norm 1.
// The condition is estimated twice, for A and for A with columns scaled to norm 1, in the same
// passes over R'. Systems whose bound is not clearly within the bar, or whose rank or range is in
// doubt, are left to core/solve/system_solver.
#include "core/cpu/solve/solution_kernel.hpp"

#include "core/cpu/solve/condition.hpp"
#include "core/cpu/solve/residuals.hpp"

namespace qrtool::systems {
namespace {

template <class T>
class Systems : SolveArithmetic<T> {
  using Base = SolveArithmetic<T>;
  using Base::broadcast, Base::infinity, Base::is_beyond, Base::larger, Base::least_solution,
      Base::most_exponent, Base::most_shift, Base::power, Base::power_inverse, Base::size_of,
      Base::smaller, Base::square_roots;
  using typename Base::Int, typename Base::V, typename Base::VT;
  using Workspace = typename SystemColumns<T>::Workspace;

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

  static void take_factor(const Shape& shape, std::byte* workspace, const PackLane& place,
                          double* r, double* z) {
    Workspace parts(workspace);
    const Systems s(shape, parts);
    for (index_t j = 0; j < shape.n; ++j) {
      const int scale = place.scales == nullptr ? 0 : place.scales[j];
      const int up = static_cast<int>(s.columns_.exponent(j)[place.lane]) - scale;
      for (index_t i = 0; i < shape.n; ++i)
        r[i * shape.n + j] = j < i ? 0 : __builtin_ldexp(s.columns_.r_at(i, j)[place.lane], up);
    }
    for (index_t i = 0; i < shape.n; ++i)
      for (index_t j = 0; j < shape.p; ++j)
        z[i * shape.p + j] = s.columns_.r_at(i, shape.n + j)[place.lane];
  }

 private:
  Systems(const Shape& shape, Workspace& workspace)
      : s_(shape),
        columns_(s_, workspace),
        triangle_(s_, columns_),
        condition_(s_, columns_, triangle_, workspace),
        normal_(s_, columns_, workspace),
        masked_(s_, columns_, workspace),
        residuals_(s_, columns_, normal_, masked_, workspace) {
    y_ = workspace.take(group * s_.n);
    x_ = workspace.take(group * s_.n);
    row_norms_ = workspace.take(s_.n);
    scales_ = reinterpret_cast<Int*>(workspace.take(s_.n));
  }

  /// Computes R and the norms and estimates that the checks need.
  void prepare(const Rules& rules, const Pack<T>& pack) {
    columns_.clear();
    if (s_.is_masked) {
      masked_.load(pack);
      masked_.factor(pack.shared);
      masked_.find_z(pack.shared);
    } else if (s_.is_gram) {
      normal_.load(pack);
      normal_.factor();
    } else if (s_.is_factored) {
      columns_.load_factor(pack);
    } else {
      columns_.load(pack);
      columns_.factor_columns();
    }
    if (!s_.is_gram) triangle_.find_column_squares();
    load_scales(pack);
    condition_.choose_scales([&](index_t j) { return scale_of(pack, j); });
    condition_.estimate(y_, x_);
    condition_.judge(rules, pack);
    if (pack.se != nullptr && rules.wants_se) find_row_norms();
  }

  void solve_right_sides(const Rules& rules, const Pack<T>& pack) {
    for (index_t first = 0; first < s_.p; first += group) {
      const Sides sides{first, s_.p - first < group ? s_.p - first : index_t{group}};
      for (index_t q = 0; q < sides.count; ++q) find_solution(rules, pack, sides, q);
      residuals_.find(pack, sides, x_, y_);
      // R of a Gram matrix of float64 data gives x to half of the digits only.
      if ((s_.is_masked || s_.is_gram) && sizeof(T) == 8 && !rules.is_given)
        correct(rules, pack, sides);
      for (index_t q = 0; q < sides.count; ++q) judge_solution(rules, pack, sides, q);
    }
  }

  /// Solves for right sides that all leave out the same rows, so that R of the first ones serves
  /// all others. Each gets the bits that it gets among right sides with other gaps.
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

  /// Loads right sides with the same missing rows as the right sides before.
  void take_next(const Rules& rules, const Pack<T>& pack) {
    columns_.reset_largest(s_.n);
    masked_.load(pack);
    masked_.find_z(pack.shared);
    condition_.judge(rules, pack);
  }

  /// Computes the norm of each row of R'^-1, four columns at a time.
  void find_row_norms() {
    for (index_t i = 0; i < s_.n; ++i) row_norms_[i] = V{};
    for (index_t first = 0; first < s_.n; first += group) {
      for (index_t e = 0; e < group * s_.n; ++e) y_[e] = V{};
      for (index_t q = 0; q < group && first + q < s_.n; ++q)
        y_[(first + q) * group + q] = broadcast(1);
      triangle_.template solve_leading<group>(first + group < s_.n ? first + group : s_.n, y_);
      for (index_t i = 0; i < s_.n && i < first + group; ++i)
        for (int q = 0; q < group; ++q) row_norms_[i] += y_[i * group + q] * y_[i * group + q];
    }
    for (index_t i = 0; i < s_.n; ++i) row_norms_[i] = square_roots(row_norms_[i]);
  }

  void load_scales(const Pack<T>& pack) {
    if (pack.scales == nullptr) return;
    for (index_t i = 0; i < s_.n; ++i) {
      Int scale{};
      for (index_t l = 0; l < pack.count; ++l)
        scale[l] = pack.scales[s_.is_masked ? i : l * s_.n + i];
      scales_[i] = scale;
    }
  }
  Int scale_of(const Pack<T>& pack, index_t i) const {
    return pack.scales == nullptr ? Int{} : scales_[i];
  }
  Int shift_of(const Pack<T>& pack, index_t j) const {
    Int shift{};
    if (pack.shifts == nullptr) return shift;
    for (index_t l = 0; l < pack.count; ++l) shift[l] = pack.shifts[l * s_.p + j];
    return shift;
  }

  /// Rounds x to the type in which it is stored, so that the check measures what the caller gets.
  /// Entry i of right side q of the group is x_[i group + q], times 2^-e, where e is the exponent
  /// of b.
  void find_solution(const Rules& rules, const Pack<T>& pack, Sides sides, index_t q) {
    if (!rules.is_given) {
      for (index_t i = 0; i < s_.n; ++i) y_[i] = columns_.r_at(i, s_.n + sides.first + q);
      triangle_.template solve_upper<1>(y_);
    }
    round_solution(rules, pack, sides, q);
  }
  /// y_ holds the solution, unless it is given.
  void round_solution(const Rules& rules, const Pack<T>& pack, Sides sides, index_t q) {
    const index_t j = sides.first + q;
    const Int e = columns_.exponent(s_.n + j), shift = shift_of(pack, j);
    Int is_bad = condition_.needs_care() | is_beyond(e, most_exponent);
    V largest{}, squares{};
    Int is_beyond_type{};
    for (index_t i = 0; i < s_.n; ++i) {
      const Int of_x = shift - scale_of(pack, i);
      const Int up = e - columns_.exponent(i) + of_x, down = -of_x - e;
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
      const V relative = down_x * condition_.size(i);
      squares += relative * relative;
    }
    is_bad |= is_beyond_type | ((largest < least_solution) & (largest > 0));
    solution_norm_[q] = square_roots(squares);
    is_bad_[q] = is_bad;
  }

  /// x := x + R^-1 R^-T g for the gradient g of x.
  void correct(const Rules& rules, const Pack<T>& pack, Sides sides) {
    for (index_t q = 0; q < sides.count; ++q) {
      for (index_t i = 0; i < s_.n; ++i)
        y_[i] = residuals_.gradient(i, q) * power(-columns_.exponent(i));
      triangle_.template solve_upper_transposed<1>(y_);
      triangle_.template solve_upper<1>(y_);
      for (index_t i = 0; i < s_.n; ++i) y_[i] += x_[i * group + q] * power(columns_.exponent(i));
      round_solution(rules, pack, sides, q);
    }
    residuals_.find(pack, sides, x_, y_);
  }

  void judge_solution(const Rules& rules, const Pack<T>& pack, Sides sides, index_t q) {
    const index_t j = sides.first + q;
    const auto& found = residuals_.squares(q);
    const V r = square_roots(found.r), b = square_roots(found.b), norm = condition_.norm();
    V squares{};
    for (index_t i = 0; i < s_.n; ++i) {
      V& g = residuals_.gradient(i, q);
      g *= power_inverse(condition_.size(i));
      squares += g * g;
    }
    const V g = square_roots(squares), ax = norm * solution_norm_[q];
    const V size = square_roots(ax * ax + b * b), e = r / size;
    const Int is_exact = (r == 0) | (g == 0);
    V error = smaller(g / (norm * r), e);
    const Int is_doubtful = ~(error <= rules.bar / 2) & ~is_exact;
    if (any(is_doubtful & ~is_bad_[q])) {
      // ||S^-T g||
      for (index_t i = 0; i < s_.n; ++i) y_[i] = residuals_.gradient(i, q) * condition_.unscale(i);
      triangle_.template solve_upper_transposed<1>(y_);
      V sum{};
      for (index_t i = 0; i < s_.n; ++i) sum += y_[i] * y_[i];
      error = is_doubtful ? smaller(e * square_roots(sum) / r, error) : error;
    }
    error = is_exact ? V{} : error;
    const Int needs_care = is_bad_[q] | ~(error <= rules.bar / 2);
    const Int up = columns_.exponent(s_.n + j) + masked_.exponent();
    const V residual = square_roots(found.data) * power(up);
    for (index_t l = 0; l < pack.count; ++l)
      pack.solutions[l * s_.p + j] = {residual[l], error[l], needs_care[l] != 0};
    if (pack.se != nullptr && rules.wants_se) store_errors(pack, j, r);
  }

  /// Stores the standard errors sigma ||row i of R^-1||.
  void store_errors(const Pack<T>& pack, index_t j, V r) const {
    V freedom = masked_.rows_used() - static_cast<double>(s_.n);
    for (index_t l = 0; l < pack.count && !s_.is_masked; ++l)
      freedom[l] = static_cast<double>(pack.rows_used[l] - s_.n);
    const V sigma = freedom > 0 ? r / square_roots(freedom) : broadcast(__builtin_nan(""));
    const Int e = columns_.exponent(s_.n + j) + shift_of(pack, j);
    for (index_t i = 0; i < s_.n; ++i) {
      const V error = sigma * row_norms_[i] * power(e - columns_.exponent(i) - scale_of(pack, i));
      for (index_t l = 0; l < pack.count; ++l)
        pack.se[(l * s_.p + j) * s_.n + i] = static_cast<T>(error[l]);
    }
  }

  const Shape s_;
  SystemColumns<T> columns_;
  Triangle<T> triangle_;
  Condition<T> condition_;
  NormalEquations<T> normal_;
  MaskedEquations<T> masked_;
  Residuals<T> residuals_;
  V *y_, *x_, *row_norms_;
  Int* scales_;  // of columns, where the pack has them
  Int is_bad_[group];
  V solution_norm_[group];
};

template <class T>
constexpr Routine<T> routine{Systems<T>::lanes, Systems<T>::workspace_bytes, Systems<T>::solve,
                             Systems<T>::take_factor};

}  // namespace

extern const Kernels QRTOOL_KERNELS(QRTOOL_TARGET){QRTOOL_NAME(QRTOOL_TARGET), routine<float>,
                                                   routine<double>};

}  // namespace qrtool::systems
