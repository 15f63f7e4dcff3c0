// SPDX-License-Identifier: Apache-2.0
// earlier_output.cpp: counts the statuses in a report, or in the table of solve --by.
#include "app/run/files/earlier_output.hpp"

#include "core/error.hpp"
#include "core/report/report.hpp"
#include "io/csv/group_table.hpp"
#include "io/open/contents.hpp"

namespace qrtool {

EarlierOutput find_earlier(const std::string& output) {
  EarlierOutput found;
  const auto count = [&](Status status) {
    const bool has_failed = status == Status::above_bar || status == Status::non_finite ||
                            status == Status::r_overflows;
    ++(has_failed ? found.failed : found.passed);
  };
  try {
    for (const std::string& word : statuses_of_groups(output))
      for (std::size_t s = 0; s < solution_status_names.size(); ++s)
        if (word == solution_status_names[s]) count(static_cast<Status>(s));
    if (found.passed + found.failed > 0) return found;
    for (const StoredOutput& stored : read_stored_outputs(output))
      if (const ReportNumbers* status = stored.find("status"))
        for (const double value : status->values) count(static_cast<Status>(value));
  } catch (const InputError&) {
    return {};
  }
  return found;
}

}  // namespace qrtool
