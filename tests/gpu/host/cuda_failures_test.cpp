// SPDX-License-Identifier: Apache-2.0
// cuda_failures_test.cpp: whatever call of CUDA fails, the error names it, nothing is lost, and the
// next work is done; a lost context fails every call at once.
#include <array>
#include <set>
#include <string>
#include <vector>

#include "tests/gpu/cuda_fixture.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::cuda_failures_test {
namespace {

constexpr auto symbols = std::to_array<const char*>({
#define QRTOOL_CUDA_NAME(name, symbol, parameters) #symbol,
    QRTOOL_CUDA_FUNCTIONS(QRTOOL_CUDA_NAME)
#undef QRTOOL_CUDA_NAME
});

/// Nobody has to hear of what fails while something is freed, nor of a name that is not found.
bool is_silent(std::string_view symbol) {
  const std::set<std::string_view> silent{
      "cuCtxPopCurrent_v2", "cuModuleUnload",    "cuLinkDestroy",
      "cuMemFree_v2",       "cuMemFreeHost",     "cuMemFreeAsync",
      "cuStreamDestroy_v2", "cuEventDestroy_v2", "cuGetErrorName"};
  return silent.contains(symbol);
}

class CudaFailures : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_STAND_IN();
    setenv("QRTOOL_CACHE", "off", 1);
    info = cuda_device();
  }
  void TearDown() override { unsetenv("QRTOOL_CACHE"); }

  /// Calls every function of the library but cuInit.
  void work() const {
    choose_device("cuda:0");
    const auto context = open_cuda_context(*info);
    const CallerArrays& arrays = *context->caller_arrays();
    const Program program = context->build(std::string(mixed_text), mixed_options);
    const Kernel add_one = context->kernel(program, "add_one");
    const auto queue = context->queue(), other = context->queue();
    const HostMemory locked = context->page_locked(4096);
    const Buffer buffer = context->allocate(4096), copy = context->allocate(4096);
    Event written, got;
    queue->start_write(buffer, locked.get(), {0, 16, 8, 32}, &written);
    queue->write(buffer, locked.get(), 4096);
    queue->fill(buffer, 0, 4096);
    queue->launch(add_one, 2, 32, std::array{Argument(buffer)});
    queue->copy(buffer, 0, copy, 0, 4096);
    other->wait_for(std::array{queue->mark()});
    other->start_read(copy, locked.get(), {0, 4096}, &got);
    got->wait();
    seconds_of(std::array{written, got});
    queue->finish();
    if (*reinterpret_cast<float*>(locked.get()) != 1) throw DeviceFailure("wrong", false);
    arrays.kind_of(buffer.handle());
    arrays.is_recording(nullptr);
    arrays.is_own_stream(nullptr);
    const auto memory = arrays.stream_memory({});
    memory->begin_call(nullptr);
    memory->allocate(100);
    memory->end_call();
    arrays.free_when_idle(arrays.allocate_on(nullptr, 100));
    arrays.release();
  }

  std::string failure_of_work() const {
    try {
      work();
    } catch (const DeviceError& error) {
      return error.what();
    } catch (const DeviceFailure& failure) {
      return failure.what();
    }
    return {};
  }

  std::optional<DeviceInfo> info;
};

TEST_F(CudaFailures, AreNamedAndTheNextWorkIsDone) {
  work();
  for (const std::string symbol : symbols) {
    if (symbol == "cuInit") continue;  // once in a process
    for (int call = 1; call <= 2; ++call) {
      SCOPED_TRACE(symbol + " fails in call " + std::to_string(call));
      std::string what;
      unsigned long long calls = 0;
      {
        const Words words("fail=" + symbol + ":" + std::to_string(call));
        what = failure_of_work();
        calls = Words::calls(symbol.c_str());
      }
      EXPECT_TRUE(calls > 0 || symbol == "cuGetErrorName") << "work() does not call it";
      const bool has_failed = calls >= static_cast<unsigned long long>(call);
      const std::string name = symbol.substr(0, symbol.find("_v2"));
      const bool is_named = what.find(name) != std::string::npos;
      EXPECT_TRUE(is_named || (what.empty() && (!has_failed || is_silent(symbol)))) << what;
      EXPECT_EQ(failure_of_work(), "");
    }
  }
}

TEST_F(CudaFailures, HaveANumberWhereTheyHaveNoName) {
  const Words words("fail=cuMemAlloc_v2:1:4321,fail=cuGetErrorName:1+");
  EXPECT_NE(failure_of_work().find("CUDA error 4321"), std::string::npos);
}

TEST_F(CudaFailures, OfMemoryAreNoOthers) {
  const auto context = open_cuda_context(*info);
  for (const int code : {2, 1}) {
    const Words words("fail=cuMemAlloc_v2:1:" + std::to_string(code));
    try {
      context->allocate(100);
      FAIL();
    } catch (const DeviceFailure& failure) {
      EXPECT_EQ(failure.is_memory_short(), code == 2);
    }
  }
}

/// A backend of its own on the stand-in, and matrices for it.
struct Job {
  explicit Job(const DeviceInfo& info)
      : with(info, test_options()),
        plan(make_plan({.count = 300, .m = 40, .n = 12, .type = ElementType::float32},
                       with.variants(), with.limits())),
        a(300, 40, 12, 0),
        result(plan.problem, 0) {
    for (index_t b = 0; b < 300; ++b) fill_matrix<float>({.kind = "gauss"}, 3 + b, a.view()[b]);
  }
  void run() {
    result = Result<float>(plan.problem, 0);
    with.factor<float>(plan, a.view(), result.factors(), result.report);
  }

  OpenclBackend with;
  Plan plan;
  PaddedBatch<float> a;
  Result<float> result;
};

TEST_F(CudaFailures, WorkGoesOnInPartsWhereMemoryIsShort) {
  Job job(*info);
  job.run();
  const std::vector<float> q = job.result.q.data(), r = job.result.r.data();
  bool has_failed = false;
  for (const std::size_t kibibytes : {4000, 1500, 600}) {
    Job again(*info);
    const Words words("memory=" + std::to_string(device_bytes() + (kibibytes << 10)));
    try {
      again.run();
    } catch (const DeviceError& error) {
      has_failed = true;
      ADD_FAILURE() << kibibytes << " KiB: " << error.what();
      continue;
    }
    EXPECT_EQ(again.result.q.data(), q);
    EXPECT_EQ(again.result.r.data(), r);
  }
  EXPECT_FALSE(has_failed);
}

TEST_F(CudaFailures, OfALostContextAreErrorsAtOnce) {
  for (const int launch : {1, 2, 4}) {
    Job job(*info);
    const Words words("dead=" + std::to_string(launch));
    EXPECT_THROW(job.run(), DeviceError);
    const unsigned long long launches = Words::calls("cuLaunchKernel");
    for (int call = 0; call < 3; ++call) EXPECT_THROW(job.run(), DeviceError);
    EXPECT_EQ(Words::calls("cuLaunchKernel"), launches) << "nothing is launched in a lost context";
    EXPECT_NE(failure_of_work().find("can use the GPU no more"), std::string::npos);
  }
}

}  // namespace
}  // namespace qrtool::test::cuda_failures_test
