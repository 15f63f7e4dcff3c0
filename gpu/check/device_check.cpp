// SPDX-License-Identifier: Apache-2.0
// device_check.cpp: launch order and workspaces of check.cl and check_rows.cl. Complex matrices are
// measured as real ones with twice as many columns (check.cl).
#include "gpu/check/device_check.hpp"

#include <algorithm>
#include <numeric>

#include "gpu/check/tuning.hpp"

namespace qrtool {
namespace {

/// check.cl with the plain body or with matrix units, or check_rows.cl.
enum class Body { plain, units, rows };

/// Number of entries that a group of combine_gram sums.
constexpr index_t combined_entries = 16;
constexpr index_t formed_columns = 16;
/// Number of doubles that measure_r writes for a slab of R.
constexpr index_t summary_numbers = 4;

/// The work buffers. formed_q and formed_r hold the factors of a raw result.
enum WorkBuffer { residual, gram, slabs, r_parts, formed_q, formed_r, buffer_count };

struct Layout {
  Body body;
  int group_size;
  index_t n, q_cols, gram_size;  // real columns
  index_t r_rows;
  int micro;          // for the plain body: a tile is 16 micro x 16 micro
  int blocks, warps;  // for check_rows.cl
  index_t residual_parts, gram_tiles, gram_parts;
  index_t slabs, slab_rows, r_slabs, r_slab_rows;
};

bool is_raw(const Problem& p) { return p.mode == Mode::raw; }
/// Whether Q and R are in float64, or in pairs of floats. The check forms them so from V and tau.
bool has_wide_factors(const Problem& p) {
  return is_raw(p) || real_of(p.type) == ElementType::float64;
}
/// The real columns of Q.
index_t real_q_columns(const Problem& p) {
  return parts_in(p.type) * (is_raw(p) ? p.k() : p.q_cols());
}

Body body_of(const Problem& p, bool has_units) {
  const index_t widest = std::max(real_columns(p), real_q_columns(p));
  if (!has_units) return Body::plain;
  if (!has_wide_factors(p) && widest <= tuning::check_rows_columns) return Body::rows;
  return widest > tuning::check_units_columns ? Body::units : Body::plain;
}

index_t slab_rows(const Problem& p) {
  const index_t rows = ceil_divide(ceil_divide(p.m, tuning::check_slabs), 64) * 64;
  return std::max(tuning::check_slab_rows, rows);
}

void cut_into_tiles(const Problem& p, Layout& layout) {
  const bool has_units = layout.body == Body::units;
  const index_t widest = std::max(layout.n, layout.gram_size);
  const int least_micro = is_complex(p.type) ? 2 : 1;
  layout.micro = has_units || widest > 32 ? 4 : widest > 16 ? 2 : least_micro;
  layout.group_size = has_units && !has_wide_factors(p) ? 128 : 256;
  const index_t tile = 16 * layout.micro, across = ceil_divide(layout.gram_size, tile);
  layout.residual_parts = ceil_divide(p.m, tile) * ceil_divide(layout.n, tile);
  layout.gram_tiles = across * (across + 1) / 2;
  layout.slab_rows =
      layout.gram_size <= tuning::gram_slab_columns ? slab_rows(p) : std::max<index_t>(1, p.m);
  layout.r_slab_rows =
      std::max<index_t>(1, tuning::r_slab_entries / std::max<index_t>(1, layout.n));
}

void cut_into_slabs(const Problem& p, Layout& layout) {
  const index_t widest = std::max(layout.n, layout.gram_size);
  layout.blocks = static_cast<int>(ceil_divide(widest, 16));
  layout.warps = layout.blocks > 2 || p.m > 32 ? 4 : p.m > 16 ? 2 : 1;
  layout.group_size = 32 * layout.warps;
  layout.gram_tiles = 1;
  layout.slab_rows = slab_rows(p);
  layout.residual_parts = ceil_divide(p.m, layout.slab_rows);
  layout.r_slab_rows = std::max<index_t>(1, layout.r_rows);
}

/// has_units: the device has NVIDIA's float64 matrix units.
Layout layout_of(const Problem& p, bool has_units) {
  Layout layout{};
  layout.body = body_of(p, has_units);
  layout.n = real_columns(p);
  layout.q_cols = real_q_columns(p);
  layout.r_rows = is_raw(p) ? p.k() : p.r_rows();
  layout.gram_size = layout.q_cols > 0 ? layout.q_cols : layout.n;
  if (layout.body == Body::rows) {
    cut_into_slabs(p, layout);
  } else {
    cut_into_tiles(p, layout);
  }
  layout.slabs = ceil_divide(p.m, layout.slab_rows);
  // A complex Gram matrix has half as many numbers as the real one that folds into it.
  const index_t gram_numbers = layout.gram_size * layout.gram_size / parts_in(p.type);
  layout.gram_parts =
      layout.slabs > 1 ? ceil_divide(gram_numbers, combined_entries) : layout.gram_tiles;
  layout.r_slabs = std::max<index_t>(1, ceil_divide(layout.r_rows, layout.r_slab_rows));
  return layout;
}

CheckShape check_shape(const Problem& p, const Layout& layout, index_t count) {
  CheckShape shape{};
  shape.count = static_cast<int>(count);
  shape.m = static_cast<int>(p.m);
  shape.n = static_cast<int>(layout.n);
  shape.q_cols = static_cast<int>(layout.q_cols);
  shape.r_rows = static_cast<int>(layout.r_rows);
  shape.residual_parts = static_cast<int>(layout.residual_parts);
  shape.gram_size = static_cast<int>(layout.gram_size);
  shape.gram_tiles = static_cast<int>(layout.gram_tiles);
  shape.gram_parts = static_cast<int>(layout.gram_parts);
  shape.gram_slabs = static_cast<int>(layout.slabs);
  shape.slab_rows = static_cast<int>(layout.slab_rows);
  shape.r_slabs = static_cast<int>(layout.r_slabs);
  shape.r_slab_rows = static_cast<int>(layout.r_slab_rows);
  return shape;
}

/// Number of entries that are copied at a time: at most 16 bytes.
int vector_entries(const Problem& p) {
  const int most = has_wide_factors(p) ? 2 : 4;
  const index_t q = real_q_columns(p);
  return std::min({most, aligned_entries(real_columns(p)), q > 0 ? aligned_entries(q) : most});
}

std::vector<std::size_t> workspace_of(const Problem& p, const Layout& layout) {
  std::vector<std::size_t> bytes(buffer_count);
  const auto set = [&](WorkBuffer buffer, index_t numbers) {
    bytes[buffer] = sizeof(double) * static_cast<std::size_t>(numbers);
  };
  set(residual, 2 * layout.residual_parts);
  set(gram, layout.gram_parts);
  set(slabs, layout.slabs > 1 ? layout.slabs * layout.gram_size * layout.gram_size : 0);
  set(r_parts, summary_numbers * layout.r_slabs);
  set(formed_q, is_raw(p) ? p.m * layout.q_cols : 0);
  set(formed_r, is_raw(p) ? layout.r_rows * layout.n : 0);
  return bytes;
}

}  // namespace

std::vector<std::size_t> check_workspace(const Problem& p) {
  std::vector<std::size_t> most;
  for (const bool has_units : {false, true}) {
    const std::vector<std::size_t> bytes = workspace_of(p, layout_of(p, has_units));
    most.resize(bytes.size());
    for (std::size_t i = 0; i < bytes.size(); ++i) most[i] = std::max(most[i], bytes[i]);
  }
  return most;
}

std::size_t device_workspace_bytes(const GpuVariant& variant, const Problem& problem) {
  const std::vector<std::size_t> own = variant.workspace(problem);
  const std::vector<std::size_t> check = check_workspace(problem);
  const Slots slots = variant.slots != nullptr ? variant.slots(problem) : Slots{};
  const index_t count = std::max<index_t>(problem.count, 1);
  const std::size_t of_slots = slots.total_bytes(count) / static_cast<std::size_t>(count);
  const std::size_t of_check = std::accumulate(check.begin(), check.end(), std::size_t{0});
  const std::size_t shared = shared_work_buffer(variant, problem);
  const std::size_t of_both = shared == 0 ? 0 : std::min(of_slots, own[shared]);
  return std::accumulate(own.begin(), own.end(), of_slots) - of_both + of_check;
}

CheckProgram check_program(const Problem& p, const Limits& limits) {
  const Layout layout = layout_of(p, limits.float64_products);
  const std::string stored = real_of(p.type) == ElementType::float32 ? "float" : "double";
  const std::string vector = std::to_string(vector_entries(p));
  const std::string parts = std::to_string(parts_in(p.type));
  const bool in_pairs = limits.sums_in_pairs() && p.type == ElementType::float32;
  Defines defines{{"STORED", stored},
                  {"FACTOR", !has_wide_factors(p) ? stored
                             : in_pairs           ? "wide"
                                                  : "double"},
                  {"ELEMENT_PARTS", parts}};
  if (in_pairs) defines["WIDE_PAIRS"] = "1";
  switch (layout.body) {
    case Body::plain:
      defines["MICRO"] = std::to_string(layout.micro);
      break;
    case Body::units:
      defines.insert({{"MMA", "1"}, {"VECTOR", vector}});
      break;
    case Body::rows:
      return {"gpu/check/check_rows.cl",
              {{"MMA", "1"},
               {"VECTOR", vector},
               {"ELEMENT_PARTS", parts},
               {"BLOCKS", std::to_string(layout.blocks)},
               {"CHECK_WARPS", std::to_string(layout.warps)},
               {"HAS_Q", layout.q_cols > 0 ? "1" : "0"}}};
  }
  return {"gpu/check/check.cl", defines};
}

CheckProgram vector_check_program(const Problem& p) {
  return {"gpu/check/check_vector.cl",
          {{"STORED", p.type == ElementType::float32 ? "float" : "double"}}};
}

void enqueue_check(const FactorJob& job, const Limits& limits, const std::vector<Buffer>& work,
                   const Buffer& errors, Launcher& launch) {
  const Problem& p = job.problem;
  const Layout layout = layout_of(p, limits.float64_products);
  const CheckShape shape = check_shape(p, layout, job.count);
  const int group = layout.group_size;
  const Buffer& r = is_raw(p) ? work[formed_r] : job.r;
  const Buffer& q = is_raw(p) ? work[formed_q] : job.q;
  const index_t gram_groups = job.count * layout.gram_tiles * layout.slabs;

  if (is_raw(p)) {
    launch("form_q_from_reflectors", job.count * ceil_divide(p.n, formed_columns), group, job.v,
           job.tau, q, r, shape);
  }
  if (layout.body == Body::rows) {
    launch("measure_rows", gram_groups, group, job.a, q, r, job.magnitudes, work[residual],
           work[slabs], work[r_parts], errors, shape);
    if (layout.slabs == 1) return;
  } else {
    launch("measure_residual", job.count * layout.residual_parts, group, job.a, q, r,
           job.magnitudes, work[residual], shape);
    launch("measure_gram", gram_groups, group, layout.q_cols > 0 ? q : job.a, r, job.magnitudes,
           work[gram], work[slabs], shape);
    launch("measure_r", job.count * layout.r_slabs, group, r, job.magnitudes, work[r_parts], shape);
  }
  if (layout.slabs > 1) {
    launch("combine_gram", job.count * layout.gram_parts, group, work[slabs], work[gram], shape);
  }
  launch("finish_errors", job.count, group, work[residual], work[gram], work[r_parts],
         job.magnitudes, errors, shape);
}

void enqueue_vector_check(const FactorJob& job, const Buffer& errors, Launcher& launch) {
  launch("measure", job.count, 1, job.a, job.q, job.r, job.magnitudes, errors,
         check_shape(job.problem, layout_of(job.problem, false), job.count));
}

}  // namespace qrtool
