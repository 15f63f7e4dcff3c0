// SPDX-License-Identifier: Apache-2.0
// measure.cpp: reads A and its factors as float64 and measures them, chunk by chunk or row by row.
#include "app/run/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "core/error.hpp"
#include "core/parallel.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

// As much as hides the cost of a read; more would only take memory from others.
constexpr std::size_t chunk_target_bytes = std::size_t{64} << 20;

std::size_t bytes_of(index_t rows, index_t cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) * sizeof(double);
}

std::string shape_text(const Reader& reader) {
  const Source& s = reader.source();
  return format_shape(s.leading, s.m, s.n);
}

/// A chunk of matrices with their factors; what is not stored stays empty.
struct Chunk {
  index_t first = 0, count = 0;
  Batch<double> a, q, r, v, tau;
  std::vector<Measurement> measured;
};

/// Measures the matrices of one thread.
class Worker {
 public:
  Worker(const FactoredInput& input, const BarsOf& bars_of)
      : has_reflectors_(input.has_reflectors()),
        has_q_(input.has_q()),
        bars_of_(bars_of),
        meter_(input.a.source().m, input.a.source().n, input.q_cols(), input.r_rows()) {
    const Source& a = input.a.source();
    if (!has_reflectors_) return;
    formed_q_ = Batch<double>(1, a.m, input.k());
    upper_ = Batch<double>(1, input.k(), a.n);
  }

  /// Matrix number i of the chunk.
  void measure(Chunk& chunk, index_t i) {
    const MatrixView<double> a = chunk.a.view()[i];
    MatrixView<double> q = chunk.q.view()[i], r = chunk.r.view()[i];
    if (has_reflectors_) {
      const MatrixView<double> v = chunk.v.view()[i];
      form_q_from_reflectors<double>(v, chunk.tau.view()[i].data, formed_q_.view()[0]);
      q = formed_q_.view()[0];
      r = upper_part(v);
    }
    Measurement& result = chunk.measured[static_cast<std::size_t>(i)];
    result = {.matrix = chunk.first + i, .errors = {}};
    const Magnitude magnitude = magnitude_of<double>(a);
    result.errors.scale = magnitude.scale();
    const bool factors_are_finite =
        magnitude_of<double>(q).finite && magnitude_of<double>(r).finite;
    if (magnitude.finite && factors_are_finite)
      result.errors = meter_.measure<double>(a, q, r, magnitude.scale());
    finish(result, magnitude.finite);
  }

  /// One matrix too large to be held, in two passes over A.
  Measurement measure_by_rows(const FactoredInput& input, index_t matrix, index_t block_rows) {
    const Source& s = input.a.source();
    Batch<double> a(1, block_rows, s.n), q(1, block_rows, input.q_cols());
    Batch<double> r(1, input.r_rows(), s.n);
    const auto for_each_block = [&](auto step) {
      for (index_t row = 0; row < s.m; row += block_rows) {
        const index_t rows = std::min(block_rows, s.m - row);
        const MatrixView<double> block = a.view()[0].row_block(0, rows);
        input.a.read_rows(matrix, row, block);
        step(row, block);
      }
    };
    Magnitude magnitude_a;
    for_each_block([&](index_t, MatrixView<double> block) {
      magnitude_a.include(magnitude_of<double>(block));
    });
    Measurement result{.matrix = matrix, .errors = {}};
    input.factors.r->read(matrix, r.view());
    Magnitude magnitude = magnitude_of<double>(r.view()[0]);
    if (magnitude_a.finite && magnitude.finite) {
      meter_.start<double>(r.view()[0], magnitude_a.scale());
      for_each_block([&](index_t row, MatrixView<double> block) {
        const MatrixView<double> q_block = q.view()[0].row_block(0, block.rows);
        if (has_q_) input.factors.q->read_rows(matrix, row, q_block);
        magnitude.include(magnitude_of<double>(q_block));
        meter_.add_rows<double>(block, q_block);
      });
      const Errors errors = meter_.finish();
      if (magnitude.finite) result.errors = errors;
    }
    finish(result, magnitude_a.finite);
    return result;
  }

 private:
  /// R of the packed V\R.
  MatrixView<double> upper_part(MatrixView<double> v) const {
    const MatrixView<double> r = upper_.view()[0];
    for (index_t i = 0; i < r.rows; ++i)
      for (index_t j = 0; j < r.cols; ++j) r(i, j) = i <= j ? v(i, j) : 0.0;
    return r;
  }

  void finish(Measurement& result, bool a_is_finite) const {
    result.bars = bars_of_(result.errors);
    result.status = a_is_finite ? judge(result.errors, result.bars, has_q_) : Status::non_finite;
  }

  bool has_reflectors_, has_q_;
  const BarsOf& bars_of_;
  ErrorMeter meter_;
  Batch<double> formed_q_, upper_;
};

std::size_t matrix_bytes(const FactoredInput& input) {
  const Source& s = input.a.source();
  std::size_t bytes = bytes_of(s.m, s.n) + sizeof(Measurement);
  if (input.has_reflectors()) return bytes + bytes_of(s.m, s.n) + bytes_of(1, input.k());
  if (input.has_q()) bytes += bytes_of(s.m, input.q_cols());
  return bytes + bytes_of(input.r_rows(), s.n);
}

std::size_t worker_bytes(const FactoredInput& input) {
  const Source& s = input.a.source();
  std::size_t bytes = ErrorMeter::workspace_bytes(s.m, s.n, input.q_cols(), input.r_rows());
  // Q and R from the reflectors, and what forming Q takes.
  if (input.has_reflectors()) bytes += 3 * bytes_of(s.m, input.k()) + bytes_of(input.k(), s.n);
  return bytes;
}

[[noreturn]] void refuse(const FactoredInput& input, std::size_t needed, const Limits& limits) {
  const Source& s = input.a.source();
  throw LimitError(fmt::format("{}: measuring one {}x{} matrix needs {} of memory; the limit is {}",
                               escape(input.factors.file), s.m, s.n, format_bytes(needed),
                               format_bytes(limits.host_bytes)),
                   "raise --memory");
}

MeasurePlan plan_by_rows(const FactoredInput& input, const Limits& limits) {
  const Source& s = input.a.source();
  if (worker_bytes(input) > limits.host_bytes) refuse(input, worker_bytes(input), limits);
  const ErrorMeter meter(1, s.n, input.q_cols(), std::min<index_t>(input.r_rows(), 1));
  const index_t tile = std::min(meter.tile_rows(), std::max<index_t>(s.m, 1));
  const std::size_t row_bytes = bytes_of(1, s.n + input.q_cols());
  const std::size_t fixed = worker_bytes(input) + bytes_of(input.r_rows(), s.n);
  const std::size_t least = fixed + row_bytes * static_cast<std::size_t>(tile);
  if (least > limits.host_bytes) refuse(input, least, limits);
  const std::size_t room = std::min(limits.host_bytes - fixed, chunk_target_bytes);
  const index_t tiles = std::max<index_t>(1, room / (row_bytes * static_cast<std::size_t>(tile)));
  return {.by_rows = true, .block_rows = tiles * tile};
}

Batch<double> allocate_for(const std::unique_ptr<Reader>& reader, index_t matrices) {
  if (reader == nullptr) return {};
  return {matrices, reader->source().m, reader->source().n};
}

Chunk allocate_chunk(const FactoredInput& input, index_t matrices) {
  const StoredFactors& f = input.factors;
  Chunk chunk;
  chunk.a = Batch<double>(matrices, input.a.source().m, input.a.source().n);
  chunk.q = allocate_for(f.q, matrices);
  chunk.r = allocate_for(f.r, matrices);
  if (input.has_reflectors()) chunk.v = allocate_for(f.v, matrices);
  if (input.has_reflectors()) chunk.tau = allocate_for(f.tau, matrices);
  chunk.measured.resize(static_cast<std::size_t>(matrices));
  return chunk;
}

void read_chunk(const FactoredInput& input, Chunk& chunk) {
  const auto read = [&](Reader& reader, const Batch<double>& batch) {
    reader.read(chunk.first, batch.view().slice(0, chunk.count));
  };
  read(input.a, chunk.a);
  if (input.factors.q) read(*input.factors.q, chunk.q);
  if (input.factors.r) read(*input.factors.r, chunk.r);
  if (input.has_reflectors()) read(*input.factors.v, chunk.v);
  if (input.has_reflectors()) read(*input.factors.tau, chunk.tau);
}

StageSeconds measure_chunks(const FactoredInput& input, const MeasurePlan& plan,
                            const BarsOf& bars_of, const Sink& sink) {
  std::vector<Chunk> chunks;
  for (int i = 0; i < plan.buffers; ++i)
    chunks.push_back(allocate_chunk(input, plan.chunk_matrices));
  std::vector<Worker> workers;
  for (int i = 0; i < plan.threads; ++i) workers.emplace_back(input, bars_of);

  const index_t count = input.a.source().count();
  index_t next = 0;
  const auto read = [&](Chunk& chunk) {
    chunk.first = next;
    chunk.count = std::min(plan.chunk_matrices, count - next);
    if (chunk.count == 0) return false;
    next += chunk.count;
    read_chunk(input, chunk);
    return true;
  };
  const auto work = [&](Chunk& chunk) {
    parallel_for(chunk.count, plan.threads, [&](index_t i, int worker) {
      workers[static_cast<std::size_t>(worker)].measure(chunk, i);
    });
  };
  const auto hand_on = [&](Chunk& chunk) {
    sink({chunk.measured.data(), static_cast<std::size_t>(chunk.count)});
  };
  return run_pipeline(chunks, read, work, hand_on);
}

}  // namespace

index_t FactoredInput::q_cols() const {
  if (has_reflectors()) return k();
  return factors.q ? factors.q->source().n : 0;
}

index_t FactoredInput::r_rows() const { return has_reflectors() ? k() : factors.r->source().m; }

Precision FactoredInput::precision() const {
  if (factors.is_mixed) return mixed_precision;
  for (const Reader* reader : {factors.q.get(), factors.r.get(), factors.v.get()})
    if (reader != nullptr && reader->source().type == ElementType::float32) return single_precision;
  return double_precision;
}

void check_shapes(const FactoredInput& input) {
  const Source& a = input.a.source();
  const StoredFactors& f = input.factors;
  const index_t k = input.k();
  const auto fits = [&](const std::unique_ptr<Reader>& reader, index_t rows, index_t cols) {
    const Source& s = reader->source();
    return s.leading == a.leading && s.m == rows && s.n == cols;
  };
  bool ok = false;
  if (input.has_reflectors()) {
    ok = fits(f.v, a.m, a.n) && f.tau && fits(f.tau, 1, k);
  } else if (f.q) {
    ok = (fits(f.q, a.m, k) && fits(f.r, k, a.n)) || (fits(f.q, a.m, a.m) && fits(f.r, a.m, a.n));
  } else {
    ok = fits(f.r, k, a.n) || fits(f.r, a.m, a.n);
  }
  if (ok) return;

  std::string shapes = "A is " + shape_text(input.a);
  const std::pair<const char*, const Reader*> named[] = {
      {"Q", f.q.get()}, {"R", f.r.get()}, {"V", f.v.get()}, {"tau", f.tau.get()}};
  for (const auto& [name, reader] : named)
    if (reader != nullptr) shapes += fmt::format(", {} {}", name, shape_text(*reader));
  const bool looks_transposed = f.q && f.q->source().n == a.m && f.q->source().m == k;
  std::string hint = looks_transposed ? fmt::format("Q looks transposed; try --order {}",
                                                    a.order == Order::column ? "row" : "column")
                                      : fmt::format("for this A reduced factors are Q {} and R {}",
                                                    format_shape(a.leading, a.m, k),
                                                    format_shape(a.leading, k, a.n));
  throw InputError(fmt::format("{}: the shapes do not fit: {}", escape(f.file), shapes), hint);
}

MeasurePlan plan_measurement(const FactoredInput& input, const Limits& limits) {
  const index_t count = std::max<index_t>(1, input.a.source().count());
  const std::size_t per_matrix = matrix_bytes(input), per_worker = worker_bytes(input);
  if (per_worker + per_matrix > limits.host_bytes) {
    if (input.has_reflectors()) refuse(input, per_worker + per_matrix, limits);
    return plan_by_rows(input, limits);
  }
  MeasurePlan plan;
  plan.threads = static_cast<int>(std::min<index_t>(limits.threads, count));
  while (plan.threads > 1 &&
         (per_worker + per_matrix) * static_cast<std::size_t>(plan.threads) > limits.host_bytes / 2)
    --plan.threads;
  const std::size_t room = limits.host_bytes - per_worker * static_cast<std::size_t>(plan.threads);
  plan.buffers = per_matrix <= room / 3 ? 3 : 1;
  const std::size_t chunk_bytes =
      std::min(room / static_cast<std::size_t>(plan.buffers), chunk_target_bytes);
  plan.chunk_matrices = std::clamp<index_t>(chunk_bytes / per_matrix, 1, count);
  return plan;
}

StageSeconds measure(const FactoredInput& input, const MeasurePlan& plan, const BarsOf& bars_of,
                     const Sink& sink) {
  const index_t count = input.a.source().count();
  if (count == 0) return {};
  if (!plan.by_rows) return measure_chunks(input, plan, bars_of, sink);
  const Stopwatch watch;
  Worker worker(input, bars_of);
  for (index_t b = 0; b < count; ++b) {
    const Measurement result = worker.measure_by_rows(input, b, plan.block_rows);
    sink({&result, 1});
  }
  return {.work = watch.seconds()};
}

}  // namespace qrtool
