// SPDX-License-Identifier: Apache-2.0
// stream_work.hpp: an engine whose queue is a stream of a caller, and whose memory is freed in the
// order of this stream.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "gpu/pipeline/engine.hpp"

namespace qrtool {

/// Runs the calls of one caller after another, each on the stream that it names.
class StreamWork {
 public:
  /// The device of `session` has arrays of callers.
  StreamWork(const DeviceInfo& info, Session& session, const StreamAllocator& allocator);

  /// Calls body(), which enqueues work for a call. Then the memory of the call is freed, in the
  /// order of the stream. `where` is for messages. Errors: DeviceError, LimitError; nothing of the
  /// call is in the stream then.
  void run(void* stream, std::string_view where, const std::function<void()>& body);
  /// Within run(): calls part(first, number) for `count` items, at most `most` at a time, and fewer
  /// where the device has too little memory, after forget(), which lets go of buffers. `item` is
  /// for messages: "40x12 matrix".
  void in_parts(
      index_t count, index_t most, const std::string& item,
      const std::function<void(index_t, index_t)>& part,
      const std::function<void()>& forget = [] {});
  /// Within a part: it will take so many bytes of work memory.
  void expect(std::size_t bytes) { memory_->expect(bytes); }
  /// After run(): waits for its work.
  void wait();

  /// Within run(): page-locked memory of the host for the results of a call.
  std::byte* results(std::size_t bytes);

  /// What gpu/solve keeps from call to call.
  struct Kept {
    virtual ~Kept() = default;
  };
  std::unique_ptr<Kept> kept;

  FactorEngine& engine() { return engine_; }
  const FactorEngine& engine() const { return engine_; }

 private:
  void free_memory() noexcept;

  const CallerArrays& arrays_;
  std::unique_ptr<StreamMemory> memory_;
  FactorEngine engine_;
  void* stream_ = nullptr;
  HostMemory results_;
  std::size_t results_bytes_ = 0;
};

}  // namespace qrtool
