// SPDX-License-Identifier: Apache-2.0
// order.cpp: which commands are known to come before others, by vector clocks. The host counts as
// one, whatever thread waits.
#include <algorithm>

#include "tests/support/cuda_stand_in/state.hpp"

namespace qrtool::cuda {
namespace {

bool is_before(const Access& access, const Clock& clock) {
  return access.time <= clock.of(access.stream);
}

std::string text_of(const Memory& memory) {
  return "memory of " + std::to_string(memory.bytes) + " bytes";
}

}  // namespace

std::uint64_t Clock::tick(std::size_t stream) {
  if (done_.size() <= stream) done_.resize(stream + 1);
  return ++done_[stream];
}

void Clock::join(const Clock& other) {
  if (done_.size() < other.done_.size()) done_.resize(other.done_.size());
  std::transform(other.done_.begin(), other.done_.end(), done_.begin(), done_.begin(),
                 [](std::uint64_t a, std::uint64_t b) { return std::max(a, b); });
}

/// The legacy stream waits for the blocking streams of its context, and these for it.
Clock clock_of(Stream stream) {
  Clock clock = stream->clock;
  if (stream->is_legacy) {
    clock.join(stream->context->of_destroyed);
    for (const Stream other : state().streams)
      if (other->context == stream->context && other->is_blocking) clock.join(other->clock);
  } else if (stream->is_blocking && stream->context->legacy != nullptr) {
    clock.join(stream->context->legacy->clock);
  }
  return clock;
}

std::uint64_t begin_command(Stream stream) {
  if (stream->is_recording) broken("the stream is being recorded");
  stream->clock = clock_of(stream);
  stream->clock.join(state().host);
  return stream->clock.tick(stream->number);
}

void host_waits(const Clock& clock) { state().host.join(clock); }

void access(Memory& memory, std::size_t begin, std::size_t end, Stream stream, bool writes) {
  const Clock& clock = stream->clock;
  for (const Access& old : memory.accesses) {
    const bool overlaps = old.begin < end && begin < old.end;
    if (overlaps && (writes || old.writes) && !is_before(old, clock))
      broken("bytes " + std::to_string(begin) + " to " + std::to_string(end) + " of " +
             text_of(memory) + " are " + (writes ? "written" : "read") +
             " with no order after another stream, which " + (old.writes ? "writes" : "reads") +
             " bytes " + std::to_string(old.begin) + " to " + std::to_string(old.end));
  }
  std::erase_if(memory.accesses, [&](const Access& old) {
    const bool is_covered =
        begin <= old.begin && old.end <= end && (writes || !old.writes) && is_before(old, clock);
    return is_covered || is_before(old, state().host);
  });
  memory.accesses.push_back({.begin = begin,
                             .end = end,
                             .stream = stream->number,
                             .time = clock.of(stream->number),
                             .writes = writes});
}

void wait_for_stream(Stream stream) {
  run_commands();
  host_waits(clock_of(stream));
}

void wait_for_device(Device device) {
  run_commands();
  for (const Stream stream : state().streams)
    if (stream->context->device == device) host_waits(stream->clock);
  for (const Context context : state().contexts)
    if (context->device == device) host_waits(context->of_destroyed);
}

void access_by_host(Memory& memory) {
  for (const Access& old : memory.accesses)
    if (!is_before(old, state().host))
      broken(text_of(memory) + " is freed, but the host has not waited for its last use");
}

}  // namespace qrtool::cuda
