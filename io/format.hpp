// SPDX-License-Identifier: Apache-2.0
// format.hpp: what a file format is to the rest of the tool.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file/input_file.hpp"
#include "io/read/reader.hpp"
#include "io/read/stored_factors.hpp"
#include "io/report/stored_output.hpp"
#include "io/source/entry.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// How one file holds the factors of several datasets, which are written one after another.
struct SeveralDatasets {
  /// Does recorded_datasets() (io/open/factors.hpp). Errors: InputError where there is no file.
  std::vector<std::string> (*recorded)(const std::string& factors);
  /// Read the record of one of these datasets, and open its factors.
  RecordedInput (*recorded_input)(const std::string& factors, const std::string& source);
  StoredFactors (*open_factors)(const std::string& path, const std::string& source, Order order,
                                int threads);
  /// Does create_output_file() (io/open/output.hpp).
  std::unique_ptr<OutputFile> (*create_file)(const OutputSpec& root,
                                             std::span<const OutputSpec> planned);
};

/// A file format: how its files are known, and the functions that open and create them. Each
/// format's folder defines one.
struct Format {
  std::string_view name;                           // in messages, before "file"
  std::span<const std::string_view> endings = {};  // of outputs, with the dot, in lower case
  bool has_datasets = false;  // an input may hold several; FILE:NAME chooses one
  /// Messages say with these words where an output of one file holds Q and the report: "/Q", and
  /// "/report".
  std::string_view before_dataset = "/", report_place = "/report";
  bool selects = false;            // open_input() reads a part of a dataset by itself
  bool is_text = false;            // numbers are written as decimal text
  bool takes_csv_options = false;  // --delimiter and the others
  /// Why --order column means nothing for an input; empty where it means something.
  std::string_view own_order;

  /// Whether the format reads this input. `content` is found from the first bytes; it is text for
  /// "-".
  bool (*is_input)(const std::string& file, Content content);
  /// `spec.path` is the file alone. Where `selects`, `spec.dataset` may end in a selection;
  /// otherwise open/input.cpp takes it off and reads through selected_reader.hpp. Errors:
  /// InputError, LimitError.
  std::unique_ptr<Reader> (*open_input)(const InputSpec& spec);

  /// The next functions take the name of an output, which need not be a file: out.csv names
  /// out.Q.csv, out.R.csv and out.report.csv. Those that only an output has may be null where
  /// `endings` is empty. open_factors() leaves the check of the shapes to its caller.
  RecordedInput (*recorded_input)(const std::string& factors) = nullptr;
  StoredFactors (*open_factors)(const std::string& path, Order order, int threads) = nullptr;
  /// Does recorded_attributes() for an output.
  std::vector<std::string> (*recorded_attributes)(const std::string& output,
                                                  const std::vector<const char*>& names);
  /// The dataset with the solutions X; empty where none has a name that says so. Only where
  /// `has_datasets`.
  std::string (*find_solutions)(const std::string& file) = nullptr;
  /// All files that an output of any kind may have.
  std::vector<std::string> (*files_of_output)(const std::string& output) = nullptr;

  /// Does list_entries() and read_stored_outputs() (io/open/contents.hpp). The first only where
  /// `has_datasets`.
  std::vector<Entry> (*list_entries)(const std::string& file) = nullptr;
  std::vector<StoredOutput> (*stored_outputs)(const std::string& output);

  std::unique_ptr<Writer> (*create_output)(const OutputSpec& spec) = nullptr;
  /// The memory that such a writer takes for itself. Null: next to none.
  std::size_t (*output_workspace_bytes)(const OutputSpec& spec) = nullptr;
  /// Null: an output holds the factors of one dataset.
  const SeveralDatasets* several = nullptr;
};

}  // namespace qrtool
