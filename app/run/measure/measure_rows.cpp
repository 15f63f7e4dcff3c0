// SPDX-License-Identifier: Apache-2.0
// measure_rows.cpp: stored factors of matrices that do not fit the memory, in two passes over the
// rows of A: its magnitude first, then the errors.
#include <algorithm>
#include <optional>

#include "app/process/stopwatch.hpp"
#include "app/run/measure/measure.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/matrix/complex.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool {
namespace {

/// Measures one matrix after another, a block of rows at a time. T is double, or complex numbers of
/// it.
template <class T>
class RowMeasurer {
 public:
  RowMeasurer(const FactoredInput& input, const MeasurePlan& plan, const Listener& listener)
      : input_(input),
        listener_(listener),
        meter_(input.a.source().m, input.a.source().n, input.q_cols(), input.r_rows(),
               plan.threads_per_matrix, is_complex_number<T>),
        a_(1, plan.block_rows, input.a.source().n),
        q_(1, plan.block_rows, input.q_cols()),
        r_(1, input.r_rows(), input.a.source().n) {
    meter_.use_threads(plan.threads_per_matrix);
    const ErrorFinder::Shape s = input.shape(plan.threads_per_matrix);
    if (plan.check == Check::probe)
      probe_.emplace(plan.block_rows, s.n, s.q_cols, s.r_rows, s.most_threads);
  }

  Measurement measure(index_t matrix, const BarsOf& bars_of) {
    const Magnitude magnitude = magnitude_of_a(matrix);
    Measurement result{.matrix = matrix, .errors = {}};
    const MatrixView<T> r = r_.view()[0];
    input_.factors.r->read(matrix, interleaved(r_.view()));
    if (input_.factors.p) {
      const Batch<double> numbers(1, 1, input_.a.source().n);
      input_.factors.p->read(matrix, numbers.view());
      permutation_ = stored_permutation(input_, numbers.view().data, matrix);
    }
    if (magnitude.finite && magnitude_of<T>(r).finite) {
      find_errors(magnitude.scale(), bars_of, result);
    } else {
      listener_.done(input_.a.source().m);  // the second pass is left out
    }
    judge_measurement(result, magnitude.finite, bars_of, input_.has_q());
    return result;
  }

 private:
  /// step(first row, rows of A) for all of A. The listener hears of the first two times.
  template <class Step>
  void for_each_block(index_t matrix, bool is_heard, Step step) {
    const index_t m = input_.a.source().m;
    const MatrixView<T> all = a_.view()[0];
    for (index_t row = 0; row < m; row += all.rows) {
      const MatrixView<T> block = all.row_block(0, std::min(all.rows, m - row));
      input_.a.read_rows(matrix, row, interleaved(block));
      if (!permutation_.empty()) permute_columns<T>(block, permutation_);
      step(row, block);
      if (is_heard) listener_.done(block.rows);
    }
  }

  Magnitude magnitude_of_a(index_t matrix) {
    Magnitude magnitude;
    for_each_block(matrix, true, [&](index_t, MatrixView<T> block) {
      magnitude.include(magnitude_of<T>(block));
    });
    return magnitude;
  }

  /// Keeps estimates if their upper bounds are within the bars. There are no errors if Q holds NaN
  /// or Inf.
  void find_errors(int scale, const BarsOf& bars_of, Measurement& result) {
    if (!probe_) return add_all_rows(meter_, scale, true, result);
    if constexpr (!is_complex_number<T>) {
      add_all_rows(*probe_, scale, true, result);
      const Status status =
          judge(upper_bounds(result.errors), bars_of(result.errors), input_.has_q());
      if (status != Status::ok) add_all_rows(meter_, scale, false, result);
    }
  }

  /// Adds all rows to a meter or a probe.
  template <class Meter>
  void add_all_rows(Meter& meter, int scale, bool is_heard, Measurement& result) {
    Magnitude magnitude;
    meter.template start<T>(r_.view()[0], scale);
    for_each_block(result.matrix, is_heard, [&](index_t row, MatrixView<T> block) {
      const MatrixView<T> q = q_.view()[0].row_block(0, block.rows);
      if (input_.has_q()) input_.factors.q->read_rows(result.matrix, row, interleaved(q));
      magnitude.include(magnitude_of<T>(q));
      meter.template add_rows<T>(block, q);
    });
    const Errors errors = meter.finish();
    if (magnitude.finite) result.errors = errors;
  }

  const FactoredInput& input_;
  const Listener& listener_;
  ErrorMeter meter_;
  std::optional<ErrorProbe> probe_;  // for estimates, of real matrices
  Batch<T> a_, q_, r_;
  std::vector<index_t> permutation_;  // empty: the columns are not pivoted
};

template <class T>
void measure_rows_as(const FactoredInput& input, const MeasurePlan& plan, const BarsOf& bars_of,
                     const Listener& listener) {
  RowMeasurer<T> measurer(input, plan, listener);
  for (index_t b = 0; b < input.a.source().count(); ++b) {
    const Measurement result = measurer.measure(b, bars_of);
    listener.found({&result, 1});
  }
}

}  // namespace

StageSeconds measure_rows(const FactoredInput& input, const MeasurePlan& plan,
                          const BarsOf& bars_of, const Listener& listener) {
  const Stopwatch watch;
  if (input.is_complex())
    measure_rows_as<std::complex<double>>(input, plan, bars_of, listener);
  else
    measure_rows_as<double>(input, plan, bars_of, listener);
  return {.work = watch.seconds()};
}

}  // namespace qrtool
