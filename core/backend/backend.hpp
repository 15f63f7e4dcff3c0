// SPDX-License-Identifier: Apache-2.0
// backend.hpp: the interface of everything that factors matrices, a CPU or a device.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <variant>

#include "core/backend/chunk_seconds.hpp"
#include "core/backend/held_matrix.hpp"
#include "core/batch.hpp"
#include "core/plan/plan.hpp"
#include "core/report/report.hpp"

namespace qrtool {

/// The places for the factors of a chunk, row-major. The view of a factor that the mode does not
/// ask for is empty.
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

/// Who has allocated the arrays of a chunk: Backend::allocate(), so that a device copies from and
/// to them at full speed, or a caller, so that a device copies them through memory of its own.
enum class ArraysOf { backend, caller };

/// Matrices, the places of their factors, and the lines of their report.
template <class T>
struct ChunkToFactor {
  BatchView<const T> a;
  Factors<T> out;
  std::span<MatrixReport> report;
  ArraysOf arrays = ArraysOf::backend;
};
using AnyChunk = OfEachType<std::variant, ChunkToFactor>;

class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string name() const = 0;                   // "cpu", "opencl"
  virtual std::string device() const = 0;                 // the text of the output's attribute
  virtual std::span<const Variant> variants() const = 0;  // the preferred ones first
  virtual Limits limits() const = 0;

  /// Allocates memory for the batches of a chunk. A device backend gives pinned memory.
  virtual HostMemory allocate(std::size_t bytes) { return allocate_host(bytes); }

  /// Factors a chunk of at most plan.chunk_matrices matrices, or of any number in the arrays of the
  /// caller, and measures every one of them.
  /// On entry `a` is count x m x n and `report` has count entries; on exit each matrix has its
  /// factors and its line of the report. A matrix with NaN or Inf gets NaN factors and the status
  /// non_finite, and no other matrix changes. The function leaves `a` as it was. Results do not
  /// depend on how a batch is cut into chunks. Errors: DeviceError, LimitError.
  template <class T>
  ChunkSeconds factor(const Plan& plan, const std::type_identity_t<BatchView<const T>>& a,
                      const Factors<T>& out, std::span<MatrixReport> report,
                      ArraysOf arrays = ArraysOf::backend) {
    return factor_any(plan, ChunkToFactor<T>{a, out, report, arrays});
  }
  /// Implements factor() for each type of elements, which is the type of `plan`.
  virtual ChunkSeconds factor_any(const Plan& plan, const AnyChunk& any) = 0;

  /// Frees the memory that is kept from one chunk to the next.
  virtual void free_workspace() {}

  /// Returns the bytes of a piece if this backend factors a matrix in pieces, else 0.
  virtual std::size_t piece_bytes() const { return 0; }
  /// Reserves memory on the device for the one matrix of `plan`, which must outlive the result.
  /// Only for a backend with piece_bytes(). Errors: DeviceError, LimitError.
  template <class T>
  HeldPointer<T> hold(const Plan& plan) {
    static_assert(!is_complex_number<T>);
    return std::get<HeldPointer<T>>(hold_any(plan));
  }
  virtual AnyHeldMatrix hold_any(const Plan&) { return {}; }
};

/// A backend that adds to another one, which must outlive it. It stores a pointer: from a reference
/// another object of this class would be copied instead.
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
