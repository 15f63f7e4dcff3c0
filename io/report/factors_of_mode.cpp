// SPDX-License-Identifier: Apache-2.0
// factors_of_mode.cpp: compares the factors that there are with those of a mode.
#include "io/report/factors_of_mode.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool {

void require_factors_of_mode(const std::string& shown, const RecordedMode& recorded,
                             const StoredFactors& factors) {
  const std::string& mode = recorded.mode;
  const bool needs_v = mode == "raw", needs_r = !needs_v && !mode.empty();
  const bool needs_q = needs_r && mode != "r";
  const std::pair<const char*, bool> missing[] = {{"Q", needs_q && !factors.q},
                                                  {"R", needs_r && !factors.r},
                                                  {"P", recorded.is_pivoted && !factors.p},
                                                  {"V", needs_v && !factors.v},
                                                  {"tau", needs_v && !factors.tau}};
  for (const auto& [name, is_missing] : missing) {
    if (!is_missing) continue;
    throw InputError(fmt::format("{}: was written with mode {}{}, but holds no {}", shown,
                                 escape(mode), recorded.is_pivoted ? " and pivoted columns" : "",
                                 name));
  }
}

}  // namespace qrtool
