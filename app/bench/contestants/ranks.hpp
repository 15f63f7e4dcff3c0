// SPDX-License-Identifier: Apache-2.0
// ranks.hpp: R of one tall matrix whose rows the ranks share.
//
// Every rank keeps its share of the rows, on its device where it has one, and factors them into
// R_i. Rank 0 stacks the R_i and factors the stack into R. The time of a run is the wall time from
// a common start until R is on rank 0.
#pragma once

#include <memory>

#include "app/bench/contestants/baselines.hpp"
#include "core/machine/comm.hpp"

namespace qrtool {

/// Makes the contestant for rank 0. While it lives, the other ranks are in serve_ranked_tool.
/// prepare() accepts only R of one matrix with at least a row for every rank; UsageError otherwise.
/// `comm` and what `setup` refers to outlive it.
std::unique_ptr<Contestant> make_ranked_tool(const BenchSetup& setup, Comm& comm);

/// Does the share of any other rank until rank 0 destroys its contestant.
void serve_ranked_tool(const BenchSetup& setup, Comm& comm);

}  // namespace qrtool
