// SPDX-License-Identifier: Apache-2.0
// writer.hpp: writes factors as arrays of NumPy: a set of .npy files, or the members of a .npz.
#pragma once

#include <memory>
#include <string>

#include "io/write/writer.hpp"

namespace qrtool::npy {

/// The member of a .npz that holds the root attributes as a JSON string.
inline constexpr const char* record_member = "qrtool";
/// The ending of an attribute with the largest value that passes: "backward_error_bar".
inline constexpr const char* bar_ending = "_bar";

/// Does create_output for out.npy: out.Q.npy, out.R.npy, out.report.json (the report last).
std::unique_ptr<Writer> create_npy(const OutputSpec& spec);

/// Does create_output for out.npz. Its members are not compressed. Each grows in a file without a
/// name, and finish() brings them together.
std::unique_ptr<Writer> create_npz(const OutputSpec& spec);

}  // namespace qrtool::npy
