// SPDX-License-Identifier: Apache-2.0
// side_copies.hpp: copies of some right sides of a block, each a row of neighbours, as a device
// takes them one by one.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/machine/parallel.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// Copies of right sides, of their weights if they have their own, and of their results. A is not
/// copied.
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
        w_(block.has_own_weights() ? b_.size() : 0),
        x_(sides.size() * static_cast<std::size_t>(n_)),
        se_(block.se == nullptr ? 0 : x_.size()),
        reports_(sides.size()),
        findings_(block.findings.empty() ? 0 : sides.size()) {
    gather(block.b, block.b_places, b_);
    if (block.has_own_weights()) gather(block.w, block.w_places, w_);
  }

  RightSideBlock<T> copies() {
    RightSideBlock<T> of = block_;
    of.count = std::ssize(sides_);
    of.b = b_.data();
    of.b_places = VectorPlaces::rows(m_);
    if (block_.has_own_weights()) {
      of.w = w_.data();
      of.w_places = VectorPlaces::rows(m_);
    }
    of.x = x_.data();
    of.se = se_.empty() ? nullptr : se_.data();
    of.x_places = VectorPlaces::rows(n_);
    of.reports = reports_;
    of.findings = findings_;
    return of;
  }

  /// Copies the results back to the right sides that they belong to.
  void give_back() {
    for_parts([&](index_t first, index_t end) {
      for (index_t j = 0; j < n_; ++j) {
        for (index_t i = first; i < end; ++i) {
          const index_t to = block_.x_places.start(number(i)) + j * block_.x_places.step;
          block_.x[to] = x_[place(i, n_) + j];
          if (!se_.empty()) block_.se[to] = se_[place(i, n_) + j];
        }
      }
      for (index_t i = first; i < end; ++i) {
        const auto of = static_cast<std::size_t>(i), at = static_cast<std::size_t>(number(i));
        block_.reports[at] = reports_[of];
        if (!findings_.empty()) block_.findings[at] = findings_[of];
      }
    });
  }

  /// Returns the bytes of the copies of a right side.
  static std::size_t bytes_of_side(const SolveProblem& p) {
    return static_cast<std::size_t>(2 * p.m + p.n * (p.wants_se ? 2 : 1)) * sizeof(T) +
           sizeof(SolutionReport) + sizeof(MatrixFindings);
  }

 private:
  static std::size_t place(index_t i, index_t length) {
    return static_cast<std::size_t>(i * length);
  }
  index_t number(index_t i) const { return sides_[static_cast<std::size_t>(i)]; }

  /// Calls body(first, end) for parts of the right sides. Neighbours that are columns share lines
  /// of the cache.
  template <class Body>
  void for_parts(Body body) {
    constexpr index_t together = 32;
    const index_t count = std::ssize(sides_);
    parallel_for((count + together - 1) / together, threads_, [&](index_t part, int) {
      body(part * together, std::min(count, (part + 1) * together));
    });
  }
  template <class Number>
  void gather(const Number* from, const VectorPlaces& places, std::vector<Number>& to) {
    for_parts([&](index_t first, index_t end) {
      for (index_t e = 0; e < m_; ++e)
        for (index_t i = first; i < end; ++i)
          to[place(i, m_) + e] = from[places.start(number(i)) + e * places.step];
    });
  }

  index_t m_, n_;
  const RightSideBlock<T>& block_;
  std::span<const index_t> sides_;
  int threads_;
  std::vector<T> b_;
  std::vector<Real<T>> w_;
  std::vector<T> x_, se_;
  std::vector<SolutionReport> reports_;
  std::vector<MatrixFindings> findings_;
};

}  // namespace qrtool
