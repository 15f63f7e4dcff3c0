// SPDX-License-Identifier: Apache-2.0
// panels.cpp: factors the panels of a block of `large` and updates the rest of the block.
#include <algorithm>

#include "gpu/reflectors/large/run.hpp"
#include "gpu/reflectors/large/tuning.hpp"

namespace qrtool::large {

/// The number of slabs, up to `most`, for the product Z of the current step with sums of `depth`
/// terms. More slabs leave fewer work-groups idle, but they must be added up: the choice weighs the
/// two costs. The cost of a slab does not grow with the depth.
index_t Run::slabs(ProductKind kind, index_t depth, index_t most) const {
  const index_t tiles =
      product_tiles(job_.params, kind, step_.z_slab / step_.z_ld, index_t{step_.z_cols});
  most = std::min(
      {most, step_.z_stride / step_.z_slab, ceil_divide(depth, tuning::large_product_rows)});
  const double slab_cost =
      tuning::large_slab_cost * std::min(1.0, static_cast<double>(tuning::large_slab_cost_depth) /
                                                  static_cast<double>(depth));
  const auto cost = [&](index_t count) {
    const index_t turns = ceil_divide(tiles * count, tuning::large_product_groups);
    return static_cast<double>(turns) / static_cast<double>(count) +
           slab_cost * static_cast<double>(count);
  };
  index_t best = 1;
  for (index_t count = 2; count <= most; ++count) {
    if (cost(count) < cost(best)) best = count;
  }
  return best;
}

void Run::factor_panel() {
  const Buffer& a = work_buffer();
  const std::vector<Buffer>& w = job_.work;
  const index_t rows = p_.m - step_.first, count = job_.count;
  const int passes = job_.params.at("PASSES");
  step_.slab_rows = static_cast<int>(gram_slab_rows(p_, rows));
  step_.gram_slabs = static_cast<int>(ceil_divide(rows, step_.slab_rows));
  const index_t sum_groups = count * panel_columns() * panel_columns() / 32;
  const bool has_units = job_.params.at("PANEL_UNITS") == 1;
  const bool takes_all = has_units && count >= tuning::large_whole_gram_matrices;
  if (has_units) {
    launch_("gram_panel_by_units", takes_all ? count : count * step_.gram_slabs, group_size, a,
            w[takes_all ? squares : z], shape_, step_, int{takes_all});
  } else {
    launch_("gram_panel", count * step_.gram_slabs, group_size, a, w[z], shape_, step_);
  }
  if (passes == 1) {
    if (!takes_all) launch_("sum_panel_gram", sum_groups, group_size, w[z], w[squares], step_);
    launch_("factor_panel", count, group_size, a, w[squares], w[done], w[signs], w[taus], w[x],
            w[v], shape_, step_);
    if (rows <= job_.params.at("REFUSED_ROWS")) {
      launch_("factor_refused_panel", count, group_size, a, w[done], w[signs], w[taus], w[x], w[v],
              shape_, step_);
    }
  } else {
    launch_("sum_panel_gram", sum_groups, group_size, w[z], w[squares], step_, w[done], 1);
    launch_("factor_panel", count, group_size, a, w[squares], w[done], w[signs], w[taus], w[x],
            w[v], shape_, step_, 1);
    launch_("form_first_q", count * step_.gram_slabs, group_size, a, w[squares], w[done], w[v],
            w[z], shape_, step_);
    launch_("sum_panel_gram", sum_groups, group_size, w[z], w[squares], step_, w[done], 2);
    launch_("factor_panel", count, group_size, a, w[squares], w[done], w[signs], w[taus], w[x],
            w[v], shape_, step_, 2);
  }
  const index_t head_groups = has_units ? 1 : passes * panel_columns() / 16;
  launch_(has_units ? "form_v_by_units" : "form_v",
          count * (head_groups + ceil_divide(rows - step_.width, panel_columns())), group_size, a,
          w[squares], w[done], w[signs], w[taus], w[x], w[v], shape_, step_);
  if (passes == 2 && p_.m <= tuning::large_exact_t_rows)
    launch_("form_exact_t", count, group_size, w[taus], w[x], w[v], shape_, step_);
}

/// Z = V_p'[V of earlier panels | rest of the block], Z := T_p'Z, rest -= V_p Z.
void Run::update_block() {
  const index_t in_block = step_.first - step_.block, rows = p_.m - step_.first;
  const index_t rest = step_.block_width - in_block - step_.width, cols = in_block + rest;
  if (cols == 0) return;
  const Buffer& a = work_buffer();
  const Buffer &v_buffer = job_.work[v], &z_buffer = job_.work[z];
  step_.z_left = static_cast<int>(in_block);
  step_.z_cols = static_cast<int>(cols);
  step_.z_ld = static_cast<int>(ceil_divide(cols, 4) * 4);
  step_.z_slab = index_t{step_.width} * step_.z_ld;

  ProductShape s = product();
  s.a_first = in_block * (index_t{step_.v_ld} + 1);
  s.left_first = in_block * index_t{step_.v_ld};
  s.left_cols = step_.z_left;
  s.b_first = step_.first * index_t{step_.ld} + step_.first + step_.width;
  s.b_stride = p_.m * step_.ld;
  s.ldb = step_.ld;
  s.c_stride = step_.z_stride;
  s.slab_stride = step_.z_slab;
  s.ldc = step_.z_ld;
  s.rows = step_.width;
  s.cols = step_.z_cols;
  s.depth = static_cast<int>(rows);
  const index_t cut = slabs(ProductKind::narrow, rows, tuning::large_panel_slabs);
  s.slab_depth = static_cast<int>(ceil_divide(rows, cut));
  s.slabs = step_.z_slabs = static_cast<int>(ceil_divide(rows, s.slab_depth));
  enqueue_transposed(launch_, job_.params, ProductKind::narrow, s,
                     product_scales(job_.params, 1, norm_bound()), v_buffer, v_buffer, a, z_buffer);
  launch_("apply_panel_t", job_.count * ceil_divide(cols, job_.params.at("PANEL_STRIP")),
          group_size, job_.work[x], z_buffer, shape_, step_);
  if (rest == 0) return;

  ProductShape c = product();
  c.a_first = s.a_first;
  c.b_first = in_block;
  c.b_stride = step_.z_stride;
  c.ldb = step_.z_ld;
  c.c_first = s.b_first;
  c.c_stride = s.b_stride;
  c.ldc = step_.ld;
  c.rows = s.depth;
  c.cols = static_cast<int>(rest);
  c.depth = step_.width;
  enqueue_subtract(launch_, job_.params, ProductKind::narrow, c,
                   product_scales(job_.params, 1, 2 * norm_bound()), v_buffer, z_buffer, a);
}

void Run::factor_block(index_t block) {
  begin_block(block);
  const index_t end = block + step_.block_width;
  for (index_t first = block; first < end; first += panel_columns()) {
    step_.first = static_cast<int>(first);
    step_.width = static_cast<int>(std::min(panel_columns(), end - first));
    factor_panel();
    update_block();
  }
  if (end < p_.n) prepare_t(true);
}

}  // namespace qrtool::large
