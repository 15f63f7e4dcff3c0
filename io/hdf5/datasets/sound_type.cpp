// SPDX-License-Identifier: Apache-2.0
// sound_type.cpp: looks at the fields of a type.
#include "io/hdf5/datasets/sound_type.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "io/hdf5/datasets/complex_type.hpp"

namespace qrtool::hdf5 {
namespace {

/// Where the fields of a floating-point type are. Bits count from the lowest.
struct FloatFields {
  std::size_t sign = 0, exponent = 0, exponent_bits = 0, mantissa = 0, mantissa_bits = 0;
};

/// Whether the bits are mantissa, exponent and sign without a gap, with IEEE 754's bias. The 80
/// bits of x87, whose first bit of the mantissa is stored, may have bytes behind them.
bool is_sound_float(hid_t type) {
  FloatFields f;
  if (H5Tget_fields(type, &f.sign, &f.exponent, &f.exponent_bits, &f.mantissa, &f.mantissa_bits) <
      0) {
    return false;
  }
  const std::size_t precision = H5Tget_precision(type), bits = 8 * H5Tget_size(type);
  const bool is_x87 = H5Tget_norm(type) == H5T_NORM_NONE;
  if (!is_x87 && H5Tget_norm(type) != H5T_NORM_IMPLIED) return false;
  if (is_x87 ? precision != 80 || f.exponent_bits != 15 || bits > 128 : precision != bits) {
    return false;
  }
  if (f.exponent_bits < 2 || f.exponent_bits > 15) return false;
  return H5Tget_offset(type) == 0 && f.mantissa == 0 && f.exponent == f.mantissa_bits &&
         f.sign == f.exponent + f.exponent_bits && f.sign + 1 == precision &&
         H5Tget_ebias(type) == (std::size_t{1} << (f.exponent_bits - 1)) - 1;
}

/// Whether the integer has as many bytes as a processor's, with all of its bits inside.
bool is_sound_integer(hid_t type) {
  const std::size_t bytes = H5Tget_size(type), bits = H5Tget_precision(type);
  const int offset = H5Tget_offset(type);
  return (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) && bits > 0 && offset >= 0 &&
         bits + static_cast<std::size_t>(offset) <= 8 * bytes;
}

bool is_sound_order(hid_t type) {
  const H5T_order_t order = H5Tget_order(type);
  return order == H5T_ORDER_LE || order == H5T_ORDER_BE;
}

}  // namespace

void require_sound_type(const InputFile& file, const Dataset& dataset) {
  Handle type(H5Dget_type(dataset.handle), H5Tclose);
  if (is_complex(dataset.type)) type = part_type(type);
  const bool is_float = H5Tget_class(type) == H5T_FLOAT;
  if (is_sound_order(type) && (is_float ? is_sound_float(type) : is_sound_integer(type))) return;
  take_error();  // without memory, the cause is another
  throw InputError(
      fmt::format("{}: dataset {} is damaged (its type of {} bytes with {} bits is no {})",
                  file.shown, dataset.shown, H5Tget_size(type), H5Tget_precision(type),
                  is_float ? "IEEE 754 floating-point number" : "integer of a processor"));
}

}  // namespace qrtool::hdf5
