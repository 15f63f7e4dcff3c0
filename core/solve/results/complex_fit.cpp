// SPDX-License-Identifier: Apache-2.0
// complex_fit.cpp: fitted values, residuals and R^2 of complex systems, row after row.
#include <algorithm>
#include <cmath>
#include <optional>

#include "core/machine/parallel.hpp"
#include "core/solve/results/fit.hpp"

namespace qrtool {
namespace {

/// Scales stay powers of two in the range of float64.
constexpr int most_exponent = 1000;
int limited(int exponent) { return std::clamp(exponent, -most_exponent, most_exponent); }

/// Returns x rounded to type P. It is a function that is not inlined, because GCC 12 at -O2 drops
/// the rounding of two neighbours that go to float32 and back: it makes one vector of them.
template <class P>
[[gnu::noinline]] double rounded(double x) {
  return static_cast<P>(x);
}

/// The same of a complex number, of type Out.
template <class Out>
std::complex<double> rounded_parts(std::complex<double> x) {
  return {rounded<Real<Out>>(x.real()), rounded<Real<Out>>(x.imag())};
}

/// Adds the squared distance between a given number and the number that it must be, in a row of
/// weight w.
void add_apart(double& squares, double w, std::complex<double> given, std::complex<double> own) {
  if (w > 0) squares += w * square_of(given - own);
  if (is_nan(own) && !is_nan(given)) squares = HUGE_VAL;
}

}  // namespace

/// One right side and its sums, of data that are multiplied by powers of two: the exponents bring
/// the largest parts of A and b, with their weights, to about 1.
template <class R>
struct FitEngine<std::complex<R>>::Side {
  MatrixView<const T> a;
  const T* b;
  index_t start, step;          // of its places in B
  std::vector<double> weights;  // 0 where a row does not count
  std::vector<char> is_missing;
  std::vector<S> x, gradient;
  std::vector<double> columns;
  fit::Sums sums = {};
  int exponent_of_a = 0, exponent_of_b = 0;

  S right(index_t i) const { return static_cast<S>(b[start + i * step]); }
};

template <class R>
std::size_t FitEngine<std::complex<R>>::workspace_bytes(const SolveProblem& problem,
                                                        const FitWishes&, int threads) {
  const index_t numbers = problem.m * 2 + problem.n * 5;
  return static_cast<std::size_t>(threads) * static_cast<std::size_t>(numbers) * sizeof(double);
}

template <class R>
auto FitEngine<std::complex<R>>::side_of(const FitBlock<T>& block, index_t s) const -> Side {
  const VectorPlaces &of_b = block.sides.b_places, &of_x = block.sides.x_places,
                     &of_w = block.sides.w_places;
  const T* const a = block.a[static_cast<std::size_t>(s / block.group_size)];
  const auto m = static_cast<std::size_t>(problem_.m), n = static_cast<std::size_t>(problem_.n);
  Side side{.a = {a, problem_.m, problem_.n, problem_.n},
            .b = block.sides.b,
            .start = of_b.start(s),
            .step = of_b.step,
            .weights = std::vector<double>(m, 1.0),
            .is_missing = std::vector<char>(m),
            .x = std::vector<S>(n),
            .gradient = std::vector<S>(n),
            .columns = std::vector<double>(n)};
  for (index_t j = 0; j < problem_.n; ++j)
    side.x[j] = static_cast<S>(block.sides.x[of_x.start(s) + j * of_x.step]);
  for (index_t i = 0; i < problem_.m && block.sides.w != nullptr; ++i)
    side.weights[i] = static_cast<double>(block.sides.w[of_w.start(s) + i * of_w.step]);
  return side;
}

/// A row of A that is not finite does not count. If its weight is not 0, x is NaN unless missing
/// rows are skipped.
template <class R>
void FitEngine<std::complex<R>>::find_weights(Side& side) const {
  const bool needs_a = wishes_.any() || problem_.skips_missing;
  for (index_t i = 0; i < problem_.m; ++i) {
    const T* const row = side.a.data + i * side.a.ld;
    side.is_missing[i] =
        needs_a && !std::all_of(row, row + problem_.n, [](T x) { return is_finite(x); });
    if (side.is_missing[i] || (problem_.skips_missing && is_nan(side.right(i))))
      side.weights[i] = 0;
  }
}

/// Finds the exponents and scales x.
template <class R>
void FitEngine<std::complex<R>>::scale(Side& side) const {
  fit::Spread& spread = side.sums.b;
  double largest_a = 0;
  for (index_t i = 0; i < problem_.m; ++i) {
    if (side.weights[i] == 0) continue;
    spread.weight += side.weights[i];
    for (const double part : {side.right(i).real(), side.right(i).imag()}) {
      spread.least = std::min(spread.least, part);
      spread.most = std::max(spread.most, part);
    }
    for (index_t j = 0; j < problem_.n && wishes_.any(); ++j)
      largest_a = std::max({largest_a, std::abs(static_cast<double>(side.a(i, j).real())),
                            std::abs(static_cast<double>(side.a(i, j).imag()))});
  }
  side.exponent_of_b = limited(exponent_into_range(spread).value_or(0));
  if (largest_a > 0)
    side.exponent_of_a = limited(-std::ilogb(largest_a) - std::ilogb(spread.weight) / 2);
  for (S& xj : side.x) xj = scaled_by(xj, side.exponent_of_b - side.exponent_of_a);
}

/// Sums |b - mean|^2 for R^2 with an intercept; exactly 0 if b is constant.
template <class R>
void FitEngine<std::complex<R>>::spread_around_mean(Side& side) const {
  fit::Spread& spread = side.sums.b;
  const auto for_rows = [&](auto use) {
    for (index_t i = 0; i < problem_.m; ++i)
      if (side.weights[i] > 0) use(side.weights[i], scaled_by(side.right(i), side.exponent_of_b));
  };
  std::optional<S> first;
  for_rows([&](double, S b) { first = first.value_or(b); });
  // Differences from one of the values lose nothing if the mean is far from 0.
  S sum = 0;
  for_rows([&](double w, S b) { sum += w * (b - *first); });
  const S mean = sum / spread.weight;
  spread.squares = 0;
  for_rows([&](double w, S b) { spread.squares += w * square_of(b - *first - mean); });
}

template <class R>
template <class Out>
void FitEngine<std::complex<R>>::add_rows(const FitBlock<T>& block, Side& side) const {
  auto* const fitted = static_cast<Out*>(block.fitted);
  auto* const residuals = static_cast<Out*>(block.residuals);
  const auto* const given_fitted = static_cast<const Out*>(block.given_fitted);
  const auto* const given = static_cast<const Out*>(block.given_residuals);
  const bool is_stored = residuals != nullptr || given != nullptr;
  const auto scaled = [&side](S number) { return scaled_by(number, side.exponent_of_b); };
  for (index_t i = 0; i < problem_.m; ++i) {
    const double w = side.weights[i];
    const S b = scaled_by(side.right(i), side.exponent_of_b);
    if (w > 0) side.sums.b.b_squares += w * square_of(b);
    if (!wishes_.any()) continue;
    S f = 0;
    for (index_t j = 0; j < problem_.n; ++j) {
      const S aij = scaled_by(static_cast<S>(side.a(i, j)), side.exponent_of_a);
      f += product(aij, side.x[j]);
    }
    if (side.is_missing[i]) f = not_a_number<S>();
    const index_t at = side.start + i * side.step;
    const S stored_f = rounded_parts<Out>(scaled_by(f, -side.exponent_of_b));
    if (fitted != nullptr) fitted[at] = static_cast<Out>(stored_f);
    if (given_fitted != nullptr)
      add_apart(side.sums.fitted_apart_squares, w, scaled(static_cast<S>(given_fitted[at])),
                scaled(stored_f));
    S r = b - f;
    const S stored = rounded_parts<Out>(scaled_by(r, -side.exponent_of_b));
    if (residuals != nullptr) residuals[at] = static_cast<Out>(stored);
    if (is_stored) r = scaled(stored);
    if (given != nullptr) {
      const S other = scaled(static_cast<S>(given[at]));
      add_apart(side.sums.apart_squares, w, other, r);
      r = other;
    }
    if (!(w > 0)) continue;
    side.sums.r_squares += w * square_of(r);
    for (index_t j = 0; j < problem_.n; ++j) {
      const S aij = scaled_by(static_cast<S>(side.a(i, j)), side.exponent_of_a);
      side.gradient[j] += w * product(conjugate(aij), r);
      side.columns[j] += w * square_of(aij);
    }
  }
}

template <class R>
FitReport FitEngine<std::complex<R>>::fit(const FitBlock<T>& block, index_t s) const {
  Side side = side_of(block, s);
  find_weights(side);
  scale(side);
  if (problem_.has_intercept) spread_around_mean(side);
  if (real_of(wishes_.type) == ElementType::float32)
    add_rows<std::complex<float>>(block, side);
  else
    add_rows<std::complex<double>>(block, side);
  return judge_fit<S>(problem_, wishes_,
                      {side.sums,
                       side.gradient.data(),
                       side.columns.data(),
                       side.x.data(),
                       {std::ldexp(1.0, side.exponent_of_a), std::ldexp(1.0, side.exponent_of_b)}},
                      block.sides.reports[s]);
}

template <class R>
void FitEngine<std::complex<R>>::run(const FitBlock<T>& block) {
  parallel_for(block.sides.count, threads_,
               [&](index_t s, int) { block.reports[s] = fit(block, s); });
}

template class FitEngine<std::complex<float>>;
template class FitEngine<std::complex<double>>;

}  // namespace qrtool
