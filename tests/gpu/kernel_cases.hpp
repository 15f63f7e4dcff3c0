// SPDX-License-Identifier: Apache-2.0
// kernel_cases.hpp: small problems that together launch the kernels of a device: every variant in
// every type, mode and sign that it takes; matrices in device memory of a caller; least squares by
// every body, with and without weights, gaps and a ridge.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "gpu/pipeline/opencl_backend.hpp"

namespace qrtool::test {

struct KernelCase {
  std::string name;
  /// The bytes of all results.
  std::function<std::string(OpenclBackend&)> run;
  /// Whether it is the first of its kind: a variant, a body, a way to solve.
  bool is_first = false;
};

/// All that the device of `backend` takes, each kind in the order of its list.
std::vector<KernelCase> kernel_cases(OpenclBackend& backend);

}  // namespace qrtool::test
