// SPDX-License-Identifier: Apache-2.0
// fletcher32_test.cpp: the fast sums agree with the definition, which adds word by word.
#include "io/checksum/fletcher32.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace qrtool::fletcher32_test {
namespace {

using Bytes = std::vector<std::byte>;

/// Computes the checksum by its definition: after each addition the carry is added to the lower 16
/// bits.
std::uint32_t by_definition(const Bytes& data) {
  std::uint32_t s1 = 0, s2 = 0;
  const auto add = [](std::uint32_t a, std::uint32_t b) {
    return ((a + b) & 0xffff) + ((a + b) >> 16);
  };
  for (std::size_t i = 0; i < data.size(); i += 2) {
    const auto high = std::to_integer<std::uint32_t>(data[i]);
    const auto low = i + 1 < data.size() ? std::to_integer<std::uint32_t>(data[i + 1]) : 0;
    s1 = add(s1, high << 8 | low);
    s2 = add(s2, s1);
  }
  return s2 << 16 | s1;
}

Bytes random_bytes(std::size_t size) {
  std::mt19937 random(static_cast<unsigned>(size));
  Bytes data(size);
  for (std::byte& b : data) b = static_cast<std::byte>(random());
  return data;
}

TEST(Fletcher32, KnownValues) {
  const auto of = [](const std::string& text) {
    return fletcher32(reinterpret_cast<const std::byte*>(text.data()), text.size());
  };
  EXPECT_EQ(of(""), 0u);
  EXPECT_EQ(of(std::string("\x01\x02", 2)), 0x01020102u);
  EXPECT_EQ(of(std::string("\x01\x02\x03", 3)), 0x05040402u);  // s1 = 0102 + 0300
}

TEST(Fletcher32, IsTheDefinitionAtEveryLength) {
  for (std::size_t size = 0; size < 300; ++size) {
    const Bytes data = random_bytes(size);
    ASSERT_EQ(fletcher32(data.data(), size), by_definition(data)) << size;
  }
  // Around a block of 360 rows of 32 bytes, and where sums are largest.
  for (const std::size_t size :
       {11518, 11519, 11520, 11521, 11552, 23041, 1 << 20, (1 << 20) + 7}) {
    for (const Bytes& data : {random_bytes(size), Bytes(size, std::byte{0xff}), Bytes(size)}) {
      ASSERT_EQ(fletcher32(data.data(), size), by_definition(data)) << size;
    }
  }
}

TEST(Fletcher32, OldChecksumsWithSwappedBytesMatchToo) {
  const Bytes data = random_bytes(1000);
  const std::uint32_t sum = fletcher32(data.data(), data.size());
  const std::uint32_t swapped = (sum & 0x00ff00ff) << 8 | (sum >> 8 & 0x00ff00ff);
  EXPECT_TRUE(matches_fletcher32(sum, data.data(), data.size()));
  EXPECT_TRUE(matches_fletcher32(swapped, data.data(), data.size()));
  for (int bit = 0; bit < 32; ++bit) {
    EXPECT_FALSE(matches_fletcher32(sum ^ (1u << bit), data.data(), data.size()));
  }
}

}  // namespace
}  // namespace qrtool::fletcher32_test
