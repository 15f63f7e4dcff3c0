// SPDX-License-Identifier: Apache-2.0
// choice.hpp: messages about the names of which a file has several.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace qrtool {

/// Joins items for a message: "a, b, c and 12 more".
std::string list_text(const std::vector<std::string>& items);

/// Throws the InputError for a name that is none of `names`, as they stand in the file. `file`: its
/// escaped name. `what`: the kind of thing that is named: "dataset".
[[noreturn]] void throw_unknown(const std::string& file, std::string_view what,
                                const std::string& name, const std::vector<std::string>& names);

}  // namespace qrtool
