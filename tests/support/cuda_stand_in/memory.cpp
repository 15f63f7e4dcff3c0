// SPDX-License-Identifier: Apache-2.0
// memory.cpp: the memory of the stand-in. The numbers lie in one range of addresses, and what the
// program gets are addresses of a second range, which nobody can read.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "tests/support/cuda_stand_in/state.hpp"

namespace qrtool::cuda {
namespace {

constexpr std::size_t range_bytes = std::size_t{1} << 43, page = 4096, alignment = 256;
constexpr int poison = 0xff;  // NaN

std::size_t rounded_up(std::size_t bytes, std::size_t to) { return (bytes + to - 1) / to * to; }

struct Range {
  std::byte* first;
  std::uintptr_t device;  // the address of the program for the first byte
  std::size_t used = 0;
};

Range& range() {
  static Range made = [] {
    void* const place = mmap(nullptr, 2 * range_bytes, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (place == MAP_FAILED) broken("there are no addresses for device memory");
    auto* const first = static_cast<std::byte*>(place);
    return Range{first, reinterpret_cast<std::uintptr_t>(first) + range_bytes};
  }();
  return made;
}

bool is_in_range(std::uintptr_t pointer) {
  return pointer >= range().device && pointer < range().device + range_bytes;
}

/// The end of the memory is near a page that cannot be accessed, as is its begin.
std::byte* new_place(std::size_t bytes) {
  Range& r = range();
  const std::size_t room = rounded_up(bytes, page), inside = rounded_up(bytes, alignment);
  if (room + 2 * page > range_bytes - r.used) return nullptr;
  std::byte* const pages = r.first + r.used + page;
  if (mprotect(pages, room, PROT_READ | PROT_WRITE) != 0) return nullptr;
  r.used += room + page;
  std::memset(pages, poison, room);
  return pages + (room - inside);
}

/// What lies around the memory in its pages.
bool is_untouched(const std::byte* begin, const std::byte* end) {
  return std::all_of(begin, end, [](std::byte each) { return each == std::byte{poison}; });
}

void give_back(std::byte* place, std::size_t bytes) {
  const std::size_t room = rounded_up(bytes, page);
  std::byte* const pages = place - (room - rounded_up(bytes, alignment));
  if (!is_untouched(pages, place) || !is_untouched(place + bytes, pages + room))
    broken("something was written beside memory of " + std::to_string(bytes) + " bytes");
  // Its addresses stay without access.
  mmap(pages, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

bool is_on_device(Memory::Kind kind) { return kind != Memory::Kind::host; }

}  // namespace

Memory* make_memory(Memory::Kind kind, std::size_t bytes, Context context, Device device) {
  State& s = state();
  if (is_on_device(kind) && (bytes > s.words.memory || s.device_bytes > s.words.memory - bytes))
    return nullptr;
  std::byte* const place = new_place(bytes);
  if (place == nullptr) return nullptr;
  const bool is_of_host = kind == Memory::Kind::host || kind == Memory::Kind::managed;
  const std::uintptr_t address =
      is_of_host ? reinterpret_cast<std::uintptr_t>(place)
                 : range().device + static_cast<std::size_t>(place - range().first);
  if (is_on_device(kind)) s.device_bytes += bytes;
  Memory& memory = s.memories[address];
  memory.kind = kind;
  memory.address = address;
  memory.bytes = bytes;
  memory.place = place;
  memory.device = device;
  memory.context = kind == Memory::Kind::pool ? nullptr : context;
  return &memory;
}

Memory* memory_at(std::uintptr_t pointer) {
  auto& memories = state().memories;
  auto after = memories.upper_bound(pointer);
  if (after == memories.begin()) return nullptr;
  Memory& memory = std::prev(after)->second;
  return pointer - memory.address < memory.bytes ? &memory : nullptr;
}

Part part_of(std::uintptr_t pointer, std::size_t bytes, Context context) {
  Memory* const memory = memory_at(pointer);
  if (memory == nullptr)
    broken(is_in_range(pointer) ? "the address is in no device memory, or in memory that was freed"
                                : "the address is not one of device memory");
  const std::size_t offset = pointer - memory->address;
  if (bytes > memory->bytes - offset)
    broken(std::to_string(bytes) + " bytes from byte " + std::to_string(offset) +
           " on are more than the memory has, which is of " + std::to_string(memory->bytes));
  const bool is_foreign = memory->context != nullptr && memory->context != context;
  if ((is_on_device(memory->kind) && memory->device != context->device) || is_foreign)
    broken("the memory belongs to another context");
  return {memory, offset};
}

void forget(Memory& memory) {
  State& s = state();
  if (is_on_device(memory.kind)) s.device_bytes -= memory.bytes;
  s.commands.emplace_back(
      [place = memory.place, bytes = memory.bytes] { give_back(place, bytes); });
  s.memories.erase(memory.address);
}

}  // namespace qrtool::cuda
