// SPDX-License-Identifier: Apache-2.0
// driver.hpp: all that gpu uses of the driver of a device. opencl_driver.cpp has it for OpenCL.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/batch.hpp"

namespace qrtool {

struct DeviceInfo;

/// A call of a driver that has failed. what() has its name and the code: "clFinish, OpenCL error
/// -36".
class DeviceFailure : public std::runtime_error {
 public:
  DeviceFailure(const std::string& what, bool is_short, std::string build_log = {})
      : std::runtime_error(what), is_memory_short_(is_short), log_(std::move(build_log)) {}
  /// Whether memory is short, so that less work at a time may help.
  bool is_memory_short() const { return is_memory_short_; }
  /// The words of the compiler about a program that does not build.
  const std::string& log() const { return log_; }

 private:
  bool is_memory_short_;
  std::string log_;
};

/// Throws the error of a failed call with a message for the user.
[[noreturn]] void throw_device_error(const DeviceFailure& failure, const DeviceInfo& info,
                                     std::string_view where);

/// Memory of a device, which is freed with the last copy of the object; or none.
class Buffer {
 public:
  Buffer() = default;
  /// `memory` is the handle of the driver, and frees it.
  Buffer(std::shared_ptr<void> memory, std::size_t bytes)
      : memory_(std::move(memory)), handle_(memory_.get()), bytes_(bytes) {}
  /// Device memory of a caller, for drivers whose handles are addresses.
  static Buffer of_caller(void* address, std::size_t bytes) {
    return {std::shared_ptr<void>(std::shared_ptr<void>(), address), bytes};
  }
  /// A part of the memory, which stays as long as the part; for drivers whose handles are
  /// addresses.
  Buffer part(std::size_t offset, std::size_t bytes) const {
    return {std::shared_ptr<void>(memory_, static_cast<std::byte*>(handle_) + offset), bytes};
  }

  explicit operator bool() const { return handle_ != nullptr; }
  std::size_t bytes() const { return bytes_; }
  void* const& handle() const { return handle_; }

 private:
  std::shared_ptr<void> memory_;
  void* handle_ = nullptr;  // where an argument of a kernel can point to it
  std::size_t bytes_ = 0;
};

/// A command of a queue.
class QueueCommand {
 public:
  enum class Moment { start, end };

  virtual ~QueueCommand() = default;
  /// Returns when the command is done. Errors: DeviceFailure.
  virtual void wait() const = 0;
  /// The seconds from a moment of this command to the end of `last`, by the clock of the device.
  /// Errors: DeviceFailure.
  virtual double seconds_to_end(Moment from, const QueueCommand& last) const = 0;
};
using Event = std::shared_ptr<const QueueCommand>;

void wait_for_all(std::span<const Event> events);
/// Seconds from the end of `first` to the end of `last`, by the clock of the device.
double seconds_between(const Event& first, const Event& last);
/// Seconds from the start of the first event to the end of the last one.
double seconds_of(std::span<const Event> events);

using Program = std::shared_ptr<void>;

/// A kernel for one thread, and the largest work-group in which the device runs it: registers may
/// allow fewer work-items than the limit of the device, except where the kernel was built for its
/// size.
struct Kernel {
  std::shared_ptr<void> handle;
  std::size_t most_items = 0;
};

/// An argument of a kernel.
struct Argument {
  template <class T>
  explicit Argument(const T& value) : data(&value), bytes(sizeof(value)) {}
  explicit Argument(const Buffer& buffer)
      : data(&buffer.handle()), bytes(sizeof(void*)), is_buffer(true) {}

  const void* data;
  std::size_t bytes;
  bool is_buffer = false;
};

/// The bits of a word with which a buffer is filled, so that all its numbers are NaN.
inline constexpr std::uint32_t nan_word = 0xffffffff;

/// Commands that a device executes one after another. Errors of all calls: DeviceFailure.
class Queue {
 public:
  /// Bytes of a copy between the host and a buffer: rows that are packed in the buffer from
  /// `offset` on, and begin `host_step` bytes apart in host memory.
  struct Rows {
    std::size_t offset, row_bytes, rows = 1, host_step = 0;
  };
  enum class Way { write, read };

  virtual ~Queue() = default;

  /// Copies that are complete when the call returns.
  void write(const Buffer& to, const void* from, std::size_t bytes, std::size_t offset = 0) {
    copy_rows(Way::write, to, const_cast<void*>(from), {offset, bytes}, /*waits=*/true, nullptr);
  }
  void read(const Buffer& from, void* to, std::size_t bytes) {
    copy_rows(Way::read, from, to, {0, bytes}, /*waits=*/true, nullptr);
  }
  template <class T>
  std::vector<T> read_list(const Buffer& from, std::size_t count) {
    std::vector<T> list(count);
    read(from, list.data(), count * sizeof(T));
    return list;
  }
  /// Copies that go on when the call returns. `done` becomes their event; until then the host's
  /// memory must stay as it is.
  void start_write(const Buffer& to, const void* from, const Rows& rows, Event* done = nullptr) {
    copy_rows(Way::write, to, const_cast<void*>(from), rows, /*waits=*/false, done);
  }
  void start_read(const Buffer& from, void* to, const Rows& rows, Event* done = nullptr) {
    copy_rows(Way::read, from, to, rows, /*waits=*/false, done);
  }

  /// Sets the first bytes, in whole words of 32 bits, to copies of one.
  virtual void fill(const Buffer& to, std::uint32_t word, std::size_t bytes) = 0;
  virtual void copy(const Buffer& from, std::size_t from_offset, const Buffer& to,
                    std::size_t to_offset, std::size_t bytes) = 0;
  virtual void launch(const Kernel& kernel, std::size_t groups, std::size_t group_size,
                      std::span<const Argument> arguments) = 0;
  /// An event after all commands so far.
  virtual Event mark() = 0;
  /// Later commands wait for events of other queues.
  virtual void wait_for(std::span<const Event> events) = 0;
  virtual void flush() = 0;
  virtual void finish() = 0;

 private:
  virtual void copy_rows(Way way, const Buffer& buffer, void* host, const Rows& rows, bool waits,
                         Event* done) = 0;
};

/// Where buffers come from. Errors of all calls: DeviceFailure.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  /// At least 64 bytes, because OpenCL does not allow a buffer of none.
  virtual Buffer allocate(std::size_t bytes) const = 0;
  /// Makes a buffer larger where it has fewer bytes; then its numbers are lost. Returns it.
  Buffer grown(Buffer& kept, std::size_t bytes) const;
};

/// Memory for one call after another, in the order of the stream of each call. Its buffers are gone
/// when their call ends.
class StreamMemory : public DeviceMemory {
 public:
  virtual void begin_call(void* stream) = 0;
  /// The call will take so many bytes, which may then come as one piece.
  virtual void expect(std::size_t bytes) = 0;
  /// Frees what the call has allocated, in the order of its stream. No error goes out.
  virtual void end_call() noexcept = 0;
};

/// The functions of a caller that give memory in the order of a stream, or null.
struct StreamAllocator {
  void* (*allocate)(void* user, std::size_t bytes, void* stream) = nullptr;
  void (*deallocate)(void* user, void* memory, void* stream) = nullptr;
  void* user = nullptr;
};

/// What an address of a caller belongs to.
enum class AddressKind { host, device, other_device, other_context };

/// What calls on arrays of a caller need of a device, beside its context: streams and addresses. A
/// stream is the handle of its driver; null is the usual one. Errors of all calls: DeviceFailure.
class CallerArrays {
 public:
  virtual ~CallerArrays() = default;

  virtual AddressKind kind_of(const void* address) const = 0;
  /// Commands go to a stream of the caller, which outlives the queue.
  virtual std::unique_ptr<Queue> queue_on(void* stream) const = 0;
  /// Whether commands of the stream are being recorded, not executed.
  virtual bool is_recording(void* stream) const = 0;
  /// Whether the stream belongs to the context of this device.
  virtual bool is_own_stream(void* stream) const = 0;
  /// Memory of `allocator`, or of the device where its functions are null.
  virtual std::unique_ptr<StreamMemory> stream_memory(const StreamAllocator& allocator) const = 0;
  /// Device memory in the order of a stream; not null.
  virtual void* allocate_on(void* stream, std::size_t bytes) const = 0;
  virtual void free_on(void* stream, void* memory) const = 0;
  /// Waits for all work of the device first, for memory that others may use on streams of theirs.
  virtual void free_when_idle(void* memory) const = 0;
  /// Gives the system what free_on() keeps for later.
  virtual void release() const = 0;
};

/// What a process has of a device. Errors of all calls: DeviceFailure.
class DeviceContext : public DeviceMemory {
 public:
  /// Null where the driver cannot work on arrays of a caller.
  virtual const CallerArrays* caller_arrays() const { return nullptr; }
  /// Host memory that the device copies from and to at full speed.
  virtual HostMemory page_locked(std::size_t bytes) const = 0;
  virtual std::unique_ptr<Queue> queue() const = 0;
  virtual Program build(const std::string& text, const std::string& options) const = 0;
  /// Whether build() takes no time, because the program is kept on disk.
  virtual bool is_kept(const std::string& /*text*/, const std::string& /*options*/) const {
    return false;
  }
  virtual Kernel kernel(const Program& program, const char* name) const = 0;
};

using OpenDevice = std::function<std::unique_ptr<DeviceContext>()>;
/// Makes what a compiler makes of a kernel text with options. Errors: DeviceFailure.
using CompileKernels =
    std::function<std::string(const std::string& text, const std::string& options)>;

}  // namespace qrtool
