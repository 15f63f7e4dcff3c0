// SPDX-License-Identifier: Apache-2.0
// world.hpp: the ranks to which this process belongs. mpi_comm.cpp is built into qrtool-mpi,
// single_world.cpp into qrtool.
#pragma once

#include <memory>

#include "core/machine/comm.hpp"

namespace qrtool {

/// Call it once, before anything else. The destructor of the result leaves the world, on every
/// rank.
std::unique_ptr<Comm> join_world();

/// Ends every rank after a failure that the others do not know of. Returns if there are no others.
void abandon_world(const Comm& world, int exit_code);

}  // namespace qrtool
