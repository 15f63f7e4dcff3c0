// SPDX-License-Identifier: Apache-2.0
// kernel_text.hpp: changes of the text of a kernel file before it is compiled. Line numbers stay
// those of the file.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace qrtool {

/// Removes `unroll` pragmas for CPUs. Unrolled loops over register tiles take the CPU compiler ten
/// times as long and are not faster. `unroll 1` is kept.
std::string without_unrolling(std::string_view text);

/// Removes all kernels but those of these names, and those whose name is a macro. A kernel begins
/// with a line "__kernel .." and ends with the next line "}".
std::string with_kernels(std::string_view text, const std::set<std::string>& names);

}  // namespace qrtool
