// SPDX-License-Identifier: Apache-2.0
// flights.cpp: the order of the steps, and what follows when a call of the driver fails.
#include "gpu/pipeline/flights.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"

namespace qrtool {
namespace {

/// Some neighbours of the items.
struct Part {
  index_t first, count;
};

std::vector<Part> cut_into_parts(const PartedWork& work, index_t first, index_t end, index_t most) {
  std::vector<Part> parts;
  for (; first < end; first += parts.back().count)
    parts.push_back({first, work.part_size(first, std::min(most, end - first))});
  return parts;
}

/// Takes the parts through the device; `open` is the first item without results.
void run_parts(PartedWork& work, const std::vector<Part>& parts, int sets, index_t& open) {
  // The next upload starts before the host may have to wait for a decision.
  const int ahead = std::max(sets - 2, 0), behind = sets - 1 - ahead;
  const auto count = std::ssize(parts);
  const auto set_of = [&](index_t part) { return static_cast<int>(part % sets); };
  for (index_t i = 0; i < ahead + count + behind; ++i) {
    const index_t now = i - ahead, back = now - behind;
    if (i < count) {
      const Part& part = parts[static_cast<std::size_t>(i)];
      work.begin(set_of(i), part.first, part.count);
    }
    if (now >= 0 && now < count) work.launch(set_of(now));
    if (back < 0) continue;
    work.collect(set_of(back));
    const Part& done = parts[static_cast<std::size_t>(back)];
    open = done.first + done.count;
  }
}

}  // namespace

void run_in_parts(FactorEngine& engine, PartedWork& work, index_t count) {
  const DriverScope driver;
  index_t open = 0, most = std::numeric_limits<index_t>::max();
  int most_sets = std::numeric_limits<int>::max();
  while (open < count) {
    SubChunks cut = work.cut(count - open);
    cut.matrices = std::min(cut.matrices, most);
    cut.sets = std::min(cut.sets, most_sets);
    work.take_sets(cut.sets);
    try {
      run_parts(work, cut_into_parts(work, open, count, cut.matrices), cut.sets, open);
    } catch (const DeviceFailure& failure) {
      engine.drain();
      engine.pool.clear();
      work.free_buffers();
      if (!failure.is_memory_short())
        throw_device_error(failure, engine.info, "at " + work.place(open));
      if (cut.matrices == 1 && cut.sets == 1)
        throw LimitError(
            fmt::format("{} has no memory left for one {}", engine.info.text(), work.item()),
            "--backend cpu works in host memory");
      // Half as many at a time; of a single one, fewer sets.
      if (cut.matrices == 1) most_sets = cut.sets - 1;
      most = std::max<index_t>(cut.matrices / 2, 1);
    } catch (...) {
      engine.drain();
      throw;
    }
  }
  work.take_sets(0);
}

}  // namespace qrtool
