// SPDX-License-Identifier: Apache-2.0
// agreement_test.cpp: ranks that have different options or devices, or whose device fails, end
// together or take the CPU together. The devices are made up.
#include "app/ranks/agreement.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "app/cli/parse.hpp"
#include "app/run/backends/attempts.hpp"
#include "app/run/backends/make_backend.hpp"
#include "app/run/pipeline/share_stages.hpp"
#include "core/error.hpp"
#include "tests/support/local_ranks.hpp"

namespace qrtool::agreement_test {
namespace {

using namespace std::chrono_literals;

constexpr int ranks = 3;

Fit takes_all(const Problem&, const Limits&) { return {true, ""}; }
Params group_of_device(const Problem&, const Limits& limits) {
  return {{"GROUP", limits.max_group}};
}
std::size_t no_bytes(const Problem&) { return 0; }
std::string arithmetic(const Problem&) { return "float32"; }

constexpr std::array variants{Variant{.name = "made-up/one",
                                      .summary = "",
                                      .fits = takes_all,
                                      .tune = group_of_device,
                                      .host_workspace_bytes = no_bytes,
                                      .device_workspace_bytes = no_bytes,
                                      .arithmetic = arithmetic},
                              Variant{.name = "made-up/two",
                                      .summary = "",
                                      .fits = takes_all,
                                      .tune = group_of_device,
                                      .host_workspace_bytes = no_bytes,
                                      .device_workspace_bytes = no_bytes,
                                      .arithmetic = arithmetic}};

/// A device with groups of `max_group` work-items, which fails where it is asked to.
class MadeUp final : public Backend {
 public:
  explicit MadeUp(int max_group, bool fails = false, std::string name = "made-up")
      : name_(std::move(name)), fails_(fails) {
    limits_.host_bytes = std::size_t{1} << 30;
    limits_.max_group = max_group;
  }
  std::string name() const override { return name_; }
  std::string device() const override { return "made up"; }
  std::span<const Variant> variants() const override { return agreement_test::variants; }
  Limits limits() const override { return limits_; }
  ChunkSeconds factor_any(const Plan&, const AnyChunk&) override {
    if (fails_) throw DeviceError("the made-up device is lost");
    return {};
  }

 private:
  std::string name_;
  bool fails_;
  Limits limits_;
};

/// The messages with which the ranks end; empty where a rank does not fail.
template <class ErrorClass, class Body>
std::array<std::string, ranks> messages_of(Body body) {
  std::array<std::string, ranks> messages;
  test::run_ranks(ranks, [&](Comm& comm) {
    try {
      body(comm);
    } catch (const ErrorClass& error) {
      messages[static_cast<std::size_t>(comm.rank())] = error.what();
    }
  });
  return messages;
}

void expect_all(const std::array<std::string, ranks>& messages, const std::string& expected) {
  for (const std::string& message : messages) EXPECT_EQ(message, expected);
}

/// Returns the error where ranks 0 and 1 have the options `all`, and rank 2 the options `last`.
std::string refusal_of(std::vector<GivenOption> all, std::vector<GivenOption> last) {
  const auto messages = messages_of<UsageError>(
      [&](Comm& comm) { agree_on_options(comm, comm.rank() == 2 ? last : all); });
  expect_all(messages, messages[0]);
  return messages[0];
}

TEST(Agreement, DifferentOptionsAreRefusedOnAllRanks) {
  EXPECT_EQ(refusal_of({{"factor", ""}}, {{"factor", ""}}), "");
  EXPECT_EQ(refusal_of({{"factor", ""}}, {{"factor", ""}, {"--mode", "r"}}),
            "rank 0 was given no --mode, rank 2 --mode r");
  EXPECT_EQ(refusal_of({{"factor", ""}, {"--check", "none"}}, {{"factor", ""}}),
            "rank 0 was given --check none, rank 2 no --check");
  EXPECT_EQ(refusal_of({{"--mode", "r"}, {"--pivot", ""}}, {{"--mode", "raw"}, {"--pivot", ""}}),
            "rank 0 was given --mode r, rank 2 --mode raw");
}

TEST(Agreement, EveryOptionDecidesButThoseThatAreNamed) {
  const char* const line[] = {"qrtool", "factor",   "a.h5", "q.h5",    "--check",   "none",
                              "-v",     "--memory", "1GiB", "--pivot", "--backend", "cpu"};
  const Command command = parse_command_line(static_cast<int>(std::size(line)), line);
  std::string found;
  for (const auto& [name, value] : std::get<FactorOptions>(command).deciding)
    found += name + "=" + value + " ";
  EXPECT_EQ(found, "factor= --check=none --pivot= ");
}

TEST(Agreement, DifferentBackendsAreRefusedOnAllRanks) {
  expect_all(messages_of<DeviceError>([](Comm& comm) {
               agree_on_backend(comm, MadeUp(256, false, comm.rank() == 1 ? "cpu" : "made-up"));
             }),
             "rank 0 would compute on made-up, rank 1 on cpu");
}

TEST(Agreement, EveryRankTakesTheVariantAndSizesOfRank0) {
  test::run_ranks(ranks, [](Comm& comm) {
    const MadeUp backend(256);
    Plan plan = make_plan({100, 4, 4}, backend.variants(), backend.limits(),
                          comm.is_root() ? "made-up/two" : "made-up/one");
    plan.chunk_matrices = comm.is_root() ? 7 : 11;
    agree_on_plan(comm, backend, plan);
    EXPECT_EQ(plan.variant->name, "made-up/two");
    EXPECT_EQ(plan.chunk_matrices, 7);
  });
}

TEST(Agreement, DifferentParametersAreRefusedOnAllRanks) {
  expect_all(messages_of<DeviceError>([](Comm& comm) {
               const MadeUp backend(comm.rank() == 1 ? 128 : 256);
               Plan plan = make_plan({100, 4, 4}, backend.variants(), backend.limits());
               agree_on_plan(comm, backend, plan);
             }),
             "rank 0 would run made-up/one with the parameters GROUP=256, rank 1 with GROUP=128");
}

/// The test does what factor_on_ranks does: choose, agree, plan, agree, work, and all of it once
/// more on the CPU where a device fails.
TEST(Agreement, WhereOneDeviceFailsAllRanksTakeTheCpu) {
  for (const int failing : {0, 1, 2}) {
    std::atomic<int> done_by_cpu = 0, done_by_device = 0;
    Limits limits;
    limits.host_bytes = std::size_t{1} << 30;
    const auto factor_on = [&](Backend& backend, Comm& comm) {
      agree_on_backend(comm, backend);
      Plan plan = make_plan({1, 4, 4}, backend.variants(), backend.limits());
      agree_on_plan(comm, backend, plan);
      const Batch<float> a(1, 4, 4), q(1, 4, 4), r(1, 4, 4);
      std::fill_n(a.view().data, 16, 1.0f);
      MatrixReport report;
      together(comm, [&] {
        backend.factor<float>(plan, a.view(), {q.view(), r.view(), {}, {}}, {&report, 1});
      });
      ++(backend.name() == "cpu" ? done_by_cpu : done_by_device);
    };
    test::run_ranks(ranks, [&](Comm& comm) {
      for (Attempts attempts({}, true);;) {
        BackendChoice choice{std::make_unique<MadeUp>(256, comm.rank() == failing), ""};
        if (!attempts.is_first()) choice = make_backend(attempts.request(), Problem{}, limits);
        try {
          return factor_on(*choice.backend, comm);
        } catch (const Error& error) {
          attempts.go_on(error, choice.is_device());
        }
      }
    });
    EXPECT_EQ(done_by_cpu, ranks);
    EXPECT_EQ(done_by_device, 0);
  }
}

/// Steps of made-up chunks, of which `fails` throws where it is asked to.
struct MadeUpSteps {
  struct Chunk {
    index_t number = 0;
  };
  int failing_rank;
  int rank;
  std::atomic<int>& worked;

  void begin(Chunk& chunk, index_t number) { chunk.number = number; }
  void read(Chunk&) {}
  void work(Chunk& chunk) {
    ++worked;
    if (rank == failing_rank && chunk.number >= ranks) throw LimitError("this rank has failed");
  }
  void keep(Chunk&) {}
  std::vector<std::span<std::byte>> parts(Chunk& chunk) {
    return {writable_bytes_of(&chunk.number, 1)};
  }
};

TEST(ShareStages, ARankThatFailsEndsTheOthersAtOnce) {
  for (int failing = 0; failing < ranks; ++failing) {
    std::atomic<int> worked = 0;
    const auto messages = messages_of<LimitError>([&](Comm& comm) {
      MadeUpSteps steps{failing, comm.rank(), worked};
      std::vector<MadeUpSteps::Chunk> buffers(3);
      MadeUpSteps::Chunk foreign;
      share_stages(comm, 3000, buffers, foreign, steps);
    });
    expect_all(messages, "this rank has failed");
    EXPECT_LT(worked, 100) << "rank " << failing;
  }
}

/// Rank 0 fails after rank 1, which then waits for the request of its first chunk.
struct TwoFailingRanks : MadeUpSteps {
  std::atomic<bool>& has_rank_1_failed;

  void work(Chunk& chunk) {
    if (rank == 1 && chunk.number >= ranks) {
      std::this_thread::sleep_for(20ms);  // until the first chunk waits
      has_rank_1_failed = true;
      has_rank_1_failed.notify_all();
      throw LimitError("rank 1 has failed");
    }
    if (rank != 0) return;
    has_rank_1_failed.wait(false);
    std::this_thread::sleep_for(20ms);  // until the pipeline of rank 1 knows
    throw LimitError("rank 0 has failed");
  }
};

TEST(ShareStages, ARankThatIsStoppedAfterItHasFailedEndsToo) {
  std::atomic<int> worked = 0;
  std::atomic<bool> has_rank_1_failed = false;
  const auto messages = messages_of<Error>([&](Comm& comm) {
    TwoFailingRanks steps{{-1, comm.rank(), worked}, has_rank_1_failed};
    std::vector<MadeUpSteps::Chunk> buffers(3);
    MadeUpSteps::Chunk foreign;
    share_stages(comm, 3000, buffers, foreign, steps);
  });
  expect_all(messages, "rank 0 has failed");
}

}  // namespace
}  // namespace qrtool::agreement_test
