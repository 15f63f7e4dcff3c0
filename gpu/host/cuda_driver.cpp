// SPDX-License-Identifier: Apache-2.0
// cuda_driver.cpp: calls of CUDA's driver interface.
#include "gpu/host/cuda_driver.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <mutex>
#include <utility>

#include "gpu/host/cuda_api.hpp"
#include "gpu/host/kernel_files.hpp"

namespace qrtool {
namespace {

/// Whether no call of the process works after this error: the context of the GPU is lost.
bool is_fatal(cuda::Result result) {
  constexpr std::array fatal{
      cuda::deinitialized, 214, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719};
  return std::ranges::count(fatal, result) > 0;
}

DeviceFailure failure(const cuda::Api& api, std::string_view call, cuda::Result result,
                      std::string log = {}) {
  std::string text = text_of(api, call, result);
  if (is_fatal(result)) text += "; this process can use the GPU no more";
  return {text, result == cuda::out_of_memory, std::move(log)};
}

void check(const cuda::Api& api, std::string_view call, cuda::Result result) {
  if (result != cuda::success) throw failure(api, call, result);
}

const cuda::Api& needed_api() {
  std::string why;
  const cuda::Api* const api = cuda::api(&why);
  if (api == nullptr) throw DeviceFailure(why, /*is_short=*/false);
  return *api;
}

cuda::Pointer address_of(const Buffer& buffer) {
  return reinterpret_cast<cuda::Pointer>(buffer.handle());
}

/// The primary context of a GPU, which stays until the process ends: whoever else uses CUDA in it
/// works in the same one.
struct PrimaryContext {
  const cuda::Api& api;
  cuda::Context context = nullptr;
  int ordinal = 0;
  cuda::Pool pool = nullptr;  // of work memory; null where the GPU has no pools
};

/// Makes the context current, and afterwards the caller's one.
class Current {
 public:
  explicit Current(const PrimaryContext& primary) : api_(primary.api) {
    check(api_, "cuCtxPushCurrent", api_.push_context(primary.context));
  }
  ~Current() {
    cuda::Context popped = nullptr;
    api_.pop_context(&popped);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;

 private:
  const cuda::Api& api_;
};

/// Calls a function of the library in the context. Errors: DeviceFailure.
#define QRTOOL_CUDA(primary, name, ...) \
  check((primary).api, cuda::symbol::name, (primary).api.name(__VA_ARGS__))

/// Frees what `free` frees, also where the context is lost or the process ends.
template <class Free>
auto freed_in(const PrimaryContext& primary, Free free) {
  return [&primary, free](void* handle) {
    try {
      const Current current(primary);
      free(primary.api, handle);
    } catch (const DeviceFailure&) {  // the driver has freed it
    }
  };
}

using Handle = std::shared_ptr<void>;

Handle made_event(const PrimaryContext& primary) {
  cuda::Event event = nullptr;
  QRTOOL_CUDA(primary, event_create, &event, 0);
  return {event, freed_in(primary, [](const cuda::Api& api, void* handle) {
            api.event_destroy(static_cast<cuda::Event>(handle));
          })};
}

class CudaCommand final : public QueueCommand {
 public:
  CudaCommand(const PrimaryContext& primary, Handle start, Handle end)
      : primary_(primary), start_(std::move(start)), end_(std::move(end)) {}

  cuda::Event end() const { return static_cast<cuda::Event>(end_.get()); }
  void wait() const override {
    const Current current(primary_);
    QRTOOL_CUDA(primary_, event_wait, end());
  }
  double seconds_to_end(Moment from, const QueueCommand& last) const override {
    const Current current(primary_);
    const cuda::Event begun =
        from == Moment::start ? static_cast<cuda::Event>(start_.get()) : end();
    float milliseconds = 0;
    QRTOOL_CUDA(primary_, event_time, &milliseconds, begun,
                static_cast<const CudaCommand&>(last).end());
    return 1e-3 * static_cast<double>(milliseconds);
  }

 private:
  const PrimaryContext& primary_;
  Handle start_, end_;
};

class CudaQueue final : public Queue {
 public:
  CudaQueue(const PrimaryContext& primary, Handle stream)
      : primary_(primary), stream_(std::move(stream)) {}

  void fill(const Buffer& to, std::uint32_t word, std::size_t bytes) override {
    const Current current(primary_);
    if (bytes > 0) QRTOOL_CUDA(primary_, fill, address_of(to), word, bytes / 4, stream());
  }

  void copy(const Buffer& from, std::size_t from_offset, const Buffer& to, std::size_t to_offset,
            std::size_t bytes) override {
    const Current current(primary_);
    QRTOOL_CUDA(primary_, copy_on_device, address_of(to) + to_offset,
                address_of(from) + from_offset, bytes, stream());
  }

  void launch(const Kernel& kernel, std::size_t groups, std::size_t group_size,
              std::span<const Argument> arguments) override {
    std::array<void*, 64> places;
    if (arguments.size() > places.size())
      throw DeviceFailure("a kernel has more than 64 arguments", /*is_short=*/false);
    std::ranges::transform(arguments, places.begin(), [](const Argument& argument) {
      return const_cast<void*>(argument.data);
    });
    const Current current(primary_);
    QRTOOL_CUDA(primary_, launch, static_cast<cuda::Function>(kernel.handle.get()),
                static_cast<unsigned>(groups), 1, 1, static_cast<unsigned>(group_size), 1, 1, 0,
                stream(), places.data(), nullptr);
  }

  Event mark() override {
    const Current current(primary_);
    const Handle event = recorded();
    return std::make_shared<CudaCommand>(primary_, event, event);
  }

  void wait_for(std::span<const Event> events) override {
    const Current current(primary_);
    for (const Event& event : events)
      QRTOOL_CUDA(primary_, stream_wait, stream(), static_cast<const CudaCommand&>(*event).end(),
                  0);
  }

  void flush() override {}  // commands start by themselves
  void finish() override {
    const Current current(primary_);
    QRTOOL_CUDA(primary_, stream_finish, stream());
  }

 private:
  cuda::Stream stream() const { return static_cast<cuda::Stream>(stream_.get()); }
  Handle recorded() const {
    Handle event = made_event(primary_);
    QRTOOL_CUDA(primary_, event_record, static_cast<cuda::Event>(event.get()), stream());
    return event;
  }

  void copy_rows(Way way, const Buffer& buffer, void* host, const Rows& rows, bool waits,
                 Event* done) override {
    const Current current(primary_);
    const Handle start = done == nullptr ? Handle() : recorded();
    const cuda::Pointer at = address_of(buffer) + rows.offset;
    if (rows.rows != 1) {
      copy_steps(way, at, host, rows);
    } else if (way == Way::write) {
      QRTOOL_CUDA(primary_, copy_to_device, at, host, rows.row_bytes, stream());
    } else {
      QRTOOL_CUDA(primary_, copy_to_host, host, at, rows.row_bytes, stream());
    }
    if (done != nullptr) *done = std::make_shared<CudaCommand>(primary_, start, recorded());
    if (waits) QRTOOL_CUDA(primary_, stream_finish, stream());
  }

  /// Copies rows that are packed on the device.
  void copy_steps(Way way, cuda::Pointer at, void* host, const Rows& rows) const {
    cuda::Copy2d copy;
    copy.width = rows.row_bytes;
    copy.height = rows.rows;
    if (way == Way::write) {
      copy.from_type = cuda::host_memory;
      copy.from_host = host;
      copy.from_pitch = rows.host_step;
      copy.to_type = cuda::device_memory;
      copy.to_device = at;
      copy.to_pitch = rows.row_bytes;
    } else {
      copy.from_type = cuda::device_memory;
      copy.from_device = at;
      copy.from_pitch = rows.row_bytes;
      copy.to_type = cuda::host_memory;
      copy.to_host = host;
      copy.to_pitch = rows.host_step;
    }
    QRTOOL_CUDA(primary_, copy_2d, &copy, stream());
  }

  const PrimaryContext& primary_;
  Handle stream_;
};

/// Small buffers of a call share a block. What is not large comes from the device: a caller's
/// function may take longer than the kernels of a small call, most of all one in Python.
class CudaStreamMemory final : public StreamMemory {
 public:
  CudaStreamMemory(const CallerArrays& arrays, const StreamAllocator& allocator)
      : arrays_(arrays), allocator_(allocator) {}
  ~CudaStreamMemory() override { CudaStreamMemory::end_call(); }
  CudaStreamMemory(const CudaStreamMemory&) = delete;
  CudaStreamMemory& operator=(const CudaStreamMemory&) = delete;

  void begin_call(void* stream) override { stream_ = stream; }
  void expect(std::size_t bytes) override {
    const std::size_t all = bytes + most_buffers * alignment;
    if (all > block_bytes / 4) take_block(all);
  }

  void end_call() noexcept override {
    for (const auto& [memory, is_of_caller] : blocks_) {
      try {
        if (is_of_caller)
          allocator_.deallocate(allocator_.user, memory, stream_);
        else
          arrays_.free_on(stream_, memory);
      } catch (const DeviceFailure&) {  // the driver has freed it
      }
    }
    blocks_.clear();
    left_ = {};
  }

  Buffer allocate(std::size_t bytes) const override {
    const std::size_t taken =
        (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
    if (!left_ || left_.bytes() < taken) {
      if (taken > block_bytes / 4) return Buffer::of_caller(block(taken), bytes);
      take_block(block_bytes);
    }
    const Buffer given = left_.part(0, bytes);
    left_ = left_.part(taken, left_.bytes() - taken);
    return given;
  }

 private:
  struct Block {
    void* memory;
    bool is_of_caller;
  };
  /// Kernels read and write up to 16 bytes at once; cuMemAlloc aligns to 256.
  static constexpr std::size_t alignment = 256, block_bytes = std::size_t{2} << 20;
  /// Up to so many bytes come from the device's pool where the caller has an allocator, too: a call
  /// of PyTorch's takes some 6 us in Python. Larger ones count in the caller's own memory.
  static constexpr std::size_t most_from_device = std::size_t{16} << 20;
  static constexpr std::size_t most_buffers = 100;  // of an expected call; it may have more

  void take_block(std::size_t bytes) const { left_ = Buffer::of_caller(block(bytes), bytes); }
  void* block(std::size_t bytes) const {
    const bool is_of_caller = allocator_.allocate != nullptr && bytes > most_from_device;
    void* const made = is_of_caller ? allocator_.allocate(allocator_.user, bytes, stream_)
                                    : arrays_.allocate_on(stream_, bytes);
    if (made == nullptr)
      throw DeviceFailure("the caller's allocator has no memory left", /*is_short=*/true);
    blocks_.push_back({made, is_of_caller});
    return made;
  }

  const CallerArrays& arrays_;
  StreamAllocator allocator_;
  void* stream_ = nullptr;
  mutable std::vector<Block> blocks_;
  mutable Buffer left_;
};

/// PTX as CUDA takes it: the registers in which OpenCL has the offset of a launch are 0.
std::string for_cuda(std::string ptx) {
  constexpr std::string_view offset = "%envreg";
  for (std::size_t at = ptx.find(offset); at != std::string::npos; at = ptx.find(offset, at)) {
    const std::size_t end = ptx.find_first_not_of("0123456789", at + offset.size());
    ptx.replace(at, end - at, "0");
  }
  return ptx;
}

/// The number that follows the option for registers; 0: there is none.
unsigned most_registers_in(std::string_view options) {
  constexpr std::string_view option = "-cl-nv-maxrregcount=";
  const std::size_t at = options.find(option);
  unsigned registers = 0;
  if (at != std::string_view::npos)
    std::from_chars(options.data() + at + option.size(), options.data() + options.size(),
                    registers);
  return registers;
}

class CudaContext final : public DeviceContext, public CallerArrays {
 public:
  CudaContext(const CudaDevice& device, const std::string& driver, CompileKernels compile)
      : primary_{.api = needed_api(), .ordinal = device.ordinal},
        kind_(fmt::format("{} driver {}", device.architecture, driver)),
        compile_(std::move(compile)) {
    cuda::Device number = 0;
    QRTOOL_CUDA(primary_, device, &number, device.ordinal);
    QRTOOL_CUDA(primary_, retain_context, &primary_.context, number);
    int has_pools = 0;
    QRTOOL_CUDA(primary_, device_attribute, &has_pools, cuda::has_memory_pools, number);
    if (has_pools == 0) return;
    const Current current(primary_);
    const cuda::PoolProperties properties{.location = device.ordinal};
    QRTOOL_CUDA(primary_, pool_create, &primary_.pool, &properties);
    std::uint64_t all = UINT64_MAX;  // what is freed is kept for the next call
    QRTOOL_CUDA(primary_, pool_set, primary_.pool, cuda::pool_release_threshold, &all);
  }

  const CallerArrays* caller_arrays() const override { return this; }

  Buffer allocate(std::size_t bytes) const override {
    const Current current(primary_);
    // Whole pieces of 16 bytes: memcheck counts all of a copy that is cut at the end.
    bytes = std::max<std::size_t>((bytes + 15) / 16 * 16, 64);
    cuda::Pointer memory = 0;
    QRTOOL_CUDA(primary_, allocate, &memory, bytes);
    return {Handle(reinterpret_cast<void*>(memory),
                   freed_in(primary_,
                            [](const cuda::Api& api, void* handle) {
                              api.free(reinterpret_cast<cuda::Pointer>(handle));
                            })),
            bytes};
  }

  HostMemory page_locked(std::size_t bytes) const override {
    const Current current(primary_);
    void* memory = nullptr;
    QRTOOL_CUDA(primary_, allocate_host, &memory, std::max<std::size_t>(bytes, 64), 0);
    const auto free =
        freed_in(primary_, [](const cuda::Api& api, void* handle) { api.free_host(handle); });
    return {static_cast<std::byte*>(memory), [free](std::byte* p) { free(p); }};
  }

  std::unique_ptr<Queue> queue() const override {
    const Current current(primary_);
    cuda::Stream stream = nullptr;
    QRTOOL_CUDA(primary_, stream_create, &stream, cuda::non_blocking_stream);
    return std::make_unique<CudaQueue>(
        primary_, Handle(stream, freed_in(primary_, [](const cuda::Api& api, void* handle) {
                           api.stream_destroy(static_cast<cuda::Stream>(handle));
                         })));
  }

  Program build(const std::string& text, const std::string& options) const override {
    const std::string key = key_of(text, options);
    if (const std::optional<std::string> kept = kept_kernels(key)) {
      try {
        return loaded(*kept);
      } catch (const DeviceFailure& failure) {  // made again where the file is at fault
        if (failure.is_memory_short()) throw;
      }
    }
    const std::string image = linked(for_cuda(compile_(text, options)), options);
    const Program program = loaded(image);
    keep_kernels(key, image);
    return program;
  }

  bool is_kept(const std::string& text, const std::string& options) const override {
    return kept_kernels(key_of(text, options)).has_value();
  }

  Kernel kernel(const Program& program, const char* name) const override {
    const Current current(primary_);
    cuda::Function function = nullptr;
    QRTOOL_CUDA(primary_, function, &function, static_cast<cuda::Module>(program.get()), name);
    int most_items = 0;
    QRTOOL_CUDA(primary_, function_attribute, &most_items, cuda::most_threads_of_function,
                function);
    return {Handle(program, function), static_cast<std::size_t>(most_items)};
  }

  // ---- CallerArrays

  AddressKind kind_of(const void* address) const override {
    const Current current(primary_);
    unsigned type = 0, is_managed = 0;
    int ordinal = primary_.ordinal;
    cuda::Context context = nullptr;
    int names[] = {cuda::pointer_memory_type, cuda::pointer_is_managed, cuda::pointer_device,
                   cuda::pointer_context};
    void* values[] = {&type, &is_managed, &ordinal, &context};
    const cuda::Result result = primary_.api.pointer_attributes(
        std::size(names), names, values, reinterpret_cast<cuda::Pointer>(address));
    if (result == cuda::invalid_value) return AddressKind::host;
    check(primary_.api, "cuPointerGetAttributes", result);
    if (type != cuda::device_memory && is_managed == 0) return AddressKind::host;
    if (is_managed == 0 && ordinal != primary_.ordinal) return AddressKind::other_device;
    const bool is_own = context == nullptr || context == primary_.context || is_managed != 0;
    return is_own ? AddressKind::device : AddressKind::other_context;
  }

  std::unique_ptr<Queue> queue_on(void* stream) const override {
    return std::make_unique<CudaQueue>(primary_, Handle(Handle(), stream));
  }

  bool is_recording(void* stream) const override {
    const Current current(primary_);
    int status = cuda::capture_none;
    const cuda::Result result =
        primary_.api.stream_capture(static_cast<cuda::Stream>(stream), &status);
    // The legacy stream cannot say while another one is being recorded.
    if (result == cuda::capture_implicit) return true;
    check(primary_.api, "cuStreamIsCapturing", result);
    return status != cuda::capture_none;
  }

  bool is_own_stream(void* stream) const override {
    const Current current(primary_);
    cuda::Context context = nullptr;
    QRTOOL_CUDA(primary_, stream_context, static_cast<cuda::Stream>(stream), &context);
    return context == primary_.context;
  }

  std::unique_ptr<StreamMemory> stream_memory(const StreamAllocator& allocator) const override {
    return std::make_unique<CudaStreamMemory>(*this, allocator);
  }

  void* allocate_on(void* stream, std::size_t bytes) const override {
    const Current current(primary_);
    cuda::Pointer memory = 0;
    if (primary_.pool != nullptr)
      QRTOOL_CUDA(primary_, pool_allocate, &memory, std::max<std::size_t>(bytes, 1), primary_.pool,
                  static_cast<cuda::Stream>(stream));
    else
      QRTOOL_CUDA(primary_, allocate, &memory, std::max<std::size_t>(bytes, 1));
    return reinterpret_cast<void*>(memory);
  }

  void free_on(void* stream, void* memory) const override {
    const Current current(primary_);
    const auto address = reinterpret_cast<cuda::Pointer>(memory);
    if (primary_.pool != nullptr)
      QRTOOL_CUDA(primary_, free_async, address, static_cast<cuda::Stream>(stream));
    else
      QRTOOL_CUDA(primary_, free, address);
  }

  void free_when_idle(void* memory) const override {
    {
      const Current current(primary_);
      QRTOOL_CUDA(primary_, finish_context);
    }
    free_on(nullptr, memory);
  }

  void release() const override {
    const Current current(primary_);
    if (primary_.pool != nullptr) QRTOOL_CUDA(primary_, pool_trim, primary_.pool, 0);
  }

 private:
  std::string key_of(const std::string& text, const std::string& options) const {
    return fmt::format("{}\n{}\n{}", kind_, options, text);
  }

  Program loaded(const std::string& image) const {
    const Current current(primary_);
    cuda::Module module = nullptr;
    QRTOOL_CUDA(primary_, load_module, &module, image.data(), 0, nullptr, nullptr);
    return {module, freed_in(primary_, [](const cuda::Api& api, void* handle) {
              api.unload_module(static_cast<cuda::Module>(handle));
            })};
  }

  /// The code of the GPU, which loads without another translation.
  std::string linked(std::string ptx, std::string_view options) const {
    const Current current(primary_);
    std::array<char, 8192> log{};
    const auto number = [](std::size_t value) { return reinterpret_cast<void*>(value); };
    const unsigned registers = most_registers_in(options);
    int names[] = {cuda::link_error_log, cuda::link_error_log_bytes, cuda::link_max_registers};
    void* values[] = {log.data(), number(log.size()), number(registers)};
    cuda::Link link = nullptr;
    QRTOOL_CUDA(primary_, link_create, registers > 0 ? 3 : 2, names, values, &link);
    const Handle kept(link, freed_in(primary_, [](const cuda::Api& api, void* handle) {
                        api.link_destroy(static_cast<cuda::Link>(handle));
                      }));
    void* image = nullptr;
    std::size_t bytes = 0;
    const auto check_link = [&](const char* call, cuda::Result result) {
      if (result != cuda::success) throw failure(primary_.api, call, result, log.data());
    };
    check_link(cuda::symbol::link_add,
               primary_.api.link_add(link, cuda::input_ptx, ptx.data(), ptx.size() + 1, "kernels",
                                     0, nullptr, nullptr));
    check_link(cuda::symbol::link_complete, primary_.api.link_complete(link, &image, &bytes));
    return {static_cast<const char*>(image), bytes};
  }

  PrimaryContext primary_;
  std::string kind_;  // of the GPU and its driver
  CompileKernels compile_;
};

}  // namespace

std::vector<CudaDevice> cuda_devices(std::string& why, bool& is_forked) {
  const cuda::Api* const found = cuda::api(&why);
  if (found == nullptr) return {};
  const PrimaryContext of_all{.api = *found};
  const cuda::Result result = found->init(0);
  is_forked = result == cuda::not_initialized;
  if (is_forked) {
    why = "CUDA does not work in a child of a process that has used it";
    return {};
  }
  if (result != cuda::success) {
    why = fmt::format("the CUDA driver does not start ({})", text_of(*found, "cuInit", result));
    return {};
  }
  int count = 0;
  QRTOOL_CUDA(of_all, device_count, &count);
  std::vector<CudaDevice> devices;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    cuda::Device device = 0;
    QRTOOL_CUDA(of_all, device, &device, ordinal);
    const auto attribute = [&](int which) {
      int value = 0;
      QRTOOL_CUDA(of_all, device_attribute, &value, which, device);
      return value;
    };
    std::array<char, 256> name{};
    QRTOOL_CUDA(of_all, device_name, name.data(), static_cast<int>(name.size()), device);
    cuda::Uuid uuid{};
    QRTOOL_CUDA(of_all, device_uuid, &uuid, device);
    devices.push_back({.ordinal = ordinal,
                       .name = name.data(),
                       .uuid = fmt::format("{:02x}", fmt::join(uuid.bytes, "")),
                       .pci = fmt::format("{:04x}:{:02x}:{:02x}", attribute(cuda::pci_domain),
                                          attribute(cuda::pci_bus), attribute(cuda::pci_device)),
                       .architecture = fmt::format("sm_{}{}", attribute(cuda::capability_major),
                                                   attribute(cuda::capability_minor))});
  }
  if (devices.empty()) why = "the CUDA driver lists no GPU";
  return devices;
}

std::unique_ptr<DeviceContext> open_cuda(const CudaDevice& device, const std::string& driver,
                                         CompileKernels compile) {
  return std::make_unique<CudaContext>(device, driver, std::move(compile));
}

}  // namespace qrtool
