// SPDX-License-Identifier: Apache-2.0
// calls.cpp: errors as codes and texts.
#include "app/capi/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <new>

#include "core/report.hpp"

namespace qrtool::capi {
namespace {

thread_local std::string last_error;

int code_of(ExitCode code) { return static_cast<int>(code); }

}  // namespace

int failed(int code, const std::string& what) noexcept {
  try {
    last_error = what;
    // A build log, say, has several lines.
    std::replace(last_error.begin(), last_error.end(), '\n', ' ');
  } catch (...) {
    last_error.clear();  // the code says enough
  }
  return code;
}

int failed_by_exception() noexcept {
  try {
    throw;
  } catch (const CodeError& error) {
    return failed(error.code, error.what);
  } catch (const LimitError& error) {
    return failed(QRTOOL_NO_MEMORY,
                  std::string(error.what()) + "; raise memory_bytes of the context");
  } catch (const Error& error) {
    return failed(code_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return failed(QRTOOL_NO_MEMORY, "out of memory");
  } catch (const std::exception& error) {
    return failed(QRTOOL_INTERNAL, error.what());
  } catch (...) {
    return failed(QRTOOL_INTERNAL, "an unknown exception");
  }
}

void require_zeros(const char* name, const std::byte* bytes, std::size_t count) {
  if (count > 4096 ||
      std::any_of(bytes, bytes + count, [](std::byte b) { return b != std::byte{}; }))
    throw UsageError(fmt::format(
        "{}: size is not that of such a struct, or it asks for what qrtool {} does not know", name,
        QRTOOL_VERSION));
}

void require_within(const char* name, std::int32_t number, std::int32_t last) {
  if (number < 0 || number > last)
    throw UsageError(fmt::format("{} is {}; it may be 0 to {}", name, number, last));
}

}  // namespace qrtool::capi

int qrtool_abi(void) { return QRTOOL_ABI; }

const char* qrtool_version(void) { return QRTOOL_VERSION; }

const char* qrtool_error(void) { return qrtool::capi::last_error.c_str(); }

const char* qrtool_status_name(int status) {
  const auto& names = qrtool::solution_status_names;
  if (status < 0 || status >= static_cast<int>(names.size())) return "";
  return status == QRTOOL_OVERFLOWS ? "overflows" : names[static_cast<std::size_t>(status)].data();
}
