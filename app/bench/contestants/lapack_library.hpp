// SPDX-License-Identifier: Apache-2.0
// lapack_library.hpp: a LAPACK that is loaded by its name, its functions and its version.
#pragma once

#include <dlfcn.h>

#include <initializer_list>
#include <string>
#include <string_view>

#include "core/batch.hpp"
#include "core/matrix/complex.hpp"

namespace qrtool {

/// The functions of one library with sizes of 32 bits. The library stays loaded.
struct LapackLibrary {
  std::string wanted;                      // where it was looked for, for messages
  std::string file;                        // empty: none was found
  std::string version;                     // "OpenBLAS 0.3.21", "LAPACK 3.11.0"
  bool is_reference = false;               // Netlib's, which is not optimised
  void (*set_own_threads)(int) = nullptr;  // null: the library has no threads to set
  void* handle = nullptr;
  std::string prefix;  // of all names, as SciPy's OpenBLAS has one

  template <class Function>
  bool find(const std::string& name, Function& function) const {
    function = reinterpret_cast<Function>(dlsym(handle, (prefix + name).c_str()));
    return function != nullptr;
  }
  /// Finds sNAME_, dNAME_, cNAME_ or zNAME_, by the type T. Errors: DeviceError.
  template <class T, class Function>
  void find_typed(const char* name, Function& function) const {
    constexpr std::string_view letters = is_complex_number<T> ? "cz" : "sd";
    const std::string full = letters[sizeof(Real<T>) == 4 ? 0 : 1] + std::string(name) + "_";
    if (!find(full, function)) throw_missing(full);
  }
  /// Returns "OpenBLAS 0.3.21, libopenblas.so.0", whether it is the reference, and `about`; or "not
  /// found".
  std::string text(std::string_view about = {}) const;
  /// Errors: DeviceError, which names `functions`, if no library was found; LimitError if there are
  /// more rows or columns than 32 bits can count.
  void require(std::string_view functions, index_t rows_or_columns) const;
  /// Returns the workers that call the library: `threads` of them, each with a matrix of its own,
  /// if there are enough matrices; otherwise one, whose calls the library's own threads share.
  int workers(bool has_enough, int threads) const {
    return has_enough || set_own_threads == nullptr ? threads : 1;
  }
  void share_threads(int workers, int threads) const {
    if (set_own_threads != nullptr) set_own_threads(workers == threads ? 1 : threads);
  }

 private:
  [[noreturn]] void throw_missing(const std::string& name) const;
};

/// Loads the library `file` or, if the name is empty, libopenblas.so.0, or liblapack.so.3 if that
/// is missing. If the library lacks one of `needs`, such as "geqrf", it is not used, and `file` of
/// the result is empty.
LapackLibrary load_lapack(const std::string& file, std::initializer_list<const char*> needs);

/// Stores a matrix by columns: row j of `columns`, which may be longer, is column j of the matrix.
template <class T>
void store_by_columns(MatrixView<const T> a, MatrixView<T> columns) {
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) columns(j, i) = a(i, j);
}

}  // namespace qrtool
