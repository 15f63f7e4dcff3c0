// SPDX-License-Identifier: Apache-2.0
// complex_type.hpp: complex numbers as HDF5's compounds of two floating-point numbers, as h5py (r,
// i), MATLAB and Octave (real, imag) store them.
#pragma once

#include <optional>

#include "io/hdf5/structure/file.hpp"
#include "io/source/complex_form.hpp"

namespace qrtool::hdf5 {

/// Returns the names of the parts of a complex type, or nothing for any other type.
std::optional<PartNames> complex_parts(hid_t type);

/// Whether the parts of a complex type lie within it; HDF5 1.10 does not look.
bool has_parts_inside(hid_t complex);

/// Returns the type of the parts, which both have.
Handle part_type(hid_t complex);

/// Returns a compound of two numbers of the type `part`, without a gap. It is empty if HDF5 reports
/// an error.
Handle make_complex_type(hid_t part, const PartNames& names);

}  // namespace qrtool::hdf5
