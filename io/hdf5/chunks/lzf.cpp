// SPDX-License-Identifier: Apache-2.0
// lzf.cpp: LibLZF's format. A byte below 32 says that so many bytes and one more follow as they
// are. Otherwise its upper three bits are a length, 7 of which says that the next byte is added to
// it; its lower five bits and the next byte are a distance: length + 2 bytes from so far and one
// more back are repeated, where some may be bytes that this has just made.
#include "io/hdf5/chunks/lzf.hpp"

#include <algorithm>

namespace qrtool::hdf5 {

std::optional<std::size_t> decompress_lzf(std::span<const std::byte> from, Bytes& to) {
  constexpr unsigned most_plain = 32, long_length = 7;
  const std::byte* in = from.data();
  const std::byte* const in_end = in + from.size();
  std::byte *out = to.data(), *const out_end = out + to.size();
  while (in < in_end) {
    const auto control = std::to_integer<unsigned>(*in++);
    if (control < most_plain) {
      const std::ptrdiff_t count = control + 1;
      if (count > in_end - in || count > out_end - out) return {};
      out = std::copy_n(in, count, out);
      in += count;
      continue;
    }
    std::ptrdiff_t count = control >> 5;
    if (in_end - in < (count == long_length ? 2 : 1)) return {};
    if (count == long_length) count += std::to_integer<int>(*in++);
    count += 2;
    const std::ptrdiff_t back = ((control & 31) << 8 | std::to_integer<unsigned>(*in++)) + 1;
    if (back > out - to.data() || count > out_end - out) return {};
    // The copy goes byte by byte, because the parts may overlap.
    for (const std::byte* end = out + count; out < end; ++out) *out = out[-back];
  }
  return static_cast<std::size_t>(out - to.data());
}

}  // namespace qrtool::hdf5
