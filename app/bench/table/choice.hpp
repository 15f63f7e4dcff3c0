// SPDX-License-Identifier: Apache-2.0
// choice.hpp: whether the tool's own choices are the fastest: that of --backend auto between the
// CPU and a GPU, and that of the plan among variants.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "app/bench/contestants/baselines.hpp"
#include "app/bench/table/table.hpp"

namespace qrtool {

/// The tool's choice may be slower than the best variant by at most this factor.
constexpr double most_behind = 1.25;

/// Returns the choice of --backend auto for one case, and which of the CPU and the device is
/// faster, by the time of a run from host memory to host memory with the check, the device's start
/// and its programs, which were built before. Returns nothing if one of them was not measured, or
/// if the device is a CPU.
std::optional<BenchChoice> choice_of_backend(const BenchRow& row, const BenchHeader& header,
                                             const BenchSetup& setup);

/// Returns the plan's variant and the fastest of all that were measured (--against variants), with
/// resident data and without the check. Returns nothing if nothing was measured.
std::optional<BenchChoice> choice_of_variant(const BenchRow& row, const BenchHeader& header);

}  // namespace qrtool
