// SPDX-License-Identifier: Apache-2.0
// opencl.cpp: an OpenCL library with one device, a GPU of NVIDIA's that is not there: kernels are
// compiled for the CPU, and warp_machine.cpp runs their bodies for NVIDIA. It has what qrtool
// calls. Every command is complete when the call that enqueues it returns, and nothing is ever
// freed but buffers. QRTOOL_KEEP_WARPS, set to anything, keeps the files of programs, and
// QRTOOL_WARPS_SEED, a number, changes the order in which work-items take turns.
#define CL_TARGET_OPENCL_VERSION 120
#define CL_USE_DEPRECATED_OPENCL_1_1_APIS
#include <CL/cl.h>
#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/gpu/warps/warp_machine.hpp"

struct _cl_mem {
  char* data;
  std::size_t bytes;
  int uses = 1;
};
struct _cl_kernel {
  void (*call)(void**);
  qrtool::test::LocalMemory local;
  std::vector<bool> is_buffer;
  std::vector<std::vector<char>> values;
  std::size_t required_items;  // of a group; 0: any number
};
struct _cl_program {
  std::string text, log;
  void* library = nullptr;
  std::map<std::string, std::vector<bool>> kernels;  // which arguments are buffers
};
struct _cl_event {
  cl_ulong begun, ended;
};

namespace {

using qrtool::test::LocalMemory;
using qrtool::test::WarpMachine;

// Any address that is not null will do.
char platform_object, device_object, context_object, queue_object;
template <class Handle>
Handle handle_of(char& object) {
  return reinterpret_cast<Handle>(&object);
}

std::mutex machine_mutex;  // kernels share the local memory of their program

cl_ulong now() {
  return static_cast<cl_ulong>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                   std::chrono::steady_clock::now().time_since_epoch())
                                   .count());
}

/// Runs a command and gives its event where one is asked for.
template <class Command>
cl_int run(cl_event* event, Command command) {
  const cl_ulong begun = now();
  command();
  if (event != nullptr) *event = new _cl_event{begun, now()};
  return CL_SUCCESS;
}

/// Answers a question about an object in the way of clGet*Info.
struct Answer {
  std::size_t room;
  void* to;
  std::size_t* size;

  cl_int bytes(const void* from, std::size_t count) const {
    if (size != nullptr) *size = count;
    if (to == nullptr) return CL_SUCCESS;
    if (room < count) return CL_INVALID_VALUE;
    std::memcpy(to, from, count);
    return CL_SUCCESS;
  }
  cl_int text(const std::string& words) const { return bytes(words.c_str(), words.size() + 1); }
  template <class T>
  cl_int value(T x) const {
    return bytes(&x, sizeof(x));
  }
};

// ---- programs

std::string output_of(const std::string& command, int& status) {
  std::string text;
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) throw std::runtime_error("no process for " + command);
  char part[4096];
  while (const std::size_t count = fread(part, 1, sizeof(part), pipe)) text.append(part, count);
  status = pclose(pipe);
  return text;
}

/// The options that clang knows too.
std::string options_for_clang(const char* options) {
  std::istringstream words(options == nullptr ? "" : options);
  std::string all, word;
  while (words >> word)
    if (word.starts_with("-D")) all += " '" + word + "'";
  return all;
}

/// For each kernel a function that takes the addresses of its arguments, one that returns the size
/// of a group that it requires, and which of its arguments are buffers. `text` is preprocessed.
std::string callers_of(const std::string& text, std::map<std::string, std::vector<bool>>& kernels) {
  static const std::regex kernel(
      R"(__kernel\s+(?:__attribute__\s*\(\(.*?\((.*?),\s*1,\s*1\)\)\)\s*)?void\s+(\w+)\s*\(([^)]*)\))");
  std::string callers;
  for (std::sregex_iterator at(text.begin(), text.end(), kernel), end; at != end; ++at) {
    const std::string required = (*at)[1], name = (*at)[2];
    std::istringstream arguments((*at)[3]);
    std::string argument, passed;
    std::vector<bool>& is_buffer = kernels[name];
    while (std::getline(arguments, argument, ',')) {
      argument.erase(argument.find_last_not_of(" \n") + 1);
      const std::string type = argument.substr(0, argument.find_last_of(" *\n") + 1);
      const std::string number = std::to_string(is_buffer.size());
      is_buffer.push_back(type.find('*') != std::string::npos);
      passed += passed.empty() ? "" : ", ";
      passed += is_buffer.back() ? "(" + type + ")*(size_t*)arguments[" + number + "]"
                                 : "*(" + type + "*)arguments[" + number + "]";
    }
    callers += "void call_" + name + "(void** arguments) { " + name + "(" + passed + "); }\n";
    callers += "size_t items_of_" + name + "(void) { return " +
               (required.empty() ? "0" : required) + "; }\n";
  }
  return callers;
}

/// A folder for the files of programs, which is removed at exit.
class Folder {
 public:
  Folder() : name_((std::filesystem::temp_directory_path() / "warps-XXXXXX").string()) {
    if (mkdtemp(name_.data()) == nullptr) throw std::runtime_error("no folder for programs");
  }
  ~Folder() {
    std::error_code ignored;
    if (std::getenv("QRTOOL_KEEP_WARPS") == nullptr) std::filesystem::remove_all(name_, ignored);
  }
  std::string stem(int number) const { return name_ + "/" + std::to_string(number); }

 private:
  std::string name_;
};

/// Builds a program. Errors: std::runtime_error with what the compiler says.
void build(_cl_program& program, const char* options) {
  static int number = 0;
  static const Folder folder;
  const std::string stem = folder.stem(number++);
  const std::string clang =
      QRTOOL_CLANG " -x cl -cl-std=CL1.2 -w -Xclang -finclude-default-header ";
  const auto compile = [&](const std::string& command) {
    int status = 0;
    const std::string output = output_of(command, status);
    if (status != 0) throw std::runtime_error(command + "\n" + output);
  };
  // Its guard leaves out the text of the program's own nvidia.clh, which follows.
  const std::size_t place =
      std::min(program.text.find("#ifndef QRTOOL_NVIDIA_CLH"), program.text.size());
  std::ofstream(stem + ".cl") << program.text.substr(0, place)
                              << "#include \"" QRTOOL_WARPS "/nvidia.clh\"\n"
                              << program.text.substr(place);
  compile(clang + "-E -P -I" QRTOOL_SOURCE_DIR + options_for_clang(options) + " " + stem +
          ".cl -o " + stem + ".plain");
  std::stringstream plain;
  plain << std::ifstream(stem + ".plain").rdbuf();
  std::string text = plain.str();
  text += callers_of(text, program.kernels);
  std::ofstream(stem + ".whole.cl") << text;
  compile(clang + QRTOOL_LOGGED " -O0 -fPIC -c " + stem + ".whole.cl -o " + stem + ".o");
  compile("objcopy --rename-section .bss=local_memory --redefine-syms=" QRTOOL_WARPS
          "/logged.syms " +
          stem + ".o");
  compile(QRTOOL_CLANG " -shared " + stem + ".o " QRTOOL_LOCAL_MEMORY " -o " + stem + ".so");
  program.library = dlopen((stem + ".so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (program.library == nullptr) throw std::runtime_error(dlerror());
}

template <class Function>
Function* function_of(void* library, const std::string& name) {
  return reinterpret_cast<Function*>(dlsym(library, name.c_str()));
}

void copy_rows(char* to, std::size_t to_row, std::size_t to_slice, const char* from,
               std::size_t from_row, std::size_t from_slice, const std::size_t* region) {
  for (std::size_t slice = 0; slice < region[2]; ++slice)
    for (std::size_t row = 0; row < region[1]; ++row)
      std::memcpy(to + slice * to_slice + row * to_row, from + slice * from_slice + row * from_row,
                  region[0]);
}

/// Each number gives other orders of turns.
unsigned first_seed() {
  static const char* const given = std::getenv("QRTOOL_WARPS_SEED");
  return given == nullptr ? 0 : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}

/// The distance of rows, or of slices, where 0 stands for "packed".
std::size_t pitch(std::size_t given, std::size_t packed) { return given == 0 ? packed : given; }

}  // namespace

extern "C" {

// ---- platform and device

cl_int clGetPlatformIDs(cl_uint room, cl_platform_id* platforms, cl_uint* count) {
  if (count != nullptr) *count = 1;
  if (platforms != nullptr && room > 0) *platforms = handle_of<cl_platform_id>(platform_object);
  return CL_SUCCESS;
}

cl_int clGetPlatformInfo(cl_platform_id, cl_platform_info what, std::size_t room, void* to,
                         std::size_t* size) {
  const Answer answer{room, to, size};
  switch (what) {
    case CL_PLATFORM_VERSION:
      return answer.text("OpenCL 1.2 warps");
    case CL_PLATFORM_PROFILE:
      return answer.text("FULL_PROFILE");
    case CL_PLATFORM_EXTENSIONS:
      return answer.text("");
    default:
      return answer.text("warps");
  }
}

cl_int clGetDeviceIDs(cl_platform_id, cl_device_type, cl_uint room, cl_device_id* devices,
                      cl_uint* count) {
  if (count != nullptr) *count = 1;
  if (devices != nullptr && room > 0) *devices = handle_of<cl_device_id>(device_object);
  return CL_SUCCESS;
}

cl_int clGetDeviceInfo(cl_device_id, cl_device_info what, std::size_t room, void* to,
                       std::size_t* size) {
  const Answer answer{room, to, size};
  constexpr cl_device_info nvidia_major = 0x4000, nvidia_minor = 0x4001;
  switch (what) {
    case CL_DEVICE_NAME:
      return answer.text("warps");
    case CL_DEVICE_VENDOR:
      return answer.text("none");
    case CL_DRIVER_VERSION:
      return answer.text("1");
    case CL_DEVICE_VERSION:
      return answer.text("OpenCL 1.2 warps");
    case CL_DEVICE_OPENCL_C_VERSION:
      return answer.text("OpenCL C 1.2 ");
    case CL_DEVICE_PROFILE:
      return answer.text("FULL_PROFILE");
    case CL_DEVICE_EXTENSIONS:
      return answer.text("cl_khr_fp64 cl_nv_device_attribute_query");
    case CL_DEVICE_PLATFORM:
      return answer.value(handle_of<cl_platform_id>(platform_object));
    case CL_DEVICE_TYPE:
      return answer.value(cl_device_type{CL_DEVICE_TYPE_GPU});
    case CL_DEVICE_AVAILABLE:
    case CL_DEVICE_COMPILER_AVAILABLE:
      return answer.value(cl_bool{CL_TRUE});
    case CL_DEVICE_GLOBAL_MEM_SIZE:
    case CL_DEVICE_MAX_MEM_ALLOC_SIZE:
      return answer.value(cl_ulong{2} << 30);
    case CL_DEVICE_LOCAL_MEM_SIZE:
      return answer.value(cl_ulong{48} << 10);
    case CL_DEVICE_MAX_WORK_GROUP_SIZE:
      return answer.value(std::size_t{1024});
    case CL_DEVICE_MAX_COMPUTE_UNITS:
      return answer.value(cl_uint{132});
    case CL_DEVICE_DOUBLE_FP_CONFIG:
    case CL_DEVICE_SINGLE_FP_CONFIG:
      return answer.value(cl_device_fp_config{CL_FP_FMA | CL_FP_INF_NAN | CL_FP_DENORM});
    case nvidia_major:
      return answer.value(cl_uint{9});
    case nvidia_minor:
      return answer.value(cl_uint{0});
    default:
      return answer.value(cl_ulong{0});
  }
}

cl_int clRetainDevice(cl_device_id) { return CL_SUCCESS; }
cl_int clReleaseDevice(cl_device_id) { return CL_SUCCESS; }
cl_context clCreateContext(const cl_context_properties*, cl_uint, const cl_device_id*,
                           void (*)(const char*, const void*, std::size_t, void*), void*,
                           cl_int* error) {
  if (error != nullptr) *error = CL_SUCCESS;
  return handle_of<cl_context>(context_object);
}
cl_int clRetainContext(cl_context) { return CL_SUCCESS; }
cl_int clReleaseContext(cl_context) { return CL_SUCCESS; }
cl_command_queue clCreateCommandQueue(cl_context, cl_device_id, cl_command_queue_properties,
                                      cl_int* error) {
  if (error != nullptr) *error = CL_SUCCESS;
  return handle_of<cl_command_queue>(queue_object);
}
cl_int clRetainCommandQueue(cl_command_queue) { return CL_SUCCESS; }
cl_int clReleaseCommandQueue(cl_command_queue) { return CL_SUCCESS; }
cl_int clGetCommandQueueInfo(cl_command_queue, cl_command_queue_info what, std::size_t room,
                             void* to, std::size_t* size) {
  if (what != CL_QUEUE_DEVICE) return CL_INVALID_VALUE;
  return Answer{room, to, size}.value(handle_of<cl_device_id>(device_object));
}

// ---- buffers

cl_mem clCreateBuffer(cl_context, cl_mem_flags, std::size_t bytes, void*, cl_int* error) {
  if (error != nullptr) *error = CL_SUCCESS;
  return new _cl_mem{qrtool::test::global_memory().take(bytes), bytes};
}
cl_int clRetainMemObject(cl_mem buffer) {
  ++buffer->uses;
  return CL_SUCCESS;
}
cl_int clReleaseMemObject(cl_mem buffer) {
  if (--buffer->uses > 0) return CL_SUCCESS;
  qrtool::test::global_memory().give_back(buffer->data, buffer->bytes);
  delete buffer;
  return CL_SUCCESS;
}
cl_int clGetMemObjectInfo(cl_mem buffer, cl_mem_info, std::size_t room, void* to,
                          std::size_t* size) {
  return Answer{room, to, size}.value(buffer->bytes);
}

cl_int clEnqueueReadBuffer(cl_command_queue, cl_mem buffer, cl_bool, std::size_t offset,
                           std::size_t bytes, void* to, cl_uint, const cl_event*, cl_event* event) {
  if (offset + bytes > buffer->bytes) return CL_INVALID_VALUE;
  return run(event, [&] { std::memcpy(to, &buffer->data[offset], bytes); });
}
cl_int clEnqueueWriteBuffer(cl_command_queue, cl_mem buffer, cl_bool, std::size_t offset,
                            std::size_t bytes, const void* from, cl_uint, const cl_event*,
                            cl_event* event) {
  if (offset + bytes > buffer->bytes) return CL_INVALID_VALUE;
  return run(event, [&] { std::memcpy(&buffer->data[offset], from, bytes); });
}
cl_int clEnqueueReadBufferRect(cl_command_queue, cl_mem buffer, cl_bool, const std::size_t* at,
                               const std::size_t* host_at, const std::size_t* region,
                               std::size_t row, std::size_t slice, std::size_t host_row,
                               std::size_t host_slice, void* to, cl_uint, const cl_event*,
                               cl_event* event) {
  row = pitch(row, region[0]), host_row = pitch(host_row, region[0]);
  slice = pitch(slice, row * region[1]), host_slice = pitch(host_slice, host_row * region[1]);
  return run(event, [&] {
    copy_rows(static_cast<char*>(to) + host_at[0] + host_at[1] * host_row + host_at[2] * host_slice,
              host_row, host_slice, &buffer->data[at[0] + at[1] * row + at[2] * slice], row, slice,
              region);
  });
}
cl_int clEnqueueWriteBufferRect(cl_command_queue, cl_mem buffer, cl_bool, const std::size_t* at,
                                const std::size_t* host_at, const std::size_t* region,
                                std::size_t row, std::size_t slice, std::size_t host_row,
                                std::size_t host_slice, const void* from, cl_uint, const cl_event*,
                                cl_event* event) {
  row = pitch(row, region[0]), host_row = pitch(host_row, region[0]);
  slice = pitch(slice, row * region[1]), host_slice = pitch(host_slice, host_row * region[1]);
  return run(event, [&] {
    copy_rows(&buffer->data[at[0] + at[1] * row + at[2] * slice], row, slice,
              static_cast<const char*>(from) + host_at[0] + host_at[1] * host_row +
                  host_at[2] * host_slice,
              host_row, host_slice, region);
  });
}
cl_int clEnqueueCopyBuffer(cl_command_queue, cl_mem from, cl_mem to, std::size_t from_offset,
                           std::size_t to_offset, std::size_t bytes, cl_uint, const cl_event*,
                           cl_event* event) {
  if (from_offset + bytes > from->bytes || to_offset + bytes > to->bytes) return CL_INVALID_VALUE;
  return run(event, [&] { std::memmove(&to->data[to_offset], &from->data[from_offset], bytes); });
}
cl_int clEnqueueFillBuffer(cl_command_queue, cl_mem buffer, const void* pattern, std::size_t size,
                           std::size_t offset, std::size_t bytes, cl_uint, const cl_event*,
                           cl_event* event) {
  if (offset + bytes > buffer->bytes) return CL_INVALID_VALUE;
  return run(event, [&] {
    for (std::size_t at = 0; at < bytes; at += size)
      std::memcpy(&buffer->data[offset + at], pattern, size);
  });
}
void* clEnqueueMapBuffer(cl_command_queue, cl_mem buffer, cl_bool, cl_map_flags, std::size_t offset,
                         std::size_t, cl_uint, const cl_event*, cl_event* event, cl_int* error) {
  if (error != nullptr) *error = run(event, [] {});
  return &buffer->data[offset];
}
cl_int clEnqueueUnmapMemObject(cl_command_queue, cl_mem, void*, cl_uint, const cl_event*,
                               cl_event* event) {
  return run(event, [] {});
}

// ---- order

cl_int clEnqueueMarkerWithWaitList(cl_command_queue, cl_uint, const cl_event*, cl_event* event) {
  return run(event, [] {});
}
cl_int clEnqueueBarrierWithWaitList(cl_command_queue, cl_uint, const cl_event*, cl_event* event) {
  return run(event, [] {});
}
cl_int clFlush(cl_command_queue) { return CL_SUCCESS; }
cl_int clFinish(cl_command_queue) { return CL_SUCCESS; }
cl_int clWaitForEvents(cl_uint, const cl_event*) { return CL_SUCCESS; }
cl_int clReleaseEvent(cl_event) { return CL_SUCCESS; }
cl_int clRetainEvent(cl_event) { return CL_SUCCESS; }
cl_int clGetEventProfilingInfo(cl_event event, cl_profiling_info what, std::size_t room, void* to,
                               std::size_t* size) {
  return Answer{room, to, size}.value(what == CL_PROFILING_COMMAND_END ? event->ended
                                                                       : event->begun);
}

// ---- programs and kernels

cl_program clCreateProgramWithSource(cl_context, cl_uint count, const char** texts,
                                     const std::size_t* lengths, cl_int* error) {
  auto* program = new _cl_program;
  for (cl_uint i = 0; i < count; ++i)
    program->text += lengths == nullptr || lengths[i] == 0 ? std::string(texts[i])
                                                           : std::string(texts[i], lengths[i]);
  if (error != nullptr) *error = CL_SUCCESS;
  return program;
}
cl_int clBuildProgram(cl_program program, cl_uint, const cl_device_id*, const char* options,
                      void (*)(cl_program, void*), void*) {
  const std::lock_guard lock(machine_mutex);
  try {
    build(*program, options);
  } catch (const std::exception& error) {
    program->log = error.what();
    return CL_BUILD_PROGRAM_FAILURE;
  }
  return CL_SUCCESS;
}
cl_int clRetainProgram(cl_program) { return CL_SUCCESS; }
cl_int clReleaseProgram(cl_program) { return CL_SUCCESS; }
cl_int clGetProgramBuildInfo(cl_program program, cl_device_id, cl_program_build_info what,
                             std::size_t room, void* to, std::size_t* size) {
  const Answer answer{room, to, size};
  if (what == CL_PROGRAM_BUILD_LOG) return answer.text(program->log);
  return answer.value(
      cl_build_status{program->library == nullptr ? CL_BUILD_ERROR : CL_BUILD_SUCCESS});
}
cl_int clGetProgramInfo(cl_program program, cl_program_info what, std::size_t room, void* to,
                        std::size_t* size) {
  const Answer answer{room, to, size};
  if (what == CL_PROGRAM_DEVICES) return answer.value(handle_of<cl_device_id>(device_object));
  if (what != CL_PROGRAM_KERNEL_NAMES) return answer.value(cl_uint{1});
  std::string names;
  for (const auto& [name, arguments] : program->kernels) names += (names.empty() ? "" : ";") + name;
  return answer.text(names);
}

cl_kernel clCreateKernel(cl_program program, const char* name, cl_int* error) {
  const auto found = program->kernels.find(name);
  const bool exists = found != program->kernels.end();
  if (error != nullptr) *error = exists ? CL_SUCCESS : CL_INVALID_KERNEL_NAME;
  if (!exists) return nullptr;
  return new _cl_kernel{
      function_of<void(void**)>(program->library, "call_" + std::string(name)),
      {function_of<char*()>(program->library, "first_of_local_memory")(),
       function_of<char*()>(program->library, "end_of_local_memory")()},
      found->second,
      std::vector<std::vector<char>>(found->second.size()),
      function_of<std::size_t()>(program->library, "items_of_" + std::string(name))()};
}
cl_int clReleaseKernel(cl_kernel) { return CL_SUCCESS; }
/// As NVIDIA's driver, which says 256 even of kernels that it has built for larger groups.
cl_int clGetKernelWorkGroupInfo(cl_kernel kernel, cl_device_id, cl_kernel_work_group_info what,
                                std::size_t room, void* to, std::size_t* size) {
  const Answer answer{room, to, size};
  if (what == CL_KERNEL_WORK_GROUP_SIZE) return answer.value(std::size_t{256});
  if (what != CL_KERNEL_COMPILE_WORK_GROUP_SIZE) return CL_INVALID_VALUE;
  const std::size_t items = kernel->required_items, other = items == 0 ? 0 : 1;
  return answer.value(std::array{items, other, other});
}
cl_int clSetKernelArg(cl_kernel kernel, cl_uint number, std::size_t bytes, const void* value) {
  if (number >= kernel->values.size()) return CL_INVALID_ARG_INDEX;
  const char* from = static_cast<const char*>(value);
  std::vector<char> stored(from, from + bytes);
  if (kernel->is_buffer[number]) {
    const auto* buffer = *static_cast<const cl_mem*>(value);
    const char* data = buffer == nullptr ? nullptr : buffer->data;
    stored.resize(sizeof(data));
    std::memcpy(stored.data(), &data, sizeof(data));
  }
  kernel->values[number] = std::move(stored);
  return CL_SUCCESS;
}
cl_int clEnqueueNDRangeKernel(cl_command_queue, cl_kernel kernel, cl_uint, const std::size_t*,
                              const std::size_t* global, const std::size_t* local, cl_uint,
                              const cl_event*, cl_event* event) {
  const std::lock_guard lock(machine_mutex);
  std::vector<void*> arguments;
  for (std::vector<char>& value : kernel->values) arguments.push_back(value.data());
  static unsigned launch = 0;
  WarpMachine machine(first_seed() + ++launch, kernel->local);
  return run(event, [&] {
    try {
      machine.run(global[0] / local[0], static_cast<int>(local[0]),
                  [&] { kernel->call(arguments.data()); });
    } catch (const std::exception& error) {
      std::fprintf(stderr, "warps: %s\n", error.what());
      std::abort();
    }
  });
}

// Programs that are not optimised look for these when they start, and do not call them.
cl_int clRetainKernel(cl_kernel) { return CL_INVALID_OPERATION; }
cl_int clGetKernelInfo(cl_kernel, cl_kernel_info, std::size_t, void*, std::size_t*) {
  return CL_INVALID_OPERATION;
}
cl_int clCreateKernelsInProgram(cl_program, cl_uint, cl_kernel*, cl_uint*) {
  return CL_INVALID_OPERATION;
}

}  // extern "C"
