// SPDX-License-Identifier: Apache-2.0
// calls.cpp: errors as codes and texts.
#include "app/capi/calls.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <system_error>

#include "core/report/report.hpp"
#include "gpu/host/device.hpp"

namespace qrtool::capi {
namespace {

/// The last error text of a thread. Its size is fixed and it has no destructor, since a thread may
/// have no memory left when an error is recorded.
thread_local char last_error[2048];

int code_of(ExitCode code) { return static_cast<int>(code); }

}  // namespace

int failed(int code, std::string_view what) noexcept {
  copy_text(what, last_error);
  // Some texts, such as a build log, have several lines.
  std::replace(std::begin(last_error), std::end(last_error), '\n', ' ');
  return code;
}

void copy_text(std::string_view text, std::span<char> to) noexcept {
  const std::size_t length = std::min(text.size(), to.size() - 1);
  std::copy_n(text.data(), length, to.data());
  std::fill(to.begin() + static_cast<std::ptrdiff_t>(length), to.end(), '\0');
}

namespace {

int failed_by_limit(const LimitError& error) noexcept {
  try {
    return failed(QRTOOL_NO_MEMORY,
                  std::string(error.what()) + "; raise memory_bytes of the context");
  } catch (const std::bad_alloc&) {
    return failed(QRTOOL_NO_MEMORY, error.what());
  }
}

}  // namespace

int failed_by_exception() noexcept {
  try {
    throw;
  } catch (const CodeError& error) {
    return failed(error.code, error.what);
  } catch (const LimitError& error) {
    return failed_by_limit(error);
  } catch (const ForkError& error) {
    return failed(QRTOOL_FORKED, error.what());
  } catch (const Error& error) {
    return failed(code_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return failed(QRTOOL_NO_MEMORY, "out of memory");
  } catch (const std::system_error& error) {
    const bool is_thread = error.code() == std::errc::resource_unavailable_try_again;
    return failed(is_thread ? QRTOOL_NO_MEMORY : QRTOOL_INTERNAL, error.what());
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

const char* qrtool_error(void) { return qrtool::capi::last_error; }

const char* qrtool_status_name(int status) {
  const auto& names = qrtool::solution_status_names;
  if (status < 0 || status >= static_cast<int>(names.size())) return "";
  return status == QRTOOL_OVERFLOWS ? "overflows" : names[static_cast<std::size_t>(status)].data();
}
