// SPDX-License-Identifier: Apache-2.0
// backend_leaves.cpp: factors one leaf after another. An error of the backend ends the whole
// matrix.
#include "core/cpu/tall/backend_leaves.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/cpu/tall/block_qr.hpp"
#include "core/cpu/tall/tall_qr.hpp"
#include "core/machine/parallel.hpp"

namespace qrtool {
namespace {

template <class T>
BatchView<T> one(MatrixView<T> a) {
  return {a.data, 1, a.rows, a.cols, a.ld, a.rows * a.ld};
}

/// Translates a report into a LeafOutcome. A report holds only the exponent of the largest entry.
template <class T>
LeafOutcome outcome_of(const MatrixReport& report, MatrixView<const T> r) {
  LeafOutcome outcome;
  outcome.magnitude.finite = report.status != Status::non_finite;
  outcome.r_fits = report.status != Status::r_overflows;
  outcome.route = report.route;
  outcome.tries = report.tries;
  const bool is_zero = std::all_of(r.data, r.data + r.rows * r.cols, [](T x) { return x == T(0); });
  outcome.magnitude.largest = is_zero ? 0 : std::ldexp(0.5, report.scale);
  return outcome;
}

}  // namespace

template <class T>
BackendLeaves<T>::BackendLeaves(Backend& backend, const Problem& problem, const TallShape& shape,
                                int threads)
    : backend_(backend),
      problem_(problem),
      shape_(shape),
      threads_(threads),
      r_(1, shape.n(), shape.n()) {
  // The first pass also forms Q if the second pass needs it, so that both run the same kernels.
  const bool needs_q = leaves_need_q(problem);
  problem_.count = 1;
  problem_.mode = needs_q ? Mode::reduced : Mode::r;
  problem_.sign = Sign::positive;
  if (!needs_q) return;
  const auto bytes = static_cast<std::size_t>(shape.leaf_rows() * shape.n()) * sizeof(T);
  q_ = Batch<T>(backend.allocate(bytes), 1, shape.leaf_rows(), shape.n());
}

template <class T>
const Plan& BackendLeaves<T>::plan_for(index_t rows) {
  std::optional<Plan>& plan = rows == shape_.leaf_rows() ? whole_ : rest_;
  if (plan && plan->problem.m == rows) return *plan;
  problem_.m = rows;
  Limits limits = backend_.limits();
  limits.host_bytes = std::numeric_limits<std::size_t>::max() / 4;  // the plan counted it already
  limits.ranks = 1;
  plan = make_plan(problem_, backend_.variants(), limits, "");
  plan->is_of_part = true;
  return *plan;
}

template <class T>
MatrixReport BackendLeaves<T>::factor_leaf(MatrixView<const T> a, MatrixView<T> r) {
  const index_t p = std::min(a.rows, shape_.n());
  const BatchView<T> q = problem_.wants_q()
                             ? BatchView<T>{q_.view().data, 1, a.rows, p, p, a.rows * p}
                             : BatchView<T>{};
  MatrixReport report;
  backend_.factor<T>(plan_for(a.rows), one(a), {q, one(r), {}, {}}, {&report, 1});
  return report;
}

template <class T>
LeafOutcome BackendLeaves<T>::factor(MatrixView<const T> a, MatrixView<T> r) {
  LeafOutcome all;
  for (index_t row = 0, at = 0; row < a.rows; row += shape_.leaf_rows()) {
    const index_t rows = std::min(shape_.leaf_rows(), a.rows - row);
    const MatrixView<T> leaf_r = r.row_block(at, std::min(rows, shape_.n()));
    const MatrixReport report = factor_leaf(a.row_block(row, rows), leaf_r);
    all.include(outcome_of<T>(report, leaf_r));
    at += leaf_r.rows;
  }
  return all;
}

template <class T>
void BackendLeaves<T>::form_q(MatrixView<const T> a, MatrixView<const T> z, MatrixView<T> q) {
  constexpr index_t rows_at_once = 4096;
  for (index_t row = 0, at = 0; row < a.rows; row += shape_.leaf_rows()) {
    const index_t rows = std::min(shape_.leaf_rows(), a.rows - row);
    const index_t p = std::min(rows, shape_.n());
    factor_leaf(a.row_block(row, rows), r_.view()[0].row_block(0, p));
    const MatrixView<const T> leaf_z = z.row_block(at, p);
    const index_t parts = (rows + rows_at_once - 1) / rows_at_once;
    parallel_for(parts, threads_, [&](index_t part, int) {
      const index_t first = part * rows_at_once, count = std::min(rows_at_once, rows - first);
      const MatrixView<T> to = q.row_block(row + first, count);
      const T* from = q_.view().data + first * p;
      for (index_t i = 0; i < count; ++i) std::copy_n(from + i * p, p, &to(i, 0));
      RowProduct<T>(shape_.n()).multiply(to, leaf_z);
    });
    at += p;
  }
}

template class BackendLeaves<float>;
template class BackendLeaves<double>;
template class BackendLeaves<std::complex<float>>;
template class BackendLeaves<std::complex<double>>;

}  // namespace qrtool
