// SPDX-License-Identifier: Apache-2.0
// rereadable.hpp: opens an input so that it can be read more than once, standard input too.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qrtool {

/// The name of standard input in messages.
inline constexpr std::string_view standard_input = "standard input";

/// Whether an argument means standard input.
inline bool is_standard_input(const std::string& path) { return path == "-"; }

/// Opens a file. For "-" it opens a copy of standard input, which is made once, in a temporary file
/// without a name in the folder `scratch` or, if that is empty, in the temporary folder. Returns a
/// descriptor that can be read at any offset and that the caller must close. Errors: InputError.
int open_rereadable(const std::string& path, const std::string& scratch = {});

/// Creates a file without a name in the folder `scratch` or, if that is empty, in the temporary
/// folder. It disappears when its descriptor is closed. `shown` is the input whose numbers it will
/// hold. Errors: OutputError.
int create_unnamed(const std::string& shown, const std::string& scratch = {});
/// Appends to a file of create_unnamed(). Errors: OutputError.
void append_all(const std::string& shown, int descriptor, const char* bytes, std::size_t size,
                const std::string& scratch = {});
[[noreturn]] void throw_cannot_be_kept(const std::string& shown, int error,
                                       const std::string& scratch = {});

}  // namespace qrtool
