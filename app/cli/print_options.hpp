// SPDX-License-Identifier: Apache-2.0
// print_options.hpp: what a command prints, and where; the same for every command.
#pragma once

#include <string>

#include "app/process/progress.hpp"

namespace qrtool {

struct PrintOptions {
  bool json = false, quiet = false, verbose = false;
  ProgressMode progress = ProgressMode::automatic;
  std::string log;  // FILE; empty: none

  /// When a progress line is shown.
  ProgressMode progress_mode() const { return quiet ? ProgressMode::never : progress; }
};

}  // namespace qrtool
