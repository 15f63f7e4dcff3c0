// SPDX-License-Identifier: Apache-2.0
// second_try.hpp: factors a finite matrix that is above its bar once more, by Householder
// reflectors alone, and keeps the better result.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "core/backend/backend.hpp"

namespace qrtool {

/// Whether a fast variant may have spoiled the factors of this line, so that reflectors may be
/// better. True if an error is above its bar, or if a route by A'A gave an R that is not finite.
bool needs_second_try(const MatrixReport& line);

/// Whether `second` has smaller errors than `first`, each in units of the bars of its line. NaN is
/// the worst error. For Mode::r the orthogonality does not count.
bool is_better(Mode mode, const MatrixReport& second, const MatrixReport& first);

/// Factors by reflectors alone: by a variant of the given backend, or on the CPU if no variant
/// there can. The variant and the arithmetic of a plan are ignored; the arithmetic is that of the
/// element type.
class Reflectors final : public BackendAround {
 public:
  /// `backend` must outlive this object.
  explicit Reflectors(Backend& backend);
  ~Reflectors() override;

  /// Errors: LimitError if no variant succeeds, or if the memory that `plan` leaves is too small.
  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override;

  /// Returns the device's error if it failed and the CPU factored its matrices; empty if it never
  /// failed.
  const std::string& trouble() const { return trouble_; }

  /// Returns the plan of the second try, after `plan`, of a matrix that the backend holds. Returns
  /// nothing if the backend has no other variant.
  std::optional<Plan> other_plan(const Plan& plan) const;

  /// As factor_any(), without the variant of `plan`, which was tried already. Returns nothing, and
  /// leaves factors and report undefined, if there is no other variant or too little memory for it.
  template <class T>
  std::optional<ChunkSeconds> factor_otherwise(const Plan& plan, BatchView<const T> a,
                                               const Factors<T>& out,
                                               std::span<MatrixReport> report);

 private:
  /// A backend and the plan by which it factors `count` matrices of a problem.
  struct Way;
  /// Returns the plan by which `backend` factors `count` matrices by reflectors, within `limits`.
  /// It is never `tried`, if that is not null.
  static std::optional<Plan> plan_on(const Backend& backend, const Plan& plan, index_t count,
                                     const Plan* tried, Limits limits);
  static std::optional<Way> way_on(Backend& backend, const Plan& plan, index_t count,
                                   const Plan* tried);
  bool is_device() const { return limits().device_bytes > 0; }
  Backend& cpu();
  template <class T>
  std::optional<ChunkSeconds> run(const Way& way, BatchView<const T> a, const Factors<T>& out,
                                  std::span<MatrixReport> report);
  template <class T>
  std::optional<ChunkSeconds> run(const Plan& plan, const Plan* tried, BatchView<const T> a,
                                  const Factors<T>& out, std::span<MatrixReport> report);
  template <class T>
  ChunkSeconds factor_somehow(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                              std::span<MatrixReport> report);

  std::string trouble_;
  std::unique_ptr<Backend> cpu_;  // where backend_ is a device; made when it is needed
};

/// Adds the second try to another backend: factor() keeps the better of two results if the first is
/// above its bar, and says in the report which one it is. In a run without such matrices it is the
/// inner backend.
class SecondTry final : public BackendAround {
 public:
  /// `backend` must outlive this object.
  explicit SecondTry(Backend& backend) : BackendAround(&backend), reflectors_(backend) {}

  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override;

  std::size_t piece_bytes() const override { return backend_.piece_bytes(); }
  AnyHeldMatrix hold_any(const Plan& plan) override;

  /// Returns the backend of the second try, for callers that decide on it themselves.
  Reflectors& reflectors() { return reflectors_; }

 private:
  template <class T>
  ChunkSeconds try_all_again(const Plan& plan, const ChunkToFactor<T>& chunk);
  template <class T>
  ChunkSeconds try_again(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                         std::span<MatrixReport> report);

  Reflectors reflectors_;
};

}  // namespace qrtool
