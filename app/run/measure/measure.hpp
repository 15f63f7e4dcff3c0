// SPDX-License-Identifier: Apache-2.0
// measure.hpp: measures the errors of stored factors within a given memory: many small matrices at
// a time, or a few rows of one large matrix.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "app/run/pipeline/pipeline.hpp"
#include "app/run/verdict/verdict.hpp"
#include "core/measure/error_probe.hpp"
#include "core/problem/problem.hpp"
#include "core/report/ratios.hpp"
#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool {

/// Matrices and their stored factors, whose shapes fit each other.
struct FactoredInput {
  Reader& a;
  StoredFactors& factors;

  bool has_reflectors() const { return factors.v != nullptr && factors.r == nullptr; }
  /// Returns the shape of one matrix, for this number of threads.
  ErrorFinder::Shape shape(int threads) const;
  FactorsShape factors_shape(int threads) const {
    return {.sizes = shape(threads), .has_q = has_q(), .has_reflectors = has_reflectors()};
  }
  bool has_q() const { return factors.q != nullptr || has_reflectors(); }
  bool is_complex() const { return qrtool::is_complex(a.source().type); }
  index_t k() const { return std::min(a.source().m, a.source().n); }
  index_t q_cols() const;
  index_t r_rows() const;
  /// Returns the precision of the coarser type among the stored factors, or mixed if the file says
  /// so.
  Precision precision() const;
};

/// Errors: InputError with all shapes if Q and R (or V and tau) cannot be factors of A.
void check_shapes(const FactoredInput& input);

struct MeasurePlan {
  bool by_rows = false;  // a few rows of a matrix at a time
  index_t chunk_matrices = 1;
  index_t block_rows = 0;  // by_rows: rows of A and Q at a time
  int buffers = 1, threads = 1;
  int threads_per_matrix = 1;
  Check check = Check::full;  // or probe

  /// Returns the unit that done() counts.
  std::string_view unit() const { return by_rows ? "rows" : "matrices"; }
};

/// Plans the measurement. Check::probe becomes Check::full if that is as fast, or if memory is
/// short. Errors: LimitError if limits.host_bytes is too little for one matrix.
MeasurePlan plan_measurement(const FactoredInput& input, Check check, Limits limits);

/// Is told of the progress of the work, by one thread.
struct Listener {
  std::function<void(std::span<const Measurement>)> found;  // in ascending order
  std::function<void(index_t)> done;                        // so many more matrices or rows
};

/// Returns the number that done() reaches: the number of matrices, or twice the number of their
/// rows, each of which is read twice.
index_t work_of(const FactoredInput& input, const MeasurePlan& plan);

/// Measures every matrix.
StageSeconds measure(const FactoredInput& input, const MeasurePlan& plan, const BarsOf& bars_of,
                     const Listener& listener);

/// The two ways of measure(): chunks of whole matrices, on several threads; and one matrix after
/// another, plan.block_rows rows at a time.
StageSeconds measure_matrices(const FactoredInput& input, const MeasurePlan& plan,
                              const BarsOf& bars_of, const Listener& listener);
StageSeconds measure_rows(const FactoredInput& input, const MeasurePlan& plan,
                          const BarsOf& bars_of, const Listener& listener);

/// Returns P of a matrix from its n stored numbers. Errors: InputError if they are no permutation.
std::vector<index_t> stored_permutation(const FactoredInput& input, const double* numbers,
                                        index_t matrix);

}  // namespace qrtool
