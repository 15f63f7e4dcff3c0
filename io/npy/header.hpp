// SPDX-License-Identifier: Apache-2.0
// header.hpp: reads and writes the header of an array, as numpy.lib.format describes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem/problem.hpp"

namespace qrtool::npy {

/// The first bytes of every array.
inline constexpr std::string_view magic = "\x93NUMPY";
/// No header is longer, with the bytes before it: NumPy refuses longer ones, too.
inline constexpr std::size_t most_header_bytes = 12 + 10000;

enum class Kind { floating, signed_integer, unsigned_integer, boolean };

/// The type of the stored numbers. An array of another type is read with a problem. A complex
/// number is two floating-point numbers.
struct NumberType {
  Kind kind = Kind::floating;
  std::size_t bytes = 8;  // of a part
  index_t parts = 1;
  bool is_swapped = false;  // the byte order is not the processor's
};

struct Header {
  std::size_t bytes = 0;  // of the header; the numbers follow
  NumberType type;
  std::string stored_type;     // "float32", "big-endian int16"
  std::string problem;         // why it holds no numbers, for example "holds strings ('<U12')"
  std::string problem_hint;    // an action
  std::size_t characters = 0;  // of one little-endian Unicode string; that is a problem, too
  bool is_fortran = false;     // the first dimension is the fastest
  std::vector<index_t> dims;

  /// Returns the product of the dimensions.
  index_t elements() const;
  /// Returns the bytes of an element.
  std::size_t element_bytes() const { return type.bytes * static_cast<std::size_t>(type.parts); }
  std::uint64_t data_bytes() const {
    return static_cast<std::uint64_t>(elements()) * element_bytes();
  }
};

/// Reads the header of an array of `array_bytes` bytes, header included, from its first bytes.
/// `shown` names the array in messages. Errors: InputError, also if the numbers do not fill the
/// array exactly (unless the header has a problem).
Header parse_header(std::string_view first_bytes, std::uint64_t array_bytes,
                    const std::string& shown);

/// Makes the header of an array in C order with little-endian numbers: version 1, padded to a
/// multiple of 64 bytes. `descr` is NumPy's name of the type, such as "<f4".
std::string make_header(std::string_view descr, std::span<const index_t> dims);

/// Returns "1000x64x64", or "no dimensions".
std::string shape_text(std::span<const index_t> dims);

}  // namespace qrtool::npy
