// SPDX-License-Identifier: Apache-2.0
// comm.cpp: turns exceptions into failures that can be sent to other ranks, and back.
#include "core/machine/comm.hpp"

#include <system_error>

namespace qrtool {

Failure Failure::current() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what(), error.hint()};
  } catch (const std::bad_alloc&) {
    return {ExitCode::limit, "out of memory", "try a smaller --memory or fewer --threads"};
  } catch (const std::exception& error) {
    return {ExitCode::internal, error.what(), ""};
  } catch (...) {
    return {ExitCode::internal, "unknown exception", ""};
  }
}

void Failure::raise() const {
  switch (code) {
    case ExitCode::usage:
      throw UsageError(what, hint);
    case ExitCode::input:
      throw InputError(what, hint);
    case ExitCode::device:
      throw DeviceError(what, hint);
    case ExitCode::output:
      throw OutputError(what, hint);
    case ExitCode::limit:
      throw LimitError(what, hint);
    default:
      throw InternalError(what, hint);
  }
}

}  // namespace qrtool
