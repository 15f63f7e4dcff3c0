// SPDX-License-Identifier: Apache-2.0
// problem.hpp: the matrices to factor and the result asked for (Problem), and the memory, threads
// and device that are available (Limits).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/batch.hpp"
#include "core/matrix/complex.hpp"

namespace qrtool {

class CostTable;

/// complex64 and complex128 are pairs of float32 and of float64.
enum class ElementType { float32, float64, complex64, complex128 };
inline constexpr std::array element_types{ElementType::float32, ElementType::float64,
                                          ElementType::complex64, ElementType::complex128};

constexpr bool is_complex(ElementType type) {
  return type == ElementType::complex64 || type == ElementType::complex128;
}
/// The type of the parts of a complex number; a real type itself.
constexpr ElementType real_of(ElementType type) {
  const bool is_single = type == ElementType::float32 || type == ElementType::complex64;
  return is_single ? ElementType::float32 : ElementType::float64;
}
/// Returns the complex type whose parts have the real type `type`.
constexpr ElementType complex_of(ElementType type) {
  return real_of(type) == ElementType::float32 ? ElementType::complex64 : ElementType::complex128;
}
/// Returns the number of real numbers in an element.
constexpr index_t parts_in(ElementType type) { return is_complex(type) ? 2 : 1; }
constexpr std::size_t size_of(ElementType type) {
  return (real_of(type) == ElementType::float32 ? 4 : 8) * static_cast<std::size_t>(parts_in(type));
}
std::string_view name_of(ElementType type);
template <class T>
constexpr ElementType real_element_type = sizeof(Real<T>) == 4 ? ElementType::float32
                                                               : ElementType::float64;
template <class T>
constexpr ElementType element_type = parts_of<T> == 2 ? complex_of(real_element_type<T>)
                                                      : real_element_type<T>;

/// All<Of<T>, ..>, with every type T of elements.
template <template <class...> class All, template <class> class Of>
using OfEachType = All<Of<float>, Of<double>, Of<std::complex<float>>, Of<std::complex<double>>>;

/// Calls f(T()) with the type T of the elements.
template <class F>
decltype(auto) with_type(ElementType type, F&& f) {
  switch (type) {
    case ElementType::float32:
      return f(float());
    case ElementType::complex64:
      return f(std::complex<float>());
    case ElementType::complex128:
      return f(std::complex<double>());
    case ElementType::float64:
      break;
  }
  return f(double());
}

/// The factors to compute, with k = min(m, n). reduced: Q m x k, R k x n; complete: Q m x m,
/// R m x n; r: only R, k x n; raw: LAPACK geqrf's V\R (m x n) and tau (k).
enum class Mode { reduced, complete, r, raw };
std::string_view name_of(Mode mode);

/// The signs of R's rows. positive: R_kk >= 0; lapack: the signs that LAPACK's Householder
/// reflectors leave. Mode `raw` always has LAPACK's signs.
enum class Sign { positive, lapack };
std::string_view name_of(Sign sign);

/// The arithmetic that a variant may use. any: every arithmetic that reaches the accuracy of the
/// type; strict: only operations of the type; mixed: products in half precision, sums and the rest
/// in float32.
enum class Arithmetic { any, strict, mixed };
std::string_view name_of(Arithmetic arithmetic);

/// How the errors are found. full: measured; probe: estimated with random vectors if that is
/// faster, and measured if the estimate does not exclude that they are above the bar; none: not at
/// all.
enum class Check { full, probe, none };
std::string_view name_of(Check check);

/// `count` matrices m x n, factored in `type`.
struct Problem {
  index_t count = 0, m = 0, n = 0;
  ElementType type = ElementType::float32;
  Mode mode = Mode::reduced;
  Sign sign = Sign::positive;
  Arithmetic arithmetic = Arithmetic::any;
  Check check = Check::full;
  bool pivots = false;           // factors A[:, P] with the permutation P that orders R's diagonal
  bool wants_condition = false;  // an estimate of the condition number of A

  bool operator==(const Problem&) const = default;

  index_t k() const { return std::min(m, n); }
  bool wants_q() const { return mode == Mode::reduced || mode == Mode::complete; }
  /// Returns the number of columns of Q, or 0 if Q is not asked for.
  index_t q_cols() const { return mode == Mode::complete ? m : wants_q() ? k() : 0; }
  /// The number of rows of R, or of V\R in mode raw.
  index_t r_rows() const { return mode == Mode::reduced || mode == Mode::r ? k() : m; }
  /// Whether R is looked at once more after a matrix was factored.
  bool ranks() const { return pivots || wants_condition; }
  bool is_empty() const { return count == 0 || m == 0 || n == 0; }

  /// Returns the bytes of one input matrix, and of the factors of one matrix, in `type`.
  std::size_t input_bytes() const;
  std::size_t output_bytes() const;
};

/// Returns "single", "double" or "mixed", the values of --precision.
std::string_view precision_name(const Problem& problem);

/// The memory, threads and device that a backend may use. The host fields come from --memory and
/// --threads.
struct Limits {
  /// Sets aside the part of the host's memory that reading and writing files needs.
  void reserve_for_files(std::size_t bytes) {
    file_bytes = std::min(bytes, host_bytes);
    host_bytes -= file_bytes;
  }

  /// Whether sums of float32 that need more digits are formed in pairs of floats.
  bool sums_in_pairs() const { return !has_float64 || slow_float64; }

  std::size_t host_bytes = 0;  // without file_bytes
  std::size_t file_bytes = 0;  // that reading and writing files take, for messages
  int threads = 1;
  int ranks = 1;             // processes that share the work
  bool has_scratch = false;  // there is a directory for data that is kept between two passes
  /// The bytes of a piece of a matrix that goes to a device in pieces; 0: matrices go whole.
  std::size_t piece_bytes = 0;
  // The fields below describe the device; they are zero for the CPU backend.
  std::size_t device_bytes = 0;
  std::size_t max_allocation_bytes = 0;
  std::size_t local_bytes = 0;
  int max_group = 0;
  int compute_units = 0;
  int shuffle_lanes = 1;  // work-items that exchange values without local memory
  bool is_cpu = true;
  bool has_float64 = true;
  bool fast_float64 = false;         // at half the rate of float32 or more
  bool slow_float64 = false;         // at so small a part of it that pairs of floats are faster
  bool float64_products = false;     // NVIDIA's 16 x 8 matrix products of float64
  bool has_nvidia_mma = false;       // products of halves on NVIDIA's matrix units, by PTX
  const CostTable* costs = nullptr;  // of the device, by the user; null: those of the repository
};

}  // namespace qrtool
