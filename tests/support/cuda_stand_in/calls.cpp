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
    note(known(state().functions, function, "the function")->name);
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
