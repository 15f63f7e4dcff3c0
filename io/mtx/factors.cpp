// SPDX-License-Identifier: Apache-2.0
// factors.cpp: opens the files of a set.
#include "io/mtx/factors.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/factor_files.hpp"
#include "io/file/input_file.hpp"
#include "io/file/number_hash.hpp"
#include "io/file/rereadable.hpp"
#include "io/mtx/reader.hpp"
#include "io/stored_report.hpp"

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

template <class T>
std::uint64_t hash_of(Reader& reader) {
  constexpr index_t piece_numbers = 1 << 16;
  const index_t m = reader.source().m, n = reader.source().n;
  if (m == 0 || n == 0) return NumberHash().value();
  const index_t at_once = std::clamp<index_t>(piece_numbers / n, 1, m);
  const Batch<T> piece(1, at_once, n);
  NumberHash hash;
  for (index_t i = 0; i < m; i += at_once) {
    const MatrixView<T> rows = piece.view()[0].row_block(0, std::min(at_once, m - i));
    reader.read_rows(0, i, rows);
    std::for_each_n(rows.data, rows.rows * n,
                    [&](T number) { hash.add(static_cast<double>(number)); });
  }
  return hash.value();
}

/// Computes the checksum that MtxWriter writes into the report.
std::uint64_t checksum_of(const StoredFactors& factors) {
  NumberHash of_all;
  for (Reader* const reader :
       {factors.q.get(), factors.r.get(), factors.p.get(), factors.v.get(), factors.tau.get()}) {
    if (reader == nullptr) continue;
    const bool is_single = reader->source().type == ElementType::float32;
    of_all.add_word(is_single ? hash_of<float>(*reader) : hash_of<double>(*reader));
  }
  return of_all.value();
}

void require_one_run(const std::string& path, const StoredFactors& factors,
                     const StoredReport& report) {
  std::vector<std::string> names;
  for (const auto& [reader, name] :
       {std::pair(factors.q.get(), "Q"), std::pair(factors.r.get(), "R"),
        std::pair(factors.p.get(), "P"), std::pair(factors.v.get(), "V"),
        std::pair(factors.tau.get(), "tau")})
    if (reader != nullptr) names.push_back(escape(factor_file(path, name)));
  if ((factors.q || factors.r || factors.p) && (factors.v || factors.tau))
    throw_two_runs(path, names);
  if (!report.checksums.empty() && checksum_of(factors) != report.checksums.front())
    throw_not_described(path, 0, names, report_file(path, ".json"));
}

}  // namespace

StoredFactors open_mtx_factors(const std::string& path) {
  StoredFactors factors;
  factors.file = path;
  factors.q = open_factor(path, "Q");
  factors.r = open_factor(path, "R");
  factors.p = open_factor(path, "P");
  factors.v = open_factor(path, "V");
  factors.tau = open_factor(path, "tau");
  if (!factors.r && !factors.v)
    throw InputError(
        fmt::format("cannot read '{}': there is no such file", escape(factor_file(path, "R"))),
        hint_for_missing_set(path));
  StoredReport report = read_report_of_set(path);
  apply_record(report.record, escape(path), factors);
  require_one_run(path, factors, report);
  factors.tries = std::move(report.tries);
  return factors;
}

}  // namespace qrtool
