// SPDX-License-Identifier: Apache-2.0
// variant.hpp: describes one method of factoring to the plan. All functions are pure functions of
// plain structs, so that tests of the choice need no device.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>

#include "core/plan/cost.hpp"
#include "core/problem/problem.hpp"

namespace qrtool {

/// Says whether a variant takes a problem, with the reason in a few words.
struct Fit {
  bool ok = false;
  std::string reason;
};

/// Whether a variant is for matrices of real numbers, of complex ones, or of both.
enum class Numbers { real, complex, both };

/// Tuned numbers by name. Those of a GPU variant become -D defines.
using Params = std::map<std::string, int>;

struct Variant {
  std::string_view name;     // "cpu/eigen", "opencl/small"
  std::string_view summary;  // the shapes it is for and the method, in one line
  Fit (*fits)(const Problem&, const Limits&);
  Params (*tune)(const Problem&, const Limits&);
  /// The host bytes that one thread needs for one matrix in addition to A, Q and R.
  std::size_t (*host_workspace_bytes)(const Problem&);
  /// The device bytes for one matrix in addition to A, Q and R; 0 on the CPU.
  std::size_t (*device_workspace_bytes)(const Problem&);
  /// The arithmetic that runs, in the words of the output's attribute: "float32", "float64", ...
  std::string (*arithmetic)(const Problem&);
  Numbers numbers = Numbers::real;
  /// What complex matrices cost where the table has no samples of them: so many times the real ones
  /// of their shape by cpu/eigen, which has samples of all shapes.
  double complex_cost = 1;
  /// True for a baseline, which runs only when the user names it.
  bool only_when_forced = false;
  /// The table that has the times of the variant. Null: nothing is known of them.
  const CostTable& (*costs)(const Limits&) = nullptr;
  /// For a variant whose threads all work on one matrix: the host bytes that they share, in
  /// addition to A, Q, R and each thread's host_workspace_bytes. Null: each thread has another
  /// matrix.
  std::size_t (*shared_workspace_bytes)(const Problem&) = nullptr;
  /// For a variant that can factor a matrix a few rows at a time when it does not fit in memory:
  /// the bytes to keep between the two passes, in memory or on disk. Null: the variant cannot.
  std::size_t (*row_state_bytes)(const Problem&) = nullptr;
  /// Whether several threads share one matrix when there are fewer matrices than threads.
  bool shares_matrix = false;
  /// Replaces `arithmetic` where it depends on the parameters as well. Null: it does not.
  std::string (*tuned_arithmetic)(const Problem&, const Params&) = nullptr;
  /// The parameters with which the variant takes Householder reflectors alone, without a faster way
  /// whose accuracy depends on the matrix. Null: it cannot.
  Params (*reflectors)(const Problem&, const Limits&) = nullptr;
  /// The rows of a leaf where a matrix is factored a few rows at a time. Null: TallShape chooses.
  index_t (*leaf_rows)(const Problem&) = nullptr;

  bool is_for(ElementType type) const {
    return numbers == Numbers::both || is_complex(type) == (numbers == Numbers::complex);
  }
  /// Whether the variant takes a problem; `fits` sees only those whose type it is for.
  Fit takes(const Problem& problem, const Limits& limits) const {
    if (!is_for(problem.type))
      return {false, is_complex(problem.type) ? "takes no complex matrices"
                                              : "takes complex matrices alone"};
    return fits(problem, limits);
  }
  /// Returns the estimated seconds of a problem, without copies and check; infinity where they are
  /// not known.
  double seconds(const Problem& problem, const Limits& limits) const {
    if (costs == nullptr) return std::numeric_limits<double>::infinity();
    const double own = costs(limits).seconds(name, problem);
    if (!is_complex(problem.type) || std::isfinite(own)) return own;
    Problem real = problem;
    real.type = real_of(problem.type);
    return complex_cost * costs(limits).seconds("cpu/eigen", real);
  }
  /// Returns the digest of the table by which the variant was chosen.
  std::string rates(const Limits& limits) const {
    return costs != nullptr ? costs(limits).digest() : std::string();
  }
};

}  // namespace qrtool
