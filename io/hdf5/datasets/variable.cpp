// SPDX-License-Identifier: Apache-2.0
// variable.cpp: reads the attributes of a variable and applies them to its numbers.
// netCDF Users' Guide, appendix A (attribute conventions); CF conventions, section 8.1 (packed
// data).
#include "io/hdf5/datasets/variable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "io/hdf5/datasets/attributes.hpp"
#include "io/hdf5/datasets/complex_type.hpp"
#include "io/hdf5/datasets/dataset.hpp"
#include "io/read/remainder.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool::hdf5 {
namespace {

/// Says how the elements of a dataset are stored.
struct StoredType {
  explicit StoredType(hid_t dataset) : StoredType(Handle(H5Dget_type(dataset), H5Tclose)) {}
  explicit StoredType(Handle stored) : type(std::move(stored)) {
    is_integer = H5Tget_class(type) == H5T_INTEGER;
    is_signed = is_integer && H5Tget_sign(type) != H5T_SGN_NONE;
    bytes = H5Tget_size(type);
    bits = H5Tget_precision(type);
  }
  /// Returns 2^bits, the difference between a signed number and the unsigned one with the same
  /// bits.
  double span() const { return std::ldexp(1.0, static_cast<int>(bits)); }

  Handle type;
  bool is_integer = false, is_signed = false;
  std::size_t bytes = 0, bits = 0;
};

/// Returns `value` as a float of the stored type, or nothing if no such float is near it.
std::optional<double> as_stored_float(const StoredType& stored, double value) {
  if (stored.bits != 8 * stored.bytes || stored.bytes >= 8 || std::isnan(value)) return value;
  std::array<std::byte, sizeof(double)> number;
  std::memcpy(number.data(), &value, sizeof value);
  if (H5Tconvert(H5T_NATIVE_DOUBLE, stored.type, 1, number.data(), nullptr, H5P_DEFAULT) < 0 ||
      H5Tconvert(stored.type, H5T_NATIVE_DOUBLE, 1, number.data(), nullptr, H5P_DEFAULT) < 0) {
    take_error();
    return value;
  }
  double rounded = 0;
  std::memcpy(&rounded, number.data(), sizeof rounded);
  if (std::isinf(rounded) && !std::isinf(value)) return {};
  return rounded;
}

/// Returns the number that means "missing", as decode() sees it, or nothing if it cannot be stored.
std::optional<double> as_stored(const StoredType& stored, const Variable& variable, double value) {
  if (!stored.is_integer) return as_stored_float(stored, value);
  if (std::floor(value) != value) return {};
  const double span = stored.span(), half = span / 2;
  const bool is_unsigned = stored.is_signed == variable.reverses_sign;
  const double lowest = stored.is_signed ? -half : 0, end = stored.is_signed ? half : span;
  // A number beyond the stored type may still be one that the stored bits mean.
  const bool is_meant = is_unsigned ? value >= 0 && value < span : value >= -half && value < half;
  // The largest numbers of 64 bits are rounded to `end`.
  const bool is_stored = value >= lowest && (value < end || (stored.bits == 64 && value == end));
  if (!is_meant && !is_stored) return {};
  if (is_meant || !variable.reverses_sign) return value;
  return is_unsigned ? value + span : value - span;
}

/// Returns the bits of the integers of 64 bits that an attribute of whole numbers names.
std::vector<std::uint64_t> long_numbers(const InputFile& file, hid_t dataset, const char* name,
                                        std::size_t count) {
  const Attribute attribute(file, dataset, name);
  std::vector<std::uint64_t> bits(count);
  const bool is_signed = H5Tget_sign(attribute.type) != H5T_SGN_NONE;
  if (H5Tget_class(attribute.type) != H5T_INTEGER ||
      H5Aread(attribute.handle, is_signed ? H5T_NATIVE_INT64 : H5T_NATIVE_UINT64, bits.data()) <
          0) {
    H5Eclear2(H5E_DEFAULT);
    return {};
  }
  return bits;
}

// The largest number up to which float64 holds every integer.
constexpr double largest_exact = 9007199254740992.0;

/// Returns the bits of an integer of 64 bits.
std::uint64_t bits_of(double value) {
  return static_cast<std::uint64_t>(static_cast<std::int64_t>(value));
}

constexpr std::array missing_names{"_FillValue", "missing_value"};

/// Adds a note that an attribute has no effect, with the reason.
void note_useless(const char* name, Variable& variable) {
  variable.notes.push_back(
      fmt::format("its {} is not between 1 and 16 numbers, and is not used", name));
}

/// Adds the missing values of complex numbers, whose parts are stored as `part`.
void add_complex_missing(const InputFile& file, hid_t dataset, const StoredType& part,
                         Variable& variable) {
  for (const char* name : missing_names) {
    const auto values = complex_attribute(file, dataset, name);
    if (values.empty() && has_attribute(file, dataset, name)) note_useless(name, variable);
    for (const std::complex<double> value : values) {
      const std::optional<double> real = as_stored_float(part, value.real()),
                                  imaginary = as_stored_float(part, value.imag());
      // NaN is missing anyway.
      if (real && imaginary && value == value)
        variable.missing_complex.emplace_back(*real, *imaginary);
    }
  }
}

void add_missing(const InputFile& file, hid_t dataset, const StoredType& stored,
                 Variable& variable) {
  for (const char* name : missing_names) {
    const std::vector<double> values = number_attribute(file, dataset, name);
    if (values.empty() && has_attribute(file, dataset, name)) note_useless(name, variable);
    std::vector<std::uint64_t> exact;
    if (variable.is_long && !values.empty())
      exact = long_numbers(file, dataset, name, values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      if (std::isnan(value)) continue;
      const std::optional<double> missing = as_stored(stored, variable, value);
      if (!missing) {
        variable.notes.push_back(
            fmt::format("its {} {} is no number of its type, and means nothing", name, value));
      } else if (std::find(variable.missing.begin(), variable.missing.end(), *missing) ==
                 variable.missing.end()) {
        variable.missing.push_back(*missing);
      }
      if (!missing || !variable.is_long) continue;
      // A number of the other sign is given as its bits, and means one integer.
      if (exact.empty() && std::abs(value) >= largest_exact && *missing == value) {
        variable.missing_rounded.push_back(*missing);
      } else {
        variable.missing_bits.push_back(exact.empty() ? bits_of(value) : exact[i]);
      }
    }
  }
}

/// Returns the value that netCDF stores before anything is written. Numbers of one byte have none.
std::optional<double> default_fill_of(const StoredType& stored) {
  if (!stored.is_integer && (stored.bytes == 4 || stored.bytes == 8))
    return static_cast<double>(9.9692099683868690e+36F);
  if (!stored.is_integer || stored.bits != 8 * stored.bytes) return {};
  switch (stored.bytes) {
    case 2:
      return stored.is_signed ? -32767 : 65535;
    case 4:
      return stored.is_signed ? -2147483647.0 : 4294967295.0;
    case 8:
      return stored.is_signed ? -9223372036854775806.0 : 18446744073709551614.0;
    default:
      return {};
  }
}

/// Adds netCDF's own fill value if the variable states none and was not created without one. The
/// library then gives HDF5 a fill value, which no other program does unasked.
void add_default_fill(const InputFile& file, hid_t dataset, const StoredType& stored,
                      Variable& variable) {
  if (has_attribute(file, dataset, "_FillValue") || !is_netcdf(file, dataset)) return;
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  H5D_fill_value_t kind = H5D_FILL_VALUE_ERROR;
  if (!creation || H5Pfill_value_defined(creation, &kind) < 0) {
    take_error();
    return;
  }
  const std::optional<double> fill = default_fill_of(stored);
  if (kind != H5D_FILL_VALUE_USER_DEFINED || !fill) return;
  variable.default_fill = as_stored(stored, variable, *fill);
  if (variable.is_long)
    variable.missing_bits.push_back(stored.is_signed
                                        ? static_cast<std::uint64_t>(-9223372036854775806)
                                        : static_cast<std::uint64_t>(-2));
}

/// Returns an attribute that is one number, or nothing if there is no such attribute. Any other
/// attribute of this name becomes the variable's problem.
std::optional<double> one_number(const InputFile& file, hid_t dataset, const char* name,
                                 Variable& variable) {
  if (!has_attribute(file, dataset, name)) return {};
  const std::vector<double> values = number_attribute(file, dataset, name);
  if (values.size() == 1) return values.front();
  variable.problem = fmt::format("cannot be decoded: its attribute {} is not one number", name);
  return {};
}

void note_ranges(const InputFile& file, hid_t dataset, Variable& variable) {
  for (const char* name : {"valid_range", "valid_min", "valid_max"})
    if (has_attribute(file, dataset, name))
      variable.notes.push_back(
          fmt::format("its {} is not applied; numbers beyond it are read as they are", name));
}

template <class T>
bool contains(const std::vector<T>& values, T value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

constexpr index_t block_size = 256;

/// number = stored scale_factor + add_offset, rounded after each step as xarray rounds.
void scale(const Variable& v, double* values, index_t count) {
  if (v.scale_factor)
    for (index_t i = 0; i < count; ++i) values[i] *= *v.scale_factor;
  if (v.add_offset)
    for (index_t i = 0; i < count; ++i) values[i] += *v.add_offset;
}

/// Decodes up to block_size numbers.
template <class T>
void decode_block(const Variable& v, T* numbers, index_t count) {
  std::array<double, block_size> values;
  std::array<bool, block_size> is_missing{};
  std::copy_n(numbers, count, values.data());
  if (v.reverses_sign)
    for (index_t i = 0; i < count; ++i)
      values[i] += values[i] < v.lowest ? v.span : values[i] >= v.lowest + v.span ? -v.span : 0;
  for (const double missing : v.missing)
    for (index_t i = 0; i < count; ++i) is_missing[i] |= values[i] == missing;
  if (v.default_fill)
    for (index_t i = 0; i < count; ++i) is_missing[i] |= values[i] == *v.default_fill;
  scale(v, values.data(), count);
  for (index_t i = 0; i < count; ++i) {
    // A decoded float32 has one value, in whatever type it is read.
    const double value =
        v.is_single ? static_cast<double>(static_cast<float>(values[i])) : values[i];
    numbers[i] = is_missing[i] ? std::numeric_limits<T>::quiet_NaN() : static_cast<T>(value);
  }
}

}  // namespace

bool Variable::is_plain() const {
  return missing.empty() && missing_complex.empty() && !default_fill && !scale_factor &&
         !add_offset && !reverses_sign;
}

bool is_netcdf(const InputFile& file, hid_t dataset) {
  return has_attribute(file, file.handle, "_NCProperties") ||
         has_attribute(file, dataset, "DIMENSION_LIST") ||
         has_attribute(file, dataset, "_Netcdf4Dimid") ||
         has_attribute(file, dataset, "_Netcdf4Coordinates");
}

Variable read_variable(const InputFile& file, hid_t dataset) {
  const StoredType stored(dataset);
  Variable variable{.is_single = !stored.is_integer && stored.bytes <= 4};
  if (stored.is_integer) {
    const std::string word = string_attribute(file, dataset, "_Unsigned");
    variable.reverses_sign = stored.is_signed ? word == "true" : word == "false";
    variable.span = stored.span();
    variable.lowest = stored.is_signed ? 0 : -stored.span() / 2;
    variable.is_long = stored.bytes == 8 && stored.bits == 64;
    variable.is_unsigned = stored.is_signed == variable.reverses_sign;
  }
  add_missing(file, dataset, stored, variable);
  add_default_fill(file, dataset, stored, variable);
  variable.scale_factor = one_number(file, dataset, "scale_factor", variable);
  variable.add_offset = one_number(file, dataset, "add_offset", variable);
  note_ranges(file, dataset, variable);
  return variable;
}

Variable read_complex_variable(const InputFile& file, hid_t dataset) {
  const Handle complex(H5Dget_type(dataset), H5Tclose);
  const StoredType part(part_type(complex));
  Variable variable{.is_single = part.bytes <= 4};
  add_complex_missing(file, dataset, part, variable);
  variable.scale_factor = one_number(file, dataset, "scale_factor", variable);
  variable.add_offset = one_number(file, dataset, "add_offset", variable);
  return variable;
}

// Source: AnnData, "On-disk format", categorical arrays and nullable arrays.
void add_missing_of_group(const InputFile& file, const std::string& path, hid_t dataset,
                          Variable& variable) {
  const std::size_t slash = path.rfind('/');
  const std::string name = path.substr(slash + 1);
  const bool may_be_codes = name == "codes", may_have_mask = name == "values";
  // Before version 0.8 the codes stood in the place of the group, with a reference to the
  // categories.
  const bool is_old = has_attribute(file, dataset, "categories") &&
                      H5Tget_class(Attribute(file, dataset, "categories").type) == H5T_REFERENCE;
  if (!may_be_codes && !may_have_mask && !is_old) return;
  std::string encoding;
  if (!is_old) {
    const Handle group = open_object(file, path.substr(0, slash));
    if (!group) return;
    encoding = string_attribute(file, group, "encoding-type");
  }
  const StoredType stored(dataset);
  if ((is_old || (may_be_codes && encoding == "categorical")) && stored.is_signed) {
    constexpr double none = -1;
    variable.missing.push_back(none);
    if (variable.is_long) variable.missing_bits.push_back(bits_of(none));
    variable.notes.push_back("its numbers are codes of categories; -1 is none, and is read as NaN");
  }
  if (may_have_mask && encoding.starts_with("nullable-"))
    variable.mask = path.substr(0, slash) + "/mask";
}

OrderEvidence find_order(const InputFile& file, hid_t dataset) {
  if (!string_attribute(file, dataset, "MATLAB_class").empty())
    return {Order::column, "it has the marks of MATLAB"};
  if (has_attribute(file, dataset, "rhdf5-NA.OK"))
    return {Order::column, "it has the marks of rhdf5"};
  if (file.is_by_julia) return {Order::column, "it has the marks of Julia"};
  if (is_netcdf(file, dataset)) return {Order::row, "netCDF stores rows"};
  if (!string_attribute(file, dataset, "FLAVOR").empty()) return {Order::row, "PyTables wrote it"};
  return {};
}

template <class T>
void decode(const Variable& variable, T* numbers, index_t count) {
  for (index_t done = 0; done < count; done += block_size)
    decode_block(variable, numbers + done, std::min(block_size, count - done));
}
template void decode(const Variable&, float*, index_t);
template void decode(const Variable&, double*, index_t);

template <class R>
void decode(const Variable& v, std::complex<R>* numbers, index_t count) {
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  for (index_t i = 0; i < count; ++i) {
    std::complex<double> value(numbers[i]);
    if (contains(v.missing_complex, value)) value = {nan, nan};
    if (v.scale_factor) value *= *v.scale_factor;
    if (v.add_offset) value += *v.add_offset;
    if (v.is_single) value = std::complex<float>(value);
    numbers[i] = std::complex<R>(value);
  }
}
template void decode(const Variable&, std::complex<float>*, index_t);
template void decode(const Variable&, std::complex<double>*, index_t);

namespace {

std::uint64_t bits_at(const double* place) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, place, sizeof bits);
  return bits;
}

double remainder_of_bits(const Variable& v, std::uint64_t bits) {
  return v.is_unsigned ? remainder_of(bits) : remainder_of(static_cast<std::int64_t>(bits));
}

}  // namespace

void take_remainders(const Variable& v, double* numbers, index_t count) {
  for (index_t i = 0; i < count; ++i) numbers[i] = remainder_of_bits(v, bits_at(numbers + i));
}

bool decode_long(const Variable& v, double* numbers, index_t count) {
  bool is_rounded = false;
  for (index_t i = 0; i < count; ++i) {
    const std::uint64_t bits = bits_at(numbers + i);
    const double number = v.is_unsigned ? static_cast<double>(bits)
                                        : static_cast<double>(static_cast<std::int64_t>(bits));
    const bool is_missing = contains(v.missing_bits, bits) || contains(v.missing_rounded, number);
    is_rounded |= !is_missing && remainder_of_bits(v, bits) != 0;
    numbers[i] = is_missing ? std::numeric_limits<double>::quiet_NaN() : number;
  }
  scale(v, numbers, count);
  return is_rounded;
}

bool narrow(const double* numbers, index_t count, float* out) {
  bool fits = true;
  for (index_t i = 0; i < count; ++i) {
    out[i] = static_cast<float>(numbers[i]);
    fits = fits && (std::isfinite(out[i]) || !std::isfinite(numbers[i]));
  }
  return fits;
}

TextPairs record_of(const Variable& variable) {
  TextPairs record;
  std::string missing;
  for (const double value : variable.missing)
    missing += fmt::format("{}{}", missing.empty() ? "" : " ", value);
  for (const std::complex<double>& value : variable.missing_complex)
    missing += fmt::format("{}{}{:+}j", missing.empty() ? "" : " ", value.real(), value.imag());
  if (!missing.empty()) record.emplace_back("netcdf_missing_value", missing);
  if (variable.default_fill)
    record.emplace_back("netcdf_default_fill", fmt::format("{}", *variable.default_fill));
  if (variable.reverses_sign)
    record.emplace_back("netcdf_unsigned", variable.lowest == 0 ? "yes" : "no");
  if (variable.scale_factor)
    record.emplace_back("netcdf_scale_factor", fmt::format("{}", *variable.scale_factor));
  if (variable.add_offset)
    record.emplace_back("netcdf_add_offset", fmt::format("{}", *variable.add_offset));
  return record;
}

}  // namespace qrtool::hdf5
