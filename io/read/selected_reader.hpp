// SPDX-License-Identifier: Apache-2.0
// selected_reader.hpp: a part of what another reader reads, for formats that cannot read parts
// themselves.
#pragma once

#include <memory>
#include <vector>

#include "io/read/reader.hpp"
#include "io/read/selection.hpp"

namespace qrtool {

/// Returns a reader of the selected matrices, rows and columns of `inner`, or `inner` itself if the
/// selection is empty. An index may drop any dimension of an array (open_array). Rows are read
/// whole even if only some columns are selected. Errors: as resolve().
std::unique_ptr<Reader> select(std::unique_ptr<Reader> inner, const Selection& selection,
                               bool is_array = false);

/// Returns a reader of these ranges of the dimensions of `inner` (its leading ones, rows, columns),
/// which keeps the name of the dataset; `inner` itself if all steps are 1.
std::unique_ptr<Reader> take_steps(std::unique_ptr<Reader> inner, std::vector<Range> ranges);

}  // namespace qrtool
