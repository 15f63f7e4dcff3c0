// SPDX-License-Identifier: Apache-2.0
// members.hpp: opens the member of a .npz that is meant.
#pragma once

#include <memory>

#include "io/read/reader.hpp"

namespace qrtool::npy {

/// Opens the member that `spec.dataset` names, with or without ".npy", or the only one that holds
/// matrices. Errors: InputError; the message lists the members.
std::unique_ptr<Reader> open_npz(const InputSpec& spec);

}  // namespace qrtool::npy
