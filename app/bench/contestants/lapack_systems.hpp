// SPDX-License-Identifier: Apache-2.0
// lapack_systems.hpp: least squares by a LAPACK library: gels, gelsy, and the normal equations.
// gels assumes full rank, gelsy finds the rank, and none of them checks x.
#pragma once

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "app/bench/contestants/baselines.hpp"
#include "app/bench/contestants/lapack_library.hpp"

namespace qrtool {

/// The size of one system: A is m x n, and there are p right sides.
struct SystemSize {
  int m, n, p;
  /// The rows of the array that holds B and then X.
  int ld() const { return std::max({m, n, 1}); }
};

/// Each function reads A (m x n) and B (ld() x p) column by column, overwrites A, and leaves X in
/// the first n rows of B. Returns false if it found A, or A'A, singular; then there is no X.
/// Errors: InternalError.
template <class T>
class LapackSolver {
 public:
  /// Finds the functions in `library`, which must outlive the solver. Errors: DeviceError if one is
  /// missing.
  explicit LapackSolver(const LapackLibrary& library);

  struct Workspace {
    std::vector<T> work, gram;
    std::vector<int> pivots;
  };
  /// Returns a workspace that is enough for each function and at most p right sides.
  Workspace workspace(const SystemSize& size) const;

  bool gels(const SystemSize& size, T* a, T* b, Workspace& workspace) const;
  /// gelsy finds the rank at the tolerance n eps.
  bool gelsy(const SystemSize& size, T* a, T* b, Workspace& workspace) const
      requires(!is_complex_number<T>);
  /// A'A x = A'b by syrk, potrf and potrs, for m >= n. The error grows with the square of the
  /// condition.
  bool normal_equations(const SystemSize& size, T* a, T* b, Workspace& workspace) const
      requires(!is_complex_number<T>);

 private:
  bool has_succeeded(const char* function, int info) const;

  const LapackLibrary& library_;
  void (*gels_)(const char*, const int*, const int*, const int*, T*, const int*, T*, const int*, T*,
                const int*, int*);
  void (*gelsy_)(const int*, const int*, const int*, T*, const int*, T*, const int*, int*, const T*,
                 int*, T*, const int*, int*);
  void (*syrk_)(const char*, const char*, const int*, const int*, const T*, const T*, const int*,
                const T*, T*, const int*);
  void (*gemm_)(const char*, const char*, const int*, const int*, const int*, const T*, const T*,
                const int*, const T*, const int*, const T*, T*, const int*);
  void (*potrf_)(const char*, const int*, T*, const int*, int*);
  void (*potrs_)(const char*, const int*, const int*, const T*, const int*, T*, const int*, int*);
};

/// The methods of LAPACK, each a column of the table.
enum class LapackMethod { gels, gelsy, normal_equations };

/// Loads the library `file`, as make_lapack() does. If there is none, prepare() throws.
std::unique_ptr<Contestant> make_lapack_solver(LapackMethod method, const BenchSetup& setup,
                                               std::string_view file = {});

}  // namespace qrtool
