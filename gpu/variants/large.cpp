// SPDX-License-Identifier: Apache-2.0
// large.cpp: any shape; blocks of panels by Gram matrices, matrix products, Q backward (LAPACK
// geqrf, orhr_col, orgqr). Device half: kernels/large.cl, kernels/gemm.cl.
#include <algorithm>
#include <cmath>

#include "gpu/host_check.hpp"
#include "gpu/registry.hpp"
#include "gpu/tuning.hpp"
#include "gpu/variants/product.hpp"

namespace qrtool {
namespace {

constexpr int group_size = 256, squares_of_panel = 5;

ElementType computes_in(const Problem& p) { return computed_type(p, tuning::few_rows_large); }
std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }
bool is_double(const Problem& p) { return computes_in(p) == ElementType::float64; }
bool rounds(const Problem& p) { return computes_in(p) != p.type; }

index_t panel_width(const Problem& p) {
  return is_double(p) || p.k() < tuning::large_narrow_columns ? tuning::large_narrow_panel
                                                              : tuning::large_panel;
}

index_t block_width(const Problem& p) {
  const bool is_long = p.k() >= tuning::large_long_block_columns && !is_double(p);
  const index_t most = is_long ? tuning::large_long_block : tuning::large_block;
  return std::min(most, ceil_divide(p.k(), panel_width(p)) * panel_width(p));
}

// ---- where things lie

enum class WorkPlace { own, r, q, v };

/// V\R lies in an output where one has its type and size: R, else Q.
WorkPlace work_place(const Problem& p) {
  if (rounds(p)) return WorkPlace::own;
  if (p.mode == Mode::raw) return WorkPlace::v;
  if (p.r_rows() == p.m) return WorkPlace::r;
  return p.wants_q() && p.n <= p.m ? WorkPlace::q : WorkPlace::own;
}

index_t work_columns(const Problem& p) { return work_place(p) == WorkPlace::q ? p.q_cols() : p.n; }

/// Columns of the buffer of a block's reflectors.
index_t v_columns(const Problem& p) { return ceil_divide(std::min(block_width(p), p.k()), 4) * 4; }

/// Columns that a block's Z has at the most, and slabs that it may be cut into.
index_t z_columns(const Problem& p) { return ceil_divide(std::max(p.n, p.q_cols()), 4) * 4; }
index_t gram_slab_rows(index_t rows) {
  const index_t even = ceil_divide(ceil_divide(rows, tuning::large_gram_slabs), 32) * 32;
  return std::max(tuning::large_gram_rows, even);
}

/// REAL that the sums of a panel's Gram matrix take, in the place of Z, which is not yet there.
index_t gram_entries(const Problem& p) {
  if (is_double(p)) return 0;
  const index_t slabs =
      std::min(tuning::large_gram_slabs, ceil_divide(p.m, tuning::large_gram_rows));
  return slabs * panel_width(p) * panel_width(p) * 2;
}

index_t z_entries(const Problem& p) {
  const index_t one = block_width(p) * z_columns(p);
  const index_t panels =
      panel_width(p) * block_width(p) *
      std::min(tuning::large_panel_slabs, ceil_divide(p.m, tuning::large_product_rows));
  const index_t entries =
      std::max({one, std::min(p.m * p.n / 4, 8 * one), panels, gram_entries(p)});
  return ceil_divide(entries, 4) * 4;  // the next matrix's begins aligned too
}

/// work, codes, signs, taus, X, v, Z, Q in a wider type, squares, done.
enum Buffer { work, codes, signs, taus, x, v, z, wide_q, squares, done };

std::vector<std::size_t> workspace(const Problem& p) {
  const std::size_t real = size_of(computes_in(p));
  const auto bytes = [](index_t entries, std::size_t size) {
    return static_cast<std::size_t>(entries) * size;
  };
  const index_t block = block_width(p), square = panel_width(p) * panel_width(p);
  return {bytes(work_place(p) == WorkPlace::own ? p.m * p.n : 0, real),
          bytes(p.n, sizeof(int)),
          bytes(p.k(), real),
          bytes(p.k(), real),
          bytes(ceil_divide(p.k(), block) * block * block, real),
          bytes(p.m * v_columns(p), real),
          bytes(z_entries(p), real),
          bytes(rounds(p) ? p.m * p.q_cols() : 0, real),
          bytes(is_double(p) ? 0 : squares_of_panel * square, sizeof(double)),
          sizeof(int)};
}

/// Three products of halves have float32's accuracy. The matrix units need panels that fill their
/// tiles; a single product of halves needs none but storage.
ProductBody product_body(const Problem& p, const Limits& limits) {
  const bool has_units = limits.has_nvidia_mma && panel_width(p) == tuning::large_panel;
  if (is_double(p) || p.arithmetic == Arithmetic::strict) return ProductBody::fma;
  if (p.arithmetic == Arithmetic::any) {
    return has_units ? ProductBody::three_halves : ProductBody::fma;
  }
  return has_units ? ProductBody::half : ProductBody::stored_halves;
}

std::string tuned_arithmetic(const Problem& p, const Params& params) {
  switch (static_cast<ProductBody>(params.at("PRODUCT_BODY"))) {
    case ProductBody::fma:
    case ProductBody::doubles:
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
                                 static_cast<int>(panel_width(p)));
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
  /// Z = V'B, Z := T'Z or T Z, B -= V Z; B: `cols` columns of `to` from entry `first` on.
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
  step_.slab_rows = static_cast<int>(gram_slab_rows(rows));
  step_.gram_slabs = static_cast<int>(ceil_divide(rows, step_.slab_rows));
  if (!is_double(p_)) {
    launch_("gram_panel", count * step_.gram_slabs, group_size, a, w[z], shape_, step_);
    launch_("sum_gram", count * panel_width(p_) * panel_width(p_) / 32, group_size, w[z],
            w[squares], step_);
  }
  launch_("factor_panel", count, group_size, a, w[squares], w[done], w[signs], w[taus], w[x], w[v],
          shape_, step_);
  launch_("form_v", count * (1 + ceil_divide(rows - step_.width, panel_width(p_))), group_size, a,
          w[squares], w[done], w[signs], w[taus], w[x], w[v], shape_, step_);
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

void Run::apply_block(const cl::Buffer& to, index_t ld, index_t first, index_t cols, double bound,
                      bool transposed) {
  if (cols == 0) return;
  const index_t rows = p_.m - step_.block;
  const cl::Buffer &v_buffer = job_.work[v], &z_buffer = job_.work[z];
  step_.z_left = 0;
  step_.z_cols = static_cast<int>(cols);
  step_.z_ld = static_cast<int>(ceil_divide(cols, 4) * 4);
  step_.z_slab = index_t{step_.block_width} * step_.z_ld;

  ProductShape s = product();
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
  s.slab_depth = static_cast<int>(ceil_divide(rows, cut));
  s.slabs = step_.z_slabs = static_cast<int>(ceil_divide(rows, s.slab_depth));
  enqueue_transposed(launch_, job_.params, ProductKind::wide, s,
                     product_scales(job_.params, 1, bound), v_buffer, v_buffer, to, z_buffer);
  launch_("apply_t", job_.count * ceil_divide(cols, job_.params.at("STRIP")), group_size,
          job_.work[x], z_buffer, shape_, step_, int{transposed});

  ProductShape c = product();
  c.b_stride = step_.z_stride;
  c.ldb = step_.z_ld;
  c.c_first = first;
  c.c_stride = s.b_stride;
  c.ldc = s.ldb;
  c.rows = s.depth;
  c.cols = s.cols;
  c.depth = step_.block_width;
  enqueue_subtract(launch_, job_.params, ProductKind::wide, c,
                   product_scales(job_.params, 1, 2 * bound), v_buffer, z_buffer, to);
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
  apply_block(work_buffer(), step_.ld, block * step_.ld + end, p_.n - end, norm_bound(), true);
}

/// Q := (I - V T V') Q for rows and columns from the block's on.
void Run::form_q_block(index_t block) {
  step_.block = static_cast<int>(block);
  step_.block_width = static_cast<int>(std::min(block_width(p_), p_.k() - block));
  const index_t groups = job_.count * ceil_divide(p_.m - block, 32);
  launch_("load_v", groups, group_size, work_buffer(), job_.work[v], shape_, step_);
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
