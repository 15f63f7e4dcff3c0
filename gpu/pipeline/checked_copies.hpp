// SPDX-License-Identifier: Apache-2.0
// checked_copies.hpp: the copies of a part to the device and back. The device sums what arrived and
// what it sends, the host sums its own, and a copy that changes a bit ends the run.
//
//   upload -> await_uploads .. kernels .. end_kernels -> download -> end_download -> wait ->
//   compare
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/host/copies.hpp"
#include "gpu/pipeline/engine.hpp"

namespace qrtool {

/// Throws the error of a copy that has changed an array; `of_item` continues its name.
[[noreturn]] void throw_changed(const DeviceInfo& info, std::string_view name, bool was_sent,
                                std::string_view of_item = {});

/// The checksums that the device makes of the items of one array, or of several.
struct DeviceSums {
  SumLayout layout;
  Buffer buffer;
  index_t count = 0;
  std::vector<std::uint64_t> found = {};  // as they have come back
};

/// Items, which are matrices or vectors, in host memory, and packed on the device.
struct CheckedArray {
  std::string_view name;
  Buffer buffer;
  BatchView<const Word> items;
  Word* to = nullptr;  // the items come back; null: they are sent
  std::shared_ptr<DeviceSums> sums;
  Summed which = Summed::a;
  std::vector<std::uint64_t> of_host = {};  // checksums of the items

  bool is_sent() const { return to == nullptr; }
};

class CheckedCopies {
 public:
  /// Adds an array that is sent, or one that comes back, with sums of its own in `sums`.
  template <class T>
  void send(std::string_view name, const Buffer& buffer, BatchView<const T> items,
            const Buffer& sums) {
    arrays_.push_back({name, buffer, words_of(items), nullptr, sums_of(items, sums)});
  }
  template <class T>
  void receive(std::string_view name, const Buffer& buffer, BatchView<T> items,
               const Buffer& sums) {
    const BatchView<Word> words = words_of(items);
    arrays_.push_back({name, buffer, words, words.data, sums_of(BatchView<const T>(items), sums)});
  }
  void add(CheckedArray array) { arrays_.push_back(std::move(array)); }
  /// The bytes of the sums of such items.
  template <class T>
  static SumLayout layout_of(BatchView<const T> items) {
    return SumLayout({.m = items.rows, .n = items.cols, .type = element_type<T>, .mode = Mode::r});
  }

  /// Starts the copies of what is sent: with `ring_threads` through the ring, which sums it too.
  void upload(FactorEngine& engine, int ring_threads = 0);
  /// Later kernels wait for them.
  void await_uploads(FactorEngine& engine) const { engine.compute->wait_for(uploads_); }
  /// Enqueues the sums of what was sent, or of what comes back.
  void sum_sent(FactorEngine& engine) const { enqueue(engine, /*is_sent=*/true); }
  void sum_received(FactorEngine& engine) const { enqueue(engine, /*is_sent=*/false); }
  /// After the last kernel of the part.
  void end_kernels(FactorEngine& engine);
  /// Starts the copies back, which wait for the kernels: with `ring_threads` through the ring.
  void download(FactorEngine& engine, int ring_threads = 0);
  /// Copies without checksums, between download() and end_download().
  template <class T>
  static void read(FactorEngine& engine, const Buffer& from, std::vector<T>& to, index_t count) {
    to.resize(static_cast<std::size_t>(count));
    engine.download->start_read(from, to.data(), {0, to.size() * sizeof(T)});
  }
  template <class T>
  static void read(FactorEngine& engine, const Buffer& from, BatchView<T> to) {
    std::vector<Event> ignored;
    read_batch(*engine.download, from, to, ignored);
  }
  void end_download(FactorEngine& engine);
  /// Waits until all copies are done, and lets the buffers go.
  void wait();
  double upload_seconds() const { return seconds_of(uploads_); }
  double download_seconds() const { return seconds_of(downloads_); }

  /// Sums on the host what the ring has not summed.
  void sum_on_host(bool is_sent, int threads);
  /// Errors: DeviceError where an item did not arrive, or did not come back, as it was sent;
  /// place(its number) names it.
  void compare(const DeviceInfo& info, const std::function<std::string(index_t)>& place) const;

 private:
  template <class T>
  static std::shared_ptr<DeviceSums> sums_of(BatchView<const T> items, const Buffer& buffer) {
    return std::make_shared<DeviceSums>(DeviceSums{layout_of(items), buffer, items.count});
  }
  void enqueue(FactorEngine& engine, bool is_sent) const;

  std::vector<CheckedArray> arrays_;
  std::vector<Event> uploads_, downloads_;
  Event computed_;
};

}  // namespace qrtool
