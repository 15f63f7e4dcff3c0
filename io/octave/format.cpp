// SPDX-License-Identifier: Apache-2.0
// format.cpp: how text of Octave is known, and what opens it. Nothing is written so: Octave reads
// CSV and HDF5.
#include "io/octave/format.hpp"

#include "io/octave/reader.hpp"
#include "io/report/stored_output.hpp"

namespace qrtool {

constinit const Format octave_format{
    .name = "Octave",
    .has_datasets = true,
    .own_order = "text of Octave states its order",
    .is_input = [](const std::string&, Content content) { return content == Content::octave_text; },
    .open_input = octave::open_variable,
    .recorded_attributes =
        [](const std::string&, const std::vector<const char*>& names) {
          return std::vector<std::string>(names.size());
        },
    .find_solutions = [](const std::string&) { return std::string(); },
    .list_entries = octave::list_entries,
    .stored_outputs = [](const std::string&) { return std::vector<StoredOutput>{}; },
};

}  // namespace qrtool
