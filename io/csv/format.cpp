// SPDX-License-Identifier: Apache-2.0
// format.cpp: how text is known, and what opens and creates it.
#include "io/csv/format.hpp"

#include <array>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/coefficients.hpp"
#include "io/csv/comments.hpp"
#include "io/csv/reader.hpp"
#include "io/csv/writer.hpp"
#include "io/file/foreign.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_bytes.hpp"
#include "io/file/text_output.hpp"
#include "io/mtx/reader.hpp"
#include "io/report/stored_output.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

constexpr std::array<std::string_view, 3> endings{".csv", ".tsv", ".txt"};

bool is_text(const std::string& file, Content content) {
  return is_standard_input(file) || has_text_ending(file) || content == Content::gzip;
}

std::unique_ptr<Reader> open_text(const InputSpec& spec) {
  const bool is_standard = is_standard_input(spec.path);
  if (!is_standard) require_text_file(spec.path);
  const int descriptor = open_rereadable(spec.path);
  const std::string name(is_standard ? std::string(standard_input) : spec.path);
  const std::string head = head_of_text(descriptor, escape(name));
  refuse_foreign_format(head, spec.path);
  if (is_standard && is_matrix_market(head)) {
    refuse_csv_options(spec.csv, name);
    return open_mtx(descriptor, name, spec.memory_bytes);
  }
  return open_csv(descriptor, name, spec.csv,
                  {.is_one_table = spec.is_one_table,
                   .kept_bytes = spec.is_one_table ? spec.memory_bytes / 2 : 0,
                   .memory_bytes = spec.memory_bytes,
                   .remainders = spec.remainders,
                   .needed = spec.needed_columns,
                   .only_needed = spec.only_needed_columns});
}

std::unique_ptr<Writer> create_text(const OutputSpec& spec) {
  return spec.coefficients ? create_coefficients(spec) : create_csv(spec);
}

/// Returns the memory of the writer: each file has a buffer that is written when it is full.
std::size_t csv_workspace_bytes(const OutputSpec& spec) {
  return (spec.datasets.size() + 1) * 2 * TextOutput::full_bytes;
}

}  // namespace

constinit const Format csv_format{
    .name = "CSV",
    .endings = endings,
    .is_text = true,
    .takes_csv_options = true,
    .own_order = "CSV is read line by line",
    .is_input = is_text,
    .open_input = open_text,
    .recorded_input = read_csv_recorded_input,
    .open_factors = [](const std::string& path, Order,
                       int threads) { return open_factor_set(path, csv_codec, threads); },
    .recorded_attributes = read_csv_attributes,
    .files_of_output =
        [](const std::string& output) { return files_of_set(output, csv_codec.report_ending); },
    .stored_outputs =
        [](const std::string& output) {
          return is_coefficient_table(output) ? read_json_output(output)
                                              : read_csv_output(output, csv_attributes(output));
        },
    .create_output = create_text,
    .output_workspace_bytes = csv_workspace_bytes,
};

}  // namespace qrtool
