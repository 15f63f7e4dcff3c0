// SPDX-License-Identifier: Apache-2.0
// collect_chunks.hpp: what rank 0 and the other ranks say to each other about a chunk.
//
// Rank 0 requests a chunk; its owner answers that the chunk follows, or that it has failed. A rank
// sends nothing without a request, so that rank 0 holds one foreign chunk at a time.
#pragma once

#include <vector>

#include "core/batch.hpp"
#include "core/machine/comm.hpp"

namespace qrtool {

/// Receives chunks on rank 0, in one pass over all of them.
class ChunkCollector {
 public:
  ChunkCollector(Comm& comm, index_t chunks);

  /// Returns when the chunk is about to follow; throws the failure of its owner otherwise.
  void request(int owner, index_t chunk);
  /// Tells every rank that has chunks left that none of them is wanted any more.
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

  /// Waits for a request and announces the chunk; false where rank 0 has stopped.
  bool announce();
  /// Waits for a request and answers it with a failure. Rank 0 stops a rank once, and may do so by
  /// the word for which announce() has waited while another thread of the rank failed; then this
  /// returns at once.
  void announce_failure(const Failure& failure);

 private:
  bool wait_for_request();
  Comm& comm_;
  bool is_stopped_ = false;
};

}  // namespace qrtool
