// SPDX-License-Identifier: Apache-2.0
// stream_engine.hpp: jobs whose arrays are in the memory of the device already, in the order of a
// stream of the caller.
//
//   caller's stream   | .. A .. | pack | factor, check | unpack | .. the caller goes on ..
//   host                 enqueues everything | waits for the errors of the matrices, and judges
//
// Matrices that are packed by rows are used where they are. The work memory of a call is freed in
// the order of its stream.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/backend/backend.hpp"
#include "core/report/ratios.hpp"
#include "gpu/host/driver.hpp"

namespace qrtool {

/// Matrices in device memory of a caller. Sizes and strides count elements.
struct DeviceMatrices {
  void* data = nullptr;  // null: there are none
  index_t count = 0, rows = 0, cols = 0;
  index_t row_stride = 0, col_stride = 0, stride = 0;

  index_t entries() const { return data == nullptr ? 0 : count * rows * cols; }
};

/// A, and the places of its factors, of which each may be null; and where the statuses of matrices
/// go that nobody waits for, or null.
struct FactorArrays {
  DeviceMatrices a, q, r, v, tau;
  std::int32_t* statuses = nullptr;
};

/// What a call finds out about its matrices: nothing; whether A and R are finite; the errors.
enum class Looks { at_nothing, at_range, at_errors };

class StreamWork;

/// The queue, the memory and the kernels of one call at a time. Errors of all calls: DeviceError;
/// LimitError where there is not even memory for one matrix at a time. After an error the next call
/// works, if the device does.
class StreamEngine {
 public:
  virtual ~StreamEngine() = default;

  /// Copy matrices to and from packed host memory, and return when this is done.
  virtual void read(void* stream, ElementType type, const DeviceMatrices& from, void* to) = 0;
  virtual void write(void* stream, ElementType type, const void* from,
                     const DeviceMatrices& to) = 0;

  /// The plan of a problem. It stays until the next call for another problem.
  virtual const Plan& plan_for(const Problem& problem) = 0;
  /// Why the device does not factor such matrices where they are; empty where it does.
  virtual std::string objection(const Problem& problem) const = 0;
  /// Enqueues all that factors the matrices by plan_for(problem), in parts where memory is short.
  virtual void factor(void* stream, const Problem& problem, const FactorArrays& arrays,
                      Looks looks) = 0;
  /// Waits for the work of factor().
  virtual void wait() = 0;
  /// Afterwards the line of a matrix, where factor() looked at something. Threads may ask at once.
  virtual MatrixReport report(index_t matrix) const = 0;
  /// The bytes of work memory that factor() takes, where there are so many.
  virtual std::size_t workspace_bytes(const Problem& problem, const FactorArrays& arrays,
                                      Looks looks) = 0;

  /// Measures the errors of factors of problem.mode that are given, and returns them when this is
  /// done. The device has float64. Errors of matrices or factors that are not finite are NaN.
  struct Found {
    bool is_finite;  // A
    Errors errors;
  };
  virtual std::vector<Found> measure(void* stream, const Problem& problem,
                                     const FactorArrays& arrays) = 0;

  /// For gpu/solve.
  virtual StreamWork& work() = 0;
};

class OpenclBackend;

/// What the device of a backend offers to calls on arrays of a caller. Null: nothing.
const CallerArrays* caller_arrays_of(OpenclBackend& backend);
/// `backend`, which has such arrays, outlives the engine.
std::unique_ptr<StreamEngine> make_stream_engine(OpenclBackend& backend,
                                                 const StreamAllocator& allocator);

}  // namespace qrtool
