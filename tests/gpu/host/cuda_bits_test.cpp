// SPDX-License-Identifier: Apache-2.0
// cuda_bits_test.cpp: kernels give the same bits by both drivers of a device.
#include <string>

#include "tests/gpu/cuda_fixture.hpp"
#include "tests/gpu/kernel_cases.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::cuda_bits_test {
namespace {

TEST(CudaBits, AreThoseOfOpencl) {
  SKIP_WITHOUT_CUDA();
  const DeviceInfo of_cuda = *cuda_device();
  DeviceInfo of_opencl = of_cuda;
  of_opencl.cuda_ordinal = -1;
  OpenclBackend by_cuda(of_cuda, test_options()), by_opencl(of_opencl, test_options());
  const bool takes_all = std::getenv("QRTOOL_TEST_ALL") != nullptr;
  int firsts = 0;
  for (const KernelCase& each : kernel_cases(by_cuda)) {
    constexpr int share = 10;  // of the first cases of all kernels, on ordinary days
    if (!takes_all && (!each.is_first || firsts++ % share != 0)) continue;
    SCOPED_TRACE(each.name);
    const std::string expected = each.run(by_opencl), found = each.run(by_cuda);
    EXPECT_FALSE(found.empty());
    EXPECT_TRUE(found == expected);
  }
}

}  // namespace
}  // namespace qrtool::test::cuda_bits_test
