// SPDX-License-Identifier: Apache-2.0
// measured.hpp: rates of one device beside those of tables, for the choice between a GPU and the
// CPU.
#pragma once

#include <string_view>

namespace qrtool::tuning {

/// Entries of A times right sides per second, where one matrix has them all, with the check: at
/// least, for right sides in rows. 10000000 of 120 x 4 take 3.1 ms (float64 5.1), 1000000 of 288 x
/// 64 19.6 (23.8) before rows were copied as they are now. The copies take 30 times as long.
inline constexpr double shared_entries_per_second = 9e11, shared_wide_entries_per_second = 7e11;
/// Parts of the names of the devices of the tables (gpu/rates). They differ by their memory.
inline constexpr std::string_view measured_devices[] = {"H100", "H200"};
/// Compute units of those devices. Others are taken to be faster or slower in proportion to theirs.
inline constexpr double measured_units = 132;
/// How many times as long float64 takes on a device where it is not fast. Such devices have 1/32 or
/// 1/64 of the rate of float32, and an H200 has 1/2. No such device has measured it.
inline constexpr double slow_float64 = 16;
/// The check takes about as long as the factors: 0.5 to 1.4 times from 64 x 64 on.
inline constexpr double check_share = 1;
/// Bytes per second between the host's memory and the device in both directions together, with the
/// checksums of both sides: 402 MB of 8192 of 64 x 64 take 34 ms; 51 MB of one 40000 x 160 6.5 ms.
inline constexpr double copied_bytes_per_second = 1.1e10;
/// The same where a sub-chunk is one matrix, so that little overlaps: 101 MB of one 2048 x 2048 in
/// float64 take 16 ms, 402 MB of 32 of 1024 x 1024 in float32 60 ms; 3.46 GB of one 12000 x 12000
/// in pieces 0.45 s (H100).
inline constexpr double copied_bytes_per_second_of_large = 7e9;
/// Bytes per second at which host memory is made known to the device: a run of 16000 of 64 x 64
/// starts 0.1 s later than one of 100, and has 254 MB more.
inline constexpr double pinned_bytes_per_second = 2.5e9;
/// Seconds of a chunk whatever its size: launches, and waiting for them.
inline constexpr double chunk_seconds = 3e-4;
/// Operations per second of the host where it measures a sample again (host_sample_step): 5 ms for
/// one 512 x 512, 18 ms for one 100000 x 64.
inline constexpr double host_sample_rate = 9e10;

}  // namespace qrtool::tuning
