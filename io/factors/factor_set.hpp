// SPDX-License-Identifier: Apache-2.0
// factor_set.hpp: reads factors from a set of files, such as out.Q.csv, out.R.csv and
// out.report.csv, for formats that need a file for each dataset.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"

namespace qrtool {

/// The checksums of some matrices, one for each.
using Checksums = std::vector<std::uint64_t>;
/// Removes the first `count` checksums and returns them. Errors: InternalError where there are
/// fewer.
Checksums take_first(Checksums& checksums, std::size_t count);

/// A file of a set, open for reading.
struct FactorFile {
  std::unique_ptr<Reader> reader;
  /// Returns the checksums that the writer of the file gave the same matrices, from `reader`. It
  /// may read the whole file.
  std::function<Checksums(Reader& reader)> checksums;
};

/// All that differs between the formats whose factors are a set of files, but for what writes an
/// array (SetWriter in set_writer.hpp).
struct FactorCodec {
  /// Of the report of the set: ".csv", which has checksums alone, or ".json", which also has the
  /// attributes.
  std::string_view report_ending;
  /// Opens a file that exists. The dataset of a vector (`is_vector`) may have one dimension.
  /// Errors: InputError.
  FactorFile (*open)(const std::string& file, bool is_vector, int threads);
  /// Makes one checksum for each of `matrices` matrices from those of its files, whose order
  /// counts.
  Checksums (*join)(std::span<const Checksums> of_files, std::size_t matrices);
};

/// Opens the files of a set, such as out.csv. Where the report of the set records checksums, the
/// factors must have them. Errors: InputError, also where files of different runs lie beside each
/// other.
StoredFactors open_factor_set(const std::string& path, const FactorCodec& codec, int threads);

/// The factor of this name, one of factor_names (io/write/factor_files.hpp).
std::unique_ptr<Reader>& factor_of(StoredFactors& factors, std::string_view name);

/// The NumberHash of all numbers, row by row, in the type in which they were written.
std::uint64_t number_hash_of(Reader& reader);
/// The BlockHash of them.
std::uint64_t block_hash_of(Reader& reader);
/// Does FactorCodec::join for checksums that are NumberHashes.
Checksums join_number_hashes(std::span<const Checksums> of_files, std::size_t matrices);

}  // namespace qrtool
