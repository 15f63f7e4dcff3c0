// SPDX-License-Identifier: Apache-2.0
// allocate_host.hpp: a function that gives host memory, such as Backend::allocate.
#pragma once

#include <cstddef>
#include <functional>

#include "core/batch.hpp"

namespace qrtool {

using AllocateHost = std::function<HostMemory(std::size_t bytes)>;

}  // namespace qrtool
