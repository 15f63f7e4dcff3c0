// SPDX-License-Identifier: Apache-2.0
// data.cpp: draws a few matrices and repeats them.
#include "app/bench/timing/data.hpp"

#include <algorithm>
#include <cmath>

#include "core/machine/parallel.hpp"
#include "core/matrix/complex.hpp"
#include "core/matrix/matrices.hpp"

namespace qrtool {
namespace {

/// The largest number of random entries that are drawn, in about a second on one core. A complex
/// entry is two numbers, so half as many are drawn.
template <class T>
constexpr index_t drawn_entries = (index_t{1} << 24) / parts_of<T>;

template <class T>
double frobenius_norm(MatrixView<const T> a) {
  double sum = 0;
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) sum += double(a(i, j)) * double(a(i, j));
  return std::sqrt(sum);
}

/// Repeats the first rows until the matrix is full.
template <class T>
void repeat_rows(MatrixView<T> a, index_t first_rows, int threads) {
  const index_t copies = (a.rows + first_rows - 1) / first_rows - 1;
  parallel_for(copies, threads, [&](index_t i, int) {
    const index_t row = (i + 1) * first_rows, rows = std::min(first_rows, a.rows - row);
    std::copy_n(a.data, rows * a.cols, a.row_block(row, rows).data);
  });
}

/// Draws the first rows of Gaussian matrices, which are enough if one of them is very large.
template <class T>
void draw_gaussian(const MatrixRequest& request, BatchView<T> all, int threads) {
  const index_t m = all.rows, n = all.cols,
                drawn_rows = std::min(m, std::max(n, drawn_entries<T> / n));
  const index_t pieces = std::clamp<index_t>(16 * threads / all.count, 1, drawn_rows),
                rows = (drawn_rows + pieces - 1) / pieces;
  parallel_for(all.count * pieces, threads, [&](index_t i, int) {
    const index_t first = std::min(i % pieces * rows, drawn_rows);
    const MatrixView<T> part = all[i / pieces].row_block(0, drawn_rows);
    fill_rows<T>(request, i / pieces, part, first, std::min(rows, drawn_rows - first));
  });
  for (index_t b = 0; b < all.count; ++b) repeat_rows(all[b], drawn_rows, threads);
}

}  // namespace

template <class T>
BenchData<T>::BenchData(index_t count, index_t m, index_t n, const MatrixRequest& request,
                        int threads)
    : batch_(count, m, n),
      norms_(static_cast<std::size_t>(
          std::min(count, std::max<index_t>(1, drawn_entries<T> / (m * n))))) {
  const BatchView<T> all = batch_.view();
  const index_t drawn = std::ssize(norms_);
  if (request.kind == MatrixRequest{}.kind) {
    draw_gaussian(request, all.slice(0, drawn), threads);
  } else {
    parallel_for(drawn, threads, [&](index_t b, int) { fill_matrix<T>(request, b, all[b]); });
  }
  parallel_for(drawn, threads, [&](index_t b, int) {
    norms_[static_cast<std::size_t>(b)] = frobenius_norm<Real<T>>(interleaved(all[b]));
  });
  parallel_for(count - drawn, threads, [&](index_t i, int) {
    std::copy_n(all[i % drawn].data, m * n, all[drawn + i].data);
  });
}

void add_lines(Accuracy& accuracy, std::span<const MatrixReport> report,
               const std::vector<double>& norms) {
  for (std::size_t b = 0; b < report.size(); ++b) accuracy.add(report[b], norms[b % norms.size()]);
}

template class BenchData<float>;
template class BenchData<double>;
template class BenchData<std::complex<float>>;
template class BenchData<std::complex<double>>;

}  // namespace qrtool
