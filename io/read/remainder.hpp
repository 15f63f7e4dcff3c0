// SPDX-License-Identifier: Apache-2.0
// remainder.hpp: what float64 leaves of an integer of 64 bits.
#pragma once

#include <cstdint>

namespace qrtool {

/// Integer - float64(integer), which is 0 below 2^53 and at most 1024 above.
template <class Integer>
double remainder_of(Integer integer) {
  // float64 may be 2^64, which no integer of 64 bits is; differences are right modulo 2^64.
  const auto rounded = static_cast<double>(integer);
  const std::uint64_t bits =
      rounded < 0        ? static_cast<std::uint64_t>(static_cast<std::int64_t>(rounded))
      : rounded < 0x1p63 ? static_cast<std::uint64_t>(rounded)
                         : static_cast<std::uint64_t>(rounded - 0x1p63) + (std::uint64_t{1} << 63);
  return static_cast<double>(static_cast<std::int64_t>(static_cast<std::uint64_t>(integer) - bits));
}

}  // namespace qrtool
