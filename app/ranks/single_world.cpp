// SPDX-License-Identifier: Apache-2.0
// single_world.cpp: the world of one process, without MPI.
#include <fmt/format.h>

#include <cstdlib>
#include <string_view>

#include "app/process/console.hpp"
#include "app/ranks/world.hpp"
#include "core/error.hpp"

namespace qrtool {
namespace {

std::string_view variable(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? "" : text;
}

/// Refuses to run as several processes. Open MPI, and MPICH and its descendants, tell each process
/// how many there are.
void refuse_copies() {
  const bool is_open_mpi = !variable("OMPI_COMM_WORLD_SIZE").empty();
  const std::string_view size = variable(is_open_mpi ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE");
  if (size.empty() || size == "1") return;
  if (variable(is_open_mpi ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK") != "0") silence_console();
  throw UsageError(
      fmt::format("mpirun started {} copies of qrtool, each of which would do all of the work",
                  size),
      fmt::format("mpirun -n {} qrtool-mpi shares it; or leave mpirun away", size));
}

}  // namespace

std::unique_ptr<Comm> join_world() {
  refuse_copies();
  return std::make_unique<SingleComm>();
}

void abandon_world(const Comm&, int) {}

}  // namespace qrtool
