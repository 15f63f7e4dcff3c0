// SPDX-License-Identifier: Apache-2.0
// make_backend.hpp: which backend the command line means.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/backend.hpp"

namespace qrtool {

/// The user's --memory and --threads, or half of what is free and all cores.
Limits host_limits(std::optional<std::uint64_t> memory_bytes, int threads);

/// `name`: "auto" or "cpu". `variant`: empty, or BACKEND/NAME, which implies its backend.
/// Errors: UsageError where the two contradict each other or the variant's backend is unknown.
std::unique_ptr<Backend> make_backend(const std::string& name, const std::string& variant,
                                      const Limits& limits);

}  // namespace qrtool
