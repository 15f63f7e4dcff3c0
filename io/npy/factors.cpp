// SPDX-License-Identifier: Apache-2.0
// factors.cpp: finds the arrays of factors, and compares their checksums with those of the report.
#include "io/npy/factors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/error.hpp"
#include "core/measure/checksum.hpp"
#include "core/text.hpp"
#include "io/factor_files.hpp"
#include "io/file/input_file.hpp"
#include "io/npy/archive.hpp"
#include "io/npy/array_writer.hpp"
#include "io/npy/reader.hpp"
#include "io/npy/writer.hpp"
#include "io/stored_report.hpp"

namespace qrtool::npy {
namespace {

// The bytes of matrices that are summed up at a time.
constexpr index_t summed_bytes = index_t{16} << 20;

std::unique_ptr<Reader>& factor_of(StoredFactors& factors, std::string_view name) {
  if (name == "Q") return factors.q;
  if (name == "R") return factors.r;
  if (name == "P") return factors.p;
  return name == "V" ? factors.v : factors.tau;
}

/// Computes the checksums of the matrices as ArrayWriter does, whatever the order and the type in
/// which they are stored.
template <class T>
std::vector<std::uint64_t> checksums_of(Reader& reader) {
  const Source& source = reader.source();
  const index_t m = source.m, n = source.n, count = source.count();
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(count), 0);
  if (count == 0 || m == 0 || n == 0) return sums;
  const index_t room = summed_bytes / static_cast<index_t>(sizeof(T)), size = m * n;
  if (size <= room) {
    const index_t at_once = std::min(room / size, count);
    const Batch<T> piece(at_once, m, n);
    for (index_t b = 0; b < count; b += at_once) {
      const BatchView<T> matrices = piece.view().slice(0, std::min(at_once, count - b));
      reader.read(b, matrices);
      for (index_t i = 0; i < matrices.count; ++i)
        sums[static_cast<std::size_t>(b + i)] = checksum(MatrixView<const T>(matrices[i]));
    }
    return sums;
  }
  const index_t at_once = std::clamp<index_t>(room / n, 1, m);
  const Batch<T> piece(1, at_once, n);
  for (index_t b = 0; b < count; ++b) {
    for (index_t i = 0; i < m; i += at_once) {
      const MatrixView<T> rows = piece.view()[0].row_block(0, std::min(at_once, m - i));
      reader.read_rows(b, i, rows);
      sums[static_cast<std::size_t>(b)] +=
          checksum(MatrixView<const T>(rows), i * n * static_cast<index_t>(sizeof(T) / 4));
    }
  }
  return sums;
}

/// The number of the first matrix that is not the one of the report; nothing where all are.
std::optional<std::size_t> find_difference(std::span<Reader* const> readers,
                                           const std::vector<std::uint64_t>& recorded) {
  std::vector<std::vector<std::uint64_t>> sums;
  for (Reader* const reader : readers) {
    const bool is_single = reader->source().type == ElementType::float32;
    sums.push_back(is_single ? checksums_of<float>(*reader) : checksums_of<double>(*reader));
  }
  std::size_t matrices = recorded.size();
  for (const auto& each : sums) matrices = std::min(matrices, each.size());
  const std::vector<std::uint64_t> found = join_checksums(sums, matrices);
  for (std::size_t b = 0; b < matrices; ++b)
    if (found[b] != recorded[b]) return b;
  for (const auto& each : sums)
    if (each.size() != recorded.size()) return matrices;
  return {};
}

void require_one_run(const std::string& path, StoredFactors& factors, const StoredReport& report) {
  std::vector<std::string> names;
  std::vector<Reader*> readers;
  for (const char* name : factor_names) {
    Reader* const reader = factor_of(factors, name).get();
    if (reader == nullptr) continue;
    names.push_back(escape(factor_file(path, name)));
    readers.push_back(reader);
  }
  const bool has_qr = factors.q || factors.r || factors.p,
             has_reflectors = factors.v || factors.tau;
  if (has_qr && has_reflectors) throw_two_runs(path, names);
  if (report.checksums.empty()) return;
  if (const auto matrix = find_difference(readers, report.checksums))
    throw_not_described(path, *matrix, names, report_file(path, ".json"));
}

Record record_of(Archive& archive) {
  const index_t member = archive.find(record_member);
  return member < 0 ? Record{} : parse_record(archive.text(member));
}

/// /report/tries; empty where there is none.
std::vector<std::uint8_t> tries_of(Archive& archive) {
  const index_t member = archive.find("report_tries");
  if (member < 0) return {};
  ArrayParts parts = archive.array(member);
  const NumberType& type = parts.header.type;
  if (!parts.header.problem.empty() || type.bytes != 1 || type.kind != Kind::unsigned_integer)
    return {};
  std::vector<std::uint8_t> tries(static_cast<std::size_t>(parts.header.elements()));
  StoredArray array(std::move(parts), 0, {});
  array.load(0, tries.size(), reinterpret_cast<std::byte*>(tries.data()));
  return tries;
}

}  // namespace

StoredFactors open_npy_factors(const std::string& path, int threads) {
  StoredFactors factors;
  factors.file = path;
  for (const char* name : factor_names) {
    const std::string file = factor_file(path, name);
    if (!file_exists(file)) continue;
    const InputSpec spec{.path = file, .dataset = {}, .threads = threads, .scratch = {}};
    const bool is_vector = is_vector_factor(name);
    factor_of(factors, name) = read_array(open_array(file), "", is_vector, spec);
  }
  if (!factors.r && !factors.v) {
    throw InputError(
        fmt::format("cannot read '{}': there is no such file", escape(factor_file(path, "R"))),
        hint_for_missing_set(path));
  }
  StoredReport report = read_report_of_set(path);
  apply_record(report.record, escape(path), factors);
  require_one_run(path, factors, report);
  factors.tries = std::move(report.tries);
  return factors;
}

RecordedInput read_npy_recorded_input(const std::string& path) {
  return recorded_input(read_report_of_set(path).record);
}

StoredFactors open_npz_factors(const std::string& path, int threads) {
  const std::shared_ptr<Archive> archive = Archive::open(path, "");
  StoredFactors factors;
  factors.file = path;
  for (const std::string name : factor_names) {
    std::string lower = name;
    lower.front() = static_cast<char>(lower.front() | 0x20);
    index_t member = archive->find(name);
    if (member < 0 && name != "P") member = archive->find(lower);
    if (member < 0) continue;
    const InputSpec spec{.path = path, .dataset = {}, .threads = threads, .scratch = {}};
    factor_of(factors, name) =
        read_array(archive->array(member), name, is_vector_factor(name), spec);
  }
  apply_record(record_of(*archive), archive->file().shown, factors);
  if (factors.by_qrtool) factors.tries = tries_of(*archive);
  return factors;
}

std::vector<std::string> read_npz_attributes(const std::string& path,
                                             const std::vector<const char*>& names) {
  return values_of(record_of(*Archive::open(path, "")), names);
}

std::string find_npz_solutions(const std::string& path) {
  const std::shared_ptr<Archive> archive = Archive::open(path, "");
  for (const char* name : {"X", "x"})
    if (archive->find(name) >= 0) return name;
  return "";
}

RecordedInput read_npz_recorded_input(const std::string& path) {
  return recorded_input(record_of(*Archive::open(path, "")));
}

}  // namespace qrtool::npy
