// SPDX-License-Identifier: Apache-2.0
// plan.hpp: which variant runs, on how many matrices at a time, in how many bytes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/plan/variant.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/tall_shape.hpp"

namespace qrtool {

struct Plan {
  Problem problem;
  const Variant* variant = nullptr;
  Params params;
  std::string reason;  // why this variant, and why none before it

  index_t chunk_matrices = 1;   // that go through the pipeline together
  index_t chunk_rows = 0;       // rows of one matrix that go together; 0: whole matrices
  std::size_t piece_bytes = 0;  // of a matrix that goes to a device in pieces; 0: it does not
  int buffers = 1;              // chunks in flight: read, compute and write overlap from 3 on
  int threads = 1;              // that take matrices
  int threads_per_matrix = 1;   // that share one; more than 1 where there are fewer matrices
  std::size_t host_bytes = 0;   // at the most, all buffers and workspaces together
  std::size_t device_bytes = 0;
  std::size_t scratch_bytes = 0;  // on disk, by rows
  bool is_of_part = false;        // of a larger matrix: a backend need not measure errors twice
  bool has_float64 = true;        // the device, whose variants take float32 alone where it is not

  bool by_rows() const { return chunk_rows > 0; }
  bool in_pieces() const { return piece_bytes > 0; }

  /// Returns the tree over the rows of one matrix.
  TallShape row_shape() const;

  int all_threads() const { return threads * threads_per_matrix; }

  /// Returns the arithmetic that runs, as the output's attribute states it.
  std::string arithmetic() const {
    if (variant->tuned_arithmetic != nullptr) return variant->tuned_arithmetic(problem, params);
    return has_float64 ? variant->arithmetic(problem) : std::string(name_of(problem.type));
  }
};

/// Returns the variant with the least estimate of those that take the problem, and that `may_run`
/// allows; of equal ones the first of the list. Baselines are left out. Null: none takes it.
const Variant* least_costly(const Problem& problem, std::span<const Variant> variants,
                            const Limits& limits,
                            const std::function<bool(const Variant&)>& may_run = {});

/// Returns the plan with the least costly variant, or with the one that `forced` names. A matrix
/// that does not fit the memory goes by rows where a variant can do that. Errors: UsageError where
/// the forced variant is unknown or does not fit; LimitError where one matrix does not fit the host
/// memory, with the bytes that it needs.
Plan make_plan(const Problem& problem, std::span<const Variant> variants, const Limits& limits,
               std::string_view forced = {});

/// Returns the plan in a few lines for --explain.
std::string explain(const Plan& plan, const Limits& limits);

}  // namespace qrtool
