// SPDX-License-Identifier: Apache-2.0
// attack_rows.cpp: families of known singular values, of entries of one kind, and of rows that are
// alike.
#include <algorithm>
#include <array>

#include "tests/support/attack_fill.hpp"

namespace qrtool::test {
namespace {

// ---- Known spectra ------------------------------------------------------------------------------

/// a := H a, H = I - 2 v v' / v'v with a random v.
void reflect_rows(Draw& draw, Matrix a) {
  const std::vector<double> v = draw.normals(a.rows);
  std::vector<double> w(static_cast<std::size_t>(a.cols), 0.0);
  const double vv = std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
  for (index_t i = 0; i < a.rows; ++i) {
    const double* row = &a(i, 0);
    for (index_t j = 0; j < a.cols; ++j) w[j] += v[i] * row[j];
  }
  for (index_t i = 0; i < a.rows; ++i) {
    double* row = &a(i, 0);
    const double factor = 2 / vv * v[i];
    for (index_t j = 0; j < a.cols; ++j) row[j] -= factor * w[j];
  }
}

/// a := a H.
void reflect_columns(Draw& draw, Matrix a) {
  const std::vector<double> v = draw.normals(a.cols);
  const double vv = std::inner_product(v.begin(), v.end(), v.begin(), 0.0);
  for (index_t i = 0; i < a.rows; ++i) {
    double* row = &a(i, 0);
    double dot = 0;
#pragma omp simd reduction(+ : dot)
    for (index_t j = 0; j < a.cols; ++j) dot += v[j] * row[j];
    const double factor = 2 / vv * dot;
    for (index_t j = 0; j < a.cols; ++j) row[j] -= factor * v[j];
  }
}

constexpr int reflections = 4;

/// a := U a, U orthogonal.
void turn_rows(Draw& draw, Matrix a) {
  for (int turn = 0; turn < reflections; ++turn) reflect_rows(draw, a);
}

/// A = U S V' with the singular values of `value(i)`, in random places.
template <class Value>
void fill_spectrum(Draw& draw, Matrix a, Value value) {
  change_entries(a, [](index_t, index_t, double) { return 0.0; });
  const index_t k = std::min(a.rows, a.cols);
  const std::vector<index_t> places = draw.places(k);
  for (index_t i = 0; i < k; ++i) a(places[i], places[i]) = value(i);
  turn_rows(draw, a);
  for (int turn = 0; turn < reflections; ++turn) reflect_columns(draw, a);
}

double condition(Draw& draw) { return draw.power_of_ten(1, 1.5 * draw.digits()); }

void geometric_spectrum(Draw& draw, Matrix a) {
  const double step =
      -std::log(condition(draw)) / static_cast<double>(std::max<index_t>(1, a.cols - 1));
  fill_spectrum(draw, a, [&](index_t i) { return std::exp(step * static_cast<double>(i)); });
}

void one_small_value(Draw& draw, Matrix a) {
  const double least = 1 / condition(draw);
  fill_spectrum(draw, a, [&](index_t i) { return i == 0 ? least : 1; });
}

void half_small_values(Draw& draw, Matrix a) {
  const double least = 1 / condition(draw);
  fill_spectrum(draw, a, [&](index_t i) { return 2 * i < a.cols ? least : 1; });
}

/// Makes an orthogonal matrix times Kahan's triangle. Its columns have norm 1 and no two are close,
/// but the last one is nearly in the span of the others.
void orthogonal_kahan(Draw& draw, Matrix a) {
  constexpr std::array angles{0.3, 0.6, 0.9, 1.1, 1.2, 1.3, 1.4, 1.5};
  // The angle of a list, or the one whose last diagonal entry is as small as drawn.
  const double least = draw.power_of_ten(-1.5 * draw.digits(), -1);
  const double s = draw.chance(0.5)
                       ? std::sin(angles[static_cast<std::size_t>(draw.whole(0, 7))])
                       : std::pow(least, 1 / static_cast<double>(std::max<index_t>(1, a.cols - 1)));
  const double c = std::sqrt(1 - s * s);
  double power = 1;
  for (index_t i = 0; i < a.rows; ++i, power *= s) {
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = j < i ? 0 : j == i ? power : -c * power;
  }
  turn_rows(draw, a);
}

// ---- Entries of a kind --------------------------------------------------------------------------

void sparse(Draw& draw, Matrix a) {
  const double zeros = draw.chance(0.5) ? 0.9 : draw.between(0.5, 0.99);
  fill_normal(draw, a);
  change_entries(a, [&](index_t, index_t, double x) { return draw.chance(zeros) ? 0 : x; });
}

/// Makes powers of nodes in some columns, and normal numbers in the others. With powers in all
/// columns a matrix of 20 columns is hopeless already.
template <class Node>
void vandermonde(Draw& draw, Matrix a, index_t most_powers, Node node) {
  const index_t most = std::min(a.cols, most_powers);
  const index_t powers = draw.whole(std::min<index_t>(2, most), most);
  const index_t first = draw.whole(0, a.cols - powers);
  fill_normal(draw, a);
  for (index_t i = 0; i < a.rows; ++i) {
    const double x = node(i);
    double power = 1;
    for (index_t p = 0; p < powers; ++p, power *= x) a(i, first + p) = power;
  }
}

void vandermonde_to_one(Draw& draw, Matrix a) {
  const bool is_regular = draw.chance(0.5);
  vandermonde(draw, a, 40, [&](index_t i) {
    return is_regular ? static_cast<double>(i) / static_cast<double>(a.rows) : draw.uniform();
  });
}

void vandermonde_from_one(Draw& draw, Matrix a) {
  const bool is_regular = draw.chance(0.5);
  vandermonde(draw, a, 40, [&](index_t i) {
    return 1 + (is_regular ? static_cast<double>(i) / static_cast<double>(a.rows) : draw.uniform());
  });
}

void vandermonde_of_integers(Draw& draw, Matrix a) {
  const index_t largest = draw.whole(2, std::max<index_t>(2, a.rows));
  const auto most = static_cast<index_t>(15 / std::log10(static_cast<double>(largest)));
  vandermonde(draw, a, most, [&](index_t i) { return static_cast<double>(i % largest + 1); });
}

/// Makes whole numbers around zero, or from zero on.
void integers(Draw& draw, Matrix a) {
  const double largest = std::round(draw.power_of_ten(0, 4));
  const double least = draw.chance(0.5) ? -largest : 0;
  change_entries(
      a, [&](index_t, index_t, double) { return std::floor(draw.between(least, largest + 1)); });
}

/// Entries in [0, 1); the same one everywhere in a quarter of the matrices.
void uniform(Draw& draw, Matrix a) {
  const bool is_one_number = draw.chance(0.25);
  const double number = draw.uniform();
  change_entries(a,
                 [&](index_t, index_t, double) { return is_one_number ? number : draw.uniform(); });
}

// ---- Rows that are alike, whose products round alike -------------------------------------------

/// A few ranks at which Gram matrices of few distinct rows are, or nearly are, singular.
index_t rank_near(Draw& draw, index_t n) {
  const std::array ranks{index_t{1}, n / 2, n - 2, n - 1, n, n + 1, 2 * n};
  return std::max<index_t>(1, ranks[static_cast<std::size_t>(draw.whole(0, 6))]);
}

/// A number that a sensor or a table may repeat: any in [1, 2), or a multiple of 0.1.
double repeated_number(Draw& draw, bool is_decimal) {
  return is_decimal ? 0.1 * static_cast<double>(draw.whole(1, 9)) : draw.between(1, 2);
}

std::vector<double> repeated_row(Draw& draw, index_t columns) {
  const bool is_decimal = draw.chance(0.3), has_signs = draw.chance(0.3);
  std::vector<double> row(static_cast<std::size_t>(columns));
  for (double& x : row) x = repeated_number(draw, is_decimal) * (has_signs ? draw.sign() : 1);
  return row;
}

void copy_row(Matrix a, index_t i, const double* row) {
  for (index_t j = 0; j < a.cols; ++j) a(i, j) = row[j];
}

/// Some rows of their own, of which the matrix has its rank, and one row again and again.
void repeated_rows(Draw& draw, Matrix a) {
  const index_t n = a.cols, own = std::min(a.rows, std::max(draw.whole(n - 3, n + 1), n / 4 + 1));
  const double size = draw.power_of_ten(-2, 0.5);
  const bool is_orthogonal = draw.chance(0.5), is_last = draw.chance(0.3);
  const std::vector<double> row = repeated_row(draw, n);
  const index_t first = is_last ? a.rows - own : 0;
  const Matrix block = a.row_block(first, own);
  fill_normal(draw, block);
  if (is_orthogonal) fill_spectrum(draw, block, [&](index_t) { return 1.0; });
  change_entries(block, [&](index_t, index_t, double x) { return size * x; });
  for (index_t i = 0; i < a.rows; ++i)
    if (i < first || i >= first + own) copy_row(a, i, row.data());
}

/// All rows are out of a few, in turn, in runs or in any order.
void few_distinct_rows(Draw& draw, Matrix a) {
  const index_t count = std::min(a.rows, rank_near(draw, a.cols)), order = draw.whole(0, 2);
  const bool is_normal = draw.chance(0.5);
  std::vector<double> rows = draw.normals(count * a.cols);
  for (index_t i = 0; i < count && !is_normal; ++i) {
    const std::vector<double> row = repeated_row(draw, a.cols);
    std::copy(row.begin(), row.end(), rows.begin() + i * a.cols);
  }
  for (index_t i = 0; i < a.rows; ++i) {
    const index_t from = order == 0   ? i % count
                         : order == 1 ? i * count / a.rows
                                      : draw.whole(0, count - 1);
    copy_row(a, i, rows.data() + from * a.cols);
  }
}

/// One row or two, in turn or in two runs; every entry of a row is the same number in a third.
void one_or_two_rows(Draw& draw, Matrix a) {
  const index_t count = draw.whole(1, 2), run = draw.chance(0.5) ? 1 : (a.rows + 1) / 2;
  std::vector<double> rows = draw.normals(2 * a.cols);
  if (draw.chance(1.0 / 3)) {
    std::fill_n(rows.begin(), a.cols, rows[0]);
    std::fill_n(rows.begin() + a.cols, a.cols, rows.back());
  }
  for (index_t i = 0; i < a.rows; ++i) copy_row(a, i, rows.data() + i / run % count * a.cols);
}

/// Every entry of a row is the same number, but for noise in some of the rows.
void constant_rows(Draw& draw, Matrix a) {
  const index_t noisy = std::min(a.rows, rank_near(draw, a.cols));
  const double noise = draw.power_of_ten(-3, 0);
  const bool is_one_number = draw.chance(0.5);
  const double number = draw.between(1, 2);
  fill_normal(draw, a);
  for (index_t i = 0; i < a.rows; ++i) {
    const double mean = is_one_number ? number : draw.between(1, 2);
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = mean + (i < noisy ? noise * a(i, j) : 0);
  }
}

/// Values of a sensor that ends at its largest one, in most rows or in most columns.
void saturated(Draw& draw, Matrix a) {
  const double limit = draw.between(-2, 1), gain = draw.power_of_ten(-1, 3);
  const double steps = draw.chance(0.5) ? 0 : draw.power_of_ten(0, 3);
  fill_normal(draw, a);
  change_entries(a, [&](index_t, index_t j, double x) {
    const double most = limit + 0.3 * static_cast<double>(j % 7);
    const double y = 4 + std::min(x, most);
    return gain * (steps == 0 ? y : std::round(y * steps) / steps);
  });
}

/// Makes a design of experiments: a column of ones, factors of a few levels and their products,
/// with each point of the design several times.
void replicated_design(Draw& draw, Matrix a) {
  const index_t points = std::min(a.rows, rank_near(draw, a.cols)), levels = draw.whole(2, 4);
  const bool is_decimal = draw.chance(0.5), in_runs = draw.chance(0.5);
  const double low = is_decimal ? 0.1 : -1, step = is_decimal ? 0.1 : 2;
  const index_t factors = std::max<index_t>(1, a.cols / 2);
  for (index_t i = 0; i < a.rows; ++i) {
    const index_t point = in_runs ? i * points / a.rows : i % points;
    for (index_t j = 0; j < a.cols; ++j) {
      const auto level = [&](index_t factor) {
        const std::uint64_t bits = mix_bits(static_cast<std::uint64_t>(point * a.cols + factor));
        return low + step * static_cast<double>(bits % static_cast<std::uint64_t>(levels));
      };
      a(i, j) = j == 0         ? 1
                : j <= factors ? level(j)
                               : level(1 + j % factors) * level(1 + (j / 2 + j) % factors);
    }
  }
}
}  // namespace

const std::vector<AttackFamily>& row_families() {
  static const std::vector<AttackFamily> list{
      {"geometric-spectrum", "geometric singular values", geometric_spectrum},
      {"one-small-value", "one small singular value", one_small_value},
      {"half-small-values", "half of the singular values small", half_small_values},
      {"orthogonal-kahan", "an orthogonal matrix times Kahan's", orthogonal_kahan},
      {"sparse", "zeros, 90 % in half of the matrices", sparse},
      {"vandermonde-to-1", "powers of nodes in [0, 1]", vandermonde_to_one},
      {"vandermonde-from-1", "powers of nodes in [1, 2]", vandermonde_from_one},
      {"vandermonde-integers", "powers of whole numbers", vandermonde_of_integers},
      {"integers", "whole numbers up to 1 .. 10000", integers},
      {"uniform", "entries in [0, 1), or one of them everywhere", uniform},
      {"repeated-rows", "rows of their own beside one row often", repeated_rows},
      {"few-distinct-rows", "1 to 2 n different rows", few_distinct_rows},
      {"constant-rows", "rows of one number, noise in some", constant_rows},
      {"saturated", "values that end at a largest one", saturated},
      {"replicated-design", "factors of few levels, each point often", replicated_design},
      {"one-or-two-rows", "one row, or two, again and again", one_or_two_rows},
  };
  return list;
}

}  // namespace qrtool::test
