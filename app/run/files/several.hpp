// SPDX-License-Identifier: Apache-2.0
// several.hpp: runs on several datasets, where one that cannot be read does not end the others.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>

#include "core/machine/comm.hpp"

namespace qrtool {

/// Calls body() and returns its failure, which is printed. Errors that concern all datasets are
/// thrown on: those of the output, and internal ones.
std::optional<Failure> attempt(const std::function<void()>& body);

/// Schema qrtool.error/1.
nlohmann::ordered_json to_json(const Failure& failure);

}  // namespace qrtool
