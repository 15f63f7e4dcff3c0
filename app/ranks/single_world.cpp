// SPDX-License-Identifier: Apache-2.0
// single_world.cpp: the world of one process, without MPI.
#include "app/ranks/world.hpp"

namespace qrtool {

std::unique_ptr<Comm> join_world() { return std::make_unique<SingleComm>(); }

void abandon_world(const Comm&, int) {}

}  // namespace qrtool
