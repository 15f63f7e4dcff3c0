// SPDX-License-Identifier: Apache-2.0
// device_calls.hpp: calls whose arrays are in the memory of a GPU: which calls these are, the
// engines that work for them, and their arrays as copies on the host where the device does not do
// what is asked for.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "app/capi/arrays.hpp"
#include "app/capi/calls.hpp"
#include "core/backend/backend.hpp"
#include "core/runs.hpp"
#include "gpu/pipeline/stream_engine.hpp"

namespace qrtool::capi {

/// An array of a call. Without entries it is nowhere.
struct CallArray {
  const char* name;
  const void* data;
  bool has_entries;
};
template <class T>
CallArray call_array(const char* name, const Strided<T>& array) {
  return {name, array.data, array.is_there() && array.count * array.rows * array.cols > 0};
}

template <class T>
DeviceMatrices device_matrices(const Strided<T>& array) {
  return {const_cast<std::remove_const_t<T>*>(array.data),
          array.count,
          array.rows,
          array.cols,
          array.row_stride,
          array.col_stride,
          array.stride};
}

/// The part of a context for calls on device arrays. Threads take engines of their own, so that
/// they do not wait for each other.
class DeviceCalls {
 public:
  /// `backend` is a device with `arrays`.
  DeviceCalls(std::shared_ptr<Backend> backend, const CallerArrays& arrays, int cuda_ordinal,
              const StreamAllocator& allocator);

  /// Whether the arrays of a call are in the memory of the device, or all on the host. Errors:
  /// UsageError for both kinds in one call, and for memory of another device or context.
  bool are_there(std::span<const CallArray> call) const;
  /// Errors: UsageError if an array, which belongs on the host, is in device memory.
  void require_on_host(std::span<const CallArray> call) const;
  /// Errors: UsageError if work of a call cannot go into the stream.
  void require_fit(void* stream) const;

  /// An engine that no other call uses as long as the object exists.
  class Engine {
   public:
    explicit Engine(DeviceCalls& calls);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;
    StreamEngine* operator->() const { return engine_.get(); }
    StreamEngine& operator*() const { return *engine_; }

   private:
    DeviceCalls& calls_;
    std::unique_ptr<StreamEngine> engine_;
  };

  /// Calls body() of the driver. Errors: DeviceError, LimitError.
  void call(const char* what, const std::function<void(const CallerArrays&)>& body) const;
  /// Frees what no call uses.
  void release();
  /// They stay until the process ends.
  const CallerArrays& arrays() const { return arrays_; }
  int cuda_ordinal() const { return cuda_ordinal_; }
  const std::shared_ptr<Backend>& backend() const { return backend_; }

 private:
  AddressKind kind_of(const CallArray& array) const;

  std::shared_ptr<Backend> backend_;
  const CallerArrays& arrays_;
  int cuda_ordinal_;
  StreamAllocator allocator_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<StreamEngine>> idle_;
};

/// Copies on the host of the arrays of a call, as the rest of the interface takes them.
class HostCopies {
 public:
  HostCopies(const DeviceCalls::Engine& engine, void* stream) : engine_(engine), stream_(stream) {}

  /// Returns a copy of matrices that are read.
  template <class T>
  Strided<const T> input(const Strided<const T>& from) {
    if (!from.is_there()) return from;
    const Strided<T> to = memory_for<T>(from);
    engine_->read(stream_, element_type<T>, device_matrices(from), to.data);
    return {to.data, to.count, to.rows, to.cols, to.row_stride, to.col_stride, to.stride};
  }
  /// The same of the matrices at some places, in ascending order; of one matrix for all, itself.
  template <class T>
  Strided<const T> input(const Strided<const T>& from, std::span<const index_t> places) {
    if (!from.is_there() || from.count == 1) return input(from);
    const Strided<T> to = memory_for<T>(from, std::ssize(places));
    for_runs(std::ssize(places), 1, at(places), [&](index_t i, index_t first, index_t count) {
      const Strided<const T> some = from.slice(first, count);
      engine_->read(stream_, element_type<T>, device_matrices(some), to.slice(i, count).data);
    });
    return {to.data, to.count, to.rows, to.cols, to.row_stride, to.col_stride, to.stride};
  }
  /// Returns a place in host memory for one of the device, which write_back() fills.
  template <class T>
  Strided<T> output(const Strided<T>& to) {
    if (!to.is_there()) return to;
    const Strided<T> from = memory_for<T>(to);
    outputs_.push_back({element_type<T>, from.data, device_matrices(to)});
    return from;
  }
  /// The same for the matrices at some places, in ascending order.
  template <class T>
  Strided<T> output(const Strided<T>& to, std::span<const index_t> places) {
    if (!to.is_there()) return to;
    const Strided<T> from = memory_for<T>(to, std::ssize(places));
    for_runs(std::ssize(places), 1, at(places), [&](index_t i, index_t first, index_t count) {
      const Strided<T> some = to.slice(first, count);
      outputs_.push_back({element_type<T>, from.slice(i, count).data, device_matrices(some)});
    });
    return from;
  }
  void write_back() const {
    for (const Output& output : outputs_)
      engine_->write(stream_, output.type, output.from, output.to);
  }

 private:
  struct Output {
    ElementType type;
    const void* from;
    DeviceMatrices to;
  };

  static auto at(std::span<const index_t> places) {
    return [places](index_t i) { return places[static_cast<std::size_t>(i)]; };
  }
  template <class T, class U>
  Strided<T> memory_for(const Strided<U>& of) {
    return memory_for<T>(of, of.count);
  }
  template <class T, class U>
  Strided<T> memory_for(const Strided<U>& of, index_t count) {
    const Batch<T> batch(count, of.rows, of.cols);
    memory_.push_back(std::make_shared<Batch<T>>(batch));
    return packed_in(batch);
  }

  const DeviceCalls::Engine& engine_;
  void* stream_;
  std::vector<std::shared_ptr<const void>> memory_;
  std::vector<Output> outputs_;
};

}  // namespace qrtool::capi
