// SPDX-License-Identifier: Apache-2.0
// large_run.hpp: the steps of `large` for one job. Private to gpu.
#pragma once

#include <cmath>
#include <vector>

#include "gpu/variants/large_layout.hpp"
#include "gpu/variants/product.hpp"

namespace qrtool::large {

inline constexpr int group_size = 256;

/// One call of enqueue: the job with what all steps need.
class Run {
 public:
  Run(const FactorJob& used_job, Launcher& used_launch)
      : job_(used_job),
        launch_(used_launch),
        p_(used_job.problem),
        ahead_(looks_ahead(p_) ? used_launch.beside() : used_launch),
        shape_(factor_shape(used_job.problem, used_job.count)),
        step_(first_step(large::z_entries(p_))),
        panel_(first_step(looks_ahead(p_) ? panel_z_entries(p_) : large::z_entries(p_))) {}

  void run();

 private:
  BlockShape first_step(index_t z_stride) const;
  void begin_block(BlockShape& step, index_t block) const;
  const cl::Buffer& work_buffer() const;
  const cl::Buffer& q_buffer() const { return rounds(p_) ? job_.work[wide_q] : job_.q; }
  /// A buffer of its own where panels are factored ahead.
  const cl::Buffer& place(Buffer own, Buffer shared) const {
    return job_.work[looks_ahead(p_) ? own : shared];
  }
  const cl::Buffer& panel_z_buffer() const { return place(panel_z, z); }
  const cl::Buffer& product_v_buffer() const { return place(product_v, v); }
  const cl::Buffer& product_z_buffer() const { return place(product_z, v); }
  ProductShape product() const;
  index_t slabs(ProductKind kind, const BlockShape& step, index_t depth, index_t most) const;
  /// The bound of an entry of a column of m entries in -1 .. 1, and of anything orthogonal to it.
  double norm_bound() const { return std::sqrt(static_cast<double>(p_.m)); }

  void factor();
  /// The panels of a block, in the queue for these.
  void factor_block(index_t block);
  void factor_panel();
  void update_block();
  /// Columns of A from `first` on, by the block at hand.
  void update_trailing(index_t first, index_t cols);
  void form_q_block(index_t block);
  /// Whether wide products take V and T prepared, packed or transposed; T'Z or T Z, a product too,
  /// then lies in the place of v.
  bool prepares() const { return takes_packed(job_.params) || takes_transposed(job_.params); }
  void load_v();
  void prepare_v();
  void prepare_t(Launcher& launch, const BlockShape& step, bool transposed);
  const cl::Buffer& t_of(index_t block) const {
    return job_.work[block / block_width(p_) % 2 == 0 ? even_t : odd_t];
  }
  /// Z := T'Z or T Z, |z_ij| <= bound.
  void apply_t(double bound, bool transposed);
  ProductShape packed_z_shape() const;
  /// Z = V'B, Z := T'Z or T Z, B -= V Z; B: `cols` columns of `to` from entry `first` on. V is
  /// prepared where products take it so.
  void apply_block(const cl::Buffer& to, index_t ld, index_t first, index_t cols, double bound,
                   bool transposed);
  void finish();

  const FactorJob& job_;
  Launcher& launch_;
  const Problem& p_;
  Launcher ahead_;
  const FactorShape shape_;
  BlockShape step_, panel_;  // panel_: of what is enqueued in ahead_
};

}  // namespace qrtool::large
