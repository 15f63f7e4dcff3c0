// SPDX-License-Identifier: Apache-2.0
// system_copies.hpp: copies of some systems of a block, which are solved again.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "core/solve/packing.hpp"

namespace qrtool {

/// Some of the systems of a block, one after another, and room for their results. One A that serves
/// all is not copied.
template <class T>
struct SystemCopies {
  SystemCopies(const SolveProblem& p, index_t right_sides, std::span<const index_t> systems,
               BatchView<const T> from, const RightSideBlock<T>& block)
      : m(p.m), n(p.n), sides(right_sides), shared_a(from.stride == 0 ? from.data : nullptr) {
    for (const index_t i : systems) {
      if (shared_a == nullptr) a.insert(a.end(), from[i].data, from[i].data + m * n);
      b.insert(b.end(), block.b + i * m * sides, block.b + (i + 1) * m * sides);
      if (block.has_own_weights()) w.insert(w.end(), block.w + i * m, block.w + (i + 1) * m);
    }
    const std::size_t count = systems.size() * static_cast<std::size_t>(sides);
    x.resize(count * static_cast<std::size_t>(n));
    if (block.se != nullptr) se.resize(x.size());
    reports.resize(count);
    if (!block.findings.empty()) findings.resize(count);
  }

  BatchView<const T> matrices() const {
    const index_t count = std::ssize(reports) / sides;
    if (shared_a != nullptr) return {shared_a, count, m, n, n, 0};
    return packed(a.data(), count, m, n);
  }
  RightSideBlock<T> block(const RightSideBlock<T>& of) {
    RightSideBlock<T> block = of;
    block.count = std::ssize(reports);
    block.b = b.data();
    if (of.has_own_weights()) block.w = w.data();
    block.x = x.data();
    block.se = se.empty() ? nullptr : se.data();
    block.reports = reports;
    block.findings = findings;
    return block;
  }

  /// Copies the results to where those of the systems belong.
  void give_back(std::span<const index_t> systems, const RightSideBlock<T>& to) const {
    for (index_t i = 0; i < std::ssize(systems); ++i) {
      const index_t s = systems[static_cast<std::size_t>(i)], each = n * sides;
      std::copy_n(x.data() + i * each, each, to.x + s * each);
      if (!se.empty()) std::copy_n(se.data() + i * each, each, to.se + s * each);
      std::copy_n(reports.begin() + i * sides, sides, to.reports.begin() + s * sides);
      if (!findings.empty())
        std::copy_n(findings.begin() + i * sides, sides, to.findings.begin() + s * sides);
    }
  }

  index_t m, n, sides;
  const T* shared_a;  // null: each system has its own
  std::vector<T> a, b, w, x, se;
  std::vector<SolutionReport> reports;
  std::vector<MatrixFindings> findings;
};

}  // namespace qrtool
