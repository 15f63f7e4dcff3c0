// SPDX-License-Identifier: Apache-2.0
// stream_engine.cpp: which arrays are used where they are, and the steps of a part of a call.
#include "gpu/pipeline/stream_engine.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <span>
#include <utility>

#include "gpu/check/host_check.hpp"
#include "gpu/check/range.hpp"
#include "gpu/pipeline/opencl_backend.hpp"
#include "gpu/pipeline/pack.hpp"
#include "gpu/pipeline/stream_work.hpp"
#include "gpu/registry.hpp"

namespace qrtool {
namespace {

/// Bytes that are packed at a time for a copy to or from the host. 1 MiB .. 1 GiB; chosen, not
/// measured.
constexpr std::size_t copied_bytes = std::size_t{64} << 20;

/// The arrays of a job: where they are in a call, and in MatrixBytes::io.
struct JobArray {
  DeviceMatrices FactorArrays::*of_call;
  Buffer FactorJob::*of_job;
};
constexpr std::array job_arrays{
    JobArray{&FactorArrays::a, &FactorJob::a}, JobArray{&FactorArrays::q, &FactorJob::q},
    JobArray{&FactorArrays::r, &FactorJob::r}, JobArray{&FactorArrays::v, &FactorJob::v},
    JobArray{&FactorArrays::tau, &FactorJob::tau}};
constexpr std::size_t errors_entry = job_arrays.size() + 1, sums_entry = errors_entry + 1;

bool is_used(const DeviceMatrices& matrices) {
  return matrices.data != nullptr && is_in_place(matrices);
}

class EngineOnStream final : public StreamEngine {
 public:
  EngineOnStream(const DeviceInfo& info, Session& session, const StreamAllocator& allocator)
      : work_(info, session, allocator) {
    engine().most_unread_launches = tuning::most_unread_launches_of_calls;
    engine().beside = engine().download.get();
  }

  void read(void* stream, ElementType type, const DeviceMatrices& from, void* to) override;
  void write(void* stream, ElementType type, const void* from, const DeviceMatrices& to) override;
  const Plan& plan_for(const Problem& problem) override;
  std::string objection(const Problem& problem) const override;
  void factor(void* stream, const Problem& problem, const FactorArrays& arrays,
              Looks looks) override;
  void wait() override { work_.wait(); }
  MatrixReport report(index_t matrix) const override;
  std::size_t workspace_bytes(const Problem& problem, const FactorArrays& arrays,
                              Looks looks) override {
    return bytes_of(plan_for(problem), arrays, looks).total(problem.count);
  }
  std::vector<Found> measure(void* stream, const Problem& problem,
                             const FactorArrays& arrays) override;
  StreamWork& work() override { return work_; }

 private:
  FactorEngine& engine() { return work_.engine(); }
  const DeviceInfo& info() const { return work_.engine().info; }

  /// Calls copy(packed matrices on the device, their place on the host) for some after others.
  template <class Copy>
  void copy_some(ElementType type, const DeviceMatrices& all, Copy copy);
  static MatrixBytes bytes_of(const Plan& plan, const FactorArrays& arrays, Looks looks);
  /// The buffers of matrices `first` to `first + count - 1`; A is packed where this is needed.
  DeviceBuffers place(const Plan& plan, const MatrixBytes& bytes, const FactorArrays& arrays,
                      index_t first, index_t count);
  void take_inputs(const FactorArrays& arrays, std::span<const JobArray> inputs, index_t first,
                   DeviceBuffers& buffers);
  void give_outputs(const FactorArrays& arrays, index_t first, const DeviceBuffers& buffers);
  void read_errors(const DeviceBuffers& buffers, index_t first, std::byte* results);
  std::span<const DeviceErrors> found(index_t count) const {
    return {reinterpret_cast<const DeviceErrors*>(results_), static_cast<std::size_t>(count)};
  }
  static std::string item(const Problem& p) { return fmt::format("{}x{} matrix", p.m, p.n); }

  StreamWork work_;
  std::optional<Plan> plan_;
  bool is_prepared_ = false;         // the kernels of plan_ are built
  std::optional<Problem> measured_;  // whose kernels of measure() are built
  Looks looks_ = Looks::at_nothing;
  const std::byte* results_ = nullptr;
};

template <class Copy>
void EngineOnStream::copy_some(ElementType type, const DeviceMatrices& all, Copy copy) {
  if (all.entries() == 0) return;
  const std::size_t element = size_of(type);
  const std::size_t each = element * static_cast<std::size_t>(all.rows * all.cols);
  const auto most = static_cast<index_t>(std::max<std::size_t>(1, copied_bytes / each));
  work_.in_parts(all.count, most, fmt::format("{}x{} matrix", all.rows, all.cols),
                 [&](index_t first, index_t count) {
                   const std::size_t bytes = each * static_cast<std::size_t>(count);
                   copy(slice(all, first, count, element), bytes,
                        each * static_cast<std::size_t>(first));
                   engine().compute->finish();
                 });
}

void EngineOnStream::read(void* stream, ElementType type, const DeviceMatrices& from, void* to) {
  work_.run(stream, "in a copy", [&] {
    copy_some(type, from, [&](const DeviceMatrices& some, std::size_t bytes, std::size_t at) {
      Buffer packed = Buffer::of_caller(some.data, bytes);
      if (!is_in_place(some)) {
        packed = engine().pool.staging(bytes);
        enqueue_copy(engine(), type, some, packed_in(packed, some));
      }
      engine().compute->start_read(packed, static_cast<std::byte*>(to) + at, {0, bytes});
    });
  });
}

void EngineOnStream::write(void* stream, ElementType type, const void* from,
                           const DeviceMatrices& to) {
  work_.run(stream, "in a copy", [&] {
    copy_some(type, to, [&](const DeviceMatrices& some, std::size_t bytes, std::size_t at) {
      const bool is_direct = is_in_place(some);
      const Buffer packed =
          is_direct ? Buffer::of_caller(some.data, bytes) : engine().pool.staging(bytes);
      engine().compute->start_write(packed, static_cast<const std::byte*>(from) + at, {0, bytes});
      if (!is_direct) enqueue_copy(engine(), type, packed_in(packed, some), some);
    });
  });
}

const Plan& EngineOnStream::plan_for(const Problem& problem) {
  if (plan_ && plan_->problem == problem) return *plan_;
  plan_.reset();
  is_prepared_ = false;
  Limits limits = info().limits;
  limits.host_bytes = std::numeric_limits<std::size_t>::max() / 4;  // no matrix comes to the host
  plan_ = make_plan(problem, opencl_variants(), limits);
  return *plan_;
}

std::string EngineOnStream::objection(const Problem& p) const {
  if (p.is_empty()) return "the matrices have no entries";
  if (p.pivots) return "columns are pivoted";
  if (p.wants_condition) return "rank and condition are asked for";
  if (real_of(p.type) == ElementType::float32 && !info().has_denormals)
    return "the device takes small float32 numbers as 0";
  const bool is_planned = plan_ && plan_->problem == p;
  if (!is_planned && least_costly(p, opencl_variants(), info().limits) == nullptr)
    return "the device has no kernels for such matrices";
  return {};
}

/// A device uses arrays that it can use as they are; others are packed in work memory.
MatrixBytes EngineOnStream::bytes_of(const Plan& plan, const FactorArrays& arrays, Looks looks) {
  MatrixBytes bytes = matrix_bytes(gpu_variant(*plan.variant), plan.problem);
  for (std::size_t i = 0; i < job_arrays.size(); ++i)
    if (is_used(arrays.*job_arrays[i].of_call)) bytes.io[i] = 0;
  bytes.io[sums_entry] = 0;
  if (looks == Looks::at_nothing) bytes.io[errors_entry] = 0;
  if (looks != Looks::at_errors) bytes.check.assign(bytes.check.size(), 0);
  return bytes;
}

DeviceBuffers EngineOnStream::place(const Plan& plan, const MatrixBytes& bytes,
                                    const FactorArrays& arrays, index_t first, index_t count) {
  const Problem& p = plan.problem;
  DeviceBuffers buffers = engine().pool.get(p, plan.params, bytes, count, /*set=*/0);
  const std::size_t element = size_of(p.type);
  for (const JobArray& array : job_arrays) {
    const DeviceMatrices some = slice(arrays.*array.of_call, first, count, element);
    const std::size_t needed =
        element * static_cast<std::size_t>(some.count * some.rows * some.cols);
    Buffer& buffer = buffers.job.*array.of_job;
    if (is_used(some))
      buffer = Buffer::of_caller(some.data, needed);
    else if (buffer.bytes() < needed)  // not aligned as the whole array is
      buffer = engine().memory.allocate(needed);
  }
  return buffers;
}

void EngineOnStream::take_inputs(const FactorArrays& arrays, std::span<const JobArray> inputs,
                                 index_t first, DeviceBuffers& buffers) {
  const ElementType type = buffers.job.problem.type;
  for (const JobArray& array : inputs) {
    const DeviceMatrices some =
        slice(arrays.*array.of_call, first, buffers.job.count, size_of(type));
    if (some.entries() > 0 && !is_in_place(some))
      enqueue_copy(engine(), type, some, packed_in(buffers.job.*array.of_job, some));
  }
}

void EngineOnStream::give_outputs(const FactorArrays& arrays, index_t first,
                                  const DeviceBuffers& buffers) {
  const ElementType type = buffers.job.problem.type;
  for (const JobArray& array : std::span(job_arrays).subspan(1)) {
    const DeviceMatrices some =
        slice(arrays.*array.of_call, first, buffers.job.count, size_of(type));
    if (some.entries() > 0 && !is_in_place(some))
      enqueue_copy(engine(), type, packed_in(buffers.job.*array.of_job, some), some);
  }
}

void EngineOnStream::read_errors(const DeviceBuffers& buffers, index_t first, std::byte* results) {
  constexpr std::size_t each = sizeof(DeviceErrors);
  engine().compute->start_read(buffers.errors, results + each * static_cast<std::size_t>(first),
                               {0, each * static_cast<std::size_t>(buffers.job.count)});
}

void EngineOnStream::factor(void* stream, const Problem& problem, const FactorArrays& arrays,
                            Looks looks) {
  const Plan& plan = plan_for(problem);
  const GpuVariant& variant = gpu_variant(*plan.variant);
  const bool is_checked = looks == Looks::at_errors;
  looks_ = looks;
  work_.run(stream, "in its work on arrays", [&] {
    const bool is_read = looks != Looks::at_nothing && arrays.statuses == nullptr;
    std::byte* const results =
        is_read ? work_.results(sizeof(DeviceErrors) * static_cast<std::size_t>(problem.count))
                : nullptr;
    results_ = results;
    const MatrixBytes bytes = bytes_of(plan, arrays, looks);
    const SubChunks cut = cut_chunk(problem, bytes, info().limits, problem.count,
                                    std::numeric_limits<std::size_t>::max(), /*most_sets=*/1);
    bool is_first = true;  // later parts use its memory again; where it was too much, pieces may do
    work_.in_parts(problem.count, cut.matrices, item(problem), [&](index_t first, index_t count) {
      if (std::exchange(is_first, false)) work_.expect(bytes.total(count));
      DeviceBuffers buffers = place(plan, bytes, arrays, first, count);
      if (!is_prepared_) {
        engine().prepare(variant, buffers, is_checked, /*is_copied=*/false);
        engine().prepare_refused(variant, buffers.job, /*builds=*/false);
        is_prepared_ = true;
      }
      take_inputs(arrays, std::span(job_arrays).first(1), first, buffers);
      engine().factor(variant, buffers.job);
      if (is_checked) engine().check(buffers, variant.checks_by_vectors);
      if (looks == Looks::at_range) {
        Launcher launch = engine().launcher(range_source(problem));
        enqueue_range(buffers.job, buffers.errors, *engine().compute, launch);
        if (arrays.statuses != nullptr)
          enqueue_statuses(buffers.errors,
                           Buffer::of_caller(arrays.statuses + first,
                                             sizeof(int) * static_cast<std::size_t>(count)),
                           count, launch);
      }
      give_outputs(arrays, first, buffers);
      if (results != nullptr) read_errors(buffers, first, results);
    });
  });
}

MatrixReport EngineOnStream::report(index_t matrix) const {
  const DeviceErrors& errors = found(plan_->problem.count)[static_cast<std::size_t>(matrix)];
  return looks_ == Looks::at_errors ? judge_device(plan_->problem, errors)
                                    : unchecked_report(errors);
}

std::vector<StreamEngine::Found> EngineOnStream::measure(void* stream, const Problem& problem,
                                                         const FactorArrays& arrays) {
  Plan plan;
  plan.problem = problem;
  MatrixBytes bytes{.io = matrix_io_bytes(problem), .work = {}, .check = check_workspace(problem)};
  for (std::size_t i = 0; i < job_arrays.size(); ++i)
    if (is_used(arrays.*job_arrays[i].of_call)) bytes.io[i] = 0;
  bytes.io[sums_entry] = 0;
  work_.run(stream, "in its work on arrays", [&] {
    std::byte* const results =
        work_.results(sizeof(DeviceErrors) * static_cast<std::size_t>(problem.count));
    results_ = results;
    const SubChunks cut = cut_chunk(problem, bytes, info().limits, problem.count,
                                    std::numeric_limits<std::size_t>::max(), /*most_sets=*/1);
    work_.in_parts(problem.count, cut.matrices, item(problem), [&](index_t first, index_t count) {
      DeviceBuffers buffers = place(plan, bytes, arrays, first, count);
      if (!measured_ || *measured_ != problem)
        engine().session.programs.prepare(
            std::array{engine().wanted_by_check(buffers, /*by_vectors=*/false)});
      measured_ = problem;
      take_inputs(arrays, job_arrays, first, buffers);
      Launcher launch = engine().launcher(range_source(problem));
      enqueue_magnitudes(buffers.job, *engine().compute, launch);
      engine().check(buffers, /*by_vectors=*/false);
      read_errors(buffers, first, results);
    });
  });
  work_.wait();
  std::vector<Found> all;
  for (const DeviceErrors& measured : found(problem.count)) {
    const DeviceErrors one = in_float64(measured);
    const MatrixReport line = unchecked_report(one);
    Found result{line.status != Status::non_finite, {}};
    result.errors.scale = line.scale;
    if (line.status == Status::unchecked && std::isfinite(one.residual))
      result.errors = {one.residual,       one.orthogonality, one.lower,
                       one.diagonal_ratio, one.norm,          line.scale};
    all.push_back(result);
  }
  return all;
}

}  // namespace

const CallerArrays* caller_arrays_of(OpenclBackend& backend) {
  return backend.engine().session.context->caller_arrays();
}

std::unique_ptr<StreamEngine> make_stream_engine(OpenclBackend& backend,
                                                 const StreamAllocator& allocator) {
  FactorEngine& engine = backend.engine();
  const DriverScope driver;
  try {
    return std::make_unique<EngineOnStream>(engine.info, engine.session, allocator);
  } catch (const DeviceFailure& failure) {
    throw_device_error(failure, engine.info, "to start");
  }
}

}  // namespace qrtool
