// SPDX-License-Identifier: Apache-2.0
// opencl.hpp: the only file that includes OpenCL's C++ binding. The host needs only OpenCL 1.2.
#pragma once

#define CL_HPP_ENABLE_EXCEPTIONS
#define CL_HPP_MINIMUM_OPENCL_VERSION 120
#define CL_HPP_TARGET_OPENCL_VERSION 120
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/opencl.hpp>
