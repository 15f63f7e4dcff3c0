// SPDX-License-Identifier: Apache-2.0
// tall_fits.hpp: the fits of tall systems, whose rows are read once more when x is known.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "app/run/stages.hpp"
#include "app/solve/solve_stages.hpp"
#include "core/solve/fit.hpp"

namespace qrtool {

/// Forms fits of one group after another, some rows at a time: read | form | write.
template <class T>
class TallFits {
 public:
  TallFits(const SolveJob& job, const SolveSink<T>& sink, StageSeconds& seconds);

  /// x: the solutions of the group, as they are written.
  void run(index_t group, const std::vector<T>& x, std::span<SolutionReport> reports,
           std::span<FitReport> fits);

 private:
  /// Some rows of A and of right sides.
  struct Chunk {
    index_t first = 0, count = 0;
    Batch<T> a, b, w;
    HostMemory fitted, residuals;
    GivenFits given;
  };
  /// A sweep that writes nothing: it finds the largest entry of A, or sums of scaled data.
  struct Again {
    bool finds_largest = true;
    double largest_a = 0;
    ScaledFit scaled = {};
  };
  /// The steps for run_stages(), for right sides first_side, ... of a group.
  struct Steps {
    TallFits& fits;
    index_t group, first_side;
    const std::vector<double>& x;
    std::vector<FitSums>& sums;
    Again* again = nullptr;

    void begin(Chunk& chunk, index_t number) const;
    void read(Chunk& chunk) const;
    void work(Chunk& chunk);
    void keep(Chunk& chunk) const;
  };
  index_t item_of(index_t group) const;
  void sweep(Steps& steps);
  FitReport judge_scaled(const Steps& first, index_t side, SolutionReport& report);

  const SolveJob& job_;
  const SolveSink<T>& sink_;
  StageSeconds& seconds_;
  index_t sides_;  // that are read together: a group's, or one where they are rows
  index_t rows_at_once_;
  FitEngine<T> engine_;
  std::vector<Chunk> chunks_;
};

}  // namespace qrtool
