// SPDX-License-Identifier: Apache-2.0
// engine.cpp: the steps of a sub-chunk on the device: the variant, the flagged matrices, the check.
#include "gpu/pipeline/engine.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "gpu/pipeline/refused.hpp"

namespace qrtool {
namespace {

/// The kernels that enqueue(launcher) would launch.
template <class Enqueue>
WantedKernels wanted_by(const ProgramSource& source, std::span<const std::string_view> heavy,
                        Enqueue enqueue) {
  WantedKernels wanted{source, {}, heavy};
  Launcher recorder(wanted.kernels);
  enqueue(recorder);
  return wanted;
}

/// body(the variant that factors first, its job), if there is one.
template <class Body>
void with_inner(const GpuVariant& variant, const FactorJob& job, const Limits& limits, Body body) {
  if (variant.inner.variant == nullptr) return;
  const Problem problem = variant.inner.problem(job.problem);
  const GpuVariant inner = variant.inner.variant(job.problem);
  Params params = inner.plan.tune(problem, limits);
  if (const auto found = job.params.find(unguarded); found != job.params.end()) {
    params.insert(*found);
  }
  body(inner, variant.inner.job(job, problem, params));
}

}  // namespace

ProgramSource source_of(const GpuVariant& variant, const Problem& problem, const Params& params) {
  return {variant.file, defines_for(problem, params, variant.computes_in(problem)),
          variant.plan.name};
}

const Buffer& buffer_of(const DeviceBuffers& buffers, Summed which) {
  const FactorJob& job = buffers.job;
  const std::array all{&job.a, &job.q, &job.r, &job.v, &job.tau, &buffers.errors};
  static_assert(all.size() == summed_buffers);
  return *all[static_cast<std::size_t>(which)];
}

FactorEngine::FactorEngine(const DeviceInfo& device_info, Session& device_session,
                           const DeviceMemory* from)
    : info(device_info),
      session(device_session),
      memory(from == nullptr ? *device_session.context : *from),
      upload(session.context->queue()),
      compute(session.context->queue()),
      download(session.context->queue()),
      pool(memory),
      ring([this](std::size_t bytes) { return allocate(bytes); }) {}

void FactorEngine::prepare(const GpuVariant& variant, const DeviceBuffers& buffers, bool is_checked,
                           bool is_copied) {
  if (!session.programs.has_parts()) return;
  const FactorJob& job = buffers.job;
  std::vector<WantedKernels> wanted;
  add_wanted(variant, job, wanted);
  if (is_checked) wanted.push_back(wanted_by_check(buffers, variant.checks_by_vectors));
  if (is_copied) wanted.push_back(wanted_sums());
  session.programs.prepare(wanted);
}

WantedKernels FactorEngine::wanted_by_check(const DeviceBuffers& buffers, bool by_vectors) const {
  const CheckProgram program = program_of_check(buffers.job.problem, by_vectors);
  return wanted_by({program.file, program.defines, "the check"}, heavy_check_kernels,
                   [&](Launcher& launch) { enqueue_errors(buffers, by_vectors, launch); });
}

void FactorEngine::add_wanted(const GpuVariant& variant, const FactorJob& job,
                              std::vector<WantedKernels>& wanted) const {
  wanted.push_back(wanted_by(
      source_of(variant, job.problem, job.params), variant.heavy_kernels, [&](Launcher& launch) {
        variant.enqueue(job, launch);
        with_inner(variant, job, info.limits, [&](const GpuVariant&, const FactorJob& made) {
          variant.inner.enqueue(job, made, launch);
        });
      }));
  with_inner(variant, job, info.limits, [&](const GpuVariant& inner, const FactorJob& made) {
    add_wanted(inner, made, wanted);
  });
}

void FactorEngine::factor(const GpuVariant& variant, const FactorJob& job, bool leaves_refused) {
  Launcher launch = launcher(source_of(variant, job.problem, job.params));
  routed_ = {};
  if (beside != nullptr) launch.set_mark(routed_);
  variant.enqueue(job, launch);
  with_inner(variant, job, info.limits, [&](const GpuVariant& inner, const FactorJob& made) {
    factor(inner, made, variant.inner.leaves_refused);
    routed_ = {};
    variant.inner.enqueue(job, made, launch);
  });
  factor_refused(*this, variant, job, leaves_refused);
}

void FactorEngine::prepare_refused(const GpuVariant& variant, const FactorJob& job, bool builds,
                                   bool leaves_refused) {
  with_inner(variant, job, info.limits, [&](const GpuVariant& inner, const FactorJob& made) {
    prepare_refused(inner, made, builds, variant.inner.leaves_refused);
  });
  qrtool::prepare_refused(*this, variant, job, builds, leaves_refused);
}

/// Sets the errors, and the sums from which they are computed, to NaN: those of an earlier run must
/// not pass for those of this one where a kernel does not run.
void FactorEngine::poison(const DeviceBuffers& buffers) const {
  const auto matrices = static_cast<std::size_t>(buffers.job.count);
  compute->fill(buffers.errors, nan_word, matrices * sizeof(DeviceErrors));
  const std::vector<std::size_t> work = check_workspace(buffers.job.problem);
  for (std::size_t i = 0; i < work.size(); ++i) {
    if (work[i] > 0) compute->fill(buffers.check_work[i], nan_word, matrices * work[i]);
  }
}

CheckProgram FactorEngine::program_of_check(const Problem& problem, bool by_vectors) const {
  return is_by_vectors(by_vectors) ? vector_check_program(problem)
                                   : check_program(problem, info.limits);
}

void FactorEngine::enqueue_errors(const DeviceBuffers& buffers, bool by_vectors,
                                  Launcher& launch) const {
  if (is_by_vectors(by_vectors)) {
    enqueue_vector_check(buffers.job, buffers.errors, launch);
  } else {
    enqueue_check(buffers.job, info.limits, buffers.check_work, buffers.errors, launch);
  }
}

void FactorEngine::check(const DeviceBuffers& buffers, bool by_vectors) {
  poison(buffers);
  const CheckProgram program = program_of_check(buffers.job.problem, by_vectors);
  Launcher launch = launcher({program.file, program.defines, "the check"});
  enqueue_errors(buffers, by_vectors, launch);
}

void FactorEngine::run(const GpuVariant& variant, const DeviceBuffers& buffers, bool is_checked,
                       JobRun& run) {
  sum(buffers, std::array{Summed::a});
  run.begun = compute->mark();
  factor(variant, buffers.job);
  run.factored = compute->mark();
  const Buffer* routes = variant.routes == nullptr ? nullptr : variant.routes(buffers.job);
  run.routes.resize(routes == nullptr ? 0 : static_cast<std::size_t>(buffers.job.count));
  // This read is in the queue of the kernels, because the kernels of the next job overwrite the
  // buffer.
  if (routes != nullptr)
    compute->start_read(*routes, run.routes.data(), {0, sizeof(int) * run.routes.size()},
                        &run.routed);
  if (is_checked) {
    check(buffers, variant.checks_by_vectors);
    run.checked = compute->mark();
  }
  sum(buffers, summed_factors);
  if (is_checked) sum(buffers, std::array{Summed::errors});
}

void FactorEngine::sum(const DeviceBuffers& buffers, std::span<const Summed> which) {
  const FactorJob& job = buffers.job;
  const SumLayout layout(job.problem);
  Launcher launch = launcher({sum_file, sum_defines(), "checksums"});
  for (const Summed one : which)
    enqueue_sums(layout, one, buffer_of(buffers, one), job.count, buffers.sums, launch);
}

std::vector<int> FactorEngine::read_routes(const Buffer& routes, index_t count) {
  const std::size_t bytes = sizeof(int) * static_cast<std::size_t>(count);
  if (read_bytes_ < bytes) {
    read_ = allocate(bytes);
    read_bytes_ = bytes;
  }
  const Event routed = std::exchange(routed_, {});
  if (routed) beside->wait_for({&routed, 1});
  (routed ? *beside : *compute).read(routes, read_.get(), bytes);
  const auto* const first = reinterpret_cast<const int*>(read_.get());
  return {first, first + count};
}

void FactorEngine::drain() noexcept {
  for (Queue* queue : {upload.get(), compute.get(), download.get()}) {
    if (queue == nullptr) continue;
    try {
      queue->finish();
    } catch (const DeviceFailure&) {  // the caller has one already
    }
  }
  ring.forget_copies();
}

HostMemory FactorEngine::allocate(std::size_t bytes) {
  try {
    return session.context->page_locked(bytes);
  } catch (const DeviceFailure&) {
    is_pageable = true;
    return allocate_host(bytes);
  }
}

}  // namespace qrtool
