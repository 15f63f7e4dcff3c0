// SPDX-License-Identifier: Apache-2.0
// attributes.cpp: asks HDF5 for attributes, and looks at their types and sizes before their values.
#include "io/hdf5/datasets/attributes.hpp"

#include <algorithm>

#include "io/hdf5/datasets/complex_type.hpp"
#include "io/hdf5/structure/heap_texts.hpp"

namespace qrtool::hdf5 {
namespace {

constexpr hssize_t most_numbers = 16;

[[noreturn]] void throw_unreadable(const InputFile& file) {
  throw_damaged_attribute(file, innermost_error(take_error()));
}

}  // namespace

Attribute::Attribute(const InputFile& file, hid_t object, const char* name)
    : handle(H5Aopen(object, name, H5P_DEFAULT), H5Aclose),
      type(handle ? H5Aget_type(handle) : H5I_INVALID_HID, H5Tclose),
      space(handle ? H5Aget_space(handle) : H5I_INVALID_HID, H5Sclose) {
  if (!type || !space) throw_unreadable(file);
}

bool has_attribute(const InputFile& file, hid_t object, const char* name) {
  const htri_t exists = H5Aexists(object, name);
  if (exists < 0) throw_unreadable(file);
  return exists > 0;
}

std::string string_attribute(const InputFile& file, hid_t object, const char* name) {
  constexpr std::size_t longest = 65536;
  if (!has_attribute(file, object, name)) return {};
  const Attribute attribute(file, object, name);
  if (H5Tget_class(attribute.type) != H5T_STRING ||
      H5Sget_simple_extent_npoints(attribute.space) != 1) {
    return {};
  }
  if (H5Tis_variable_str(attribute.type) > 0) return heap_texts(file, attribute.handle, 1).front();
  const std::size_t size = H5Tget_size(attribute.type);
  if (size == 0 || size > longest) return {};
  std::string text(size, '\0');
  if (H5Aread(attribute.handle, attribute.type, text.data()) < 0) throw_unreadable(file);
  text.resize(std::min(text.find('\0'), size));
  return text;
}

std::vector<std::complex<double>> complex_attribute(const InputFile& file, hid_t object,
                                                    const char* name) {
  if (!has_attribute(file, object, name)) return {};
  const Attribute attribute(file, object, name);
  const std::optional<PartNames> parts = complex_parts(attribute.type);
  if (!parts) {
    const std::vector<double> numbers = number_attribute(file, object, name);
    return {numbers.begin(), numbers.end()};
  }
  const hssize_t count = H5Sget_simple_extent_npoints(attribute.space);
  const Handle part = part_type(attribute.type);
  const bool is_sound =
      has_parts_inside(attribute.type) && H5Tget_precision(part) == 8 * H5Tget_size(part);
  if (!is_sound || count < 1 || count > most_numbers) return {};
  std::vector<std::complex<double>> numbers(static_cast<std::size_t>(count));
  const Handle type = make_complex_type(H5T_NATIVE_DOUBLE, *parts);
  if (!type || H5Aread(attribute.handle, type, numbers.data()) < 0) throw_unreadable(file);
  return numbers;
}

std::vector<double> number_attribute(const InputFile& file, hid_t object, const char* name) {
  if (!has_attribute(file, object, name)) return {};
  const Attribute attribute(file, object, name);
  const H5T_class_t kind = H5Tget_class(attribute.type);
  const std::size_t size = H5Tget_size(attribute.type), bits = H5Tget_precision(attribute.type);
  const bool is_sound = (size == 1 || size == 2 || size == 4 || size == 8) && bits == 8 * size;
  const hssize_t count = H5Sget_simple_extent_npoints(attribute.space);
  if ((kind != H5T_FLOAT && kind != H5T_INTEGER) || !is_sound || count < 1 || count > most_numbers)
    return {};
  std::vector<double> numbers(static_cast<std::size_t>(count));
  if (H5Aread(attribute.handle, H5T_NATIVE_DOUBLE, numbers.data()) < 0) throw_unreadable(file);
  return numbers;
}

}  // namespace qrtool::hdf5
