// SPDX-License-Identifier: Apache-2.0
// verify_solutions.hpp: the part of `qrtool verify` that takes three files, and what `verify` says
// at the end, of factors and of solutions.
#pragma once

#include <optional>
#include <string>

#include "app/options/options.hpp"
#include "app/run/verdict/outcome.hpp"

namespace qrtool {

/// options.input is A, or a table; options.factors is B; options.solutions holds X.
ExitCode verify_solutions(const VerifyOptions& options);

/// Returns the options completed by those that a file of solutions records. Errors: UsageError if
/// it has weights, or a response, that must be given.
SystemOptions completed_options(const SystemOptions& options, const std::string& solutions);

/// The most failures that the text lists; --all lists everything.
inline constexpr std::size_t listed_failures = 10;

/// Returns the outcome without its document. `head`: how the errors were measured, and the worst
/// ones; `file`: the file that is verified.
Outcome answer_of(const VerifyOptions& options, const Verdict& verdict, std::string head,
                  const std::string& file);

}  // namespace qrtool
