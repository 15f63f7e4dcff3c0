// SPDX-License-Identifier: Apache-2.0
// ranks.cpp: rank 0 gives orders, and every rank factors its share of the rows.
#include "app/bench/contestants/ranks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "app/process/stopwatch.hpp"
#include "core/cpu/blocked/blocked_qr.hpp"

namespace qrtool {
namespace {

/// The rows of rank r are first_row(r) .. first_row(r + 1) - 1.
index_t first_row(const Problem& whole, const Comm& comm, int rank) {
  return whole.m * rank / comm.size();
}

Problem share_of(const Problem& whole, const Comm& comm, int rank) {
  Problem share = whole;
  share.m = first_row(whole, comm, rank + 1) - first_row(whole, comm, rank);
  return share;
}

/// The rows of one rank and what it does in every run. All ranks call each function together.
class Share {
 public:
  virtual ~Share() = default;
  virtual std::string variant() const = 0;
  /// Returns on rank 0 the seconds from a common start until R is there, without any check.
  virtual double run() = 0;
  /// Copies R on rank 0.
  virtual void copy_r(std::span<std::byte> to) const = 0;
};

/// The time that a rank has spent on a run.
struct RankSeconds {
  double wall = 0, counted = 0;  // `counted` excludes the check
};

template <class T>
class TypedShare final : public Share {
 public:
  TypedShare(Contestant& tool, const Problem& whole, std::uint64_t seed, Comm& comm) : comm_(comm) {
    together(comm, [&] {
      own_ = tool.prepare(share_of(whole, comm, comm.rank()), {.seed = seed}, 0);
      index_t rows = 0;
      for (int rank = 0; rank < comm.size(); ++rank) {
        first_.push_back(rows);
        rows += share_of(whole, comm, rank).k();
      }
      first_.push_back(rows);
      stack_ = Batch<T>(1, rows, whole.n);
      r_ = Batch<T>(1, whole.k(), whole.n);
      Problem stacked = whole;
      stacked.m = rows;
      // A few R factors are a single block for cpu/tall, which is slower at it than cpu/blocked: 70
      // and 44 us for four R factors of 64 columns (float32, Xeon with AVX-512, 2026-11-22).
      combine_ = std::make_unique<BlockedQr<T>>(stacked, 1);
    });
  }

  std::string variant() const override { return own_->variant(); }

  double run() override {
    together(comm_, [] {});  // all ranks start together
    const Stopwatch watch;
    // The ranks agree on a failure at the end, since rank 0 waits for the messages of all before.
    std::exception_ptr failure;
    const auto attempt = [&failure](auto body) {
      try {
        body();
      } catch (...) {
        if (!failure) failure = std::current_exception();
      }
    };
    const std::span<std::byte> own_r =
        writable_bytes_of(part(comm_.rank()).data, entries(comm_.rank()));
    RankSeconds own;
    attempt([&] { own.counted = own_->run_to_r(own_r); });
    own.wall = watch.seconds();
    double seconds = 0;
    if (comm_.is_root()) {
      for (int from = 1; from < comm_.size(); ++from)
        comm_.receive(from, writable_bytes_of(part(from).data, entries(from)));
      attempt([&] { combine_->factor(stack_.view()[0], {{}, r_.view()[0], {}, {}}, 1); });
      seconds = watch.seconds();
      const RankSeconds slowest = slowest_rank(own);
      // A rank may have started before rank 0's watch did, but no run is faster than its slowest
      // rank.
      seconds = std::max(seconds - (slowest.wall - slowest.counted), slowest.counted);
    } else {
      comm_.send(0, own_r);
      comm_.send(0, bytes_of(&own, 1));
    }
    together(comm_, [&] {
      if (failure) std::rethrow_exception(failure);
    });
    return seconds;
  }

  void copy_r(std::span<std::byte> to) const override { copy_first_bytes(r_, to); }

 private:
  /// Returns the longest times of all ranks. `slowest` begins as the times of rank 0.
  RankSeconds slowest_rank(RankSeconds slowest) {
    for (int from = 1; from < comm_.size(); ++from) {
      RankSeconds theirs;
      comm_.receive(from, writable_bytes_of(&theirs, 1));
      slowest.wall = std::max(slowest.wall, theirs.wall);
      slowest.counted = std::max(slowest.counted, theirs.counted);
    }
    return slowest;
  }

  MatrixView<T> part(int rank) const {
    const auto i = static_cast<std::size_t>(rank);
    return stack_.view()[0].row_block(first_[i], first_[i + 1] - first_[i]);
  }
  std::size_t entries(int rank) const {
    return static_cast<std::size_t>(part(rank).rows * part(rank).cols);
  }

  Comm& comm_;
  std::unique_ptr<TimedRun> own_;
  std::vector<index_t> first_;  // rows of the R_i in the stack
  Batch<T> stack_, r_;
  std::unique_ptr<BlockedQr<T>> combine_;
};

std::unique_ptr<Share> make_share(Contestant& tool, const Problem& whole, std::uint64_t seed,
                                  Comm& comm) {
  if (whole.type == ElementType::float32)
    return std::make_unique<TypedShare<float>>(tool, whole, seed, comm);
  return std::make_unique<TypedShare<double>>(tool, whole, seed, comm);
}

enum class Task : std::uint64_t { prepare, run, leave };

void give(Comm& comm, Task task) { broadcast(comm, &task, 1); }
Task take(Comm& comm) {
  Task task{};
  broadcast(comm, &task, 1);
  return task;
}

class RankedRun final : public TimedRun {
 public:
  RankedRun(Comm& comm, std::unique_ptr<Share> share) : comm_(comm), share_(std::move(share)) {}

  std::string variant() const override { return share_->variant(); }
  RunSeconds run() override {
    give(comm_, Task::run);
    return {share_->run(), 0};
  }
  void copy_r(std::span<std::byte> to) const override { share_->copy_r(to); }

 private:
  Comm& comm_;
  std::unique_ptr<Share> share_;
};

class RankedTool final : public Contestant {
 public:
  RankedTool(const BenchSetup& setup, Comm& comm)
      : tool_(make_tool(setup)), seed_(setup.seed), comm_(comm) {}
  ~RankedTool() override { give(comm_, Task::leave); }
  RankedTool(const RankedTool&) = delete;
  RankedTool& operator=(const RankedTool&) = delete;

  std::string name() const override { return fmt::format("{} ranks", comm_.size()); }
  std::string text() const override {
    return "rows shared, data resident; wall time to R on rank 0";
  }

  std::unique_ptr<TimedRun> prepare(const Problem& problem, const MatrixRequest&, int) override {
    if (problem.count != 1 || problem.mode != Mode::r || problem.m < comm_.size())
      throw UsageError("over ranks R of one matrix is timed, with rows for each: --mode r");
    give(comm_, Task::prepare);
    Problem whole = problem;
    broadcast(comm_, &whole, 1);
    return std::make_unique<RankedRun>(comm_, make_share(*tool_, whole, seed_, comm_));
  }

 private:
  std::unique_ptr<Contestant> tool_;
  std::uint64_t seed_;  // of this rank's rows
  Comm& comm_;
};

}  // namespace

std::unique_ptr<Contestant> make_ranked_tool(const BenchSetup& setup, Comm& comm) {
  return std::make_unique<RankedTool>(setup, comm);
}

void serve_ranked_tool(const BenchSetup& setup, Comm& comm) {
  const std::unique_ptr<Contestant> tool = make_tool(setup);
  std::unique_ptr<Share> share;
  for (Task task = take(comm); task != Task::leave; task = take(comm)) {
    try {
      if (task == Task::run) {
        share->run();
        continue;
      }
      share.reset();
      Problem whole;
      broadcast(comm, &whole, 1);
      share = make_share(*tool, whole, setup.seed, comm);
    } catch (const Error&) {
      // Every rank throws the same error, and rank 0 reports it.
    }
  }
}

}  // namespace qrtool
