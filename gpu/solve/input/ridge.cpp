// SPDX-License-Identifier: Apache-2.0
// ridge.cpp: which ridges a device takes, and the launches. Device half: ridge.cl.
#include "gpu/solve/input/ridge.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "gpu/model/gpu_variant.hpp"
#include "gpu/solve/parts/tuning.hpp"

namespace qrtool {
namespace {

/// The entries of the rows that are added: on the diagonal, its first one, and all others.
struct AddedEntries {
  double first = 0, diagonal = 0, others = 0;
};

/// `count` matrices, one after another, and where they go with the rows of the ridge.
struct RidgeRows {
  Buffer from, to;
  index_t count = 0;
};

void enqueue_rows(FactorEngine& engine, const SolveProblem& p, const RidgeRows& rows,
                  index_t columns, const AddedEntries& added) {
  const index_t m = p.packed_rows(), all = rows.count * m;
  const auto items = static_cast<int>(
      std::bit_ceil(static_cast<unsigned>(std::min(columns, tuning::weigh_most_row_items))));
  const Params params{{"GROUP", tuning::ridge_group}};
  Launcher launch = engine.launcher({"gpu/solve/input/ridge.cl",
                                     defines_for({.type = p.type}, params, ElementType::float64),
                                     "solving systems"});
  launch("add_rows_below", ceil_divide(all, tuning::ridge_group / items), tuning::ridge_group,
         rows.from, rows.to, static_cast<std::int64_t>(all), static_cast<int>(p.m),
         static_cast<int>(m), static_cast<int>(columns), items, added.first, added.diagonal,
         added.others);
}

}  // namespace

SolveProblem with_ridge_rows(const SolveProblem& problem) {
  SolveProblem longer = problem;
  longer.m = problem.packed_rows();
  longer.ridge = 0;
  longer.has_intercept = false;
  return longer;
}

std::string ridge_objection(const SolveProblem& p) {
  // Beside these the squares of A and x keep their range, and the root its digits.
  const double root = std::sqrt(p.ridge);
  const double least = p.type == ElementType::float32 ? 0x1p-100 : 0x1p-300;
  return p.ridge > 0 && !(root >= least && root <= 1 / least) ? "a ridge that is out of range" : "";
}

void enqueue_ridge(FactorEngine& engine, const SolveProblem& p, const SystemInput& input,
                   const InputShape& shape) {
  if (p.ridge <= 0) return;
  const index_t columns = shape.sides_are_rows ? 1 : shape.sides;
  enqueue_rows(engine, p, {input.weighed_a, input.ready.a, shape.by_pairs ? 1 : shape.systems}, p.n,
               {.first = p.penalty(0), .diagonal = std::sqrt(p.ridge), .others = 0});
  enqueue_rows(engine, p, {input.uploaded.b, input.ready.b, shape.systems * shape.sides / columns},
               columns, {});
  if (shape.by_pairs && p.has_weights)
    enqueue_rows(engine, p, {input.uploaded.w, input.ready.w, shape.vectors_of_weights()}, 1,
                 {.first = 1, .diagonal = 1, .others = 1});
}

}  // namespace qrtool
