// SPDX-License-Identifier: Apache-2.0
// attack.cpp: the families. Each fills a matrix of float64, which is rounded to the type at the
// end. Rounding is part of the attack: columns that agree to 10^-7 differ by a few last bits.
#include "tests/support/attack.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/parallel.hpp"

namespace qrtool::test {
namespace {

/// Returns a good hash of a counter: SplitMix64's finaliser (Steele, Lea, Flood 2014).
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace

/// Draws the random numbers of one matrix. A seed always gives the same numbers in the same order.
class Draw {
 public:
  /// `most_digits` is how many digits the type of the matrix holds, and a few more.
  Draw(std::uint64_t seed, double most_digits) : state_(seed), digits_(most_digits) {}

  std::uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  /// In [0, 1).
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * uniform(); }
  /// A whole number from low to high, both of which can come.
  index_t whole(index_t low, index_t high) {
    return low + static_cast<index_t>(uniform() * static_cast<double>(high - low + 1));
  }
  bool chance(double probability) { return uniform() < probability; }
  double sign() { return chance(0.5) ? 1 : -1; }
  /// Returns 10^x with a random x in [low, high).
  double power_of_ten(double low, double high) { return std::pow(10.0, between(low, high)); }
  /// Returns the size of a small difference, from 10^-1 down to less than the type resolves.
  double distance() { return power_of_ten(-digits_, -1); }
  double digits() const { return digits_; }

  /// Numbers of mean 0 and variance 1. Each is the sum of four uniform numbers: nearly normal, no
  /// larger than 3.5, and computed without a logarithm, so that a million matrices take minutes.
  void normals(double* out, index_t count) {
    const std::uint64_t start = bits();
    for (index_t i = 0; i < count; ++i) {
      const std::uint64_t x = mix(start + static_cast<std::uint64_t>(i));
      const std::uint64_t sum = (x & 0xffff) + (x >> 16 & 0xffff) + (x >> 32 & 0xffff) + (x >> 48);
      // The four parts have 16 bits each. Without further bits below them, squares and sums in
      // float64 would be exact, and rounding errors are what the attack is about.
      const auto fine = static_cast<double>((x * 0xd1342543de82ef95u) >> 12) * 0x1p-52;
      out[i] = ((static_cast<double>(sum) + fine) * 0x1p-16 - 2) * 1.7320508075688772;
    }
  }
  double normal() {
    double x;
    normals(&x, 1);
    return x;
  }
  std::vector<double> normals(index_t count) {
    std::vector<double> x(static_cast<std::size_t>(count));
    normals(x.data(), count);
    return x;
  }

  /// Returns 0 .. extent - 1 in a random order.
  std::vector<index_t> places(index_t extent) {
    std::vector<index_t> order(static_cast<std::size_t>(extent));
    std::iota(order.begin(), order.end(), index_t{0});
    for (index_t i = extent - 1; i > 0; --i) std::swap(order[i], order[whole(0, i)]);
    return order;
  }

 private:
  std::uint64_t state_;
  double digits_;
};

namespace {

using Matrix = MatrixView<double>;

void fill_normal(Draw& draw, Matrix a) {
  for (index_t i = 0; i < a.rows; ++i) draw.normals(&a(i, 0), a.cols);
}

template <class Change>
void change_entries(Matrix a, Change change) {
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = change(i, j, a(i, j));
}

void scale_column(Matrix a, index_t j, double factor) {
  for (index_t i = 0; i < a.rows; ++i) a(i, j) *= factor;
}

/// mean + deviation x normal.
void fill_around(Draw& draw, Matrix a, double mean, double deviation) {
  fill_normal(draw, a);
  change_entries(a, [&](index_t, index_t, double x) { return mean + deviation * x; });
}

// ---- Data around a mean -------------------------------------------------------------------------

void offset(Draw& draw, Matrix a) {
  const double mean = draw.between(1, 10);
  fill_around(draw, a, mean, mean * draw.distance());
}

/// The noise levels that the tables of measurements have: 10^-1, 10^-1.5, 10^-2, ..
void offset_half_decades(Draw& draw, Matrix a) {
  const auto steps = static_cast<index_t>(2 * draw.digits());
  fill_around(draw, a, 1, std::pow(10.0, -0.5 * static_cast<double>(draw.whole(2, steps))));
}

/// Every column has its own mean; the noise is the same part of it.
void offset_columns(Draw& draw, Matrix a) {
  const double noise = draw.distance(), decades = draw.between(0, 3);
  std::vector<double> mean(static_cast<std::size_t>(a.cols));
  for (double& x : mean) x = draw.sign() * draw.power_of_ten(-decades, decades);
  fill_normal(draw, a);
  change_entries(a, [&](index_t, index_t j, double x) { return mean[j] * (1 + noise * x); });
}

/// Columns of one profile, as spectra of one lamp are: x y' and noise.
void common_profile(Draw& draw, Matrix a) {
  const double noise = draw.distance();
  const std::vector<double> x = draw.normals(a.rows), y = draw.normals(a.cols);
  fill_normal(draw, a);
  change_entries(a, [&](index_t i, index_t j, double z) { return x[i] * y[j] + noise * z; });
}

/// A mean, and columns of very different units: a guard must not depend on the columns' scales.
void offset_in_units(Draw& draw, Matrix a) {
  const double decades = draw.between(0, 12);
  offset(draw, a);
  for (index_t j = 0; j < a.cols; ++j) scale_column(a, j, draw.power_of_ten(-decades, decades));
}

/// Returns the plain deviation in half of the matrices, and 1/30 to 10 times as much in the others.
double deviation_near(Draw& draw, double plain) {
  return draw.chance(0.5) ? plain : plain * draw.power_of_ten(-1.5, 1);
}

void temperatures(Draw& draw, Matrix a) { fill_around(draw, a, 288, deviation_near(draw, 0.5)); }

void pressures(Draw& draw, Matrix a) { fill_around(draw, a, 1013, deviation_near(draw, 1)); }

void round_entries(Matrix a) {
  change_entries(a, [](index_t, index_t, double x) { return std::round(x); });
}

void counts(Draw& draw, Matrix a) {
  fill_around(draw, a, 30000, deviation_near(draw, 50));
  round_entries(a);
}

/// Counts of a camera: a background, a bright spot, noise of the square root, 16 bits.
void image_counts(Draw& draw, Matrix a) {
  const double background = draw.power_of_ten(1, 4.5), peak = draw.power_of_ten(1, 4.5);
  const double row = draw.uniform() * static_cast<double>(a.rows);
  const double col = draw.uniform() * static_cast<double>(a.cols);
  const double width = draw.between(1, static_cast<double>(a.cols));
  std::vector<double> along_rows(static_cast<std::size_t>(a.rows)),
      along_cols(static_cast<std::size_t>(a.cols));
  const auto bell = [&](double x) { return std::exp(-x * x / (2 * width * width)); };
  for (index_t i = 0; i < a.rows; ++i) along_rows[i] = bell(static_cast<double>(i) - row);
  for (index_t j = 0; j < a.cols; ++j) along_cols[j] = bell(static_cast<double>(j) - col);
  fill_normal(draw, a);
  change_entries(a, [&](index_t i, index_t j, double noise) {
    const double mean = background + peak * along_rows[i] * along_cols[j];
    return std::clamp(std::round(mean + std::sqrt(mean) * noise), 0.0, 65535.0);
  });
}

void fill_years(Draw& draw, Matrix a, index_t j, index_t years) {
  for (index_t i = 0; i < a.rows; ++i) {
    a(i, j) = static_cast<double>(2000 + draw.whole(0, years - 1));
  }
}

index_t draw_years(Draw& draw) { return draw.chance(0.5) ? 20 : draw.whole(2, 100); }

void years_in_one_column(Draw& draw, Matrix a) {
  fill_normal(draw, a);
  fill_years(draw, a, draw.whole(0, a.cols - 1), draw_years(draw));
}

void years(Draw& draw, Matrix a) {
  const index_t span = draw_years(draw);
  for (index_t j = 0; j < a.cols; ++j) fill_years(draw, a, j, span);
}

/// A mean, a polynomial of the row in each column, and noise.
void trends(Draw& draw, Matrix a) {
  const index_t degree = draw.whole(1, 5);
  const double mean = draw.power_of_ten(-1, 4), noise = draw.distance();
  const std::vector<double> slopes = draw.normals(a.cols * degree);
  fill_normal(draw, a);
  for (index_t i = 0; i < a.rows; ++i) {
    const double t = static_cast<double>(i) / static_cast<double>(a.rows);
    for (index_t j = 0; j < a.cols; ++j) {
      double trend = 0;
      for (index_t p = 0; p < degree; ++p) trend = (trend + slopes[j * degree + p]) * t;
      a(i, j) = mean + trend + noise * a(i, j);
    }
  }
}

// ---- Columns near the span of others, and near each other ---------------------------------------

/// One column becomes a combination of `others` other columns, and a small difference.
void near_span(Draw& draw, Matrix a, index_t others) {
  fill_normal(draw, a);
  if (a.cols < 2) return;
  const std::vector<index_t> places = draw.places(a.cols);
  const index_t used = std::clamp<index_t>(others, 1, a.cols - 1);
  const std::vector<double> weights = draw.normals(used);
  const double norm = std::sqrt(static_cast<double>(used)), distance = draw.distance();
  for (index_t i = 0; i < a.rows; ++i) {
    double sum = 0;
    for (index_t p = 0; p < used; ++p) sum += weights[p] * a(i, places[p + 1]);
    a(i, places[0]) = sum / norm + distance * a(i, places[0]);
  }
}

void near_two(Draw& draw, Matrix a) { near_span(draw, a, 2); }
void near_half(Draw& draw, Matrix a) { near_span(draw, a, a.cols / 2); }
void near_all(Draw& draw, Matrix a) { near_span(draw, a, a.cols - 1); }

/// Columns of a group become the group's first column and a small difference. Groups lie side by
/// side, from a random column on, or are scattered.
void near_duplicates(Draw& draw, Matrix a, index_t smallest, index_t largest) {
  fill_normal(draw, a);
  const std::vector<index_t> places = draw.places(a.cols);
  const bool is_scattered = draw.chance(0.5), is_same_distance = draw.chance(0.5);
  const index_t start = draw.chance(0.5) ? 0 : draw.whole(0, a.cols - 1);
  // Either all groups or the first few groups get such columns.
  const index_t end = draw.chance(0.5) ? a.cols : draw.whole(1, a.cols);
  double distance = draw.distance();
  for (index_t first = 0; first < end;) {
    const index_t size = std::min(draw.whole(smallest, largest), a.cols - first);
    if (!is_same_distance) distance = draw.distance();
    const auto place = [&](index_t j) { return is_scattered ? places[j] : (start + j) % a.cols; };
    for (index_t j = first + 1; j < first + size; ++j) {
      const index_t from = place(first), to = place(j);
      for (index_t i = 0; i < a.rows; ++i) a(i, to) = a(i, from) + distance * a(i, to);
    }
    first += size;
  }
}

void duplicate_pairs(Draw& draw, Matrix a) { near_duplicates(draw, a, 2, 2); }
void duplicate_triples(Draw& draw, Matrix a) { near_duplicates(draw, a, 3, 3); }
void duplicate_groups(Draw& draw, Matrix a) { near_duplicates(draw, a, 4, 16); }

/// Makes groups within groups: column j is the sum of one vector for each level, scaled by the
/// level's distance; columns of one group of a level share its vector.
void nested_duplicates(Draw& draw, Matrix a) {
  const index_t levels = draw.whole(2, 4), factor = draw.whole(2, 4);
  const bool is_scattered = draw.chance(0.5);
  const std::vector<index_t> places = draw.places(a.cols);
  std::vector<double> shared(static_cast<std::size_t>(a.cols));
  double scale = 1;
  index_t width = 1;  // columns of a group
  for (index_t level = 1; level < levels; ++level) width *= factor;
  const double least = draw.digits() / static_cast<double>(levels);
  change_entries(a, [](index_t, index_t, double) { return 0.0; });
  for (index_t level = 0; level < levels; ++level, width /= factor) {
    for (index_t i = 0; i < a.rows; ++i) {
      draw.normals(shared.data(), (a.cols - 1) / width + 1);
      for (index_t j = 0; j < a.cols; ++j) {
        a(i, is_scattered ? places[j] : j) += scale * shared[j / width];
      }
    }
    scale *= draw.power_of_ten(-2 * least, 0);
  }
}

/// Columns that are the same but for a few entries.
void few_entries_differ(Draw& draw, Matrix a) {
  fill_normal(draw, a);
  const double distance = draw.chance(0.5) ? draw.distance() : 1;
  const index_t size = draw.whole(2, 8);
  for (index_t j = 0; j < a.cols; ++j) {
    const index_t first = j - j % size;
    if (j == first) continue;
    for (index_t i = 0; i < a.rows; ++i) a(i, j) = a(i, first);
    const index_t changed = draw.whole(1, 3);
    for (index_t p = 0; p < changed; ++p) a(draw.whole(0, a.rows - 1), j) += distance;
  }
}

/// Exact copies of columns, and columns of zeros.
void exact_duplicates(Draw& draw, Matrix a) {
  fill_normal(draw, a);
  const index_t changes = draw.whole(1, std::max<index_t>(1, a.cols / 2));
  for (index_t p = 0; p < changes; ++p) {
    const index_t from = draw.whole(0, a.cols - 1), to = draw.whole(0, a.cols - 1);
    const double factor = draw.chance(0.3) ? 0 : draw.chance(0.5) ? 1 : draw.normal();
    for (index_t i = 0; i < a.rows; ++i) a(i, to) = factor * a(i, from);
  }
}

// ---- Scales -------------------------------------------------------------------------------------

/// Columns of geometric scales in rising, falling or random order, and one that stands out.
void graded_columns(Draw& draw, Matrix a) {
  fill_normal(draw, a);
  const double decades = draw.between(0, 1.5 * draw.digits());
  const index_t order = draw.whole(0, 2);
  for (index_t j = 0; j < a.cols; ++j) {
    const double place =
        static_cast<double>(j) / static_cast<double>(std::max<index_t>(1, a.cols - 1));
    const double part = order == 0 ? place : order == 1 ? 1 - place : draw.uniform();
    scale_column(a, j, std::pow(10.0, -decades * part));
  }
  const index_t outlier = draw.whole(0, a.cols - 1);
  scale_column(a, outlier, draw.power_of_ten(-decades, decades));
  if (draw.chance(0.5)) return;
  // Every column gets a part of the outlier: small columns are then close to parallel.
  const double part = draw.distance();
  const std::vector<double> weights = draw.normals(a.cols);
  for (index_t i = 0; i < a.rows; ++i) {
    const double x = a(i, outlier);
    for (index_t j = 0; j < a.cols; ++j) a(i, j) += part * weights[j] * x;
  }
}

void scaled_rows(Draw& draw, Matrix a) {
  fill_normal(draw, a);
  const double decades = draw.between(1, 12);
  const index_t order = draw.whole(0, 2);
  for (index_t i = 0; i < a.rows; ++i) {
    const double place = static_cast<double>(i) / static_cast<double>(a.rows);
    const double part = order == 0 ? place : order == 1 ? 1 - place : draw.uniform();
    const double factor = std::pow(10.0, -decades * part);
    for (index_t j = 0; j < a.cols; ++j) a(i, j) *= factor;
  }
}

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

void gauss(Draw& draw, Matrix a) { fill_normal(draw, a); }

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
        const std::uint64_t bits = mix(static_cast<std::uint64_t>(point * a.cols + factor));
        return low + step * static_cast<double>(bits % static_cast<std::uint64_t>(levels));
      };
      a(i, j) = j == 0         ? 1
                : j <= factors ? level(j)
                               : level(1 + j % factors) * level(1 + (j / 2 + j) % factors);
    }
  }
}

const std::array families{
    AttackFamily{"gauss", "normal entries", gauss},
    AttackFamily{"offset", "a common mean, noise 10^-1 and less", offset},
    AttackFamily{"offset-half-decades", "1 + 10^-s x normal, s = 1, 1.5, ..", offset_half_decades},
    AttackFamily{"offset-columns", "a mean per column", offset_columns},
    AttackFamily{"offset-in-units", "a common mean, columns of any scale", offset_in_units},
    AttackFamily{"common-profile", "one profile in every column", common_profile},
    AttackFamily{"temperatures", "288 +- 0.5", temperatures},
    AttackFamily{"pressures", "1013 +- 1", pressures},
    AttackFamily{"counts", "30000 +- 50, whole numbers", counts},
    AttackFamily{"image-counts", "a background and a spot, whole numbers", image_counts},
    AttackFamily{"years-in-one", "a column of years beside others of size 1", years_in_one_column},
    AttackFamily{"years", "years in every column", years},
    AttackFamily{"trends", "a mean and polynomials of the row", trends},
    AttackFamily{"near-two", "a column near the span of two", near_two},
    AttackFamily{"near-half", "a column near the span of half of the others", near_half},
    AttackFamily{"near-all", "a column near the span of all others", near_all},
    AttackFamily{"duplicate-pairs", "near-duplicates, in pairs", duplicate_pairs},
    AttackFamily{"duplicate-triples", "near-duplicates, in threes", duplicate_triples},
    AttackFamily{"duplicate-groups", "near-duplicates, 4 to 16 together", duplicate_groups},
    AttackFamily{"nested-duplicates", "near-duplicates within near-duplicates", nested_duplicates},
    AttackFamily{"few-entries-differ", "columns that differ in 1 to 3 entries", few_entries_differ},
    AttackFamily{"exact-duplicates", "multiples of other columns, and zeros", exact_duplicates},
    AttackFamily{"graded-columns", "geometric scales and an outlier", graded_columns},
    AttackFamily{"scaled-rows", "rows over up to 12 decades", scaled_rows},
    AttackFamily{"geometric-spectrum", "geometric singular values", geometric_spectrum},
    AttackFamily{"one-small-value", "one small singular value", one_small_value},
    AttackFamily{"half-small-values", "half of the singular values small", half_small_values},
    AttackFamily{"orthogonal-kahan", "an orthogonal matrix times Kahan's", orthogonal_kahan},
    AttackFamily{"sparse", "zeros, 90 % in half of the matrices", sparse},
    AttackFamily{"vandermonde-to-1", "powers of nodes in [0, 1]", vandermonde_to_one},
    AttackFamily{"vandermonde-from-1", "powers of nodes in [1, 2]", vandermonde_from_one},
    AttackFamily{"vandermonde-integers", "powers of whole numbers", vandermonde_of_integers},
    AttackFamily{"integers", "whole numbers up to 1 .. 10000", integers},
    AttackFamily{"repeated-rows", "rows of their own beside one row often", repeated_rows},
    AttackFamily{"few-distinct-rows", "1 to 2 n different rows", few_distinct_rows},
    AttackFamily{"constant-rows", "rows of one number, noise in some", constant_rows},
    AttackFamily{"saturated", "values that end at a largest one", saturated},
    AttackFamily{"replicated-design", "factors of few levels, each point often", replicated_design},
};

constexpr std::array shapes{
    AttackShape{17, 17},     AttackShape{33, 20},    AttackShape{48, 40},
    AttackShape{64, 48},     AttackShape{64, 64},    AttackShape{80, 80},
    AttackShape{100, 81},    AttackShape{96, 96},    AttackShape{300, 88},
    AttackShape{128, 64},    AttackShape{200, 64},   AttackShape{300, 40},
    AttackShape{130, 100},   AttackShape{256, 128},  AttackShape{200, 130},
    AttackShape{300, 257},   AttackShape{512, 256},  AttackShape{600, 600},
    AttackShape{4000, 64},   AttackShape{4096, 17},  AttackShape{4000, 100},
    AttackShape{3000, 160},  AttackShape{20000, 33}, AttackShape{65536, 130},
    AttackShape{1000000, 20}};

std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0;
  for (const char c : text) hash = mix(hash ^ static_cast<unsigned char>(c));
  return hash;
}

}  // namespace

std::span<const AttackFamily> attack_families() { return families; }

std::span<const AttackFamily> families_of_alike_rows() { return std::span(families).last(5); }

std::span<const AttackShape> attack_shapes() { return shapes; }

template <class T>
void fill_attack(const AttackFamily& family, std::uint64_t seed, index_t index, MatrixView<T> a) {
  if (a.rows == 0 || a.cols == 0) return;
  thread_local std::vector<double> memory;
  memory.resize(static_cast<std::size_t>(a.rows * a.cols));
  const Matrix wide{memory.data(), a.rows, a.cols, a.cols};
  // From the family's name, not its place: a family more leaves the matrices of others as they are.
  Draw draw(mix(mix(seed) ^ hash_of(family.name)) ^ mix(static_cast<std::uint64_t>(index)),
            sizeof(T) == 4 ? 8 : 16);
  family.fill(draw, wide);
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = static_cast<T>(wide(i, j));
  }
}

template <class T>
void fill_attack_batch(std::span<const AttackFamily> chosen, index_t per_family, std::uint64_t seed,
                       index_t first, int threads, BatchView<T> a) {
  parallel_for(a.count, threads, [&](index_t b, int) {
    const index_t number = first + b;
    fill_attack<T>(chosen[static_cast<std::size_t>(number / per_family)], seed, number % per_family,
                   a[b]);
  });
}

template void fill_attack(const AttackFamily&, std::uint64_t, index_t, MatrixView<float>);
template void fill_attack(const AttackFamily&, std::uint64_t, index_t, MatrixView<double>);
template void fill_attack_batch(std::span<const AttackFamily>, index_t, std::uint64_t, index_t, int,
                                BatchView<float>);
template void fill_attack_batch(std::span<const AttackFamily>, index_t, std::uint64_t, index_t, int,
                                BatchView<double>);

}  // namespace qrtool::test
