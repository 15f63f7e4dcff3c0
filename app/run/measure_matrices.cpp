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

/// T is double, or complex numbers of it.
template <class T>
using MeasuredChunk = Chunk<T, std::vector<Measurement>>;

/// Measures the matrices of one thread.
template <class T>
class Worker {
 public:
  Worker(const FactoredInput& input, const BarsOf& bars_of, const MeasurePlan& plan)
      : input_(input),
        bars_of_(bars_of),
        finder_(input.shape(plan.threads_per_matrix), plan.check) {
    const Source& a = input.a.source();
    if (!input.has_reflectors()) return;
    formed_q_ = Batch<T>(1, a.m, input.k());
    upper_ = Batch<T>(1, input.k(), a.n);
  }

  /// Matrix number i of the chunk.
  void measure(MeasuredChunk<T>& chunk, index_t i) {
    const MatrixView<T> a = chunk.a.view()[i];
    MatrixView<T> q = chunk.q.view()[i], r = chunk.r.view()[i];
    if (input_.has_reflectors()) {
      const MatrixView<T> v = chunk.v.view()[i];
      form_q_from_reflectors<T>(v, chunk.tau.view()[i].data, formed_q_.view()[0]);
      q = formed_q_.view()[0];
      r = upper_part(v);
    }
    if (input_.factors.p)
      permute_columns<T>(a, stored_permutation(input_, chunk.p.view()[i].data, chunk.first + i));
    Measurement& result = chunk.found[static_cast<std::size_t>(i)];
    result = {.matrix = chunk.first + i, .errors = {}};
    const Magnitude magnitude = magnitude_of<T>(a);
    result.errors.scale = magnitude.scale();
    const bool factors_are_finite = magnitude_of<T>(q).finite && magnitude_of<T>(r).finite;
    if (magnitude.finite && factors_are_finite)
      result.errors = finder_.find<T>(a, q, r, magnitude.scale(), bars_of_);
    judge_measurement(result, magnitude.finite, bars_of_, input_.has_q());
  }

 private:
  /// R of the packed V\R.
  MatrixView<T> upper_part(MatrixView<T> v) const {
    const MatrixView<T> r = upper_.view()[0];
    for (index_t i = 0; i < r.rows; ++i)
      for (index_t j = 0; j < r.cols; ++j) r(i, j) = i <= j ? v(i, j) : T(0);
    return r;
  }

  const FactoredInput& input_;
  const BarsOf& bars_of_;
  ErrorFinder finder_;
  Batch<T> formed_q_, upper_;
};

template <class T>
Batch<T> allocate_for(const std::unique_ptr<Reader>& reader, index_t matrices) {
  if (reader == nullptr) return {};
  return {matrices, reader->source().m, reader->source().n};
}

template <class T>
MeasuredChunk<T> allocate_chunk(const FactoredInput& input, index_t matrices) {
  const StoredFactors& f = input.factors;
  MeasuredChunk<T> chunk;
  chunk.a = Batch<T>(matrices, input.a.source().m, input.a.source().n);
  chunk.q = allocate_for<T>(f.q, matrices);
  chunk.r = allocate_for<T>(f.r, matrices);
  chunk.p = allocate_for<double>(f.p, matrices);
  if (input.has_reflectors()) chunk.v = allocate_for<T>(f.v, matrices);
  if (input.has_reflectors()) chunk.tau = allocate_for<T>(f.tau, matrices);
  chunk.found.resize(static_cast<std::size_t>(matrices));
  return chunk;
}

/// The steps for run_stages().
template <class T>
struct MeasureSteps {
  const FactoredInput& input;
  const MeasurePlan& plan;
  const Listener& listener;
  std::vector<Worker<T>> workers;  // one per thread

  index_t count() const { return input.a.source().count(); }

  void begin(MeasuredChunk<T>& chunk, index_t number) const {
    chunk.first = number * plan.chunk_matrices;
    chunk.count = std::min(plan.chunk_matrices, count() - chunk.first);
  }
  void read(MeasuredChunk<T>& chunk) {
    const auto read_part = [&](Reader& reader, const auto& part) {
      reader.read(chunk.first, interleaved(chunk.matrices(part)));
    };
    const StoredFactors& f = input.factors;
    read_part(input.a, chunk.a);
    if (f.q) read_part(*f.q, chunk.q);
    if (f.r) read_part(*f.r, chunk.r);
    if (f.p) read_part(*f.p, chunk.p);
    if (input.has_reflectors()) read_part(*f.v, chunk.v);
    if (input.has_reflectors()) read_part(*f.tau, chunk.tau);
  }
  void work(MeasuredChunk<T>& chunk) {
    parallel_for(chunk.count, plan.threads, [&](index_t i, int worker) {
      workers[static_cast<std::size_t>(worker)].measure(chunk, i);
    });
  }
  void keep(MeasuredChunk<T>& chunk) {
    listener.found({chunk.found.data(), static_cast<std::size_t>(chunk.count)});
    listener.done(chunk.count);
  }
};

template <class T>
StageSeconds measure_as(const FactoredInput& input, const MeasurePlan& plan, const BarsOf& bars_of,
                        const Listener& listener) {
  std::vector<MeasuredChunk<T>> chunks;
  for (int i = 0; i < plan.buffers; ++i)
    chunks.push_back(allocate_chunk<T>(input, plan.chunk_matrices));
  MeasureSteps<T> steps{.input = input, .plan = plan, .listener = listener, .workers = {}};
  for (int i = 0; i < plan.threads; ++i) steps.workers.emplace_back(input, bars_of, plan);
  const index_t numbers = (steps.count() + plan.chunk_matrices - 1) / plan.chunk_matrices;
  return run_stages(numbers, chunks, steps);
}

}  // namespace

StageSeconds measure_matrices(const FactoredInput& input, const MeasurePlan& plan,
                              const BarsOf& bars_of, const Listener& listener) {
  return input.is_complex() ? measure_as<std::complex<double>>(input, plan, bars_of, listener)
                            : measure_as<double>(input, plan, bars_of, listener);
}

}  // namespace qrtool
