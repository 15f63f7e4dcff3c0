// SPDX-License-Identifier: Apache-2.0
// cpu_variants.cpp: the variants of the CPU in order of preference: what fits them, when they pay,
// and the memory that they take.
#include "core/cpu/cpu_variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/cpu/batched/batched_qr.hpp"
#include "core/cpu/blocked/blocked_qr.hpp"
#include "core/cpu/check/checker.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/cpu/tall/tall_qr.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "core/measure/error_meter.hpp"

namespace qrtool {
namespace {

/// Beyond this a pack outgrows the caches by far.
constexpr index_t most_batched_columns = 128;
/// Beyond this the plain sums of the packs may err by more than the bar.
constexpr index_t most_batched_rows = 1024;

/// Rows per column beyond which the plain sums of cpu/blocked may err by more than the bar.
constexpr index_t most_blocked_rows = 32;
/// Wider trees lose to cpu/blocked, but not to cpu/eigen.
constexpr index_t most_tall_columns = 128;

Params no_params(const Problem&, const Limits&) { return {}; }

std::size_t no_device_bytes(const Problem&) { return 0; }

std::string arithmetic(const Problem& p) { return computes_in_float64(p) ? "float64" : "float32"; }

// cpu/batched

Fit batched_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  if (p.k() > most_batched_columns) {
    return {false, fmt::format("more than {} columns", most_batched_columns)};
  }
  if (p.m > most_batched_rows) return {false, fmt::format("more than {} rows", most_batched_rows)};
  return {true, fmt::format("{} matrices at a time", batched_qr_lanes(p))};
}

// The crossings below were measured on one core with AVX-512, float32 and float64, Q and R or R
// alone, 8x8 to 1024x32 and 256x128, 2026-11-21.

/// Entries up to which a full pack beats as many matrices one by one, unless they are narrow:
/// by 1.15 at 128x64, 1.2 at 96x96 and 1.25 at 256x48 on an idle machine. At 256x64, 128x128 and
/// 64x256 one thread gains 1.0 to 1.45, and two threads are a draw; 512x64 is one.
constexpr index_t most_batched_entries = 256 * 64, narrow_columns = 32;

/// A pack costs the same however few of its lanes hold a matrix: from 32 columns on a matrix in a
/// full pack takes more than half of the time of cpu/blocked. Small ones always go into packs, so
/// that their bits do not depend on how many there are: a pack of 64x64 takes 0.1 ms. To 16 columns
/// cpu/eigen takes 0.6 to 1 of a pack's time at 64 rows, 0.35 to 0.55 at 256 and 0.25 to 0.5 at
/// 1024, whatever the columns and the type (AVX-512, 2026-11-22).
index_t least_batched_matrices(const Problem& p) {
  if (p.k() <= 16 && p.m >= 64) return p.m < 256 ? 2 : p.m < 1024 ? 3 : 4;
  return p.m * p.n <= 64 * 64 ? 1 : batched_qr_lanes(p) * 5 / 8 + 1;
}

Fit batched_pays(const Problem& p, const Limits&) {
  if (p.k() > narrow_columns && p.m * p.n > most_batched_entries)
    return {false,
            fmt::format("pays to {} entries or {} columns", most_batched_entries, narrow_columns)};
  const index_t least = least_batched_matrices(p);
  if (p.count >= least) {
    return {true,
            fmt::format("{} matrices at a time, pays from {} on", batched_qr_lanes(p), least)};
  }
  return {false, fmt::format("pays from {} matrices of this shape on", least)};
}

std::size_t batched_workspace_bytes(const Problem& p) {
  return batched_qr_workspace_bytes(p) + Checker<double>::workspace_bytes(p);
}

// cpu/tall

Fit tall_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  if (p.mode != Mode::reduced && p.mode != Mode::r) return {false, "mode reduced or r only"};
  const TallShape shape(p.m, p.n);
  if (p.m <= shape.block_rows())
    return {false, fmt::format("at most one block of {} rows", shape.block_rows())};
  return {true, fmt::format("blocks of {} rows, all threads on one matrix", shape.block_rows())};
}

/// The rows from which a tree is faster than what comes after it, on one thread with AVX-512,
/// 2026-11-22 (NOTES.md, "Which variant"). Of several matrices each thread may have one of its own
/// in the other variants, so that a tree must have leaves for more than one thread.
index_t least_tall_rows(const Problem& p) {
  constexpr index_t least_leaves = 2, least_rows = 4000, most_narrow = 32, most_fast = 64;
  const TallShape shape(p.m, p.n);
  const index_t leaves = least_leaves * shape.leaf_rows();
  if (p.count > 1) return leaves;
  if (p.mode != Mode::r) return p.n <= most_narrow ? std::min(leaves, least_rows) : leaves;
  // R alone of float32 is mostly A'A: 1.6 to 10 times as fast.
  if (p.type == ElementType::float32 && p.n <= most_fast) return shape.block_rows() + 1;
  return std::min(leaves, std::max(least_rows, most_blocked_rows * p.n + 1));
}

Fit tall_pays(const Problem& p, const Limits&) {
  if (p.n > most_tall_columns && p.m <= most_blocked_rows * p.n) {
    return {false, fmt::format("pays to {} columns, or from {} times as many rows on",
                               most_tall_columns, most_blocked_rows)};
  }
  const TallShape shape(p.m, p.n);
  const index_t least = least_tall_rows(p);
  if (p.m < least) return {false, fmt::format("pays from {} rows on", least)};
  return {true, fmt::format("blocks of {} rows, all threads on one matrix; pays from {} rows on",
                            shape.block_rows(), least)};
}

template <class F>
std::size_t by_type(const Problem& p, F f) {
  return p.type == ElementType::float32 ? f(float()) : f(double());
}

std::size_t tall_workspace_bytes(const Problem& p) {
  return ErrorMeter::workspace_bytes(p.m, p.n, p.q_cols(), p.r_rows()) + by_type(p, [&](auto zero) {
           return CpuLeaves<decltype(zero)>::workspace_bytes(TallShape(p.m, p.n));
         });
}

std::size_t tall_shared_bytes(const Problem& p) {
  const std::size_t estimates =
      p.check == Check::probe ? Checker<double>::workspace_bytes(p, machine_cores()) : 0;
  return estimates + ErrorMeter::workspace_bytes(p.m, p.n, p.q_cols(), p.r_rows()) +
         by_type(p, [&](auto zero) { return TallQr<decltype(zero)>::workspace_bytes(p, 0); });
}

std::size_t tall_row_state_bytes(const Problem& p) {
  return by_type(p,
                 [&](auto zero) { return TallTree<decltype(zero)>::bytes(TallShape(p.m, p.n)); });
}

// cpu/blocked

Fit blocked_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  if (p.m > most_blocked_rows * p.k())
    return {false, fmt::format("more than {} times as many rows as columns", most_blocked_rows)};
  return {true, "strips of 32 columns"};
}

/// Strips of 32 columns are mostly empty where there are few: 64x8 and 1000x16 break even with
/// cpu/eigen.
Fit blocked_pays(const Problem& p, const Limits&) {
  if (p.k() > 16 || p.m <= 8 * p.k()) return {true, "strips of 32 columns"};
  return {false, "pays from 17 columns on, or to 8 times as many rows as columns"};
}

std::string blocked_arithmetic(const Problem& p) {
  return blocked_multiplies_parts(p) ? "float32, products of bfloat16 parts" : arithmetic(p);
}

std::size_t blocked_workspace_bytes(const Problem& p) {
  return blocked_qr_workspace_bytes(p) + Checker<double>::workspace_bytes(p, machine_cores());
}

// cpu/eigen

Fit eigen_fits(const Problem&, const Limits&) { return {true, "takes every shape"}; }

std::size_t eigen_workspace_bytes(const Problem& p) {
  return eigen_qr_workspace_bytes(p) + Checker<double>::workspace_bytes(p);
}

constexpr std::array variants{
    CpuVariant{.plan = {.name = "cpu/batched",
                        .summary = "to 128 columns, many matrices; one matrix per SIMD lane",
                        .fits = batched_fits,
                        .tune = no_params,
                        .host_workspace_bytes = batched_workspace_bytes,
                        .device_workspace_bytes = no_device_bytes,
                        .arithmetic = arithmetic,
                        .pays = batched_pays},
               .make = {make_batched<float>, make_batched<double>}},
    CpuVariant{
        .plan = {.name = "cpu/tall",
                 .summary =
                     "many more rows than columns; a tree over row blocks, threads share a matrix",
                 .fits = tall_fits,
                 .tune = no_params,
                 .host_workspace_bytes = tall_workspace_bytes,
                 .device_workspace_bytes = no_device_bytes,
                 .arithmetic = arithmetic,
                 .pays = tall_pays,
                 .shared_workspace_bytes = tall_shared_bytes,
                 .row_state_bytes = tall_row_state_bytes},
        .make = {make_tall<float>, make_tall<double>}},
    CpuVariant{
        .plan = {.name = "cpu/blocked",
                 .summary = "larger; one matrix in strips of columns, which threads can share",
                 .fits = blocked_fits,
                 .tune = no_params,
                 .host_workspace_bytes = blocked_workspace_bytes,
                 .device_workspace_bytes = no_device_bytes,
                 .arithmetic = blocked_arithmetic,
                 .pays = blocked_pays,
                 .shares_matrix = true,
                 .reflectors = no_params},
        .make = {make_blocked<float>, make_blocked<double>}},
    CpuVariant{.plan = {.name = "cpu/eigen",
                        .summary = "any shape; Householder by Eigen, one matrix per thread",
                        .fits = eigen_fits,
                        .tune = no_params,
                        .host_workspace_bytes = eigen_workspace_bytes,
                        .device_workspace_bytes = no_device_bytes,
                        .arithmetic = arithmetic,
                        .reflectors = no_params},
               .make = {make_eigen<float>, make_eigen<double>}},
};

/// The same as the plan sees them, in the same order.
constexpr auto plans = [] {
  std::array<Variant, variants.size()> list{};
  for (std::size_t i = 0; i < list.size(); ++i) list[i] = variants[i].plan;
  return list;
}();

}  // namespace

std::span<const Variant> cpu_variants() { return plans; }

const CpuVariant& cpu_variant(const Variant& variant) {
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (&plans[i] == &variant) return variants[i];
  }
  throw InternalError(fmt::format("{} is no variant of the CPU backend", variant.name));
}

}  // namespace qrtool
