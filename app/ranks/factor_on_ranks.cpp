// SPDX-License-Identifier: Apache-2.0
// factor_on_ranks.cpp: what the ranks must agree on before, between and after the steps of a run.
#include "app/ranks/factor_on_ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "core/host.hpp"
#include "io/file/atomic_file.hpp"

namespace qrtool {
namespace {

/// The text of rank 0 on every rank.
std::string text_of_root(Comm& comm, std::string text) {
  std::uint64_t bytes = text.size();
  broadcast(comm, &bytes, 1);
  text.resize(bytes);
  broadcast(comm, text.data(), bytes);
  return text;
}

/// What rank 0 says on every rank.
bool answer_of_root(Comm& comm, bool answer) {
  std::uint64_t number = answer ? 1 : 0;
  broadcast(comm, &number, 1);
  return number != 0;
}

/// Each rank chooses for itself, since each has a device of its own or none. Results of two
/// backends are never mixed: where the choices differ, this is a failure of all, after which `auto`
/// takes the CPU on all.
BackendChoice choose_together(const FactorOptions& o, const Problem& problem, const Limits& limits,
                              Comm& comm) {
  BackendRequest request = o.backend;
  request.rank = comm.rank();
  request.ranks = comm.size();
  BackendChoice choice;
  together(comm, [&] { choice = choose_backend(request, problem, limits, o.verbose); });
  const std::string name = text_of_root(comm, choice.backend->name());
  together(comm, [&] {
    if (choice.backend->name() == name) return;
    throw DeviceError(fmt::format("rank 0 would compute on {}, rank {} on {}", name, comm.rank(),
                                  choice.backend->name()),
                      "give every rank a device; or --backend cpu");
  });
  return choice;
}

/// Takes a variant by its name, for this rank's part of the work.
void take_variant(const std::string& name, const Backend& backend, Plan& plan) {
  const std::span<const Variant> variants = backend.variants();
  const auto variant = std::find_if(variants.begin(), variants.end(),
                                    [&](const Variant& each) { return each.name == name; });
  if (variant == variants.end())
    throw DeviceError(
        fmt::format("rank 0 computes with {}, which is not there on every rank", name));
  plan.variant = &*variant;
  plan.params = variant->tune(plan.problem, backend.limits());
}

/// Rank 0's plan on every rank. Their own plans may differ, as the free memory changes from moment
/// to moment; chunks of different sizes or another variant would give a wrong or another result.
void share_plan(Comm& comm, const Backend& backend, Plan& plan) {
  std::array<index_t, 5> numbers{plan.chunk_matrices, plan.chunk_rows, plan.buffers, plan.threads,
                                 plan.threads_per_matrix};
  broadcast(comm, numbers.data(), numbers.size());
  plan.chunk_matrices = numbers[0];
  plan.chunk_rows = numbers[1];
  plan.buffers = static_cast<int>(numbers[2]);
  plan.threads = static_cast<int>(numbers[3]);
  plan.threads_per_matrix = static_cast<int>(numbers[4]);
  const std::string variant = text_of_root(comm, std::string(plan.variant->name));
  together(comm, [&] {
    if (variant != plan.variant->name) take_variant(variant, backend, plan);
  });
}

/// If rank 0 is killed, another rank removes what rank 0 was writing, and says so.
void share_temporary_files(Comm& comm) {
  std::string paths;
  if (comm.is_root()) {
    for (const std::string& path : live_temporary_files()) paths += path + '\0';
  }
  paths = text_of_root(comm, paths);
  if (comm.is_root()) return;
  for (std::size_t at = 0; at < paths.size(); at = paths.find('\0', at) + 1)
    adopt_temporary_file(paths.data() + at);
}

}  // namespace

FactorResult factor_together(FactorRun run, Comm& comm) {
  together(comm, [&] { run.make_plan(); });
  share_plan(comm, run.backend(), run.plan());
  run.say_plan();
  together(comm, [&] {
    if (comm.is_root()) run.create_outputs();
  });
  share_temporary_files(comm);
  run.run_stages(comm);
  together(comm, [&] {
    if (comm.is_root()) run.commit();
  });
  return run.finish();
}

ExitCode factor_on_ranks(const FactorOptions& o, Comm& comm) {
  const Stopwatch watch;
  Limits limits = rank_limits(o.memory_bytes, o.threads, comm);
  limits.has_scratch = !o.scratch.empty();
  std::unique_ptr<Reader> input;
  together(comm, [&] {
    if (o.input == "-")
      throw UsageError("several ranks cannot share standard input", "name a file");
    input = open_input_of(o, limits);
  });
  const auto choose = [&] {
    return choose_together(o, problem_of(input->source(), o), limits, comm);
  };
  const auto factor_on = [&](Backend& backend) {
    return factor_together(FactorRun(o, *input, backend, watch), comm);
  };
  const bool is_automatic = answer_of_root(comm, o.backend.is_automatic());
  const FactorResult result = factor_with_fallback(is_automatic, limits, choose, factor_on);
  const bool has_failed = answer_of_root(comm, result.verdict.failed() > 0);
  print_result(o, result);
  return has_failed ? ExitCode::answer_is_no : ExitCode::good;
}

}  // namespace qrtool
