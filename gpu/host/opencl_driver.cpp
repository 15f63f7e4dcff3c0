// SPDX-License-Identifier: Apache-2.0
// opencl_driver.cpp: calls of OpenCL.
#include "gpu/host/opencl_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace qrtool {
namespace {

DeviceFailure failure(std::string_view call, cl_int code, std::string log = {}) {
  // A driver may say that resources are out where it has no memory for a buffer; of a kernel they
  // all say so where it has failed.
  const bool is_out = code == CL_OUT_OF_RESOURCES && call == "clCreateBuffer";
  const bool is_short = is_out || code == CL_MEM_OBJECT_ALLOCATION_FAILURE ||
                        code == CL_INVALID_BUFFER_SIZE || code == CL_OUT_OF_HOST_MEMORY;
  return {fmt::format("{}, OpenCL error {}", call, code), is_short, std::move(log)};
}

void check(cl_int code, std::string_view call) {
  if (code != CL_SUCCESS) throw failure(call, code);
}

cl_mem memory_of(const Buffer& buffer) { return static_cast<cl_mem>(buffer.handle()); }

/// Calls body() of OpenCL's C++ binding.
template <class Body>
auto called(Body body) {
  try {
    return body();
  } catch (const cl::Error& error) {
    throw failure(error.what(), error.err());
  }
}

class OpenclCommand final : public QueueCommand {
 public:
  explicit OpenclCommand(cl::Event event) : event_(std::move(event)) {}

  static cl_event handle_of(const Event& event) {
    return static_cast<const OpenclCommand&>(*event).event_();
  }
  void wait() const override {
    called([&] { event_.wait(); });
  }
  double seconds_to_end(Moment from, const QueueCommand& last) const override {
    const cl_profiling_info begun =
        from == Moment::start ? CL_PROFILING_COMMAND_START : CL_PROFILING_COMMAND_END;
    const auto& end = static_cast<const OpenclCommand&>(last);
    return (end.nanoseconds(CL_PROFILING_COMMAND_END) - nanoseconds(begun)) * 1e-9;
  }

 private:
  double nanoseconds(cl_profiling_info moment) const {
    cl_ulong time = 0;
    called([&] { event_.getProfilingInfo(moment, &time); });
    return static_cast<double>(time);
  }

  cl::Event event_;
};

class OpenclQueue final : public Queue {
 public:
  explicit OpenclQueue(cl::CommandQueue queue) : queue_(std::move(queue)) {}

  void fill(const Buffer& to, std::uint32_t word, std::size_t bytes) override {
    check(clEnqueueFillBuffer(queue_(), memory_of(to), &word, sizeof(word), 0, bytes, 0, nullptr,
                              nullptr),
          "clEnqueueFillBuffer");
  }

  void copy(const Buffer& from, std::size_t from_offset, const Buffer& to, std::size_t to_offset,
            std::size_t bytes) override {
    check(clEnqueueCopyBuffer(queue_(), memory_of(from), memory_of(to), from_offset, to_offset,
                              bytes, 0, nullptr, nullptr),
          "clEnqueueCopyBuffer");
  }

  void launch(const Kernel& kernel, std::size_t groups, std::size_t group_size,
              std::span<const Argument> arguments) override {
    const auto handle = static_cast<cl_kernel>(kernel.handle.get());
    cl_uint index = 0;
    for (const Argument& argument : arguments)
      check(clSetKernelArg(handle, index++, argument.bytes, argument.data), "clSetKernelArg");
    const std::size_t items = groups * group_size;
    check(clEnqueueNDRangeKernel(queue_(), handle, 1, nullptr, &items, &group_size, 0, nullptr,
                                 nullptr),
          "clEnqueueNDRangeKernel");
  }

  Event mark() override {
    cl::Event event;
    called([&] { queue_.enqueueMarkerWithWaitList(nullptr, &event); });
    return std::make_shared<OpenclCommand>(event);
  }

  void wait_for(std::span<const Event> events) override {
    std::vector<cl_event> list;
    for (const Event& event : events) list.push_back(OpenclCommand::handle_of(event));
    check(clEnqueueBarrierWithWaitList(queue_(), static_cast<cl_uint>(list.size()), list.data(),
                                       nullptr),
          "clEnqueueBarrierWithWaitList");
  }

  void flush() override {
    called([&] { queue_.flush(); });
  }
  void finish() override {
    called([&] { queue_.finish(); });
  }

 private:
  void copy_rows(Way way, const Buffer& buffer, void* host, const Rows& rows, bool waits,
                 Event* done) override {
    const bool writes = way == Way::write;
    const cl_bool blocks = waits ? CL_TRUE : CL_FALSE;
    cl_event event = nullptr;
    cl_event* const place = done == nullptr ? nullptr : &event;
    if (rows.rows == 1) {
      const auto start = [&](auto enqueue) {
        return enqueue(queue_(), memory_of(buffer), blocks, rows.offset, rows.row_bytes, host, 0,
                       nullptr, place);
      };
      check(writes ? start(clEnqueueWriteBuffer) : start(clEnqueueReadBuffer),
            writes ? "clEnqueueWriteBuffer" : "clEnqueueReadBuffer");
    } else {
      const std::size_t in_buffer[]{rows.offset, 0, 0}, in_host[]{0, 0, 0},
          region[]{rows.row_bytes, rows.rows, 1};
      const auto start = [&](auto enqueue) {
        return enqueue(queue_(), memory_of(buffer), blocks, in_buffer, in_host, region,
                       rows.row_bytes, 0, rows.host_step, 0, host, 0, nullptr, place);
      };
      check(writes ? start(clEnqueueWriteBufferRect) : start(clEnqueueReadBufferRect),
            writes ? "clEnqueueWriteBufferRect" : "clEnqueueReadBufferRect");
    }
    if (done != nullptr) *done = std::make_shared<OpenclCommand>(cl::Event(event));
  }

  cl::CommandQueue queue_;
};

class OpenclContext final : public DeviceContext {
 public:
  explicit OpenclContext(cl::Device device)
      : device_(std::move(device)), context_(called([&] { return cl::Context(device_); })) {}

  Buffer allocate(std::size_t bytes) const override {
    bytes = std::max<std::size_t>(bytes, 64);
    return {made_buffer(CL_MEM_READ_WRITE, bytes), bytes};
  }

  HostMemory page_locked(std::size_t bytes) const override {
    bytes = std::max<std::size_t>(bytes, 64);
    const auto pinned = made_buffer(CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, bytes);
    const auto memory = static_cast<cl_mem>(pinned.get());
    // A separate queue, so that unmapping and other work do not wait for each other.
    const cl::CommandQueue queue = made_queue(0);
    cl_int code = CL_SUCCESS;
    void* mapped = clEnqueueMapBuffer(queue(), memory, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                      bytes, 0, nullptr, nullptr, &code);
    check(code, "clEnqueueMapBuffer");
    return {static_cast<std::byte*>(mapped), [pinned, memory, queue](std::byte* p) {
              clEnqueueUnmapMemObject(queue(), memory, p, 0, nullptr, nullptr);
              clFinish(queue());
            }};
  }

  std::unique_ptr<Queue> queue() const override {
    return std::make_unique<OpenclQueue>(made_queue(CL_QUEUE_PROFILING_ENABLE));
  }

  Program build(const std::string& text, const std::string& options) const override {
    const auto program = called([&] { return cl::Program(context_, text); });
    const cl_int code = clBuildProgram(program(), 1, &device_(), options.c_str(), nullptr, nullptr);
    if (code != CL_SUCCESS) throw failure("clBuildProgram", code, log_of(program));
    clRetainProgram(program());
    return {program(), clReleaseProgram};
  }

  /// A kernel with a fixed group size (reqd_work_group_size) runs in groups of this size, whatever
  /// limit the driver reports: NVIDIA's reports 256 for kernels that it has built for 512
  /// work-items, and runs.
  Kernel kernel(const Program& program, const char* name) const override {
    cl_int code = CL_SUCCESS;
    cl_kernel kernel = clCreateKernel(static_cast<cl_program>(program.get()), name, &code);
    check(code, "clCreateKernel");
    Kernel made{std::shared_ptr<void>(kernel, clReleaseKernel)};
    std::array<std::size_t, 3> built_for{};
    ask(kernel, CL_KERNEL_COMPILE_WORK_GROUP_SIZE, built_for);
    ask(kernel, CL_KERNEL_WORK_GROUP_SIZE, made.most_items);
    made.most_items = std::max(made.most_items, built_for[0]);
    return made;
  }

 private:
  std::shared_ptr<void> made_buffer(cl_mem_flags flags, std::size_t bytes) const {
    cl_int code = CL_SUCCESS;
    cl_mem memory = clCreateBuffer(context_(), flags, bytes, nullptr, &code);
    check(code, "clCreateBuffer");
    return {memory, clReleaseMemObject};
  }

  cl::CommandQueue made_queue(cl_command_queue_properties properties) const {
    return called([&] { return cl::CommandQueue(context_, device_, properties); });
  }

  template <class T>
  void ask(cl_kernel kernel, cl_kernel_work_group_info what, T& answer) const {
    check(clGetKernelWorkGroupInfo(kernel, device_(), what, sizeof(answer), &answer, nullptr),
          "clGetKernelWorkGroupInfo");
  }

  std::string log_of(const cl::Program& program) const {
    try {
      return program.getBuildInfo<CL_PROGRAM_BUILD_LOG>(device_);
    } catch (const cl::Error&) {
      return "no build log";
    }
  }

  cl::Device device_;
  cl::Context context_;
};

}  // namespace

std::unique_ptr<DeviceContext> open_opencl(const cl::Device& device) {
  return std::make_unique<OpenclContext>(device);
}

std::string binary_of(const Program& program, const cl::Device& device) {
  const cl::Program made(static_cast<cl_program>(program.get()), /*retainObject=*/true);
  return called([&] {
    const auto devices = made.getInfo<CL_PROGRAM_DEVICES>();
    const auto binaries = made.getInfo<CL_PROGRAM_BINARIES>();
    for (std::size_t i = 0; i < devices.size(); ++i)
      if (devices[i]() == device()) return std::string(binaries[i].begin(), binaries[i].end());
    return std::string();
  });
}

}  // namespace qrtool
