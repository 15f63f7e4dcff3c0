// SPDX-License-Identifier: Apache-2.0
// system_judge.hpp: judges answers for hard systems, of the CPU or of a device.
#pragma once

#include <string>
#include <string_view>

#include "tests/support/uneven_systems.hpp"

namespace qrtool::test {

/// What was found in some systems. The worst error is in units of the bar.
struct SystemTally {
  index_t problems = 0, refused = 0, failed = 0, tries = 0;
  double worst = 0;
  std::string worst_name;

  void include(const SystemTally& other);
  /// Counts a failure and prints what is wrong.
  void fail(const std::string& name, const std::string& wrong);
  void print(std::string_view kind) const;
};

/// Such as "float32 7x3 gauss, zero b, gaps".
template <class T>
std::string name_of(const UnevenSystems<T>& s, index_t system, std::string_view kind);

/// Judges every answer that was not refused. The report must say ok, and core must accept x too,
/// for the systems as they are and for those that have neither weights nor gaps; the residual norm
/// and the degrees of freedom must be right. Where the findings are empty the degrees are not
/// judged.
template <class T>
void judge_systems(const UnevenSystems<T>& s, const SystemAnswers<T>& answers,
                   std::string_view kind, SystemTally& tally);

/// Makes hard systems of every shape and both types, `each` of a kind where they are not tall, as
/// they are and with columns of very different size, and calls visit(systems, a seed for their
/// weights and gaps).
template <class Visit>
void visit_hard_systems(index_t each, std::uint64_t seed, Visit visit) {
  for (const AttackShape& shape : hard_shapes) {
    const index_t some = shape.m > 1000 ? 1 : each;
    // Weights of all are of another kind for each shape.
    const std::uint64_t of_rows = seed + static_cast<std::uint64_t>(shape.m);
    const auto visit_both = [&](const auto& systems) {
      visit(systems, of_rows);
      visit(with_column_scales(systems, of_rows), of_rows);
    };
    visit_both(make_hard_systems<float>(shape.m, shape.n, some, seed));
    visit_both(make_hard_systems<double>(shape.m, shape.n, some, seed));
  }
}

}  // namespace qrtool::test
