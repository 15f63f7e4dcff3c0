// SPDX-License-Identifier: Apache-2.0
// start_session.hpp: a session that is made before anybody needs it.
#pragma once

#include <string_view>

namespace qrtool {

/// What the drivers find in the environment of the process is settled. To be called before a second
/// thread may read the environment.
void prepare_drivers();

/// Makes the session of the first device that `wanted` names (gpu/host/device.hpp). Where its
/// context fails, session_for() throws that error when it is called for the first time. Every other
/// failure is left to whoever looks for the device next.
void start_session(std::string_view wanted) noexcept;

}  // namespace qrtool
