// SPDX-License-Identifier: Apache-2.0
// matrices.cpp: the kinds of test matrices, after LAPACK's TESTING/MATGEN and matrices that made
// known QR codes fail.
#include "core/matrix/matrices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/join.hpp"
#include "core/matrix/complex.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Returns a uniform number in (0, 1), never 0.
double uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const std::uint64_t bits = mix_bits(mix_bits(mix_bits(seed) ^ stream) ^ index);
  return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
}

/// Everything that the value of an entry may depend on.
struct Entry {
  const MatrixRequest& request;
  std::uint64_t b;
  index_t i, j, m, n;

  double gauss() const { return gauss(i, j); }
  double gauss(index_t row, index_t col) const {
    return normal(request.seed, b, static_cast<std::uint64_t>(row * n + col));
  }
  /// Returns entry `position` of a geometric sequence from 1 at position 0 to 1 / cond at the last
  /// position.
  double grade(index_t position, index_t extent) const {
    if (extent < 2) return 1;
    return std::pow(request.cond, -static_cast<double>(position) / static_cast<double>(extent - 1));
  }
};

/// Rows `first` .. of a sum of max(1, k/2) outer products of small integers, which is exact in both
/// types.
class RankDeficient {
 public:
  RankDeficient(const MatrixRequest& request, std::uint64_t b, index_t m, index_t n, index_t first,
                index_t rows)
      : first_(first), rank_(std::max<index_t>(1, std::min(m, n) / 2)) {
    for (index_t i = first; i < first + rows; ++i) {
      for (index_t p = 0; p < rank_; ++p)
        left_.push_back(small_integer(request, b, 2 * (p * m + i)));
    }
    for (index_t j = 0; j < n; ++j) {
      for (index_t p = 0; p < rank_; ++p)
        right_.push_back(small_integer(request, b, 2 * (p * n + j) + 1));
    }
  }

  double operator()(index_t i, index_t j) const {
    const short *u = &left_[static_cast<std::size_t>((i - first_) * rank_)],
                *v = &right_[static_cast<std::size_t>(j * rank_)];
    int sum = 0;
#pragma omp simd reduction(+ : sum)
    for (index_t p = 0; p < rank_; ++p) sum += u[p] * v[p];
    return sum;
  }

 private:
  static short small_integer(const MatrixRequest& request, std::uint64_t b, index_t index) {
    return static_cast<short>(7 * uniform(request.seed, b, static_cast<std::uint64_t>(index))) - 3;
  }

  index_t first_, rank_;
  std::vector<short> left_, right_;  // the factors of an entry follow one another
};

/// The columns agree to about three units in the last place of float32.
double entry_near_deficient(const Entry& e) { return e.gauss(e.i, 0) + 0x1p-21 * e.gauss(); }

double entry_clustered(const Entry& e) {
  return e.gauss(e.i, e.j / 4) * (1 + 1e-4 * static_cast<double>(e.j % 4)) + 1e-3 * e.gauss();
}

/// Values around a common mean, as most measured data are: temperatures, pressures, intensities.
/// The deviation from the mean is 1/cond of the mean.
double entry_offset(const Entry& e) { return 1 + e.gauss() / e.request.cond; }

/// Groups of 2, 3 and 4 columns in turn; the columns of a group agree to 1/cond of their size.
double entry_near_duplicates(const Entry& e) {
  constexpr std::array<index_t, 9> first_of_group{0, 0, 2, 2, 2, 5, 5, 5, 5};
  const auto place = static_cast<std::size_t>(e.j % 9);
  const index_t first = e.j - e.j % 9 + first_of_group[place];
  const double shared = e.gauss(e.i, first);
  return e.j == first ? shared : shared + e.gauss() / e.request.cond;
}

/// Whole numbers, as a detector counts them.
double entry_counts(const Entry& e) { return std::round(30000 + 50 * e.gauss()); }

double entry_kahan(const Entry& e) {
  const double s = std::sin(1.2), c = std::cos(1.2);
  if (e.i > e.j) return 0;
  return std::pow(s, static_cast<double>(e.i)) * (e.i == e.j ? 1 : -c);
}

double entry_mixed(const Entry& e) {
  // Neighbours differ much in size: 1e-30, 1e-15, 1, 1e15, 1e30 in turn.
  return e.gauss() * std::pow(10.0, 15.0 * (static_cast<double>(e.b % 5) - 2));
}

double entry_zero_columns(const Entry& e) {
  const bool is_zero = e.j == 0 || e.j == e.n / 2 || e.j == e.n - 1;
  return is_zero && e.n > 1 ? 0.0 : e.gauss();
}

/// The last quarter of the columns is `size` times normal entries.
double entry_with_last_quarter(const Entry& e, double size) {
  return e.gauss() * (e.j >= e.n - e.n / 4 ? size : 1);
}
double entry_zero_quarter(const Entry& e) { return entry_with_last_quarter(e, 0); }
double entry_noise_quarter(const Entry& e) { return entry_with_last_quarter(e, 1e-5); }

/// The second half of the columns has the size of four rounding errors of float32.
double entry_small_half(const Entry& e) { return e.gauss() * (e.j >= (e.n + 1) / 2 ? 0x1p-21 : 1); }

double entry_near_collinear(const Entry& e) { return e.gauss(e.i, 0) + 1e-4 * e.gauss(); }

double entry_upper(const Entry& e) { return e.i <= e.j ? e.gauss() : 0.0; }
double entry_band(const Entry& e) { return std::abs(e.i - e.j) <= 2 ? e.gauss() : 0.0; }
double entry_graded_rows(const Entry& e) { return e.gauss() * e.grade(e.i, e.m); }
double entry_graded_columns(const Entry& e) { return e.gauss() * e.grade(e.j, e.n); }

/// A batch of all kinds of the gpu-mode contest qr_v2, at random places.
double entry_contest(const Entry& e) {
  constexpr std::array kinds{entry_graded_columns, entry_zero_quarter, entry_noise_quarter,
                             entry_small_half,     entry_band,         entry_graded_rows,
                             entry_near_collinear, entry_upper};
  return kinds[mix_bits(mix_bits(e.request.seed) ^ e.b) % kinds.size()](e);
}

struct NamedEntry {
  MatrixKind kind;
  double (*value)(const Entry&);  // null where entries are not computed one by one
  bool is_product = false;        // RankDeficient has them
};

constexpr double huge_scale = 1e37 / 6;  // six standard deviations stay below 1e37

const std::array named_entries{
    NamedEntry{{"gauss", "independent standard normal entries"},
               [](const Entry& e) { return e.gauss(); }},
    NamedEntry{
        {"uniform", "independent entries in (-1, 1)"},
        [](const Entry& e) { return 2 * uniform(e.request.seed, e.b, e.i * e.n + e.j) - 1; }},
    NamedEntry{{"identity", "ones on the diagonal"},
               [](const Entry& e) { return e.i == e.j ? 1.0 : 0.0; }},
    NamedEntry{{"zero", "all zeros"}, [](const Entry&) { return 0.0; }},
    NamedEntry{{"upper", "upper triangular, normal"}, entry_upper},
    NamedEntry{{"constant", "every entry 0.1"}, [](const Entry&) { return 0.1; }},
    NamedEntry{{"graded-rows", "normal, rows scaled from 1 down to 1/cond", true},
               entry_graded_rows},
    NamedEntry{{"graded-columns", "normal, columns scaled from 1 down to 1/cond", true},
               entry_graded_columns},
    NamedEntry{{"hilbert", "1 / (i + j + 1)"},
               [](const Entry& e) { return 1.0 / static_cast<double>(e.i + e.j + 1); }},
    NamedEntry{{"rank-deficient", "exactly rank max(1, k/2), small integers"}, nullptr, true},
    NamedEntry{{"near-deficient", "columns that agree to 2^-21"}, entry_near_deficient},
    NamedEntry{{"clustered", "columns in clusters of four"}, entry_clustered},
    NamedEntry{{"band", "normal within two diagonals of the main one"}, entry_band},
    NamedEntry{{"tiny", "normal times 1e-30"}, [](const Entry& e) { return e.gauss() * 1e-30; }},
    NamedEntry{{"huge", "normal, largest near 1e37"},
               [](const Entry& e) { return std::clamp(e.gauss(), -6.0, 6.0) * huge_scale; }},
    NamedEntry{{"mixed", "normal, scales 1e-30 to 1e30 over the batch"}, entry_mixed},
    NamedEntry{{"kahan", "Kahan's upper triangular matrix, theta = 1.2"}, entry_kahan},
    NamedEntry{{"integers", "integers from -8 to 8"},
               [](const Entry& e) {
                 return std::floor(17 * uniform(e.request.seed, e.b, e.i * e.n + e.j)) - 8;
               }},
    NamedEntry{{"zero-columns", "normal, first, middle and last column zero"}, entry_zero_columns},
    NamedEntry{{"offset", "1 + normal / cond: a common mean, noise of 1/cond of it", true},
               entry_offset},
    NamedEntry{{"near-duplicates", "groups of 2, 3 and 4 columns that agree to 1/cond", true},
               entry_near_duplicates},
    NamedEntry{{"counts", "whole numbers around 30000, deviation 50"}, entry_counts},
    NamedEntry{{"zero-quarter", "normal, the last quarter of the columns zero"},
               entry_zero_quarter},
    NamedEntry{{"noise-quarter", "normal, the last quarter of the columns times 1e-5"},
               entry_noise_quarter},
    NamedEntry{{"small-half", "normal, the second half of the columns times 2^-21"},
               entry_small_half},
    NamedEntry{{"near-collinear", "columns that agree to 1e-4"}, entry_near_collinear},
    NamedEntry{{"contest", "the kinds of the contest qr_v2 at random places of a batch", true},
               entry_contest},
    NamedEntry{{"cond", "singular values from 1 down to 1/cond, geometric", true}, nullptr},
};

/// A := H A with H = I - 2 v v' / v'v, where v is a normal vector from the given stream.
void reflect_rows(MatrixView<double> a, std::uint64_t seed, std::uint64_t stream) {
  std::vector<double> v(static_cast<std::size_t>(a.rows)), w(static_cast<std::size_t>(a.cols), 0.0);
  double vv = 0;
  for (index_t i = 0; i < a.rows; ++i) {
    v[i] = normal(seed, stream, static_cast<std::uint64_t>(i));
    vv += v[i] * v[i];
  }
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < a.cols; ++j) w[j] += v[i] * a(i, j);
  }
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < a.cols; ++j) a(i, j) -= 2 / vv * v[i] * w[j];
  }
}

void transpose_into(MatrixView<const double> a, MatrixView<double> out) {
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < a.cols; ++j) out(j, i) = a(i, j);
  }
}

/// A = U S V', where U and V are products of three random reflectors: A is dense and its singular
/// values are known exactly.
template <class T>
void fill_cond(const MatrixRequest& request, std::uint64_t b, MatrixView<T> a) {
  const auto size = static_cast<std::size_t>(a.rows * a.cols);
  std::vector<double> values(size, 0.0), transposed(size);
  const MatrixView<double> x{values.data(), a.rows, a.cols, a.cols};
  const MatrixView<double> xt{transposed.data(), a.cols, a.rows, a.rows};
  const index_t k = std::min(a.rows, a.cols);
  for (index_t i = 0; i < k; ++i) x(i, i) = Entry{request, b, i, i, a.rows, a.cols}.grade(i, k);
  for (std::uint64_t turn = 0; turn < 3; ++turn) reflect_rows(x, request.seed, 8 * b + turn);
  transpose_into(x, xt);
  for (std::uint64_t turn = 3; turn < 6; ++turn) reflect_rows(xt, request.seed, 8 * b + turn);
  for (index_t i = 0; i < a.rows; ++i) {
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = static_cast<T>(xt(j, i));
  }
}

/// Returns the kind of matrix b. `kinds` is one kind or several joined by "+", which the matrices
/// have in turn.
std::string_view kind_of(std::string_view kinds, index_t b) {
  index_t at = b % (std::ranges::count(kinds, '+') + 1);
  for (; at > 0; --at) kinds.remove_prefix(kinds.find('+') + 1);
  return kinds.substr(0, kinds.find('+'));
}

const NamedEntry& find_kind(std::string_view name) {
  for (const NamedEntry& named : named_entries) {
    if (named.kind.name == name) return named;
  }
  std::vector<std::string_view> names;
  for (const NamedEntry& named : named_entries) names.push_back(named.kind.name);
  const std::string_view guess = nearest(name, names);
  throw UsageError("unknown kind of matrix '" + escape(name) + "'" +
                   (guess.empty() ? "; it may be " + join(names, ", ")
                                  : "; did you mean '" + std::string(guess) + "'?"));
}

}  // namespace

double normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  // Box and Muller (1958) give two numbers; this is the first.
  const double radius = std::sqrt(-2 * std::log(uniform(seed, stream, 2 * index)));
  return radius * std::cos(2 * std::numbers::pi * uniform(seed, stream, 2 * index + 1));
}

bool uses_cond(std::string_view kind) {
  return std::ranges::any_of(
      matrix_kinds(), [&](const MatrixKind& each) { return each.name == kind && each.uses_cond; });
}

std::span<const MatrixKind> matrix_kinds() {
  static const auto kinds = [] {
    std::array<MatrixKind, named_entries.size()> list;
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = named_entries[i].kind;
    return list;
  }();
  return kinds;
}

namespace {

/// Returns exp(i phase) for row or column `index`.
std::complex<double> phase(std::uint64_t seed, std::uint64_t stream, index_t index) {
  return std::polar(
      1.0, 2 * std::numbers::pi * uniform(seed, stream, static_cast<std::uint64_t>(index)));
}

/// Makes a complex matrix from real ones.
class ComplexKind {
 public:
  ComplexKind(const MatrixRequest& request, index_t b)
      : other_(request), stream_(2 * static_cast<std::uint64_t>(b)) {
    const std::string_view kind = kind_of(request.kind, b);
    has_two_ = kind == "gauss" || kind == "uniform" || kind == "integers";
    // The streams of the phases and of Y differ from the streams of every matrix that is drawn from
    // the seed.
    other_.seed = mix_bits(request.seed ^ 0xc0);
  }

  /// Whether the matrix is X + iY; else it is X with random phases.
  bool has_two() const { return has_two_; }
  /// Returns the request for Y.
  const MatrixRequest& other() const { return other_; }
  /// Returns entry (i, j) with its phase; x is the entry of X.
  template <class T>
  std::complex<T> turned(T x, index_t i, index_t j) const {
    const std::complex<double> turn =
        phase(other_.seed, stream_, i) * phase(other_.seed, stream_ + 1, j);
    return std::complex<T>(static_cast<double>(x) * turn);
  }

 private:
  MatrixRequest other_;
  std::uint64_t stream_;
  bool has_two_;
};

/// Fills a complex matrix of a kind that prescribes its singular values: the real matrix of that
/// kind, with its rows and columns multiplied by random phases.
template <class T>
void fill_complex_cond(const MatrixRequest& request, index_t b, MatrixView<std::complex<T>> a) {
  const Batch<T> real(1, a.rows, a.cols);
  const MatrixView<T> x = real.view()[0];
  const ComplexKind kind(request, b);
  fill_cond(request, static_cast<std::uint64_t>(b), x);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = kind.turned(x(i, j), i, j);
}

}  // namespace

template <class T>
void fill_matrix(const MatrixRequest& request, index_t b, MatrixView<T> a) {
  const NamedEntry& named = find_kind(kind_of(request.kind, b));
  if (named.value != nullptr || named.is_product) return fill_rows(request, b, a, 0, a.rows);
  if constexpr (is_complex_number<T>)
    fill_complex_cond(request, b, a);
  else
    fill_cond(request, static_cast<std::uint64_t>(b), a);
}

template <class T>
void fill_rows(const MatrixRequest& request, index_t b, MatrixView<T> a, index_t first,
               index_t rows) {
  const NamedEntry& named = find_kind(kind_of(request.kind, b));
  const auto number = static_cast<std::uint64_t>(b);
  std::optional<RankDeficient> product;
  if (named.is_product) product.emplace(request, number, a.rows, a.cols, first, rows);
  const auto value = [&](const MatrixRequest& from, index_t i, index_t j) {
    return static_cast<Real<T>>(product ? (*product)(i, j)
                                        : named.value({from, number, i, j, a.rows, a.cols}));
  };
  const auto fill = [&](const auto& entry) {
    // The number of columns of a product that stay in the cache.
    constexpr index_t strip = 32;
    for (index_t begin = 0; begin < a.cols; begin += strip) {
      for (index_t i = first; i < first + rows; ++i)
        for (index_t j = begin; j < std::min(begin + strip, a.cols); ++j) a(i, j) = entry(i, j);
    }
  };
  if constexpr (is_complex_number<T>) {
    const ComplexKind kind(request, b);
    fill([&](index_t i, index_t j) {
      const Real<T> x = value(request, i, j);
      return kind.has_two() ? T{x, value(kind.other(), i, j)} : kind.turned(x, i, j);
    });
  } else {
    fill([&](index_t i, index_t j) { return value(request, i, j); });
  }
}

template void fill_matrix(const MatrixRequest&, index_t, MatrixView<float>);
template void fill_matrix(const MatrixRequest&, index_t, MatrixView<double>);
template void fill_matrix(const MatrixRequest&, index_t, MatrixView<std::complex<float>>);
template void fill_matrix(const MatrixRequest&, index_t, MatrixView<std::complex<double>>);
template void fill_rows(const MatrixRequest&, index_t, MatrixView<float>, index_t, index_t);
template void fill_rows(const MatrixRequest&, index_t, MatrixView<double>, index_t, index_t);
template void fill_rows(const MatrixRequest&, index_t, MatrixView<std::complex<float>>, index_t,
                        index_t);
template void fill_rows(const MatrixRequest&, index_t, MatrixView<std::complex<double>>, index_t,
                        index_t);

}  // namespace qrtool
