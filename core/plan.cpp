// SPDX-License-Identifier: Apache-2.0
// plan.cpp: choice of a variant, and of chunks that fit the memory.
#include "core/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/report.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Bytes of input and output that go through the pipeline together, at the most: large enough that
/// a chunk's fixed costs vanish, small enough that the stages overlap on files of a few hundred
/// MiB.
constexpr std::size_t chunk_target_bytes = std::size_t{64} << 20;

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
    const Fit fit = variant.fits(problem, limits);
    if (fit.ok) return {&variant, "asked for"};
    throw UsageError(fmt::format("--variant {} does not take this problem: {}", name, fit.reason),
                     "leave --variant away to let the plan choose");
  }
  const std::string_view guess = nearest(name, names);
  throw UsageError(fmt::format("--variant: there is no '{}'{}", escape(name),
                               guess.empty() ? "" : fmt::format("; did you mean '{}'?", guess)),
                   fmt::format("variants: {}", fmt::join(names, ", ")));
}

Choice choose_variant(const Problem& problem, std::span<const Variant> variants,
                      const Limits& limits, std::string_view forced) {
  if (!forced.empty()) return find_forced(problem, variants, limits, forced);
  std::string reasons;
  for (const Variant& variant : variants) {
    if (variant.only_when_forced) continue;
    Fit fit = variant.fits(problem, limits);
    if (fit.ok && variant.pays != nullptr) fit = variant.pays(problem);
    if (fit.ok) return {&variant, reasons.empty() ? fit.reason : fit.reason + "; " + reasons};
    reasons += fmt::format("{}{}: {}", reasons.empty() ? "" : "; ", variant.name, fit.reason);
  }
  throw DeviceError("no variant takes this problem: " + reasons);
}

[[noreturn]] void refuse_for_memory(const Plan& plan, std::size_t workspace, const Limits& limits) {
  const Problem& p = plan.problem;
  throw LimitError(
      fmt::format("one {}x{} matrix of {} needs {} of host memory ({} input, {} factors, {} "
                  "workspace); the limit is {}",
                  p.m, p.n, name_of(p.type),
                  format_bytes(p.input_bytes() + p.output_bytes() + workspace),
                  format_bytes(p.input_bytes()), format_bytes(p.output_bytes()),
                  format_bytes(workspace), format_bytes(limits.host_bytes)),
      p.mode == Mode::complete ? "--mode reduced needs less; or raise --memory" : "raise --memory");
}

/// Chunks, buffers and threads that keep within limits.host_bytes.
void fit_memory(Plan& plan, const Limits& limits) {
  const Problem& p = plan.problem;
  const std::size_t matrix_bytes = p.input_bytes() + p.output_bytes() + sizeof(MatrixReport);
  const std::size_t workspace = plan.variant->host_workspace_bytes(p);
  const auto count = std::max<index_t>(p.count, 1);

  plan.threads = static_cast<int>(std::min<index_t>(limits.threads, count));
  while (plan.threads > 1 && (workspace + matrix_bytes) * plan.threads > limits.host_bytes / 2) {
    --plan.threads;
  }
  if (workspace * plan.threads + matrix_bytes > limits.host_bytes) {
    refuse_for_memory(plan, workspace, limits);
  }
  const std::size_t left = limits.host_bytes - workspace * plan.threads;

  // Three buffers let read, compute and write overlap; a fourth takes up the jitter between them.
  for (plan.buffers = 4; plan.buffers > 1 && matrix_bytes * plan.buffers > left; --plan.buffers) {
  }
  const std::size_t chunk_bytes =
      std::max(std::min(left / plan.buffers, chunk_target_bytes), matrix_bytes);
  plan.chunk_matrices = std::clamp<index_t>(chunk_bytes / matrix_bytes, 1, count);
  const index_t chunks = (count + plan.chunk_matrices - 1) / plan.chunk_matrices;
  plan.buffers = static_cast<int>(std::min<index_t>(plan.buffers, chunks));
  plan.host_bytes = workspace * plan.threads + matrix_bytes * plan.buffers * plan.chunk_matrices;
}

}  // namespace

Plan make_plan(const Problem& problem, std::span<const Variant> variants, const Limits& limits,
               std::string_view forced) {
  Choice choice = choose_variant(problem, variants, limits, forced);
  Plan plan;
  plan.problem = problem;
  plan.variant = choice.variant;
  plan.reason = std::move(choice.reason);
  plan.params = plan.variant->tune(problem, limits);
  fit_memory(plan, limits);
  if (!limits.is_cpu) {
    const std::size_t per_matrix = problem.input_bytes() + problem.output_bytes() +
                                   plan.variant->device_workspace_bytes(problem);
    plan.device_bytes = std::min(per_matrix * plan.chunk_matrices, limits.device_bytes);
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
  text += fmt::format("chunks    {} matrices at a time, {} in flight, {} thread{}\n",
                      format_count(plan.chunk_matrices), plan.buffers, plan.threads,
                      plan.threads == 1 ? "" : "s");
  text += fmt::format("memory    {} of {} on the host", format_bytes(plan.host_bytes),
                      format_bytes(limits.host_bytes));
  if (plan.device_bytes > 0) {
    text += fmt::format(", {} of {} on the device", format_bytes(plan.device_bytes),
                        format_bytes(limits.device_bytes));
  }
  return text + "\n";
}

}  // namespace qrtool
