// SPDX-License-Identifier: Apache-2.0
// verify_answer.hpp: what `qrtool verify` says at the end, of factors and of solutions.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "app/options/options.hpp"
#include "core/batch.hpp"
#include "core/error.hpp"

namespace qrtool {

/// The most failures that the text lists; --all lists everything.
constexpr std::size_t listed_failures = 10;

struct VerifyAnswer {
  std::string worst;                     // how it was measured, and the worst errors, in lines
  std::vector<std::string> listed = {};  // a line for each matrix or solution that is listed
  std::string after_list = {};           // more lines
  std::string verdict;                   // the last line: how many pass
  index_t failed = 0;

  ExitCode exit_code() const { return failed > 0 ? ExitCode::answer_is_no : ExitCode::good; }
};

/// Prints the answer on standard output; with --quiet nothing but the verdict on failures, on
/// standard error. With --json the caller prints the answer.
void print_answer(const VerifyOptions& options, const VerifyAnswer& answer);

}  // namespace qrtool
