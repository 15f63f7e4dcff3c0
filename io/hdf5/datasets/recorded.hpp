// SPDX-License-Identifier: Apache-2.0
// recorded.hpp: reads the attributes in which an output of this tool says how it was made.
#pragma once

#include <string>
#include <vector>

#include "io/hdf5/datasets/dataset.hpp"
#include "io/read/reader.hpp"

namespace qrtool::hdf5 {

/// The properties of an output. All are empty, automatic or false if another program wrote the
/// file.
struct Recorded {
  bool by_qrtool = false;
  std::string source_file, source_dataset, mode;
  Order order = Order::automatic;
  bool is_mixed = false, is_pivoted = false;
  TextPairs details = {};  // how the text that was factored was read
};

/// Reads the properties from the attributes of a group. HDF5 keeps no checksum of a text, so a
/// value that this tool does not write is damage or comes from a newer version. Errors: InputError
/// for such a value.
Recorded read_recorded(const InputFile& file, const std::string& group = "/");

/// Returns the datasets whose factors an output of several holds; none for any other file. The
/// properties of each are recorded at report_of() it.
std::vector<std::string> read_source_datasets(const InputFile& file);

/// Returns the group of a dataset's report: "/report/A" for "/A", and "/report" for "".
std::string report_of(const std::string& source);

/// Returns the order that the file states, in this tool's attribute or by the marks of the program
/// that wrote the dataset.
OrderEvidence stated_order(const InputFile& file, const Dataset& dataset);

}  // namespace qrtool::hdf5
