// SPDX-License-Identifier: Apache-2.0
// wall_time.cpp: the same columns for people and for machines.
#include "app/process/wall_time.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/join.hpp"
#include "core/text.hpp"

namespace qrtool {

std::string text_of(const WallTime& time) {
  std::vector<std::string> columns;
  for (const SecondsColumn& column : time.columns)
    if (column.seconds > 0)
      columns.push_back(
          fmt::format("{} {}{}", column.name, format_seconds(column.seconds), column.rate));
  return fmt::format("{}; {}total {}", join(columns, ", "),
                     time.overlap ? fmt::format("overlap {}, ", format_seconds(*time.overlap)) : "",
                     format_seconds(time.total));
}

nlohmann::ordered_json to_json(const WallTime& time) {
  nlohmann::ordered_json json;
  for (const SecondsColumn& column : time.columns) json[std::string(column.name)] = column.seconds;
  if (time.overlap) json["overlap"] = *time.overlap;
  json["total"] = time.total;
  return json;
}

}  // namespace qrtool
