// SPDX-License-Identifier: Apache-2.0
// gram_probe.cpp: A'(A X) leaf by leaf, a few rows at a time, each leaf scaled by a power of two.
#include "core/measure/gram_probe.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/machine/parallel.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/magnitude.hpp"
#include "core/measure/probe_kernel.hpp"
#include "core/simd/instruction_sets.hpp"

namespace qrtool {
namespace {

constexpr index_t lanes = probe::vectors;
static_assert(lanes == gram_probe_vectors(ElementType::float32));
constexpr std::uint64_t gram_probe_seed = 0x9e0be, probe_stream = 1;

/// The number of rows of a plain sum, before Kahan's sum takes over. Equal terms bias a plain sum
/// by up to its length in units of float64 (core/report/ratios.hpp).
template <class T>
constexpr index_t tile_rows = sizeof(Real<T>) == 4 ? 128 : 32;
static_assert(tile_rows<float> >= probe::most_rows);

/// The scale of a leaf is 0 if its squares and their sums are normal numbers in float64.
constexpr int most_exponent = 400;

double draw(index_t number) {
  return normal(gram_probe_seed, probe_stream, static_cast<std::uint64_t>(number));
}

/// X for n columns of T, in real numbers.
template <class T>
std::vector<double> make_vectors(index_t n) {
  constexpr index_t vectors = gram_probe_vectors(element_type<T>);
  const Batch<Wide<T>> numbers(1, n, vectors);
  const MatrixView<Wide<T>> x = numbers.view()[0];
  for (index_t i = 0; i < n; ++i) {
    for (index_t l = 0; l < vectors; ++l) {
      const index_t at = i * vectors + l;
      if (n <= vectors)
        x(i, l) = i == l ? 1.0 : 0.0;
      else if constexpr (is_complex_number<T>)
        x(i, l) = std::sqrt(0.5) * Wide<T>(draw(2 * at), draw(2 * at + 1));
      else
        x(i, l) = draw(at);
    }
  }
  std::vector<double> real(static_cast<std::size_t>(parts_of<T> * n * lanes));
  if constexpr (is_complex_number<T>)
    embed(MatrixView<const Wide<T>>(x), MatrixView<double>{real.data(), 2 * n, lanes, lanes});
  else
    std::copy_n(x.data, n * lanes, real.data());
  return real;
}

/// sum += term, with the rounding error in `rest` (Kahan).
void add_compensated(double term, double& sum, double& rest) {
  const double corrected = term - rest;
  const double next = sum + corrected;
  rest = (next - sum) - corrected;
  sum = next;
}

/// t := rows 2^-exponent, with two factors, as 2^-exponent overflows for denormal numbers.
template <class T>
void copy_scaled(MatrixView<const T> rows, int exponent, double* t) {
  const double half = std::ldexp(1.0, -(exponent / 2));
  const double rest = std::ldexp(1.0, -(exponent - exponent / 2));
  for (index_t i = 0; i < rows.rows; ++i) {
    const T* row = rows.data + i * rows.ld;
    for (index_t j = 0; j < rows.cols; ++j)
      t[i * rows.cols + j] = static_cast<double>(row[j]) * half * rest;
  }
}

/// The squares of all float32 numbers are in the range of float64.
template <class T>
int exponent_of_leaf(MatrixView<const T> rows) {
  if constexpr (sizeof(T) == 4) return 0;
  const int exponent = magnitude_of<T>(rows).scale();
  return std::abs(exponent) <= most_exponent ? 0 : exponent;
}

/// sum += A'(A X) for the rows A 2^-exponent. Returns the sum of their squares. `work` has an
/// entry for each of A.
template <class T>
double add_tile(MatrixView<const T> rows, int exponent, const double* x, double* sum,
                double* work) {
  const probe::Kernels& kernels = *probe::kernels().front();
  if (rows.ld == rows.cols && exponent == 0) {
    if constexpr (sizeof(T) == 4) {
      return kernels.add_single(rows.data, rows.rows, rows.cols, x, sum, work);
    } else {
      return kernels.add_double(rows.data, rows.rows, rows.cols, x, sum);
    }
  }
  copy_scaled(rows, exponent, work);
  return kernels.add_double(work, rows.rows, rows.cols, x, sum);
}

}  // namespace

std::span<const probe::Kernels* const> probe::kernels() {
  static constexpr std::array all{QRTOOL_EACH_SET(probe, probe)};
  return supported(all);
}

template <class T>
GramProbe<T>::GramProbe(const TallShape& shape, const AllocateHost& allocate)
    : shape_(shape),
      columns_(parts_of<T> * shape.n()),
      slot_size_(2 + columns_ * lanes),
      x_(make_vectors<T>(shape.n())),
      memory_(allocate(bytes(shape))) {}

template <class T>
std::size_t GramProbe<T>::bytes(const TallShape& shape) {
  const index_t columns = parts_of<T> * shape.n();
  return sizeof(double) * static_cast<std::size_t>(shape.leaves() * (2 + columns * lanes));
}

template <class T>
std::size_t GramProbe<T>::worker_bytes(const TallShape& shape) {
  const index_t columns = parts_of<T> * shape.n();
  return sizeof(double) * static_cast<std::size_t>(columns * (tile_rows<T> + 2 * lanes));
}

template <class T>
std::span<double> GramProbe<T>::sums(index_t leaf, index_t leaves) const {
  auto* all = reinterpret_cast<double*>(memory_.get());
  return {all + leaf * slot_size_, static_cast<std::size_t>(leaves * slot_size_)};
}

template <class T>
void GramProbe<T>::add(index_t leaf, MatrixView<const T> rows, int threads) {
  const index_t height = shape_.leaf_rows(), leaves = (rows.rows + height - 1) / height;
  parallel_for(leaves, threads, [&](index_t i, int) {
    const index_t first = i * height;
    add_leaf(interleaved(rows.row_block(first, std::min(height, rows.rows - first))),
             sums(leaf + i, 1).data());
  });
}

template <class T>
void GramProbe<T>::add_leaf(MatrixView<const Real<T>> rows, double* slot) const {
  const index_t n = columns_, size = n * lanes;
  const int exponent = exponent_of_leaf(rows);
  std::vector<double> work(static_cast<std::size_t>(n * tile_rows<T> + 2 * size));
  double *tile_sum = work.data() + n * tile_rows<T>, *rest = tile_sum + size;
  double norm = 0, norm_rest = 0;
  std::fill_n(slot, slot_size_, 0.0);
  for (index_t i = 0; i < rows.rows; i += tile_rows<T>) {
    const index_t count = std::min(tile_rows<T>, rows.rows - i);
    std::fill_n(tile_sum, size, 0.0);
    const double squares =
        add_tile(rows.row_block(i, count), exponent, x_.data(), tile_sum, work.data());
    for (index_t l = 0; l < size; ++l) add_compensated(tile_sum[l], slot[2 + l], rest[l]);
    add_compensated(squares, norm, norm_rest);
  }
  slot[0] = exponent;
  slot[1] = norm;
}

/// ||E X||^2 by the products of real numbers, columns x 8.
template <class T>
double GramProbe<T>::squares_of(const double* products) const {
  double squares = 0;
  if constexpr (is_complex_number<T>) {
    for (index_t i = 0; i < columns_; i += 2) {
      const double *const of_re = products + i * lanes, *const of_im = of_re + lanes;
      for (index_t l = 0; l < lanes; l += 2)
        squares += square_of(Wide<T>(of_re[l] + of_im[l + 1], of_re[l + 1] - of_im[l]));
    }
  } else {
    for (index_t l = 0; l < columns_ * lanes; ++l) squares += products[l] * products[l];
  }
  return squares;
}

template <class T>
Errors GramProbe<T>::finish(MatrixView<const T> r, int scale) const {
  const index_t n = columns_, size = 1 + n * lanes;
  // The sums of ||A||^2 and A'A X, scaled like A.
  std::vector<double> sum(static_cast<std::size_t>(size)), rest(sum.size());
  for (index_t leaf = 0; leaf < shape_.leaves(); ++leaf) {
    const double* slot = sums(leaf, 1).data();
    if (slot[1] == 0) continue;  // a leaf of zeros has no scale
    const double factor = std::ldexp(1.0, 2 * (static_cast<int>(slot[0]) - scale));
    for (index_t l = 0; l < size; ++l) add_compensated(slot[1 + l] * factor, sum[l], rest[l]);
  }
  // R'R X is subtracted.
  std::vector<double> rows(static_cast<std::size_t>(tile_rows<T> * n));
  std::vector<double> product(static_cast<std::size_t>(n * lanes));
  for (index_t i = 0; i < r.rows; i += tile_rows<T>) {
    const index_t count = std::min(tile_rows<T>, r.rows - i);
    copy_scaled(interleaved(r.row_block(i, count)), scale, rows.data());
    std::fill(product.begin(), product.end(), 0.0);
    probe::kernels().front()->add_double(rows.data(), count, n, x_.data(), product.data());
    for (index_t l = 1; l < size; ++l) add_compensated(-product[l - 1], sum[l], rest[l]);
  }
  double largest = 0, least = std::numeric_limits<double>::infinity();
  for (index_t i = 0; i < shape_.k(); ++i) {
    largest = std::max(largest, std::abs(static_cast<Wide<T>>(r(i, i))));
    least = std::min(least, std::abs(static_cast<Wide<T>>(r(i, i))));
  }
  const double squares = squares_of(sum.data() + 1);
  const double error = std::sqrt(shape_.n() > vectors ? squares / vectors : squares);
  Errors errors;
  errors.scale = scale;
  errors.norm = std::sqrt(sum[0]);
  errors.residual = error == 0 ? 0 : error / sum[0];
  errors.lower = 0;
  errors.diagonal_ratio = largest > 0 ? least / largest : 0;
  return errors;
}

template class GramProbe<float>;
template class GramProbe<double>;
template class GramProbe<std::complex<float>>;
template class GramProbe<std::complex<double>>;

}  // namespace qrtool
