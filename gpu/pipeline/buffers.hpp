// SPDX-License-Identifier: Apache-2.0
// buffers.hpp: the number of matrices on the device at a time, and the buffers that hold them.
#pragma once

#include <optional>
#include <vector>

#include "core/problem/problem.hpp"
#include "gpu/host/driver.hpp"
#include "gpu/model/gpu_variant.hpp"
#include "gpu/pipeline/tuning.hpp"

namespace qrtool {

/// Bytes that one matrix needs on the device, for each buffer.
struct MatrixBytes {
  std::vector<std::size_t> io;     // a, q, r, v, tau, magnitudes, errors, sums; once per buffer set
  std::vector<std::size_t> work;   // buffers of the variant; once
  std::vector<std::size_t> check;  // buffers of the check; once
  Slots slots = {};                // slots of the variant; once, independent of the batch size
  /// The buffer of `work` that is the buffer of the slots too: they are not needed any more when
  /// flagged matrices are factored (shared_work_buffer). 0: none.
  std::size_t shared = 0;
  /// A, Q and R of a flagged matrix that is factored on its own; once, and only where a sub-chunk
  /// has other matrices.
  std::size_t flagged = 0;
  /// The variant whose flagged matrices may go on by further passes, with slots beside the rest.
  const GpuVariant* guarded = nullptr;

  /// Of a matrix, in the shared buffer, and in all other buffers of `work`.
  std::size_t shared_work() const { return shared == 0 ? 0 : work[shared]; }
  std::size_t own_work() const;
  /// Of all buffers of a sub-chunk of `count` matrices that is alone on the device.
  std::size_t total(index_t count) const;
  /// Of the buffer of the slots in a sub-chunk of `count` matrices.
  std::size_t slots_buffer(index_t count) const;
};
MatrixBytes matrix_bytes(const GpuVariant& variant, const Problem& problem);
/// Its `io`, which is the same for all variants.
std::vector<std::size_t> matrix_io_bytes(const Problem& problem);

/// A chunk is cut into sub-chunks of `matrices` matrices; `sets` sub-chunks are on the device at
/// once.
struct SubChunks {
  index_t matrices = 1;
  int sets = 1;
};

/// Cuts a chunk of `count` matrices into sub-chunks with at most about `wanted_bytes` of input and
/// output each, within the device's memory and largest allocation.
/// Errors: LimitError if a single matrix does not fit; the message has the bytes that it needs.
SubChunks cut_chunk(const Problem& problem, const MatrixBytes& bytes, const Limits& limits,
                    index_t count, std::size_t wanted_bytes, int most_sets = tuning::buffer_sets);

/// The buffers of a sub-chunk on the device.
struct DeviceBuffers {
  FactorJob job;
  Buffer errors, sums;
  std::vector<Buffer> check_work;
};

/// Buffers that grow if needed and are kept for the next chunks.
class BufferPool {
 public:
  explicit BufferPool(const DeviceMemory& memory) : memory_(memory) {}

  /// Returns the buffers of set `set` for `count` matrices. Problem and params must outlive the
  /// result.
  /// Errors: DeviceFailure if the device has too little memory.
  DeviceBuffers get(const Problem& problem, const Params& params, const MatrixBytes& bytes,
                    index_t count, int set);

  /// Buffers of at least so many bytes for the matrices that a guard has refused: work memory, the
  /// list of their numbers, and how many there are. They are kept, too. Nothing where there are no
  /// `slots_bytes`, or the device has no memory left.
  struct OfRefused {
    Buffer slots, list, listed;
  };
  std::optional<OfRefused> of_refused(std::size_t slots_bytes, std::size_t list_bytes);
  /// Memory for one copy after another.
  Buffer staging(std::size_t bytes) { return grown(0, bytes); }
  /// The bytes of all other buffers.
  std::size_t bytes_beside_refused() const;

  /// Frees all buffers; those that all sets share.
  void clear() { entries_.clear(); }
  void clear_work();

 private:
  Buffer grown(std::size_t entry, std::size_t bytes);

  /// Largest number of buffers that all sets share: these come first, then those of the refused
  /// matrices, then the buffers of the sets.
  static constexpr std::size_t most_shared = 64, refused_entry = most_shared - 3;

  const DeviceMemory& memory_;
  std::vector<Buffer> entries_;
};

}  // namespace qrtool
