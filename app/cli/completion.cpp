// SPDX-License-Identifier: Apache-2.0
// completion.cpp: lists devices and variants, and formats candidates.
#include "app/cli/completion.hpp"

#include <fmt/format.h>

#include "app/engine/opencl.hpp"
#include "app/run/backends/opencl_process.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/text.hpp"

namespace qrtool {

std::vector<Candidate> device_candidates() {
  std::vector<Candidate> candidates;
  for (const DeviceInfo& device : opencl_devices())
    candidates.push_back({std::to_string(device.index), escape(device.name)});
  candidates.push_back({"all", "every GPU that is like the first"});
  return candidates;
}

std::vector<Candidate> variant_candidates() {
  std::vector<Candidate> candidates;
  for (const auto& variants : {cpu_variants(), list_opencl_variants()})
    for (const Variant& variant : variants)
      candidates.push_back({std::string(variant.name), std::string(variant.summary)});
  return candidates;
}

std::string candidate_lines(const std::vector<Candidate>& candidates, const std::string& typed) {
  std::string lines;
  for (const auto& [word, description] : candidates)
    if (word.starts_with(typed)) lines += fmt::format("{}\t{}\n", word, description);
  return lines;
}

}  // namespace qrtool
