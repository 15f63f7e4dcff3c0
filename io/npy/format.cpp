// SPDX-License-Identifier: Apache-2.0
// format.cpp: how NumPy's files are known, and what opens and creates them.
#include "io/npy/format.hpp"

#include <array>

#include "io/file/text_output.hpp"
#include "io/npy/contents.hpp"
#include "io/npy/factors.hpp"
#include "io/npy/members.hpp"
#include "io/npy/reader.hpp"
#include "io/npy/writer.hpp"
#include "io/report/stored_output.hpp"
#include "io/report/stored_report.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

constexpr std::array<std::string_view, 1> npy_endings{".npy"}, npz_endings{".npz"};
constexpr std::string_view own_order =
    "a NumPy array states its order itself (numpy.swapaxes(a, -1, -2) exchanges rows and columns)";

/// Whether the name of a file decides, because its content is text or unknown. The message then
/// speaks of the format of the name.
bool goes_by_name(Content content) {
  return content != Content::hdf5 && content != Content::npy && content != Content::zip;
}

/// Returns the memory of the writer of a set: a buffer for the text of the report. Arrays need
/// none.
std::size_t npy_workspace_bytes(const OutputSpec& spec) {
  return spec.with_report ? 2 * TextOutput::full_bytes : 0;
}

}  // namespace

constinit const Format npy_format{
    .name = ".npy",
    .endings = npy_endings,
    .own_order = own_order,
    .is_input =
        [](const std::string& file, Content content) {
          return content == Content::npy || (goes_by_name(content) && ending_of(file) == ".npy");
        },
    .open_input = npy::open_npy,
    .recorded_input = recorded_input_of_set,
    .open_factors = [](const std::string& path, Order,
                       int threads) { return open_factor_set(path, npy::npy_codec, threads); },
    .recorded_attributes = attributes_of_set,
    .files_of_output =
        [](const std::string& output) {
          return files_of_set(output, npy::npy_codec.report_ending);
        },
    .stored_outputs = read_json_output,
    .create_output = npy::create_npy,
    .output_workspace_bytes = npy_workspace_bytes,
};

constinit const Format npz_format{
    .name = ".npz",
    .endings = npz_endings,
    .has_datasets = true,
    .before_dataset = "",
    .report_place = "report_residual, ...",
    .own_order = own_order,
    .is_input =
        [](const std::string& file, Content content) {
          return content == Content::zip || (goes_by_name(content) && ending_of(file) == ".npz");
        },
    .open_input = npy::open_npz,
    .recorded_input = npy::read_npz_recorded_input,
    .open_factors = [](const std::string& path, Order,
                       int threads) { return npy::open_npz_factors(path, threads); },
    .recorded_attributes = npy::read_npz_attributes,
    .find_solutions = npy::find_npz_solutions,
    .files_of_output = [](const std::string& output) { return std::vector{output}; },
    .list_entries = npy::list_npz_entries,
    .stored_outputs = npy::read_npz_output,
    .create_output = npy::create_npz,
};

}  // namespace qrtool
