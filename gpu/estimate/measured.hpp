// SPDX-License-Identifier: Apache-2.0
// measured.hpp: what was measured of one device, for the choice between a GPU and the CPU.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/problem.hpp"

namespace qrtool::tuning {

/// What a run of `variant` took, without copies: with Q (reduced), and for R alone. NVIDIA H200,
/// driver 580, 2026-11-22, Gaussian matrices.
struct MeasuredTime {
  std::string_view variant;
  ElementType type;
  std::int64_t count, m, n;
  double q_ms, r_ms;
};
inline constexpr MeasuredTime measured_times[] = {
    {"opencl/small", ElementType::float32, 468750, 8, 8, 0.269, 0.182},
    {"opencl/small", ElementType::float64, 468750, 8, 8, 0.274, 0.189},
    {"opencl/small", ElementType::float32, 208333, 12, 12, 0.357, 0.232},
    {"opencl/small", ElementType::float64, 208333, 12, 12, 0.370, 0.248},
    {"opencl/small", ElementType::float32, 15000, 16, 16, 0.041, 0.031},
    {"opencl/small", ElementType::float32, 15000, 32, 32, 0.138, 0.090},
    {"opencl/small", ElementType::float32, 15000, 64, 64, 0.842, 0.533},
    {"opencl/small", ElementType::float32, 15000, 128, 64, 1.88, 1.11},
    {"opencl/gram", ElementType::float32, 15000, 64, 64, 0.426, 0.299},
    {"opencl/gram", ElementType::float32, 15000, 128, 64, 0.625, 0.391},
    {"opencl/gram_tiles", ElementType::float32, 5000, 256, 128, 2.32, 1.30},
    {"opencl/gram_tiles", ElementType::float32, 1000, 512, 256, 2.73, 1.79},
    {"opencl/gram_tiles", ElementType::float32, 32, 512, 512, 0.548, 0.432},
    {"opencl/gram_tiles", ElementType::float32, 1, 2048, 2048, 1.39, 1.16},
    {"opencl/gram_tiles", ElementType::float32, 1, 5000, 5000, 9.6, 6.5},
    {"opencl/blocked", ElementType::float32, 2000, 256, 128, 3.10, 1.96},
    {"opencl/blocked", ElementType::float32, 32, 512, 512, 1.71, 1.05},
    {"opencl/large", ElementType::float32, 1, 16384, 16384, 165, 96},
    {"opencl/tall", ElementType::float32, 1, 1000000, 32, 0.148, 0.072},
    {"opencl/tall", ElementType::float32, 1, 4000000, 64, 1.16, 0.417},
    {"opencl/tall", ElementType::float32, 1, 1000000, 128, 0.96, 0.44},
    {"opencl/leading", ElementType::float32, 30000, 10, 100, 0.234, 0.234},
    {"opencl/leading", ElementType::float64, 30000, 10, 100, 0.355, 0.355},
    {"opencl/leading", ElementType::float32, 1800, 64, 256, 0.238, 0.238},
    {"opencl/leading", ElementType::float32, 300, 100, 1000, 0.395, 0.395},
    {"opencl/leading", ElementType::float32, 5, 64, 100000, 0.191, 0.191},
    {"opencl/leading", ElementType::float64, 1800, 64, 256, 0.393, 0.393},
    {"opencl/leading", ElementType::float64, 300, 100, 1000, 0.614, 0.614},
    {"opencl/leading", ElementType::float64, 5, 64, 100000, 0.302, 0.302},
    {"opencl/tiny", ElementType::float32, 1800000, 4, 4, 0.179, 0.138},
    {"opencl/tiny", ElementType::float32, 460000, 8, 8, 0.500, 0.338},
    {"opencl/tiny", ElementType::float64, 1800000, 4, 4, 0.231, 0.180},
    {"opencl/tiny", ElementType::float64, 460000, 8, 8, 0.534, 0.372},
    {"opencl/small", ElementType::float64, 15000, 16, 16, 0.059, 0.050},
    {"opencl/small", ElementType::float64, 15000, 64, 64, 1.83, 1.15},
    {"opencl/small", ElementType::float64, 15000, 128, 64, 4.70, 2.84},
    {"opencl/gram", ElementType::float64, 15000, 64, 64, 1.05, 0.880},
    {"opencl/gram", ElementType::float64, 15000, 128, 64, 1.74, 0.639},
    {"opencl/gram_twice", ElementType::float64, 1802, 129, 129, 3.76, 3.22},
    {"opencl/gram_group", ElementType::float32, 2391, 112, 112, 0.823, 0.823},
    {"opencl/gram_group", ElementType::float32, 1446, 144, 144, 1.33, 1.33},
    {"opencl/gram_group", ElementType::float64, 5787, 72, 72, 0.998, 0.998},
    {"opencl/gram_group", ElementType::float64, 3255, 96, 96, 1.09, 1.09},
    {"opencl/gram_group", ElementType::float64, 1831, 128, 128, 1.31, 1.31},
    {"opencl/gram_group", ElementType::float64, 1171, 160, 160, 1.84, 1.84},
    {"opencl/gram_twice", ElementType::float64, 2000, 256, 128, 2.59, 1.25},
    {"opencl/gram_twice", ElementType::float64, 32, 512, 512, 1.23, 1.08},
    {"opencl/gram_twice", ElementType::float64, 1, 512, 512, 0.441, 0.364},
    {"opencl/gram_twice", ElementType::float64, 1, 2048, 2048, 2.50, 2.01},
    {"opencl/gram_twice", ElementType::float64, 1, 5000, 5000, 18.6, 14.5},
    {"opencl/gram_twice", ElementType::float64, 1, 1000000, 32, 0.336, 0.154},
    {"opencl/gram_twice", ElementType::float64, 1, 1000000, 128, 1.50, 0.709},
    {"opencl/blocked", ElementType::float64, 2000, 256, 128, 6.41, 3.60},
    {"opencl/blocked", ElementType::float64, 32, 512, 512, 3.40, 1.88},
    {"opencl/large", ElementType::float64, 1, 5000, 5000, 23.2, 14.9},
    {"opencl/large", ElementType::float64, 1, 16384, 16384, 342, 183},
};
/// What a run of least squares took, without copies, with its check: R, x with one right side, and
/// the errors. By normal equations where they are tried first. NVIDIA H200, driver 580, 2026-11-23.
struct MeasuredSystems {
  ElementType type;
  std::int64_t count, m, n;
  double ms;
};
inline constexpr MeasuredSystems measured_systems[] = {
    {ElementType::float32, 1000000, 16, 4, 0.351}, {ElementType::float64, 1000000, 16, 4, 0.632},
    {ElementType::float32, 200000, 20, 12, 0.978}, {ElementType::float64, 200000, 20, 12, 1.40},
    {ElementType::float32, 15000, 64, 64, 0.817},  {ElementType::float64, 15000, 64, 64, 1.29},
    {ElementType::float32, 5000, 256, 128, 2.53},  {ElementType::float64, 5000, 256, 128, 4.30},
    {ElementType::float32, 65536, 288, 97, 27.4},  {ElementType::float64, 65536, 288, 97, 35.1},
    {ElementType::float32, 1, 100000, 16, 0.262},  {ElementType::float64, 1, 100000, 16, 0.372},
    {ElementType::float32, 1, 1000000, 32, 0.415}, {ElementType::float64, 1, 1000000, 32, 0.453},
    {ElementType::float32, 1, 4000000, 64, 1.27},  {ElementType::float64, 1, 4000000, 64, 2.13},
};
/// Entries of A times right sides per second, where one matrix has them all, with the check: at
/// least, for right sides in rows. 10000000 of 120 x 4 take 3.1 ms (float64 5.1), 1000000 of 288 x
/// 64 19.6 (23.8) before rows were copied as they are now. The copies take 30 times as long.
inline constexpr double shared_entries_per_second = 9e11, shared_wide_entries_per_second = 7e11;
/// A part of the name of the device of these tables.
inline constexpr std::string_view measured_device = "H200";
/// Compute units of that device. Others are taken to be faster or slower in proportion to theirs.
inline constexpr double measured_units = 132;
/// How many times as long float64 takes on a device where it is not fast. Such devices have 1/32 or
/// 1/64 of the rate of float32, and an H200 has 1/2. Not measured.
inline constexpr double slow_float64 = 16;
/// The check takes about as long as the factors: 0.5 to 1.4 times from 64 x 64 on.
inline constexpr double check_share = 1;
/// Bytes per second between the host's memory and the device in both directions together, with the
/// checksums of both sides: 402 MB of 8192 of 64 x 64 take 34 ms; 51 MB of one 40000 x 160 6.5 ms.
inline constexpr double copied_bytes_per_second = 1.1e10;
/// The same where a sub-chunk is one matrix, so that little overlaps: 101 MB of one 2048 x 2048 in
/// float64 take 16 ms, 402 MB of 32 of 1024 x 1024 in float32 60 ms.
inline constexpr double copied_bytes_per_second_of_large = 6.5e9;
/// Bytes per second at which host memory is made known to the device: a run of 16000 of 64 x 64
/// starts 0.1 s later than one of 100, and has 254 MB more.
inline constexpr double pinned_bytes_per_second = 2.5e9;
/// Seconds of a chunk whatever its size: launches, and waiting for them.
inline constexpr double chunk_seconds = 3e-4;
/// Operations per second of the host where it measures a sample again (host_sample_step): 5 ms for
/// one 512 x 512, 18 ms for one 100000 x 64.
inline constexpr double host_sample_rate = 9e10;

}  // namespace qrtool::tuning
