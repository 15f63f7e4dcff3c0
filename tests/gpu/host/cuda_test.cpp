// SPDX-License-Identifier: Apache-2.0
// cuda_test.cpp: the driver of CUDA copies, fills and launches as the one of OpenCL does, in the
// order of its queues, and leaves a caller's state alone.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstring>
#include <numeric>
#include <thread>
#include <vector>

#include "tests/gpu/cuda_fixture.hpp"

namespace qrtool::test::cuda_test {
namespace {

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_CUDA();
    context = open_cuda_context(*cuda_device());
    queue = context->queue();
  }

  const CallerArrays& arrays() const { return *context->caller_arrays(); }
  Buffer buffer_of(const std::vector<float>& numbers) const {
    const Buffer buffer = context->allocate(sizeof(float) * numbers.size());
    queue->write(buffer, numbers.data(), sizeof(float) * numbers.size());
    return buffer;
  }
  std::vector<float> read(const Buffer& buffer, std::size_t count) const {
    return queue->read_list<float>(buffer, count);
  }
  Kernel kernel(const char* name) const {
    return context->kernel(context->build(std::string(mixed_text), mixed_options), name);
  }

  std::unique_ptr<DeviceContext> context;
  std::unique_ptr<Queue> queue;
};

std::vector<float> numbers_from(float first, std::size_t count) {
  std::vector<float> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

/// Memory of CUDA in the current context, as a caller has it.
struct Current {
  explicit Current(cuda::Context wanted) { cuda::api()->push_context(wanted); }
  ~Current() { cuda::api()->pop_context(&popped); }
  cuda::Context popped = nullptr;
};

cuda::Context primary() {
  cuda::Context context = nullptr;
  cuda::api()->retain_context(&context, 0);
  return context;
}

cuda::Context current() {
  cuda::Context context = nullptr;
  cuda_function<cuda::Result(cuda::Context*)>("cuCtxGetCurrent")(&context);
  return context;
}

TEST_F(Cuda, CopiesRowsBothWays) {
  constexpr std::size_t rows = 7, cols = 5, step = 9, first = 3;
  const std::vector<float> sent = numbers_from(1, rows * step);
  const HostMemory locked = context->page_locked(sizeof(float) * sent.size());
  std::memcpy(locked.get(), sent.data(), sizeof(float) * sent.size());
  const Queue::Rows strided{sizeof(float) * first, sizeof(float) * cols, rows,
                            sizeof(float) * step};
  for (const void* from : std::array<const void*, 2>{sent.data(), locked.get()}) {
    const Buffer buffer = buffer_of(std::vector<float>(first + rows * cols, -1));
    Event written, got;
    queue->start_write(buffer, from, strided, &written);
    std::vector<float> found(rows * step, -2);
    queue->start_read(buffer, found.data(), strided, &got);
    got->wait();
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < step; ++j)
        EXPECT_EQ(found[i * step + j], j < cols ? sent[i * step + j] : -2);
    const std::vector<float> packed = read(buffer, first + rows * cols);
    EXPECT_EQ(packed[first - 1], -1);
    EXPECT_EQ(packed[first + cols], sent[step]);
    EXPECT_GE(seconds_of(std::vector{written, got}), 0);
  }
}

TEST_F(Cuda, FillsAndCopiesOnTheDevice) {
  const Buffer from = buffer_of(numbers_from(1, 100)), to = context->allocate(400);
  queue->fill(to, nan_word, 400);
  queue->copy(from, 40, to, 20, 200);
  const std::vector<float> found = read(to, 100);
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (i >= 5 && i < 55)
      EXPECT_EQ(found[i], static_cast<float>(i + 6));
    else
      EXPECT_TRUE(std::isnan(found[i])) << i;
  }
}

TEST_F(Cuda, KernelsTakeArgumentsOfEveryKind) {
  const Kernel mix = kernel("mixed_sum");
  EXPECT_GE(mix.most_items, 32U);
  const Buffer from = buffer_of(numbers_from(1, 1000)), results = context->allocate(4000), none;
  const Mixed mixed{.count = 1000, .factor = 2, .added = 0.25};
  const int whole = 3;
  const float single = 0.5F;
  const double more = 0.125;
  const std::array list{Argument(results), Argument(from), Argument(mixed), Argument(whole),
                        Argument(single),  Argument(more), Argument(none)};
  queue->launch(mix, 32, 32, list);
  const std::vector<float> found = read(results, 1000);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], 2 * static_cast<float>(i + 1) + 3.875F);
}

TEST_F(Cuda, KernelsWorkOnAPartOfABuffer) {
  const Buffer all = buffer_of(numbers_from(0, 256));
  const Buffer part = all.part(256, 256);
  queue->launch(kernel("add_one"), 2, 32, std::array{Argument(part)});
  const std::vector<float> found = read(all, 256);
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_EQ(found[i], static_cast<float>(i + (i >= 64 && i < 128 ? 1 : 0))) << i;
}

TEST_F(Cuda, QueuesWaitForEventsOfOthers) {
  const auto other = context->queue();
  const Kernel add_one = kernel("add_one");
  const Buffer buffer = buffer_of(numbers_from(0, 64));
  std::vector<Event> done{queue->mark()};
  for (int turn = 0; turn < 10; ++turn) {
    Queue& next = turn % 2 == 0 ? *other : *queue;
    next.wait_for(done);
    next.launch(add_one, 2, 32, std::array{Argument(buffer)});
    done = {next.mark()};
  }
  done.front()->wait();
  EXPECT_EQ(read(buffer, 64), numbers_from(10, 64));
}

TEST_F(Cuda, TellsOfKernelsThatDoNotBuild) {
  try {
    context->build("__kernel void broken( { }", mixed_options);
    FAIL() << "it builds";
  } catch (const DeviceFailure& failure) {
    EXPECT_FALSE(failure.log().empty());
  }
  try {
    kernel("missing");
    FAIL() << "it is there";
  } catch (const DeviceFailure& failure) {
    EXPECT_NE(std::string(failure.what()).find("cuModuleGetFunction"), std::string::npos);
  }
}

TEST_F(Cuda, KnowsWhatAnAddressBelongsTo) {
  const Current scope(primary());
  float number = 0;
  EXPECT_EQ(arrays().kind_of(&number), AddressKind::host);
  EXPECT_EQ(arrays().kind_of(nullptr), AddressKind::host);
  const HostMemory locked = context->page_locked(100);
  EXPECT_EQ(arrays().kind_of(locked.get()), AddressKind::host);
  const Buffer buffer = context->allocate(1000);
  EXPECT_EQ(arrays().kind_of(buffer.handle()), AddressKind::device);
  EXPECT_EQ(arrays().kind_of(static_cast<std::byte*>(buffer.handle()) + 999), AddressKind::device);
  void* const pooled = arrays().allocate_on(nullptr, 1000);
  EXPECT_EQ(arrays().kind_of(pooled), AddressKind::device);
  arrays().free_on(nullptr, pooled);
  cuda::Pointer managed = 0;
  cuda_function<cuda::Result(cuda::Pointer*, std::size_t, unsigned)>("cuMemAllocManaged")(&managed,
                                                                                          1000, 1);
  EXPECT_EQ(arrays().kind_of(reinterpret_cast<void*>(managed)), AddressKind::device);
  cuda::api()->free(managed);
}

TEST_F(Cuda, KnowsMemoryAndStreamsOfAnotherContext) {
  cuda::Context other = nullptr;
  ASSERT_EQ(cuda_function<cuda::Result(cuda::Context*, unsigned, cuda::Device)>("cuCtxCreate_v2")(
                &other, 0, 0),
            cuda::success);
  cuda::Pointer memory = 0;
  cuda::Stream stream = nullptr;
  cuda::api()->allocate(&memory, 1000);
  cuda::api()->stream_create(&stream, 0);
  EXPECT_EQ(arrays().kind_of(reinterpret_cast<void*>(memory)), AddressKind::other_context);
  EXPECT_FALSE(arrays().is_own_stream(stream));
  EXPECT_TRUE(arrays().is_own_stream(nullptr));
  EXPECT_EQ(current(), other);
  cuda::api()->free(memory);
  cuda::api()->stream_destroy(stream);
  cuda_function<cuda::Result(cuda::Context)>("cuCtxDestroy_v2")(other);
}

TEST_F(Cuda, WorksOnTheStreamsOfACaller) {
  const Kernel add_one = kernel("add_one");
  const Current scope(primary());
  cuda::Stream own = nullptr;
  ASSERT_EQ(cuda::api()->stream_create(&own, 0), cuda::success);
  for (const std::uintptr_t usual : {0, 1, 2, 3}) {
    auto* const stream = usual == 3 ? own : reinterpret_cast<cuda::Stream>(usual);
    EXPECT_TRUE(arrays().is_own_stream(stream));
    EXPECT_FALSE(arrays().is_recording(stream));
    cuda::Pointer memory = 0;
    ASSERT_EQ(cuda::api()->allocate(&memory, 256), cuda::success);
    const std::vector<float> numbers = numbers_from(5, 64);
    cuda::api()->copy_to_device(memory, numbers.data(), 256, stream);
    const Buffer buffer = Buffer::of_caller(reinterpret_cast<void*>(memory), 256);
    arrays().queue_on(stream)->launch(add_one, 2, 32, std::array{Argument(buffer)});
    std::vector<float> found(64);
    cuda::api()->copy_to_host(found.data(), memory, 256, stream);
    cuda::api()->stream_finish(stream);
    EXPECT_EQ(found, numbers_from(6, 64));
    cuda::api()->free(memory);
  }
  cuda::api()->stream_destroy(own);
}

TEST_F(Cuda, KnowsAStreamThatIsRecorded) {
  const Current scope(primary());
  cuda::Stream stream = nullptr;
  void* graph = nullptr;
  ASSERT_EQ(cuda::api()->stream_create(&stream, cuda::non_blocking_stream), cuda::success);
  cuda_function<cuda::Result(cuda::Stream, int)>("cuStreamBeginCapture_v2")(stream, 1);
  EXPECT_TRUE(arrays().is_recording(stream));
  cuda_function<cuda::Result(cuda::Stream, void**)>("cuStreamEndCapture")(stream, &graph);
  EXPECT_FALSE(arrays().is_recording(stream));
  cuda::api()->stream_destroy(stream);
}

TEST_F(Cuda, MemoryOfACallIsGoneAtItsEnd) {
  const auto memory = arrays().stream_memory({});
  for (int call = 0; call < 3; ++call) {
    const unsigned long long before = is_stand_in() ? device_bytes() : 0;
    memory->begin_call(nullptr);
    std::vector<Buffer> buffers;
    for (std::size_t bytes = 1; bytes < std::size_t{4} << 20; bytes = bytes * 3 + 1)
      buffers.push_back(memory->allocate(bytes));
    const auto on_stream = arrays().queue_on(nullptr);
    for (const Buffer& buffer : buffers) {
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.handle()) % 256, 0U);
      on_stream->fill(buffer, 0, buffer.bytes() / 4 * 4);
    }
    memory->end_call();
    EXPECT_EQ(is_stand_in() ? device_bytes() : 0, before);
  }
  arrays().release();
}

struct Counts {
  int allocated = 0, freed = 0;
  bool is_out = false;
  void* stream = nullptr;
};

TEST_F(Cuda, MemoryComesFromTheAllocatorOfACaller) {
  Counts counts;
  const StreamAllocator allocator{
      .allocate = [](void* user, std::size_t bytes, void* stream) -> void* {
        auto& own = *static_cast<Counts*>(user);
        if (own.is_out) return nullptr;
        ++own.allocated;
        own.stream = stream;
        const Current scope(primary());
        cuda::Pointer memory = 0;
        cuda::api()->allocate(&memory, bytes);
        return reinterpret_cast<void*>(memory);
      },
      .deallocate =
          [](void* user, void* memory, void* stream) {
            auto& own = *static_cast<Counts*>(user);
            ++own.freed;
            EXPECT_EQ(stream, own.stream);
            const Current scope(primary());
            cuda::api()->stream_finish(static_cast<cuda::Stream>(stream));
            cuda::api()->free(reinterpret_cast<cuda::Pointer>(memory));
          },
      .user = &counts};
  const auto memory = arrays().stream_memory(allocator);
  void* const stream = reinterpret_cast<void*>(2);
  memory->begin_call(stream);
  std::vector<Buffer> buffers;
  for (int i = 0; i < 20; ++i) buffers.push_back(memory->allocate(1000));
  EXPECT_EQ(counts.allocated, 0) << "small buffers share a block of the library";
  buffers.push_back(memory->allocate(std::size_t{3} << 20));
  EXPECT_EQ(counts.allocated, 0) << "what is not large comes from the library, too";
  for (int i = 0; i < 2; ++i) buffers.push_back(memory->allocate(std::size_t{17} << 20));
  EXPECT_EQ(counts.allocated, 2);
  const auto on_stream = arrays().queue_on(stream);
  for (const Buffer& buffer : buffers) on_stream->fill(buffer, 0, buffer.bytes());
  memory->end_call();
  EXPECT_EQ(counts.freed, 2);
  EXPECT_EQ(counts.stream, stream);
  counts.is_out = true;
  memory->begin_call(stream);
  memory->allocate(1000);
  try {
    memory->allocate(std::size_t{17} << 20);
    FAIL() << "there is memory";
  } catch (const DeviceFailure& failure) {
    EXPECT_TRUE(failure.is_memory_short());
  }
  memory->end_call();
}

TEST(CudaWithoutPools, HasMemoryInTheOrderOfStreams) {
  SKIP_WITHOUT_STAND_IN();
  const Words words("no-pools");
  const auto context = open_cuda_context(*cuda_device());
  const CallerArrays& arrays = *context->caller_arrays();
  const unsigned long long before = device_bytes();
  const auto memory = arrays.stream_memory({});
  memory->begin_call(nullptr);
  const Buffer small = memory->allocate(1000), large = memory->allocate(std::size_t{3} << 20);
  const auto queue = arrays.queue_on(nullptr);
  queue->fill(small, 0, 1000);
  queue->copy(small, 0, large, 0, 1000);
  memory->end_call();
  EXPECT_EQ(device_bytes(), before);
  arrays.release();
  EXPECT_EQ(Words::calls("cuMemAllocFromPoolAsync"), 0U);
}

TEST_F(Cuda, LeavesTheContextOfACallerCurrent) {
  const auto work = [&] {
    const auto own = context->queue();
    const Buffer buffer = context->allocate(400);
    own->fill(buffer, 0, 400);
    const Event done = own->mark();
    done->wait();
    own->read_list<float>(buffer, 100);
    arrays().kind_of(buffer.handle());
    arrays().release();
  };
  EXPECT_EQ(current(), nullptr);
  work();
  EXPECT_EQ(current(), nullptr);
  {
    const Current scope(primary());
    work();
    EXPECT_EQ(current(), primary());
  }
  cuda::Context other = nullptr;
  cuda_function<cuda::Result(cuda::Context*, unsigned, cuda::Device)>("cuCtxCreate_v2")(&other, 0,
                                                                                        0);
  work();
  EXPECT_EQ(current(), other);
  cuda_function<cuda::Result(cuda::Context)>("cuCtxDestroy_v2")(other);
  EXPECT_EQ(current(), nullptr);
}

TEST_F(Cuda, ThreadsWorkAtOnce) {
  const Program program = context->build(std::string(mixed_text), mixed_options);
  std::array<std::vector<float>, 4> found;
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < found.size(); ++t) {
      threads.emplace_back([&, t] {
        const auto own = context->queue();
        const Kernel add_one = context->kernel(program, "add_one");
        const std::vector<float> numbers = numbers_from(static_cast<float>(t), 64);
        const Buffer buffer = context->allocate(256);
        own->write(buffer, numbers.data(), 256);
        for (int turn = 0; turn < 50; ++turn)
          own->launch(add_one, 2, 32, std::array{Argument(buffer)});
        found[t] = own->read_list<float>(buffer, 64);
      });
    }
  }
  for (std::size_t t = 0; t < found.size(); ++t)
    EXPECT_EQ(found[t], numbers_from(static_cast<float>(t + 50), 64));
}

TEST_F(Cuda, FailsInAChildProcess) {
  const Buffer buffer = context->allocate(400);
  const pid_t child = fork();
  if (child == 0) {
    int code = 1;
    try {
      queue->read_list<float>(buffer, 100);
    } catch (const DeviceFailure&) {
      try {
        context->allocate(100);
      } catch (const DeviceFailure&) {
        code = 7;
      }
    }
    _exit(code);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read(buffer, 100).size(), 100U);
}

}  // namespace
}  // namespace qrtool::test::cuda_test
