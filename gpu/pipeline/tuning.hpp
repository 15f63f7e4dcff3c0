// SPDX-License-Identifier: Apache-2.0
// tuning.hpp: the numbers of transfers that could be chosen differently.
//
// Each comment states the number's range, its reason, and where and when it was measured.
#pragma once

#include <cstddef>

namespace qrtool::tuning {

/// Bytes of input and output that are transferred together. 1 MiB .. 1 GiB. The number is small
/// enough that a chunk of the pipeline (64 MiB) is cut into several parts, so that upload, compute
/// and download overlap. It is large enough to hide the latency of about 10 us of each transfer.
/// The number is chosen, not measured on any device.
inline constexpr std::size_t sub_chunk_bytes = std::size_t{16} << 20;
/// Bytes of a caller's arrays that are one part of a run. The ring (gpu/host/ring.hpp) copies them
/// in pieces. 16 MiB .. 1 GiB. With 16 MiB, 15000 float32 matrices of 64x64 spent a third of 69 ms
/// in waiting for the start and the end of each part (NVIDIA H100, driver 580, 2026-11).
inline constexpr std::size_t ring_sub_chunk_bytes = std::size_t{64} << 20;
/// Number of sub-chunks on the device at once. 1 .. 4. There is one each in upload, compute and
/// download.
inline constexpr int buffer_sets = 3;

/// The host does not read the routes of matrices if the kernels for refused ones take at most so
/// many launches. 0 .. 100. A launch that finds nothing to do takes some 3 us; the host's wait, and
/// the device's for the host, some 20. Estimated, not measured.
inline constexpr std::size_t most_unread_launches = 6;
/// The same for calls on arrays of a caller, who may go on while the device works. With 16 those of
/// `gram_group` wait for nothing.
inline constexpr std::size_t most_unread_launches_of_calls = 16;

}  // namespace qrtool::tuning
