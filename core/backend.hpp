// SPDX-License-Identifier: Apache-2.0
// backend.hpp: the interface of everything that factors matrices, a CPU or a device.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "core/batch.hpp"
#include "core/held_matrix.hpp"
#include "core/plan.hpp"
#include "core/report.hpp"

namespace qrtool {

/// The places for the factors of a chunk, row-major. A view is empty where the mode does not ask
/// for that factor.
template <class T>
struct Factors {
  BatchView<T> q;    // m x q_cols          reduced, complete
  BatchView<T> r;    // r_rows x n          reduced, complete, r; exact +0 below the diagonal
  BatchView<T> v;    // m x n, V\R          raw
  BatchView<T> tau;  // 1 x k per matrix    raw
  BatchView<double> p = {};  // 1 x n per matrix, the numbers of P; only RankedBackend fills it
};

/// Returns the part of `all` that belongs to the matrices first .. first + count - 1.
template <class T>
Factors<T> slice(const Factors<T>& all, index_t first, index_t count) {
  return {all.q.slice(first, count), all.r.slice(first, count), all.v.slice(first, count),
          all.tau.slice(first, count), all.p.slice(first, count)};
}

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;                   // "cpu", "opencl"
  virtual std::string device() const = 0;                 // the text of the output's attribute
  virtual std::span<const Variant> variants() const = 0;  // the preferred ones first
  virtual Limits limits() const = 0;

  /// Allocates memory for the batches of a chunk. A device backend gives pinned memory.
  virtual HostMemory allocate(std::size_t bytes) { return allocate_host(bytes); }

  /// Factors a chunk of at most plan.chunk_matrices matrices and measures every one of them.
  /// On entry `a` is count x m x n and `report` has count entries; on exit each matrix has its
  /// factors and its line of the report. A matrix with NaN or Inf gets NaN factors and the status
  /// non_finite, and no other matrix changes. The function leaves `a` as it was. Results do not
  /// depend on how a batch is cut into chunks. Errors: DeviceError, LimitError.
  virtual ChunkSeconds factor(const Plan& plan, BatchView<const float> a, const Factors<float>& out,
                              std::span<MatrixReport> report) = 0;
  virtual ChunkSeconds factor(const Plan& plan, BatchView<const double> a,
                              const Factors<double>& out, std::span<MatrixReport> report) = 0;

  /// As factor(), for complex matrices. Errors: InternalError where the backend has no variant that
  /// takes them, which the plan knows.
  virtual ChunkSeconds factor_complex(const Plan& plan, BatchView<const std::complex<float>> a,
                                      const Factors<std::complex<float>>& out,
                                      std::span<MatrixReport> report);
  virtual ChunkSeconds factor_complex(const Plan& plan, BatchView<const std::complex<double>> a,
                                      const Factors<std::complex<double>>& out,
                                      std::span<MatrixReport> report);
  /// Frees the memory that is kept from one chunk to the next.
  virtual void free_workspace() {}

  /// The bytes of a piece, where this backend takes a matrix in pieces; 0 where it does not.
  virtual std::size_t piece_bytes() const { return 0; }
  /// Makes room on the device for the one matrix of `plan`, which outlives the result. Only for a
  /// backend with piece_bytes(). Errors: DeviceError, LimitError.
  virtual std::unique_ptr<HeldMatrix<float>> hold_single(const Plan&) { return nullptr; }
  virtual std::unique_ptr<HeldMatrix<double>> hold_double(const Plan&) { return nullptr; }
};

/// factor() or factor_complex(), as the type of the elements needs it.
template <class T>
ChunkSeconds factor_on(Backend& backend, const Plan& plan, BatchView<const T> a,
                       const Factors<T>& out, std::span<MatrixReport> report) {
  if constexpr (is_complex_number<T>)
    return backend.factor_complex(plan, a, out, report);
  else
    return backend.factor(plan, a, out, report);
}

template <class T>
std::unique_ptr<HeldMatrix<T>> hold(Backend& backend, const Plan& plan) {
  static_assert(!is_complex_number<T>);
  if constexpr (sizeof(T) == 4)
    return backend.hold_single(plan);
  else
    return backend.hold_double(plan);
}

/// A backend that does more than another one, which outlives it. It takes a pointer: given as a
/// reference, another object of this class would be copied instead.
class BackendAround : public Backend {
 public:
  explicit BackendAround(Backend* backend) : backend_(*backend) {}
  BackendAround(const BackendAround&) = delete;
  BackendAround& operator=(const BackendAround&) = delete;

  std::string name() const override { return backend_.name(); }
  std::string device() const override { return backend_.device(); }
  std::span<const Variant> variants() const override { return backend_.variants(); }
  Limits limits() const override { return backend_.limits(); }
  HostMemory allocate(std::size_t bytes) override { return backend_.allocate(bytes); }
  void free_workspace() override { backend_.free_workspace(); }

 protected:
  Backend& backend_;
};

}  // namespace qrtool
