// SPDX-License-Identifier: Apache-2.0
// start_session.hpp: a session that is made before anybody needs it.
#pragma once

#include "gpu/host/device.hpp"

namespace qrtool {

/// Sets what drivers read from the environment of the process. It must be called before a second
/// thread may read the environment.
void prepare_drivers();

/// Makes the session of a device. Where its context fails, session_for() throws that error when it
/// is called for the first time.
void start_session(const DeviceInfo& info);

}  // namespace qrtool
