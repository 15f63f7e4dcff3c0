// SPDX-License-Identifier: Apache-2.0
// apply.hpp: products of the stored factors of one matrix with right sides b, in float64 or
// complex128. Each is measured by the inverse product.
//
//     qt     x = Q^H b         error ||Q^H (b - Q x)|| / ||b||; for a square Q ||b - Q x|| / ||b||
//     q      x = Q b           error ||b - Q^H x|| / ||b||
//     rinv   x = P R^-1 b      error ||b - R P' x|| / (||R|| ||x||)
//     rinvt  x = R^-H P' b     error ||P' b - R^H x|| / (||R|| ||x||)
//
// With Q it is the larger of this and what norms say of a Q that is not orthonormal: for qt
// | ||b||^2 - ||x||^2 - ||b - Q x||^2 | / ||b||^2, for q | ||x||^2 - ||b||^2 | / ||b||^2. By itself
// this sees nothing where x = 0.
//
// Sources: LAPACK ormqr and unmqr for reflectors, trtrs for R.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "core/batch.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

enum class Product { qt, q, rinv, rinvt };
inline constexpr std::string_view product_names[] = {"qt", "q", "rinv", "rinvt"};
inline std::string_view name_of(Product product) {
  return product_names[static_cast<std::size_t>(product)];
}
inline bool uses_q(Product product) { return product == Product::qt || product == Product::q; }

/// The right sides, and the rows of Q, that are computed together. Numbers have the same bits in
/// whatever parts they come, if these parts are multiples of both.
inline constexpr index_t sides_at_once = 64, rows_at_once = 256;  // a tile of RowSum

struct ApplyProblem {
  Product product = Product::qt;
  index_t m = 0, n = 0;  // of A, or n x n where only R is used: for the bar
  index_t b_rows = 0, x_rows = 0;
  Precision precision = double_precision;  // of the coarser of Q and X; of X where R is used
  bool is_single = false;                  // X is stored in float32
  bool has_reflectors = false;

  /// Returns the sizes of a product with Q or R (rows x cols), or with reflectors V\R.
  static ApplyProblem of(Product product, index_t rows, index_t cols, bool has_reflectors) {
    const index_t columns = has_reflectors ? rows : cols;  // of Q
    ApplyProblem p{.product = product, .m = rows, .n = cols, .has_reflectors = has_reflectors};
    if (!uses_q(product)) p.m = p.b_rows = p.x_rows = cols;
    if (product == Product::qt) p.b_rows = rows, p.x_rows = columns;
    if (product == Product::q) p.b_rows = columns, p.x_rows = rows;
    return p;
  }
  /// Returns the bytes of the work for `sides` right sides by one thread.
  std::size_t workspace_bytes(index_t sides, std::size_t element_bytes) const;
};

/// The report of one right side. non_finite: it or the factors hold NaN or Inf, and x is NaN;
/// r_overflows: x exceeds its type, or R has a zero on its diagonal, and x is NaN.
struct SideReport {
  double error = not_measured, bar = not_measured;
  Status status = Status::unchecked;
  std::uint8_t tries = 1;  // 2: reflectors were applied again, in a wider type
};

/// The factors of one matrix: Q, or R, or V\R and tau of LAPACK's geqrf. Nothing is said of what
/// lies below R's diagonal.
template <class S>
struct AppliedFactors {
  MatrixView<const S> q = {}, r = {}, v = {};
  const S* tau = nullptr;
  const index_t* p = nullptr;  // the columns of A in R's order; null: their own
};

/// x := the product, of factors in memory. b is b_rows x p, x is x_rows x p.
template <class S>
void apply_factors(const ApplyProblem& problem, const AppliedFactors<S>& factors,
                   MatrixView<const S> b, MatrixView<S> x, std::span<SideReport> reports,
                   int threads = 1);

/// Q (m x k) of which some rows are in memory at a time. Both functions give rows first, ...: of Q,
/// and of B (qt) or the place for those of X (q). write() takes the last ones. All rows come twice.
template <class S>
struct RowsOfQ {
  index_t m = 0, at_once = 0;  // at_once: a multiple of rows_at_once
  std::function<MatrixView<const S>(index_t first, index_t count)> q;
  std::function<MatrixView<S>(index_t first, index_t count)> sides;
  std::function<void(MatrixView<const S> x)> write = [](MatrixView<const S>) {};
};
/// The same with Q by rows. all (k x p): X of qt, B of q.
template <class S>
void apply_by_rows(const ApplyProblem& problem, const RowsOfQ<S>& rows, MatrixView<S> all,
                   std::span<SideReport> reports, int threads);

}  // namespace qrtool
