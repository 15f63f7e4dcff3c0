// SPDX-License-Identifier: Apache-2.0
// complex.cpp: the host half of complex.cl: complex matrices by reflectors in float64, one
// work-group per matrix.
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "gpu/check/device_check.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/reflectors/complex/complex.hpp"
#include "gpu/reflectors/complex/tuning.hpp"

namespace qrtool {
namespace {

ElementType computes_in(const Problem&) { return ElementType::float64; }
std::string arithmetic(const Problem&) { return "complex128"; }

/// The columns of the matrix in place of which Q is formed.
index_t columns_of(const Problem& p) { return std::max<index_t>({p.n, p.q_cols(), 1}); }
index_t entries_of(const Problem& p) { return p.m * columns_of(p); }

std::uint64_t power_of_two(index_t least) {
  return std::bit_ceil(static_cast<std::uint64_t>(std::max<index_t>(least, 1)));
}

/// The entries of local memory that hold the matrix: a power of two, so that shapes share programs;
/// 0 where it is too large.
index_t local_entries(const Problem& p) {
  const auto needed = static_cast<index_t>(power_of_two(entries_of(p)));
  return needed <= tuning::complex_local_entries ? needed : 0;
}

int group_of(const Problem& p) {
  const index_t items = entries_of(p) / tuning::complex_entries_of_item;
  return static_cast<int>(std::clamp<std::uint64_t>(
      power_of_two(items), tuning::complex_least_group, tuning::complex_most_group));
}

/// Teams share the columns. A work-item has few rows, so that its sums are short.
int team_of(const Problem& p) {
  const auto group = static_cast<index_t>(group_of(p));
  const index_t by_columns = group / static_cast<index_t>(power_of_two(columns_of(p)));
  const index_t by_rows = ceil_divide(p.m, tuning::complex_rows_of_item);
  const std::uint64_t most = std::min(power_of_two(p.m), std::uint64_t{tuning::complex_most_team});
  return static_cast<int>(std::min(power_of_two(std::max(by_columns, by_rows)), most));
}

Params tune(const Problem& p, const Limits&) {
  return {{"GROUP", group_of(p)},
          {"TEAM", team_of(p)},
          {"COLUMN_PLACES", static_cast<int>(power_of_two(columns_of(p)))},
          {"LOCAL_ENTRIES", static_cast<int>(local_entries(p))}};
}

/// Bytes of local memory per group: the matrix, two sums for each work-item, a sign and a code for
/// each column, and the code of the matrix.
std::size_t local_bytes(const Problem& p, const Limits&) {
  const auto entries = static_cast<std::size_t>(local_entries(p) + 2 * group_of(p));
  return 2 * sizeof(double) * entries +
         (sizeof(double) + sizeof(int)) * power_of_two(columns_of(p)) + sizeof(int);
}

template <index_t most_columns, index_t most_entries>
Fit fits(const Problem& p, const Limits& limits) {
  const std::string objection = general_objection(p, limits);
  if (!objection.empty()) return {false, objection};
  if (columns_of(p) > most_columns || entries_of(p) > most_entries)
    return {false, fmt::format("takes at most {} columns of A and Q, and {} entries", most_columns,
                               most_entries)};
  const std::string needs = group_objection(group_of(p), local_bytes(p, limits), limits);
  if (!needs.empty()) return {false, needs};
  return {true, "complex matrices, one work-group for each"};
}

/// Bytes per matrix: the matrix where it is not in local memory, and tau.
std::vector<std::size_t> workspace(const Problem& p) {
  const auto entries = static_cast<std::size_t>(local_entries(p) > 0 ? 0 : entries_of(p));
  return {size_of(ElementType::complex128) * entries,
          size_of(ElementType::complex128) * static_cast<std::size_t>(p.k())};
}

void enqueue(const FactorJob& job, Launcher& launch) {
  const Problem& p = job.problem;
  const bool is_raw = p.mode == Mode::raw;
  launch("factor_complex", job.count, job.params.at("GROUP"), job.a, is_raw ? job.tau : job.q,
         is_raw ? job.v : job.r, job.magnitudes, job.work[0], job.work[1],
         factor_shape(p, job.count));
}

}  // namespace

GpuVariant complex_variant() {
  return {.plan = {.name = "opencl/complex",
                   .summary = "complex matrices to 512 columns; reflectors, one group for each",
                   .fits = fits<tuning::complex_most_columns, tuning::complex_most_entries>,
                   .tune = tune,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<complex_variant>,
                   .arithmetic = arithmetic,
                   .numbers = Numbers::complex},
          .file = "gpu/reflectors/complex/complex.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .takes_flags = true,
          .local_bytes = local_bytes};
}

GpuVariant refused_complex_variant() {
  GpuVariant variant = complex_variant();
  variant.plan.fits =
      fits<tuning::complex_most_refused_columns, tuning::complex_most_refused_entries>;
  return variant;
}

}  // namespace qrtool
