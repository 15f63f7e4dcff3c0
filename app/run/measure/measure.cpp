// SPDX-License-Identifier: Apache-2.0
// measure.cpp: whether factors fit their matrices, and how they are measured in a given memory.
#include "app/run/measure/measure.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/factor/rank_and_order.hpp"
#include "core/join.hpp"
#include "core/machine/host.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/wide_residual.hpp"
#include "core/text.hpp"
#include "io/open/formats.hpp"

namespace qrtool {
namespace {

// The bytes of a chunk, which hide the cost of a read. Larger chunks would only use memory that
// others need.
constexpr std::size_t chunk_target_bytes = std::size_t{64} << 20;

/// Returns the bytes of a matrix of float64, or of pairs of it if A is complex.
std::size_t bytes_of(const FactoredInput& input, index_t rows, index_t cols) {
  return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) *
         size_of(input.is_complex() ? ElementType::complex128 : ElementType::float64);
}

/// Returns the stored dimensions of a vector, which is read as matrices of one row.
std::vector<index_t> vector_dims(const Reader& reader) {
  std::vector<index_t> dims = reader.source().leading;
  dims.push_back(reader.source().n);
  return dims;
}

std::string shape_text(const Reader& reader) {
  const Source& s = reader.source();
  return format_shape(s.leading, s.m, s.n);
}

std::size_t matrix_bytes(const FactoredInput& input) {
  const Source& s = input.a.source();
  std::size_t bytes = bytes_of(input, s.m, s.n) + sizeof(Measurement);
  if (input.has_reflectors())
    return bytes + bytes_of(input, s.m, s.n) + bytes_of(input, 1, input.k());
  if (input.has_q()) bytes += bytes_of(input, s.m, input.q_cols());
  if (input.factors.p) bytes += bytes_of(input, 1, s.n);
  return bytes + bytes_of(input, input.r_rows(), s.n);
}

/// Returns the memory that the readers need for themselves. Every number is read as float64.
std::size_t reading_bytes(const FactoredInput& input) {
  const StoredFactors& f = input.factors;
  std::size_t bytes = input.a.workspace_bytes(ElementType::float64);
  for (const Reader* reader : {f.q.get(), f.r.get(), f.p.get(), f.v.get(), f.tau.get()})
    if (reader != nullptr) bytes += reader->workspace_bytes(ElementType::float64);
  return bytes;
}

/// Returns the bytes of a worker whose matrix `threads` threads share.
std::size_t worker_bytes(const FactoredInput& input, Check check, int threads) {
  const FactorsShape shape = input.factors_shape(threads);
  return input.is_complex() ? FactorsMeter<std::complex<double>>::workspace_bytes(shape, check)
                            : FactorsMeter<double>::workspace_bytes(shape, check);
}

[[noreturn]] void refuse(const FactoredInput& input, std::size_t needed, const Limits& limits) {
  const Source& s = input.a.source();
  throw LimitError(
      fmt::format("{}: measuring one {}x{} matrix needs {} of memory; the limit is {}",
                  escape(input.factors.file), s.m, s.n, format_bytes(needed + limits.file_bytes),
                  format_bytes(limits.host_bytes + limits.file_bytes)),
      hint_of_memory(needed + limits.file_bytes));
}

/// Returns the bytes that estimates need besides measuring, for which they may have to make room.
std::size_t estimate_bytes(const FactoredInput& input, index_t rows, int threads) {
  const ErrorFinder::Shape shape = input.shape(threads);
  return ErrorProbe::workspace_bytes(rows, shape.n, shape.q_cols, shape.r_rows, threads);
}

MeasurePlan plan_by_rows(const FactoredInput& input, Check check, const Limits& limits) {
  const Source& s = input.a.source();
  int threads = limits.threads;
  while (threads > 1 && worker_bytes(input, Check::full, threads) > limits.host_bytes / 2)
    --threads;
  const std::size_t worker = worker_bytes(input, Check::full, threads);
  if (worker > limits.host_bytes) refuse(input, worker, limits);
  const index_t tile = std::min(ErrorMeter::tile_rows(), std::max<index_t>(s.m, 1));
  const std::size_t row_bytes = bytes_of(input, 1, s.n + input.q_cols());
  const std::size_t fixed = worker + bytes_of(input, input.r_rows(), s.n);
  const std::size_t least = fixed + row_bytes * static_cast<std::size_t>(tile);
  if (least > limits.host_bytes) refuse(input, least, limits);
  const auto rows_in = [&](std::size_t room) {
    const std::size_t tile_bytes = row_bytes * static_cast<std::size_t>(tile);
    return tile * std::max<index_t>(1, std::min(room, chunk_target_bytes) / tile_bytes);
  };
  MeasurePlan plan{.by_rows = true,
                   .block_rows = rows_in(limits.host_bytes - fixed),
                   .threads_per_matrix = threads};
  if (check != Check::probe) return plan;
  const std::size_t estimates = estimate_bytes(input, plan.block_rows, threads);
  if (least + estimates > limits.host_bytes) return plan;
  plan.check = Check::probe;
  plan.block_rows = rows_in(limits.host_bytes - fixed - estimates);
  return plan;
}

/// Errors: InputError if A is complex and its factors are not, or the other way round.
void require_same_numbers(const FactoredInput& input) {
  const StoredFactors& f = input.factors;
  const std::pair<const char*, const Reader*> named[] = {
      {"Q", f.q.get()}, {"R", f.r.get()}, {"V", f.v.get()}, {"tau", f.tau.get()}};
  for (const auto& [name, reader] : named) {
    if (reader == nullptr || is_complex(reader->source().type) == input.is_complex()) continue;
    throw InputError(fmt::format("{}: A is {}, and {} is {}", escape(f.file),
                                 input.a.source().stored_type, name, reader->source().stored_type),
                     "store A and its factors with numbers of one kind, real or complex");
  }
  if (f.p != nullptr && is_complex(f.p->source().type))
    throw InputError(fmt::format("{}: P is {}; it numbers the columns of A", escape(f.file),
                                 f.p->source().stored_type));
}

}  // namespace

index_t FactoredInput::q_cols() const {
  if (has_reflectors()) return k();
  return factors.q ? factors.q->source().n : 0;
}

ErrorFinder::Shape FactoredInput::shape(int threads) const {
  return {a.source().m, a.source().n, q_cols(), r_rows(), threads, is_complex()};
}

index_t FactoredInput::r_rows() const { return has_reflectors() ? k() : factors.r->source().m; }

Precision FactoredInput::precision() const {
  if (factors.is_mixed) return mixed_precision;
  for (const Reader* reader : {factors.q.get(), factors.r.get(), factors.v.get()})
    if (reader != nullptr && real_of(reader->source().type) == ElementType::float32)
      return single_precision;
  return double_precision;
}

void check_shapes(const FactoredInput& input) {
  require_same_numbers(input);
  const Source& a = input.a.source();
  const StoredFactors& f = input.factors;
  const index_t k = input.k();
  // Text has one dimension for a batch, and none for a batch of one.
  const bool is_text = format_of_output(f.file).is_text;
  const auto fits = [&](const std::unique_ptr<Reader>& reader, index_t rows, index_t cols) {
    const Source& s = reader->source();
    const bool same_batch = is_text ? s.count() == a.count() : s.leading == a.leading;
    return same_batch && s.m == rows && s.n == cols;
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
      {"Q", f.q.get()}, {"R", f.r.get()}, {"P", f.p.get()}, {"V", f.v.get()}, {"tau", f.tau.get()}};
  for (const auto& [name, reader] : named)
    if (reader != nullptr)
      shapes +=
          fmt::format(", {} {}", name,
                      reader == f.tau.get() || reader == f.p.get() ? join(vector_dims(*reader), "x")
                                                                   : shape_text(*reader));
  // LAPACK's array by columns, which numpy.linalg.qr(mode='raw') gives as h.
  if (input.has_reflectors() && fits(f.v, a.n, a.m) && f.tau && fits(f.tau, 1, k))
    throw InputError(fmt::format("{}: the shapes do not fit: {}", escape(f.file), shapes),
                     "V looks like h of numpy.linalg.qr(mode='raw'), which is V transposed: save "
                     "numpy.swapaxes(h, -1, -2) as V, and tau as it is");
  throw InputError(fmt::format("{}: the shapes do not fit: {}", escape(f.file), shapes),
                   fmt::format("for this A reduced factors are Q {} and R {}",
                               format_shape(a.leading, a.m, k), format_shape(a.leading, k, a.n)));
}

MeasurePlan plan_measurement(const FactoredInput& input, Check check, Limits limits) {
  const std::size_t file_bytes = counted_file_bytes(reading_bytes(input), limits.host_bytes);
  if (file_bytes >= limits.host_bytes)
    throw LimitError(
        fmt::format("{} and {}: reading files takes {} of memory; the limit is {}",
                    escape(input.a.source().file), escape(input.factors.file),
                    format_bytes(reading_bytes(input)), format_bytes(limits.host_bytes)),
        hint_of_memory(reading_bytes(input)));
  limits.reserve_for_files(file_bytes);
  const index_t count = std::max<index_t>(1, input.a.source().count());
  const std::size_t per_matrix = matrix_bytes(input);
  const ErrorFinder::Shape shape = input.shape(1);
  MeasurePlan plan;
  const bool is_estimated = !shape.is_complex && ErrorProbe::pays(shape.m, shape.n, shape.q_cols);
  plan.check = is_estimated ? check : Check::full;
  plan.threads = static_cast<int>(std::min<index_t>(limits.threads, count));
  plan.threads_per_matrix = limits.threads / plan.threads;
  if (worker_bytes(input, plan.check, plan.threads_per_matrix) + per_matrix > limits.host_bytes)
    plan.threads_per_matrix = 1;
  const std::size_t per_worker = worker_bytes(input, plan.check, plan.threads_per_matrix);
  if (per_worker + per_matrix > limits.host_bytes) {
    const bool needs_all_rows = shape.q_cols == 0 && is_very_wide(shape.m, shape.n);
    if (input.has_reflectors() || needs_all_rows) refuse(input, per_worker + per_matrix, limits);
    return plan_by_rows(input, plan.check, limits);
  }
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

std::vector<index_t> stored_permutation(const FactoredInput& input, const double* numbers,
                                        index_t matrix) {
  return permutation_of(numbers, input.a.source().n, escape(input.factors.file) + ": P", matrix);
}

index_t work_of(const FactoredInput& input, const MeasurePlan& plan) {
  const Source& s = input.a.source();
  return plan.by_rows ? 2 * s.count() * s.m : s.count();
}

StageSeconds measure(const FactoredInput& input, const MeasurePlan& plan, const BarsOf& bars_of,
                     const Listener& listener) {
  if (input.a.source().count() == 0) return {};
  return (plan.by_rows ? measure_rows : measure_matrices)(input, plan, bars_of, listener);
}

}  // namespace qrtool
