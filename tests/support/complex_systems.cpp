// SPDX-License-Identifier: Apache-2.0
// complex_systems.cpp: the bounds of Stewart and the estimate of Karlson and Walden
// (core/solve/backward_error.hpp), with R by the reference of the tests.
#include "tests/support/complex_systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/engines/shared_engine.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "tests/support/complex_reference.hpp"

namespace qrtool::test {
namespace {

using Entry = ComplexMatrix::Entry;
using Wide = long double;

Wide norm_of_entries(const std::vector<Entry>& x) {
  Wide largest = 0, sum = 0;
  for (const Entry& each : x)
    largest = std::max({largest, std::abs(each.real()), std::abs(each.imag())});
  if (largest == 0) return 0;
  for (const Entry& each : x) sum += std::norm(each / largest);
  return largest * std::sqrt(sum);
}

ComplexMatrix adjoint(const ComplexMatrix& a) {
  ComplexMatrix turned(a.cols, a.rows);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) turned(j, i) = std::conj(a(i, j));
  return turned;
}

std::vector<Entry> multiplied(const ComplexMatrix& a, const std::vector<Entry>& x) {
  std::vector<Entry> y(static_cast<std::size_t>(a.rows));
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) y[i] += a(i, j) * x[j];
  return y;
}

/// Brings the columns to norms from 1/2 to 1 by powers of two, and returns their exponents.
std::vector<int> scale_columns(ComplexMatrix& a) {
  std::vector<int> exponents(static_cast<std::size_t>(a.cols));
  for (index_t j = 0; j < a.cols; ++j) {
    std::vector<Entry> column;
    for (index_t i = 0; i < a.rows; ++i) column.push_back(a(i, j));
    std::frexp(norm_of_entries(column), &exponents[j]);
    for (index_t i = 0; i < a.rows; ++i) a(i, j) *= std::ldexp(Wide(1), -exponents[j]);
  }
  return exponents;
}
std::vector<Entry> times_powers(std::vector<Entry> x, const std::vector<int>& exponents, int sign) {
  for (std::size_t j = 0; j < x.size(); ++j) x[j] *= std::ldexp(Wide(1), sign * exponents[j]);
  return x;
}

/// The columns of A whose entries of x can be computed beside those of the largest column. Below,
/// D^-1 x underflows in float64, though x does not.
std::vector<index_t> columns_in_range(const std::vector<int>& exponents) {
  constexpr int most = 400;
  const int largest = *std::ranges::max_element(exponents);
  std::vector<index_t> columns;
  for (index_t j = 0; j < std::ssize(exponents); ++j)
    if (exponents[j] >= largest - most) columns.push_back(j);
  return columns;
}
ComplexMatrix columns_of(const ComplexMatrix& a, const std::vector<index_t>& columns) {
  ComplexMatrix to(a.rows, std::ssize(columns));
  for (index_t i = 0; i < to.rows; ++i)
    for (index_t j = 0; j < to.cols; ++j) to(i, j) = a(i, columns[j]);
  return to;
}

/// ||R^-H g|| for the upper triangle of the first columns of r.
Wide adjoint_solution_norm(const ComplexMatrix& r, std::vector<Entry> g) {
  for (index_t j = 0; j < r.cols; ++j) {
    for (index_t i = 0; i < j; ++i) g[j] -= std::conj(r(i, j)) * g[i];
    g[j] /= std::conj(r(j, j));
  }
  return norm_of_entries(g);
}

/// The smaller of two bounds, of which one may be NaN.
Wide least(Wide one, Wide other) { return std::isnan(other) ? one : std::min(one, other); }

/// The backward error of x for A, with columns of norm 1, and b: a bound where one is below the
/// bar, else the estimate.
Wide backward_error(const ComplexMatrix& a, const std::vector<Entry>& b,
                    const std::vector<Entry>& x, Wide bar) {
  std::vector<Entry> r = multiplied(a, x);
  for (index_t i = 0; i < a.rows; ++i) r[i] = b[i] - r[i];
  const std::vector<Entry> g = multiplied(adjoint(a), r);
  const Wide norm_a = norm_of_entries(a.entries), norm_r = norm_of_entries(r),
             norm_g = norm_of_entries(g);
  if (norm_r == 0 || norm_g == 0) return 0;
  const Wide e = norm_r / std::hypot(norm_a * norm_of_entries(x), norm_of_entries(b));
  Wide error = least(e, norm_g / (norm_a * norm_r));
  if (error <= bar / 2) return error;
  if (a.rows >= a.cols)
    error = least(error, e * adjoint_solution_norm(complex_reference_qr(a).r, g) / norm_r);
  if (error <= bar / 2) return error;
  ComplexMatrix stacked(a.rows + a.cols, a.cols);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) stacked(i, j) = a(i, j) / norm_a;
  for (index_t j = 0; j < a.cols; ++j) stacked(a.rows + j, j) = e;
  std::vector<Entry> scaled = g;
  for (Entry& each : scaled) each /= norm_a;
  return least(error, e / norm_r * adjoint_solution_norm(complex_reference_qr(stacked).r, scaled));
}

/// ||x - A^H w|| / (||A|| ||w||) for the best w; A (m x n) has m < n and full rank. 0 where A is
/// ill-conditioned: the reference then loses the small rows of A^H.
Wide least_norm_error(const ComplexMatrix& a, const std::vector<Entry>& x) {
  const ComplexReferenceQr qr = complex_reference_qr(adjoint(a));
  Wide largest = 0, smallest = HUGE_VALL;
  for (index_t i = 0; i < a.rows; ++i) {
    largest = std::max(largest, std::abs(qr.r(i, i)));
    smallest = std::min(smallest, std::abs(qr.r(i, i)));
  }
  if (!(smallest > 1e-8L * largest)) return 0;
  std::vector<Entry> w = multiplied(adjoint(qr.q), x), inside(x.size()), outside = x;
  for (index_t j = 0; j < a.cols; ++j)
    for (index_t i = 0; i < a.rows; ++i) outside[j] -= qr.q(j, i) * w[i];
  for (index_t i = a.rows; i-- > 0;) {
    for (index_t j = i + 1; j < a.rows; ++j) w[i] -= qr.r(i, j) * w[j];
    w[i] /= qr.r(i, i);
  }
  w.resize(static_cast<std::size_t>(a.rows));
  const Wide norm = norm_of_entries(w);
  return norm == 0 ? norm_of_entries(outside)
                   : norm_of_entries(outside) / (norm_of_entries(a.entries) * norm);
}

constexpr const char* side_kinds[] = {"gauss", "consistent", "zero", "small", "one row"};

template <class R>
void fill_side(const std::string& kind, std::mt19937_64& generator,
               MatrixView<const std::complex<R>> a, std::complex<R>* b) {
  std::normal_distribution<double> normal;
  const auto draw = [&] { return std::complex<double>(normal(generator), normal(generator)); };
  double largest = 0;
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j)
      largest = std::max(largest, std::abs(static_cast<double>(a(i, j).real())));
  std::vector<std::complex<double>> x(static_cast<std::size_t>(a.cols));
  for (auto& each : x) each = draw();
  for (index_t i = 0; i < a.rows; ++i) {
    std::complex<double> value = draw();
    if (kind == "consistent") {
      value = 0;
      for (index_t j = 0; j < a.cols; ++j) value += std::complex<double>(a(i, j)) * x[j];
    }
    if (kind == "zero" || (kind == "one row" && i > 0)) value = 0;
    if (kind == "small") value *= 1e-30 * largest;
    b[i] = std::complex<R>(value);
    if (!is_finite(b[i])) b[i] = 0;  // A x of large numbers
  }
}

/// Systems of one shape with p right sides each, and the answers.
template <class R>
struct ComplexSystems {
  using T = std::complex<R>;

  ComplexSystems(index_t matrices, index_t sides, index_t m, index_t n)
      : p(sides),
        a(matrices, m, n),
        b(matrices * sides, 1, m),
        x(matrices * sides, 1, n),
        reports(static_cast<std::size_t>(matrices * sides)),
        findings(reports.size()) {}
  RightSideBlock<T> block() {
    const BatchView<T> of_b = b.view(), of_x = x.view();
    return {.count = of_b.count,
            .b = of_b.data,
            .b_places = VectorPlaces::rows(of_b.cols),
            .x = of_x.data,
            .x_places = VectorPlaces::rows(of_x.cols),
            .reports = reports,
            .findings = findings};
  }

  index_t p;
  Batch<T> a, b, x;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
  std::vector<std::string> kinds;  // of the right sides
};

template <class R>
void solve(const SolveProblem& problem, ComplexSystems<R>& s, bool shares) {
  using T = std::complex<R>;
  const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
  if (shares) {
    SharedEngine<T> engine(problem, limits);
    const MatrixFindings found = engine.take_matrix(s.a.view()[0], nullptr, 1);
    engine.run(s.block());
    std::fill(s.findings.begin(), s.findings.end(), found);
    return;
  }
  CpuBackend backend(limits);
  const Plan plan = make_plan(SystemEngine<T>::factored_problem(problem, s.a.view().count, s.p),
                              backend.variants(), limits);
  SystemEngine<T> engine(problem, backend, plan, 2);
  std::vector<SystemRef<T>> systems;
  for (index_t i = 0; i < s.a.view().count; ++i) systems.push_back({s.a.view()[i].data, i * s.p});
  engine.run(systems, s.block());
}

template <class R>
void judge(const SolveProblem& problem, ComplexSystems<R>& s, const std::string& kind,
           ComplexSystemTally& tally) {
  const index_t m = problem.m, n = problem.n;
  for (index_t side = 0; side < std::ssize(s.reports); ++side) {
    const MatrixView<const std::complex<R>> matrix = s.a.view()[side / s.p];
    ComplexMatrix a(matrix);
    const std::vector<int> exponents = scale_columns(a);
    const auto entries_of = [](const std::complex<R>* from, index_t count) {
      std::vector<Entry> to;
      for (index_t i = 0; i < count; ++i) to.emplace_back(from[i].real(), from[i].imag());
      return to;
    };
    const std::vector<Entry> b = entries_of(s.b.view()[side].data, m);
    const std::vector<Entry> x = entries_of(s.x.view()[side].data, n);
    const SolutionReport& report = s.reports[side];
    const std::int32_t rank = s.findings[side / s.p * s.p].rank;
    const std::string at = fmt::format("{}x{} {} {} {}", m, n, sizeof(R) == 8 ? "double" : "float",
                                       kind, s.kinds[side]);
    const bool is_deficient = rank < std::min(m, n);
    tally.deficient += is_deficient;
    tally.tries += report.tries > 1;
    ++tally.solutions;
    const double bar = report.bar;
    const auto error =
        static_cast<double>(backward_error(a, b, times_powers(x, exponents, 1), bar)) / bar;
    if (!(error <= tally.worst)) tally.worst = error, tally.worst_at = at;
    double of_norm = 0;
    if (m < n && !is_deficient) {
      const std::vector<index_t> columns = columns_in_range(exponents);
      const std::vector<Entry> scaled = times_powers(x, exponents, -1);
      std::vector<Entry> kept;
      for (const index_t j : columns) kept.push_back(scaled[j]);
      if (std::ssize(columns) > m)
        of_norm = static_cast<double>(least_norm_error(columns_of(a, columns), kept)) / bar;
      if (!(of_norm <= tally.worst_least_norm))
        tally.worst_least_norm = of_norm, tally.worst_least_norm_at = at;
    }
    if (report.status == Status::ok && error <= 1 && of_norm <= 1) continue;
    if (report.status == Status::r_overflows) continue;  // x is larger than its type can hold
    ++tally.failed;
    if (tally.first_failure.empty())
      tally.first_failure = fmt::format(
          "{}: status {}, {:.3g} and {:.3g} of the bar, reported {:.3g}", at,
          static_cast<int>(report.status), error, of_norm, report.backward_error / report.bar);
  }
}

}  // namespace

template <class R>
void attack_complex_systems(std::mt19937_64& generator, ComplexSystemTally& tally) {
  using T = std::complex<R>;
  static constexpr index_t sizes[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17, 24, 33, 48};
  const auto draw = [&](index_t below) {
    return static_cast<index_t>(generator() % static_cast<std::uint64_t>(below));
  };
  const index_t m = sizes[draw(draw(4) == 0 ? 15 : 11)], n = sizes[draw(draw(4) == 0 ? 15 : 11)];
  const bool shares = draw(4) == 0;
  const index_t matrices = shares ? 1 : 8, p = shares ? 40 : 1 + draw(3);
  const std::string kind = complex_kinds()[draw(std::ssize(complex_kinds()))];
  ComplexSystems<R> s(matrices, p, m, n);
  for (index_t i = 0; i < matrices; ++i) {
    fill_complex<R>(kind, generator, s.a.view()[i]);
    for (index_t j = 0; j < p; ++j) {
      s.kinds.emplace_back(side_kinds[draw(std::ssize(side_kinds))]);
      fill_side<R>(s.kinds.back(), generator, s.a.view()[i], s.b.view()[i * p + j].data);
    }
  }
  const SolveProblem problem{.type = element_type<T>,
                             .m = m,
                             .n = n,
                             .rank = {.tolerance = default_rank_tolerance(element_type<T>, n)}};
  solve(problem, s, shares);
  judge(problem, s, shares ? kind + " shared" : kind, tally);
}
template void attack_complex_systems<float>(std::mt19937_64&, ComplexSystemTally&);
template void attack_complex_systems<double>(std::mt19937_64&, ComplexSystemTally&);

}  // namespace qrtool::test
