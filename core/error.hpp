// SPDX-License-Identifier: Apache-2.0
// error.hpp: one exception class per exit code. The class says who can repair the problem.
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace qrtool {

/// The exit codes of the process (qrtool(1), EXIT STATUS).
enum class ExitCode {
  good = 0,
  answer_is_no = 1,  // done, but a matrix is above its bar or not finite, or verify says no
  usage = 2,
  input = 3,
  device = 4,
  output = 5,
  limit = 6,  // memory or size
  internal = 7,
};

/// An error for the user. what() is one line, "subject: event, with values"; hint() is an action,
/// or empty. Text that came from a file must have passed through `escape` (text.hpp).
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& what, std::string hint)
      : std::runtime_error(what), code_(code), hint_(std::move(hint)) {}
  ExitCode code() const { return code_; }
  const std::string& hint() const { return hint_; }

 private:
  ExitCode code_;
  std::string hint_;
};

template <ExitCode Code>
class ErrorOf : public Error {
 public:
  explicit ErrorOf(const std::string& what, std::string hint = {})
      : Error(Code, what, std::move(hint)) {}
};

using UsageError = ErrorOf<ExitCode::usage>;
using InputError = ErrorOf<ExitCode::input>;
using DeviceError = ErrorOf<ExitCode::device>;
using OutputError = ErrorOf<ExitCode::output>;
using LimitError = ErrorOf<ExitCode::limit>;
using InternalError = ErrorOf<ExitCode::internal>;

}  // namespace qrtool
