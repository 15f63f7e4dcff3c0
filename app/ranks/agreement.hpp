// SPDX-License-Identifier: Apache-2.0
// agreement.hpp: what the ranks of a run agree on before any of them works. Where one differs in
// something that decides the result, all end with the same error.
#pragma once

#include <string>
#include <vector>

#include "app/options/print_options.hpp"
#include "core/backend/backend.hpp"
#include "core/machine/comm.hpp"
#include "core/plan/plan.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// Returns the text of rank 0 on every rank.
std::string text_of_root(Comm& comm, std::string text);

/// Checks that all ranks were given the same options. The first entry of `options` is the command,
/// stored as the name of an option. Errors: UsageError if they differ.
void agree_on_options(Comm& comm, const std::vector<GivenOption>& options);

/// Compares the inputs of the ranks: shape, type and order, the part of the file, and a hash of the
/// file's content. The file's name may differ, since each machine may have a copy of its own.
/// `path`: the name that the rank was given. Errors: InputError if two ranks differ.
void agree_on_source(Comm& comm, const Reader& input, const std::string& path);

/// Compares the backends of the ranks. Errors: DeviceError if they differ.
void agree_on_backend(Comm& comm, const Backend& backend);

/// Gives every rank the variant and the sizes of rank 0's plan. A rank's own plan may differ,
/// because the free memory changes from moment to moment. Errors: DeviceError if a rank does not
/// have the variant, or has a device that would run it with other parameters.
void agree_on_plan(Comm& comm, const Backend& backend, Plan& plan);

}  // namespace qrtool
