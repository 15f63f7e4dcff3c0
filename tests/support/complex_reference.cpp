// SPDX-License-Identifier: Apache-2.0
// complex_reference.cpp: one reflector after another, applied entry by entry.
#include "tests/support/complex_reference.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace qrtool::test {
namespace {

using Real = long double;
using Entry = ComplexMatrix::Entry;

/// x := (I - tau v v^H) x; v starts at row `top`.
void reflect(ComplexMatrix& x, const std::vector<Entry>& v, Entry tau, index_t top) {
  for (index_t j = 0; j < x.cols; ++j) {
    Entry dot = 0;
    for (std::size_t i = 0; i < v.size(); ++i)
      dot += std::conj(v[i]) * x(top + static_cast<index_t>(i), j);
    for (std::size_t i = 0; i < v.size(); ++i)
      x(top + static_cast<index_t>(i), j) -= tau * v[i] * dot;
  }
}

ComplexMatrix identity(index_t m, index_t n) {
  ComplexMatrix result(m, n);
  for (index_t i = 0; i < std::min(m, n); ++i) result(i, i) = 1;
  return result;
}

Real norm_of(const ComplexMatrix& x) {
  Real sum = 0;
  for (const Entry& e : x.entries) sum += std::norm(e);
  return std::sqrt(sum);
}

/// x := x - y z, or x - y^H z.
void subtract_product(ComplexMatrix& x, const ComplexMatrix& y, const ComplexMatrix& z,
                      bool is_adjoint) {
  for (index_t i = 0; i < (is_adjoint ? y.cols : y.rows); ++i)
    for (index_t l = 0; l < z.rows; ++l) {
      const Entry factor = is_adjoint ? std::conj(y(l, i)) : y(i, l);
      // Written out: operator* looks for NaN after every product.
      for (index_t j = 0; j < z.cols; ++j) {
        const Entry e = z(l, j);
        x(i, j) -= Entry(factor.real() * e.real() - factor.imag() * e.imag(),
                         factor.real() * e.imag() + factor.imag() * e.real());
      }
    }
}

class Draw {
 public:
  explicit Draw(std::mt19937_64& generator) : generator_(generator) {}
  Real normal() { return normal_(generator_); }
  Real uniform() { return uniform_(generator_); }
  Entry entry() {
    const Real re = normal();
    return {re, normal()};
  }
  Entry phase() { return std::polar(Real(1), 2 * std::acos(Real(-1)) * uniform()); }

 private:
  std::mt19937_64& generator_;
  std::normal_distribution<Real> normal_;
  std::uniform_real_distribution<Real> uniform_;
};

/// Gaussian columns around a common one: x_j = c + size g_j.
void fill_around(ComplexMatrix& a, Draw& draw, Real size) {
  for (index_t i = 0; i < a.rows; ++i) {
    const Entry c = draw.entry();
    for (index_t j = 0; j < a.cols; ++j) a(i, j) = c + size * draw.entry();
  }
}

void fill_rank(ComplexMatrix& a, Draw& draw, index_t rank) {
  ComplexMatrix x(a.rows, rank), y(rank, a.cols);
  for (Entry& e : x.entries) e = draw.entry();
  for (Entry& e : y.entries) e = draw.entry();
  subtract_product(a, x, y, false);
}

void multiply(ComplexMatrix& a, const std::function<Entry(index_t, index_t)>& factor) {
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) a(i, j) *= factor(i, j);
}

/// The exponent of a factor that stays within the type: 10^+-30 or 10^+-37 in float32.
struct Range {
  Real tiny, huge, smallest;
};

using Fill = std::function<void(ComplexMatrix&, Draw&, const Range&)>;

void fill_gauss(ComplexMatrix& a, Draw& draw, const Range&) {
  for (Entry& e : a.entries) e = draw.entry();
}

const std::map<std::string, Fill>& fills() {
  static const std::map<std::string, Fill> all{
      {"gauss", fill_gauss},
      {"zero", [](auto&, auto&, auto&) {}},
      {"identity", [](auto& a, auto&, auto&) { a = identity(a.rows, a.cols); }},
      {"phases",
       [](auto& a, Draw& draw, auto&) {
         for (Entry& e : a.entries) e = draw.phase();
       }},
      {"diagonal",
       [](auto& a, Draw& draw, auto&) {
         for (index_t i = 0; i < std::min(a.rows, a.cols); ++i) a(i, i) = draw.entry();
       }},
      {"triangular",
       [](auto& a, Draw& draw, auto&) {
         for (index_t i = 0; i < a.rows; ++i)
           for (index_t j = i; j < a.cols; ++j) a(i, j) = draw.entry();
       }},
      {"constant",
       [](auto& a, Draw& draw, auto&) {
         const Entry c = Real(0.5 + 0.5 * draw.uniform()) * draw.phase();
         for (Entry& e : a.entries) e = c;
       }},
      {"alike rows",
       [](auto& a, Draw& draw, auto&) {
         for (index_t j = 0; j < a.cols; ++j) a(0, j) = draw.entry();
         for (index_t i = 1; i < a.rows; ++i)
           for (index_t j = 0; j < a.cols; ++j)
             a(i, j) = a(0, j) + (i == j ? Entry(draw.normal()) : Entry(0));
       }},
      {"real",
       [](auto& a, Draw& draw, auto&) {
         for (Entry& e : a.entries) e = draw.normal();
       }},
      {"imaginary",
       [](auto& a, Draw& draw, auto&) {
         for (Entry& e : a.entries) e = {0, draw.normal()};
       }},
      {"graded columns",
       [](auto& a, Draw& draw, auto& range) {
         fill_gauss(a, draw, range);
         multiply(a, [](index_t, index_t j) { return std::pow(Real(10), -Real(j % 12)); });
       }},
      {"graded rows",
       [](auto& a, Draw& draw, auto& range) {
         fill_gauss(a, draw, range);
         multiply(a, [](index_t i, index_t) { return std::pow(Real(10), -Real(i % 12)); });
       }},
      {"growing rows",
       [](auto& a, Draw& draw, auto& range) {
         fill_gauss(a, draw, range);
         multiply(a, [](index_t i, index_t) { return std::pow(Real(10), Real(i % 12)); });
       }},
      {"columns of any scale",
       [](auto& a, Draw& draw, auto& range) {
         fill_gauss(a, draw, range);
         std::vector<Real> scale(static_cast<std::size_t>(a.cols));
         for (Real& s : scale) s = std::pow(range.tiny, draw.uniform());
         multiply(a, [&](index_t, index_t j) { return scale[static_cast<std::size_t>(j)]; });
       }},
      {"deficient",
       [](auto& a, Draw& draw, auto&) {
         fill_rank(a, draw, std::max<index_t>(1, std::min(a.rows, a.cols) / 2));
       }},
      {"rank one", [](auto& a, Draw& draw, auto&) { fill_rank(a, draw, 1); }},
      {"zero columns",
       [](auto& a, Draw& draw, auto& range) {
         fill_gauss(a, draw, range);
         multiply(a, [](index_t, index_t j) { return j % 3 == 0 ? 0 : 1; });
       }},
      {"clustered", [](auto& a, Draw& draw, auto&) { fill_around(a, draw, 1e-5L); }},
      {"near-duplicate", [](auto& a, Draw& draw, auto&) { fill_around(a, draw, 1e-14L); }},
      {"common mean",
       [](auto& a, Draw& draw, auto& range) {
         fill_gauss(a, draw, range);
         for (Entry& e : a.entries) e += Entry(1000, 500);
       }},
      {"Hilbert",
       [](auto& a, Draw& draw, auto&) {
         for (index_t i = 0; i < a.rows; ++i) {
           const Entry phase = draw.phase();
           for (index_t j = 0; j < a.cols; ++j) a(i, j) = phase / Real(i + j + 1);
         }
       }},
      {"sparse",
       [](auto& a, Draw& draw, auto&) {
         for (Entry& e : a.entries)
           if (draw.uniform() < 0.2L) e = draw.entry();
       }},
      {"tiny",
       [](auto& a, Draw& draw, auto& range) {
         fill_gauss(a, draw, range);
         for (Entry& e : a.entries) e *= range.tiny;
       }},
      {"huge",
       [](auto& a, Draw& draw, auto& range) {
         for (Entry& e : a.entries) e = range.huge * draw.phase();
       }},
      {"denormal",
       [](auto& a, Draw& draw, auto& range) {
         for (Entry& e : a.entries) e = range.smallest * Real(1000) * draw.entry();
       }},
      {"tails of any scale",
       [](auto& a, Draw& draw, auto& range) {
         fill_gauss(a, draw, range);
         multiply(a, [&](index_t i, index_t j) {
           return i > j ? std::pow(range.tiny, draw.uniform()) : Real(1);
         });
       }},
      {"imaginary diagonal of any scale",
       [](auto& a, Draw& draw, auto& range) {
         for (index_t i = 0; i < a.rows; ++i)
           for (index_t j = i; j < a.cols; ++j)
             a(i, j) = {draw.normal(), std::pow(range.tiny, draw.uniform())};
       }},
  };
  return all;
}

}  // namespace

ComplexReferenceQr complex_reference_qr(const ComplexMatrix& a) {
  const index_t k = std::min(a.rows, a.cols);
  ComplexReferenceQr result{identity(a.rows, a.rows), a,
                            std::vector<Entry>(static_cast<std::size_t>(k))};
  std::vector<std::vector<Entry>> reflectors(static_cast<std::size_t>(k));
  for (index_t j = 0; j < k; ++j) {
    std::vector<Entry>& v = reflectors[static_cast<std::size_t>(j)];
    Real tail = 0;
    for (index_t i = j; i < a.rows; ++i) {
      v.push_back(result.r(i, j));
      if (i > j) tail += std::norm(v.back());
    }
    if (tail == 0 && v[0].imag() == 0) continue;
    const Entry alpha = v[0];
    const Real norm = std::sqrt(std::norm(alpha) + tail), beta = alpha.real() >= 0 ? -norm : norm;
    const Entry tau = (beta - alpha) / beta;
    for (Entry& e : v) e /= alpha - beta;
    v[0] = 1;
    result.tau[static_cast<std::size_t>(j)] = tau;
    reflect(result.r, v, std::conj(tau), j);
    result.r(j, j) = beta;
    for (index_t i = j + 1; i < a.rows; ++i) result.r(i, j) = 0;
  }
  for (index_t j = k; j-- > 0;)
    reflect(result.q, reflectors[static_cast<std::size_t>(j)],
            result.tau[static_cast<std::size_t>(j)], j);
  return result;
}

ComplexMatrix q_of_reflectors(const ComplexMatrix& v, const ComplexMatrix& tau, index_t cols) {
  ComplexMatrix q = identity(v.rows, cols);
  for (index_t j = tau.cols; j-- > 0;) {
    std::vector<Entry> reflector{1};
    for (index_t i = j + 1; i < v.rows; ++i) reflector.push_back(v(i, j));
    reflect(q, reflector, tau(0, j), j);
  }
  return q;
}

ComplexRatios complex_ratios(const ComplexMatrix& a, const ComplexMatrix& q, const ComplexMatrix& r,
                             ElementType type) {
  ComplexMatrix difference = a, gram = identity(q.cols, q.cols);
  subtract_product(difference, q, r, false);
  subtract_product(gram, q, q, true);
  const Real norm = norm_of(a);
  const Errors errors{
      .norm = static_cast<double>(std::ldexp(norm, -std::ilogb(norm + (norm == 0)))),
      .scale = norm == 0 ? 0 : std::ilogb(norm)};
  const Bars bars = standard_bars(a.rows, a.cols, precision_of(type), errors);
  const Real residual = norm == 0 ? norm_of(difference) : norm_of(difference) / norm;
  return {static_cast<double>(residual / bars.residual),
          static_cast<double>(norm_of(gram) / bars.orthogonality)};
}

const std::vector<std::string>& complex_kinds() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [name, fill] : fills()) all.push_back(name);
    return all;
  }();
  return names;
}

template <class T>
void fill_complex(const std::string& kind, std::mt19937_64& generator,
                  MatrixView<std::complex<T>> a) {
  constexpr bool is_double = sizeof(T) == 8;
  const Range range{is_double ? 1e-290L : 1e-30L, is_double ? 1e305L : 1e37L,
                    std::numeric_limits<T>::denorm_min()};
  ComplexMatrix x(a.rows, a.cols);
  Draw draw(generator);
  fills().at(kind)(x, draw, range);
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j)
      a(i, j) = {static_cast<T>(x(i, j).real()), static_cast<T>(x(i, j).imag())};
}

template void fill_complex(const std::string&, std::mt19937_64&, MatrixView<std::complex<float>>);
template void fill_complex(const std::string&, std::mt19937_64&, MatrixView<std::complex<double>>);

}  // namespace qrtool::test
