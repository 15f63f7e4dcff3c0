// SPDX-License-Identifier: Apache-2.0
// copies.hpp: copies of matrices between the host, whose rows may be apart, and the device, where
// they are packed.
#pragma once

#include <vector>

#include "core/batch.hpp"
#include "gpu/host/driver.hpp"

namespace qrtool {

/// Calls copy(host memory, the rows that begin there, place for the event) for each command that a
/// batch needs, and appends the events of the first and the last one.
template <class T, class Copy>
void copy_batch(BatchView<T> view, std::vector<Event>& events, Copy copy) {
  const std::size_t row_bytes = static_cast<std::size_t>(view.cols) * sizeof(T);
  const std::size_t matrix_bytes = row_bytes * static_cast<std::size_t>(view.rows);
  if (matrix_bytes * static_cast<std::size_t>(view.count) == 0) return;
  events.emplace_back();
  if (view.is_packed()) {
    copy(view.data, Queue::Rows{0, matrix_bytes * static_cast<std::size_t>(view.count)},
         &events.back());
    return;
  }
  for (index_t b = 0; b < view.count; ++b) {
    if (b == 1) events.emplace_back();
    copy(view[b].data,
         Queue::Rows{static_cast<std::size_t>(b) * matrix_bytes, row_bytes,
                     static_cast<std::size_t>(view.rows),
                     static_cast<std::size_t>(view.ld) * sizeof(T)},
         &events.back());
  }
}

/// Copies a batch to the device.
template <class T>
void write_batch(Queue& queue, const Buffer& buffer, BatchView<const T> view,
                 std::vector<Event>& events) {
  copy_batch(view, events, [&](const T* from, const Queue::Rows& rows, Event* done) {
    queue.start_write(buffer, from, rows, done);
  });
}

/// Copies a batch from the device.
template <class T>
void read_batch(Queue& queue, const Buffer& buffer, BatchView<T> view, std::vector<Event>& events) {
  copy_batch(view, events, [&](T* to, const Queue::Rows& rows, Event* done) {
    queue.start_read(buffer, to, rows, done);
  });
}

}  // namespace qrtool
