// SPDX-License-Identifier: Apache-2.0
// buffers.hpp: how many matrices the device takes at a time, and the buffers that hold them.
#pragma once

#include <vector>

#include "core/problem.hpp"
#include "gpu/gpu_variant.hpp"
#include "gpu/host/opencl.hpp"

namespace qrtool {

/// Device bytes of one matrix, buffer by buffer.
struct MatrixBytes {
  std::vector<std::size_t> io;     // a, q, r, v, tau, magnitudes, errors; once per buffer set
  std::vector<std::size_t> work;   // of the variant; once
  std::vector<std::size_t> check;  // of the check; once
  Slots slots = {};                // of the variant; once, whatever the batch
};
MatrixBytes matrix_bytes(const GpuVariant& variant, const Problem& problem);

/// A chunk is cut into sub-chunks of `matrices`; `sets` of them are on the device at once.
struct SubChunks {
  index_t matrices = 1;
  int sets = 1;
};

/// The cut for a chunk of `count` matrices: at most about `wanted_bytes` of input and output per
/// sub-chunk, within the device's memory and largest allocation.
/// Errors: LimitError where one matrix does not fit, with the bytes that it needs.
SubChunks cut_chunk(const Problem& problem, const MatrixBytes& bytes, const Limits& limits,
                    index_t count, std::size_t wanted_bytes);

/// A sub-chunk's buffers on the device.
struct DeviceBuffers {
  FactorJob job;
  cl::Buffer errors;
  std::vector<cl::Buffer> check_work;
};

/// Buffers that grow and are kept from chunk to chunk.
class BufferPool {
 public:
  explicit BufferPool(cl::Context context) : context_(std::move(context)) {}

  /// The buffers of set `set` for `count` matrices. Problem and params must outlive the result.
  /// Errors: cl::Error where the device's memory is short.
  DeviceBuffers get(const Problem& problem, const Params& params, const MatrixBytes& bytes,
                    index_t count, int set);

  /// Gives all of it back.
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    cl::Buffer buffer;
    std::size_t bytes = 0;
  };
  cl::Buffer grown(std::size_t entry, std::size_t bytes);

  cl::Context context_;
  std::vector<Entry> entries_;
};

}  // namespace qrtool
