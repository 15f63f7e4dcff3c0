// SPDX-License-Identifier: Apache-2.0
// ranks.hpp: R of one tall matrix whose rows the ranks share.
//
// Every rank keeps rows of its own, on its device where it has one, and makes R_i of them; rank 0
// makes R of the R_i, one below the other. A run begins on all ranks together and ends when R is
// on rank 0: wall time.
#pragma once

#include <memory>

#include "app/bench/baselines.hpp"
#include "core/comm.hpp"

namespace qrtool {

/// The tool over all ranks, for rank 0. While it lives the others are in serve_ranked_tool.
/// prepare() takes one matrix, of which R is wanted, with a row for every rank: else UsageError.
/// `comm` and what `setup` refers to outlive it.
std::unique_ptr<Contestant> make_ranked_tool(const BenchSetup& setup, Comm& comm);

/// The share of any other rank, until rank 0's contestant is gone.
void serve_ranked_tool(const BenchSetup& setup, Comm& comm);

}  // namespace qrtool
