// SPDX-License-Identifier: Apache-2.0
// calls.hpp: what every function of qrtool.h does at its border: structs of any age come in, and no
// exception goes out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "app/capi/qrtool.h"
#include "core/error.hpp"

namespace qrtool::capi {

/// An error with a code that the program does not have.
struct CodeError {
  qrtool_code code;
  std::string what;
};

/// Keeps the text for qrtool_error() of this thread. Returns `code`.
int failed(int code, std::string_view what) noexcept;
/// A text, or as much of it as there is room for, and zeros.
void copy_text(std::string_view text, std::span<char> to) noexcept;
/// Returns the code and the text of the exception that is being handled.
int failed_by_exception() noexcept;

/// Calls body(), which returns a code, and turns exceptions into codes.
template <class Body>
int guarded(Body body) noexcept {
  try {
    return body();
  } catch (...) {
    return failed_by_exception();
  }
}

/// Throws UsageError unless all bytes are 0.
void require_zeros(const char* name, const std::byte* bytes, std::size_t count);

/// Copies a struct of the caller, whose first member is its size. Members that the caller does not
/// know are zero, and so are all for a null pointer. Errors: UsageError if no such struct has this
/// size, or if it asks for something that this library does not know.
template <class Struct>
Struct taken(const Struct* given, const char* name) {
  Struct own{};
  if (given == nullptr) return own;
  if (given->size < sizeof given->size)
    throw UsageError(std::string(name) + ": its member size is not set");
  const std::size_t known = given->size < sizeof own ? given->size : sizeof own;
  std::memcpy(&own, given, known);
  require_zeros(name, reinterpret_cast<const std::byte*>(given) + known, given->size - known);
  return own;
}

/// Throws UsageError if a number is not one of an enum's 0 .. last.
void require_within(const char* name, std::int32_t number, std::int32_t last);

}  // namespace qrtool::capi
