// SPDX-License-Identifier: Apache-2.0
// factors.cpp: opens the arrays of factors, and sums up their matrices.
#include "io/npy/factors.hpp"

#include <algorithm>

#include "core/measure/checksum.hpp"
#include "io/npy/archive.hpp"
#include "io/npy/array_writer.hpp"
#include "io/npy/reader.hpp"
#include "io/npy/writer.hpp"
#include "io/report/stored_report.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool::npy {
namespace {

// The bytes of matrices that are summed up at a time.
constexpr index_t summed_bytes = index_t{16} << 20;

/// Computes the checksums of the matrices as ArrayWriter does. They do not depend on the order and
/// the type in which the matrices are stored.
template <class T>
Checksums checksums_of(Reader& reader) {
  const Source& source = reader.source();
  const index_t m = source.m, n = source.n * parts_in(source.type), count = source.count();
  Checksums sums(static_cast<std::size_t>(count), 0);
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

FactorFile open_npy_factor(const std::string& file, bool is_vector, int threads) {
  const InputSpec spec{.path = file, .dataset = {}, .threads = threads, .scratch = {}};
  return {read_array(open_array(file), "", is_vector, spec), [](Reader& reader) {
            const bool is_single = real_of(reader.source().type) == ElementType::float32;
            return is_single ? checksums_of<float>(reader) : checksums_of<double>(reader);
          }};
}

Record record_of(Archive& archive) {
  const index_t member = archive.find(record_member);
  return member < 0 ? Record{} : parse_record(archive.text(member));
}

/// Returns /report/tries, or an empty list if it is not stored.
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

constinit const FactorCodec npy_codec{
    .report_ending = ".json", .open = open_npy_factor, .join = join_checksums};

StoredFactors open_npz_factors(const std::string& path, int threads) {
  const std::shared_ptr<Archive> archive = Archive::open(path, "");
  StoredFactors factors;
  factors.file = path;
  for (const std::string name : factor_names) {
    std::string lower = name;
    lower.front() = static_cast<char>(lower.front() | 0x20);
    index_t member = archive->find(name);
    if (member < 0) member = archive->find(lower);
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
