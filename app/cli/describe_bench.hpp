// SPDX-License-Identifier: Apache-2.0
// describe_bench.hpp: describes the options of `qrtool bench`.
#pragma once

#include <string_view>

#include "app/options/bench_options.hpp"

namespace qrtool {

class CommandLine;

extern const std::string_view bench_about;
/// Describe the options that choose cases, and the options for the files of the result. Other
/// commands share --backend, --memory and the like.
void describe_cases(CommandLine& line, BenchOptions& options);
void describe_exports(CommandLine& line, BenchOptions& options);
/// Checks the options. Errors: UsageError, LimitError.
void check(const BenchOptions& options);

}  // namespace qrtool
