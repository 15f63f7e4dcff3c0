// SPDX-License-Identifier: Apache-2.0
// run.hpp: the steps of `large` for one job. Private to gpu.
#pragma once

#include <cmath>
#include <vector>

#include "gpu/products/product.hpp"
#include "gpu/variants/large/layout.hpp"

namespace qrtool::large {

inline constexpr int group_size = 256;

/// One call of enqueue: the job with what all steps need.
class Run {
 public:
  Run(const FactorJob& used_job, Launcher& used_launch)
      : job_(used_job),
        launch_(used_launch),
        p_(used_job.problem),
        shape_(factor_shape(used_job.problem, used_job.count)),
        step_(first_step()) {}

  void run();

 private:
  BlockShape first_step() const;
  void begin_block(index_t block);
  const cl::Buffer& work_buffer() const;
  const cl::Buffer& q_buffer() const { return rounds(p_) ? job_.work[wide_q] : job_.q; }
  ProductShape product() const;
  index_t slabs(ProductKind kind, index_t depth, index_t most) const;
  /// The bound of an entry of a column of m entries in -1 .. 1, and of anything orthogonal to it.
  double norm_bound() const { return std::sqrt(static_cast<double>(p_.m)); }

  void factor();
  void factor_block(index_t block);
  void factor_panel();
  void update_block();
  void form_q_block(index_t block);
  /// Whether wide products take V and T prepared, packed or transposed; T'Z or T Z, a product too,
  /// then lies in the place of v.
  bool prepares() const { return takes_packed(job_.params) || takes_transposed(job_.params); }
  void prepare_v();
  void prepare_t(bool transposed);
  /// Z := T'Z or T Z, |z_ij| <= bound.
  void apply_t(double bound, bool transposed);
  ProductShape packed_z_shape() const;
  /// Columns of A or Q that the block at hand updates, from entry `first` of `to` on.
  struct Target {
    const cl::Buffer& to;
    index_t ld, first, cols;
    double bound;  // of its entries
  };
  /// Z = V'B, Z := T'Z or T Z.
  void multiply_block(const Target& b, bool transposed);
  /// B -= V Z.
  void subtract_block(const Target& b);
  void finish();

  const FactorJob& job_;
  Launcher& launch_;
  const Problem& p_;
  const FactorShape shape_;
  BlockShape step_;
};

}  // namespace qrtool::large
