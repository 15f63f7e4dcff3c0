// SPDX-License-Identifier: Apache-2.0
// time_units.cpp: the units and calendars that CF and UDUNITS know, by the names that they know.
#include "io/source/time_units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool {
namespace {

constexpr std::string_view since = " since ";

constexpr std::array<std::string_view, 38> equal_units{
    "days",        "day",          "d",           "hours",    "hour",
    "hr",          "hrs",          "h",           "minutes",  "minute",
    "min",         "mins",         "seconds",     "second",   "s",
    "sec",         "secs",         "weeks",       "week",     "milliseconds",
    "millisecond", "millisec",     "millisecs",   "msec",     "msecs",
    "ms",          "microseconds", "microsecond", "microsec", "microsecs",
    "us",          "nanoseconds",  "nanosecond",  "nanosec",  "nanosecs",
    "ns",          "common_years", "common_year"};
// Units whose length depends on the calendar.
constexpr std::array<std::string_view, 2> months{"months", "month"}, years{"years", "year"};

/// A calendar, and whether all of its months or years are as long.
struct Calendar {
  std::string_view name;
  bool has_equal_months = false, has_equal_years = false;
};
constexpr std::array calendars{
    Calendar{.name = "standard"},
    Calendar{.name = "gregorian"},
    Calendar{.name = "proleptic_gregorian"},
    Calendar{.name = "noleap", .has_equal_years = true},
    Calendar{.name = "365_day", .has_equal_years = true},
    Calendar{.name = "360_day", .has_equal_months = true, .has_equal_years = true},
    Calendar{.name = "julian"},
    Calendar{.name = "all_leap", .has_equal_years = true},
    Calendar{.name = "366_day", .has_equal_years = true},
    Calendar{.name = "utc"},
    Calendar{.name = "tai"},
};

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  for (char& letter : small)
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  return small;
}

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::ranges::find(names, name) != names.end();
}

/// An attribute whose value the conventions do not know.
struct Unknown {
  const char* attribute;
  std::string text, meant;  // `meant` in its place is right
};

[[noreturn]] void refuse(const std::string& file, std::string_view name, const Unknown& unknown) {
  const std::string dataset = escape(name.substr(0, name.find('[')));
  throw InputError(
      fmt::format("{}: {} has the {} '{}', which the CF conventions do not know", escape(file),
                  dataset, unknown.attribute, escape(unknown.text)),
      fmt::format("write the right one, for example h5py.File('{}', 'r+')['{}'].attrs['{}'] = "
                  "'{}'; or --raw-values reads all files as they are stored",
                  escape(file), dataset, unknown.attribute, escape(unknown.meant)));
}

/// Returns the name that is nearest to `word`, or the first name if none is near.
std::string nearest_or_first(std::string_view word, std::span<const std::string_view> names) {
  const std::string_view near = nearest(word, names);
  return std::string(near.empty() ? names.front() : near);
}

Calendar calendar_of(const TextPairs& details, const std::string& file, std::string_view name) {
  const std::string word = word_of(details, time_calendar_name);
  const auto found = std::ranges::find(calendars, in_small_letters(word), &Calendar::name);
  if (found != calendars.end()) return *found;
  std::array<std::string_view, calendars.size()> names;
  std::ranges::transform(calendars, names.begin(), &Calendar::name);
  refuse(file, name, {"calendar", word, nearest_or_first(word, names)});
}

}  // namespace

TextPairs time_details(std::string_view units, std::string_view calendar) {
  if (in_small_letters(units).find(since) == std::string::npos) return {};
  return {{time_units_name, std::string(units)},
          {time_calendar_name, calendar.empty() ? "standard" : std::string(calendar)}};
}

std::string check_time(const TextPairs& details, const std::string& file, std::string_view name) {
  const std::string units = word_of(details, time_units_name);
  if (units.empty()) return {};
  const std::string small = in_small_letters(units);
  const std::size_t end = small.find(since);
  const std::string unit = small.substr(0, end);
  const bool counts_months = contains(months, unit), counts_years = contains(years, unit);
  if (!contains(equal_units, unit) && !counts_months && !counts_years)
    refuse(file, name, {"units", units, nearest_or_first(unit, equal_units) + units.substr(end)});
  const Calendar calendar = calendar_of(details, file, name);
  const bool are_equal = counts_months  ? calendar.has_equal_months
                         : counts_years ? calendar.has_equal_years
                                        : true;
  if (are_equal) return {};
  return fmt::format(
      "{}: it counts {}, which are not equally long in the calendar {}; a slope is "
      "per step of the count",
      escape(name), unit, calendar.name);
}

}  // namespace qrtool
