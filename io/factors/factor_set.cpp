// SPDX-License-Identifier: Apache-2.0
// factor_set.cpp: opens the files of a set, and compares their checksums with those of the report.
#include "io/factors/factor_set.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/checksum/number_hash.hpp"
#include "io/file/input_file.hpp"
#include "io/read/part_reader.hpp"
#include "io/report/report_file.hpp"
#include "io/report/stored_report.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

/// The files of a set that exist: their escaped names and their checksums.
struct OpenFiles {
  std::vector<std::string> names;
  std::vector<std::function<Checksums()>> checksums;
};

void refuse_two_modes(const StoredFactors& factors, const OpenFiles& files) {
  const bool has_qr = factors.q || factors.r || factors.p,
             has_reflectors = factors.v || factors.tau;
  if (!has_qr || !has_reflectors) return;
  throw InputError(fmt::format("{}: {} are files of different runs", escape(factors.file),
                               fmt::join(files.names, ", ")),
                   "remove those that you do not mean, or factor again with --force");
}

/// Returns the number of the first matrix whose checksum differs from the report's, or nothing if
/// all agree.
std::optional<std::size_t> find_difference(const OpenFiles& files, const FactorCodec& codec,
                                           const Checksums& recorded) {
  std::vector<Checksums> sums;
  for (const auto& checksums : files.checksums) sums.push_back(checksums());
  std::size_t matrices = recorded.size();
  for (const Checksums& each : sums) matrices = std::min(matrices, each.size());
  const Checksums found = codec.join(sums, matrices);
  for (std::size_t b = 0; b < matrices; ++b)
    if (found[b] != recorded[b]) return b;
  for (const Checksums& each : sums)
    if (each.size() != recorded.size()) return matrices;
  return {};
}

void require_recorded(const std::string& path, const OpenFiles& files, const FactorCodec& codec,
                      const Checksums& recorded) {
  const auto matrix = find_difference(files, codec, recorded);
  if (!matrix) return;
  const std::string report = escape(report_file(path, codec.report_ending));
  throw InputError(
      fmt::format("{}: matrix {} of {} is not the one that {} describes", escape(path), *matrix,
                  fmt::join(files.names, ", "), report),
      fmt::format("the files are of different runs, or were changed: factor again with --force, "
                  "or remove {} to have them measured as they are",
                  report));
}

/// Checks the leverages beside factors. `recorded` is their checksum in the report; empty if the
/// report has none.
void require_leverages(const std::string& path, const FactorCodec& codec,
                       const std::string& recorded) {
  const std::string file = factor_file(path, "leverage");
  if (recorded.empty() || !file_exists(file)) return;
  const std::unique_ptr<Reader> reader = codec.open(file, /*is_vector=*/true, /*threads=*/1).reader;
  if (checksum_text(block_hash_of(*reader)) == recorded) return;
  throw InputError(fmt::format("{}: {} are not the leverages that {} describes", escape(path),
                               escape(file), escape(report_file(path, codec.report_ending))),
                   "the files are of different runs, or were changed: factor again with --force, "
                   "or remove the leverages");
}

/// A report in CSV has no attributes. A report without checksums does not tell which files belong
/// to it.
void apply_report(const FactorCodec& codec, const OpenFiles& files, StoredFactors& factors) {
  const std::string& path = factors.file;
  if (codec.report_ending == ".csv") {
    refuse_two_modes(factors, files);
    const std::string report = report_file(path, codec.report_ending);
    if (!file_exists(report)) return;
    require_leverages(path, codec, read_first_in_column(report, leverage_checksum));
    const auto recorded = read_csv_checksums(report);
    if (recorded) require_recorded(path, files, codec, *recorded);
    return;
  }
  StoredReport report = read_report_of_set(path);
  apply_record(report.record, escape(path), factors);
  refuse_two_modes(factors, files);
  const auto of_leverages = report.record.find(leverage_checksum);
  if (of_leverages != report.record.end()) require_leverages(path, codec, of_leverages->second);
  if (!report.checksums.empty()) require_recorded(path, files, codec, report.checksums);
  factors.tries = std::move(report.tries);
}

template <class T, class Hash>
std::uint64_t hash_as(Reader& reader) {
  constexpr index_t numbers_at_once = 1 << 16;
  const Source& s = reader.source();
  // A vector may be one long row, so it is read in parts.
  PartReader* const parts = s.m == 1 && !is_complex(s.type) ? part_reader_of(reader) : nullptr;
  const index_t n = s.n * parts_in(s.type);
  const index_t cols = parts == nullptr ? n : std::min(n, numbers_at_once);
  const index_t step = std::clamp<index_t>(numbers_at_once / std::max<index_t>(cols, 1), 1,
                                           std::max<index_t>(s.m, 1));
  const Batch<T> memory(1, step, cols);
  Hash hash;
  const auto add = [&](index_t count) {
    std::for_each_n(memory.view().data, count,
                    [&](T number) { hash.add(static_cast<double>(number)); });
  };
  for (index_t matrix = 0; s.n > 0 && matrix < s.count(); ++matrix) {
    for (index_t j = 0; parts != nullptr && j < s.n; j += cols) {
      const index_t count = std::min(cols, s.n - j);
      parts->read_part(matrix * s.n + j, count, memory.view().data);
      add(count);
    }
    for (index_t i = 0; parts == nullptr && i < s.m; i += step) {
      const MatrixView<T> rows = memory.view()[0].row_block(0, std::min(step, s.m - i));
      reader.read_rows(matrix, i, rows);
      add(rows.rows * rows.cols);
    }
  }
  return hash.value();
}

/// Text may be read as float64, whatever it was written from.
bool is_single(const Source& source) {
  return real_of(source.type) == ElementType::float32 ||
         source.stored_type == name_of(ElementType::float32) ||
         source.stored_type == name_of(ElementType::complex64);
}

}  // namespace

Checksums take_first(Checksums& checksums, std::size_t count) {
  if (count > checksums.size()) throw InternalError("write: the report is ahead of the matrices");
  const auto end = checksums.begin() + static_cast<std::ptrdiff_t>(count);
  Checksums taken(checksums.begin(), end);
  checksums.erase(checksums.begin(), end);
  return taken;
}

StoredFactors open_factor_set(const std::string& path, const FactorCodec& codec, int threads) {
  StoredFactors factors;
  factors.file = path;
  OpenFiles files;
  for (const char* name : factor_names) {
    const std::string file = factor_file(path, name);
    if (!file_exists(file)) continue;
    FactorFile opened = codec.open(file, is_vector_factor(name), threads);
    files.names.push_back(escape(file));
    files.checksums.push_back([sum_up = std::move(opened.checksums), reader = opened.reader.get()] {
      return sum_up(*reader);
    });
    factor_of(factors, name) = std::move(opened.reader);
  }
  if (!factors.r && !factors.v) {
    throw InputError(
        fmt::format("cannot read '{}': there is no such file", escape(factor_file(path, "R"))),
        hint_for_missing_set(path));
  }
  apply_report(codec, files, factors);
  return factors;
}

std::unique_ptr<Reader>& factor_of(StoredFactors& factors, std::string_view name) {
  if (name == "Q") return factors.q;
  if (name == "R") return factors.r;
  if (name == "P") return factors.p;
  return name == "V" ? factors.v : factors.tau;
}

std::uint64_t number_hash_of(Reader& reader) {
  return is_single(reader.source()) ? hash_as<float, NumberHash>(reader)
                                    : hash_as<double, NumberHash>(reader);
}

std::uint64_t block_hash_of(Reader& reader) {
  return is_single(reader.source()) ? hash_as<float, BlockHash>(reader)
                                    : hash_as<double, BlockHash>(reader);
}

Checksums join_number_hashes(std::span<const Checksums> of_files, std::size_t matrices) {
  Checksums joined(matrices);
  for (std::size_t b = 0; b < matrices; ++b) {
    NumberHash hash;
    for (const Checksums& each : of_files) hash.add_word(each[b]);
    joined[b] = hash.value();
  }
  return joined;
}

}  // namespace qrtool
