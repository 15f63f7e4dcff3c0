// SPDX-License-Identifier: Apache-2.0
// agreement.hpp: what the ranks of a run agree on before any of them works. Where one differs in
// something that decides the result, all end with the same error.
#pragma once

#include <string>

#include "app/cli/options.hpp"
#include "core/backend.hpp"
#include "core/comm.hpp"

namespace qrtool {

/// The text of rank 0 on every rank.
std::string text_of_root(Comm& comm, std::string text);

/// Errors: UsageError where ranks were given different options for what to compute.
void agree_on_options(Comm& comm, const FactorOptions& options);

/// Errors: DeviceError where the ranks have chosen different backends.
void agree_on_backend(Comm& comm, const Backend& backend);

/// Gives every rank the variant and the sizes of rank 0's plan. A rank's own plan may differ, as
/// the free memory changes from moment to moment. Errors: DeviceError where a rank does not have
/// the variant, or has a device that would run it with other parameters.
void agree_on_plan(Comm& comm, const Backend& backend, Plan& plan);

}  // namespace qrtool
