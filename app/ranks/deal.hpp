// SPDX-License-Identifier: Apache-2.0
// deal.hpp: chunks dealt to ranks in turn, each with its own pipeline, all kept by rank 0 in order.
//
//     rank 0   read | work | keep 0, then ask for 1 and keep it, 2, keep 3 (its own), ...
//     rank 1   read | work | wait to be asked, send 1, ... 4, ...
//
// A rank sends when it is asked to, so that rank 0 holds one foreign chunk at a time, and a rank
// that fails says so when it is asked next: nobody waits for what will not come.
#pragma once

#include <exception>
#include <vector>

#include "app/run/pipeline.hpp"
#include "core/batch.hpp"
#include "core/comm.hpp"

namespace qrtool {

/// Tells ranks how far rank 0 is. Rank 0's side of one deal.
class Asker {
 public:
  Asker(Comm& comm, index_t chunks);

  /// Throws the rank's failure in place of its chunk.
  void ask(int rank, index_t chunk);
  /// After a failure: nobody needs to send anything more.
  void stop_all();

 private:
  Comm& comm_;
  index_t chunks_;
  std::vector<index_t> next_;  // chunk that a rank will be asked for; chunks_ once it is through
};

/// The other ranks' side.
class Answerer {
 public:
  explicit Answerer(Comm& comm) : comm_(comm) {}

  /// Waits to be asked; false where nothing more is wanted. The chunk is sent next.
  bool wait_and_accept();
  /// Waits to be asked, and answers with a failure.
  void wait_and_fail(const Failure& failure);

 private:
  bool wait();
  Comm& comm_;
};

/// `steps` has read(Buffer&, chunk), work(Buffer&), keep(Buffer&, chunk) on rank 0 for every chunk
/// in ascending order, send(Buffer&, chunk) elsewhere and receive(Buffer&, chunk, rank) on rank 0.
/// A failure of one rank is thrown on all.
template <class Buffer, class Steps>
StageSeconds deal(Comm& comm, index_t chunks, std::vector<Buffer>& buffers, Buffer* foreign,
                  Steps& steps) {
  struct Slot {
    Buffer* buffer;
    index_t chunk;
  };
  std::vector<Slot> slots;
  for (Buffer& buffer : buffers) slots.push_back({&buffer, 0});
  const int rank = comm.rank(), size = comm.size();
  index_t next = rank, delivered = rank;
  const auto read = [&](Slot& slot) {
    if (next >= chunks) return false;
    slot.chunk = next;
    next += size;
    steps.read(*slot.buffer, slot.chunk);
    return true;
  };
  const auto work = [&](Slot& slot) { steps.work(*slot.buffer, slot.chunk); };
  StageSeconds seconds;

  if (comm.is_root()) {
    Asker asker(comm, chunks);
    const auto keep = [&](Slot& slot) {
      steps.keep(*slot.buffer, slot.chunk);
      for (int from = 1; from < size && slot.chunk + from < chunks; ++from) {
        asker.ask(from, slot.chunk + from);
        steps.receive(*foreign, slot.chunk + from, from);
        steps.keep(*foreign, slot.chunk + from);
      }
    };
    together(comm, [&] {
      try {
        seconds = run_pipeline(slots, read, work, keep);
      } catch (...) {
        asker.stop_all();
        throw;
      }
    });
    return seconds;
  }

  Answerer answerer(comm);
  bool is_stopped = false;
  const auto send = [&](Slot& slot) {
    if (is_stopped || (is_stopped = !answerer.wait_and_accept())) return;
    steps.send(*slot.buffer, slot.chunk);
    delivered += size;
  };
  together(comm, [&] {
    try {
      seconds = run_pipeline(slots, read, work, send);
    } catch (...) {
      if (!is_stopped && delivered < chunks) answerer.wait_and_fail(Failure::current());
      throw;
    }
  });
  return seconds;
}

}  // namespace qrtool
