// SPDX-License-Identifier: Apache-2.0
// layer.cpp: the library as a layer of OpenCL (OPENCL_LAYERS). The binary of a program is then its
// source with the options of its build, so that PoCL builds each kernel once for both drivers, and
// no kernel that does not run.
#include <CL/cl_layer.h>

#include <cstring>

#include "tests/support/cuda_stand_in/state.hpp"

namespace qrtool::cuda {
namespace {

const _cl_icd_dispatch* target = nullptr;
_cl_icd_dispatch layer;

std::string text_of(cl_program program, cl_program_info what) {
  std::size_t bytes = 0;
  target->clGetProgramInfo(program, what, 0, nullptr, &bytes);
  std::string text(bytes, '\0');
  target->clGetProgramInfo(program, what, bytes, text.data(), nullptr);
  return text.c_str();
}

/// The options of builds, since PoCL reports more than it was given.
struct Builds {
  std::mutex mutex;
  std::map<cl_program, std::string> options;
};
Builds& builds() {
  static Builds& made = *new Builds;
  return made;
}

cl_int CL_API_CALL build_program(cl_program program, cl_uint count, const cl_device_id* devices,
                                 const char* options, void(CL_CALLBACK* notify)(cl_program, void*),
                                 void* data) {
  {
    const std::lock_guard lock(builds().mutex);
    builds().options[program] = options == nullptr ? "" : options;
  }
  return target->clBuildProgram(program, count, devices, options, notify, data);
}

std::string options_of(cl_program program) {
  const std::lock_guard lock(builds().mutex);
  return builds().options[program];
}

cl_int CL_API_CALL get_program_info(cl_program program, cl_program_info what, std::size_t bytes,
                                    void* value, std::size_t* needed) {
  const bool is_size = what == CL_PROGRAM_BINARY_SIZES, is_binary = what == CL_PROGRAM_BINARIES;
  if (!is_size && !is_binary) return target->clGetProgramInfo(program, what, bytes, value, needed);
  // The program is one of a single device.
  const std::string source = source_image(text_of(program, CL_PROGRAM_SOURCE), options_of(program));
  if (needed != nullptr) *needed = sizeof(void*);
  if (value == nullptr) return CL_SUCCESS;
  if (bytes < sizeof(void*)) return CL_INVALID_VALUE;
  if (is_size)
    *static_cast<std::size_t*>(value) = source.size();
  else if (*static_cast<char**>(value) != nullptr)
    std::memcpy(*static_cast<char**>(value), source.data(), source.size());
  return CL_SUCCESS;
}

}  // namespace
}  // namespace qrtool::cuda

extern "C" {

CL_API_ENTRY cl_int CL_API_CALL clGetLayerInfo(cl_layer_info what, std::size_t size, void* value,
                                               std::size_t* needed) {
  if (what != CL_LAYER_API_VERSION) return CL_INVALID_VALUE;
  if (value != nullptr && size < sizeof(cl_layer_api_version)) return CL_INVALID_VALUE;
  if (value != nullptr) *static_cast<cl_layer_api_version*>(value) = CL_LAYER_API_VERSION_100;
  if (needed != nullptr) *needed = sizeof(cl_layer_api_version);
  return CL_SUCCESS;
}

CL_API_ENTRY cl_int CL_API_CALL clInitLayer(cl_uint entries, const _cl_icd_dispatch* dispatch,
                                            cl_uint* entries_needed, const _cl_icd_dispatch** own) {
  using namespace qrtool::cuda;
  target = dispatch;
  std::memcpy(static_cast<void*>(&layer), dispatch, entries * sizeof(void*));
  layer.clBuildProgram = build_program;
  layer.clGetProgramInfo = get_program_info;
  *own = &layer;
  *entries_needed = sizeof(layer) / sizeof(void*);
  return CL_SUCCESS;
}

}  // extern "C"
