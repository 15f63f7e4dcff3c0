// SPDX-License-Identifier: Apache-2.0
// selected_reader.hpp: a part of what another reader reads, for formats that cannot read parts
// themselves.
#pragma once

#include <memory>
#include <vector>

#include "io/read/reader.hpp"
#include "io/read/selection.hpp"

namespace qrtool {

/// Returns a reader of the selected matrices, rows and columns of `inner`, or `inner` itself where
/// the selection is empty. Of an array (open_array) an index may drop any dimension. It reads the
/// whole rows of which it needs some columns. Errors: as resolve().
std::unique_ptr<Reader> select(std::unique_ptr<Reader> inner, const Selection& selection,
                               bool is_array = false);

/// A reader of these ranges of the dimensions of `inner` (its leading ones, rows, columns), which
/// keeps the name of the dataset; `inner` itself where all have a step of 1.
std::unique_ptr<Reader> take_steps(std::unique_ptr<Reader> inner, std::vector<Range> ranges);

}  // namespace qrtool
