// SPDX-License-Identifier: Apache-2.0
// resident_data.hpp: what runs on data that stay on the device share. Private to gpu/solve.
#pragma once

#include <algorithm>

#include "gpu/pipeline/engine.hpp"

namespace qrtool {

/// Uploads `bytes` bytes, and copies them on the device until `all` bytes are there.
inline void upload_repeated(const FactorEngine& engine, const Buffer& to, const void* from,
                            std::size_t bytes, std::size_t all) {
  std::size_t there = std::min(bytes, all);
  engine.upload->write(to, from, there);
  while (there < all) {
    const std::size_t more = std::min(there, all - there);
    engine.upload->copy(to, 0, to, there, more);
    there += more;
  }
}

}  // namespace qrtool
