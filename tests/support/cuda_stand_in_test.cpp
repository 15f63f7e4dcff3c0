// SPDX-License-Identifier: Apache-2.0
// cuda_stand_in_test.cpp: the stand-in for CUDA ends a program that breaks a rule, and no other.
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "tests/gpu/cuda_fixture.hpp"

namespace qrtool::test::cuda_stand_in_test {
namespace {

class CudaStandIn : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_STAND_IN();
    testing::FLAGS_gtest_death_test_style = "threadsafe";  // CUDA does not work after fork()
    api().retain_context(&context, 0);
    api().push_context(context);
    api().stream_create(&one, cuda::non_blocking_stream);
    api().stream_create(&two, cuda::non_blocking_stream);
    api().stream_create(&blocking, 0);
    api().event_create(&event, 0);
    api().allocate(&memory, 4096);
  }
  void TearDown() override {
    if (context == nullptr) return;
    api().free(memory);
    cuda::Context popped = nullptr;
    api().pop_context(&popped);
  }

  static const cuda::Api& api() { return *cuda::api(); }
  void write(cuda::Stream stream, std::size_t first = 0, std::size_t words = 16) const {
    api().fill(memory + first, 1, words, stream);
  }
  void read(cuda::Stream stream) const {
    cuda::Pointer other = 0;
    api().allocate(&other, 64);
    api().copy_on_device(other, memory, 64, stream);
  }
  void order(cuda::Stream first, cuda::Stream second) const {
    api().event_record(event, first);
    api().stream_wait(second, event, 0);
  }

  cuda::Context context = nullptr;
  cuda::Stream one = nullptr, two = nullptr, blocking = nullptr;
  cuda::Event event = nullptr;
  cuda::Pointer memory = 0;
  float number = 0;
};
using CudaStandInDeathTest = CudaStandIn;

TEST_F(CudaStandIn, LetsOrderedStreamsPass) {
  write(one);
  order(one, two);
  write(two);
  order(two, one);
  read(one);
  read(two);  // after its own
  api().stream_finish(one);
  api().stream_finish(two);
  write(one);
  write(two, 2048);  // elsewhere
  order(one, blocking);
  write(blocking);
  write(nullptr);  // waits for blocking streams, and they for it
  write(blocking);
  api().stream_finish(nullptr);
  write(two);
}

TEST_F(CudaStandInDeathTest, FindsStreamsWithoutOrder) {
  const std::string rule = "no order after another stream";
  EXPECT_DEATH(
      {
        write(one);
        write(two);
      },
      rule);
  EXPECT_DEATH(
      {
        write(one);
        read(two);
      },
      rule);
  EXPECT_DEATH(
      {
        read(one);
        write(two);
      },
      rule);
  EXPECT_DEATH(
      {
        write(one);
        write(nullptr);
      },
      rule);  // does not block
  EXPECT_DEATH(
      {
        order(one, two);
        write(one);
        write(two);
      },
      rule);
  EXPECT_DEATH(
      {
        write(one);
        api().free_host(reinterpret_cast<void*>(memory));
      },
      "no memory");
}

TEST_F(CudaStandInDeathTest, FindsWrongAddresses) {
  EXPECT_DEATH(write(one, 4096 - 4, 2), "more than the memory has");
  EXPECT_DEATH(write(one, 1 << 20), "in no device memory");
  EXPECT_DEATH(
      {
        api().free(memory);
        write(one);
      },
      "memory that was freed");
  EXPECT_DEATH(
      {
        api().free(memory);
        api().free(memory);
      },
      "was freed");
  EXPECT_DEATH(api().free(memory + 256), "no memory of this kind begins");
  EXPECT_DEATH(api().copy_to_device(reinterpret_cast<cuda::Pointer>(&number), &number, 4, one),
               "not one of device memory");
  EXPECT_DEATH(api().copy_to_host(reinterpret_cast<void*>(memory), memory, 4, one),
               "where one of the host is needed");
  EXPECT_DEATH(number = *reinterpret_cast<float*>(memory), "");
}

TEST_F(CudaStandInDeathTest, FindsMemoryThatIsFreedInUse) {
  cuda::Pool pool = nullptr;
  const cuda::PoolProperties properties;
  ASSERT_EQ(api().pool_create(&pool, &properties), cuda::success);
  const auto pooled = [&](cuda::Stream used, cuda::Stream freed) {
    cuda::Pointer block = 0;
    api().pool_allocate(&block, 64, pool, one);
    api().fill(block, 1, 16, used);
    api().free_async(block, freed);
  };
  pooled(one, one);
  EXPECT_DEATH(pooled(two, two), "no order");
  EXPECT_DEATH(pooled(one, two), "no order");
  EXPECT_DEATH(
      {
        Words::set("strict");
        write(one);
        api().free(memory);
      },
      "has not waited");
}

TEST_F(CudaStandInDeathTest, FindsWrongHandlesAndContexts) {
  cuda::Context popped = nullptr;
  float milliseconds = 0;
  EXPECT_DEATH(api().stream_finish(reinterpret_cast<cuda::Stream>(&number)),
               "the stream is unknown");
  EXPECT_DEATH(
      {
        api().stream_destroy(one);
        write(one);
      },
      "the stream is unknown");
  EXPECT_DEATH(api().event_time(&milliseconds, event, event), "never recorded");
  EXPECT_DEATH(
      {
        api().pop_context(&popped);
        api().stream_finish(one);
      },
      "no context is current");
  EXPECT_DEATH(
      {
        api().pop_context(&popped);
        api().pop_context(&popped);
      },
      "no context to pop");
  EXPECT_DEATH({ std::thread([&] { api().push_context(context); }).join(); }, "more pushes");
  EXPECT_DEATH(std::exit(0), "more pushes");
  const auto create =
      cuda_function<cuda::Result(cuda::Context*, unsigned, cuda::Device)>("cuCtxCreate_v2");
  EXPECT_DEATH(
      {
        create(&popped, 0, 0);
        write(one);
      },
      "another context");
  EXPECT_DEATH(
      {
        create(&popped, 0, 0);
        api().event_record(event, nullptr);
      },
      "another context");
}

/// Nothing happens before the host waits, and pageable memory is read at once.
TEST_F(CudaStandIn, RunsCommandsAsLateAsPossible) {
  void* locked = nullptr;
  api().allocate_host(&locked, 4, 0);
  auto* const late = static_cast<float*>(locked);
  *late = 1;
  number = 1;
  api().copy_to_device(memory, late, 4, one);
  api().copy_to_device(memory + 4, &number, 4, one);
  *late = 2;
  number = 2;
  float found[2] = {};
  api().copy_to_host(found, memory, 8, one);
  EXPECT_EQ(found[0], 2);
  EXPECT_EQ(found[1], 1);
  api().copy_to_host(late, memory + 4, 4, one);
  EXPECT_EQ(*late, 2);
  api().stream_finish(one);
  EXPECT_EQ(*late, 1);
  api().free_host(locked);
}

}  // namespace
}  // namespace qrtool::test::cuda_stand_in_test
