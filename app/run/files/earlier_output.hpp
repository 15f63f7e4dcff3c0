// SPDX-License-Identifier: Apache-2.0
// earlier_output.hpp: what an earlier run has left under the name of an output.
#pragma once

#include <string>

#include "core/batch.hpp"

namespace qrtool {

/// The results in an output of this tool, by its report: those that are above their bar, not finite
/// or beyond their type have failed. Both are 0 where there is no such output.
struct EarlierOutput {
  index_t passed = 0, failed = 0;
};
EarlierOutput find_earlier(const std::string& output);

}  // namespace qrtool
