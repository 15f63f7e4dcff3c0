// SPDX-License-Identifier: Apache-2.0
// variable_record.hpp: the names by which outputs record how a variable of HDF5 or netCDF was read.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "io/source/csv_options.hpp"

namespace qrtool {

/// Recorded as "yes" if the stored numbers were read without conversion.
inline constexpr const char* raw_values_name = "netcdf_raw_values";
/// The attributes of an output that record how the stored numbers were converted, and what the user
/// chose.
inline constexpr std::array variable_names{"netcdf_missing_value", "netcdf_default_fill",
                                           "netcdf_unsigned",      "netcdf_scale_factor",
                                           "netcdf_add_offset",    raw_values_name};
/// Recorded as "yes" if the file does not say whether rows or columns are stored first.
inline constexpr const char* order_guessed_name = "hdf5_order_guessed";

/// Recorded as "yes" if a column of ones came before those of A, and as "skip" if rows with NaN
/// were left out.
inline constexpr const char *intercept_name = "matrix_intercept", *missing_name = "matrix_missing";

/// Returns the word that is recorded under a name, or an empty text.
inline std::string word_of(const TextPairs& record, std::string_view name) {
  const auto found = std::find_if(record.begin(), record.end(),
                                  [&](const auto& pair) { return pair.first == name; });
  return found == record.end() ? "" : found->second;
}

/// Returns all names that record how an input was read, text included.
inline std::vector<const char*> names_of_reading() {
  std::vector<const char*> names(csv_option_names.begin(), csv_option_names.end());
  names.insert(names.end(), variable_names.begin(), variable_names.end());
  names.insert(names.end(), {order_guessed_name, intercept_name, missing_name});
  return names;
}

}  // namespace qrtool
