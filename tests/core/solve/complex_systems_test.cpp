// SPDX-License-Identifier: Apache-2.0
// complex_systems_test.cpp: complex systems of all kinds, and the parts that solve them beside
// Eigen and sums in long double.
#include "tests/support/complex_systems.hpp"

#include <gtest/gtest.h>

#include <Eigen/QR>
#include <Eigen/SVD>
#include <vector>

#include "core/eigen/eigen_qr.hpp"
#include "core/solve/ranked/ranked_factor.hpp"
#include "core/solve/residual.hpp"

namespace qrtool::test::complex_systems_test {
namespace {

using S = std::complex<double>;
using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::Matrix<S, Eigen::Dynamic, 1>;

/// R of A (k x n), z = Q^H b, and what RankedFactor makes of them.
struct Solved {
  Solved(const Matrix& a, const Vector& b, const RankRule& rule) {
    const index_t m = a.rows(), n = a.cols(), k = std::min(m, n);
    Matrix both(m, n + 1);  // A and b, so that R's last column is z
    both << a, b;
    const Problem problem{
        .count = 1, .m = m, .n = n + 1, .type = ElementType::complex128, .mode = Mode::r};
    const Batch<S> of_both(1, problem.k(), n + 1);
    EigenQr<S>(problem).factor({both.data(), m, n + 1, n + 1},
                               {.q = {}, .r = of_both.view()[0], .v = {}, .tau = {}});
    r.resize(k, n);
    Vector z(k);
    for (index_t i = 0; i < k; ++i) {
      for (index_t j = 0; j < n; ++j) r(i, j) = of_both.view()[0](i, j);
      z(i) = of_both.view()[0](i, n);
    }
    factor.set({r.data(), k, n, n}, rule);
    x.resize(n);
    factor.solve({z.data(), k, 1, 1}, {x.data(), n, 1, 1});
  }
  Matrix r;
  RankedFactor<S> factor;
  Vector x;
};

TEST(ComplexSystems, HardOnesOfEveryKindAreWithinTheirBars) {
  std::mt19937_64 generator(5);
  ComplexSystemTally tally;
  for (int i = 0; i < 150; ++i) {
    attack_complex_systems<float>(generator, tally);
    attack_complex_systems<double>(generator, tally);
  }
  EXPECT_EQ(tally.failed, 0) << tally.first_failure;
  EXPECT_EQ(tally.tries, 0);  // a wrong z would need them
  EXPECT_GT(tally.solutions, 4000);
  EXPECT_GT(tally.deficient, 100);
  EXPECT_LE(tally.worst, 1) << tally.worst_at;
}

TEST(ComplexSystems, TheLeastNormIsThatOfEigen) {
  for (const auto& [m, n, rank] : {std::tuple{9, 6, 3}, {6, 9, 4}, {5, 8, 5}, {300, 280, 200}}) {
    const Matrix a = Matrix::Random(m, rank) * Matrix::Random(rank, n);
    const Vector b = Vector::Random(m);
    const RankRule rule{.tolerance = default_rank_tolerance(ElementType::complex128, n)};
    const Solved solved(a, b, rule);
    Eigen::CompleteOrthogonalDecomposition<Matrix> reference(a);
    reference.setThreshold(1e-10);
    EXPECT_EQ(solved.factor.rank(), rank);
    const Vector expected = reference.solve(b);
    EXPECT_LE((solved.x - expected).norm(), 1e-9 * expected.norm()) << m << "x" << n;
    EXPECT_LE(solved.factor.least_norm_error(solved.x.data()), 1e-14);
    // The same x with something of the null space in it is not of least norm.
    Vector other = solved.x;
    other(0) += S(0, 1e-3) * other.norm();
    EXPECT_GT(solved.factor.least_norm_error(other.data()), 1e-8);
    std::vector<S> g(static_cast<std::size_t>(n));
    Vector::Map(g.data(), n) = a.adjoint() * b;
    solved.factor.correct(g);
    EXPECT_LE((Vector::Map(g.data(), n) - expected).norm(), 1e-7 * expected.norm());
  }
}

TEST(ComplexSystems, SingularValuesAndInversesAreThoseOfEigen) {
  for (const int n : {1, 2, 7, 30}) {
    const Matrix a = Matrix::Random(2 * n, n);
    const Solved solved(a, Vector::Random(2 * n), {.tolerance = 1e-14});
    const Eigen::JacobiSVD<Matrix, Eigen::NoQRPreconditioner> svd(solved.r, Eigen::ComputeFullV);
    const double condition = svd.singularValues()(0) / svd.singularValues()(n - 1);
    EXPECT_LE(solved.factor.condition(), condition * (1 + 1e-10));
    EXPECT_GE(solved.factor.condition(), 0.7 * condition);
    // (A^H A)^-1 = V S^-2 V^H
    const Matrix scaled = svd.matrixV() * svd.singularValues().cwiseInverse().asDiagonal();
    const Matrix inverse = scaled * scaled.adjoint();
    const std::vector<double> norms = solved.factor.inverse_row_norms();
    const std::vector<S> correlations = solved.factor.correlations();
    for (int i = 0; i < n; ++i)
      for (int j = 0; j < n; ++j)
        EXPECT_LE(std::abs(correlations[i * n + j] * (norms[i] * norms[j]) - inverse(i, j)),
                  1e-10 * std::abs(inverse(i, i)) * condition);
    std::vector<S> g(static_cast<std::size_t>(n));
    Vector::Map(g.data(), n).setRandom();
    const double norm = (scaled.adjoint() * Vector::Map(g.data(), n)).norm();  // of R^-H g
    EXPECT_NEAR(solved.factor.adjoint_solution_norm(g) / norm, 1, 1e-12);
  }
}

TEST(ComplexSystems, PreciseResidualsAreThoseOfLongDouble) {
  const index_t m = 40, n = 19;
  const Matrix a = Matrix::Random(m, n);
  const Vector x = Vector::Random(n);
  Vector b = a * x;  // agrees with A x to the last bits
  std::vector<S> gradient(static_cast<std::size_t>(n));
  double squares = 0;
  add_precise_residual<S>({a.data(), m, n, n}, b.data(), 1, x.data(), gradient, squares);
  using Long = std::complex<long double>;
  std::vector<Long> g(static_cast<std::size_t>(n));
  long double expected_squares = 0, of_g = 0;
  for (index_t i = 0; i < m; ++i) {
    Long r(b(i));
    for (index_t j = 0; j < n; ++j) r -= Long(a(i, j)) * Long(x(j));
    expected_squares += std::norm(r);
    for (index_t j = 0; j < n; ++j) g[j] += std::conj(Long(a(i, j))) * r;
  }
  for (const Long& e : g) of_g += std::norm(e);
  EXPECT_NEAR(squares / static_cast<double>(expected_squares), 1, 1e-2);
  for (index_t j = 0; j < n; ++j)
    EXPECT_LE(std::abs(Long(gradient[j]) - g[j]), 1e-2L * std::sqrt(of_g));
}

}  // namespace
}  // namespace qrtool::test::complex_systems_test
