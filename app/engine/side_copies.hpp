// SPDX-License-Identifier: Apache-2.0
// side_copies.hpp: copies of some right sides of a block, each a row of neighbours, as a device
// takes them one by one.
#pragma once

#include <span>
#include <vector>

#include "core/parallel.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// Right sides of one A that have weights in common or none, and room for their results.
template <class T>
class SideCopies {
 public:
  /// `block` and `sides`, the numbers of the right sides, outlive the copies.
  SideCopies(const SolveProblem& problem, const RightSideBlock<T>& block,
             std::span<const index_t> sides, int threads)
      : m_(problem.m),
        n_(problem.n),
        block_(block),
        sides_(sides),
        threads_(threads),
        b_(sides.size() * static_cast<std::size_t>(m_)),
        x_(sides.size() * static_cast<std::size_t>(n_)),
        se_(block.se == nullptr ? 0 : x_.size()),
        reports_(sides.size()),
        findings_(block.findings.empty() ? 0 : sides.size()) {
    for_each_side([&](index_t i, index_t s) {
      const T* from = block_.b + block_.b_places.start(s);
      for (index_t e = 0; e < m_; ++e) b_[place(i, m_) + e] = from[e * block_.b_places.step];
    });
  }

  RightSideBlock<T> copies() {
    RightSideBlock<T> of = block_;
    of.count = std::ssize(sides_);
    of.b = b_.data();
    of.b_places = VectorPlaces::rows(m_);
    of.x = x_.data();
    of.se = se_.empty() ? nullptr : se_.data();
    of.x_places = VectorPlaces::rows(n_);
    of.reports = reports_;
    of.findings = findings_;
    return of;
  }

  /// Copies the results to where those of the right sides belong.
  void give_back() {
    for_each_side([&](index_t i, index_t s) {
      const index_t to = block_.x_places.start(s), step = block_.x_places.step;
      for (index_t j = 0; j < n_; ++j) {
        block_.x[to + j * step] = x_[place(i, n_) + j];
        if (!se_.empty()) block_.se[to + j * step] = se_[place(i, n_) + j];
      }
      const auto of = static_cast<std::size_t>(i), at = static_cast<std::size_t>(s);
      block_.reports[at] = reports_[of];
      if (!findings_.empty()) block_.findings[at] = findings_[of];
    });
  }

  /// The bytes of the copies of a right side.
  static std::size_t bytes_of_side(const SolveProblem& p) {
    return static_cast<std::size_t>(p.m + p.n * (p.wants_se ? 2 : 1)) * sizeof(T) +
           sizeof(SolutionReport) + sizeof(MatrixFindings);
  }

 private:
  static std::size_t place(index_t i, index_t length) {
    return static_cast<std::size_t>(i * length);
  }
  template <class Body>
  void for_each_side(Body body) {
    parallel_for(std::ssize(sides_), threads_,
                 [&](index_t i, int) { body(i, sides_[static_cast<std::size_t>(i)]); });
  }

  index_t m_, n_;
  const RightSideBlock<T>& block_;
  std::span<const index_t> sides_;
  int threads_;
  std::vector<T> b_, x_, se_;
  std::vector<SolutionReport> reports_;
  std::vector<MatrixFindings> findings_;
};

}  // namespace qrtool
