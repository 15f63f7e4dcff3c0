// SPDX-License-Identifier: Apache-2.0
// resident_data.hpp: what runs on data that stay on the device share. Private to gpu/solve.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/error.hpp"
#include "gpu/pipeline/engine.hpp"
#include "gpu/pipeline/flights.hpp"

namespace qrtool {

/// Calls body(), which must end with a wait. `what` is what the run holds on the device, for the
/// message. Errors: DeviceError, and LimitError where it does not fit.
template <class Body>
void run_or_explain(FactorEngine& engine, std::string_view what, Body body) {
  try {
    body();
  } catch (const DeviceFailure& failure) {
    engine.drain();
    if (!failure.is_memory_short()) throw_device_error(failure, engine.info, "in a run");
    throw LimitError(std::string(what) + " do not fit " + engine.info.text() + " at once");
  }
}

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
