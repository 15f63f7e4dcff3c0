// SPDX-License-Identifier: Apache-2.0
// format.cpp: what opens and creates HDF5.
#include "io/hdf5/format.hpp"

#include "io/hdf5/contents.hpp"
#include "io/hdf5/factors.hpp"
#include "io/hdf5/reader.hpp"
#include "io/hdf5/write/writer.hpp"

namespace qrtool {
namespace {

constexpr SeveralDatasets several_datasets{.recorded = read_hdf5_source_datasets,
                                           .recorded_input = read_hdf5_recorded_input_of,
                                           .open_factors = open_hdf5_factors_of,
                                           .create_file = create_hdf5_file};

}  // namespace

constinit const Format hdf5_format{
    .name = "HDF5",
    .endings = {},
    .has_datasets = true,
    .selects = true,
    .own_order = {},
    .is_input = [](const std::string&, Content) { return true; },
    .open_input = open_hdf5_input,
    .recorded_input = read_hdf5_recorded_input,
    .open_factors = open_hdf5_factors,
    .recorded_attributes = read_hdf5_attributes,
    .find_solutions = find_hdf5_solutions,
    .files_of_output = [](const std::string& output) { return std::vector{output}; },
    .list_entries = list_hdf5_entries,
    .stored_outputs = read_hdf5_outputs,
    .create_output = create_hdf5,
    .output_workspace_bytes = hdf5_workspace_bytes,
    .several = &several_datasets,
};

}  // namespace qrtool
