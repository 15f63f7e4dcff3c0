// SPDX-License-Identifier: Apache-2.0
// share_stages.hpp: run_stages() by several ranks. Each rank has every P-th chunk and a pipeline of
// its own; rank 0 keeps the results of all ranks in order.
//
//     rank 0   read | work | keep 0, then request 1 and keep it, 2, keep 3 (its own), ...
//     rank 1   read | work | wait for the request, send 1, ... 4, ...
//
// Rank 0 requests a chunk; its owner answers that the chunk follows, or that it has failed. A rank
// sends nothing without a request, so that rank 0 holds one foreign chunk at a time.
// A rank that fails says so when its next chunk is requested. No rank waits for a message that
// never comes.
#pragma once

#include <vector>

#include "app/run/pipeline/pipeline.hpp"
#include "core/machine/comm.hpp"

namespace qrtool {

/// Receives chunks on rank 0, in one pass over all of them.
class ChunkCollector {
 public:
  ChunkCollector(Comm& comm, index_t chunks);

  /// Returns when the chunk is about to follow; throws the failure of its owner otherwise.
  void request(int owner, index_t chunk);
  /// Tells every rank with chunks left that none of them is wanted any more.
  void stop_all();

 private:
  Comm& comm_;
  index_t chunks_;
  std::vector<index_t> next_;  // by rank: the chunk to request next; chunks_: none is left
};

/// Sends chunks to rank 0, on every other rank.
class ChunkOwner {
 public:
  explicit ChunkOwner(Comm& comm) : comm_(comm) {}

  /// Waits for a request and announces the chunk. Returns false if rank 0 has stopped.
  bool announce();
  /// Waits for a request and answers it with a failure. Rank 0 stops a rank only once. If
  /// announce() has received the stop while another thread of the rank failed, this returns at
  /// once.
  void announce_failure(const Failure& failure);

 private:
  bool wait_for_request();
  Comm& comm_;
  bool is_stopped_ = false;
};

/// The steps of one rank, for its chunks rank, rank + P, rank + 2 P, ... Calls begin() with these
/// numbers.
template <class Steps>
struct EveryPthChunk {
  Steps& steps;
  int rank, size;

  template <class Chunk>
  void begin(Chunk& chunk, index_t number) {
    steps.begin(chunk, rank + number * size);
  }
};

/// The steps of rank 0: it keeps its own chunks, and after each of them the chunks of the other
/// ranks.
template <class Chunk, class Steps>
struct CollectingSteps : EveryPthChunk<Steps> {
  Comm& comm;
  index_t chunks;
  Chunk& foreign;
  ChunkCollector collector;
  index_t kept = 0;

  void read(Chunk& chunk) { this->steps.read(chunk); }
  void work(Chunk& chunk) { this->steps.work(chunk); }
  void keep(Chunk& chunk) {
    this->steps.keep(chunk);
    ++kept;
    for (int owner = 1; owner < this->size && kept < chunks; ++owner, ++kept) {
      collector.request(owner, kept);
      this->steps.begin(foreign, kept);
      for (const std::span<std::byte> part : this->steps.parts(foreign)) comm.receive(owner, part);
      this->steps.keep(foreign);
    }
  }
};

/// Thrown by keep() on a rank whose chunks rank 0 does not want any more, because another rank has
/// failed. It ends this rank's pipeline at once.
struct StoppedByRoot {};

/// The steps of every other rank: it sends its chunks to rank 0 and does not keep them.
template <class Chunk, class Steps>
struct SendingSteps : EveryPthChunk<Steps> {
  Comm& comm;
  ChunkOwner owner;
  index_t sent = 0;

  void read(Chunk& chunk) { this->steps.read(chunk); }
  void work(Chunk& chunk) { this->steps.work(chunk); }
  void keep(Chunk& chunk) {
    if (!owner.announce()) throw StoppedByRoot();
    for (const std::span<std::byte> part : this->steps.parts(chunk)) comm.send(0, part);
    ++sent;
  }
};

/// As run_stages(), by two ranks or more. On rank 0 keep() gets every chunk, on the others none.
/// `steps` also has
///
///     parts(chunk)   the pieces of memory in which a rank that has begun a chunk holds its result
///
/// `foreign` is rank 0's buffer for the chunks of other ranks. A failure of one rank is thrown on
/// all.
template <class Chunk, class Steps>
StageSeconds share_stages(Comm& comm, index_t chunks, std::vector<Chunk>& buffers, Chunk& foreign,
                          Steps& steps) {
  const int rank = comm.rank(), size = comm.size();
  const index_t own_chunks = (chunks - rank + size - 1) / size;
  StageSeconds seconds;
  if (comm.is_root()) {
    CollectingSteps<Chunk, Steps> collecting{
        {steps, rank, size}, comm, chunks, foreign, ChunkCollector(comm, chunks)};
    together(comm, [&] {
      try {
        seconds = run_stages(own_chunks, buffers, collecting);
      } catch (...) {
        collecting.collector.stop_all();
        throw;
      }
    });
    return seconds;
  }
  SendingSteps<Chunk, Steps> sending{{steps, rank, size}, comm, ChunkOwner(comm)};
  together(comm, [&] {
    try {
      seconds = run_stages(own_chunks, buffers, sending);
    } catch (const StoppedByRoot&) {  // the failed rank says why
    } catch (...) {
      if (sending.sent < own_chunks) sending.owner.announce_failure(Failure::current());
      throw;
    }
  });
  return seconds;
}

}  // namespace qrtool
