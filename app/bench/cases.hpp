// SPDX-License-Identifier: Apache-2.0
// cases.hpp: which cases a request means, how often each is timed, and which are too large.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/bench/options.hpp"
#include "core/problem.hpp"

namespace qrtool {

/// `batch` matrices m x n.
struct BenchCase {
  index_t m = 0, n = 0, batch = 0;
  int threads = 0;  // of the tool on the CPU; 0: as many as it may use
  bool operator==(const BenchCase&) const = default;
};

/// The published table: four shapes at 100 .. 15000, three large ones at 1 .. 32.
std::vector<BenchCase> standard_sweep();
/// Tall and skinny: 1600 rows of few columns on 1 .. 32 threads, heights 4 .. 16384, and four large
/// ones.
std::vector<BenchCase> tall_sweep();
/// A part of the published table that two CPU cores do within a minute.
std::vector<BenchCase> quick_sweep();

/// Runs that are not timed, then runs that are.
struct Repeats {
  int warm_up = 2, timed = 5;
};

/// All that a request means.
struct BenchSchedule {
  std::vector<BenchCase> cases;
  Repeats repeats;
  double cell_seconds = 0;              // running time of one cell of the table, at the most
  std::optional<double> total_seconds;  // of all, by the clock on the wall
};
BenchSchedule schedule_of(const BenchOptions& options);
/// For a device, which has no use for the threads of a case: each shape and batch once.
void forget_threads(std::vector<BenchCase>& cases);

Problem problem_of(const BenchCase& size, ElementType type, Mode mode);

/// Operations of LAPACK's count: 2 m n^2 - 2 n^3 / 3 for R (m >= n; else m and n change places) and
/// the same again, with k columns, for Q m x k. For the whole batch.
double bench_flops(const Problem& problem);

/// Why a batch cannot lie on a device as a whole, or empty. It comes from host memory; an OpenCL
/// device that is the CPU takes its own copy from there too.
std::string objection_to_residence(const Problem& problem, std::size_t device_bytes_per_matrix,
                                   const Limits& limits);

/// What a case will take, from what others took. One per column of the table.
class CostHistory {
 public:
  explicit CostHistory(bool is_cpu = true);

  void add(const BenchCase& size, double flops, double seconds);

  /// Seconds of one run: the last case of the same shape scaled to the batch; else the best rate of
  /// all cases that were large enough to show one; else a rate that is usual for a CPU or a GPU.
  double predict(const BenchCase& size, double flops) const;

 private:
  struct Entry {
    BenchCase size;
    double flops, seconds;
  };
  double usual_rate_;
  std::vector<Entry> entries_;
};

}  // namespace qrtool
