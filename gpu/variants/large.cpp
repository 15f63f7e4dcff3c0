// SPDX-License-Identifier: Apache-2.0
// large.cpp: any shape; blocks of panels by Gram matrices, matrix products, Q backward (LAPACK
// geqrf, orhr_col, orgqr). Device half: kernels/large.cl, kernels/gemm.cl.
#include <algorithm>
#include <cmath>

#include "gpu/host_check.hpp"
#include "gpu/registry.hpp"
#include "gpu/tuning.hpp"
#include "gpu/variants/large_layout.hpp"
#include "gpu/variants/product.hpp"

namespace qrtool {
namespace {

using namespace large;

constexpr int group_size = 256;

std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }

/// Three products of halves have float32's accuracy. A single product of halves needs no matrix
/// units, but storage.
ProductBody product_body(const Problem& p, const Limits& limits) {
  const bool has_units = limits.has_nvidia_mma && may_prepare(p);
  const ProductBody plain = may_prepare(p) ? ProductBody::floats : ProductBody::fma;
  if (is_double(p) || p.arithmetic == Arithmetic::strict) return plain;
  if (p.arithmetic == Arithmetic::any) return has_units ? ProductBody::three_halves : plain;
  return has_units ? ProductBody::half : ProductBody::stored_halves;
}

std::string tuned_arithmetic(const Problem& p, const Params& params) {
  switch (static_cast<ProductBody>(params.at("PRODUCT_BODY"))) {
    case ProductBody::fma:
    case ProductBody::doubles:
    case ProductBody::floats:
      break;
    case ProductBody::three_halves:
      return "float32, products of three float16";
    case ProductBody::half:
      return "float32, products of float16";
    case ProductBody::stored_halves:
      return "float32, products of stored float16";
  }
  return arithmetic(p);
}

Params tune(const Problem& p, const Limits& limits) {
  const index_t all = work_columns(p) | p.q_cols() | (p.n > p.k() ? p.k() : 0);
  const int alignment = aligned_entries(all);
  Params params = product_params(computes_in(p), product_body(p, limits), alignment,
                                 static_cast<int>(panel_width(p)), limits.has_nvidia_mma);
  params["GRAM"] = is_double(p) ? 0 : 1;
  params["PANEL"] = static_cast<int>(panel_width(p));
  params["BLOCK"] = static_cast<int>(block_width(p));
  const bool is_narrow = panel_width(p) == tuning::large_narrow_panel;
  params["STRIP"] = is_narrow ? tuning::large_narrow_strip : tuning::large_strip;
  params["PANEL_STRIP"] = params["STRIP"];
  return params;
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits);
  if (!objection.empty()) return {false, objection};
  if (limits.max_group < group_size) {
    return {false, "needs work-groups of " + std::to_string(group_size)};
  }
  return {true, "takes every shape"};
}

// ---- launches

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
  const cl::Buffer& work_buffer() const;
  const cl::Buffer& q_buffer() const { return rounds(p_) ? job_.work[wide_q] : job_.q; }
  ProductShape product() const;
  index_t slabs(ProductKind kind, index_t rows, index_t cols, index_t depth, index_t most) const;
  /// The bound of an entry of a column of m entries in -1 .. 1, and of anything orthogonal to it.
  double norm_bound() const { return std::sqrt(static_cast<double>(p_.m)); }

  void factor_block(index_t block);
  void factor_panel();
  void update_block();
  void update_trailing();
  void form_q_block(index_t block);
  /// Whether wide products take V and T prepared, packed or transposed; T'Z or T Z, a product too,
  /// then lies in the place of v.
  bool prepares() const { return takes_packed(job_.params) || takes_transposed(job_.params); }
  void prepare_v();
  /// Z := T'Z or T Z, |z_ij| <= bound.
  void apply_t(double bound, bool transposed);
  void multiply_by_t(ProductScales scales);
  ProductShape packed_z_shape() const;
  /// Z = V'B, Z := T'Z or T Z, B -= V Z; B: `cols` columns of `to` from entry `first` on. V is
  /// prepared where products take it so.
  void apply_block(const cl::Buffer& to, index_t ld, index_t first, index_t cols, double bound,
                   bool transposed);
  void finish();

  const FactorJob& job_;
  Launcher& launch_;
  const Problem& p_;
  const FactorShape shape_;
  BlockShape step_;
};

BlockShape Run::first_step() const {
  BlockShape step{};
  step.z_stride = z_entries(p_);
  step.ld = static_cast<int>(work_columns(p_));
  step.v_ld = static_cast<int>(v_columns(p_));
  return step;
}

const cl::Buffer& Run::work_buffer() const {
  switch (work_place(p_)) {
    case WorkPlace::r:
      return job_.r;
    case WorkPlace::q:
      return job_.q;
    case WorkPlace::v:
      return job_.v;
    case WorkPlace::own:
      break;
  }
  return job_.work[work];
}

ProductShape Run::product() const {
  ProductShape s{};
  s.count = shape_.count;
  s.lda = s.left_ld = step_.v_ld;
  s.a_stride = s.left_stride = p_.m * step_.v_ld;
  s.slabs = 1;
  return s;
}

/// How many slabs give a product of `depth` terms groups enough, each `most` entries of Z.
index_t Run::slabs(ProductKind kind, index_t rows, index_t cols, index_t depth,
                   index_t most) const {
  const index_t tiles = product_tiles(job_.params, kind, rows, cols);
  const index_t room = step_.z_stride / (rows * ceil_divide(cols, 4) * 4);
  return std::clamp<index_t>(
      ceil_divide(tuning::large_product_groups, tiles), 1,
      std::min({room, most, ceil_divide(depth, tuning::large_product_rows)}));
}

void Run::factor_panel() {
  const cl::Buffer& a = work_buffer();
  const std::vector<cl::Buffer>& w = job_.work;
  const index_t rows = p_.m - step_.first, count = job_.count;
  step_.slab_rows = static_cast<int>(gram_slab_rows(p_, rows));
  step_.gram_slabs = static_cast<int>(ceil_divide(rows, step_.slab_rows));
  if (!is_double(p_)) {
    launch_("gram_panel", count * step_.gram_slabs, group_size, a, w[z], shape_, step_);
    launch_("sum_gram", count * panel_width(p_) * panel_width(p_) / 32, group_size, w[z],
            w[squares], step_);
  }
  launch_("factor_panel", count, group_size, a, w[squares], w[done], w[signs], w[taus], w[x], w[v],
          shape_, step_);
  const index_t t_groups = is_double(p_) ? 1 : panel_width(p_) / 16;
  launch_("form_v", count * (t_groups + ceil_divide(rows - step_.width, panel_width(p_))),
          group_size, a, w[squares], w[done], w[signs], w[taus], w[x], w[v], shape_, step_);
}

/// Z = V_p'[V of panels before | rest of the block], Z := T_p'Z, rest -= V_p Z.
void Run::update_block() {
  const index_t in_block = step_.first - step_.block, rows = p_.m - step_.first;
  const index_t rest = step_.block_width - in_block - step_.width, cols = in_block + rest;
  if (cols == 0) return;
  const cl::Buffer& a = work_buffer();
  const cl::Buffer &v_buffer = job_.work[v], &z_buffer = job_.work[z];
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
  const index_t cut = slabs(ProductKind::narrow, s.rows, s.cols, rows, tuning::large_panel_slabs);
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

void Run::prepare_v() {
  PackShape s{};
  s.first = step_.block * (index_t{step_.ld} + 1);
  s.stride = p_.m * step_.ld;
  s.count = shape_.count;
  s.rows = static_cast<int>(p_.m - step_.block);
  s.cols = step_.block_width;
  s.ld = step_.ld;
  s.row_blocks = static_cast<int>(packed_blocks(s.rows));
  s.col_blocks = static_cast<int>(packed_blocks(s.cols));
  if (takes_packed(job_.params)) {
    pack_operand(launch_, s, Packing::reflectors, product_scales(job_.params, 1, 1).a,
                 work_buffer(), job_.work[packed_v]);
  } else {
    transpose_operand(launch_, s, Packing::reflectors, work_buffer(), job_.work[packed_v]);
  }
}

ProductShape Run::packed_z_shape() const {
  ProductShape s{};
  s.count = shape_.count;
  s.slabs = 1;
  s.lda = static_cast<int>(packed_blocks(step_.block_width));
  s.a_stride = index_t{s.lda} * s.lda;
  s.b_stride = step_.z_stride;
  s.ldb = step_.z_ld;
  s.rows = static_cast<int>(ceil_divide(step_.block_width, 16) * 16);
  s.cols = step_.z_cols;
  s.depth = step_.block_width;
  s.slab_depth = s.rows;
  s.ldc = static_cast<int>(packed_blocks(s.cols));
  s.c_stride = s.rows / 16 * index_t{s.ldc};
  return s;
}

void Run::apply_t(double bound, bool transposed) {
  const std::vector<cl::Buffer>& w = job_.work;
  if (!prepares()) {
    launch_("apply_t", job_.count * ceil_divide(step_.z_cols, job_.params.at("STRIP")), group_size,
            w[x], w[z], shape_, step_, int{transposed});
    return;
  }
  if (step_.z_slabs > 1) {
    launch_("sum_slabs", ceil_divide(job_.count * step_.z_slab, 4 * group_size), group_size, w[z],
            shape_, step_);
  }
  const ProductScales scales = product_scales(job_.params, tuning::large_t_bound, bound);
  launch_("form_block_t", job_.count * packed_blocks(step_.block_width), group_size, w[x],
          w[packed_t], shape_, step_, int{!transposed}, scales.a);
  multiply_by_t(scales);
}

void Run::multiply_by_t(ProductScales scales) {
  const std::vector<cl::Buffer>& w = job_.work;
  ProductShape s = packed_z_shape();
  if (takes_packed(job_.params)) {
    enqueue_transposed_packed(launch_, job_.params, s, scales, scales.b, w[packed_t], w[z], w[v]);
    return;
  }
  s.lda *= 16;
  s.a_stride *= 256;
  s.ldc = s.ldb;
  s.c_stride = step_.z_slab;
  s.rows = step_.block_width;
  enqueue_transposed(launch_, job_.params, ProductKind::wide, s, scales, w[packed_t], w[z], w[z],
                     w[v]);
}

void Run::apply_block(const cl::Buffer& to, index_t ld, index_t first, index_t cols, double bound,
                      bool transposed) {
  if (cols == 0) return;
  const index_t rows = p_.m - step_.block;
  const bool is_packed = takes_packed(job_.params);
  const cl::Buffer &v_buffer = job_.work[is_packed ? packed_v : v], &z_buffer = job_.work[z];
  step_.z_left = 0;
  step_.z_cols = static_cast<int>(cols);
  step_.z_ld = static_cast<int>(ceil_divide(cols, 4) * 4);
  step_.z_slab = index_t{step_.block_width} * step_.z_ld;

  ProductShape s = product();
  if (is_packed) {
    s.lda = static_cast<int>(packed_blocks(step_.block_width));
    s.a_stride = packed_blocks(rows) * s.lda;
  }
  s.b_first = first;
  s.b_stride = p_.m * ld;
  s.ldb = static_cast<int>(ld);
  s.c_stride = step_.z_stride;
  s.slab_stride = step_.z_slab;
  s.ldc = step_.z_ld;
  s.rows = step_.block_width;
  s.cols = step_.z_cols;
  s.depth = static_cast<int>(rows);
  const index_t cut = slabs(ProductKind::wide, s.rows, s.cols, rows, rows);
  s.slab_depth = static_cast<int>(ceil_divide(ceil_divide(rows, cut), 16) * 16);
  s.slabs = step_.z_slabs = static_cast<int>(ceil_divide(rows, s.slab_depth));
  enqueue_transposed(launch_, job_.params, ProductKind::wide, s,
                     product_scales(job_.params, 1, bound), v_buffer, v_buffer, to, z_buffer);
  apply_t(2 * bound, transposed);

  ProductShape c = s;
  c.slabs = 1;
  c.b_first = 0;
  c.b_stride = prepares() ? step_.z_slab : step_.z_stride;
  c.ldb = step_.z_ld;
  if (is_packed) {
    c.ldb = packed_z_shape().ldc;
    c.b_stride = packed_z_shape().c_stride;
  } else if (prepares()) {
    c.lda = static_cast<int>(packed_blocks(rows)) * 16;
    c.a_stride = c.lda * packed_blocks(step_.block_width) * 16;
  }
  c.c_first = first;
  c.c_stride = s.b_stride;
  c.ldc = s.ldb;
  c.rows = s.depth;
  c.cols = s.cols;
  c.depth = step_.block_width;
  enqueue_subtract(launch_, job_.params, ProductKind::wide, c,
                   product_scales(job_.params, 1, 2 * bound), job_.work[prepares() ? packed_v : v],
                   job_.work[prepares() ? v : z], to);
}

void Run::factor_block(index_t block) {
  step_.block = static_cast<int>(block);
  step_.block_width = static_cast<int>(std::min(block_width(p_), p_.k() - block));
  const index_t end = block + step_.block_width;
  for (index_t first = block; first < end; first += panel_width(p_)) {
    step_.first = static_cast<int>(first);
    step_.width = static_cast<int>(std::min(panel_width(p_), end - first));
    factor_panel();
    update_block();
  }
  if (end < p_.n && prepares()) prepare_v();
  apply_block(work_buffer(), step_.ld, block * step_.ld + end, p_.n - end, norm_bound(), true);
}

/// Q := (I - V T V') Q for rows and columns from the block's on.
void Run::form_q_block(index_t block) {
  step_.block = static_cast<int>(block);
  step_.block_width = static_cast<int>(std::min(block_width(p_), p_.k() - block));
  const index_t groups = job_.count * ceil_divide(p_.m - block, 32);
  // Q may lie where V does.
  if (prepares()) prepare_v();
  if (!takes_packed(job_.params)) {
    launch_("load_v", groups, group_size, work_buffer(), job_.work[v], shape_, step_);
  }
  launch_("begin_q", groups, group_size, q_buffer(), job_.work[codes], job_.work[signs], shape_,
          step_);
  apply_block(q_buffer(), p_.q_cols(), block * (p_.q_cols() + 1), p_.q_cols() - block, 1, false);
}

void Run::finish() {
  const std::vector<cl::Buffer>& w = job_.work;
  if (p_.mode == Mode::raw) {
    launch_("finish_v", job_.count * ceil_divide(p_.m, 32), group_size, work_buffer(), w[codes],
            job_.v, job_.magnitudes, shape_, step_);
    launch_("store_tau", ceil_divide(job_.count * p_.k(), group_size), group_size, w[taus], job_.v,
            job_.magnitudes, job_.tau, shape_);
    return;
  }
  launch_("store_r", job_.count * ceil_divide(p_.r_rows(), 32), group_size, work_buffer(), w[codes],
          w[signs], job_.r, job_.magnitudes, shape_, step_);
}

void Run::run() {
  const index_t blocks = ceil_divide(p_.k(), block_width(p_));
  launch_("scale_columns", job_.count * ceil_divide(p_.n, 32), group_size, job_.a, work_buffer(),
          job_.work[codes], shape_, step_);
  for (index_t b = 0; b < blocks; ++b) factor_block(b * block_width(p_));
  // Q overwrites what lies in its place, R what lies in R's: each after the other has read it.
  const bool q_first = p_.wants_q() && work_place(p_) == WorkPlace::r;
  if (!q_first) finish();
  if (p_.wants_q()) {
    for (index_t b = blocks - 1; b >= 0; --b) form_q_block(b * block_width(p_));
    if (rounds(p_)) {
      launch_("store_q", ceil_divide(job_.count * p_.m * p_.q_cols(), group_size), group_size,
              job_.work[wide_q], job_.q, shape_);
    }
  }
  if (q_first) finish();
}

void enqueue(const FactorJob& job, Launcher& launch) { Run(job, launch).run(); }

std::size_t device_bytes(const Problem& p) { return device_workspace_bytes(large_variant(), p); }

}  // namespace

GpuVariant large_variant() {
  return {{"opencl/large", "any shape; blocks of panels by Gram matrices, compact WY", fits, tune,
           host_check_bytes, device_bytes, arithmetic, false, nullptr, nullptr, nullptr, false,
           tuned_arithmetic},
          "large.cl",
          workspace,
          enqueue,
          computes_in};
}

}  // namespace qrtool
