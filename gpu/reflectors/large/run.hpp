// SPDX-License-Identifier: Apache-2.0
// run.hpp: the steps of `large` for one job. Only gpu includes it.
#pragma once

#include <cmath>
#include <vector>

#include "gpu/products/product.hpp"
#include "gpu/reflectors/large/layout.hpp"

namespace qrtool::large {

inline constexpr int group_size = 256;

/// One call of enqueue: the job, and the data that all of its steps share.
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
  /// Columns of a panel and of a block: those of the plan, which may be fewer than the buffers have
  /// room for.
  index_t panel_columns() const { return job_.params.at("PANEL"); }
  index_t block_columns() const { return job_.params.at("BLOCK"); }
  BlockShape first_step() const;
  void begin_block(index_t block);
  const Buffer& work_buffer() const;
  const Buffer& q_buffer() const { return rounds(p_) ? job_.work[wide_q] : job_.q; }
  ProductShape product() const;
  index_t slabs(ProductKind kind, index_t depth, index_t most) const;
  void scale();
  /// sqrt(m), a bound of the norm of a column with m entries in -1 .. 1. Orthogonal transformations
  /// keep the norm, so it also bounds every entry of the transformed column.
  double norm_bound() const { return std::sqrt(static_cast<double>(p_.m)); }

  void factor();
  void factor_block(index_t block);
  void factor_panel();
  void update_block();
  void form_q_block(index_t block);
  /// True if wide products use prepared V and T, packed or transposed. Then T'Z or T Z is computed
  /// by a product too, and overwrites the buffer v.
  bool prepares() const { return takes_packed(job_.params) || takes_transposed(job_.params); }
  /// True if T'Z or T Z is a wide product.
  bool multiplies_t() const { return prepares() || multiplies_by_t(p_); }
  /// The result of that product.
  const Buffer& tz_buffer() const { return job_.work[prepares() ? v : tz]; }
  void prepare_v();
  void prepare_t(bool transposed);
  /// Z := T'Z if `transposed`, else T Z. All |z_ij| are at most `bound`.
  void apply_t(double bound, bool transposed);
  ProductShape packed_z_shape() const;
  /// The columns of A or Q that the current block updates: m - block rows, `cols` columns, rows
  /// `ld` entries apart, beginning at entry `first` of `to`.
  struct Target {
    const Buffer& to;
    index_t ld, first, cols;
    double bound;  // of the absolute values of its entries
  };
  /// Z = V'B, then Z := T'Z if `transposed`, else T Z.
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
