// SPDX-License-Identifier: Apache-2.0
// print_options.hpp: the options that every command has: what it prints, and where.
#pragma once

#include <string>
#include <vector>

#include "app/cli/option_values.hpp"
#include "app/process/progress.hpp"

namespace qrtool {

struct PrintOptions {
  bool json = false, quiet = false, verbose = false;
  ProgressMode progress = ProgressMode::automatic;
  std::string log;  // FILE; empty: none
  // The options of the line that decide its result. The ranks of a run compare them.
  std::vector<GivenOption> deciding = {};

  /// When a progress line is shown.
  ProgressMode progress_mode() const { return quiet ? ProgressMode::never : progress; }
};

}  // namespace qrtool
