// SPDX-License-Identifier: Apache-2.0
// fit_kernel.hpp: the kernels that form fitted values and residuals of some rows and right sides of
// one matrix, and sum them up. Private to core.
#pragma once

#include <cstdint>

namespace qrtool::fit {

/// The most right sides of a call.
constexpr std::int64_t most_sides = 16;

/// The spread of b over the rows that count.
struct Spread {
  double weight = 0, mean = 0, squares = 0;  // sum w, the weighted mean, sum w (b - mean)^2
  double b_squares = 0;                      // sum w b^2
  double least = __builtin_inf(), most = -__builtin_inf();
};

/// The sums of one right side's rows. r is the residual as it is stored.
struct Sums {
  Spread b = {};
  double r_squares = 0;  // sum w r^2
  // sum w (given - r)^2, and the same for fitted values; not finite if a given number is NaN and
  // its row counts, or the reverse
  double apart_squares = 0, fitted_apart_squares = 0;
};

/// Rows of A, widened: column j is a[j stride], ... A row that is left out holds zeros, and
/// counts[i] is 0 for it, else 1.
struct Rows {
  std::int64_t rows = 0, stride = 0, n = 0;  // stride: a multiple of 8; zeros follow the rows
  double *a = nullptr, *counts = nullptr;
};

/// Entry i of right side c is at b[i row_step + c side_step], and so are its fitted value and its
/// residual. w: weights of the rows; null: all 1.
template <class T>
struct Sides {
  std::int64_t count = 0;
  const T* b = nullptr;
  std::int64_t row_step = 0, side_step = 0;
  const T* w = nullptr;
  std::int64_t w_row_step = 0, w_side_step = 0;
  double scale = 1;                              // b is multiplied by it first
  const double* x = nullptr;                     // count x n; null: only b is summed up
  bool skips_missing = false;                    // a row with NaN in b does not count
  bool is_single = false;                        // fitted values and residuals are float32
  void *fitted = nullptr, *residuals = nullptr;  // null: not wanted
  // Fitted values and residuals that were stored by an earlier run and are checked now. Sums are
  // taken of these residuals, and not of b - A x.
  const void *given_fitted = nullptr, *given_residuals = nullptr;
  Sums* sums = nullptr;        // one for each side, which are set
  double* gradient = nullptr;  // count x n: A'W r, set
  double* columns = nullptr;   // count x n: sum w a_j^2 of the columns, set
};

struct Kernels {
  const char* target;
  /// The numbers of float64 in the workspace for rows of this stride.
  std::int64_t (*workspace_size)(std::int64_t stride);
  void (*in_float)(const Rows&, const Sides<float>&, double* workspace);
  void (*in_double)(const Rows&, const Sides<double>&, double* workspace);
};

extern const Kernels generic_kernels;
extern const Kernels avx2_kernels, avx512_kernels;  // x86-64

}  // namespace qrtool::fit
