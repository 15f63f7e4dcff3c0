// SPDX-License-Identifier: Apache-2.0
// numbers.cpp: one loop for each stored type, which the compiler turns into vector code.
#include "io/npy/numbers.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "core/error.hpp"
#include "io/read/remainder.hpp"

namespace qrtool::npy {
namespace {

/// The unsigned type with the bits of a stored number of N bytes.
template <std::size_t N>
struct Bits;
template <>
struct Bits<1> {
  using type = std::uint8_t;
};
template <>
struct Bits<2> {
  using type = std::uint16_t;
};
template <>
struct Bits<4> {
  using type = std::uint32_t;
};
template <>
struct Bits<8> {
  using type = std::uint64_t;
};

template <class Word>
Word swapped(Word word) {
  if constexpr (sizeof(Word) == 2) return __builtin_bswap16(word);
  if constexpr (sizeof(Word) == 4) return __builtin_bswap32(word);
  if constexpr (sizeof(Word) == 8) return __builtin_bswap64(word);
  return word;
}

/// Returns the float32 of the same value. Half precision has 5 bits of exponent and 10 of mantissa.
float widen_half(std::uint16_t half) {
  constexpr std::uint32_t sign = 0x8000, exponent = 0x7c00, infinite = 0x7f800000;
  // Shifted into place the number is 2^112 times too small; the product is exact, and it gives
  // denormal numbers their exponent.
  const std::uint32_t magnitude = static_cast<std::uint32_t>(half & ~sign) << 13;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112F);
  if ((half & exponent) == exponent) bits = magnitude | infinite;
  return std::bit_cast<float>(bits | static_cast<std::uint32_t>(half & sign) << 16);
}

template <class Stored>
struct AsNumber {
  template <class Word>
  Stored operator()(Word word) const {
    return std::bit_cast<Stored>(word);
  }
};
struct AsHalf {
  float operator()(std::uint16_t word) const { return widen_half(word); }
};
struct AsBool {
  float operator()(std::uint8_t word) const { return word != 0 ? 1.0F : 0.0F; }
};

template <std::size_t N, bool IsSwapped, class T, class As>
index_t convert_all(const std::byte* stored, index_t count, T* out, As as) {
  using Word = typename Bits<N>::type;
  bool overflowed = false;
  for (index_t i = 0; i < count; ++i) {
    Word word;
    std::memcpy(&word, stored + i * static_cast<index_t>(N), N);
    const auto number = as(IsSwapped ? swapped(word) : word);
    out[i] = static_cast<T>(number);
    if constexpr (sizeof(number) > sizeof(T) && std::is_floating_point_v<decltype(number)>)
      overflowed |= std::isinf(out[i]) && !std::isinf(number);
  }
  if (!overflowed) return count;
  for (index_t i = 0;; ++i) {
    Word word;
    std::memcpy(&word, stored + i * static_cast<index_t>(N), N);
    const auto number = static_cast<double>(as(IsSwapped ? swapped(word) : word));
    if (std::isinf(out[i]) && !std::isinf(number)) return i;
  }
}

template <std::size_t N, class T, class As>
index_t convert_either(bool is_swapped, const std::byte* stored, index_t count, T* out, As as) {
  return is_swapped ? convert_all<N, true>(stored, count, out, as)
                    : convert_all<N, false>(stored, count, out, as);
}

}  // namespace

template <class T>
index_t convert(const NumberType& type, const std::byte* stored, index_t count, T* out) {
  const bool swap = type.is_swapped;
  const auto numbers = [&]<std::size_t N, class Stored>() {
    return convert_either<N>(swap, stored, count, out, AsNumber<Stored>{});
  };
  switch (type.kind) {
    case Kind::floating:
      if (type.bytes == 2) return convert_either<2>(swap, stored, count, out, AsHalf{});
      if (type.bytes == 4) return numbers.template operator()<4, float>();
      return numbers.template operator()<8, double>();
    case Kind::signed_integer:
      if (type.bytes == 1) return numbers.template operator()<1, std::int8_t>();
      if (type.bytes == 2) return numbers.template operator()<2, std::int16_t>();
      if (type.bytes == 4) return numbers.template operator()<4, std::int32_t>();
      return numbers.template operator()<8, std::int64_t>();
    case Kind::unsigned_integer:
      if (type.bytes == 1) return numbers.template operator()<1, std::uint8_t>();
      if (type.bytes == 2) return numbers.template operator()<2, std::uint16_t>();
      if (type.bytes == 4) return numbers.template operator()<4, std::uint32_t>();
      return numbers.template operator()<8, std::uint64_t>();
    case Kind::boolean:
      return convert_either<1>(swap, stored, count, out, AsBool{});
  }
  throw InternalError("convert: an unknown type of number");
}

bool is_long(const NumberType& type) { return type.kind != Kind::floating && type.bytes == 8; }

namespace {

/// Calls use(i, integer) for each stored integer of 64 bits.
template <class Use>
void each_integer(const NumberType& type, const std::byte* stored, index_t count, Use use) {
  for (index_t i = 0; i < count; ++i) {
    std::uint64_t word = 0;
    std::memcpy(&word, stored + i * static_cast<index_t>(sizeof word), sizeof word);
    if (type.is_swapped) word = swapped(word);
    if (type.kind == Kind::signed_integer)
      use(i, static_cast<std::int64_t>(word));
    else
      use(i, word);
  }
}

}  // namespace

bool has_rounded(const NumberType& type, const std::byte* stored, index_t count) {
  bool is_rounded = false;
  each_integer(type, stored, count,
               [&](index_t, auto integer) { is_rounded |= remainder_of(integer) != 0; });
  return is_rounded;
}

template <class T>
void convert_remainders(const NumberType& type, const std::byte* stored, index_t count, T* out) {
  if (!is_long(type)) return void(std::fill_n(out, count, T(0)));
  each_integer(type, stored, count,
               [&](index_t i, auto integer) { out[i] = static_cast<T>(remainder_of(integer)); });
}
template void convert_remainders(const NumberType&, const std::byte*, index_t, float*);
template void convert_remainders(const NumberType&, const std::byte*, index_t, double*);

template index_t convert(const NumberType&, const std::byte*, index_t, float*);
template index_t convert(const NumberType&, const std::byte*, index_t, double*);

}  // namespace qrtool::npy
