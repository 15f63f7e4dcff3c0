// SPDX-License-Identifier: Apache-2.0
// world.hpp: the ranks that this process is one of. mpi_comm.cpp is built into qrtool-mpi,
// single_world.cpp into qrtool.
#pragma once

#include <memory>

#include "core/comm.hpp"

namespace qrtool {

/// To be called once, first thing. Leaving it is the destructor's work, on every rank.
std::unique_ptr<Comm> join_world();

/// Ends every rank: for a failure that the others do not know of. Returns where there are none.
void abandon_world(const Comm& world, int exit_code);

}  // namespace qrtool
