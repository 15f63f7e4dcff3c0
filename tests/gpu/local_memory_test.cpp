// SPDX-License-Identifier: Apache-2.0
// local_memory_test.cpp: the local memory that a variant states equals what its kernels need, and
// on devices with little local memory the plan chooses variants that fit.
#include <algorithm>
#include <set>

#include "core/plan/plan.hpp"
#include "gpu/estimate/programs.hpp"
#include "gpu/gram/gram.hpp"
#include "gpu/gram/tiles/gram_tiles.hpp"
#include "gpu/host/opencl.hpp"
#include "gpu/host/session.hpp"
#include "gpu/reflectors/blocked/blocked.hpp"
#include "gpu/reflectors/large/large.hpp"
#include "gpu/registry.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::local_memory_test {
namespace {

constexpr index_t sides[][2] = {
    {1, 1},    {1, 7},     {9, 1},     {5, 4},     {8, 8},    {16, 16}, {17, 33},   {33, 32},
    {64, 64},  {65, 63},   {100, 20},  {130, 65},  {300, 10}, {512, 3}, {128, 128}, {1023, 5},
    {1100, 2}, {4100, 33}, {5000, 70}, {210, 200}, {40, 6},   {96, 80}, {140, 129}, {100, 90}};

/// All problems that the tests below use.
std::vector<Problem> problems() {
  std::vector<Problem> list;
  for (const auto& [m, n] : sides) {
    for (const ElementType type : {ElementType::float32, ElementType::float64}) {
      for (const Mode mode : {Mode::reduced, Mode::r, Mode::raw}) {
        list.push_back({100, m, n, type, mode, Sign::positive});
      }
    }
  }
  return list;
}

/// Every problem needs a program, so that everyday tests take some: all sizes of some kind, where
/// the numbers are exact, and two shapes in the other modes.
bool is_taken(const Problem& p, std::size_t number) {
  if (takes_all()) return true;
  const bool is_of_all_modes = (p.m == 33 && p.n == 32) || (p.m == 130 && p.n == 65);
  return is_of_all_modes || (p.mode == Mode::reduced && number / 6 % 2 == 1);
}

std::vector<std::string> names_of_variants() {
  std::vector<std::string> names;
  for (const Variant& variant : opencl_variants()) names.emplace_back(variant.name);
  return names;
}

/// Returns the largest local memory of the program's kernels.
std::size_t most_local_bytes(const Program& program) {
  cl::Program of_opencl(static_cast<cl_program>(program.get()), /*retainObject=*/true);
  const cl::Device device = of_opencl.getInfo<CL_PROGRAM_DEVICES>().front();
  std::vector<cl::Kernel> kernels;
  of_opencl.createKernels(&kernels);
  std::size_t most = 0;
  for (const cl::Kernel& kernel : kernels) {
    const auto bytes = kernel.getWorkGroupInfo<CL_KERNEL_LOCAL_MEM_SIZE>(device);
    most = std::max(most, static_cast<std::size_t>(bytes));
  }
  return most;
}

class LocalMemory : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};

TEST_P(LocalMemory, IsAsStated) {
  const auto named = [](const GpuVariant& v) { return v.plan.name == GetParam(); };
  const GpuVariant& variant = *std::ranges::find_if(gpu_variants(), named);
  ASSERT_NE(variant.local_bytes, nullptr);
  Session& session = session_for(device_under_test());
  const Limits limits = backend().limits();
  std::set<Defines> seen;
  std::size_t number = 0;
  for (Problem p : problems()) {
    if (!variant.plan.is_for(p.type)) p.type = complex_of(p.type);
    if (!variant.plan.fits(p, limits).ok || !is_taken(p, number++)) continue;
    const Defines defines = defines_for(p, variant.plan.tune(p, limits), variant.computes_in(p));
    if (!seen.insert(defines).second) continue;
    const Program program = session.programs.get(variant.file, defines, GetParam());
    // PoCL removes the signs of R from the kernel, because `blocked` writes and never reads them.
    const std::size_t unread = GetParam() == "opencl/blocked" ? 32 * size_of(p.type) : 0;
    const std::size_t stated = variant.local_bytes(p, limits) - unread;
    // NVIDIA's driver adds 16 bytes of its own, and begins each of two arrays at a multiple of 16.
    const std::size_t of_driver = limits.is_cpu ? 0 : 16 + 2 * 15;
    const std::size_t taken = most_local_bytes(program) - of_driver;
    SCOPED_TRACE(testing::Message() << p.m << "x" << p.n << ", " << name_of(p.type));
    if (p.mode == Mode::reduced && limits.is_cpu) {
      EXPECT_EQ(stated, taken);
    } else {
      EXPECT_GE(stated, taken);  // compilers remove arrays that a mode does not use
    }
  }
  if (seen.empty()) GTEST_SKIP() << "takes no problem on this device";
}

INSTANTIATE_TEST_SUITE_P(Opencl, LocalMemory, testing::ValuesIn(names_of_variants()),
                         [](const testing::TestParamInfo<std::string>& test) {
                           return test.param.substr(test.param.find('/') + 1);
                         });

/// A GPU that has neither shuffles nor matrix units.
Limits plain_gpu(std::size_t local_bytes) {
  Limits limits;
  limits.host_bytes = std::size_t{8} << 30;
  limits.device_bytes = std::size_t{64} << 30;
  limits.max_allocation_bytes = std::size_t{16} << 30;
  limits.local_bytes = local_bytes;
  limits.max_group = 1024;
  limits.compute_units = 100;
  limits.is_cpu = false;
  limits.fast_float64 = true;
  return limits;
}

/// 32 KiB, the least that OpenCL allows of a full profile, is enough for every shape.
TEST(LocalMemoryOfDevices, SomeVariantTakesEveryShape) {
  std::vector<Problem> all = problems();
  for (const index_t n : {33, 127, 128, 129, 500, 2000, 4000, 9000}) {
    for (const index_t m : {20, 40, 127, 600, 2000, 20000}) {
      for (const ElementType type : {ElementType::float32, ElementType::float64}) {
        for (const Mode mode : {Mode::reduced, Mode::complete, Mode::r, Mode::raw})
          all.push_back({1, m, n, type, mode, Sign::lapack});
      }
    }
  }
  for (const std::size_t kib : {32, 48, 64}) {
    for (const Problem& p : all) {
      const Limits limits = plain_gpu(kib << 10);
      const Variant* const variant = least_costly(p, opencl_variants(), limits);
      ASSERT_NE(variant, nullptr) << kib << " KiB, " << p.m << "x" << p.n;
      EXPECT_TRUE(large_variant().plan.fits(p, limits).ok) << kib << " KiB, " << p.m << "x" << p.n;
    }
  }
}

TEST(LocalMemoryOfDevices, BlockedTakesFewerReflectorsAtATime) {
  const Problem p{100, 512, 128, ElementType::float32, Mode::reduced, Sign::positive};
  const Variant blocked = blocked_variant().plan;
  Limits nvidia = plain_gpu(48 << 10);
  nvidia.shuffle_lanes = 32;
  EXPECT_EQ(blocked.tune(p, nvidia).at("STAGE"), 16);
  EXPECT_EQ(blocked.tune(p, plain_gpu(48 << 10)).at("STAGE"), 8);
  EXPECT_TRUE(blocked.fits(p, plain_gpu(64 << 10)).ok);
  Problem wide = p;
  wide.type = ElementType::float64;
  EXPECT_TRUE(blocked.fits(wide, nvidia).ok);
  EXPECT_TRUE(blocked.fits(wide, plain_gpu(64 << 10)).ok);
  EXPECT_FALSE(blocked.fits(wide, plain_gpu(48 << 10)).ok);  // 56 KiB
}

/// With 32 KiB `large` takes narrow panels; what its kernels then take is what it states.
TEST(LocalMemoryOfDevices, LargeIsLeanWhereItIsShort) {
  SKIP_WITHOUT_OPENCL();
  Session& session = session_for(device_under_test());
  for (const ElementType type : {ElementType::float32, ElementType::float64}) {
    for (const index_t n : {60, 200, 5000}) {
      const Problem p{1, n + 30, n, type, Mode::reduced, Sign::positive};
      const GpuVariant large = large_variant();
      const Limits limits = plain_gpu(32 << 10), roomy = plain_gpu(64 << 10);
      const Params params = large.plan.tune(p, limits);
      EXPECT_EQ(params.at("PANEL"), 32);
      EXPECT_LE(large.local_bytes(p, limits), limits.local_bytes);
      const Defines defines = defines_for(p, params, large.computes_in(p));
      const Program program = session.programs.get(large.file, defines, "opencl/large");
      EXPECT_LE(most_local_bytes(program), limits.local_bytes) << n;
      EXPECT_EQ(large.plan.tune(p, roomy).at("PANEL"), n < 128 ? 32 : 64);
    }
  }
}

/// The numbers are the sums of the local arrays in NVIDIA's compiled code, as other devices have no
/// matrix products of float64.
TEST(LocalMemoryOfDevices, GramVariantsAskForIt) {
  const auto float32 = [](index_t m, index_t n) {
    return Problem{1, m, n, ElementType::float32, Mode::reduced, Sign::positive};
  };
  const GpuVariant gram = gram_variant(), tiles = gram_tiles_variant();
  Limits limits = plain_gpu(48 << 10);
  limits.shuffle_lanes = 32;
  limits.float64_products = true;
  EXPECT_EQ(gram.local_bytes(float32(20, 10), limits), 7424u);
  EXPECT_EQ(gram.local_bytes(float32(35, 33), limits), 19968u);
  EXPECT_EQ(gram.local_bytes(float32(64, 64), limits), 25600u);
  EXPECT_EQ(gram.local_bytes(float32(160, 80), limits), 30464u);
  EXPECT_EQ(gram.local_bytes(float32(100, 81), limits), 45056u);
  EXPECT_EQ(gram.local_bytes(float32(96, 96), limits), 45056u);
  EXPECT_EQ(tiles.local_bytes(float32(512, 128), limits), 43776u);  // form_q's
  EXPECT_EQ(tiles.local_bytes(float32(3000, 700), limits), 43776u);
  EXPECT_TRUE(gram.plan.fits(float32(160, 80), limits).ok);
  EXPECT_TRUE(gram.plan.fits(float32(96, 96), limits).ok);
  EXPECT_TRUE(tiles.plan.fits(float32(512, 128), limits).ok);
  limits.local_bytes = 42 << 10;
  EXPECT_TRUE(gram.plan.fits(float32(64, 64), limits).ok);
  EXPECT_TRUE(gram.plan.fits(float32(160, 80), limits).ok);
  EXPECT_FALSE(gram.plan.fits(float32(96, 96), limits).ok);
  EXPECT_FALSE(tiles.plan.fits(float32(512, 128), limits).ok);
}

}  // namespace
}  // namespace qrtool::test::local_memory_test
