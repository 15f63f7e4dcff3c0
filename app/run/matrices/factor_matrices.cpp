// SPDX-License-Identifier: Apache-2.0
// factor_matrices.cpp: read | factor and check | write.
#include "app/run/matrices/factor_matrices.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

#include "core/machine/comm.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {
namespace {

template <class T, class U>
BatchView<U> part_of(const MatrixChunk<T>& chunk, const Batch<U>& part) {
  return part.view().data == nullptr ? BatchView<U>{} : chunk.matrices(part);
}

}  // namespace

template <class T>
Factors<T> factors_of(const MatrixChunk<T>& chunk) {
  return {.q = part_of(chunk, chunk.q),
          .r = part_of(chunk, chunk.r),
          .v = part_of(chunk, chunk.v),
          .tau = part_of(chunk, chunk.tau),
          .p = part_of(chunk, chunk.p)};
}

template <class T>
std::span<MatrixReport> lines_of(MatrixChunk<T>& chunk) {
  return {chunk.found.data(), static_cast<std::size_t>(chunk.count)};
}

template <class T>
MatrixChunk<T> allocate_matrices(Backend& backend, const Plan& plan) {
  const Problem& p = plan.problem;
  const index_t matrices = plan.chunk_matrices;
  const auto allocate = [&](index_t rows, index_t cols) {
    const auto bytes = static_cast<std::size_t>(matrices * rows * cols) * sizeof(T);
    return Batch<T>(backend.allocate(bytes), matrices, rows, cols);
  };
  MatrixChunk<T> chunk;
  chunk.a = allocate(p.m, p.n);
  if (p.wants_q()) chunk.q = allocate(p.m, p.q_cols());
  if (p.mode != Mode::raw) chunk.r = allocate(p.r_rows(), p.n);
  if (p.mode == Mode::raw) chunk.v = allocate(p.m, p.n);
  if (p.mode == Mode::raw) chunk.tau = allocate(1, p.k());
  if (p.pivots) chunk.p = Batch<double>(matrices, 1, p.n);
  chunk.found.resize(static_cast<std::size_t>(matrices));
  return chunk;
}

void add_to_verdict(Verdict& verdict, const Problem& problem, index_t first,
                    std::span<const MatrixReport> lines) {
  for (const MatrixReport& line : lines) {
    verdict.add(judged(
        {.matrix = first, .status = line.status, .errors = errors_of(line), .bars = line.bars},
        problem.mode != Mode::r));
    verdict.routes.include(line);
    verdict.ranks.include(first++, line.rank, line.condition, problem.k());
  }
  verdict.second_tries = verdict.routes.second_try;
}

template <class T>
index_t MatrixSteps<T>::chunks() const {
  return (plan.problem.count + plan.chunk_matrices - 1) / plan.chunk_matrices;
}

template <class T>
void MatrixSteps<T>::begin(MatrixChunk<T>& chunk, index_t number) const {
  chunk.first = number * plan.chunk_matrices;
  chunk.count = std::min(plan.chunk_matrices, plan.problem.count - chunk.first);
}

/// Allocates a buffer when it is first filled in, while others are worked on: a device takes 30 ms
/// for the page-locked memory of a chunk.
template <class T>
void MatrixSteps<T>::read(MatrixChunk<T>& chunk) {
  if (chunk.a.view().data == nullptr) {
    const MatrixChunk<T> place = chunk;
    chunk = allocate_matrices<T>(backend, plan);
    chunk.first = place.first;
    chunk.count = place.count;
  }
  input.read(chunk.first, interleaved(chunk.matrices(chunk.a)));
}

template <class T>
void MatrixSteps<T>::work(MatrixChunk<T>& chunk) {
  seconds += backend.factor_any(
      plan, ChunkToFactor<T>{chunk.matrices(chunk.a), factors_of(chunk), lines_of(chunk)});
}

template <class T>
void MatrixSteps<T>::keep(MatrixChunk<T>& chunk) {
  const Factors<T> f = factors_of(chunk);
  const std::pair<std::string_view, BatchView<T>> named[] = {
      {"Q", f.q}, {"R", f.r}, {"V", f.v}, {"tau", f.tau}};
  for (const auto& [name, values] : named)
    if (values.data != nullptr)
      outputs.factors->write(name, chunk.first, BatchView<const Real<T>>(interleaved(values)));
  if (f.p.data != nullptr) outputs.factors->write("P", chunk.first, BatchView<const double>(f.p));
  outputs.write_report(chunk.first, lines_of(chunk));
  add_to_verdict(verdict, plan.problem, chunk.first, lines_of(chunk));
  progress.add(chunk.count);
}

/// Freeing 1 GB takes a quarter of a second, and the last factors are being written meanwhile.
template <class T>
void MatrixSteps<T>::after_work(std::vector<MatrixChunk<T>>& chunks) {
  backend.free_workspace();
  for (MatrixChunk<T>& chunk : chunks) chunk.a = {};
}

template <class T>
std::vector<std::span<std::byte>> MatrixSteps<T>::parts(MatrixChunk<T>& chunk) const {
  const Factors<T> f = factors_of(chunk);
  std::vector<std::span<std::byte>> pieces;
  for (const BatchView<T>& part : {f.q, f.r, f.v, f.tau}) {
    if (part.data == nullptr) continue;
    const auto entries = static_cast<std::size_t>(part.count * part.rows * part.cols);
    pieces.push_back(writable_bytes_of(part.data, entries));
  }
  if (f.p.data != nullptr)
    pieces.push_back(writable_bytes_of(f.p.data, static_cast<std::size_t>(f.p.count * f.p.cols)));
  const std::span<MatrixReport> lines = lines_of(chunk);
  pieces.push_back(writable_bytes_of(lines.data(), lines.size()));
  return pieces;
}

#define QRTOOL_FOR(T)                                               \
  template MatrixChunk<T> allocate_matrices(Backend&, const Plan&); \
  template Factors<T> factors_of(const MatrixChunk<T>&);            \
  template std::span<MatrixReport> lines_of(MatrixChunk<T>&);       \
  template struct MatrixSteps<T>;
QRTOOL_FOR(float)
QRTOOL_FOR(double)
QRTOOL_FOR(std::complex<float>)
QRTOOL_FOR(std::complex<double>)
#undef QRTOOL_FOR

}  // namespace qrtool
