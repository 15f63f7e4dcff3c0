// SPDX-License-Identifier: Apache-2.0
// factor_on_ranks.hpp: the steps of `qrtool factor`, taken by several ranks together.
#pragma once

#include "app/factor/factor_run.hpp"
#include "app/options/options.hpp"
#include "core/error.hpp"
#include "core/machine/comm.hpp"

namespace qrtool {

/// Factors on all ranks. Every rank reads and factors its share. Rank 0 decides plan and backend
/// for all, and alone writes and prints. A failure of one rank is thrown on all.
ExitCode factor_on_ranks(const FactorOptions& options, Comm& comm);

/// Performs the steps of one run. Every rank calls it with the backend on which all have agreed.
FactorResult factor_together(FactorRun run, Comm& comm);

}  // namespace qrtool
