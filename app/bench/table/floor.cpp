// SPDX-License-Identifier: Apache-2.0
// floor.cpp: measures a copy, and counts the bytes of a case.
#include "app/bench/table/floor.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "app/bench/timing/device.hpp"
#include "app/process/stopwatch.hpp"
#include "core/machine/host.hpp"
#include "core/machine/parallel.hpp"

namespace qrtool {
namespace {

/// The bytes of one side of the copy, more than caches hold. Both sides use at most half of the
/// memory.
constexpr std::size_t copied_bytes = std::size_t{256} << 20;
constexpr index_t copied_pieces = 64;

double host_rate(const Limits& limits) {
  const std::size_t piece = std::max<std::size_t>(
      std::min(copied_bytes, limits.host_bytes / 4) / static_cast<std::size_t>(copied_pieces), 64);
  const std::size_t bytes = piece * static_cast<std::size_t>(copied_pieces);
  const HostMemory from = allocate_host(bytes), to = allocate_host(bytes);
  double least = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 4; ++turn) {  // the first touches the pages
    const Stopwatch watch;
    parallel_for(copied_pieces, limits.threads, [&](index_t i, int) {
      const std::size_t first = static_cast<std::size_t>(i) * piece;
      if (turn == 0) std::memset(from.get() + first, 1, piece);
      std::memcpy(to.get() + first, from.get() + first, piece);
    });
    if (turn > 0) least = std::min(least, watch.seconds());
  }
  return 2 * static_cast<double>(bytes) / least;
}

}  // namespace

double moved_bytes_per_second(Backend& backend) {
  if (backend.name() == "cpu") return host_rate(backend.limits());
  return device_rate(backend, copied_bytes);
}

double floor_seconds(const BenchHeader& header, const BenchCase& size, double bytes_per_second) {
  const Problem p = problem_of(size, header.type, header.mode);
  const auto entry = static_cast<double>(size_of(header.type));
  const double a = static_cast<double>(p.input_bytes());
  const double of_factors = a + static_cast<double>(p.output_bytes());
  const double b_and_x = entry * static_cast<double>(size.m + size.n);
  const auto batch = static_cast<double>(size.batch);
  switch (header.task) {
    case BenchTask::factor:
      return batch * of_factors / bytes_per_second;
    case BenchTask::solve:
      return batch * (a + b_and_x) / bytes_per_second;
    case BenchTask::solve_shared:
      break;
    case BenchTask::solve_weighed:
      return (a + batch * (b_and_x + entry * static_cast<double>(size.m))) / bytes_per_second;
  }
  return (a + batch * b_and_x) / bytes_per_second;
}

}  // namespace qrtool
