// SPDX-License-Identifier: Apache-2.0
// compare.hpp: the times of a run beside those of an earlier one (`bench --compare`).
#pragma once

#include <map>
#include <string>
#include <vector>

#include "app/bench/table/table.hpp"

namespace qrtool {

class Comparison {
 public:
  /// Reads a file of --export-json, and checks that it has all cases of `result`, which need not be
  /// measured yet. Errors: InputError if it is no such file or lacks a case, UsageError if it
  /// measures something else.
  Comparison(const std::string& path, const BenchResult& result);

  /// Returns one line for each case whose median is more than 1 + tolerance times the earlier one.
  /// Errors: LimitError if a case of `result` has no time.
  std::vector<std::string> slower(const BenchResult& result, double tolerance) const;

 private:
  std::string path_;
  std::map<std::string, double> medians_;  // in seconds, by the text of a case
};

}  // namespace qrtool
