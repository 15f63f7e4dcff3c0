// SPDX-License-Identifier: Apache-2.0
// plan.cpp: choice of a variant, and of chunks that fit the memory.
#include "core/plan/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/error_probe.hpp"
#include "core/measure/gram_probe.hpp"
#include "core/plan/ranking_bytes.hpp"
#include "core/report/report.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Bytes of input and output that go through the pipeline together, at the most: large enough that
/// a chunk's fixed costs vanish, small enough that the stages overlap on files of a few hundred
/// MiB.
constexpr std::size_t chunk_target_bytes = std::size_t{64} << 20;
/// On the CPU chunks in flight share the last cache, so that a stage finds what the one before it
/// left: 20000 x 64 x 64 float32, read to written, 1.2 s in pieces of 64 MiB, 0.65 s of 4 MiB (two
/// cores, 36 MiB of cache, 2026-11-21). Yet every thread is to have some packs of matrices.
constexpr std::size_t cpu_chunk_target_bytes = std::size_t{6} << 20;
constexpr index_t cpu_chunk_unit = 16, least_cpu_chunk_units = 2;
/// Bytes of the rows of one matrix that go through the pipeline together, at the most.
constexpr std::size_t row_target_bytes = std::size_t{32} << 20;
/// Pieces of a matrix in host memory at once: while one is copied, others are read or written.
constexpr int most_pieces = 6;
/// A matrix with its factors that is no larger than so many pieces goes whole, with others.
constexpr std::size_t least_pieces = 4;

struct Choice {
  const Variant* variant;
  std::string reason;
};

Choice find_forced(const Problem& problem, std::span<const Variant> variants, const Limits& limits,
                   std::string_view name) {
  std::vector<std::string_view> names;
  for (const Variant& variant : variants) {
    names.push_back(variant.name);
    if (variant.name != name) continue;
    const Fit fit = variant.takes(problem, limits);
    if (fit.ok) return {&variant, "asked for"};
    throw UsageError(fmt::format("--variant {} does not take this problem: {}", name, fit.reason),
                     "leave --variant away to let the plan choose");
  }
  const std::string_view guess = nearest(name, names);
  throw UsageError(fmt::format("--variant: there is no '{}'{}", escape(name),
                               guess.empty() ? "" : fmt::format("; did you mean '{}'?", guess)),
                   fmt::format("variants: {}", fmt::join(names, ", ")));
}

/// Returns the estimate, without copies and check; empty if nothing is known.
std::string time_text(const Variant& variant, const Problem& problem, const Limits& limits) {
  const double seconds = variant.seconds(problem, limits);
  return std::isfinite(seconds) ? "about " + format_seconds(seconds) : std::string();
}

Choice choose_variant(const Problem& problem, std::span<const Variant> variants,
                      const Limits& limits, std::string_view forced) {
  if (!forced.empty()) return find_forced(problem, variants, limits, forced);
  const Variant* const least = least_costly(problem, variants, limits);
  std::vector<std::string> words;
  if (least != nullptr) words.push_back(least->takes(problem, limits).reason);
  for (const Variant& variant : variants) {
    if (!variant.is_for(problem.type)) continue;
    const Fit fit = variant.takes(problem, limits);
    const std::string text = fit.ok ? time_text(variant, problem, limits) : fit.reason;
    if (variant.only_when_forced || text.empty()) continue;
    words.insert(&variant == least ? words.begin() : words.end(),
                 &variant == least ? text : fmt::format("{}: {}", variant.name, text));
  }
  const std::string reason = fmt::format("{}", fmt::join(words, "; "));
  if (least == nullptr)
    throw DeviceError("no variant takes this problem: " + reason,
                      "--backend cpu takes every shape");
  return {least, reason};
}

std::string limit_text(const Limits& limits) {
  const std::string limit =
      fmt::format("the limit is {}", format_bytes(limits.host_bytes + limits.file_bytes));
  if (limits.file_bytes == 0) return limit;
  return fmt::format("{}, of which reading and writing files take {}", limit,
                     format_bytes(limits.file_bytes));
}

[[noreturn]] void refuse_for_memory(const Plan& plan, const Limits& limits) {
  const Problem& p = plan.problem;
  const std::size_t needed = plan.host_bytes;
  const std::size_t workspace = needed - p.input_bytes() - p.output_bytes();
  throw LimitError(
      fmt::format("one {}x{} matrix of {} needs {} of host memory ({} input, {} factors, {} "
                  "workspace); {}",
                  p.m, p.n, name_of(p.type), format_bytes(needed), format_bytes(p.input_bytes()),
                  format_bytes(p.output_bytes()), format_bytes(workspace), limit_text(limits)),
      (p.mode == Mode::complete ? "--mode reduced needs less; or " : "") +
          hint_of_memory(needed + limits.file_bytes));
}

/// Of `count` parts, those that go together: every rank is to have some.
index_t share(index_t count, const Limits& limits) {
  const index_t chunks = limits.ranks > 1 ? 2 * limits.ranks : 1;
  return (count + chunks - 1) / chunks;
}

/// Bytes that go through the pipeline together, at the most.
std::size_t chunk_target(std::size_t matrix_bytes, const Plan& plan, const Limits& limits) {
  if (limits.device_bytes > 0) return chunk_target_bytes;
  const auto least =
      static_cast<std::size_t>(least_cpu_chunk_units * cpu_chunk_unit * plan.threads);
  return std::clamp(matrix_bytes * least, cpu_chunk_target_bytes, chunk_target_bytes);
}

/// Chunks, buffers and threads that keep within limits.host_bytes. False, with what it would take
/// in plan.host_bytes, where one matrix does not fit.
bool fit_memory(Plan& plan, const Limits& limits) {
  const Problem& p = plan.problem;
  const bool is_shared = plan.variant->shared_workspace_bytes != nullptr;
  const std::size_t permutation = p.pivots ? static_cast<std::size_t>(p.n) * sizeof(double) : 0;
  const std::size_t matrix_bytes =
      p.input_bytes() + p.output_bytes() + permutation + sizeof(MatrixReport);
  const int sharing = is_shared || plan.variant->shares_matrix ? limits.threads : 1;
  const std::size_t ranking = ranked_worker_bytes(p, sharing);
  const std::size_t workspace = plan.variant->host_workspace_bytes(p) + (is_shared ? 0 : ranking);
  const std::size_t shared = is_shared ? plan.variant->shared_workspace_bytes(p) + ranking : 0;
  const auto count = std::max<index_t>(p.count, 1);

  plan.threads =
      is_shared ? limits.threads : static_cast<int>(std::min<index_t>(limits.threads, count));
  const std::size_t per_thread = is_shared ? workspace : workspace + matrix_bytes;
  while (plan.threads > 1 && per_thread * plan.threads > limits.host_bytes / 2) --plan.threads;
  // Rank 0 has a buffer for what comes from other ranks.
  const int foreign = limits.ranks > 1 ? 1 : 0;
  const std::size_t workspaces = workspace * plan.threads + shared;
  plan.host_bytes = workspaces + matrix_bytes * (1 + foreign);
  if (plan.host_bytes > limits.host_bytes) return false;
  const std::size_t left = limits.host_bytes - workspaces;

  // Three buffers let read, compute and write overlap; a fourth takes up the jitter between them.
  for (plan.buffers = 4; plan.buffers > 1 && matrix_bytes * (plan.buffers + foreign) > left;
       --plan.buffers) {
  }
  const std::size_t chunk_bytes =
      std::max(std::min(left / (plan.buffers + foreign), chunk_target(matrix_bytes, plan, limits)),
               matrix_bytes);
  plan.chunk_matrices = static_cast<index_t>(chunk_bytes / matrix_bytes);
  // Whole packs for every thread.
  const index_t unit = cpu_chunk_unit * plan.threads;
  if (plan.chunk_matrices >= unit) plan.chunk_matrices -= plan.chunk_matrices % unit;
  plan.chunk_matrices = std::clamp<index_t>(plan.chunk_matrices, 1, share(count, limits));
  const index_t chunks = (count + plan.chunk_matrices - 1) / plan.chunk_matrices;
  plan.buffers = static_cast<int>(std::min<index_t>(plan.buffers, chunks));
  plan.host_bytes = workspaces + matrix_bytes * (plan.buffers + foreign) * plan.chunk_matrices;
  return true;
}

/// Returns the bytes of one matrix on the device.
std::size_t bytes_on_device(const Variant& variant, const Problem& p) {
  return p.input_bytes() + p.output_bytes() + variant.device_workspace_bytes(p);
}

/// Large matrices go to the device in pieces, one after another, where the host only passes them
/// on: it measures none of them again, and pivots none. A piece has at least one row.
bool fit_pieces(Plan& plan, const Limits& limits) {
  const Problem& p = plan.problem;
  if (limits.piece_bytes == 0 || limits.ranks > 1 || p.ranks() || p.is_empty() ||
      is_complex(p.type))
    return false;
  if (p.input_bytes() + p.output_bytes() <= least_pieces * limits.piece_bytes) return false;
  if (plan.variant->host_workspace_bytes(p) > 0) return false;
  if (bytes_on_device(*plan.variant, p) > limits.device_bytes) return false;
  const index_t widest = std::max({p.n, p.q_cols(), p.k()});
  const std::size_t piece =
      std::max(limits.piece_bytes, static_cast<std::size_t>(widest) * size_of(p.type));
  for (plan.buffers = most_pieces; plan.buffers > 1 && piece * plan.buffers > limits.host_bytes;
       --plan.buffers) {
  }
  plan.host_bytes = piece * plan.buffers;
  if (plan.host_bytes > limits.host_bytes) return false;
  plan.piece_bytes = piece;
  plan.threads = limits.threads;
  return true;
}

/// Returns the variant that takes the problem by rows: the forced one, or the first.
const Variant* find_row_variant(const Problem& problem, std::span<const Variant> variants,
                                const Limits& limits, std::string_view forced) {
  for (const Variant& variant : variants) {
    const bool is_asked_for = forced.empty() ? !variant.only_when_forced : variant.name == forced;
    if (!is_asked_for || variant.row_state_bytes == nullptr) continue;
    Problem part = problem;  // what has to fit at once
    if (variant.leaf_rows != nullptr) part.m = std::min(part.m, variant.leaf_rows(problem));
    if (variant.takes(part, limits).ok) return &variant;
  }
  return nullptr;
}

/// Whether a matrix may go by rows. On the CPU its factors must not depend on the memory or on the
/// number of ranks, so that it goes by rows only with the variant that takes it in memory. A device
/// factors leaves by rows that it does not have in memory; qrtool(7) says so.
bool keeps_its_factors(const Variant& in_memory, const Variant* by_rows) {
  return by_rows == &in_memory || (by_rows != nullptr && by_rows->leaf_rows != nullptr);
}

[[noreturn]] void refuse_rows(const Plan& plan, std::size_t state, const Limits& limits) {
  const Problem& p = plan.problem;
  const std::string text =
      fmt::format("one {}x{} matrix of {} needs {} of host memory even by rows; {}", p.m, p.n,
                  name_of(p.type), format_bytes(plan.host_bytes), limit_text(limits));
  std::string hint = hint_of_memory(plan.host_bytes + limits.file_bytes);
  if (!limits.has_scratch && plan.host_bytes - state <= limits.host_bytes)
    hint += fmt::format("; or --scratch DIR keeps {} of it on disk", format_bytes(state));
  throw LimitError(text, hint);
}

/// Whether errors of Q and R are estimated while Q is formed by rows. Ranks would have to share
/// their sums.
bool estimates_rows(const Problem& p, const Limits& limits) {
  return p.check == Check::probe && p.wants_q() && limits.device_bytes == 0 && limits.ranks <= 1 &&
         !is_complex(p.type) && ErrorProbe::pays(p.m, p.n, p.q_cols());
}

/// Rows of one matrix at a time: whole leaves of its tree.
void fit_rows(Plan& plan, const Limits& limits) {
  const Problem& p = plan.problem;
  const TallShape shape = plan.row_shape();
  std::size_t workspace = plan.variant->host_workspace_bytes(p);
  std::size_t state = plan.variant->row_state_bytes(p);
  if (p.mode == Mode::r) {  // the check
    with_type(p.type, [&](auto zero) {
      workspace += GramProbe<decltype(zero)>::worker_bytes(shape);
      state += GramProbe<decltype(zero)>::bytes(shape);
    });
  }
  const std::size_t ranking = p.ranks() ? ranking_bytes(p) : 0;
  plan.threads = limits.threads;
  while (plan.threads > 1 && workspace * plan.threads > limits.host_bytes / 4) --plan.threads;
  plan.scratch_bytes = limits.has_scratch ? state : 0;
  const std::size_t r_bytes = static_cast<std::size_t>(p.k() * p.n) * size_of(p.type);
  std::size_t fixed = workspace * plan.threads + state - plan.scratch_bytes + r_bytes + ranking;
  std::size_t leaf_bytes =
      static_cast<std::size_t>(shape.leaf_rows() * (p.n + p.q_cols())) * size_of(p.type);
  if (p.wants_q())
    leaf_bytes +=
        sizeof(double) * ErrorMeter::number_of_sums(p.m, p.n, p.q_cols(), is_complex(p.type));
  if (estimates_rows(p, limits))
    fixed += ErrorProbe::workspace_bytes(shape.leaf_rows(), p.n, p.q_cols(), p.k(), plan.threads);
  plan.host_bytes = fixed + leaf_bytes;
  if (plan.host_bytes > limits.host_bytes) refuse_rows(plan, state, limits);
  const std::size_t left = limits.host_bytes - fixed;
  for (plan.buffers = 3; plan.buffers > 1 && leaf_bytes * plan.buffers > left; --plan.buffers) {
  }
  const std::size_t chunk_bytes = std::min(left / plan.buffers, row_target_bytes);
  const index_t leaves =
      std::clamp<index_t>(chunk_bytes / leaf_bytes, 1, share(shape.leaves(), limits));
  plan.chunk_rows = leaves * shape.leaf_rows();
  plan.host_bytes = fixed + leaf_bytes * plan.buffers * leaves;
}

/// What the plan does where the user asked for estimates: a device measures by itself, and so does
/// the pass over the rows for R alone. The Q of reflectors is formed for either.
Check check_of(const Plan& plan, const Limits& limits) {
  const Problem& p = plan.problem;
  if (p.check != Check::probe) return p.check;
  if (plan.by_rows()) return estimates_rows(p, limits) ? Check::probe : Check::full;
  const index_t q_cols = p.mode == Mode::raw ? p.k() : p.q_cols();
  const bool is_estimated =
      limits.device_bytes == 0 && !is_complex(p.type) && ErrorProbe::pays(p.m, p.n, q_cols);
  return is_estimated ? Check::probe : Check::full;
}

/// Threads that share a matrix wait for each other after every strip of columns: two took 13 ms for
/// one 64x64 on a busy machine, and one thread 0.1 ms.
bool is_worth_a_team(const Plan& plan, const Limits& limits) {
  constexpr double least_seconds = 5e-4;
  Problem one = plan.problem;
  one.count = 1;
  return plan.variant->seconds(one, limits) >= least_seconds;
}

/// Returns what goes through the pipeline at once, for people.
std::string chunk_text(const Plan& plan) {
  if (plan.in_pieces()) return format_bytes(plan.piece_bytes) + " of a matrix";
  if (plan.by_rows()) return format_count(plan.chunk_rows) + " rows of a matrix";
  return format_count(plan.chunk_matrices) + " matrices";
}

}  // namespace

const Variant* least_costly(const Problem& problem, std::span<const Variant> variants,
                            const Limits& limits,
                            const std::function<bool(const Variant&)>& may_run) {
  const Variant* least = nullptr;
  double least_seconds = 0;
  for (const Variant& variant : variants) {
    if (variant.only_when_forced || (may_run && !may_run(variant))) continue;
    if (!variant.takes(problem, limits).ok) continue;
    const double seconds = variant.seconds(problem, limits);
    if (least != nullptr && !(seconds < least_seconds)) continue;
    least = &variant;
    least_seconds = seconds;
  }
  return least;
}

TallShape Plan::row_shape() const {
  const auto leaf_rows = variant->leaf_rows;
  return leaf_rows == nullptr ? TallShape(problem.m, problem.n)
                              : TallShape(problem.m, problem.n, leaf_rows(problem));
}

Plan make_plan(const Problem& problem, std::span<const Variant> variants, const Limits& limits,
               std::string_view forced) {
  Choice choice = choose_variant(problem, variants, limits, forced);
  Plan plan;
  plan.problem = problem;
  plan.variant = choice.variant;
  plan.has_float64 = limits.has_float64;
  plan.reason = std::move(choice.reason);
  plan.params = plan.variant->tune(problem, limits);
  const bool fits = fit_pieces(plan, limits) || fit_memory(plan, limits);
  const Variant* by_rows = find_row_variant(problem, variants, limits, forced);
  const bool may_go_by_rows = keeps_its_factors(*plan.variant, by_rows);
  const bool is_shared = problem.count < limits.ranks && may_go_by_rows;
  if (!fits || is_shared) {
    const std::size_t needed = plan.host_bytes;
    if (!may_go_by_rows) refuse_for_memory(plan, limits);
    plan.variant = by_rows;
    plan.params = by_rows->tune(problem, limits);
    plan.reason = is_shared ? fmt::format("by rows, shared by {} ranks", limits.ranks)
                            : fmt::format("by rows, since one matrix needs {} otherwise",
                                          format_bytes(needed));
    fit_rows(plan, limits);
  }
  plan.problem.check = check_of(plan, limits);
  if (plan.variant->shares_matrix && !plan.by_rows() && is_worth_a_team(plan, limits)) {
    plan.threads_per_matrix = limits.threads / plan.threads;
  }
  if (!limits.is_cpu) {
    const std::size_t bytes = bytes_on_device(*plan.variant, problem) * plan.chunk_matrices;
    plan.device_bytes = std::min(bytes, limits.device_bytes);
  }
  return plan;
}

std::string explain(const Plan& plan, const Limits& limits) {
  const Problem& p = plan.problem;
  std::string params;
  for (const auto& [name, value] : plan.params) params += fmt::format(" {}={}", name, value);
  std::string text =
      fmt::format("problem   {} of {}x{}, {}, mode {}, sign {}\n", format_count(p.count), p.m, p.n,
                  name_of(p.type), name_of(p.mode), name_of(p.sign));
  text += fmt::format("variant   {} ({}){}\n", plan.variant->name, plan.reason, params);
  text += fmt::format("computes  {}\n", plan.arithmetic());
  text += fmt::format("check     {}\n", name_of(p.check));
  text += fmt::format("chunks    {} at a time, {} in flight, {} thread{}\n", chunk_text(plan),
                      plan.buffers, plan.all_threads(), plan.all_threads() == 1 ? "" : "s");
  text += fmt::format("memory    {} of {} on the host",
                      format_bytes(plan.host_bytes + limits.file_bytes),
                      format_bytes(limits.host_bytes + limits.file_bytes));
  if (limits.file_bytes > 0)
    text += fmt::format(" ({} for files)", format_bytes(limits.file_bytes));
  if (plan.device_bytes > 0) {
    text += fmt::format(", {} of {} on the device", format_bytes(plan.device_bytes),
                        format_bytes(limits.device_bytes));
  }
  if (plan.scratch_bytes > 0)
    text += fmt::format(", {} in --scratch", format_bytes(plan.scratch_bytes));
  return text + "\n";
}

}  // namespace qrtool
