// SPDX-License-Identifier: Apache-2.0
// format.cpp: how Matrix Market files are known, and what opens and creates them.
#include "io/mtx/format.hpp"

#include <array>

#include "io/file/rereadable.hpp"
#include "io/mtx/reader.hpp"
#include "io/mtx/writer.hpp"
#include "io/report/stored_output.hpp"
#include "io/report/stored_report.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

constexpr std::array<std::string_view, 1> endings{".mtx"};

}  // namespace

constinit const Format mtx_format{
    .name = "Matrix Market",
    .endings = endings,
    .is_text = true,
    .own_order = "a Matrix Market file states its order",
    .is_input = [](const std::string&,
                   Content content) { return content == Content::matrix_market; },
    .open_input =
        [](const InputSpec& spec) {
          return open_mtx(open_rereadable(spec.path), spec.path, spec.memory_bytes);
        },
    .recorded_input = recorded_input_of_set,
    .open_factors = [](const std::string& path, Order,
                       int threads) { return open_factor_set(path, mtx_codec, threads); },
    .recorded_attributes = attributes_of_set,
    .files_of_output =
        [](const std::string& output) { return files_of_set(output, mtx_codec.report_ending); },
    .stored_outputs = read_json_output,
    .create_output = create_mtx,
    .output_workspace_bytes = mtx_workspace_bytes,
};

}  // namespace qrtool
