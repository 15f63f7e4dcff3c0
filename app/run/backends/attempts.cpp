// SPDX-License-Identifier: Apache-2.0
// attempts.cpp: what counts as a failure of a device.
#include "app/run/backends/attempts.hpp"

#include <fmt/format.h>

#include "app/process/console.hpp"

namespace qrtool {

void Attempts::go_on(const Error& error, bool had_device) {
  const bool is_of_device =
      error.code() == ExitCode::device || (had_device && error.code() == ExitCode::limit);
  if (!is_of_device || !may_fall_back_ || !is_first_) throw;
  print_message(fmt::format("note: {}; the CPU does it", error.what()));
  request_.name = "cpu";
  is_first_ = false;
}

}  // namespace qrtool
