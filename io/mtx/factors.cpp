// SPDX-License-Identifier: Apache-2.0
// factors.cpp: opens the files of a set.
#include "io/mtx/factors.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/factor_files.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/mtx/reader.hpp"

namespace qrtool {
namespace {

std::unique_ptr<Reader> open_factor(const std::string& path, const char* dataset) {
  const std::string name = factor_file(path, dataset);
  struct stat info {};
  if (stat(name.c_str(), &info) != 0) return nullptr;
  readable_size(name);
  if (sniff(name) != Content::matrix_market)
    throw InputError(
        fmt::format("{}: no Matrix Market file, although its name says so", escape(name)));
  return open_mtx(open_rereadable(name), name, /*as_stored=*/true);
}

}  // namespace

StoredFactors open_mtx_factors(const std::string& path) {
  StoredFactors factors;
  factors.file = path;
  factors.q = open_factor(path, "Q");
  factors.r = open_factor(path, "R");
  factors.v = open_factor(path, "V");
  factors.tau = open_factor(path, "tau");
  if (!factors.r && !factors.v)
    throw InputError(
        fmt::format("cannot read '{}': there is no such file", escape(factor_file(path, "R"))),
        hint_for_one_of_set(path));
  if ((factors.q || factors.r) && (factors.v || factors.tau))
    throw InputError(
        fmt::format("{}: Q or R and V or tau are files of different runs", escape(path)),
        "remove those that you do not mean, or factor again with --force");
  return factors;
}

}  // namespace qrtool
