// SPDX-License-Identifier: Apache-2.0
// chunk_seconds.hpp: the time of each step of a chunk.
#pragma once

namespace qrtool {

/// The time, in seconds, that each step of a chunk took: by the clock of a device where one has the
/// step, else wall time.
struct ChunkSeconds {
  double factor = 0, check = 0, upload = 0, download = 0;
  double kernels = 0;  // until they were there, built or taken from the driver's cache

  ChunkSeconds& operator+=(const ChunkSeconds& other) {
    kernels += other.kernels;
    factor += other.factor;
    check += other.check;
    upload += other.upload;
    download += other.download;
    return *this;
  }
};

}  // namespace qrtool
