// SPDX-License-Identifier: Apache-2.0
// stream_work.cpp: the beginning and the end of a call on a stream, and what follows when a call of
// the driver fails.
#include "gpu/pipeline/stream_work.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace qrtool {

StreamWork::StreamWork(const DeviceInfo& info, Session& session, const StreamAllocator& allocator)
    : arrays_(*session.context->caller_arrays()),
      memory_(arrays_.stream_memory(allocator)),
      engine_(info, session, memory_.get()) {}

void StreamWork::free_memory() noexcept {
  engine_.pool.clear();
  memory_->end_call();
}

void StreamWork::run(void* stream, std::string_view where, const std::function<void()>& body) {
  const DriverScope driver;
  try {
    stream_ = stream;
    engine_.compute.reset();  // the stream of the last call may be gone
    engine_.compute = arrays_.queue_on(stream);
    memory_->begin_call(stream);
    body();
    free_memory();
  } catch (const DeviceFailure& failure) {
    engine_.drain();
    free_memory();
    throw_device_error(failure, engine_.info, where);
  } catch (...) {
    engine_.drain();
    free_memory();
    throw;
  }
}

void StreamWork::in_parts(index_t count, index_t most, const std::string& item,
                          const std::function<void(index_t, index_t)>& part,
                          const std::function<void()>& forget) {
  // The arrays of such a part begin where the memory is aligned to 16 bytes, if they all do.
  constexpr index_t aligned = 4;
  for (index_t first = 0; first < count;) {
    if (most > aligned) most -= most % aligned;
    const index_t some = std::min(most, count - first);
    try {
      part(first, some);
      first += some;
    } catch (const DeviceFailure& failure) {
      if (!failure.is_memory_short()) throw;
      if (some == 1)
        throw LimitError(fmt::format("{} has no memory left for one {}", engine_.info.text(), item),
                         "--backend cpu works in host memory");
      forget();
      free_memory();
      memory_->begin_call(stream_);
      most = some / 2;
    }
  }
}

void StreamWork::wait() {
  const DriverScope driver;
  try {
    engine_.compute->finish();
  } catch (const DeviceFailure& failure) {
    engine_.drain();
    throw_device_error(failure, engine_.info, "in its work on arrays");
  }
}

std::byte* StreamWork::results(std::size_t bytes) {
  if (results_bytes_ < bytes) {
    results_ = {};
    results_bytes_ = 0;
    results_ = engine_.allocate(bytes);
    results_bytes_ = bytes;
  }
  return results_.get();
}

}  // namespace qrtool
