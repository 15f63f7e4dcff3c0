// SPDX-License-Identifier: Apache-2.0
// foreign.hpp: refuses files of formats that cannot be read, and says how to get to one that can.
#pragma once

#include <string>
#include <string_view>

namespace qrtool {

/// Refuses files that MATLAB, Octave, R, Python, pandas and netCDF-3 write. The first 128 bytes,
/// decompressed, are enough to know them. `path`: the file, or "-". Errors: InputError.
void refuse_foreign_format(std::string_view head, const std::string& path);
/// Refuses a name of R or of a pickle of Python. Errors: InputError.
void refuse_foreign_name(const std::string& path);

}  // namespace qrtool
