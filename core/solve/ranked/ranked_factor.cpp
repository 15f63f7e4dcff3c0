// SPDX-License-Identifier: Apache-2.0
// ranked_factor.cpp: decides the rank on pivoted R with scaled columns, and solves with it.
#include "core/solve/ranked/ranked_factor.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/solve/ranked/least_norm.hpp"
#include "core/solve/ranked/rows.hpp"
#include "core/solve/ranked/truncated_qr.hpp"
#include "core/solve/ranked/wide_least_norm.hpp"

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

/// Columns of norm 1 whose estimated condition is larger than this are dependent: entries of R are
/// then rounding errors of rounding errors, and their size means nothing.
constexpr double most_condition = 0x1p64;
/// The error of a column of N that was corrected in twice the precision, relative to its norm.
constexpr double error_of_products = 4 * std::numeric_limits<double>::epsilon();
/// The largest condition of U up to which [U V] is factored if rows are dependent. Beyond it x of
/// 64x64 had up to 2.3 times the bar of the least norm.
constexpr double most_wide_condition = 1e4;
double infinite_beyond(double scaled_condition, double condition) {
  return scaled_condition <= most_condition ? condition : std::numeric_limits<double>::infinity();
}

template <class S>
MatrixView<S> column(std::vector<S>& c) {
  return {c.data(), std::ssize(c), 1, 1};
}

}  // namespace

/// S P = Q2 [U V; 0 W] for S = R D^-1.
template <class S>
struct RankedFactor<S>::Complete {
  using Matrix = typename TruncatedQr<S>::Matrix;

  TruncatedQr<S> pivoted;
  Batch<S> u = {}, v = {};  // rank x rank, rank x others
  Matrix n = {};            // N = U^-1 V, rank x others, once it is needed
  /// Set, and computed from N, if there are fewer others than the rank, or if rows are dependent
  /// and U is ill-conditioned. Otherwise `wide` is set, from [U V].
  std::optional<LeastNorm<S>> least_norm = {};
  std::vector<double> norms_of_n = {};  // of its columns
  std::optional<WideLeastNorm<S>> wide = {};
  /// The Cholesky factor of I + N^H N, or of I + N N^H if that is smaller, once it is needed: it
  /// gives the part of a vector in the null space of [I N], which [-N; I] spans.
  Batch<S> gram = {};

  void find_dependencies() {
    if (n.size() > 0) return;
    const MatrixView<S> right = v.view()[0];
    const Batch<S> memory(1, rank(), right.cols);
    const MatrixView<S> solved = memory.view()[0];
    std::copy_n(right.data, rank() * right.cols, solved.data);
    solve_upper(u.view()[0], solved);
    n = Matrix(rank(), right.cols);
    for (index_t i = 0; i < rank(); ++i)
      for (index_t j = 0; j < right.cols; ++j) n(i, j) = solved(i, j);
  }
  void use_dependencies(const std::vector<int>& sizes, double error) {
    find_dependencies();
    least_norm.emplace(n, error, permuted(sizes));
    norms_of_n.resize(static_cast<std::size_t>(n.cols()));
    for (index_t j = 0; j < n.cols(); ++j) norms_of_n[j] = norm_of(n.col(j).data(), rank());
  }
  /// Prepares for x of least norm. condition: the condition of U, by which the errors of N grow.
  void prepare(const std::vector<int>& sizes, double condition, bool has_all_rows) {
    const MatrixView<S> left = u.view()[0], right = v.view()[0];
    const bool is_hard = !has_all_rows && condition > most_wide_condition;
    if (is_hard || right.cols < rank()) {
      use_dependencies(sizes, error_of_products * condition);
      return;
    }
    Matrix adjoint = Matrix::Zero(rank() + right.cols, rank());
    for (index_t i = 0; i < rank(); ++i) {
      for (index_t j = i; j < rank(); ++j) adjoint(j, i) = conjugate(left(i, j));
      for (index_t j = 0; j < right.cols; ++j) adjoint(rank() + j, i) = conjugate(right(i, j));
    }
    wide.emplace(adjoint, permuted(sizes));
  }
  /// Returns [U V] [y; t].
  std::vector<S> product_with(const std::vector<S>& y, const std::vector<S>& t) const {
    const MatrixView<S> left = u.view()[0], right = v.view()[0];
    std::vector<S> c(y.size());
    for (index_t i = 0; i < rank(); ++i)
      c[i] = dot(&left(i, i), &y[i], rank() - i) + dot(&right(i, 0), t.data(), right.cols);
    return c;
  }

  bool has_few() const { return n.cols() <= n.rows(); }
  void form_gram() {
    if (gram.view().rows > 0) return;
    find_dependencies();
    const index_t rows = std::min(n.rows(), n.cols());
    gram = Batch<S>(1, rows, rows);
    const MatrixView<S> c = gram.view()[0];
    const Matrix columns = has_few() ? n : Matrix(n.adjoint());
    for (index_t i = 0; i < rows; ++i)
      for (index_t j = i; j < rows; ++j)
        c(i, j) = S(i == j ? 1.0 : 0.0) +
                  conjugate_dot(columns.col(i).data(), columns.col(j).data(), columns.rows());
    for (index_t i = 0; i < rows; ++i) {
      const double pivot = std::sqrt(real_part(c(i, i)));
      for (index_t j = i; j < rows; ++j) c(i, j) /= pivot;
      for (index_t k = i + 1; k < rows; ++k)
        subtract(&c(k, k), conjugate(c(i, k)), &c(i, k), rows - k);
    }
  }
  void solve_gram(std::vector<S>& c) const {
    solve_upper_adjoint(gram.view()[0], column(c));
    solve_upper(gram.view()[0], column(c));
  }
  /// Returns N t.
  std::vector<S> dependent(const std::vector<S>& t) const {
    std::vector<S> y(static_cast<std::size_t>(rank()), S(0));
    for (index_t j = 0; j < std::ssize(t); ++j) subtract(y.data(), -t[j], n.col(j).data(), rank());
    return y;
  }
  std::vector<S> adjoint_dependent(const std::vector<S>& y) const {
    std::vector<S> t(static_cast<std::size_t>(n.cols()));
    for (index_t j = 0; j < n.cols(); ++j) t[j] = conjugate_dot(n.col(j).data(), y.data(), rank());
    return t;
  }
  /// Returns t - N^H y. With many others N^H y is found by U and V, as x of least norm is.
  std::vector<S> outside(const std::vector<S>& y, std::vector<S> t) const {
    if (wide) {
      std::vector<S> w = y;
      solve_u_adjoint(w);
      for (index_t i = 0; i < rank(); ++i)
        subtract_conjugate(t.data(), w[i], &v.view()[0](i, 0), std::ssize(t));
    } else {
      const std::vector<S> of_y = adjoint_dependent(y);
      subtract(t.data(), S(1), of_y.data(), std::ssize(t));
    }
    return t;
  }
  /// Returns the c for which [-N; I] c is the part of [y; t] in its range, for c = outside(y, t).
  std::vector<S> part_in_null_space(std::vector<S> c) {
    form_gram();
    if (has_few()) {
      solve_gram(c);
      return c;
    }
    std::vector<S> h = dependent(c);
    solve_gram(h);
    const std::vector<S> less = adjoint_dependent(h);
    subtract(c.data(), S(1), less.data(), std::ssize(c));
    return c;
  }

  index_t rank() const { return u.view().rows; }
  std::size_t place(index_t i) const { return static_cast<std::size_t>(pivoted.permutation()[i]); }
  void solve_u(std::vector<S>& c) const { solve_upper(u.view()[0], column(c)); }
  void solve_u_adjoint(std::vector<S>& c) const { solve_upper_adjoint(u.view()[0], column(c)); }

  /// Returns the entries of the independent columns, and of the others.
  std::vector<S> basic_part(const std::vector<S>& x) const {
    std::vector<S> y(static_cast<std::size_t>(rank()));
    for (index_t i = 0; i < rank(); ++i) y[i] = x[place(i)];
    return y;
  }
  std::vector<S> free_part(const std::vector<S>& x) const {
    std::vector<S> t(x.size() - static_cast<std::size_t>(rank()));
    for (index_t i = 0; i < std::ssize(t); ++i) t[i] = x[place(rank() + i)];
    return t;
  }
  /// Returns P [y - N t; t].
  std::vector<S> combined(std::vector<S> y, const std::vector<S>& t) const {
    std::vector<S> x(pivoted.permutation().size());
    const std::vector<S> of_t = dependent(t);
    subtract(y.data(), S(1), of_t.data(), rank());
    for (index_t j = 0; j < std::ssize(t); ++j) x[place(rank() + j)] = t[j];
    for (index_t i = 0; i < rank(); ++i) x[place(i)] = y[i];
    return x;
  }
  /// Returns P [y - N t; t] for the solution [.; t] of least norm. An entry of y - N t that differs
  /// from the least-norm solution only by rounding errors of y and N is replaced by it: y - N t
  /// keeps A x, but cancels.
  std::vector<S> merged(const std::vector<S>& y, const std::vector<S>& least) const {
    const std::vector<S> t(least.begin() + rank(), least.end());
    double size = norm_of(y.data(), rank());
    for (index_t j = 0; j < std::ssize(t); ++j) size += std::abs(t[j]) * norms_of_n[j];
    std::vector<S> x = combined(y, t);
    for (index_t i = 0; i < rank(); ++i) {
      S& entry = x[place(i)];
      if (std::abs(entry - least[i]) <= 8 * std::numeric_limits<double>::epsilon() * size)
        entry = least[i];
    }
    return x;
  }
  /// Returns P x.
  std::vector<S> in_place(const std::vector<S>& x) const {
    std::vector<S> to(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) to[place(static_cast<index_t>(i))] = x[i];
    return to;
  }
  std::vector<int> permuted(const std::vector<int>& sizes) const {
    std::vector<int> to(sizes.size());
    for (std::size_t i = 0; i < to.size(); ++i) to[i] = sizes[place(static_cast<index_t>(i))];
    return to;
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

/// Finds for each column j the e_j with its norm in [2^(e_j - 1), 2^e_j), and divides R by them.
template <class S>
void RankedFactor<S>::take_columns(MatrixView<const S> r, std::span<const int> scales) {
  const index_t n = r.cols;
  exponents_.assign(static_cast<std::size_t>(n), 0);
  sizes_.assign(scales.begin(), scales.end());
  sizes_.resize(exponents_.size());
  if (scaled_.view().rows != r.rows || scaled_.view().cols != n) scaled_ = Batch<S>(1, r.rows, n);
  const MatrixView<S> to = scaled_.view()[0];
  for (index_t j = 0; j < n && r.rows > 0; ++j) {
    const index_t length = std::min(j + 1, r.rows);
    std::frexp(norm_of(&r(0, j), length, r.ld), &exponents_[j]);
    sizes_[j] += exponents_[j];
    for (index_t i = 0; i < r.rows; ++i) {
      const S entry = i < length ? r(i, j) : S(0);
      to(i, j) = exponents_[j] == 0 ? entry : scaled_by(entry, -exponents_[j]);
    }
  }
  r_ = to;
}

/// Estimates the condition of A in its own units: up to one power of two its columns are the
/// columns of r 2^scales.
template <class S>
void RankedFactor<S>::find_condition(MatrixView<const S> r, std::span<const int> scales) {
  const bool is_even =
      std::ranges::all_of(scales, [&](int scale) { return scale == scales.front(); });
  if (is_even) {
    condition_ = estimate_singular_values(r).condition();
    return;
  }
  const int most = *std::ranges::max_element(sizes_);
  const Batch<S> memory(1, r.rows, r.cols);
  const MatrixView<S> of_a = memory.view()[0];
  // An entry that is too small for float64 is negligible beside the largest column.
  for (index_t j = 0; j < r.cols; ++j) {
    const double factor = std::ldexp(1.0, sizes_[j] - most);
    for (index_t i = 0; i <= j; ++i) of_a(i, j) = r_(i, j) * factor;
  }
  condition_ = estimate_singular_values<S>(of_a).condition();
}

template <class S>
void RankedFactor<S>::set(MatrixView<const S> r, const RankRule& rule,
                          std::span<const int> scales) {
  is_basic_ = rule.is_basic;
  complete_.reset();
  take_columns(r, scales);
  norm_ = frobenius(r_);
  rank_ = r.rows;
  dropped_norm_ = 0;
  condition_ = scaled_condition_ = std::numeric_limits<double>::infinity();
  if (r.cols == 0) return;
  if (r.rows == 0) {
    complete_ = std::make_unique<Complete>(Complete{TruncatedQr<S>({}, 0, false)});
    return;
  }
  if (r.rows < r.cols) {
    decompose(rule);
    return;
  }
  find_condition(r, scales);
  const SingularValues values = estimate_singular_values<S>(r_);
  condition_ = infinite_beyond(values.condition(), condition_);
  scaled_condition_ = infinite_beyond(values.condition(), values.condition());
  if (!(values.smallest > rank_margin * rule.tolerance)) decompose(rule);
}

template <class S>
void RankedFactor<S>::decompose(const RankRule& rule) {
  using Matrix = typename TruncatedQr<S>::Matrix;
  Matrix copy(r_.rows, r_.cols);
  for (index_t i = 0; i < r_.rows; ++i)
    for (index_t j = 0; j < r_.cols; ++j) copy(i, j) = r_(i, j);
  // The condition of a wide matrix needs the last diagonal entry.
  const bool is_wide = r_.rows < r_.cols;
  complete_ = std::make_unique<Complete>(
      Complete{TruncatedQr<S>(std::move(copy), rule.tolerance, is_wide)});
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
  complete_->u = Batch<S>(1, rank_, rank_);
  const MatrixView<S> u = complete_->u.view()[0];
  complete_->v = Batch<S>(1, rank_, r_.cols - rank_);
  const MatrixView<S> v = complete_->v.view()[0];
  std::vector<S> dropped;
  for (index_t j = 0; j < r_.cols; ++j)
    for (index_t i = 0; i < r_.rows; ++i) {
      if (i < rank_)
        (j < rank_ ? u(i, j) : v(i, j - rank_)) = t(i, j);
      else if (j >= rank_)
        dropped.push_back(t(i, j));
    }
  dropped_norm_ = norm_of(dropped.data(), std::ssize(dropped));
  if (is_basic_ || rank_ == 0) return;
  // The solution with U has errors of its condition, which the diagonal estimates.
  const double condition = std::abs(u(0, 0) / u(rank_ - 1, rank_ - 1));
  complete_->prepare(sizes_, condition, rank_ == r_.rows);
}

template <class S>
bool RankedFactor<S>::has_hard_basis(double least) const {
  if (!complete_ || rank_ == 0) return false;
  const MatrixView<S> u = complete_->u.view()[0];
  return !(std::abs(u(0, 0)) <= least * std::abs(u(rank_ - 1, rank_ - 1)));
}

template <class S>
std::vector<S> RankedFactor<S>::times_sizes(std::vector<S> x) const {
  for (std::size_t j = 0; j < x.size(); ++j)
    if (exponents_[j] != 0) x[j] = scaled_by(x[j], exponents_[j]);
  return x;
}
template <class S>
std::vector<S> RankedFactor<S>::over_sizes(std::vector<S> g) const {
  for (std::size_t j = 0; j < g.size(); ++j)
    if (exponents_[j] != 0) g[j] = scaled_by(g[j], -exponents_[j]);
  return g;
}

/// Returns (Q2^H z)[:rank].
template <class S>
std::vector<S> RankedFactor<S>::reduced(MatrixView<const S> z) const {
  typename TruncatedQr<S>::Vector c(r_.rows);
  for (index_t i = 0; i < r_.rows; ++i) c(i) = z(i, 0);
  complete_->pivoted.apply_adjoint(c);
  return {c.data(), c.data() + rank_};
}

template <class S>
std::vector<S> RankedFactor<S>::basic_solution(MatrixView<const S> z) const {
  if (rank_ == 0) return std::vector<S>(exponents_.size(), S(0));
  std::vector<S> y = reduced(z);
  complete_->solve_u(y);
  return over_sizes(complete_->combined(std::move(y), {}));
}

template <class S>
void RankedFactor<S>::solve(MatrixView<const S> z, MatrixView<S> x) const {
  const index_t k = r_.rows;
  if (!complete_) {
    for (index_t i = 0; i < k; ++i) std::copy_n(&z(i, 0), x.cols, &x(i, 0));
    solve_upper(r_, x);
    for (index_t i = 0; i < k; ++i)
      for (index_t j = 0; exponents_[i] != 0 && j < x.cols; ++j)
        x(i, j) = scaled_by(x(i, j), -exponents_[i]);
    return;
  }
  for (index_t j = 0; j < x.cols; ++j) {
    const MatrixView<const S> right{z.data + j, k, 1, z.ld};
    std::vector<S> solution;
    if (complete_->wide) {
      solution = wide_solution(reduced(right));
    } else {
      solution = basic_solution(right);
      choose_among_equals(solution);
    }
    for (index_t i = 0; i < r_.cols; ++i) x(i, j) = solution[i];
  }
}

template <class S>
std::vector<S> RankedFactor<S>::wide_solution(const std::vector<S>& c) const {
  return over_sizes(complete_->in_place(complete_->wide->solution(c)));
}

template <class S>
void RankedFactor<S>::choose_among_equals(std::vector<S>& x, Choice choice) const {
  if (!has_least_norm() || rank_ == 0) return;
  const std::vector<S> scaled = times_sizes(x);
  std::vector<S> y = complete_->basic_part(scaled);
  if (complete_->wide) {
    x = wide_solution(complete_->product_with(y, complete_->free_part(scaled)));
    return;
  }
  const std::vector<S> of_others = complete_->dependent(complete_->free_part(scaled));
  subtract(y.data(), S(-1), of_others.data(), rank_);
  const std::vector<S> least = complete_->least_norm->solution(y);
  x = over_sizes(choice == Choice::fit ? complete_->merged(y, least) : complete_->in_place(least));
}

template <class S>
void RankedFactor<S>::correct_basic(std::vector<S>& g) const {
  if (rank_ == 0) {
    std::ranges::fill(g, S(0));
    return;
  }
  std::vector<S> y = complete_->basic_part(over_sizes(g));
  complete_->solve_u_adjoint(y);
  complete_->solve_u(y);
  g = over_sizes(complete_->combined(std::move(y), {}));
}

template <class S>
void RankedFactor<S>::correct(std::vector<S>& g, Choice choice) const {
  if (complete_ && complete_->wide) {
    std::vector<S> c = complete_->basic_part(over_sizes(g));
    complete_->solve_u_adjoint(c);
    g = wide_solution(c);
    return;
  }
  if (complete_) {
    correct_basic(g);
    choose_among_equals(g, choice);
    return;
  }
  g = over_sizes(g);
  solve_upper_adjoint(r_, column(g));
  solve_upper(r_, column(g));
  g = over_sizes(g);
}

template <class S>
void RankedFactor<S>::correct_dependencies(
    const std::function<std::vector<S>(const std::vector<S>& x)>& gradient) {
  if (!complete_ || rank_ == 0 || is_basic_) return;
  complete_->find_dependencies();
  auto& n = complete_->n;
  // The gradient of n_j - change, as U sees it.
  const auto seen = [&](index_t j, const std::vector<S>& change) {
    std::vector<S> t(static_cast<std::size_t>(n.cols()), S(0));
    t[j] = 1;
    std::vector<S> g =
        complete_->basic_part(over_sizes(gradient(over_sizes(complete_->combined(change, t)))));
    complete_->solve_u_adjoint(g);
    return g;
  };
  for (index_t j = 0; j < n.cols(); ++j) {
    const std::vector<S> none(static_cast<std::size_t>(rank_), S(0));
    std::vector<S> d = seen(j, none);
    const double before = norm_of(d.data(), rank_);
    complete_->solve_u(d);
    const std::vector<S> after = seen(j, d);
    if (!(norm_of(after.data(), rank_) < before)) continue;
    for (index_t i = 0; i < rank_; ++i) n(i, j) -= d[i];
  }
  complete_->gram = {};
  complete_->wide.reset();
  complete_->use_dependencies(sizes_, error_of_products);
}

template <class S>
double RankedFactor<S>::adjoint_solution_norm(const std::vector<S>& g) const {
  if (complete_) return std::numeric_limits<double>::infinity();
  std::vector<S> scaled = over_sizes(g);
  solve_upper_adjoint(r_, column(scaled));
  return norm_of(scaled.data(), r_.cols);
}

template <class S>
std::vector<double> RankedFactor<S>::inverse_row_norms() const {
  std::vector<double> norms = qrtool::inverse_row_norms(r_);
  for (std::size_t j = 0; j < norms.size(); ++j) norms[j] = std::ldexp(norms[j], -exponents_[j]);
  return norms;
}

/// x has the least norm if v = D^-1 x = (A D^-1)^H w for the sizes D. If a part of v is left, a
/// change of A D^-1 of rank one makes w fit.
template <class S>
double RankedFactor<S>::least_norm_error(const S* x, double clear) const {
  if (!has_least_norm()) return 0;
  // The error does not depend on the scale of x, whose entries may leave the range.
  std::vector<int> exponents(exponents_.size());
  int most = std::numeric_limits<int>::min();
  for (std::size_t j = 0; j < exponents.size(); ++j) {
    const double size = std::abs(x[j]);
    if (!(size > 0)) continue;
    std::frexp(size, &exponents[j]);
    most = std::max(most, exponents[j] + exponents_[j] - 2 * sizes_[j]);
  }
  const bool is_zero = std::all_of(x, x + r_.cols, [](S each) { return each == S(0); });
  if (is_zero || rank_ == 0) return is_zero ? 0 : std::numeric_limits<double>::infinity();
  std::vector<S> v(exponents.size());
  for (std::size_t j = 0; j < v.size(); ++j)
    v[j] = scaled_by(x[j], std::max(exponents_[j] - 2 * sizes_[j] - most, -(1 << 14)));
  const std::vector<S> basic = complete_->basic_part(v);
  const auto error_of = [&](double left, std::vector<S> w) {
    complete_->solve_u_adjoint(w);
    return left / (norm_ * norm_of(w.data(), rank_));
  };
  // Any w bounds the error.
  const std::vector<S> outside = complete_->outside(basic, complete_->free_part(v));
  const double bound = error_of(norm_of(outside.data(), std::ssize(outside)), basic);
  if (bound <= clear) return bound;
  const std::vector<S> c = complete_->part_in_null_space(outside);
  const std::vector<S> of_c = complete_->dependent(c);
  std::vector<S> w = basic;
  subtract(w.data(), S(-1), of_c.data(), rank_);
  return error_of(std::hypot(norm_of(c.data(), std::ssize(c)), norm_of(of_c.data(), rank_)),
                  std::move(w));
}

template class RankedFactor<double>;
template class RankedFactor<std::complex<double>>;

}  // namespace qrtool
