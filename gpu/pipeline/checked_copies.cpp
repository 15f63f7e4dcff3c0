// SPDX-License-Identifier: Apache-2.0
// checked_copies.cpp: copies of arrays, and their checksums.
#include "gpu/pipeline/checked_copies.hpp"

#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "core/measure/checksum.hpp"
#include "gpu/pipeline/flights.hpp"

namespace qrtool {

void throw_changed(const DeviceInfo& info, std::string_view name, bool was_sent,
                   std::string_view of_item) {
  throw DeviceError(fmt::format("{}: {}{} did not {} as it was sent (checksums differ)",
                                info.text(), name, of_item, was_sent ? "arrive" : "come back"),
                    "--backend cpu works without this device");
}

void CheckedCopies::upload(FactorEngine& engine, int ring_threads) {
  for (CheckedArray& array : arrays_) {
    if (!array.is_sent()) continue;
    if (ring_threads > 0) {
      array.of_host.resize(static_cast<std::size_t>(array.items.count));
      engine.ring.upload(*engine.upload, array.buffer, array.items, ring_threads, array.of_host,
                         uploads_);
    } else {
      write_batch(*engine.upload, array.buffer, array.items, uploads_);
    }
  }
  engine.upload->flush();
}

void CheckedCopies::enqueue(FactorEngine& engine, bool is_sent) const {
  Launcher launch = engine.launcher({sum_file, sum_defines(), "checksums"});
  for (const CheckedArray& array : arrays_)
    if (array.is_sent() == is_sent)
      enqueue_sums(array.sums->layout, array.which, array.buffer, array.items.count,
                   array.sums->buffer, launch);
}

void CheckedCopies::end_kernels(FactorEngine& engine) {
  computed_ = engine.compute->mark();
  engine.compute->flush();
}

void CheckedCopies::download(FactorEngine& engine, int ring_threads) {
  engine.download->wait_for({&computed_, 1});
  for (CheckedArray& array : arrays_) {
    if (array.is_sent()) continue;
    const auto& [from, count, rows, cols, ld, stride] = array.items;
    const BatchView<Word> to{array.to, count, rows, cols, ld, stride};
    if (ring_threads > 0 && array.which != Summed::errors) {  // which are no array of a caller
      array.of_host.resize(static_cast<std::size_t>(count));
      engine.ring.download(*engine.download, array.buffer, to, ring_threads, array.of_host,
                           downloads_);
    } else {
      read_batch(*engine.download, array.buffer, to, downloads_);
    }
  }
  std::set<DeviceSums*> read_already;
  for (const CheckedArray& array : arrays_) {
    DeviceSums& sums = *array.sums;
    if (read_already.insert(&sums).second)
      read(engine, sums.buffer, sums.found,
           sums.count * static_cast<index_t>(sums.layout.sums_of_matrix()));
  }
}

void CheckedCopies::end_download(FactorEngine& engine) {
  downloads_.push_back(engine.download->mark());
  engine.download->flush();
}

void CheckedCopies::wait() {
  wait_for_all(downloads_);
  for (CheckedArray& array : arrays_) array.buffer = array.sums->buffer = {};
}

void CheckedCopies::sum_on_host(bool is_sent, int threads) {
  for (CheckedArray& array : arrays_) {
    if (array.is_sent() != is_sent || !array.of_host.empty()) continue;
    const index_t count = array.items.count;
    const auto bytes =
        static_cast<std::size_t>(count * array.items.rows * array.items.cols) * sizeof(Word);
    array.of_host.resize(static_cast<std::size_t>(count));
    for_items(count, bytes, threads, [&](index_t i) {
      array.of_host[static_cast<std::size_t>(i)] =
          checksum<Word>(array.items[i], 0, count == 1 ? threads : 1);
    });
  }
}

void CheckedCopies::compare(const DeviceInfo& info,
                            const std::function<std::string(index_t)>& place) const {
  for (const CheckedArray& array : arrays_)
    for (index_t i = 0; i < array.items.count; ++i)
      if (array.sums->layout.checksum(array.sums->found, i, array.which) !=
          array.of_host[static_cast<std::size_t>(i)])
        throw_changed(info, array.name, array.is_sent(), " of " + place(i));
}

}  // namespace qrtool
