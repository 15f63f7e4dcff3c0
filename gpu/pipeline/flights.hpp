// SPDX-License-Identifier: Apache-2.0
// flights.hpp: work on many items that goes through a device in parts: upload, run and download of
// adjacent parts overlap.
//
//   upload    | 0 | 1 | 2 | 3 |              The queues are in order. Events give this order:
//   compute       | 0 | 1 | 2 | 3 |          upload -> run -> download
//   download          | 0 | 1 | 2 | 3 |
//   host                  | 0 | 1 | 2 | 3 |  what it makes of the results
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "core/machine/parallel.hpp"
#include "gpu/pipeline/engine.hpp"

namespace qrtool {

/// What is done with the items. Each part is on the device in one of a few sets of buffers, and
/// goes through the steps begin, launch and collect, in this order; parts take turns. The memory
/// that copies read and write must stay until the work is destroyed.
class PartedWork {
 public:
  virtual ~PartedWork() = default;

  /// The largest part, and the number of sets, for `count` items.
  virtual SubChunks cut(index_t count) const = 0;
  /// How many of `most` items from number `first` on may be one part.
  virtual index_t part_size(index_t /*first*/, index_t most) const { return most; }
  /// Called before the first step, again after a lack of memory, and with 0 after the last step.
  virtual void take_sets(int sets) = 0;
  /// Starts the upload.
  virtual void begin(int set, index_t first, index_t count) = 0;
  /// Enqueues everything that follows the upload.
  virtual void launch(int set) = 0;
  /// Waits for the results and looks at them.
  virtual void collect(int set) = 0;
  /// Frees what is kept on the device for the next part.
  virtual void free_buffers() = 0;
  /// For messages: one item, and where it stands: "40x12 matrix", "matrix 3 of the chunk".
  virtual std::string item() const = 0;
  virtual std::string place(index_t number) const = 0;
};

/// Work that keeps a state, a flight, for each set of buffers.
template <class Flight>
class FlightWork : public PartedWork {
 public:
  void take_sets(int sets) override {
    flights_ = std::vector<Flight>(static_cast<std::size_t>(sets));
  }

 protected:
  Flight& flight_of(int set) { return flights_[static_cast<std::size_t>(set)]; }

 private:
  std::vector<Flight> flights_;
};

/// Calls body(i) for `count` items of `bytes` bytes together, on at most `threads` threads, and on
/// one where there is little to do.
template <class Body>
void for_items(index_t count, std::size_t bytes, int threads, Body body) {
  constexpr std::size_t least_bytes = std::size_t{1} << 20;
  if (bytes < least_bytes) threads = 1;
  const index_t piece = std::max<index_t>(1, count / (4 * threads));
  parallel_for((count + piece - 1) / piece, threads, [&](index_t part, int) {
    for (index_t i = part * piece; i < std::min(count, (part + 1) * piece); ++i) body(i);
  });
}

/// Takes items 0 .. count - 1 through the device. Where it has too little memory, the items that
/// have no result yet go on in smaller parts. Errors: DeviceError, LimitError.
void run_in_parts(FactorEngine& engine, PartedWork& work, index_t count);

}  // namespace qrtool
