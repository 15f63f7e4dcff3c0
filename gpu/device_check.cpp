// SPDX-License-Identifier: Apache-2.0
// device_check.cpp: launch order and workspaces of kernels/check.cl.
#include "gpu/device_check.hpp"

#include "gpu/tuning.hpp"

namespace qrtool {
namespace {

constexpr int group_size = 256;

struct Layout {
  int micro;  // a tile is 16 micro x 16 micro
  index_t residual_tiles, gram_tiles;
  index_t q_cols, gram_size, slabs, slab_rows;
  index_t r_slabs;
};

/// What measure_r leaves of a slab of R: four double.
constexpr index_t summary_numbers = 4;

Layout layout_of(const Problem& p) {
  Layout layout{};
  layout.q_cols = p.mode == Mode::raw ? p.k() : p.q_cols();
  layout.gram_size = layout.q_cols > 0 ? layout.q_cols : p.n;
  const index_t widest = std::max(p.n, layout.gram_size);
  layout.micro = widest <= 16 ? 1 : widest <= 32 ? 2 : 4;
  const index_t tile = 16 * layout.micro;
  layout.residual_tiles = ceil_divide(p.m, tile) * ceil_divide(p.n, tile);
  const index_t across = ceil_divide(layout.gram_size, tile);
  layout.gram_tiles = across * (across + 1) / 2;
  layout.slab_rows = layout.gram_size <= tuning::gram_slab_columns ? tuning::gram_slab_rows : p.m;
  layout.slabs = ceil_divide(p.m, layout.slab_rows);
  layout.r_slabs = std::max<index_t>(
      1, ceil_divide(p.mode == Mode::raw ? p.k() : p.r_rows(), tuning::r_slab_rows));
  return layout;
}

CheckShape check_shape(const Problem& p, const Layout& layout, index_t count) {
  CheckShape shape{};
  shape.count = static_cast<int>(count);
  shape.m = static_cast<int>(p.m);
  shape.n = static_cast<int>(p.n);
  shape.q_cols = static_cast<int>(layout.q_cols);
  shape.r_rows = static_cast<int>(p.r_rows());
  shape.k = static_cast<int>(p.mode == Mode::raw ? p.k() : p.r_rows());
  shape.packed_r = p.mode == Mode::raw;
  shape.gram_size = static_cast<int>(layout.gram_size);
  shape.gram_slabs = static_cast<int>(layout.slabs);
  shape.slab_rows = static_cast<int>(layout.slab_rows);
  shape.r_slabs = static_cast<int>(layout.r_slabs);
  shape.r_slab_rows = tuning::r_slab_rows;
  return shape;
}

}  // namespace

std::vector<std::size_t> check_workspace(const Problem& p) {
  const Layout layout = layout_of(p);
  const index_t gram = layout.slabs > 1 ? layout.slabs * layout.gram_size * layout.gram_size : 0;
  const index_t formed_q = p.mode == Mode::raw ? p.m * p.k() : 0;
  std::vector<std::size_t> bytes;
  for (const index_t numbers : {2 * layout.residual_tiles, layout.gram_tiles, gram, formed_q,
                                summary_numbers * layout.r_slabs}) {
    bytes.push_back(sizeof(double) * static_cast<std::size_t>(numbers));
  }
  return bytes;
}

Defines check_defines(const Problem& p) {
  const std::string stored = p.type == ElementType::float32 ? "float" : "double";
  return {{"STORED", stored},
          {"Q_REAL", p.mode == Mode::raw ? "double" : stored},
          {"MICRO", std::to_string(layout_of(p).micro)}};
}

void enqueue_check(const FactorJob& job, const std::vector<cl::Buffer>& work,
                   const cl::Buffer& errors, Launcher& launch) {
  const Problem& p = job.problem;
  const Layout layout = layout_of(p);
  const CheckShape shape = check_shape(p, layout, job.count);
  const cl::Buffer &residual = work[0], &gram = work[1], &slabs = work[2], &formed_q = work[3];
  const bool is_raw = p.mode == Mode::raw;
  const cl::Buffer& r = is_raw ? job.v : job.r;
  const cl::Buffer& q = is_raw ? formed_q : job.q;

  if (is_raw) {
    launch("form_q_from_reflectors", job.count * ceil_divide(layout.q_cols, group_size), group_size,
           job.v, job.tau, formed_q, shape);
  }
  launch("measure_residual", job.count * layout.residual_tiles, group_size, job.a, q, r,
         job.magnitudes, residual, shape);
  launch("measure_gram", job.count * layout.gram_tiles * layout.slabs, group_size,
         layout.q_cols > 0 ? q : job.a, r, job.magnitudes, gram, slabs, shape);
  if (layout.slabs > 1) {
    launch("combine_gram", job.count * layout.gram_tiles, group_size, slabs, gram, shape);
  }
  launch("measure_r", job.count * layout.r_slabs, group_size, r, job.magnitudes, work[4], shape);
  launch("finish_errors", job.count, group_size, residual, gram, work[4], job.magnitudes, errors,
         shape);
}

void enqueue_vector_check(const FactorJob& job, const cl::Buffer& errors, Launcher& launch) {
  launch("measure", job.count, 1, job.a, job.q, job.r, job.magnitudes, errors,
         check_shape(job.problem, layout_of(job.problem), job.count));
}

}  // namespace qrtool
