// SPDX-License-Identifier: Apache-2.0
// cold.cpp: writes more memory than any cache holds.
#include "app/bench/timing/cold.hpp"

#include <unistd.h>

#include <algorithm>
#include <memory>

#include "app/bench/timing/device.hpp"
#include "core/machine/parallel.hpp"

namespace qrtool {

std::size_t bytes_beyond_caches() {
  const long last_level = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return std::max(2 * static_cast<std::size_t>(std::max(last_level, 0L)), std::size_t{64} << 20);
}

std::function<void()> flush_of_host(int threads) {
  // Each thread writes all of its own part, because a core's own caches hold the memory that the
  // core has used.
  const auto parts = std::make_shared<std::vector<std::vector<char>>>(
      static_cast<std::size_t>(threads),
      std::vector<char>(bytes_beyond_caches() / static_cast<std::size_t>(threads)));
  return [parts, threads, value = char{0}]() mutable {
    ++value;
    parallel_for(threads, threads, [&](index_t i, int) {
      std::ranges::fill((*parts)[static_cast<std::size_t>(i)], value);
    });
  };
}

std::function<void()> flush_of(Backend& backend, int threads) {
  if (backend.name() == "cpu") return flush_of_host(threads);
  return [&backend] { flush_device(backend); };
}

}  // namespace qrtool
