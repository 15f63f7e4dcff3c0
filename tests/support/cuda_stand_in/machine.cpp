// SPDX-License-Identifier: Apache-2.0
// machine.cpp: the OpenCL devices on which the commands of the stand-in run.
#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "tests/support/cuda_stand_in/state.hpp"

namespace qrtool::cuda {
namespace {

constexpr std::array<char, 16> image_name{"qrtool stand-in"};
constexpr std::string_view source_name = "qrtool source ";

struct Head {
  std::array<char, 16> name = image_name;
  std::uint64_t bytes = 0, sum = 0;
};

/// FNV-1a, 64 bits.
std::uint64_t sum_of(const char* data, std::size_t bytes) {
  std::uint64_t sum = 0xcbf29ce484222325;
  for (std::size_t i = 0; i < bytes; ++i)
    sum = (sum ^ static_cast<unsigned char>(data[i])) * 0x100000001b3;
  return sum;
}

void check(cl_int code, const char* call) {
  if (code != CL_SUCCESS)
    broken(std::string(call) + " of the stand-in's device: error " + std::to_string(code));
}

/// A context of OpenCL and a queue for each device.
struct Machine {
  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
};

std::vector<cl_device_id> all_devices() {
  std::array<cl_platform_id, 16> platforms{};
  cl_uint count = 0;
  if (clGetPlatformIDs(platforms.size(), platforms.data(), &count) != CL_SUCCESS) return {};
  std::vector<cl_device_id> list;
  for (cl_uint i = 0; i < std::min<cl_uint>(count, platforms.size()); ++i) {
    std::array<cl_device_id, 16> devices{};
    cl_uint of_platform = 0;
    if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_ALL, devices.size(), devices.data(),
                       &of_platform) == CL_SUCCESS)
      list.insert(list.end(), devices.begin(),
                  devices.begin() + std::min<cl_uint>(of_platform, devices.size()));
  }
  return list;
}

const std::vector<cl_device_id>& devices() {
  static const auto& list = *new std::vector(all_devices());
  return list;
}

Machine& machine(Device device) {
  static auto& machines = *new std::map<Device, Machine>;
  Machine& made = machines[device];
  if (made.queue != nullptr) return made;
  // With fewer devices of OpenCL, several of the stand-in are one of OpenCL.
  made.device = devices()[static_cast<std::size_t>(device) % devices().size()];
  cl_int code = CL_SUCCESS;
  made.context = clCreateContext(nullptr, 1, &made.device, nullptr, nullptr, &code);
  check(code, "clCreateContext");
  made.queue = clCreateCommandQueue(made.context, made.device, 0, &code);
  check(code, "clCreateCommandQueue");
  return made;
}

template <class T>
T argument_info(cl_kernel kernel, cl_uint index, cl_kernel_arg_info what) {
  T answer{};
  check(clGetKernelArgInfo(kernel, index, what, sizeof(answer), &answer, nullptr),
        "clGetKernelArgInfo");
  return answer;
}

/// By trial: a device takes the right number of bytes alone. But PoCL takes any number for a
/// struct, of which a kernel reads what it knows.
std::size_t bytes_of_value(cl_kernel kernel, cl_uint index) {
  constexpr std::array<char, 256> zeros{};
  const auto takes = [&](std::size_t bytes) {
    return clSetKernelArg(kernel, index, bytes, zeros.data()) == CL_SUCCESS;
  };
  if (takes(5)) return most_bytes_of_struct;
  for (const std::size_t bytes : {1, 2, 4, 8, 16, 32, 64, 128, 256})
    if (takes(bytes)) return bytes;
  broken("argument " + std::to_string(index) + " of a kernel has an unknown size");
}

Code made_program(const Machine& on, const std::string& binary, cl_int* code) {
  const auto built = [&](cl_program program, const std::string& options) {
    if (*code == CL_SUCCESS)
      *code = clBuildProgram(program, 1, &on.device, options.c_str(), nullptr, nullptr);
    return program;
  };
  const std::string told = " -cl-kernel-arg-info";
  if (!binary.starts_with(source_name)) {
    const auto* data = reinterpret_cast<const unsigned char*>(binary.data());
    const std::size_t bytes = binary.size();
    cl_int of_binary = CL_SUCCESS;
    cl_program program =
        clCreateProgramWithBinary(on.context, 1, &on.device, &bytes, &data, &of_binary, code);
    program = built(program, told);
    return {program, program};
  }
  const std::size_t first = source_name.size(), end = binary.find('\n', first);
  const std::string options = binary.substr(first, end - first);
  const char* text = binary.c_str() + end + 1;
  cl_program program = clCreateProgramWithSource(on.context, 1, &text, nullptr, code);
  program = built(program, options);
  if (*code != CL_SUCCESS) return {};
  cl_program with_arguments = clCreateProgramWithSource(on.context, 1, &text, nullptr, code);
  return {program, built(with_arguments, options + told)};
}

Parameter parameter_of(cl_kernel kernel, cl_uint index) {
  const auto where = argument_info<cl_kernel_arg_address_qualifier>(
      kernel, index, CL_KERNEL_ARG_ADDRESS_QUALIFIER);
  const auto type =
      argument_info<cl_kernel_arg_type_qualifier>(kernel, index, CL_KERNEL_ARG_TYPE_QUALIFIER);
  if (where == CL_KERNEL_ARG_ADDRESS_LOCAL) broken("a kernel has local memory as its argument");
  if (where == CL_KERNEL_ARG_ADDRESS_PRIVATE) return {.bytes = bytes_of_value(kernel, index)};
  return {.is_pointer = true,
          .is_read_only = (type & CL_KERNEL_ARG_TYPE_CONST) != 0,
          .bytes = sizeof(Pointer)};
}

}  // namespace

void run_commands() {
  State& s = state();
  const std::vector<std::function<void()>> commands = std::exchange(s.commands, {});
  for (const auto& command : commands) command();
}

int count_of_devices() { return devices().empty() ? 0 : state().words.devices; }

std::string image_of(const std::string& binary) {
  Head head;
  head.bytes = binary.size();
  head.sum = sum_of(binary.data(), binary.size());
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + binary;
}

std::string image_at(const void* image) {
  Head head;
  std::memcpy(&head.name, image, sizeof(head.name));
  if (head.name != image_name) return {};
  std::memcpy(&head, image, sizeof(head));
  const char* const binary = static_cast<const char*>(image) + sizeof(head);
  if (head.bytes > std::size_t{1} << 30 || sum_of(binary, head.bytes) != head.sum) return {};
  return {binary, head.bytes};
}

std::string source_image(const std::string& text, const std::string& options) {
  return std::string(source_name) + options + '\n' + text;
}

Code program_of(Device device, const std::string& binary, std::string* why) {
  static auto& made_before = *new std::map<std::pair<Device, std::string>, Code>;
  Code& made = made_before[{device, binary}];
  if (made.program == nullptr) {
    cl_int code = CL_SUCCESS;
    made = made_program(machine(device), binary, &code);
    if (code != CL_SUCCESS) {
      *why = "the stand-in cannot read this: OpenCL error " + std::to_string(code);
      made = {};
    }
  }
  return made;
}

Function function_of(Module module, const char* name) {
  cl_int code = CL_SUCCESS;
  cl_kernel kernel = clCreateKernel(module->code.program, name, &code);
  if (code != CL_SUCCESS) return nullptr;
  cl_kernel told = clCreateKernel(module->code.with_arguments, name, &code);
  check(code, "clCreateKernel");
  auto* made = new Function_{.module = module, .name = name, .kernel = kernel};
  cl_uint count = 0;
  check(clGetKernelInfo(told, CL_KERNEL_NUM_ARGS, sizeof(count), &count, nullptr),
        "clGetKernelInfo");
  for (cl_uint i = 0; i < count; ++i) made->parameters.push_back(parameter_of(told, i));
  clReleaseKernel(told);
  return made;
}

std::size_t most_threads_of(Device device, cl_kernel kernel) {
  const Machine& on = machine(device);
  std::array<std::size_t, 3> built_for{};
  std::size_t most = 0;
  check(clGetKernelWorkGroupInfo(kernel, on.device, CL_KERNEL_COMPILE_WORK_GROUP_SIZE,
                                 sizeof(built_for), &built_for, nullptr),
        "clGetKernelWorkGroupInfo");
  check(clGetKernelWorkGroupInfo(kernel, on.device, CL_KERNEL_WORK_GROUP_SIZE, sizeof(most), &most,
                                 nullptr),
        "clGetKernelWorkGroupInfo");
  return std::max(most, built_for[0]);
}

void run_kernel(const Function_& function, const Grid& grid, const std::vector<Value>& values) {
  const Machine& on = machine(function.module->context->device);
  std::vector<cl_mem> buffers;
  for (cl_uint i = 0; i < values.size(); ++i) {
    const Value& value = values[i];
    if (!function.parameters[i].is_pointer) {
      check(clSetKernelArg(function.kernel, i, value.bytes.size(), value.bytes.data()),
            "clSetKernelArg");
      continue;
    }
    cl_mem buffer = nullptr;
    if (value.place != nullptr) {
      // A CPU works where the numbers are.
      cl_int code = CL_SUCCESS;
      buffer = clCreateBuffer(on.context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR,
                              value.bytes_there, value.place, &code);
      check(code, "clCreateBuffer");
      buffers.push_back(buffer);
    }
    check(clSetKernelArg(function.kernel, i, sizeof(buffer), &buffer), "clSetKernelArg");
  }
  std::array<std::size_t, 3> items{};
  for (std::size_t d = 0; d < 3; ++d) items[d] = grid.groups[d] * grid.threads[d];
  check(clEnqueueNDRangeKernel(on.queue, function.kernel, 3, nullptr, items.data(), grid.threads, 0,
                               nullptr, nullptr),
        "clEnqueueNDRangeKernel");
  check(clFinish(on.queue), "clFinish");
  for (cl_mem buffer : buffers) clReleaseMemObject(buffer);
}

}  // namespace qrtool::cuda
