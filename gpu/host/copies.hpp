// SPDX-License-Identifier: Apache-2.0
// copies.hpp: copies of matrices between the host, whose rows may be apart, and the device, where
// they are packed.
#pragma once

#include <array>
#include <vector>

#include "core/batch.hpp"
#include "gpu/host/opencl.hpp"

namespace qrtool {

/// A region of `view`'s matrix b in the form that OpenCL's rectangle commands need.
template <class T>
struct Rectangle {
  Rectangle(BatchView<T> view, index_t b)
      : buffer_origin{static_cast<std::size_t>(b * view.rows * view.cols) * sizeof(T), 0, 0},
        region{static_cast<std::size_t>(view.cols) * sizeof(T), static_cast<std::size_t>(view.rows),
               1},
        row_bytes(region[0]),
        host_row_bytes(static_cast<std::size_t>(view.ld) * sizeof(T)) {}
  std::array<cl::size_type, 3> buffer_origin, host_origin{0, 0, 0}, region;
  std::size_t row_bytes, host_row_bytes;
};

template <class T>
std::size_t packed_bytes(BatchView<T> view) {
  return static_cast<std::size_t>(view.count * view.rows * view.cols) * sizeof(T);
}

/// Copies a batch to the device, and appends the events of the first and the last command.
template <class T>
void write_batch(const cl::CommandQueue& queue, const cl::Buffer& buffer, BatchView<const T> view,
                 std::vector<cl::Event>& events) {
  if (packed_bytes(view) == 0) return;
  events.emplace_back();
  if (view.is_packed()) {
    queue.enqueueWriteBuffer(buffer, CL_FALSE, 0, packed_bytes(view), view.data, nullptr,
                             &events.back());
    return;
  }
  for (index_t b = 0; b < view.count; ++b) {
    const Rectangle<const T> at(view, b);
    if (b == 1) events.emplace_back();
    queue.enqueueWriteBufferRect(buffer, CL_FALSE, at.buffer_origin, at.host_origin, at.region,
                                 at.row_bytes, 0, at.host_row_bytes, 0, view[b].data, nullptr,
                                 &events.back());
  }
}

/// Copies a batch from the device, and appends events in the same way.
template <class T>
void read_batch(const cl::CommandQueue& queue, const cl::Buffer& buffer, BatchView<T> view,
                std::vector<cl::Event>& events) {
  if (packed_bytes(view) == 0) return;
  events.emplace_back();
  if (view.is_packed()) {
    queue.enqueueReadBuffer(buffer, CL_FALSE, 0, packed_bytes(view), view.data, nullptr,
                            &events.back());
    return;
  }
  for (index_t b = 0; b < view.count; ++b) {
    const Rectangle<T> at(view, b);
    if (b == 1) events.emplace_back();
    queue.enqueueReadBufferRect(buffer, CL_FALSE, at.buffer_origin, at.host_origin, at.region,
                                at.row_bytes, 0, at.host_row_bytes, 0, view[b].data, nullptr,
                                &events.back());
  }
}

}  // namespace qrtool
