// SPDX-License-Identifier: Apache-2.0
// system_input.cpp: which buffers hold A, b and the weights.
#include "gpu/solve/input/system_input.hpp"

namespace qrtool {

SystemInput input_buffers(const SolveProblem& p, const InputShape& shape, const FactorJob& factor,
                          const SystemBuffers& system, const SystemInput::Arrays& given, int set,
                          SystemPool& pool) {
  using L = SystemLayout;
  const auto take = [&](L::Entry entry, index_t entries) {
    return pool.grown({set, entry}, static_cast<std::size_t>(entries) * size_of(p.type));
  };
  const bool has_ridge = p.ridge > 0, makes_a = has_ridge || is_wide(p);
  const index_t of_a = p.m * p.n;
  const Buffer shared = shape.shares_a ? take(L::shared_a, of_a) : Buffer();
  SystemInput input;
  input.weighed_a = shape.by_pairs ? shared
                    : given.a      ? given.a
                    : makes_a      ? take(L::short_a, of_a * shape.systems)
                                   : factor.a;
  input.uploaded = {
      .a = shape.shares_a ? shared : input.weighed_a, .b = system.b, .w = system.weights};
  input.ready = {.a = input.weighed_a, .b = system.b, .w = system.weights};
  if (!has_ridge) return input;
  input.uploaded.b = given.b ? given.b : take(L::short_b, p.m * shape.sides * shape.systems);
  if (p.has_weights) input.uploaded.w = take(L::short_weights, p.m * shape.vectors_of_weights());
  input.ready.a = shape.by_pairs ? take(L::longer_shared_a, p.packed_rows() * p.n) : factor.a;
  return input;
}

}  // namespace qrtool
