// SPDX-License-Identifier: Apache-2.0
// print_options.hpp: the options that every command has: what it prints, and where.
#pragma once

#include <string>
#include <vector>

#include "app/process/progress.hpp"

namespace qrtool {

/// An option of the command line with its value as it was written; a flag has the value "".
struct GivenOption {
  std::string name, value;
};

struct PrintOptions {
  bool json = false, quiet = false, verbose = false;
  ProgressMode progress = ProgressMode::automatic;
  std::string log;  // FILE; empty: none
  // The options of the line that decide its result. The ranks of a run compare them.
  std::vector<GivenOption> deciding = {};

  /// Returns when a progress line is shown.
  ProgressMode progress_mode() const { return quiet ? ProgressMode::never : progress; }
};

}  // namespace qrtool
