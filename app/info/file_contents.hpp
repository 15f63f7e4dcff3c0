// SPDX-License-Identifier: Apache-2.0
// file_contents.hpp: looks into a file as `factor` would, and into outputs of this tool.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/info/output_summary.hpp"
#include "io/read/reader.hpp"
#include "io/source/entry.hpp"

namespace qrtool {

struct InfoOptions;

/// A dataset, and how it is read.
struct FoundDataset {
  Entry entry;
  std::optional<Source> source = {};  // nothing where it cannot be read as matrices
  std::string order_reason = {};
};

struct FileContents {
  std::string file;                     // or the name of a set of files
  std::string format = {};              // "HDF5"
  std::uint64_t bytes = 0;              // of all files
  std::vector<std::string> files = {};  // of a set; empty: it is one file
  std::vector<FoundDataset> datasets = {};
  std::optional<Source> read = {};        // what `factor` reads where nothing else is said
  std::string objection = {}, hint = {};  // why `factor` reads nothing, and what to do
  std::vector<OutputSummary> outputs = {};
};

/// Looks into a file. Errors: InputError if the file, or the dataset that was named, cannot be
/// read.
FileContents look_into(const InfoOptions& options);

}  // namespace qrtool
