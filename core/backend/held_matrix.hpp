// SPDX-License-Identifier: Apache-2.0
// held_matrix.hpp: the interface of one matrix in the memory of a device. Its rows go there and
// come back in pieces, so that the host never holds the matrix or its factors.
#pragma once

#include <memory>
#include <string_view>
#include <variant>

#include "core/backend/chunk_seconds.hpp"
#include "core/batch.hpp"
#include "core/plan/plan.hpp"
#include "core/report/report.hpp"

namespace qrtool {

/// Call put() for all rows of A, then factor(), then get() for all rows of each factor, then
/// report(). Both take rows from row 0 on, without gaps; all pieces are packed, of the problem's
/// type. Errors of all: DeviceError, LimitError.
template <class T>
class HeldMatrix {
 public:
  virtual ~HeldMatrix() = default;

  /// Sends rows of A (rows x n) to the device, and returns when they are there.
  virtual void put(index_t first_row, MatrixView<const T> rows) = 0;
  /// Factors A and measures the errors. May be called again with another variant of the same
  /// problem, since A is still on the device. Returns what report() returns, except for values that
  /// no check measures.
  virtual MatrixReport factor(const Plan& plan) = 0;
  /// Brings rows of a factor from the device: "Q" (m x q_cols), "R" (r_rows x n), "V" (m x n) or
  /// "tau" (1 x k).
  virtual void get(std::string_view factor, index_t first_row, MatrixView<T> rows) = 0;
  /// Returns the line of the report, after every row of every factor has come. Errors: DeviceError
  /// if the rows are not the rows that the device sent.
  virtual MatrixReport report() = 0;
  /// Returns the time of all calls so far.
  virtual ChunkSeconds seconds() const = 0;
};

template <class T>
using HeldPointer = std::unique_ptr<HeldMatrix<T>>;
using AnyHeldMatrix = OfEachType<std::variant, HeldPointer>;

}  // namespace qrtool
