// SPDX-License-Identifier: Apache-2.0
// planned_datasets.hpp: the datasets of an output, with their layouts, before anything is written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/hdf5/chunks/layout.hpp"
#include "io/hdf5/structure/file.hpp"
#include "io/hdf5/write/chunk_writer.hpp"
#include "io/write/writer.hpp"

namespace qrtool::hdf5 {

/// A dataset of the output. `rows` and `cols` are the stored dimensions of a matrix.
struct Output {
  std::string name;
  index_t rows = 0, cols = 0;
  std::size_t element_bytes = 0;
  bool is_whole = false;  // numbers come as float64
  bool is_complex = false;
  bool is_transposed = false;
  Layout layout;
  Handle handle;
  std::optional<ChunkWriter> chunks;  // empty for a dataset without elements
};

/// Returns the datasets of factors or solutions, in the order of OutputSpec::datasets.
std::vector<Output> plan_matrices(const OutputSpec& spec);
/// Returns the datasets of a report of solutions, in the order of OutputSpec::numbers.
std::vector<Output> plan_numbers(const OutputSpec& spec);
/// Returns the datasets of the report of every matrix, in the order of OutputSpec::report_columns;
/// none without a report.
std::vector<Output> plan_columns(const OutputSpec& spec);

/// Returns the bytes of the datasets in the file, without their headers.
std::uint64_t file_bytes_of(std::span<const Output> outputs);

/// Returns the bytes that an output needs in a file of several, with its headers.
std::uint64_t planned_bytes(const OutputSpec& spec);

}  // namespace qrtool::hdf5
