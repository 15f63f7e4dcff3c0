// SPDX-License-Identifier: Apache-2.0
// row_parts.cpp: the parts are measured in any order, and their sums are added in one order.
#include "core/measure/row_parts.hpp"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "core/machine/parallel.hpp"
#include "core/matrix/complex.hpp"

namespace qrtool {

namespace {

/// Calls keep(sums) for the sums of every part, in order.
template <class T, class Keep>
void for_each_part(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                   const RowParts& by, const ErrorMeter& total, Keep keep) {
  const index_t parts = (a.rows + by.rows - 1) / by.rows;
  const index_t tall = std::max(2 * by.rows, 2 * a.cols);  // has the tiles of a tall matrix
  std::mutex mutex;
  std::map<index_t, std::vector<double>> waiting;  // for parts before them
  index_t next = 0;
  parallel_for(parts, by.threads, [&](index_t part, int) {
    ErrorMeter meter(tall, a.cols, q.cols, r.rows, 1, is_complex_number<T>);
    const index_t first = part * by.rows, count = std::min(by.rows, a.rows - first);
    meter.start(r, total.scale());
    meter.add_rows(a.row_block(first, count), q.data == nullptr ? q : q.row_block(first, count));
    std::vector<double> sums = meter.sums();
    const std::lock_guard lock(mutex);
    waiting.emplace(part, std::move(sums));
    for (auto it = waiting.begin(); it != waiting.end() && it->first == next; ++next) {
      keep(it->second);
      it = waiting.erase(it);
    }
  });
}

}  // namespace

template <class T>
void add_rows_by_parts(MatrixView<const T> a, MatrixView<const T> q, MatrixView<const T> r,
                       const RowParts& parts, ErrorMeter& total) {
  // The rows of a wide matrix without Q stay together, because its A'A is formed at the end. Rows
  // without entries have no sums.
  if (a.cols == 0 || (q.data == nullptr && a.rows < a.cols)) return total.add_rows(a, q);
  for_each_part(a, q, r, parts, total, [&](std::span<const double> sums) { total.add_sums(sums); });
}

template <class T>
std::vector<double> sums_of_parts(MatrixView<const T> a, MatrixView<const T> q,
                                  MatrixView<const T> r, const RowParts& parts,
                                  const ErrorMeter& meter) {
  std::vector<double> all;
  for_each_part(a, q, r, parts, meter, [&](std::span<const double> sums) {
    all.insert(all.end(), sums.begin(), sums.end());
  });
  return all;
}

void add_sums_of_parts(std::span<const double> sums, ErrorMeter& meter) {
  const std::size_t each = meter.sums().size();
  for (; !sums.empty(); sums = sums.subspan(each)) meter.add_sums(sums.first(each));
}

#define QRTOOL_FOR(T)                                                                            \
  template void add_rows_by_parts(MatrixView<const T>, MatrixView<const T>, MatrixView<const T>, \
                                  const RowParts&, ErrorMeter&);                                 \
  template std::vector<double> sums_of_parts(MatrixView<const T>, MatrixView<const T>,           \
                                             MatrixView<const T>, const RowParts&,               \
                                             const ErrorMeter&);
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
