// SPDX-License-Identifier: Apache-2.0
// lapack_library.cpp: loads LAPACK and asks it who it is.
#include "app/bench/contestants/lapack_library.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Returns the first two words of a text such as "OpenBLAS 0.3.21 DYNAMIC_ARCH ...".
std::string first_two_words(const std::string& text) {
  const std::size_t first = text.find(' ');
  return first == std::string::npos ? text : text.substr(0, text.find(' ', first + 1));
}

/// Version and threads, by functions that only one library has.
void identify(LapackLibrary& library) {
  char* (*configuration)() = nullptr;
  void (*mkl_version)(char*, int) = nullptr;
  void (*lapack_version)(int*, int*, int*) = nullptr;
  if (library.find("openblas_get_config", configuration)) {
    library.version = first_two_words(configuration());
    library.find("openblas_set_num_threads", library.set_own_threads);
  } else if (library.find("MKL_Get_Version_String", mkl_version)) {
    // "Intel(R) oneAPI Math Kernel Library Version 2026.2-Product Build ...".
    char text[256] = {};
    mkl_version(text, sizeof(text) - 1);
    const std::string_view all(text), word = "Version ";
    const std::size_t at = std::min(all.find(word), all.size());
    const std::string_view number = all.substr(std::min(at + word.size(), all.size()));
    library.version = fmt::format("MKL {}", number.substr(0, number.find_first_of("- ")));
    library.find("MKL_Set_Num_Threads", library.set_own_threads);
  } else if (library.find("ilaver_", lapack_version)) {
    int major = 0, minor = 0, patch = 0;
    lapack_version(&major, &minor, &patch);
    library.version = fmt::format("LAPACK {}.{}.{}", major, minor, patch);
    library.is_reference = true;
  }
}

bool has_all(const LapackLibrary& library, std::initializer_list<const char*> names) {
  void (*function)() = nullptr;
  return std::all_of(names.begin(), names.end(), [&](const std::string name) {
    return library.find("s" + name + "_", function) && library.find("d" + name + "_", function);
  });
}

LapackLibrary load_named(const std::string& file, std::initializer_list<const char*> needs) {
  void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return {};
  for (const char* prefix : {"", "scipy_"}) {
    LapackLibrary library{
        .wanted = {}, .file = file, .version = {}, .handle = handle, .prefix = prefix};
    if (!has_all(library, needs)) continue;
    identify(library);
    return library;
  }
  return {};
}

}  // namespace

std::string LapackLibrary::text(std::string_view about) const {
  if (file.empty()) return "not found";
  const std::string name = version.empty() ? "" : version + ", ";
  return fmt::format("{}{}{}{}{}", name, escape(file),
                     is_reference ? ", reference, unoptimised" : "", about.empty() ? "" : ", ",
                     about);
}

void LapackLibrary::require(std::string_view functions, index_t rows_or_columns) const {
  if (file.empty()) throw DeviceError(fmt::format("{} were not found in {}", functions, wanted));
  if (rows_or_columns > std::numeric_limits<int>::max())
    throw LimitError("LAPACK counts rows and columns in 32 bits");
}

void LapackLibrary::throw_missing(const std::string& name) const {
  throw DeviceError(fmt::format("{} was not found in {}", name, escape(file)));
}

LapackLibrary load_lapack(const std::string& file, std::initializer_list<const char*> needs) {
  LapackLibrary library = load_named(file.empty() ? "libopenblas.so.0" : file, needs);
  if (file.empty() && library.file.empty()) library = load_named("liblapack.so.3", needs);
  library.wanted = file.empty() ? "libopenblas.so.0 or liblapack.so.3" : escape(file);
  return library;
}

}  // namespace qrtool
