// SPDX-License-Identifier: Apache-2.0
// data.hpp: a batch of Gaussian matrices that is quickly made.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/bench/timing.hpp"
#include "core/batch.hpp"
#include "core/report.hpp"

namespace qrtool {

/// Only the first matrices are drawn, the rest repeats them in turn, and of a matrix as large as
/// all of these only the first rows: drawing them would take longer than factoring them.
template <class T>
class BenchData {
 public:
  BenchData(index_t count, index_t m, index_t n, std::uint64_t seed, int threads);

  BatchView<const T> view() const { return batch_.view(); }
  /// ||A||_F of those that were drawn; matrix b is matrix b mod norms().size().
  const std::vector<double>& norms() const { return norms_; }

 private:
  Batch<T> batch_;
  std::vector<double> norms_;
};

/// Adds the lines of the first report.size() matrices of a batch with these norms.
void add_lines(Accuracy& accuracy, std::span<const MatrixReport> report,
               const std::vector<double>& norms);

}  // namespace qrtool
