// SPDX-License-Identifier: Apache-2.0
// cpu_variants.cpp: the variants of the CPU in order of preference: what fits them, when they pay,
// and the memory that they take.
#include "core/cpu/cpu_variants.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/cpu/batched/batched_qr.hpp"
#include "core/cpu/batched/kernel_call.hpp"
#include "core/cpu/blocked/blocked_qr.hpp"
#include "core/cpu/check/checker.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/cpu/tall/tall_qr.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/measure/error_meter.hpp"

namespace qrtool {
namespace {

/// Beyond this a pack outgrows the caches by far.
constexpr index_t most_batched_columns = 128;
/// Beyond this the plain sums of the packs may err by more than the bar.
constexpr index_t most_batched_rows = 1024;

/// Rows per column beyond which the plain sums of cpu/blocked may err by more than the bar.
constexpr index_t most_blocked_rows = 32;
/// The most columns of a tree. Wider ones lose to cpu/blocked, but not to cpu/eigen.
constexpr index_t most_tall_columns = 128;
/// The least rows, and the least ratio of rows to columns, of a tree of complex matrices.
constexpr index_t least_complex_tall_rows = 1024, least_complex_tall_ratio = 16;

Params no_params(const Problem&, const Limits&) { return {}; }

std::size_t no_device_bytes(const Problem&) { return 0; }

std::string arithmetic(const Problem& p) {
  if (is_complex(p.type)) return "complex128";
  return computes_in_float64(p) ? "float64" : "float32";
}

// cpu/batched

Fit batched_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  if (p.k() > most_batched_columns) {
    return {false, fmt::format("more than {} columns", most_batched_columns)};
  }
  if (p.m > most_batched_rows) return {false, fmt::format("more than {} rows", most_batched_rows)};
  return {true, fmt::format("{} matrices at a time", batched_qr_lanes(p))};
}

std::size_t batched_workspace_bytes(const Problem& p) {
  return batched_qr_workspace_bytes(p) + Checker<double>::workspace_bytes(p);
}

/// Returns the arithmetic of cpu/complex and of cpu/tall.
std::string arithmetic_of_type(const Problem& p) {
  const bool is_single = p.type == ElementType::complex64 && !complex_kernels_widen(p.m);
  return is_single ? "complex64" : arithmetic(p);
}

// cpu/tall

Fit tall_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  if (p.mode != Mode::reduced && p.mode != Mode::r) return {false, "mode reduced or r only"};
  const TallShape shape(p.m, p.n);
  if (p.m <= shape.block_rows())
    return {false, fmt::format("at most one block of {} rows", shape.block_rows())};
  // The table of times has no complex matrices.
  const index_t least = std::max(least_complex_tall_rows, least_complex_tall_ratio * p.n);
  if (is_complex(p.type) && p.m < least)
    return {false, fmt::format("complex and fewer than {} rows", least)};
  return {true, fmt::format("blocks of {} rows, all threads on one matrix", shape.block_rows())};
}

std::size_t meter_bytes(const Problem& p) {
  return ErrorMeter::workspace_bytes(p.m, p.n, p.q_cols(), p.r_rows(), 1, is_complex(p.type));
}

std::size_t tall_workspace_bytes(const Problem& p) {
  return meter_bytes(p) + with_type(p.type, [&](auto zero) {
           return CpuLeaves<decltype(zero)>::workspace_bytes(TallShape(p.m, p.n), p.wants_q());
         });
}

std::size_t tall_shared_bytes(const Problem& p) {
  const std::size_t estimates =
      p.check == Check::probe ? Checker<double>::workspace_bytes(p, machine_cores()) : 0;
  return estimates + meter_bytes(p) + with_type(p.type, [&](auto zero) {
           return TallQr<decltype(zero)>::workspace_bytes(p, 0);
         });
}

std::size_t tall_row_state_bytes(const Problem& p) {
  return with_type(p.type,
                   [&](auto zero) { return TallTree<decltype(zero)>::bytes(TallShape(p.m, p.n)); });
}

// cpu/blocked

Fit blocked_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  if (p.m > most_blocked_rows * p.k())
    return {false, fmt::format("more than {} times as many rows as columns", most_blocked_rows)};
  return {true, "strips of 32 columns"};
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

/// Returns the times of the plan, which are the same on every machine.
const CostTable& costs_of(const Limits&) { return cpu_costs(); }

// cpu/complex

Fit complex_fits(const Problem& p, const Limits&) {
  if (p.is_empty()) return {false, "nothing to factor"};
  return {true,
          complex_takes_packs(p.m, p.n) ? "one matrix per SIMD lane" : "strips of 16 columns"};
}

std::size_t complex_workspace_bytes(const Problem& p) {
  const std::size_t of_qr =
      complex_takes_packs(p.m, p.n) ? batched_qr_workspace_bytes(p) : blocked_qr_workspace_bytes(p);
  return of_qr + Checker<double>::workspace_bytes(p);
}

constexpr std::array variants{
    CpuVariant{.plan = {.name = "cpu/batched",
                        .summary = "to 128 columns, many matrices; one matrix per SIMD lane",
                        .fits = batched_fits,
                        .tune = no_params,
                        .host_workspace_bytes = batched_workspace_bytes,
                        .device_workspace_bytes = no_device_bytes,
                        .arithmetic = arithmetic},
               .make = {make_batched<float>, make_batched<double>, nullptr, nullptr}},
    CpuVariant{
        .plan = {.name = "cpu/tall",
                 .summary =
                     "many more rows than columns; a tree over row blocks, threads share a matrix",
                 .fits = tall_fits,
                 .tune = no_params,
                 .host_workspace_bytes = tall_workspace_bytes,
                 .device_workspace_bytes = no_device_bytes,
                 .arithmetic = arithmetic_of_type,
                 .numbers = Numbers::both,
                 .shared_workspace_bytes = tall_shared_bytes,
                 .row_state_bytes = tall_row_state_bytes},
        .make = {make_tall<float>, make_tall<double>, make_tall<std::complex<float>>,
                 make_tall<std::complex<double>>}},
    CpuVariant{
        .plan = {.name = "cpu/blocked",
                 .summary = "larger; one matrix in strips of columns, which threads can share",
                 .fits = blocked_fits,
                 .tune = no_params,
                 .host_workspace_bytes = blocked_workspace_bytes,
                 .device_workspace_bytes = no_device_bytes,
                 .arithmetic = blocked_arithmetic,
                 .shares_matrix = true,
                 .reflectors = no_params},
        .make = {make_blocked<float>, make_blocked<double>, nullptr, nullptr}},
    CpuVariant{.plan = {.name = "cpu/complex",
                        .summary = "complex matrices; one per SIMD lane, or in strips of columns",
                        .fits = complex_fits,
                        .tune = no_params,
                        .host_workspace_bytes = complex_workspace_bytes,
                        .device_workspace_bytes = no_device_bytes,
                        .arithmetic = arithmetic_of_type,
                        .numbers = Numbers::complex},
               .make = {nullptr, nullptr, make_complex<std::complex<float>>,
                        make_complex<std::complex<double>>}},
    CpuVariant{.plan = {.name = "cpu/eigen",
                        .summary = "any shape; Householder by Eigen, one matrix per thread",
                        .fits = eigen_fits,
                        .tune = no_params,
                        .host_workspace_bytes = eigen_workspace_bytes,
                        .device_workspace_bytes = no_device_bytes,
                        .arithmetic = arithmetic,
                        .numbers = Numbers::both,
                        .complex_cost = 4,
                        .reflectors = no_params},
               .make = {make_eigen<float>, make_eigen<double>, make_eigen<std::complex<float>>,
                        make_eigen<std::complex<double>>}},
};

/// The variants as the plan sees them, in the same order.
constexpr auto plans = [] {
  std::array<Variant, variants.size()> list{};
  for (std::size_t i = 0; i < list.size(); ++i) {
    list[i] = variants[i].plan;
    list[i].costs = costs_of;
  }
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
