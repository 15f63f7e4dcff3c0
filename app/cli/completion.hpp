// SPDX-License-Identifier: Apache-2.0
// completion.hpp: words that a shell may offer. The list of options comes from CommandLine; here
// are the words that depend on the machine.
#pragma once

#include <string>
#include <vector>

namespace qrtool {

/// A word that may follow, and its meaning, which may be empty.
struct Candidate {
  std::string word, description = {};
};

/// Return the values that --device and --variant may have on this machine.
std::vector<Candidate> device_candidates();
std::vector<Candidate> variant_candidates();

/// Returns one line for each candidate that begins with `typed`: the word, a tab and the
/// description.
std::string candidate_lines(const std::vector<Candidate>& candidates, const std::string& typed);

}  // namespace qrtool
