// SPDX-License-Identifier: Apache-2.0
// several.cpp: keeps an error until all datasets have had their turn.
#include "app/run/files/several.hpp"

#include <nlohmann/json.hpp>

#include "app/process/console.hpp"

namespace qrtool {

std::optional<Failure> attempt(const std::function<void()>& body) {
  try {
    body();
    return std::nullopt;
  } catch (const Error& error) {
    if (error.code() == ExitCode::output || error.code() == ExitCode::internal) throw;
    print_failure(error.what());
    print_hint(error.hint());
    return Failure{.code = error.code(), .what = error.what(), .hint = error.hint()};
  }
}

nlohmann::ordered_json to_json(const Failure& failure) {
  using Json = nlohmann::ordered_json;
  return {{"schema", "qrtool.error/1"},
          {"version", QRTOOL_VERSION},
          {"message", failure.what},
          {"hint", failure.hint.empty() ? Json() : Json(failure.hint)},
          {"exit", static_cast<int>(failure.code)}};
}

}  // namespace qrtool
