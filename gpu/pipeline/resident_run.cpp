// SPDX-License-Identifier: Apache-2.0
// resident_run.cpp: repeated runs on data that stays on the device.
#include <limits>

#include "core/error.hpp"
#include "gpu/check/host_check.hpp"
#include "gpu/pipeline/flights.hpp"
#include "gpu/pipeline/opencl_backend.hpp"
#include "gpu/registry.hpp"

namespace qrtool {

struct ResidentRun::State {
  State(FactorEngine& used_engine, const Plan& used_plan, const BatchView<const std::byte>& a)
      : engine(used_engine),
        plan(used_plan),
        variant(gpu_variant(*plan.variant)),
        pool(*engine.session.context),
        count(a.count) {
    if (static_cast<std::size_t>(a.rows * a.cols) != plan.problem.input_bytes())
      throw InternalError("a resident run has matrices of another type than its plan");
    const MatrixBytes bytes = matrix_bytes(variant, plan.problem);
    const SubChunks cut = cut_chunk(plan.problem, bytes, engine.info.limits, count,
                                    std::numeric_limits<std::size_t>::max());
    if (cut.matrices < count) {
      throw LimitError("the batch does not fit " + engine.info.text() + " at once");
    }
    engine.guarded("in an upload",
                   "the batch does not fit the free memory of " + engine.info.text(), [&] {
                     buffers.emplace(pool.get(plan.problem, plan.params, bytes, count, 0));
                     for (index_t b = 0; b < count; ++b) upload(a, b);
                     engine.upload->finish();
                   });
  }

  void upload(const BatchView<const std::byte>& a, index_t b) {
    const std::size_t bytes = plan.problem.input_bytes();
    if (a.is_packed()) {
      if (b == 0) write(0, bytes * static_cast<std::size_t>(count), a.data);
      return;
    }
    const auto row = static_cast<std::size_t>(a.cols);
    for (index_t i = 0; i < a.rows; ++i) {
      write(static_cast<std::size_t>(b) * bytes + static_cast<std::size_t>(i) * row, row,
            &a[b](i, 0));
    }
  }

  /// The errors that the check has measured.
  std::vector<MatrixReport> read_errors() const {
    std::vector<MatrixReport> lines;
    for (const DeviceErrors& one :
         engine.compute->read_list<DeviceErrors>(buffers->errors, static_cast<std::size_t>(count)))
      lines.push_back(judge_device(plan.problem, one));
    return lines;
  }
  /// Builds the kernels before the first run.
  void prepare() {
    if (!is_prepared) engine.prepare(variant, *buffers, /*is_checked=*/true);
    is_prepared = true;
  }

  /// Sets every byte of the results to that of a NaN, so that a run which does not write a result
  /// cannot pass with the result of the previous run. The host enqueues the run during this time.
  void poison_results() const {
    const FactorJob& job = buffers->job;
    for (const Buffer& result : {job.q, job.r, job.v, job.tau}) {
      if (result) engine.compute->fill(result, nan_word, result.bytes());
    }
  }

  void write(std::size_t offset, std::size_t bytes, const void* data) const {
    if (bytes > 0) engine.upload->start_write(buffers->job.a, data, {offset, bytes});
  }

  FactorEngine& engine;
  const Plan& plan;
  const GpuVariant& variant;
  BufferPool pool;
  index_t count;
  bool is_prepared = false;
  std::optional<DeviceBuffers> buffers;
};

ResidentRun::ResidentRun(OpenclBackend& backend, const Plan& plan,
                         const BatchView<const std::byte>& a)
    : state_(std::make_unique<State>(*backend.engine_, plan, a)) {}

ResidentRun::~ResidentRun() = default;

ResidentRun::Seconds ResidentRun::run() {
  State& s = *state_;
  Event begun, factored, checked;
  s.engine.guarded("in a run", "", [&] {
    s.prepare();
    s.poison_results();
    begun = s.engine.compute->mark();
    s.engine.factor(s.variant, s.buffers->job);
    factored = s.engine.compute->mark();
    s.engine.check(*s.buffers, s.variant.checks_by_vectors);
    checked = s.engine.compute->mark();
    s.engine.compute->finish();
  });
  return {seconds_between(begun, factored), seconds_between(factored, checked)};
}

std::vector<MatrixReport> ResidentRun::report() const {
  const State& s = *state_;
  const FactorJob& job = s.buffers->job;
  const Buffer* routes = s.variant.routes == nullptr ? nullptr : s.variant.routes(job);
  std::vector<int> taken(static_cast<std::size_t>(s.count), static_cast<int>(Route::only));
  std::vector<MatrixReport> lines;
  s.engine.guarded("in a download", "", [&] {
    if (routes != nullptr)
      s.engine.compute->read(*routes, taken.data(), sizeof(int) * taken.size());
    lines = s.read_errors();
  });
  for (std::size_t b = 0; b < lines.size(); ++b) lines[b].route = static_cast<Route>(taken[b]);
  return lines;
}

double device_moved_bytes_per_second(OpenclBackend& backend, std::size_t bytes) {
  FactorEngine& engine = backend.engine();
  bytes = std::min(bytes, engine.info.limits.max_allocation_bytes / 2);
  double least = std::numeric_limits<double>::infinity();
  engine.guarded("in a copy", "", [&] {
    const Buffer from = engine.session.context->allocate(bytes);
    const Buffer to = engine.session.context->allocate(bytes);
    engine.compute->fill(from, 1, bytes / 4 * 4);
    for (int turn = 0; turn < 4; ++turn) {  // the first is slower
      const Event begun = engine.compute->mark();
      engine.compute->copy(from, 0, to, 0, bytes);
      const Event copied = engine.compute->mark();
      copied->wait();
      if (turn > 0) least = std::min(least, seconds_between(begun, copied));
    }
  });
  return 2 * static_cast<double>(bytes) / least;
}

void flush_device_caches(OpenclBackend& backend) {
  // Drivers count levels of caches differently, so that what they say serves only where it is more.
  constexpr std::size_t usual_bytes = std::size_t{256} << 20;
  FactorEngine& engine = backend.engine();
  const std::size_t bytes = std::min(std::max(usual_bytes, 4 * engine.info.cache_bytes),
                                     engine.info.limits.max_allocation_bytes / 4 * 4);
  engine.guarded("while its caches were flushed", "", [&] {
    const Buffer buffer = engine.session.context->allocate(bytes);
    engine.compute->fill(buffer, 1, bytes);
    engine.compute->finish();
  });
}

}  // namespace qrtool
