// SPDX-License-Identifier: Apache-2.0
// complex_type.cpp: tells complex numbers from other compounds by the names of their parts.
#include "io/hdf5/datasets/complex_type.hpp"

#include <array>
#include <utility>

namespace qrtool::hdf5 {
namespace {

/// Returns the name of a member as it is stored.
std::string member_name(hid_t type, unsigned member) {
  char* const name = H5Tget_member_name(type, member);
  std::string text = name != nullptr ? name : "";
  H5free_memory(name);
  return text;
}

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

}  // namespace

std::optional<PartNames> complex_parts(hid_t type) {
  constexpr std::array<std::pair<const char*, const char*>, 4> known{
      {{"r", "i"}, {"real", "imag"}, {"re", "im"}, {"real", "imaginary"}}};
  if (H5Tget_class(type) != H5T_COMPOUND || H5Tget_nmembers(type) != 2) return {};
  const Handle first(H5Tget_member_type(type, 0), H5Tclose);
  const Handle second(H5Tget_member_type(type, 1), H5Tclose);
  if (!first || !second || H5Tget_class(first) != H5T_FLOAT || H5Tequal(first, second) <= 0)
    return {};
  if (H5Tget_size(first) > sizeof(double)) return {};
  const PartNames names{.real = member_name(type, 0), .imaginary = member_name(type, 1)};
  for (const auto& [real, imaginary] : known) {
    if (lower(names.real) == real && lower(names.imaginary) == imaginary) return names;
  }
  return {};
}

bool has_parts_inside(hid_t complex) {
  const std::size_t bytes = H5Tget_size(complex), of_part = H5Tget_size(part_type(complex));
  for (const unsigned member : {0U, 1U}) {
    const std::size_t offset = H5Tget_member_offset(complex, member);
    if (of_part > bytes || offset > bytes - of_part) return false;
  }
  return true;
}

Handle part_type(hid_t complex) { return {H5Tget_member_type(complex, 0), H5Tclose}; }

Handle make_complex_type(hid_t part, const PartNames& names) {
  const std::size_t bytes = H5Tget_size(part);
  Handle type(H5Tcreate(H5T_COMPOUND, 2 * bytes), H5Tclose);
  if (!type || H5Tinsert(type, names.real.c_str(), 0, part) < 0 ||
      H5Tinsert(type, names.imaginary.c_str(), bytes, part) < 0)
    return {};
  return type;
}

}  // namespace qrtool::hdf5
