// SPDX-License-Identifier: Apache-2.0
// attack_columns.cpp: families whose columns are near each other: around a mean, near the span of
// others, of very different scales.
#include <algorithm>

#include "tests/support/attack_fill.hpp"

namespace qrtool::test {
namespace {

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

// ---- Functions of two points, all of whose columns are nearly dependent -------------------------

/// function(x, t) of a point of the row and one of the column, from 0 to 1, in order in half of the
/// matrices.
template <class Function>
void fill_function(Draw& draw, Matrix a, Function function) {
  const bool is_sorted = draw.chance(0.5);
  const auto points = [&](index_t count) {
    std::vector<double> x(static_cast<std::size_t>(count));
    for (double& each : x) each = draw.uniform();
    if (is_sorted) std::sort(x.begin(), x.end());
    return x;
  };
  const std::vector<double> x = points(a.rows), t = points(a.cols);
  change_entries(a, [&](index_t i, index_t j, double) { return function(x[i], t[j]); });
}

void radial_kernel(Draw& draw, Matrix a) {
  const double width = draw.power_of_ten(-2, 0.5);
  fill_function(draw, a, [&](double x, double t) {
    const double apart = (x - t) / width;
    return std::exp(-apart * apart);
  });
}

void exponentials(Draw& draw, Matrix a) {
  const double rate = draw.power_of_ten(-0.5, 2);
  fill_function(draw, a, [&](double x, double t) { return std::exp(-rate * x * t); });
}

void cauchy(Draw& draw, Matrix a) {
  const double apart = draw.power_of_ten(-4, 0.5);
  fill_function(draw, a, [&](double x, double t) { return 1 / (x + t + apart); });
}

void vandermonde_in_all_columns(Draw& draw, Matrix a) {
  const double least = draw.between(-1, 1);
  for (index_t i = 0; i < a.rows; ++i) {
    const double x = draw.between(least, 1);
    double power = 1;
    for (index_t j = 0; j < a.cols; ++j, power *= x) a(i, j) = power;
  }
}

// ---- Scales whose squares leave the range of the type -------------------------------------------

/// Normal entries times 2^p, |p| = 160 .. 1000 (float32: 20 .. 100): one p, one of two signs in the
/// columns, or any p in each.
void powers_of_two(Draw& draw, Matrix a) {
  const bool is_double = draw.digits() > 8;
  const auto exponent = [&] {
    const index_t size = is_double ? draw.whole(160, 1000) : draw.whole(20, 100);
    return static_cast<int>(draw.chance(0.5) ? size : -size);
  };
  const index_t kind = draw.whole(0, 2);
  const int one = exponent();
  fill_normal(draw, a);
  for (index_t j = 0; j < a.cols; ++j) {
    const int other = exponent();
    const int p = kind == 0 ? one : kind == 1 ? (other > 0 ? one : -one) : other;
    for (index_t i = 0; i < a.rows; ++i) a(i, j) = std::ldexp(a(i, j), p);
  }
}
}  // namespace

const std::vector<AttackFamily>& column_families() {
  static const std::vector<AttackFamily> list{
      {"gauss", "normal entries", fill_normal},
      {"offset", "a common mean, noise 10^-1 and less", offset},
      {"offset-half-decades", "1 + 10^-s x normal, s = 1, 1.5, ..", offset_half_decades},
      {"offset-columns", "a mean per column", offset_columns},
      {"offset-in-units", "a common mean, columns of any scale", offset_in_units},
      {"common-profile", "one profile in every column", common_profile},
      {"temperatures", "288 +- 0.5", temperatures},
      {"pressures", "1013 +- 1", pressures},
      {"counts", "30000 +- 50, whole numbers", counts},
      {"image-counts", "a background and a spot, whole numbers", image_counts},
      {"years-in-one", "a column of years beside others of size 1", years_in_one_column},
      {"years", "years in every column", years},
      {"trends", "a mean and polynomials of the row", trends},
      {"near-two", "a column near the span of two", near_two},
      {"near-half", "a column near the span of half of the others", near_half},
      {"near-all", "a column near the span of all others", near_all},
      {"duplicate-pairs", "near-duplicates, in pairs", duplicate_pairs},
      {"duplicate-triples", "near-duplicates, in threes", duplicate_triples},
      {"duplicate-groups", "near-duplicates, 4 to 16 together", duplicate_groups},
      {"nested-duplicates", "near-duplicates within near-duplicates", nested_duplicates},
      {"few-entries-differ", "columns that differ in 1 to 3 entries", few_entries_differ},
      {"exact-duplicates", "multiples of other columns, and zeros", exact_duplicates},
      {"graded-columns", "geometric scales and an outlier", graded_columns},
      {"scaled-rows", "rows over up to 12 decades", scaled_rows},
      {"radial-kernel", "exp(-((x - t) / width)^2)", radial_kernel},
      {"exponentials", "exp(-rate x t)", exponentials},
      {"cauchy", "1 / (x + t + apart)", cauchy},
      {"vandermonde-all", "powers of nodes in all columns", vandermonde_in_all_columns},
      {"powers-of-two", "columns times 2^+-160 .. 2^+-1000", powers_of_two},
  };
  return list;
}

}  // namespace qrtool::test
