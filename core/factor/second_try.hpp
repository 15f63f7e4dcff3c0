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

/// Whether a fast way may have spoiled the factors of this line, so that reflectors may do better.
/// True where an error is above its bar, and where a route by A'A gave an R that is not finite.
bool needs_second_try(const MatrixReport& line);

/// Whether `second` has smaller errors, each measured in the bars of its line, than `first`. Errors
/// that are NaN are the worst. Of Mode::r the orthogonality does not count.
bool is_better(Mode mode, const MatrixReport& second, const MatrixReport& first);

/// Sends matrices to reflectors alone: to a variant of the given backend, or to the CPU where no
/// variant there takes them. What a plan says of variant and arithmetic does not count; the
/// arithmetic is that of the element type.
class Reflectors final : public BackendAround {
 public:
  /// `backend` outlives this object.
  explicit Reflectors(Backend& backend);
  ~Reflectors() override;

  /// Errors: LimitError where no way succeeds, or the memory that `plan` leaves is too small for
  /// it.
  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override;

  /// What the device said where it failed and the CPU took its matrices; empty if it never failed.
  const std::string& trouble() const { return trouble_; }

  /// The plan of the second try of a matrix that the backend holds, after that of `plan`. Nothing
  /// where the backend has no other way.
  std::optional<Plan> other_plan(const Plan& plan) const;

  /// The same, but not in the way of `plan`, which was tried already. Returns nothing, and leaves
  /// factors and report undefined, where there is no other way or too little memory for it.
  template <class T>
  std::optional<ChunkSeconds> factor_otherwise(const Plan& plan, BatchView<const T> a,
                                               const Factors<T>& out,
                                               std::span<MatrixReport> report);

 private:
  /// A backend and the plan by which it factors `count` matrices of a problem.
  struct Way;
  /// The plan by which `backend` factors `count` matrices by reflectors, within `limits`. Not that
  /// of `tried`, where that is not null.
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

/// Puts the second try behind another backend: factor() gives the better of two results where the
/// first is above its bar, and says in the report which one it is. Where a run has no such matrix,
/// it does nothing else than that backend.
class SecondTry final : public BackendAround {
 public:
  /// `backend` outlives this object.
  explicit SecondTry(Backend& backend) : BackendAround(&backend), reflectors_(backend) {}

  ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) override;

  std::size_t piece_bytes() const override { return backend_.piece_bytes(); }
  AnyHeldMatrix hold_any(const Plan& plan) override;

  /// The way of the second try, for those who decide on it themselves.
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
