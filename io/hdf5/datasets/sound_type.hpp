// SPDX-License-Identifier: Apache-2.0
// sound_type.hpp: refuses types of numbers that no program writes. HDF5 trusts their fields.
#pragma once

#include "io/hdf5/datasets/dataset.hpp"

namespace qrtool::hdf5 {

/// Refuses a type of numbers that no program writes: without bytes, with bits outside its bytes, or
/// with an exponent or a mantissa that is not like IEEE 754's. Errors: InputError.
void require_sound_type(const InputFile& file, const Dataset& dataset);

}  // namespace qrtool::hdf5
