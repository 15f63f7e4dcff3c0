// SPDX-License-Identifier: Apache-2.0
// cases.hpp: which cases a request means, how often each is timed, and which are too large.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/options/bench_options.hpp"
#include "core/matrix/matrices.hpp"
#include "core/problem/problem.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// What is measured: factors; one least-squares problem for each matrix; one matrix for all right
/// sides; or one matrix for all, with weights of its own for each right side.
enum class BenchTask { factor, solve, solve_shared, solve_weighed };

/// Whether one matrix serves all right sides.
inline bool shares_matrix(BenchTask task) {
  return task == BenchTask::solve_shared || task == BenchTask::solve_weighed;
}
/// Returns the word of CSV and JSON for a task: the mode for factors, else "solve",
/// "solve-shared" or "solve-weighed".
std::string_view name_of(BenchTask task, Mode mode);

/// A case has `batch` matrices of m x n or, if one is shared, `batch` right sides.
struct BenchCase {
  index_t m = 0, n = 0, batch = 0;
  int threads = 0;                         // of the tool on the CPU; 0: as many as it may use
  std::string kind{MatrixRequest{}.kind};  // of the matrices
  bool operator==(const BenchCase&) const = default;
};

/// Returns the cases of the published table: four shapes in batches of 100 to 15000, three large
/// ones in 1 to 32.
std::vector<BenchCase> standard_sweep();
/// Returns tall and narrow cases: 1600 rows of few columns on 1 to 32 threads, heights of 4 to
/// 16384, and four large matrices.
std::vector<BenchCase> tall_sweep();
/// Returns square, tall and wide shapes, with one matrix of each and with as many as have a million
/// entries. They show which variant is fastest.
std::vector<BenchCase> shapes_sweep();
/// Returns the part of the published table that two CPU cores can measure within a minute.
std::vector<BenchCase> quick_sweep();

/// Returns the cases of a sweep of least squares; with `quick` those that take a minute.
std::vector<BenchCase> solve_sweep(BenchTask task, bool quick);

/// The number of runs that are not timed, and the number of timed ones.
struct Repeats {
  int warm_up = 2, timed = 5;
  /// The most timed runs; further runs are made until the standard error of the median is small.
  int most = 5;
  double warm_up_seconds = 0;  // at least, in more runs where these are short
};

/// The schedule that follows from the options.
struct BenchSchedule {
  std::vector<BenchCase> cases;
  Repeats repeats;
  double cell_seconds = 0;              // the longest running time of one cell of the table
  int seeds = 1;                        // batches of each case, each from a seed of its own
  std::optional<double> total_seconds;  // the longest wall time of all cells
};
BenchTask task_of(const BenchOptions& options);
/// Returns the type of the elements: that of --precision, or the complex type with such parts.
ElementType type_of(const BenchOptions& options);
BenchSchedule schedule_of(const BenchOptions& options);
/// Keeps each shape and batch once. A device does not use the CPU threads of a case.
void forget_threads(std::vector<BenchCase>& cases);

Problem problem_of(const BenchCase& size, ElementType type, Mode mode, Sign sign = Sign::positive);
/// Returns LAPACK's signs in mode raw, else the signs that the user wants.
Sign sign_of(const BenchOptions& o);

/// Returns the systems of a case, with the default rank tolerance and without standard errors.
SolveProblem systems_of(const Problem& problem, BenchTask task, double ridge);
/// Returns the problem with another number of rows of A.
inline Problem with_rows(Problem problem, index_t rows) {
  problem.m = rows;
  return problem;
}

/// Returns the real operations of a case. For least squares these are the operations of LAPACK's
/// gels, with the rows of a ridge: R, Q'B, and x from R.
double case_flops(const BenchCase& size, ElementType type, Mode mode, BenchTask task,
                  double ridge = 0);

/// Returns how many right sides are in memory at a time: about 64 MiB with all copies. Errors:
/// LimitError.
index_t systems_at_once(const Problem& problem, BenchTask task, const Limits& limits);

/// Returns the reason why a device cannot hold a whole batch, or an empty text. The batch is made
/// in host memory, and an OpenCL device that is the CPU keeps its copy there, too.
std::string objection_to_residence(const Problem& problem, std::size_t device_bytes_per_matrix,
                                   const Limits& limits);

/// Predicts the time of a case from the times of earlier cases. Each column of the table has one.
class CostHistory {
 public:
  /// is_batched: for a device, which factors all matrices of a small batch at once, so that a batch
  /// takes hardly longer than one matrix.
  explicit CostHistory(bool is_cpu = true, bool is_batched = false);

  void add(const BenchCase& size, double flops, double seconds);

  /// Predicts the seconds of one run: from the last case of the same shape, scaled to the batch; or
  /// from the best rate of all cases that were large enough to show one; or from a usual rate of a
  /// CPU or a GPU.
  double predict(const BenchCase& size, double flops) const;

 private:
  struct Entry {
    BenchCase size;
    double flops, seconds;
  };
  double usual_rate_;
  bool is_batched_;
  std::vector<Entry> entries_;
};

}  // namespace qrtool
