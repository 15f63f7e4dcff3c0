// SPDX-License-Identifier: Apache-2.0
// engine.cpp: the steps of a sub-chunk on the device: the variant, the flagged matrices, the check.
#include "gpu/pipeline/engine.hpp"

#include <algorithm>
#include <array>

#include "gpu/registry.hpp"

namespace qrtool {
namespace {

/// A, Q, R, V and tau, and the magnitudes, in the order of MatrixBytes.
constexpr std::array own_arrays{&FactorJob::a, &FactorJob::q,   &FactorJob::r,
                                &FactorJob::v, &FactorJob::tau, &FactorJob::magnitudes};

/// The kernels that enqueue(launcher) would launch.
template <class Enqueue>
WantedKernels wanted_by(const ProgramSource& source, std::span<const std::string_view> heavy,
                        Enqueue enqueue) {
  WantedKernels wanted{source, {}, heavy};
  Launcher recorder(wanted.kernels);
  enqueue(recorder);
  return wanted;
}

/// All steps of a variant, whatever the routes are.
void enqueue_all(const GpuVariant& variant, const FactorJob& job, Launcher& launch) {
  variant.enqueue(job, launch);
  if (variant.enqueue_rest != nullptr) variant.enqueue_rest(job, launch);
}

ProgramSource source_of(const GpuVariant& variant, const Problem& problem, const Params& params) {
  return {variant.file, defines_for(problem, params, variant.computes_in(problem)),
          variant.plan.name};
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
  variant.enqueue(job, launch);
  with_inner(variant, job, info.limits, [&](const GpuVariant& inner, const FactorJob& made) {
    factor(inner, made, variant.inner.leaves_refused);
    variant.inner.enqueue(job, made, launch);
  });
  if (variant.enqueue_rest != nullptr) enqueue_rest(variant, job, launch);
  if (variant.again != nullptr) enqueue_again(variant, job, leaves_refused);
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
  return by_vectors ? vector_check_program(problem) : check_program(problem, info.limits);
}

void FactorEngine::enqueue_errors(const DeviceBuffers& buffers, bool by_vectors,
                                  Launcher& launch) const {
  if (by_vectors) {
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
  compute->read(routes, read_.get(), bytes);
  const auto* const first = reinterpret_cast<const int*>(read_.get());
  return {first, first + count};
}

void FactorEngine::enqueue_rest(const GpuVariant& variant, const FactorJob& job, Launcher& launch) {
  const WantedKernels wanted =
      wanted_by(source_of(variant, job.problem, job.params), variant.heavy_kernels,
                [&](Launcher& recorder) { variant.enqueue_rest(job, recorder); });
  if (wanted.kernels.empty()) return;
  const FurtherRoute* further = further_route(variant, job.problem, info.limits);
  if (further != nullptr || !session.programs.has(wanted)) {
    const Buffer& buffer = *variant.routes(job);
    std::vector<int> routes = read_routes(buffer, job.count);
    if (further != nullptr) enqueue_further(*further, variant, job, buffer, routes);
    const auto is_done = [](int route) {
      return route == ROUTE_FIRST_PASS || route == ROUTE_FURTHER_PASSES;
    };
    if (std::ranges::all_of(routes, is_done)) return;
    session.programs.prepare({&wanted, 1});
  }
  variant.enqueue_rest(job, launch);
}

void FactorEngine::enqueue_further(const FurtherRoute& route, const GpuVariant& first,
                                   const FactorJob& job, const Buffer& routes,
                                   std::vector<int>& known) {
  std::vector<int> refused;
  for (std::size_t b = 0; b < known.size(); ++b) {
    if (known[b] == ROUTE_REFLECTORS) refused.push_back(static_cast<int>(b));
  }
  if (refused.empty()) return;
  const auto count = static_cast<index_t>(refused.size());
  const std::size_t list_bytes = sizeof(int) * refused.size();
  const std::size_t taken = pool.bytes_beside_refused() + list_bytes;
  const std::size_t free = info.limits.device_bytes - std::min(info.limits.device_bytes, taken);
  // Where not even one slot fits, reflectors factor these matrices, in memory that they have.
  const std::size_t slot_bytes = further_bytes(route, job.problem, info.limits, free, count);
  const std::optional<BufferPool::OfRefused> own = pool.of_refused(slot_bytes, list_bytes);
  if (!own) return;
  const auto& [slots, list] = *own;
  compute->write(list, refused.data(), list_bytes);
  const Params params = route.tune(job.problem, info.limits);
  const FurtherJob further{
      job.problem, params,
      count,       list,
      job.a,       job.q,
      job.r,       routes,
      slots,       first.slab_sums == nullptr ? nullptr : first.slab_sums(job)};
  const auto [usual, most] = further_pass_counts(job.problem);
  const PassRange all{0, most};
  const ProgramSource source{route.file, defines_for(job.problem, params, ElementType::float64),
                             "further passes"};
  if (session.programs.has_parts() && !session.programs.has(source.file, source.defines)) {
    const WantedKernels wanted = wanted_by(source, route.heavy_kernels, [&](Launcher& launch) {
      route.enqueue(further, all, launch);
    });
    session.programs.prepare({&wanted, 1});
  }
  Launcher launch = launcher(source);
  const std::size_t slot = route.slots(job.problem).bytes;
  if (static_cast<std::size_t>(count) * slot > slots.bytes()) {
    route.enqueue(further, all, launch);
    known = read_routes(routes, job.count);
    return;
  }
  // A pass that no matrix needs costs more than reading the routes: 14 launches for 512 columns.
  for (PassRange range{0, usual}; range.first < most; range = {range.end, range.end + 1}) {
    route.enqueue(further, range, launch);
    known = read_routes(routes, job.count);
    if (std::ranges::count(known, ROUTE_REFLECTORS) == 0) break;
  }
}

void FactorEngine::enqueue_scaled(const GpuVariant& first, const FactorJob& job,
                                  std::vector<int>& known) {
  const Problem& p = job.problem;
  if (first.first_q == nullptr || real_of(p.type) != ElementType::float64) return;
  known = read_routes(job.work[0], job.count);
  if (std::ranges::count(known, ROUTE_REFLECTORS) == 0) return;
  constexpr int range_group = 64;  // RANGE_GROUP
  Params parts;
  if (is_complex(p.type)) parts["ELEMENT_PARTS"] = 2;
  Launcher scale = launcher({"gpu/pipeline/scale_refused.cl",
                             defines_for(p, parts, ElementType::float64), "scaled columns"});
  scale("scale_refused", job.count, range_group, job.a, first.first_q(job), job.magnitudes,
        job.work[0], factor_shape(real_form(p), job.count));
  known = read_routes(job.work[0], job.count);
  if (std::ranges::count(known, ROUTE_SCALED) == 0) return;
  Params params = job.params;
  params["SCALED"] = 1;
  const FactorJob scaled{p,     params,  job.count,      job.a,    job.q,    job.r,
                         job.v, job.tau, job.magnitudes, job.work, job.slots};
  const ProgramSource source = source_of(first, p, params);
  if (session.programs.has_parts() && !session.programs.has(source.file, source.defines)) {
    const WantedKernels wanted = wanted_by(
        source, first.heavy_kernels, [&](Launcher& launch) { first.enqueue(scaled, launch); });
    session.programs.prepare({&wanted, 1});
  }
  Launcher launch = launcher(source);
  first.enqueue(scaled, launch);
  known = read_routes(job.work[0], job.count);
}

void FactorEngine::enqueue_again(const GpuVariant& first, const FactorJob& job,
                                 bool leaves_refused) {
  const FurtherRoute* further = further_route(first, job.problem, info.limits);
  std::vector<int> routes;
  enqueue_scaled(first, job, routes);
  if (further != nullptr) {
    if (routes.empty()) routes = read_routes(job.work[0], job.count);
    enqueue_further(*further, first, job, job.work[0], routes);
  }
  if (leaves_refused) return;
  if (!routes.empty() && std::ranges::count(routes, ROUTE_REFLECTORS) == 0) return;
  const GpuVariant variant = first.again(job.problem);
  Params params = variant.plan.tune(job.problem, info.limits);
  if (variant.takes_flags) params.try_emplace("FLAGGED", 1);
  const ProgramSource source = source_of(variant, job.problem, params);
  const bool must_know = first.host_decides || !variant.takes_flags ||
                         !session.programs.has(source.file, source.defines);
  if (routes.empty() && must_know) {
    routes = read_routes(job.work[0], job.count);
    if (std::ranges::count(routes, ROUTE_REFLECTORS) == 0) return;
  }
  FactorJob flagged{
      job.problem, params, job.count, job.a,          job.q,
      job.r,       job.v,  job.tau,   job.magnitudes, {job.work.begin() + 1, job.work.end()},
      {}};
  if (session.programs.has_parts() && !session.programs.has(source.file, source.defines)) {
    std::vector<WantedKernels> wanted;
    add_wanted(variant, flagged, wanted);
    if (variant.enqueue_rest != nullptr) {
      wanted.push_back(wanted_by(source, variant.heavy_kernels,
                                 [&](Launcher& launch) { variant.enqueue_rest(flagged, launch); }));
    }
    session.programs.prepare(wanted);
  }
  if (variant.takes_flags) {
    Launcher launch = launcher(source, job.work[0]);
    variant.enqueue(flagged, launch);
    return;
  }
  Launcher launch = launcher(source);
  if (job.count == 1) {
    enqueue_all(variant, flagged, launch);
    return;
  }
  const MatrixBytes bytes = matrix_bytes(variant, job.problem);
  const FactorJob one = own_job(flagged, bytes);
  for (index_t b = 0; b < job.count; ++b) {
    if (routes[static_cast<std::size_t>(b)] == ROUTE_REFLECTORS)
      enqueue_one(bytes, flagged, b, one, launch);
  }
}

FactorJob FactorEngine::own_job(const FactorJob& job, const MatrixBytes& bytes) const {
  FactorJob one = job;
  one.count = 1;
  for (std::size_t i = 0; i < own_arrays.size(); ++i)
    one.*own_arrays[i] = memory.allocate(bytes.io[i]);
  return one;
}

void FactorEngine::enqueue_one(const MatrixBytes& bytes, const FactorJob& job, index_t b,
                               const FactorJob& one, Launcher& launch) {
  const auto at = static_cast<std::size_t>(b);
  compute->copy(job.a, at * bytes.io[0], one.a, 0, bytes.io[0]);
  enqueue_all(*bytes.guarded, one, launch);
  for (std::size_t i = 1; i < own_arrays.size() - 1; ++i)
    if (const std::size_t size = bytes.io[i]; size > 0)
      compute->copy(one.*own_arrays[i], 0, job.*own_arrays[i], at * size, size);
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
