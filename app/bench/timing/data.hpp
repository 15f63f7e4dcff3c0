// SPDX-License-Identifier: Apache-2.0
// data.hpp: a batch of matrices that is made quickly.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "app/bench/timing/timing.hpp"
#include "core/batch.hpp"
#include "core/matrix/matrices.hpp"
#include "core/report/report.hpp"

namespace qrtool {

/// Draws only the first matrices and repeats them for the rest of the batch. Of a very large
/// Gaussian matrix it draws only the first rows. Drawing all entries would take longer than
/// factoring them.
template <class T>
class BenchData {
 public:
  BenchData(index_t count, index_t m, index_t n, const MatrixRequest& request, int threads);
  /// Gaussian matrices.
  BenchData(index_t count, index_t m, index_t n, std::uint64_t seed, int threads)
      : BenchData(count, m, n, MatrixRequest{.seed = seed}, threads) {}

  BatchView<const T> view() const { return batch_.view(); }
  /// ||A||_F of the matrices that were drawn; matrix b equals matrix b mod norms().size().
  const std::vector<double>& norms() const { return norms_; }

 private:
  Batch<T> batch_;
  std::vector<double> norms_;
};

/// Returns the seed of the right sides that belong to matrices with this seed.
constexpr std::uint64_t seed_of_b(std::uint64_t seed) { return seed ^ 0x9e3779b97f4a7c15; }

/// Returns m weights for each of `count` right sides: squares of Gaussian numbers.
template <class T>
std::vector<Real<T>> draw_weights(index_t count, index_t m, std::uint64_t seed, int threads) {
  if (count == 0) return {};
  const BenchData<Real<T>> drawn(count, 1, m, ~seed, threads);
  const Real<T>* from = drawn.view().data;
  std::vector<Real<T>> weights(from, from + count * m);
  for (Real<T>& w : weights) w *= w;
  return weights;
}

/// Adds the report of the first report.size() matrices of a batch. `norms`: BenchData::norms().
void add_lines(Accuracy& accuracy, std::span<const MatrixReport> report,
               const std::vector<double>& norms);

}  // namespace qrtool
