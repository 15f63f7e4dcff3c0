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

/// One checksum per matrix.
using Checksums = std::vector<std::uint64_t>;
/// Removes the first `count` checksums and returns them. Errors: InternalError if there are fewer.
Checksums take_first(Checksums& checksums, std::size_t count);

/// A file of a set, open for reading.
struct FactorFile {
  std::unique_ptr<Reader> reader;
  /// Returns the checksums of all matrices of `reader`, computed as the writer of the file computed
  /// them. It may read the whole file.
  std::function<Checksums(Reader& reader)> checksums;
};

/// The differences between formats that store factors as a set of files, except how an array is
/// written (SetWriter in set_writer.hpp).
struct FactorCodec {
  /// The ending of the report of a set: ".csv", which has only checksums, or ".json", which also
  /// has the attributes.
  std::string_view report_ending;
  /// Opens a file that exists. The dataset of a vector (`is_vector`) may have one dimension.
  /// Errors: InputError.
  FactorFile (*open)(const std::string& file, bool is_vector, int threads);
  /// Combines the checksums of the files into one for each of `matrices` matrices. The order of the
  /// files counts.
  Checksums (*join)(std::span<const Checksums> of_files, std::size_t matrices);
};

/// Opens the files of a set, such as out.csv. If the report of the set records checksums, the
/// factors must agree with them. Errors: InputError, also if the files come from different runs.
StoredFactors open_factor_set(const std::string& path, const FactorCodec& codec, int threads);

/// Returns the factor of this name, one of factor_names (io/write/factor_files.hpp).
std::unique_ptr<Reader>& factor_of(StoredFactors& factors, std::string_view name);

/// Returns the NumberHash of all numbers, row by row, in the type in which they were written.
std::uint64_t number_hash_of(Reader& reader);
/// Returns the BlockHash of all numbers.
std::uint64_t block_hash_of(Reader& reader);
/// Implements FactorCodec::join for checksums that are NumberHashes.
Checksums join_number_hashes(std::span<const Checksums> of_files, std::size_t matrices);

}  // namespace qrtool
