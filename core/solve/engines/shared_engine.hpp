// SPDX-License-Identifier: Apache-2.0
// shared_engine.hpp: solves for many right sides of one matrix. A = QR is computed once, in
// float64, and z = Q'b is a product. Q is kept as a matrix, not as reflectors: its columns are
// orthonormal to the last bits, so that z is as accurate as reflectors would give it, and a product
// of a narrow matrix with many columns runs at the speed at which B is read.
#pragma once

#include <optional>
#include <vector>

#include "core/cpu/solve/shared_kernel.hpp"
#include "core/plan/plan.hpp"
#include "core/solve/engines/gap_groups.hpp"
#include "core/solve/engines/system_device.hpp"
#include "core/solve/system.hpp"

namespace qrtool {

/// Whether SharedEngine can solve with a weight for every row of every right side.
bool takes_own_weights(const SolveProblem& problem);

/// Solves for many right sides of one real A on the CPU. Not thread-safe: it has threads of its
/// own.
template <class T>
class SharedEngine {
 public:
  SharedEngine(const SolveProblem& problem, const Limits& limits);

  /// Returns the most host memory that the engine uses.
  static std::size_t workspace_bytes(const SolveProblem& problem, int threads);

  /// Factors a (m x n) with m weights w, which are `step` apart, or null. Both are copied. Returns
  /// the findings about A, which are empty if each right side has its own weights.
  MatrixFindings take_matrix(MatrixView<const T> a, const T* w, index_t step);
  /// Returns A = QR for a device, or nothing if some solutions would need more care than products
  /// give.
  std::optional<SharedFactors> factors() const;
  /// Solves for the block's right sides. A right side with missing entries, if they are skipped, or
  /// with weights of its own is solved by Cholesky's method from its own A'WA. Right sides that
  /// need more care are left out; their numbers are returned in ascending order.
  std::vector<index_t> run(const RightSideBlock<T>& block);
  /// As run(), for the right sides with the numbers `sides`, in ascending order.
  std::vector<index_t> run_some(const RightSideBlock<T>& block, std::span<const index_t> sides);

 private:
  struct Worker {
    SystemSolver<T> solver;
    Batch<T> b, w, x;  // a tile of right sides; weights of a pack of them; X and its errors
    Batch<double> z;
    HostMemory workspace, gap_workspace;
    std::vector<index_t> gaps;
  };
  void factor();
  bool is_within(int exponent) const;
  void prepare_kernel();
  void solve_tile(const RightSideBlock<T>& block, index_t first, index_t count, Worker& worker);
  shared::Tile<T> place_tile(const RightSideBlock<T>& block, index_t first, index_t count,
                             Worker& worker) const;
  void store_tile(const RightSideBlock<T>& block, index_t first, const shared::Tile<T>& tile,
                  Worker& worker);
  void solve_with_care(const RightSideBlock<T>& block, index_t first, index_t count,
                       Worker& worker);
  void prepare_gaps();
  GapMasks masks_of(const RightSideBlock<T>& block, std::span<const index_t> gaps) const;
  index_t rows_of(const T* b, const T* w) const;
  std::vector<index_t> run_weighted(const RightSideBlock<T>& block);
  void solve_gaps(std::span<const index_t> gaps, const RightSideBlock<T>& block, Worker& worker);
  std::vector<index_t> finish_gaps(const RightSideBlock<T>& block);
  /// Whether A has too few rows that count, whatever b holds.
  bool has_few_rows() const { return rows_used_ < problem_.least_rows(); }
  void refuse_all(const RightSideBlock<T>& block) const;

  const SolveProblem& problem_;
  Limits limits_;
  shared::Routine<T> routine_;
  RowFactors rows_;
  std::vector<int> scales_;  // of A's columns
  bool a_is_finite_ = false;
  index_t rows_used_ = 0;
  Batch<T> a_;
  Batch<double> wide_, q_, r_;  // wide_: A in float64
  std::vector<double> row_factors_, row_norms_, correlations_;
  std::vector<double> powers_;  // 2^-scale of each column
  shared::Matrix matrix_;
  bool uses_kernel_ = false, solves_gaps_ = false;
  systems::Shape gap_shape_;
  systems::Rules gap_rules_;
  Batch<double> padded_;  // A in float64, with a multiple of four columns
  std::vector<Worker> workers_;
};

/// The engine for complex matrices. It has no kernels: Q and R are complex128, and every solution
/// is made and judged like the solution of a system with a matrix of its own. A right side with
/// missing entries, or with weights of its own, is left to the caller.
template <class R>
class SharedEngine<std::complex<R>> {
 public:
  using T = std::complex<R>;
  using S = std::complex<double>;

  SharedEngine(const SolveProblem& problem, const Limits& limits);
  static std::size_t workspace_bytes(const SolveProblem& problem, int threads);
  MatrixFindings take_matrix(MatrixView<const T> a, const R* w, index_t step);
  std::vector<index_t> run(const RightSideBlock<T>& block);

 private:
  struct Worker {
    SystemSolver<T> solver;
    Batch<T> b;  // a tile of right sides
    Batch<S> z;
    PackedSystem packed;
    std::vector<index_t> gaps;
  };
  void solve_tile(const RightSideBlock<T>& block, index_t first, index_t count, Worker& worker);

  const SolveProblem& problem_;
  Limits limits_;
  RowFactors rows_;
  std::vector<int> scales_;  // of A's columns
  bool a_is_finite_ = false;
  index_t rows_used_ = 0;
  Batch<T> a_;
  Batch<S> q_, r_;
  MatrixFindings findings_;
  std::vector<Worker> workers_;
};

}  // namespace qrtool
