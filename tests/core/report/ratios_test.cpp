// SPDX-License-Identifier: Apache-2.0
// ratios_test.cpp: the checker passes sound factors and finds planted faults.
#include "core/report/ratios.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

#include "core/eigen/form_q.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/measure/row_parts.hpp"
#include "tests/support/householder.hpp"

namespace qrtool::ratios_test {
namespace {

/// A with its reduced factors, which are exact to the rounding of float64.
struct Sound {
  index_t m, n, k;
  std::vector<double> a, q, r;

  Sound(index_t rows, index_t cols, index_t b = 0) : m(rows), n(cols), k(std::min(rows, cols)) {
    a.resize(static_cast<std::size_t>(m * n));
    fill_matrix<double>({"gauss", 1, 7}, b, view_a());
    const test::ReferenceQr qr = test::reference_qr<double>(view_a());
    for (index_t i = 0; i < m; ++i) {
      for (index_t j = 0; j < k; ++j) q.push_back(qr.q_at(i, j));
    }
    r.assign(qr.r.begin(), qr.r.begin() + k * n);
  }
  MatrixView<double> view_a() { return {a.data(), m, n, n}; }
  MatrixView<double> view_q() { return {q.data(), m, k, k}; }
  MatrixView<double> view_r() { return {r.data(), k, n, n}; }

  Errors measure() {
    ErrorMeter meter(m, n, k, k);
    return meter.measure<double>(view_a(), view_q(), view_r(),
                                 magnitude_of<double>(view_a()).scale());
  }
  Status verdict() {
    const Errors errors = measure();
    return judge(errors, standard_bars(m, n, double_precision, errors), true);
  }
};

TEST(Ratios, PassesSoundFactors) {
  for (const auto& [m, n] :
       {std::pair<index_t, index_t>{1, 1}, {2, 2}, {8, 8}, {17, 5}, {5, 17}, {300, 20}, {70, 70}}) {
    Sound sound(m, n);
    EXPECT_EQ(sound.verdict(), Status::ok) << m << "x" << n;
    EXPECT_EQ(sound.measure().lower, 0);
  }
}

TEST(Ratios, CatchesEveryPlantedFault) {
  Sound other(12, 9, 1);
  const std::vector<std::pair<const char*, std::function<void(Sound&)>>> faults = {
      {"one entry of Q off by 2^-10", [](Sound& s) { s.q[5] += 0x1p-10; }},
      {"sign of a column flipped in Q alone",
       [](Sound& s) {
         for (index_t i = 0; i < s.m; ++i) s.view_q()(i, 2) *= -1;
       }},
      {"sign of a row flipped in R alone",
       [](Sound& s) {
         for (index_t j = 0; j < s.n; ++j) s.view_r()(2, j) *= -1;
       }},
      {"Q = I",
       [](Sound& s) {
         for (index_t i = 0; i < s.m; ++i) {
           for (index_t j = 0; j < s.k; ++j) s.view_q()(i, j) = i == j ? 1 : 0;
         }
       }},
      {"Q of another matrix", [&](Sound& s) { s.q = other.q; }},
      {"R of another matrix", [&](Sound& s) { s.r = other.r; }},
      {"NaN in Q", [](Sound& s) { s.q[3] = NAN; }},
      {"NaN in R", [](Sound& s) { s.r[3] = NAN; }},
      {"Inf in R", [](Sound& s) { s.r[3] = INFINITY; }},
      {"R not triangular", [](Sound& s) { s.view_r()(4, 1) = 1e-3; }},
      {"Q scaled up, R down",
       [](Sound& s) {
         for (double& x : s.q) x *= 2;
         for (double& x : s.r) x /= 2;
       }},
      {"everything zero",
       [](Sound& s) {
         s.q.assign(s.q.size(), 0);
         s.r.assign(s.r.size(), 0);
       }},
  };
  for (const auto& [name, plant] : faults) {
    Sound sound(12, 9);
    ASSERT_EQ(sound.verdict(), Status::ok);
    plant(sound);
    EXPECT_EQ(sound.verdict(), Status::above_bar) << name;
  }
}

TEST(Ratios, SeesWhatLiesOutsideTheRangeOfQ) {
  // A = e1, Q = e2, R = 0: R - Q'A and Q'Q - I are both zero.
  const double a[2] = {1, 0}, q[2] = {0, 1}, r[1] = {0};
  ErrorMeter meter(2, 1, 1, 1);
  const Errors errors = meter.measure<double>({a, 2, 1, 1}, {q, 2, 1, 1}, {r, 1, 1, 1}, 1);
  EXPECT_EQ(errors.orthogonality, 0);
  EXPECT_EQ(errors.residual, 1);
}

TEST(Ratios, WantsAZeroMatrixBackExactly) {
  const double a[1] = {0}, q[1] = {1}, zero[1] = {0}, tiny[1] = {1e-150};
  ErrorMeter meter(1, 1, 1, 1);
  EXPECT_EQ(meter.measure<double>({a, 1, 1, 1}, {q, 1, 1, 1}, {zero, 1, 1, 1}, 0).residual, 0);
  EXPECT_EQ(meter.measure<double>({a, 1, 1, 1}, {q, 1, 1, 1}, {tiny, 1, 1, 1}, 0).residual,
            std::numeric_limits<double>::infinity());
}

TEST(Ratios, JudgesRAloneByItsGramMatrix) {
  Sound sound(40, 6);
  ErrorMeter meter(40, 6, 0, 6);
  const auto measure = [&] { return meter.measure<double>(sound.view_a(), {}, sound.view_r(), 2); };
  Errors errors = measure();
  EXPECT_TRUE(std::isnan(errors.orthogonality));
  EXPECT_EQ(judge(errors, standard_bars(40, 6, double_precision, errors), false), Status::ok);
  sound.view_r()(1, 3) += 1e-6;
  errors = measure();
  EXPECT_EQ(judge(errors, standard_bars(40, 6, double_precision, errors), false),
            Status::above_bar);
}

/// Computes ||A'A - R'R|| / ||A||^2 in long double.
double exact_r_residual(const Batch<double>& a, const Batch<double>& r) {
  const MatrixView<double> x = a.view()[0], y = r.view()[0];
  long double squares = 0, norm = 0;
  for (index_t p = 0; p < x.cols; ++p) {
    for (index_t q = 0; q < x.cols; ++q) {
      long double sum = 0;
      for (index_t i = 0; i < x.rows; ++i) {
        const long double product = static_cast<long double>(x(i, p)) * x(i, q);
        sum += product;
        if (p == q) norm += product;
      }
      for (index_t i = 0; i < y.rows; ++i) sum -= static_cast<long double>(y(i, p)) * y(i, q);
      squares += sum * sum;
    }
  }
  return static_cast<double>(std::sqrt(squares) / norm);
}

TEST(Ratios, RAloneOfAWideMatrixIsMeasuredBlockByBlock) {
  for (const auto& [m, n] : {std::pair<index_t, index_t>{1, 2}, {5, 64}, {7, 65}, {40, 200}}) {
    const Batch<double> a(1, m, n), r(1, m, n);
    fill_matrix<double>({"gauss"}, 0, a.view()[0]);
    for (const bool is_upper : {true, false}) {  // R need not fit: the measure is to be the same
      fill_matrix<double>({"gauss"}, 1, r.view()[0]);
      for (index_t i = 1; i < m && is_upper; ++i) std::fill_n(&r.view()[0](i, 0), i, 0);
      ErrorMeter meter(m, n, 0, m);
      const Errors errors = meter.measure<double>(a.view()[0], {}, r.view()[0], 3);
      EXPECT_NEAR(errors.residual, exact_r_residual(a, r), 1e-13) << m << "x" << n;
    }
  }
}

TEST(Ratios, RAloneOfAWideMatrixTakesMemoryThatDoesNotGrowWithItsColumns) {
  for (const index_t n : {20'000, 20'000'000})
    EXPECT_LE(ErrorMeter::workspace_bytes(8, n, 0, 8), std::size_t{1} << 20) << n;
}

TEST(Ratios, DoNotDependOnHowRowsAreHandedIn) {
  Sound sound(500, 6);
  ErrorMeter meter(500, 6, 6, 6);
  const Errors whole = sound.measure();
  meter.start<double>(sound.view_r(), whole.scale);
  for (index_t i = 0; i < 500; i += 2 * meter.tile_rows()) {
    const index_t rows = std::min(2 * meter.tile_rows(), 500 - i);
    meter.add_rows<double>(sound.view_a().row_block(i, rows), sound.view_q().row_block(i, rows));
  }
  const Errors parts = meter.finish();
  EXPECT_EQ(whole.residual, parts.residual);
  EXPECT_EQ(whole.orthogonality, parts.orthogonality);
}

/// Rows of Q that are orthonormal to float64's rounding, and A = Q R, for more rows than one part
/// of add_rows_by_parts takes.
struct Tall {
  static constexpr index_t m = 40000, n = 3, part_rows = 16384;
  std::vector<double> a, q;
  const double r[9] = {3, -1, 2, 0, 2, 0.5, 0, 0, 1};

  Tall() : a(m * n), q(m * n) {
    // Q has columns of a discrete cosine transform.
    const double pi = std::acos(-1.0);
    for (index_t i = 0; i < m; ++i) {
      for (index_t j = 0; j < n; ++j) {
        const auto angle = static_cast<double>((2 * i + 1) * (j + 1)) / static_cast<double>(2 * m);
        view_q()(i, j) = std::sqrt(2.0 / static_cast<double>(m)) * std::cos(pi * angle);
      }
      for (index_t j = 0; j < n; ++j) {
        for (index_t l = 0; l <= j; ++l) view_a()(i, j) += view_q()(i, l) * r[l * n + j];
      }
    }
  }
  MatrixView<double> view_a() { return {a.data(), m, n, n}; }
  MatrixView<double> view_q() { return {q.data(), m, n, n}; }
  MatrixView<const double> view_r() const { return {r, n, n, n}; }

  Errors measure(int threads, bool has_q = true) {
    ErrorMeter meter(m, n, has_q ? n : 0, n);
    meter.start<double>(view_r(), magnitude_of<double>(view_a()).scale());
    add_rows_by_parts<double>(view_a(), has_q ? view_q() : MatrixView<double>{}, view_r(),
                              {part_rows, threads}, meter);
    return meter.finish();
  }
};

TEST(Ratios, PartsOnThreadsHaveTheSameSumsOnAnyNumberOfThreads) {
  Tall tall;
  for (const bool has_q : {true, false}) {
    const Errors one = tall.measure(1, has_q);
    EXPECT_EQ(judge(one, standard_bars(Tall::m, Tall::n, double_precision, one), has_q),
              Status::ok);
    for (const int threads : {2, 3, 7}) {
      const Errors other = tall.measure(threads, has_q);
      EXPECT_EQ(one.residual, other.residual) << threads;
      EXPECT_EQ(one.norm, other.norm) << threads;
      EXPECT_TRUE(!has_q || one.orthogonality == other.orthogonality) << threads;
    }
  }
}

TEST(Ratios, PartsHaveTheSameSumsHoweverTheyAreHandedIn) {
  Tall tall;
  const Errors whole = tall.measure(2);
  ErrorMeter meter(Tall::m, Tall::n, Tall::n, Tall::n);
  meter.start<double>(tall.view_r(), whole.scale);
  constexpr index_t call = 2 * Tall::part_rows;
  for (index_t i = 0; i < Tall::m; i += call) {
    const index_t rows = std::min(call, Tall::m - i);
    const std::vector<double> sums =
        sums_of_parts<double>(tall.view_a().row_block(i, rows), tall.view_q().row_block(i, rows),
                              tall.view_r(), {Tall::part_rows, 3}, meter);
    add_sums_of_parts(sums, meter);
  }
  const Errors errors = meter.finish();
  EXPECT_EQ(errors.residual, whole.residual);
  EXPECT_EQ(errors.orthogonality, whole.orthogonality);
}

TEST(Ratios, PartsSeeAFaultInEveryPart) {
  for (const index_t row : {index_t{0}, index_t{16383}, index_t{16384}, Tall::m - 1}) {
    Tall q_fault, a_fault;
    q_fault.view_q()(row, 1) += 1e-3;
    a_fault.view_a()(row, 2) += 1e-3;
    const Errors q_errors = q_fault.measure(2), a_errors = a_fault.measure(2);
    EXPECT_GT(q_errors.orthogonality, 1e-7) << row;
    EXPECT_NEAR(a_errors.residual * a_errors.norm, std::ldexp(1e-3, -a_errors.scale), 1e-12) << row;
  }
}

TEST(Ratios, ScalesExtremeNumbers) {
  for (const double factor : {0x1p-1030, 0x1p-1000, 0x1p1000, 0x1p1015}) {
    Sound sound(20, 10);
    const Errors before = sound.measure();
    for (double& x : sound.a) x *= factor;
    for (double& x : sound.r) x *= factor;
    const Errors after = sound.measure();
    EXPECT_EQ(sound.verdict(), Status::ok) << factor;
    if (factor > 0x1p-1020) {
      EXPECT_EQ(before.residual, after.residual) << factor;
    }
  }
}

TEST(Ratios, SumAMillionEqualTermsWithoutBias) {
  // Q = (1, 1, ...)' / 2^9.5... of 2^19 equal entries has norm 1 to the last bits; a plain sum of
  // so many equal terms is off by thousands of units.
  const index_t m = 1 << 19;
  const std::vector<double> q(m, std::sqrt(0x1p-19)), a(m, 0.1);
  const double r[1] = {0.1 * std::sqrt(0x1p19)};
  ErrorMeter meter(m, 1, 1, 1);
  const Errors errors =
      meter.measure<double>({a.data(), m, 1, 1}, {q.data(), m, 1, 1}, {r, 1, 1, 1}, -3);
  EXPECT_LE(errors.orthogonality, 8 * 0x1p-52);
  EXPECT_LE(errors.residual, 8 * 0x1p-52);
}

/// Computes ||I - Q'Q|| in long double.
double exact_orthogonality(const std::vector<double>& q, index_t m, index_t n) {
  long double squares = 0;
  for (index_t i = 0; i < n; ++i) {
    for (index_t j = 0; j < n; ++j) {
      long double sum = i == j ? -1 : 0;
      for (index_t row = 0; row < m; ++row) {
        sum += static_cast<long double>(q[static_cast<std::size_t>(row * n + i)]) *
               q[static_cast<std::size_t>(row * n + j)];
      }
      squares += sum * sum;
    }
  }
  return static_cast<double>(std::sqrt(squares));
}

TEST(Ratios, SumAFewHundredEqualTermsWithoutBias) {
  // Q = I - 2 / n 1 1': all entries off the diagonal are equal, and so are the products.
  constexpr index_t n = 450;
  std::vector<double> q(n * n, -2.0 / n);
  for (index_t i = 0; i < n; ++i) q[static_cast<std::size_t>(i * n + i)] += 1;
  const std::vector<double> a(n * n, 0);
  ErrorMeter meter(n, n, n, n);
  const Errors errors =
      meter.measure<double>({a.data(), n, n, n}, {q.data(), n, n, n}, {a.data(), n, n, n}, 0);
  const double exact = exact_orthogonality(q, n, n);
  EXPECT_LE(std::abs(errors.orthogonality - exact), 0.1 * n * 0x1p-52) << exact;  // of the bar
}

TEST(Ratios, OrthogonalityNearTheBarHasNoRoundingErrorsOfItsOwn) {
  // Q = I - 2 v v' / v'v, and one column is too long by a little less or more than the bar.
  constexpr index_t n = 16;
  const double bar = n * 0x1p-52;
  for (int number = 0; number < 50; ++number) {
    std::vector<double> v(n), q(n * n), a(n * n, 0);
    double vv = 0;
    for (index_t i = 0; i < n; ++i) {
      v[static_cast<std::size_t>(i)] = std::sin(number * 31.0 + static_cast<double>(i * i));
      vv += v[static_cast<std::size_t>(i)] * v[static_cast<std::size_t>(i)];
    }
    for (index_t i = 0; i < n; ++i) {
      for (index_t j = 0; j < n; ++j) {
        double& entry = q[static_cast<std::size_t>(i * n + j)];
        entry = (i == j) - 2 / vv * v[static_cast<std::size_t>(i)] * v[static_cast<std::size_t>(j)];
        if (j == number % n) entry *= 1 + bar / 2;
      }
    }
    ErrorMeter meter(n, n, n, n);
    const Errors errors =
        meter.measure<double>({a.data(), n, n, n}, {q.data(), n, n, n}, {a.data(), n, n, n}, 0);
    const double exact = exact_orthogonality(q, n, n);
    EXPECT_GT(exact, 0.8 * bar);
    EXPECT_NEAR(errors.orthogonality, exact, 1e-4 * bar) << number;
  }
}

TEST(Ratios, HaveTheBarsOfTheDefinition) {
  Errors errors;
  errors.norm = 1;
  EXPECT_EQ(standard_bars(4, 4, single_precision, errors).orthogonality, 16 * 0x1p-23);
  EXPECT_EQ(standard_bars(100, 50, single_precision, errors).orthogonality, 100 * 0x1p-23);
  EXPECT_EQ(standard_bars(1000000, 1, single_precision, errors).orthogonality, 30 * 0x1p-23);
  EXPECT_EQ(standard_bars(100, 50, double_precision, errors).lower, 100 * 0x1p-52);
  EXPECT_EQ(m_eps_bars(8).residual, 8 * 0x1p-23);
  // ||A|| = 2^-140: rounding to float32's denormals alone may cost 4 * 2^-149 / 2^-140.
  errors.scale = -140;
  EXPECT_EQ(standard_bars(4, 4, single_precision, errors).residual, 16 * 0x1p-23 + 4 * 0x1p-9);
}

TEST(Ratios, AReportHasTheBarsItWasHeldTo) {
  const Problem mixed{.count = 1, .m = 4, .n = 4, .arithmetic = Arithmetic::mixed};
  Problem strict = mixed;
  strict.arithmetic = Arithmetic::strict;
  const Errors errors{
      .residual = 0x1p-7, .orthogonality = 0x1p-8, .lower = 0, .norm = 1, .scale = -140};
  MatrixReport line;
  EXPECT_TRUE(std::isnan(line.bars.residual));
  enter_errors(strict, errors, line);
  EXPECT_EQ(line.status, Status::above_bar);
  EXPECT_EQ(line.bars.residual, 16 * 0x1p-23 + 4 * 0x1p-9);
  EXPECT_EQ(line.bars.orthogonality, 16 * 0x1p-23);
  EXPECT_EQ(line.bars.lower, 4 * 0x1p-23);
  // Mixed precision allows more for rounding, but the same for denormal numbers.
  judge_again(mixed, line);
  EXPECT_EQ(line.status, Status::ok);
  EXPECT_EQ(line.bars.residual, 16 * 0x1p-10 + 4 * 0x1p-9);
  EXPECT_EQ(line.bars.orthogonality, 16 * 0x1p-10);
  EXPECT_EQ(line.bars.lower, 4 * 0x1p-10);
}

TEST(Ratios, NanNeverPasses) {
  Errors errors;
  errors.lower = 0;
  EXPECT_EQ(judge(errors, {1, 1, 1}, true), Status::above_bar);
  errors.residual = 0;
  EXPECT_EQ(judge(errors, {1, 1, 1}, true), Status::above_bar);
  errors.orthogonality = 0;
  EXPECT_EQ(judge(errors, {1, 1, 1}, true), Status::ok);
}

TEST(Ratios, FindTheMagnitude) {
  const float values[4] = {-0.75f, 0.5f, 0, 0.25f};
  EXPECT_EQ(magnitude_of<float>({values, 2, 2, 2}).scale(), 0);
  const double one[1] = {1}, zero[1] = {0}, nan[1] = {NAN}, minus_inf[1] = {-INFINITY};
  EXPECT_EQ(magnitude_of<double>({one, 1, 1, 1}).scale(), 1);
  EXPECT_EQ(magnitude_of<double>({zero, 1, 1, 1}).scale(), 0);
  EXPECT_FALSE(magnitude_of<double>({nan, 1, 1, 1}).finite);
  EXPECT_FALSE(magnitude_of<double>({minus_inf, 1, 1, 1}).finite);
}

TEST(Ratios, FormQFromReflectors) {
  // A = (3, 0, 4)' by hand: beta = -5, v = (1, 0, 4 / 8), tau = 8 / 5.
  const double v[3] = {-5, 0, 0.5}, tau[1] = {1.6};
  double q[3];
  form_q_from_reflectors<double>({v, 3, 1, 1}, tau, {q, 3, 1, 1});
  EXPECT_NEAR(q[0], -0.6, 1e-15);
  EXPECT_NEAR(q[1], 0, 1e-15);
  EXPECT_NEAR(q[2], -0.8, 1e-15);
}

TEST(Ratios, ReflectorsAreMeasuredAgainWithCareWhereAnErrorIsAboveHalfOfTheBar) {
  const double v[3] = {-5, 0, 0.5}, tau[1] = {1.6};
  double q[3];
  const auto measurements = [&](double residual, double orthogonality) {
    int count = 0;
    measure_reflectors<double>({v, 3, 1, 1}, tau, {q, 3, 1, 1}, 1, [&] {
      ++count;
      return Errors{.residual = residual, .orthogonality = orthogonality};
    });
    return count;
  };
  EXPECT_EQ(measurements(0.4, 0.4), 1);
  EXPECT_EQ(measurements(0.6, 0.4), 2);
  EXPECT_EQ(measurements(0.4, 0.6), 2);
  EXPECT_EQ(measurements(0.4, NAN), 2);
}

}  // namespace
}  // namespace qrtool::ratios_test
