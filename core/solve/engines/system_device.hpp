// SPDX-License-Identifier: Apache-2.0
// system_device.hpp: the interface of a device that solves many systems, each with a matrix of its
// own, and checks every solution.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/solve/engines/system_engine.hpp"
#include "core/solve/packing.hpp"

namespace qrtool {

/// How a device gets x: by normal equations in float64, with R of a variant for the systems that
/// they leave; or by R alone.
enum class SystemRoute { normal_equations, factors };

/// Returns the name of a route in outputs and tables; `variant` makes R.
inline std::string name_of(SystemRoute route, std::string_view variant) {
  return route == SystemRoute::factors ? std::string(variant) : "normal equations";
}

template <class T>
class SystemDevice {
 public:
  virtual ~SystemDevice() = default;

  /// May be called before the first run(): the kernels for systems with `sides` right sides each,
  /// and with one A for all if `shares_a`, are built, or come from the driver's cache, while the
  /// caller goes on. run() waits, and has its errors.
  virtual void prepare(index_t sides, bool shares_a) = 0;
  /// Solves for the right sides of `block`, which belong in equal numbers to the matrices of `a` (m
  /// x n, packed), one matrix after another. If weights differ, one A may serve all systems
  /// (a.stride 0). Returns the numbers of the systems, ascending, that the device does not solve:
  /// their matrix may have dependent columns, numbers are not finite or out of range, or a solution
  /// is above or close to its bar. The results of all other systems are complete; the findings
  /// about a matrix come with its first right side. With weights or missing rows every matrix has
  /// one right side. Errors: DeviceError, LimitError.
  virtual std::vector<index_t> run(BatchView<const T> a, const RightSideBlock<T>& block) = 0;
  /// Returns the time that all runs took so far: on the device with its copies; on the host.
  virtual SolveSeconds seconds() const = 0;
};

/// One matrix A = QR for many right sides, as the CPU has prepared it: first the rows of the
/// weighted problem, then the rows of a ridge. Column j of A and R is divided by 2^scales[j], which
/// brings its norm to about 1.
struct SharedFactors {
  index_t data_rows = 0;                  // of b
  MatrixView<const double> a, q, r;       // m x n, m x n, n x n
  std::span<const double> row_factors;    // of the rows of b; empty: all 1
  std::span<const double> inverse_norms;  // of the rows of R^-1; empty: not wanted
  double freedom = 0;                     // rows that count, less n
  std::span<const int> scales;
};

/// How right sides lie in memory: each one as a row of m neighbours, or as columns of m x p.
enum class SidesLayout { rows, columns };

template <class T>
class SharedDevice {
 public:
  virtual ~SharedDevice() = default;

  /// Solves for the right sides of the block. Returns the numbers, ascending, of the right sides
  /// that the device does not solve. The results of all others are complete, except findings about
  /// A. Errors: DeviceError, LimitError.
  virtual std::vector<index_t> run(const RightSideBlock<T>& block) = 0;
  /// Returns the time that all runs took so far, on the device with its copies.
  virtual double seconds() const = 0;
};

/// Returns the reason why no device solves such problems, or an empty text. A device solves
/// problems of full rank with A as it is, or with the rows of a ridge.
inline std::string system_device_objection(const SolveProblem& p) {
  if (p.n == 0 || p.m == 0) return "nothing to compute";
  return {};
}

}  // namespace qrtool
