// SPDX-License-Identifier: Apache-2.0
// measure_matrices.cpp: stored factors of matrices that fit the memory: read | measure | hand on, a
// chunk of matrices at a time.
#include <vector>

#include "app/run/measure/measure.hpp"
#include "app/run/pipeline/pipeline.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/machine/parallel.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool {
namespace {

/// Measures matrices in chunks. T is double, or a complex type of it.
template <class T>
using MeasuredChunk = Chunk<T, std::vector<Measurement>>;

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
  std::vector<FactorsMeter<T>> meters;  // one per thread

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
      chunk.found[static_cast<std::size_t>(i)] =
          meters[static_cast<std::size_t>(worker)].measure(chunk.first + i, given(chunk, i));
    });
  }
  /// Returns matrix number i of the chunk, with its columns in the order of P.
  GivenFactors<T> given(MeasuredChunk<T>& chunk, index_t i) const {
    GivenFactors<T> factors{.a = chunk.a.view()[i], .q = chunk.q.view()[i], .r = chunk.r.view()[i]};
    if (input.has_reflectors()) factors.v = chunk.v.view()[i];
    if (input.has_reflectors()) factors.tau = chunk.tau.view()[i].data;
    if (input.factors.p)
      permute_columns<T>(chunk.a.view()[i],
                         stored_permutation(input, chunk.p.view()[i].data, chunk.first + i));
    return factors;
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
  MeasureSteps<T> steps{.input = input, .plan = plan, .listener = listener, .meters = {}};
  for (int i = 0; i < plan.threads; ++i)
    steps.meters.emplace_back(input.factors_shape(plan.threads_per_matrix), plan.check, bars_of);
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
