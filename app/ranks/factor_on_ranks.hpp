// SPDX-License-Identifier: Apache-2.0
// factor_on_ranks.hpp: the steps of `qrtool factor`, taken by several ranks together.
#pragma once

#include "app/factor/factor_run.hpp"
#include "app/options/options.hpp"
#include "core/error.hpp"
#include "core/machine/comm.hpp"

namespace qrtool {

/// Every rank reads and factors its share. Rank 0 alone writes and says what came of it; its plan
/// and its backend are those of all. A failure of one rank is thrown on all.
ExitCode factor_on_ranks(const FactorOptions& options, Comm& comm);

/// The steps of one run, in which every rank calls it with the backend that all have agreed on.
FactorResult factor_together(FactorRun run, Comm& comm);

}  // namespace qrtool
