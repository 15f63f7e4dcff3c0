// SPDX-License-Identifier: Apache-2.0
// calls.cpp: the functions of the library that gpu/host calls.
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "tests/support/cuda_stand_in/state.hpp"

namespace qrtool::cuda {
namespace {

constexpr Result invalid_device = 101, invalid_image = 200, invalid_ptx = 218, not_found = 500,
                 not_ready = 600, too_many_threads = 701;
constexpr unsigned without_time = 2;

template <class T>
T* at(std::uintptr_t address) {
  return reinterpret_cast<T*>(address);
}
template <class T>
std::uintptr_t number_of(T* pointer) {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

Device known_device(Device device) {
  if (device < 0 || device >= count_of_devices()) broken("unknown device");
  return device;
}

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

void wait_for_stream(Stream stream) {
  run_commands();
  host_waits(clock_of(stream));
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

void write_log(const Link_& link, const std::string& text) {
  if (link.log == nullptr || link.log_bytes == 0) return;
  const std::size_t bytes = std::min(text.size(), link.log_bytes - 1);
  std::memcpy(link.log, text.data(), bytes);
  link.log[bytes] = '\0';
}

Event known_event(Event event) { return known(state().events, event, "the event"); }

Event known_event(Event event, Context context) {
  if (known_event(event)->context != context) broken("the event belongs to another context");
  return event;
}

/// Of a struct the bytes are too many, and some of them may not be there.
void copy_argument(const void* argument, std::vector<std::byte>& bytes) {
  if (bytes.size() != most_bytes_of_struct) {
    std::memcpy(bytes.data(), argument, bytes.size());
    return;
  }
  const iovec to{bytes.data(), bytes.size()}, from{const_cast<void*>(argument), bytes.size()};
  if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) <= 0) broken("an argument cannot be read");
}

std::vector<Value> values_of(const Function_& function, void** arguments, Stream stream) {
  std::vector<Value> values;
  for (const Parameter& parameter : function.parameters) {
    const void* const argument = arguments[values.size()];
    if (argument == nullptr) broken("an argument has no address");
    Value value;
    value.bytes.resize(parameter.bytes);
    copy_argument(argument, value.bytes);
    Pointer pointer = 0;
    if (parameter.is_pointer) std::memcpy(&pointer, argument, sizeof(pointer));
    if (pointer != 0) {
      const Part part = part_of(pointer, 1, stream->context);
      const std::size_t end = part.memory->bytes;
      access(*part.memory, part.offset, end, stream, !parameter.is_read_only);
      value.place = part.place();
      value.bytes_there = end - part.offset;
    }
    values.push_back(std::move(value));
  }
  return values;
}

}  // namespace

extern "C" {

Result cuInit(unsigned) {
  return called(__func__, Needs::nothing, [] {
    if (count_of_devices() == 0) return Result{100};
    state().is_initialised = true;
    state().process = getpid();
    return success;
  });
}

Result cuDriverGetVersion(int* version) {
  return called(__func__, Needs::nothing, [&] { return *version = 12080, success; });
}

Result cuDeviceGetCount(int* count) {
  return called(__func__, Needs::start, [&] { return *count = count_of_devices(), success; });
}

Result cuDeviceGet(Device* device, int ordinal) {
  return called(__func__, Needs::start, [&] {
    if (ordinal < 0 || ordinal >= count_of_devices()) return invalid_device;
    *device = ordinal;
    return success;
  });
}

Result cuDeviceGetName(char* name, int length, Device device) {
  return called(__func__, Needs::start, [&] {
    known_device(device);
    const std::string text = "stand-in CUDA device";
    const std::size_t bytes = std::min(text.size(), static_cast<std::size_t>(length) - 1);
    std::memcpy(name, text.data(), bytes);
    name[bytes] = '\0';
    return success;
  });
}

Result cuDeviceGetUuid_v2(Uuid* uuid, Device device) {
  return called(__func__, Needs::start, [&] {
    const std::string text = "qrtool-standin-" + std::to_string(known_device(device) % 10);
    std::memcpy(uuid->bytes, text.data(), sizeof(uuid->bytes));
    return success;
  });
}

Result cuDeviceGetAttribute(int* value, int attribute, Device device) {
  return called(__func__, Needs::start, [&] {
    const std::map<int, int> values{
        {pci_domain, 0},       {pci_bus, known_device(device) + 1},
        {pci_device, 0},       {capability_major, 9},
        {capability_minor, 0}, {has_memory_pools, state().words.has_pools ? 1 : 0}};
    const auto found = values.find(attribute);
    if (found == values.end()) return invalid_value;
    *value = found->second;
    return success;
  });
}

Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  return called(__func__, Needs::start, [&] {
    Context& primary = state().primary[known_device(device)];
    if (primary == nullptr) {
      primary = new Context_{.device = device};
      state().contexts.insert(primary);
    }
    *context = primary;
    return success;
  });
}

Result cuCtxPushCurrent_v2(Context context) {
  return called(__func__, Needs::start, [&] {
    stack().list.push_back(known(state().contexts, context, "the context"));
    ++stack().pushes;
    return success;
  });
}

Result cuCtxPopCurrent_v2(Context* context) {
  return called(__func__, Needs::start, [&] {
    if (stack().list.empty()) broken("there is no context to pop");
    if (context != nullptr) *context = stack().list.back();
    stack().list.pop_back();
    --stack().pushes;
    return success;
  });
}

Result cuModuleLoadDataEx(Module* module, const void* image, unsigned, int*, void**) {
  return called(__func__, Needs::context, [&] {
    const std::string binary = image_at(image);
    if (binary.empty()) return invalid_image;
    std::string why;
    const Code code = program_of(current()->device, binary, &why);
    if (code.program == nullptr) return invalid_image;
    *module = new Module_{.context = current(), .code = code};
    state().modules.insert(*module);
    return success;
  });
}

Result cuModuleUnload(Module module) {
  return called(__func__, Needs::context, [&] {
    if (known(state().modules, module, "the module")->context != current())
      broken("the module belongs to another context");
    run_commands();
    for (const auto& [name, function] : module->functions) {
      clReleaseKernel(function->kernel);
      state().functions.erase(function);
    }
    state().modules.erase(module);
    return success;
  });
}

Result cuModuleGetFunction(Function* function, Module module, const char* name) {
  return called(__func__, Needs::context, [&] {
    Function& made = known(state().modules, module, "the module")->functions[name];
    if (made == nullptr) {
      made = function_of(module, name);
      if (made == nullptr) return module->functions.erase(name), not_found;
      state().functions.insert(made);
    }
    *function = made;
    return success;
  });
}

Result cuFuncGetAttribute(int* value, int attribute, Function function) {
  return called(__func__, Needs::context, [&] {
    known(state().functions, function, "the function");
    if (attribute != most_threads_of_function) return invalid_value;
    *value = static_cast<int>(most_threads_of(function->module->context->device, function->kernel));
    return success;
  });
}

Result cuLinkCreate_v2(unsigned options, int* names, void** values, Link* link) {
  return called(__func__, Needs::context, [&] {
    *link = new Link_{.context = current()};
    for (unsigned i = 0; i < options; ++i) {
      if (names[i] == link_error_log) (*link)->log = static_cast<char*>(values[i]);
      if (names[i] == link_error_log_bytes) (*link)->log_bytes = number_of(values[i]) & 0xffffffff;
    }
    write_log(**link, "");
    state().links.insert(*link);
    return success;
  });
}

Result cuLinkAddData_v2(Link link, int type, void* data, std::size_t bytes, const char*, unsigned,
                        int*, void**) {
  return called(__func__, Needs::context, [&] {
    known(state().links, link, "the link");
    if (type != input_ptx) return invalid_value;
    const std::string binary(static_cast<const char*>(data), bytes);
    std::string why;
    const Code code = program_of(link->context->device, binary, &why);
    if (code.program == nullptr) return write_log(*link, why), invalid_ptx;
    link->image = image_of(binary);
    return success;
  });
}

Result cuLinkComplete(Link link, void** image, std::size_t* bytes) {
  return called(__func__, Needs::context, [&] {
    if (known(state().links, link, "the link")->image.empty()) return invalid_image;
    *image = link->image.data();
    if (bytes != nullptr) *bytes = link->image.size();
    return success;
  });
}

Result cuLinkDestroy(Link link) {
  return called(__func__, Needs::context, [&] {
    known(state().links, link, "the link");
    state().links.erase(link);
    std::ranges::fill(link->image, '\xff');
    delete link;
    return success;
  });
}

Result cuLaunchKernel(Function function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                      unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                      Stream handle, void** arguments, void** extra) {
  const auto launch = [&] {
    known(state().functions, function, "the function");
    const Stream stream = stream_of(handle);
    if (function->module->context != stream->context)
      broken("the function belongs to another context than the stream");
    if (shared_bytes != 0 || extra != nullptr) broken("the stand-in does not know these arguments");
    const Grid grid{{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}};
    std::size_t threads = 1;
    for (int d = 0; d < 3; ++d) {
      if (grid.groups[d] == 0 || grid.threads[d] == 0) return invalid_value;
      threads *= grid.threads[d];
    }
    if (threads > most_threads_of(stream->context->device, function->kernel))
      return too_many_threads;
    begin_command(stream);
    std::vector<Value> values = values_of(*function, arguments, stream);
    if (++state().launches == state().words.dead) {
      state().is_dead = true;
      return success;
    }
    state().commands.emplace_back(
        [function, grid, values = std::move(values)] { run_kernel(*function, grid, values); });
    return success;
  };
  return called(__func__, Needs::context, launch, handle);
}

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

Result cuStreamCreate(Stream* stream, unsigned flags) {
  return called(__func__, Needs::context, [&] {
    *stream = make_stream(current(), (flags & non_blocking_stream) == 0);
    return success;
  });
}

Result cuStreamDestroy_v2(Stream handle) {
  const auto destroy = [&] {
    if (number_of(handle) <= 2) broken("a usual stream cannot be destroyed");
    const Stream stream = stream_of(handle);
    if (stream->is_blocking) stream->context->of_destroyed.join(stream->clock);
    state().streams.erase(stream);
    return success;
  };
  return called(__func__, Needs::context, destroy, handle);
}

Result cuStreamWaitEvent(Stream handle, Event event, unsigned) {
  const auto wait = [&] {
    const Stream stream = stream_of(handle);
    known_event(event);
    begin_command(stream);
    if (event->is_recorded) stream->clock.join(event->clock);
    return success;
  };
  return called(__func__, Needs::context, wait, handle);
}

Result cuStreamSynchronize(Stream handle) {
  const auto wait = [&] {
    wait_for_stream(stream_of(handle));
    return success;
  };
  return called(__func__, Needs::context, wait, handle);
}

Result cuStreamIsCapturing(Stream handle, int* status) {
  const auto ask = [&] {
    *status = state().words.captures || stream_of(handle)->is_recording ? 1 : capture_none;
    return success;
  };
  return called(__func__, Needs::context, ask, handle);
}

Result cuStreamGetCtx(Stream handle, Context* context) {
  const auto ask = [&] {
    *context =
        number_of(handle) <= 2 ? current() : known(state().streams, handle, "the stream")->context;
    return success;
  };
  return called(__func__, Needs::context, ask, handle);
}

Result cuEventCreate(Event* event, unsigned flags) {
  return called(__func__, Needs::context, [&] {
    *event = new Event_{.context = current(), .has_time = (flags & without_time) == 0};
    state().events.insert(*event);
    return success;
  });
}

Result cuEventRecord(Event event, Stream handle) {
  const auto record = [&] {
    const Stream stream = stream_of(handle);
    known_event(event, stream->context);
    begin_command(stream);
    event->clock = stream->clock;
    event->is_recorded = true;
    event->moment = std::make_shared<Moment>();
    state().commands.emplace_back([moment = event->moment] {
      *moment = {true, std::chrono::steady_clock::now()};
    });
    return success;
  };
  return called(__func__, Needs::context, record, handle);
}

Result cuEventSynchronize(Event event) {
  return called(__func__, Needs::context, [&] {
    if (!known_event(event)->is_recorded) return success;
    run_commands();
    host_waits(event->clock);
    return success;
  });
}

Result cuEventElapsedTime(float* milliseconds, Event from, Event to) {
  return called(__func__, Needs::context, [&] {
    const Context context = current();
    for (const Event event : {from, to}) {
      if (!known_event(event, context)->is_recorded) broken("the event was never recorded");
      if (!event->has_time) broken("the event has no times");
      if (!event->moment->is_done) return not_ready;
    }
    const std::chrono::duration<float, std::milli> time = to->moment->time - from->moment->time;
    *milliseconds = time.count();
    return success;
  });
}

Result cuEventDestroy_v2(Event event) {
  return called(__func__, Needs::context, [&] {
    state().events.erase(known_event(event));
    return success;
  });
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

Result cuGetErrorName(Result result, const char** name) {
  return called(__func__, Needs::nothing, [&] {
    static const std::map<Result, const char*> names{
        {success, "CUDA_SUCCESS"},
        {invalid_value, "CUDA_ERROR_INVALID_VALUE"},
        {out_of_memory, "CUDA_ERROR_OUT_OF_MEMORY"},
        {not_initialized, "CUDA_ERROR_NOT_INITIALIZED"},
        {deinitialized, "CUDA_ERROR_DEINITIALIZED"},
        {invalid_device, "CUDA_ERROR_INVALID_DEVICE"},
        {invalid_image, "CUDA_ERROR_INVALID_IMAGE"},
        {invalid_context, "CUDA_ERROR_INVALID_CONTEXT"},
        {invalid_ptx, "CUDA_ERROR_INVALID_PTX"},
        {not_found, "CUDA_ERROR_NOT_FOUND"},
        {not_ready, "CUDA_ERROR_NOT_READY"},
        {context_is_lost, "CUDA_ERROR_ILLEGAL_ADDRESS"},
        {too_many_threads, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
        {719, "CUDA_ERROR_LAUNCH_FAILED"},
        {801, "CUDA_ERROR_NOT_SUPPORTED"},
        {906, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
        {999, "CUDA_ERROR_UNKNOWN"}};
    const auto found = names.find(result);
    *name = found == names.end() ? nullptr : found->second;
    return found == names.end() ? invalid_value : success;
  });
}

}  // extern "C"

}  // namespace qrtool::cuda
