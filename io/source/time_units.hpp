// SPDX-License-Identifier: Apache-2.0
// time_units.hpp: what the numbers of a time coordinate of netCDF count, such as "days since
// 1950-01-01" in a calendar (CF conventions, section 4.4).
//
// A number is the time that has passed since a date. No calendar changes it: the difference of two
// numbers is the time between their dates, in whatever calendar the dates are written.
#pragma once

#include <string>
#include <string_view>

#include "io/source/csv_options.hpp"

namespace qrtool {

/// Under these names Source::details holds the units and the calendar of a vector.
inline constexpr const char* time_units_name = "netcdf_time_units";
inline constexpr const char* time_calendar_name = "netcdf_time_calendar";

/// Returns the details of a variable with these attributes; none if it is no time coordinate.
/// Without an attribute the calendar is "standard".
TextPairs time_details(std::string_view units, std::string_view calendar);

/// Checks the details of a vector, the dataset `name` in `file`. Returns a note if its numbers
/// count months or years, which have unequal lengths in its calendar; else an empty text. Errors:
/// InputError if the conventions do not know the unit or the calendar.
std::string check_time(const TextPairs& details, const std::string& file, std::string_view name);

}  // namespace qrtool
