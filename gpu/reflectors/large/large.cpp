// SPDX-License-Identifier: Apache-2.0
// large.cpp: the host half of large.cl and gpu/products/gemm.cl: any shape; blocks of panels by
// Gram matrices, matrix products, then Q from the last block to the first (LAPACK geqrf, orhr_col,
// orgqr).
#include <algorithm>
#include <array>
#include <string_view>

#include "gpu/check/device_check.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/reflectors/large/large.hpp"
#include "gpu/reflectors/large/run.hpp"
#include "gpu/reflectors/large/tuning.hpp"

namespace qrtool::large {

BlockShape Run::first_step() const {
  BlockShape step{};
  step.z_stride = z_entries(p_);
  step.ld = static_cast<int>(work_columns(p_));
  step.v_ld = static_cast<int>(v_columns(p_));
  return step;
}

void Run::begin_block(index_t block) {
  step_.block = static_cast<int>(block);
  step_.block_width = static_cast<int>(std::min(block_columns(), p_.k() - block));
}

const Buffer& Run::work_buffer() const {
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

void Run::prepare_v() {
  if (!prepares()) return;
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

/// Prepares T for the product T'Z (`transposed`), or T' for T Z. The product transposes its left
/// factor.
void Run::prepare_t(bool transposed) {
  if (!multiplies_t()) return;
  const ProductScales scales = product_scales(job_.params, tuning::large_t_bound, 1);
  launch_("form_block_t", job_.count * packed_blocks(step_.block_width), group_size, job_.work[x],
          job_.work[packed_t], shape_, step_, int{!transposed}, scales.a);
}

void Run::apply_t(double bound, bool transposed) {
  const std::vector<Buffer>& w = job_.work;
  if (!multiplies_t()) {
    launch_("apply_t", job_.count * ceil_divide(step_.z_cols, job_.params.at("STRIP")), group_size,
            w[x], w[z], shape_, step_, int{transposed});
    return;
  }
  if (step_.z_slabs > 1) {
    launch_("sum_z_slabs", ceil_divide(job_.count * step_.z_slab, 4 * group_size), group_size, w[z],
            shape_, step_);
  }
  const ProductScales scales = product_scales(job_.params, tuning::large_t_bound, bound);
  ProductShape s = packed_z_shape();
  if (takes_packed(job_.params)) {
    enqueue_transposed_packed(launch_, job_.params, s, scales, scales.b, job_.work[packed_t], w[z],
                              job_.work[v]);
    return;
  }
  s.lda *= 16;
  s.a_stride *= 256;
  s.ldc = s.ldb;
  s.c_stride = step_.z_slab;
  s.rows = step_.block_width;
  enqueue_transposed(launch_, job_.params, ProductKind::wide, s, scales, job_.work[packed_t], w[z],
                     w[z], tz_buffer());
}

void Run::multiply_block(const Target& b, bool transposed) {
  const index_t rows = p_.m - step_.block;
  const bool is_packed = takes_packed(job_.params);
  const Buffer& v_buffer = job_.work[is_packed ? packed_v : v];
  step_.z_left = 0;
  step_.z_cols = static_cast<int>(b.cols);
  step_.z_ld = static_cast<int>(ceil_divide(b.cols, 4) * 4);
  step_.z_slab = index_t{step_.block_width} * step_.z_ld;

  ProductShape s = product();
  if (is_packed) {
    s.lda = static_cast<int>(packed_blocks(step_.block_width));
    s.a_stride = packed_blocks(rows) * s.lda;
  }
  s.b_first = b.first;
  s.b_stride = p_.m * b.ld;
  s.ldb = static_cast<int>(b.ld);
  s.c_stride = step_.z_stride;
  s.slab_stride = step_.z_slab;
  s.ldc = step_.z_ld;
  s.rows = step_.block_width;
  s.cols = step_.z_cols;
  s.depth = static_cast<int>(rows);
  const index_t cut = slabs(ProductKind::wide, rows, rows);
  s.slab_depth = static_cast<int>(ceil_divide(ceil_divide(rows, cut), 16) * 16);
  s.slabs = step_.z_slabs = static_cast<int>(ceil_divide(rows, s.slab_depth));
  enqueue_transposed(launch_, job_.params, ProductKind::wide, s,
                     product_scales(job_.params, 1, b.bound), v_buffer, v_buffer, b.to,
                     job_.work[z]);
  apply_t(2 * b.bound, transposed);
}

void Run::subtract_block(const Target& b) {
  const index_t rows = p_.m - step_.block;
  ProductShape c = product();
  c.b_stride = multiplies_t() ? step_.z_slab : step_.z_stride;
  c.ldb = step_.z_ld;
  if (takes_packed(job_.params)) {
    c.lda = static_cast<int>(packed_blocks(step_.block_width));
    c.a_stride = packed_blocks(rows) * c.lda;
    c.b_stride = packed_z_shape().c_stride;
    c.ldb = packed_z_shape().ldc;
  } else if (prepares()) {
    c.lda = static_cast<int>(packed_blocks(rows)) * 16;
    c.a_stride = c.lda * packed_blocks(step_.block_width) * 16;
  }
  c.c_first = b.first;
  c.c_stride = p_.m * b.ld;
  c.ldc = static_cast<int>(b.ld);
  c.rows = static_cast<int>(rows);
  c.cols = static_cast<int>(b.cols);
  c.depth = step_.block_width;
  enqueue_subtract(
      launch_, job_.params, ProductKind::wide, c, product_scales(job_.params, 1, 2 * b.bound),
      job_.work[prepares() ? packed_v : v], multiplies_t() ? tz_buffer() : job_.work[z], b.to);
}

void Run::factor() {
  for (index_t block = 0; block < p_.k(); block += block_columns()) {
    factor_block(block);
    const index_t end = block + step_.block_width;
    if (end == p_.n) return;
    const Target c{.to = work_buffer(),
                   .ld = step_.ld,
                   .first = block * step_.ld + end,
                   .cols = p_.n - end,
                   .bound = norm_bound()};
    prepare_v();
    multiply_block(c, true);
    subtract_block(c);
  }
}

/// Q := (I - V T V') Q for rows and columns >= block.
void Run::form_q_block(index_t block) {
  begin_block(block);
  const index_t groups = job_.count * ceil_divide(p_.m - block, 32);
  // Q may share the buffer of V\R, so V and T are copied before begin_q overwrites them.
  prepare_v();
  prepare_t(false);
  if (!takes_packed(job_.params)) {
    launch_("load_v", groups, group_size, work_buffer(), job_.work[v], shape_, step_);
  }
  launch_("begin_q", groups, group_size, q_buffer(), job_.work[codes], job_.work[signs], shape_,
          step_);
  const Target q{.to = q_buffer(),
                 .ld = p_.q_cols(),
                 .first = block * (p_.q_cols() + 1),
                 .cols = p_.q_cols() - block,
                 .bound = 1};
  multiply_block(q, false);
  subtract_block(q);
}

void Run::finish() {
  const std::vector<Buffer>& w = job_.work;
  if (p_.mode == Mode::raw) {
    launch_("finish_v", job_.count * ceil_divide(p_.m, 32), group_size, work_buffer(), w[codes],
            job_.v, job_.magnitudes, shape_, step_);
    launch_("store_tau", ceil_divide(job_.count * p_.k(), group_size), group_size, w[taus], job_.v,
            job_.magnitudes, job_.tau, shape_);
    return;
  }
  launch_("finish_r", job_.count * ceil_divide(p_.r_rows(), 32), group_size, work_buffer(),
          w[codes], w[signs], job_.r, job_.magnitudes, shape_, step_);
}

/// The largest entries of a slab are in the buffer of Z, which has room for more slabs than there
/// are.
void Run::scale() {
  const index_t most = std::clamp<index_t>(step_.z_stride / p_.n, 1, tuning::large_scan_slabs);
  step_.slab_rows =
      static_cast<int>(std::max(ceil_divide(p_.m, most), std::min(p_.m, tuning::large_scan_rows)));
  step_.gram_slabs = static_cast<int>(ceil_divide(p_.m, step_.slab_rows));
  const index_t groups = job_.count * step_.gram_slabs * ceil_divide(p_.n, 32);
  const std::vector<Buffer>& w = job_.work;
  if (p_.m <= tuning::large_short_rows) {
    launch_("scale_short_columns", groups, group_size, job_.a, work_buffer(), w[codes], shape_,
            step_);
    return;
  }
  launch_("scan_columns", groups, group_size, job_.a, w[z], shape_, step_);
  launch_("scale_columns", groups, group_size, job_.a, work_buffer(), w[codes], w[z], shape_,
          step_);
}

void Run::run() {
  const index_t blocks = ceil_divide(p_.k(), block_columns());
  scale();
  factor();
  // Either Q or R may share the buffer of V\R. The one that does not share it must be first,
  // because the other one destroys V\R.
  const bool q_first = p_.wants_q() && work_place(p_) == WorkPlace::r;
  if (!q_first) finish();
  if (p_.wants_q()) {
    for (index_t b = blocks - 1; b >= 0; --b) form_q_block(b * block_columns());
    if (rounds(p_)) {
      launch_("store_q", ceil_divide(job_.count * p_.m * p_.q_cols(), group_size), group_size,
              job_.work[wide_q], job_.q, shape_);
    }
  }
  if (q_first) finish();
}

}  // namespace qrtool::large

namespace qrtool {
namespace {

using namespace large;

constexpr std::array<std::string_view, 1> heavy_kernels{"factor_refused_panel"};

std::string arithmetic(const Problem& p) { return std::string(name_of(computes_in(p))); }

/// The kernel body for products. Three products of halves are as accurate as float32, and need
/// matrix units. A single product of halves works without matrix units: the operands are stored as
/// halves. `doubles` and `floats` are for matrices that allow long plain sums.
ProductBody product_body(const Problem& p, const Limits& limits) {
  const bool has_units = limits.has_nvidia_mma && may_prepare(p);
  const bool may_sum_long = p.m > tuning::large_short_sums_rows;
  const ProductBody plain = may_prepare(p) && may_sum_long ? ProductBody::floats : ProductBody::fma;
  if (is_double(p)) return limits.float64_products && may_sum_long ? ProductBody::doubles : plain;
  if (p.arithmetic == Arithmetic::strict) return plain;
  if (p.arithmetic == Arithmetic::any) return has_units ? ProductBody::three_halves : plain;
  return has_units ? ProductBody::half : ProductBody::stored_halves;
}

std::string tuned_arithmetic(const Problem&, const Params& params) {
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
  return params.at("PASSES") == 2 ? "float64" : "float32";
}

/// The most rows of a panel in registers: no more than the matrix has, in steps of a work-item's
/// words of four rows.
int refused_rows(index_t m) {
  return static_cast<int>(std::min<index_t>(tuning::large_refused_rows, ceil_divide(m, 128) * 128));
}

/// `has_panel_units`: whether the panels go through the float64 matrix units too.
Params params_of(const Problem& p, const Limits& limits, const Widths& widths, ProductBody body,
                 bool is_nvidia, bool has_panel_units) {
  const int passes = limits.has_float64 ? gram_passes(p) : 1;
  const index_t all = work_columns(p) | p.q_cols() | (p.n > p.k() ? p.k() : 0);
  Params params = product_params(computes_in(p), body, aligned_entries(all),
                                 static_cast<int>(widths.panel), is_nvidia);
  params["PASSES"] = passes;
  if (passes == 1 && limits.sums_in_pairs()) params["WIDE_PAIRS"] = 1;
  params["PANEL"] = static_cast<int>(widths.panel);
  params["BLOCK"] = static_cast<int>(widths.block);
  const bool is_narrow = widths.panel == tuning::large_narrow_panel;
  params["STRIP"] = is_narrow ? tuning::large_narrow_strip : tuning::large_strip;
  params["PANEL_STRIP"] = params["STRIP"];
  params["SHORT_ROWS"] = tuning::large_short_rows;
  params["REFUSED_ROWS"] = passes == 2 ? 0 : refused_rows(p.m);
  params["PANEL_UNITS"] = has_panel_units ? 1 : 0;
  return params;
}

/// Bytes of local memory per group: the largest of the products, the products with T and the
/// factorization of a panel.
std::size_t local_bytes_with(const Problem& p, const Params& params) {
  const std::size_t real = size_of(computes_in(p)), of_double = sizeof(double);
  const auto entries = [&](const char* name) { return static_cast<std::size_t>(params.at(name)); };
  const std::size_t panel = entries("PANEL");
  const std::size_t terms =  // SQUARE_TERMS
      panel * real <= 256         ? panel
      : params.at("BLOCK") <= 128 ? panel / 2
                                  : panel / 4;
  const std::size_t t_square = real * terms * (panel + 4);
  const std::size_t apply_t = real * entries("BLOCK") * entries("STRIP") + t_square;
  const std::size_t apply_panel_t = real * panel * entries("PANEL_STRIP") + t_square;
  const std::size_t factor_panel =
      real * (2 * group_size + panel * panel + panel + group_size) + of_double * 8 * panel;
  const std::size_t refused_words = entries("REFUSED_ROWS") / 128;
  const std::size_t shown = 64 * 4 * (refused_words | 1);
  const std::size_t factor_refused =
      refused_words == 0 ? 0 : real * (panel * panel + 36 * panel + 64 + shown);
  const std::size_t form_v = of_double * panel * (panel + 1 + 8);
  const std::size_t block_room = 16 * 18;
  const std::size_t units =
      params.at("PANEL_UNITS") == 1 ? real * panel * (panel + 8) + of_double * 10 * block_room : 0;
  const std::size_t gram = of_double * std::max<std::size_t>(32 * panel, group_size);
  return std::max({product_local_bytes(computes_in(p), params), apply_t, apply_panel_t,
                   factor_panel, factor_refused, form_v, units, gram});
}

/// Where local memory is short: narrow panels in short blocks, and products with one stage in local
/// memory.
Params lean_params(const Problem& p, const Limits& limits) {
  const bool is_half = p.arithmetic == Arithmetic::mixed && !is_double(p);
  Params params = params_of(p, limits, lean_widths(p),
                            is_half ? ProductBody::stored_halves : ProductBody::fma, false, false);
  params["BUFFERS"] = 1;
  return params;
}

Params tune(const Problem& p, const Limits& limits) {
  const Widths widths{panel_width(p), block_width(p)};
  const ProductBody body = product_body(p, limits);
  const bool has_units = body == ProductBody::half || body == ProductBody::three_halves;
  Params params = params_of(p, limits, widths, body, limits.has_nvidia_mma,
                            has_units && limits.float64_products);
  return local_bytes_with(p, params) <= limits.local_bytes ? params : lean_params(p, limits);
}

/// Panels column by column.
Params tune_reflectors(const Problem& p, const Limits& limits) {
  Params params = tune(p, limits);
  params["BY_COLUMNS"] = 1;
  return params;
}

std::size_t local_bytes(const Problem& p, const Limits& limits) {
  return local_bytes_with(p, tune(p, limits));
}

Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits, p.type);
  if (!objection.empty()) return {false, objection};
  const std::string needs = group_objection(group_size, local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  const bool in_pairs = limits.sums_in_pairs() && p.type == ElementType::float32;
  return {true, in_pairs ? "takes every shape, sums in pairs of floats" : "takes every shape"};
}

void enqueue(const FactorJob& job, Launcher& launch) { Run(job, launch).run(); }

}  // namespace

GpuVariant large_variant() {
  return {.plan = {.name = "opencl/large",
                   .summary = "any shape; blocks of panels by Gram matrices, compact WY",
                   .fits = fits,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<large_variant>,
                   .arithmetic = arithmetic,
                   .tuned_arithmetic = tuned_arithmetic,
                   .reflectors = tune_reflectors},
          .file = "gpu/reflectors/large/large.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .local_bytes = local_bytes,
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
