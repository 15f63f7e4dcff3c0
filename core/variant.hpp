// SPDX-License-Identifier: Apache-2.0
// variant.hpp: one way of factoring, as the plan sees it. Pure functions of plain structs, so that
// dispatch is tested without a device.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "core/problem.hpp"

namespace qrtool {

/// Whether a variant takes a problem, and in a few words why or why not.
struct Fit {
  bool ok = false;
  std::string reason;
};

/// Tuned numbers by name; a GPU variant's become -D defines.
using Params = std::map<std::string, int>;

struct Variant {
  std::string_view name;     // "cpu/eigen", "opencl/small"
  std::string_view summary;  // regime and method, one line
  Fit (*fits)(const Problem&, const Limits&);
  Params (*tune)(const Problem&, const Limits&);
  /// Host bytes beside A, Q and R that one thread needs for one matrix.
  std::size_t (*host_workspace_bytes)(const Problem&);
  /// Device bytes beside A, Q and R for one matrix; 0 on the CPU.
  std::size_t (*device_workspace_bytes)(const Problem&);
  /// The arithmetic that runs, as the output's attribute states it: "float32", "float64", ...
  std::string (*arithmetic)(const Problem&);
  /// A baseline that the plan never chooses by itself.
  bool only_when_forced = false;
  /// Whether the plan takes it by itself where it fits, and why; null: always.
  Fit (*pays)(const Problem&, const Limits&) = nullptr;
  /// Where all threads work on one matrix: host bytes beside A, Q and R that they share, while
  /// host_workspace_bytes is each thread's. Null: a thread has a matrix of its own.
  std::size_t (*shared_workspace_bytes)(const Problem&) = nullptr;
  /// Where a matrix that does not fit the memory can be factored a few rows at a time: bytes that
  /// are kept between the two passes, in memory or on disk. Null: it cannot.
  std::size_t (*row_state_bytes)(const Problem&) = nullptr;
  /// Whether threads without a matrix of their own share one.
  bool shares_matrix = false;
  /// `arithmetic` where it depends on the parameters too; null: it does not.
  std::string (*tuned_arithmetic)(const Problem&, const Params&) = nullptr;
  /// Rows of a leaf of the tree where a matrix goes by rows; null: TallShape's own.
  index_t (*leaf_rows)(const Problem&) = nullptr;
};

}  // namespace qrtool
