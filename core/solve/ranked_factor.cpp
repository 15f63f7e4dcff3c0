// SPDX-License-Identifier: Apache-2.0
// ranked_factor.cpp: decides the rank on pivoted R with scaled columns, and solves with it.
#include "core/solve/ranked_factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/solve/rows.hpp"
#include "core/solve/truncated_qr.hpp"

namespace qrtool {
namespace {

template <class S>
double frobenius(MatrixView<const S> r) {
  double sum = 0;
  for (index_t i = 0; i < r.rows; ++i) {
    for (index_t j = i; j < r.cols; ++j) sum += square_of(r(i, j));
  }
  return std::sqrt(sum);
}

/// Returns the e with the largest size of an entry of v in [2^(e - 1), 2^e), and 0 for a vector of
/// zeros.
template <class S>
int exponent_of(const std::vector<S>& v) {
  double largest = 0;
  for (const S& x : v) largest = std::max(largest, std::abs(x));
  int exponent = 0;
  std::frexp(largest, &exponent);
  return exponent;
}

/// Columns of norm 1 whose condition looks larger than this are dependent: R holds rounding errors
/// of rounding errors there, whose size says nothing.
constexpr double most_condition = 0x1p64;
double infinite_beyond(double scaled_condition, double condition) {
  return scaled_condition <= most_condition ? condition : std::numeric_limits<double>::infinity();
}

/// v := v 2^exponent.
template <class S>
void scale(std::vector<S>& v, int exponent) {
  for (S& x : v) x = scaled_by(x, exponent);
}

}  // namespace

/// The complete orthogonal decomposition S P = Q T Z, or for basic solutions its first half, S P =
/// Q T.
template <class S>
struct RankedFactor<S>::Complete {
  TruncatedQr<S> pivoted;  // of R D^-1
  Batch<S> u;              // U: T Z = [U 0]; for basic solutions the leading block of T
  /// The reflectors H of Z^H, one for each row of T: their entries after the first, which belong to
  /// the columns past the rank. No rows for basic solutions.
  Batch<S> tails;
  std::vector<S> coefficients;

  /// Turns T = [U right] into [U 0]: one row after another, from the last one (LAPACK tzrzf).
  void turn(MatrixView<S> right) {
    const MatrixView<S> upper = u.view()[0];
    const index_t rank = upper.rows, left = right.cols;
    tails = Batch<S>(1, rank, left);
    coefficients.assign(static_cast<std::size_t>(rank), S(0));
    std::vector<S> row(static_cast<std::size_t>(1 + left));
    for (index_t i = rank; i-- > 0;) {
      row[0] = conjugate(upper(i, i));
      for (index_t j = 0; j < left; ++j) row[j + 1] = conjugate(right(i, j));
      // Columns of very different size leave rows whose squares are no numbers of float64.
      const int exponent = exponent_of(row);
      scale(row, -exponent);
      const Reflector<S> reflector = make_reflector(row.data(), std::ssize(row));
      const S* const tail = row.data() + 1;
      std::copy_n(tail, left, &tails.view()[0](i, 0));
      coefficients[i] = reflector.c;
      upper(i, i) = std::ldexp(reflector.beta, exponent);
      for (index_t k = 0; k < i; ++k) {
        S* const other = &right(k, 0);
        const S sum = product(conjugate(reflector.c), upper(k, i) + dot(other, tail, left));
        upper(k, i) -= sum;
        subtract_conjugate(other, sum, tail, left);
      }
    }
  }
  /// P Z [y; 0].
  std::vector<S> expand(const std::vector<S>& y) const {
    const auto n = static_cast<std::size_t>(pivoted.permutation().size());
    std::vector<S> turned = y;
    turned.resize(n);
    for (std::size_t i = 0; i < coefficients.size(); ++i)
      reflect(turned, i, conjugate(coefficients[i]));
    std::vector<S> x(n);
    for (std::size_t i = 0; i < n; ++i) x[place(i)] = turned[i];
    return x;
  }
  /// (Z^H P'x)[:rank].
  std::vector<S> project(const S* x) const {
    std::vector<S> turned(static_cast<std::size_t>(pivoted.permutation().size()));
    for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = x[place(i)];
    for (std::size_t i = coefficients.size(); i-- > 0;) reflect(turned, i, coefficients[i]);
    turned.resize(static_cast<std::size_t>(u.view().rows));
    return turned;
  }
  void solve_u(std::vector<S>& c) const { solve_upper(u.view()[0], column(c)); }
  void solve_u_adjoint(std::vector<S>& c) const { solve_upper_adjoint(u.view()[0], column(c)); }

 private:
  static MatrixView<S> column(std::vector<S>& c) { return {c.data(), std::ssize(c), 1, 1}; }
  std::size_t place(std::size_t i) const {
    return static_cast<std::size_t>(pivoted.permutation()[i]);
  }
  /// v := H v, or H^H v with the conjugate of the coefficient.
  void reflect(std::vector<S>& v, std::size_t i, S coefficient) const {
    const MatrixView<S> all = tails.view()[0];
    const S* const tail = &all(static_cast<index_t>(i), 0);
    S* const rest = v.data() + all.rows;
    apply_reflector(v[i], rest, coefficient, tail, all.cols);
  }
};

template <class S>
RankedFactor<S>::RankedFactor() = default;
template <class S>
RankedFactor<S>::~RankedFactor() = default;
template <class S>
RankedFactor<S>::RankedFactor(RankedFactor&&) noexcept = default;

double default_rank_tolerance(ElementType type, index_t n) {
  const double u = real_of(type) == ElementType::float32 ? 0x1p-23 : 0x1p-52;
  return u * std::max(16.0, 2 * static_cast<double>(n));
}

/// Returns, for each column j, the e_j with its norm in [2^(e_j - 1), 2^e_j).
template <class S>
std::vector<int> RankedFactor<S>::column_exponents() const {
  std::vector<int> exponents(static_cast<std::size_t>(r_.cols));
  for (index_t j = 0; j < r_.cols; ++j) {
    if (r_.rows == 0) continue;
    std::frexp(norm_of(&r_(0, j), std::min(j + 1, r_.rows), r_.ld), &exponents[j]);
  }
  return exponents;
}

template <class S>
void RankedFactor<S>::set(MatrixView<const S> r, const RankRule& rule) {
  r_ = r;
  is_basic_ = rule.is_basic;
  complete_.reset();
  norm_ = frobenius(r);
  rank_ = r.rows;
  dropped_norm_ = 0;
  condition_ = scaled_condition_ = std::numeric_limits<double>::infinity();
  if (r.cols == 0) return;
  if (r.rows == 0) {
    complete_ = std::make_unique<Complete>(Complete{TruncatedQr<S>({}, 0, false), {}, {}, {}});
    return;
  }
  const std::vector<int> exponents = column_exponents();
  if (r.rows < r.cols) {
    decompose(exponents, rule);
    return;
  }
  condition_ = estimate_singular_values(r).condition();
  const Batch<S> copy(1, r.cols, r.cols);
  const MatrixView<S> scaled = copy.view()[0];
  for (index_t i = 0; i < r.cols; ++i)
    for (index_t j = i; j < r.cols; ++j) scaled(i, j) = scaled_by(r(i, j), -exponents[j]);
  const SingularValues values = estimate_singular_values<S>(scaled);
  condition_ = infinite_beyond(values.condition(), condition_);
  scaled_condition_ = infinite_beyond(values.condition(), values.condition());
  if (!(values.smallest > rank_margin * rule.tolerance)) decompose(exponents, rule);
}

template <class S>
void RankedFactor<S>::decompose(const std::vector<int>& exponents, const RankRule& rule) {
  using Matrix = typename TruncatedQr<S>::Matrix;
  Matrix scaled = Matrix::Zero(r_.rows, r_.cols);
  for (index_t i = 0; i < r_.rows; ++i)
    for (index_t j = i; j < r_.cols; ++j) scaled(i, j) = scaled_by(r_(i, j), -exponents[j]);
  // The condition of a wide matrix needs the last diagonal entry.
  const bool is_wide = r_.rows < r_.cols;
  complete_ = std::make_unique<Complete>(
      Complete{TruncatedQr<S>(std::move(scaled), rule.tolerance, is_wide), {}, {}, {}});
  rank_ = complete_->pivoted.rank();
  if (rank_ == r_.cols) {
    complete_.reset();
    return;
  }
  const Matrix t = complete_->pivoted.r();
  if (is_wide && rank_ > 0) {
    const double condition = std::abs(t(0, 0) / t(r_.rows - 1, r_.rows - 1));
    condition_ = scaled_condition_ = infinite_beyond(condition, condition);
  }
  // T = [U right; 0 dropped], in the columns' own size.
  const auto& permuted = complete_->pivoted.permutation();
  complete_->u = Batch<S>(1, rank_, rank_);
  const MatrixView<S> u = complete_->u.view()[0];
  const Batch<S> memory(1, rank_, r_.cols - rank_);
  const MatrixView<S> right = memory.view()[0];
  std::vector<S> dropped;
  for (index_t j = 0; j < r_.cols; ++j)
    for (index_t i = 0; i < r_.rows; ++i) {
      const S entry = scaled_by(t(i, j), exponents[permuted[j]]);
      if (i < rank_)
        (j < rank_ ? u(i, j) : right(i, j - rank_)) = entry;
      else if (j >= rank_)
        dropped.push_back(entry);
    }
  dropped_norm_ = norm_of(dropped.data(), std::ssize(dropped));
  if (!is_basic_) complete_->turn(right);
}

template <class S>
void RankedFactor<S>::solve(MatrixView<const S> z, MatrixView<S> x) const {
  const index_t k = r_.rows;
  if (!complete_) {
    for (index_t i = 0; i < k; ++i) std::copy_n(&z(i, 0), x.cols, &x(i, 0));
    solve_upper(r_, x);
    return;
  }
  for (index_t j = 0; j < x.cols; ++j) {
    std::vector<S> solution(static_cast<std::size_t>(r_.cols));
    if (rank_ > 0) {
      typename TruncatedQr<S>::Vector c(k);
      for (index_t i = 0; i < k; ++i) c(i) = z(i, j);
      complete_->pivoted.apply_adjoint(c);
      std::vector<S> head(c.data(), c.data() + rank_);
      complete_->solve_u(head);
      solution = complete_->expand(head);
    }
    for (index_t i = 0; i < r_.cols; ++i) x(i, j) = solution[i];
  }
}

template <class S>
void RankedFactor<S>::correct(std::vector<S>& g) const {
  if (!complete_) {
    const MatrixView<S> x{g.data(), r_.cols, 1, 1};
    solve_upper_adjoint(r_, x);
    solve_upper(r_, x);
  } else if (rank_ == 0) {
    std::fill(g.begin(), g.end(), S(0));
  } else {
    std::vector<S> inner = complete_->project(g.data());
    complete_->solve_u_adjoint(inner);
    complete_->solve_u(inner);
    g = complete_->expand(inner);
  }
}

template <class S>
double RankedFactor<S>::adjoint_solution_norm(std::vector<S> g) const {
  if (complete_) return std::numeric_limits<double>::infinity();
  solve_upper_adjoint(r_, MatrixView<S>{g.data(), r_.cols, 1, 1});
  return norm_of(g.data(), r_.cols);
}

template <class S>
double RankedFactor<S>::least_norm_error(const S* x) const {
  if (!complete_) return 0;
  std::vector<S> solution(x, x + r_.cols);
  const bool is_zero = std::ranges::all_of(solution, [](S each) { return each == S(0); });
  if (is_zero || rank_ == 0) return is_zero ? 0 : std::numeric_limits<double>::infinity();
  // The error does not depend on the scale of x, whose squares may overflow.
  scale(solution, -exponent_of(solution));
  std::vector<S> w = complete_->project(solution.data());
  const std::vector<S> inside = complete_->expand(w);
  subtract(solution.data(), S(1), inside.data(), std::ssize(solution));
  complete_->solve_u_adjoint(w);
  return norm_of(solution.data(), std::ssize(solution)) /
         (norm_ * norm_of(w.data(), std::ssize(w)));
}

template class RankedFactor<double>;
template class RankedFactor<std::complex<double>>;

}  // namespace qrtool
