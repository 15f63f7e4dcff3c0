// SPDX-License-Identifier: Apache-2.0
// gram_twice.cpp: float64 by Gram matrices in two passes (CholeskyQR2), any number of columns, with
// a guard; what it stops goes to Householder reflectors. Device half: gram_twice.cl.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/report/ratios.hpp"
#include "gpu/check/device_check.hpp"
#include "gpu/gram/twice/gram_twice.hpp"
#include "gpu/gram/twice/passes.hpp"
#include "gpu/gram/twice/tuning.hpp"
#include "gpu/model/host_sample.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/reflectors/after_gram.hpp"

namespace qrtool {
namespace {

constexpr std::array<std::string_view, 4> heavy_kernels{"judge_first_pass", "divide_rows",
                                                        "factor_squares", "divide_panel"};

ElementType computes_in(const Problem&) { return ElementType::float64; }
std::string arithmetic(const Problem&) { return "float64"; }

Fit fits(const Problem& p, const Limits& limits) {
  if (p.type != ElementType::float64) return {false, "takes float64 only"};
  for (const std::string& objection : {gram_objection(p, limits), general_objection(p, limits)}) {
    if (!objection.empty()) return {false, objection};
  }
  if (p.n > tuning::gram_twice_max_columns) {
    return {false, "takes at most " + std::to_string(tuning::gram_twice_max_columns) + " columns"};
  }
  const std::string needs = group_objection(twice_group_size, twice_local_bytes(p), limits);
  if (!needs.empty()) return {false, needs};
  const Fit fallback = reflectors_after_gram(p).plan.fits(p, limits);
  if (!fallback.ok) return fallback;
  return {true, "products in float64, at full speed here"};
}

std::vector<std::size_t> workspace(const Problem& p) {
  return flagged_workspace(reflectors_after_gram(p), p);
}

/// The largest ||D^-1 A'A D^-1 - I||_F^2 with which Q needs one pass
/// (gpu/gram/steps/departure.clh), for sums of `terms` products. 0: not even a Gaussian matrix of
/// this shape is expected to be as close.
double most_departure_in_one_pass(const Problem& p, index_t terms) {
  const auto growth = [](index_t steps) {
    return std::max(8.0, tuning::gram_guard_per_root * std::sqrt(static_cast<double>(steps)));
  };
  const double bar = standard_bars(p.m, p.n, double_precision, {}).orthogonality / 0x1p-53;
  const double most = tuning::gram_twice_one_pass_share * bar, h = growth(terms + p.n);
  const double root = std::sqrt(static_cast<double>(p.n)), rows = 2 * growth(p.n) * root;
  const double d = (most - (h + 32) * root - rows) / (most + h + rows);
  const double expected = root * root / std::sqrt(static_cast<double>(p.m));
  return d > expected ? d * d : 0;
}

/// Whether Q of the first pass fits the result Q or a buffer of `again`; else it is in the slot.
bool has_place_of_first_q(const Problem& p) {
  return p.wants_q() || borrowed_buffer(reflectors_after_gram(p), p) > 0;
}

/// Whether the guard of R in one pass measures R^-1: where Gaussian matrices pass, and a group has
/// a row of R^-1. To 128 columns judge_first_pass does.
bool measures_inverse(const Problem& p) {
  constexpr index_t most_columns = 16 * 4 * 8;  // of WARPS OWN_OF_ROW blocks
  const auto rows = static_cast<double>(p.m), least = tuning::gram_twice_one_pass_ratio;
  return !p.wants_q() && p.n > 128 && p.n <= most_columns &&
         rows >= least * static_cast<double>(p.n);
}

/// The layout of a slot, and the guards of one pass.
TwiceShape slot_shape(const Problem& p) {
  TwiceShape twice = twice_shape(p, !has_place_of_first_q(p));
  if (measures_inverse(p)) twice.inverse_squares = take_place(twice.slot, ceil_divide(p.n, 16));
  const index_t terms = twice.slab_rows + twice.slabs;
  if (p.wants_q()) {
    twice.most_departure = most_departure_in_one_pass(p, terms);
  } else {
    twice.most_in_one = most_in_one_pass(p, terms);
  }
  return twice;
}

Slots slots(const Problem& p) {
  const std::size_t bytes = static_cast<std::size_t>(slot_shape(p).slot) * sizeof(double);
  const std::size_t first_q = has_place_of_first_q(p) ? 0 : p.input_bytes();
  const auto most = static_cast<index_t>(tuning::gram_twice_bytes / (bytes - first_q));
  return {bytes, std::max<index_t>(1, most)};
}

/// Factors matrices first .. first + count - 1, each in a slot of its own.
class Wave {
 public:
  Wave(const FactorJob& job, Launcher& launch, index_t first, index_t count)
      : job_(job),
        launch_(launch),
        passes_(job.problem, job.params, job.slots, launch, count),
        twice_(slot_shape(job.problem)),
        first_(first),
        count_(count) {
    if (job.params.contains(unguarded)) {
      for (double* most : {&twice_.most_in_one, &twice_.most_departure}) {
        if (*most > 0) *most = std::numeric_limits<double>::infinity();
      }
    }
  }

  void run() {
    const Problem& p = job_.problem;
    const Rows a = rows_of_batch(job_.a, p.m), q = first_q(), r = rows_of_batch(job_.r, p.n);
    passes_.sum(twice_, a);
    passes_.factor(twice_);
    if (twice_.inverse_squares > 0) step("measure_first_inverse", ceil_divide(p.n, 16));
    if (twice_.most_in_one > 0 || twice_.most_departure > 0) step("judge_first_pass", 1);
    passes_.divide(twice_, a, q);
    passes_.form_r(twice_, r);
    twice_.pass = 1;
    passes_.sum(twice_, q);
    step("begin_series", twice_.tiles);
    passes_.factor(twice_);
    if (p.wants_q()) passes_.divide(twice_, q, q);
    passes_.form_r(twice_, r);
    launch_("finish_twice", count_, passes_.group_size(), job_.q, job_.r, job_.magnitudes,
            job_.work.front(), job_.slots, passes_.shape(), twice_, static_cast<int>(first_));
  }

 private:
  /// A step with `groups` groups for each matrix.
  void step(const char* kernel, index_t groups) const {
    launch_(kernel, count_ * groups, passes_.group_size(), job_.slots, passes_.shape(), twice_);
  }
  Rows rows_of_batch(const Buffer& buffer, index_t rows) const {
    const index_t entries = rows * job_.problem.n;
    return {buffer, {first_ * entries, entries}};
  }
  Rows first_q() const {
    const Problem& p = job_.problem;
    if (p.wants_q()) return rows_of_batch(job_.q, p.m);
    const std::size_t borrowed = borrowed_buffer(reflectors_after_gram(p), p);
    if (borrowed > 0) return rows_of_batch(job_.work[borrowed], p.m);
    return {job_.slots, {twice_.rows, twice_.slot}};
  }

  const FactorJob& job_;
  Launcher& launch_;
  TwicePasses passes_;
  TwiceShape twice_;
  index_t first_, count_;
};

/// In waves of as many matrices as the buffer has slots.
void enqueue(const FactorJob& job, Launcher& launch) {
  const std::size_t bytes = job.slots.bytes();
  const auto most = static_cast<index_t>(bytes / slots(job.problem).bytes);
  for (index_t first = 0; first < job.count; first += most) {
    Wave(job, launch, first, std::min(most, job.count - first)).run();
  }
}

}  // namespace

GpuVariant gram_twice_variant() {
  return {.plan = {.name = "opencl/gram_twice",
                   .summary = "float64, by Gram matrices in two passes; guarded",
                   .fits = fits,
                   .tune = twice_params,
                   .host_workspace_bytes = host_check_bytes,
                   .device_workspace_bytes = device_bytes_of<gram_twice_variant>,
                   .arithmetic = arithmetic},
          .file = "gpu/gram/twice/gram_twice.cl",
          .workspace = workspace,
          .enqueue = enqueue,
          .computes_in = computes_in,
          .slots = slots,
          .again = reflectors_after_gram,
          .routes = flagged_routes,
          .local_bytes = [](const Problem& p, const Limits&) { return twice_local_bytes(p); },
          .heavy_kernels = heavy_kernels};
}

}  // namespace qrtool
