// SPDX-License-Identifier: Apache-2.0
// measure_matrices.cpp: stored factors of matrices that fit the memory: read | measure | hand on, a
// chunk of matrices at a time.
#include <vector>

#include "app/run/chunk.hpp"
#include "app/run/measure_ways.hpp"
#include "app/run/stages.hpp"
#include "core/cpu/reference/form_q.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/measure/magnitude.hpp"
#include "core/parallel.hpp"

namespace qrtool {
namespace {

using MeasuredChunk = Chunk<double, std::vector<Measurement>>;

/// Measures the matrices of one thread.
class Worker {
 public:
  Worker(const FactoredInput& input, const BarsOf& bars_of, const MeasurePlan& plan)
      : input_(input),
        bars_of_(bars_of),
        finder_(input.shape(plan.threads_per_matrix), plan.check) {
    const Source& a = input.a.source();
    if (!input.has_reflectors()) return;
    formed_q_ = Batch<double>(1, a.m, input.k());
    upper_ = Batch<double>(1, input.k(), a.n);
  }

  /// Matrix number i of the chunk.
  void measure(MeasuredChunk& chunk, index_t i) {
    const MatrixView<double> a = chunk.a.view()[i];
    MatrixView<double> q = chunk.q.view()[i], r = chunk.r.view()[i];
    if (input_.has_reflectors()) {
      const MatrixView<double> v = chunk.v.view()[i];
      form_q_from_reflectors<double>(v, chunk.tau.view()[i].data, formed_q_.view()[0]);
      q = formed_q_.view()[0];
      r = upper_part(v);
    }
    if (input_.factors.p)
      permute_columns<double>(a,
                              stored_permutation(input_, chunk.p.view()[i].data, chunk.first + i));
    Measurement& result = chunk.found[static_cast<std::size_t>(i)];
    result = {.matrix = chunk.first + i, .errors = {}};
    const Magnitude magnitude = magnitude_of<double>(a);
    result.errors.scale = magnitude.scale();
    const bool factors_are_finite =
        magnitude_of<double>(q).finite && magnitude_of<double>(r).finite;
    if (magnitude.finite && factors_are_finite)
      result.errors = finder_.find<double>(a, q, r, magnitude.scale(), bars_of_);
    judge_measurement(result, magnitude.finite, bars_of_, input_.has_q());
  }

 private:
  /// R of the packed V\R.
  MatrixView<double> upper_part(MatrixView<double> v) const {
    const MatrixView<double> r = upper_.view()[0];
    for (index_t i = 0; i < r.rows; ++i)
      for (index_t j = 0; j < r.cols; ++j) r(i, j) = i <= j ? v(i, j) : 0.0;
    return r;
  }

  const FactoredInput& input_;
  const BarsOf& bars_of_;
  ErrorFinder finder_;
  Batch<double> formed_q_, upper_;
};

Batch<double> allocate_for(const std::unique_ptr<Reader>& reader, index_t matrices) {
  if (reader == nullptr) return {};
  return {matrices, reader->source().m, reader->source().n};
}

MeasuredChunk allocate_chunk(const FactoredInput& input, index_t matrices) {
  const StoredFactors& f = input.factors;
  MeasuredChunk chunk;
  chunk.a = Batch<double>(matrices, input.a.source().m, input.a.source().n);
  chunk.q = allocate_for(f.q, matrices);
  chunk.r = allocate_for(f.r, matrices);
  chunk.p = allocate_for(f.p, matrices);
  if (input.has_reflectors()) chunk.v = allocate_for(f.v, matrices);
  if (input.has_reflectors()) chunk.tau = allocate_for(f.tau, matrices);
  chunk.found.resize(static_cast<std::size_t>(matrices));
  return chunk;
}

/// The steps for run_stages().
struct MeasureSteps {
  const FactoredInput& input;
  const MeasurePlan& plan;
  const Listener& listener;
  std::vector<Worker> workers;  // one per thread

  index_t count() const { return input.a.source().count(); }

  void begin(MeasuredChunk& chunk, index_t number) const {
    chunk.first = number * plan.chunk_matrices;
    chunk.count = std::min(plan.chunk_matrices, count() - chunk.first);
  }
  void read(MeasuredChunk& chunk) {
    const auto read_part = [&](Reader& reader, const Batch<double>& part) {
      reader.read(chunk.first, chunk.matrices(part));
    };
    const StoredFactors& f = input.factors;
    read_part(input.a, chunk.a);
    if (f.q) read_part(*f.q, chunk.q);
    if (f.r) read_part(*f.r, chunk.r);
    if (f.p) read_part(*f.p, chunk.p);
    if (input.has_reflectors()) read_part(*f.v, chunk.v);
    if (input.has_reflectors()) read_part(*f.tau, chunk.tau);
  }
  void work(MeasuredChunk& chunk) {
    parallel_for(chunk.count, plan.threads, [&](index_t i, int worker) {
      workers[static_cast<std::size_t>(worker)].measure(chunk, i);
    });
  }
  void keep(MeasuredChunk& chunk) {
    listener.found({chunk.found.data(), static_cast<std::size_t>(chunk.count)});
    listener.done(chunk.count);
  }
};

}  // namespace

StageSeconds measure_matrices(const FactoredInput& input, const MeasurePlan& plan,
                              const BarsOf& bars_of, const Listener& listener) {
  std::vector<MeasuredChunk> chunks;
  for (int i = 0; i < plan.buffers; ++i)
    chunks.push_back(allocate_chunk(input, plan.chunk_matrices));
  MeasureSteps steps{.input = input, .plan = plan, .listener = listener, .workers = {}};
  for (int i = 0; i < plan.threads; ++i) steps.workers.emplace_back(input, bars_of, plan);
  const index_t numbers = (steps.count() + plan.chunk_matrices - 1) / plan.chunk_matrices;
  return run_stages(numbers, chunks, steps);
}

}  // namespace qrtool
