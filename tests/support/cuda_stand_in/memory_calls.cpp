// SPDX-License-Identifier: Apache-2.0
// memory_calls.cpp: the functions of the library for memory and copies.
#include <algorithm>
#include <cstring>

#include "tests/support/cuda_stand_in/state.hpp"

namespace qrtool::cuda {
namespace {

/// Bytes of one side of a copy: rows of `width` bytes, `pitch` apart.
struct Rows {
  std::size_t width, rows, pitch;

  std::size_t bytes() const { return width == 0 || rows == 0 ? 0 : pitch * (rows - 1) + width; }
};

/// Where the numbers of device memory are, which the stream accesses.
std::byte* on_device(Pointer pointer, const Rows& rows, Stream stream, bool writes) {
  const Part part = part_of(pointer, rows.bytes(), stream->context);
  access(*part.memory, part.offset, part.offset + rows.bytes(), stream, writes);
  return part.place();
}

/// The same for host memory; `is_pageable` becomes whether the device can copy from and to it only
/// while the host waits.
std::byte* on_host(const void* pointer, const Rows& rows, Stream stream, bool writes,
                   bool* is_pageable) {
  Memory* const memory = memory_at(number_of(pointer));
  *is_pageable = memory == nullptr;
  if (memory == nullptr) return at<std::byte>(number_of(pointer));
  if (memory->kind != Memory::Kind::host && memory->kind != Memory::Kind::managed)
    broken("an address of the device where one of the host is needed");
  return on_device(number_of(pointer), rows, stream, writes);
}

void copy_rows(std::byte* to, std::size_t to_pitch, const std::byte* from, const Rows& rows) {
  for (std::size_t i = 0; i < rows.rows; ++i)
    std::memcpy(to + i * to_pitch, from + i * rows.pitch, rows.width);
}

/// Numbers of pageable memory are read at once.
void copy_to_device(Pointer to, const Rows& there, const void* from, const Rows& here,
                    Stream stream) {
  begin_command(stream);
  std::byte* const place = on_device(to, there, stream, /*writes=*/true);
  bool is_pageable = false;
  const std::byte* const data = on_host(from, here, stream, /*writes=*/false, &is_pageable);
  std::vector<std::byte> kept;
  if (is_pageable) kept.assign(data, data + here.bytes());
  state().commands.emplace_back([place, pitch = there.pitch, data, kept = std::move(kept), here] {
    copy_rows(place, pitch, kept.empty() ? data : kept.data(), here);
  });
}

/// Numbers for pageable memory are there when the call returns.
void copy_to_host(void* to, const Rows& here, Pointer from, const Rows& there, Stream stream) {
  begin_command(stream);
  const std::byte* const data = on_device(from, there, stream, /*writes=*/false);
  bool is_pageable = false;
  std::byte* const place = on_host(to, here, stream, /*writes=*/true, &is_pageable);
  state().commands.emplace_back(
      [place, pitch = here.pitch, data, there] { copy_rows(place, pitch, data, there); });
  if (is_pageable) wait_for_stream(stream);
}

void copy_on_device(Pointer to, const Rows& target, Pointer from, const Rows& source,
                    Stream stream) {
  begin_command(stream);
  const std::byte* const data = on_device(from, source, stream, /*writes=*/false);
  std::byte* const place = on_device(to, target, stream, /*writes=*/true);
  if (data < place + target.bytes() && place < data + source.bytes())
    broken("the two sides of the copy overlap");
  state().commands.emplace_back(
      [place, pitch = target.pitch, data, source] { copy_rows(place, pitch, data, source); });
}

Result allocated(Memory* memory, Pointer* pointer) {
  if (memory == nullptr) return out_of_memory;
  *pointer = memory->address;
  return success;
}

/// The memory that begins at the address, and is of one of these kinds.
Memory& owned(std::uintptr_t pointer, std::initializer_list<Memory::Kind> kinds) {
  Memory* const memory = memory_at(pointer);
  if (memory == nullptr || memory->address != pointer ||
      std::ranges::count(kinds, memory->kind) == 0)
    broken("no memory of this kind begins at the address, or it was freed");
  return *memory;
}

void free_by_host(Memory& memory) {
  // Memory of a pool is freed without a wait.
  if (!state().words.is_strict && memory.kind != Memory::Kind::pool) wait_for_device(memory.device);
  access_by_host(memory);
  forget(memory);
  run_commands();
}

}  // namespace

extern "C" {

Result cuMemAlloc_v2(Pointer* memory, std::size_t bytes) {
  return called(__func__, Needs::context, [&] {
    if (bytes == 0) return invalid_value;
    const Context context = current();
    return allocated(make_memory(Memory::Kind::device, bytes, context, context->device), memory);
  });
}

Result cuMemFree_v2(Pointer pointer) {
  return called(__func__, Needs::context, [&] {
    if (pointer == 0) return success;
    Memory& memory =
        owned(pointer, {Memory::Kind::device, Memory::Kind::managed, Memory::Kind::pool});
    free_by_host(memory);
    return success;
  });
}

Result cuMemHostAlloc(void** memory, std::size_t bytes, unsigned) {
  return called(__func__, Needs::context, [&] {
    Pointer pointer = 0;
    const Context context = current();
    const Result result =
        allocated(make_memory(Memory::Kind::host, bytes, context, context->device), &pointer);
    if (result == success) *memory = at<void>(pointer);
    return result;
  });
}

Result cuMemFreeHost(void* pointer) {
  return called(__func__, Needs::context, [&] {
    Memory& memory = owned(number_of(pointer), {Memory::Kind::host});
    free_by_host(memory);
    return success;
  });
}

Result cuMemPoolCreate(Pool* pool, const PoolProperties* properties) {
  return called(__func__, Needs::start, [&] {
    if (!state().words.has_pools) return Result{801};
    *pool = new Pool_{.device = known_device(properties->location)};
    state().pools.insert(*pool);
    return success;
  });
}

Result cuMemPoolSetAttribute(Pool pool, int, void*) {
  return called(__func__, Needs::start, [&] {
    known(state().pools, pool, "the pool");
    return success;
  });
}

Result cuMemPoolTrimTo(Pool pool, std::size_t) {
  return called(__func__, Needs::start, [&] {
    known(state().pools, pool, "the pool");
    return success;
  });
}

Result cuMemAllocFromPoolAsync(Pointer* pointer, std::size_t bytes, Pool pool, Stream handle) {
  const auto allocate = [&] {
    if (bytes == 0) return invalid_value;
    const Stream stream = stream_of(handle);
    if (known(state().pools, pool, "the pool")->device != stream->context->device)
      broken("the pool belongs to another device");
    Memory* const memory = make_memory(Memory::Kind::pool, bytes, nullptr, pool->device);
    if (memory != nullptr) {
      begin_command(stream);
      access(*memory, 0, bytes, stream, /*writes=*/true);
    }
    return allocated(memory, pointer);
  };
  return called(__func__, Needs::context, allocate, handle);
}

Result cuMemFreeAsync(Pointer pointer, Stream handle) {
  const auto free = [&] {
    const Stream stream = stream_of(handle);
    Memory& memory = owned(pointer, {Memory::Kind::pool});
    begin_command(stream);
    access(memory, 0, memory.bytes, stream, /*writes=*/true);
    forget(memory);
    return success;
  };
  return called(__func__, Needs::context, free, handle);
}

Result cuMemcpyHtoDAsync_v2(Pointer to, const void* from, std::size_t bytes, Stream handle) {
  const auto copy = [&] {
    const Rows rows{bytes, 1, bytes};
    if (bytes != 0) copy_to_device(to, rows, from, rows, stream_of(handle));
    return success;
  };
  return called(__func__, Needs::context, copy, handle);
}

Result cuMemcpyDtoHAsync_v2(void* to, Pointer from, std::size_t bytes, Stream handle) {
  const auto copy = [&] {
    const Rows rows{bytes, 1, bytes};
    if (bytes != 0) copy_to_host(to, rows, from, rows, stream_of(handle));
    return success;
  };
  return called(__func__, Needs::context, copy, handle);
}

Result cuMemcpyDtoDAsync_v2(Pointer to, Pointer from, std::size_t bytes, Stream handle) {
  const auto copy = [&] {
    const Rows rows{bytes, 1, bytes};
    if (bytes != 0) copy_on_device(to, rows, from, rows, stream_of(handle));
    return success;
  };
  return called(__func__, Needs::context, copy, handle);
}

Result cuMemcpy2DAsync_v2(const Copy2d* copy, Stream handle) {
  const auto start = [&] {
    const Copy2d& c = *copy;
    if (c.width > c.from_pitch || c.width > c.to_pitch) return invalid_value;
    if (c.width == 0 || c.height == 0) return success;
    const Rows from{c.width, c.height, c.from_pitch}, to{c.width, c.height, c.to_pitch};
    const std::size_t from_first = c.from_y * c.from_pitch + c.from_x,
                      to_first = c.to_y * c.to_pitch + c.to_x;
    const auto* from_host = static_cast<const std::byte*>(c.from_host) + from_first;
    auto* to_host = static_cast<std::byte*>(c.to_host) + to_first;
    const Pointer from_device = c.from_device + from_first, to_device = c.to_device + to_first;
    const Stream stream = stream_of(handle);
    if (c.from_type == host_memory && c.to_type == device_memory)
      copy_to_device(to_device, to, from_host, from, stream);
    else if (c.from_type == device_memory && c.to_type == host_memory)
      copy_to_host(to_host, to, from_device, from, stream);
    else if (c.from_type == device_memory && c.to_type == device_memory)
      copy_on_device(to_device, to, from_device, from, stream);
    else
      broken("the stand-in does not copy between these types of memory");
    return success;
  };
  return called(__func__, Needs::context, start, handle);
}

Result cuMemsetD32Async(Pointer to, unsigned word, std::size_t words, Stream handle) {
  const auto fill = [&] {
    if (to % sizeof(word) != 0) return invalid_value;
    if (words == 0) return success;
    const Stream stream = stream_of(handle);
    begin_command(stream);
    const std::size_t bytes = words * sizeof(word);
    std::byte* const place = on_device(to, {bytes, 1, bytes}, stream, /*writes=*/true);
    state().commands.emplace_back([place, word, bytes] {
      for (std::size_t i = 0; i < bytes; i += sizeof(word))
        std::memcpy(place + i, &word, sizeof(word));
    });
    return success;
  };
  return called(__func__, Needs::context, fill, handle);
}

/// Of an address that CUDA does not know, all attributes are nothing.
Result cuPointerGetAttributes(unsigned count, int* attributes, void** values, Pointer pointer) {
  return called(__func__, Needs::start, [&] {
    const Memory* const memory = memory_at(pointer);
    const bool is_of_host = memory != nullptr && memory->kind == Memory::Kind::host;
    const bool is_managed = memory != nullptr && memory->kind == Memory::Kind::managed;
    const unsigned type = memory == nullptr ? 0 : is_of_host ? host_memory : device_memory;
    for (unsigned i = 0; i < count; ++i) {
      if (attributes[i] == pointer_context)
        *static_cast<Context*>(values[i]) = memory == nullptr ? nullptr : memory->context;
      else if (attributes[i] == pointer_memory_type)
        *static_cast<unsigned*>(values[i]) = type;
      else if (attributes[i] == pointer_is_managed)
        *static_cast<unsigned*>(values[i]) = is_managed ? 1 : 0;
      else if (attributes[i] == pointer_device)
        *static_cast<int*>(values[i]) = memory == nullptr ? -2 : memory->device;
      else
        return invalid_value;
    }
    return success;
  });
}

}  // extern "C"

}  // namespace qrtool::cuda
