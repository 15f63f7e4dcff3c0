// SPDX-License-Identifier: Apache-2.0
// tall_fits.hpp: the fits of tall systems, whose rows are read once more when x is known.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "app/run/pipeline/pipeline.hpp"
#include "app/solve/solve_stages.hpp"
#include "core/solve/results/fit.hpp"

namespace qrtool {

/// Forms fits of one group after another, some rows at a time: read | form | write.
///
/// Complex rows are real ones of their parts, and a complex right side is two real ones, its real
/// and its imaginary part:
///
///     re f = [re a, im a, ..] [re x, -im x, ..]'     im f = [re a, im a, ..] [im x, re x, ..]'
///
/// The fits of these two are the parts of the complex fit, and their sums are joined.
template <class T>
class TallFits {
  using R = Real<T>;
  using S = Wide<T>;

 public:
  TallFits(const SolveJob& job, const SolveSink<T>& sink, StageSeconds& seconds);

  /// x: the solutions of the group, as they are written.
  void run(index_t group, const std::vector<T>& x, std::span<SolutionReport> reports,
           std::span<FitReport> fits);

 private:
  /// Some rows of A and of right sides.
  struct Chunk {
    index_t first = 0, count = 0;
    Batch<T> a, b;
    Batch<R> w;
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
    const std::vector<double>& x;  // of real right sides
    std::vector<FitSums>& sums;    // likewise
    Again* again = nullptr;

    void begin(Chunk& chunk, index_t number) const;
    void read(Chunk& chunk) const;
    void work(Chunk& chunk);
    void keep(Chunk& chunk) const;
    SidePlace place() const;
  };
  /// The sums and x of one right side, whose parts were added as two.
  struct Side {
    fit::Sums sums;
    std::vector<S> gradient;
    std::vector<double> columns;
    std::vector<S> x;
  };
  Side side_of(const std::vector<FitSums>& sums, const std::vector<double>& x, index_t side) const;
  FitReport judge(const Side& side, SolutionReport& report, const FitScales& scales = {}) const {
    return judge_fit<S>(
        job_.problem, job_.inputs.fits,
        {side.sums, side.gradient.data(), side.columns.data(), side.x.data(), scales}, report);
  }
  template <class E>
  MatrixView<E> rows_of(const Chunk& chunk, E* numbers) const {
    return {numbers, chunk.count, sides_, sides_};
  }
  void read_weights(Chunk& chunk, SidePlace place) const;
  void sweep(Steps& steps);
  FitReport judge_scaled(const Steps& first, index_t side, SolutionReport& report);

  static constexpr index_t parts = parts_of<T>;

  const SolveJob& job_;
  const SolveSink<T>& sink_;
  StageSeconds& seconds_;
  index_t sides_;  // that are read together: a group's, or one where they are rows
  index_t rows_at_once_;
  SolveProblem in_parts_;  // of the parts
  FitEngine<R> engine_;
  std::vector<Chunk> chunks_;
};

}  // namespace qrtool
