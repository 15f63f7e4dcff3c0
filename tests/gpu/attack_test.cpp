// SPDX-License-Identifier: Apache-2.0
// attack_test.cpp: a few matrices of every attack family, factored by the variants that run on any
// device. The program qrtool_attack factors any number of them with the variants of a GPU.
#include "tests/support/attack.hpp"

#include <ostream>

#include "gpu/registry.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/backward_error.hpp"

namespace qrtool::test {
namespace {

/// The matrices that a case runs. Each case has its own kernels, and most of the time is spent
/// compiling them.
struct AttackCase {
  std::string variant;
  AttackShape shape;
  Mode mode;
  index_t per_family;

  friend std::ostream& operator<<(std::ostream& out, const AttackCase& c) {
    return out << c.variant << "_" << c.shape.m << "x" << c.shape.n << "_" << name_of(c.mode);
  }
};

const std::vector<AttackCase> cases{
    {"gram", {40, 16}, Mode::reduced, 20},   {"gram", {40, 16}, Mode::r, 20},
    {"gram", {16, 12}, Mode::reduced, 20},   {"gram", {64, 48}, Mode::reduced, 8},
    {"gram", {90, 80}, Mode::reduced, 4},    {"gram_tiles", {120, 100}, Mode::reduced, 4},
    {"gram_tiles", {140, 129}, Mode::r, 2},  {"tall", {2000, 16}, Mode::reduced, 6},
    {"tall", {2000, 16}, Mode::r, 6},        {"large", {200, 130}, Mode::reduced, 2},
    {"small", {48, 40}, Mode::reduced, 6},   {"blocked", {80, 40}, Mode::reduced, 4},
    {"vector", {33, 20}, Mode::reduced, 10},
};

class Attack : public testing::TestWithParam<AttackCase> {};

TEST_P(Attack, EveryMatrixMeetsItsBar) {
  SKIP_WITHOUT_OPENCL();
  const auto& [variant, shape, mode, per_family] = GetParam();
  const std::span<const AttackFamily> families = attack_families();
  const Problem p{.count = static_cast<index_t>(families.size()) * per_family,
                  .m = shape.m,
                  .n = shape.n,
                  .mode = mode};
  for (const GpuVariant& known : gpu_variants()) {
    if (known.plan.name != "opencl/" + variant) continue;
    const Fit fit = known.plan.fits(p, backend().limits());
    if (!fit.ok) GTEST_SKIP() << fit.reason;
  }
  const Plan plan = plan_for(p, "opencl/" + variant);
  Batch<float> a(p.count, p.m, p.n);
  fill_attack_batch<float>(families, per_family, 7, 0, 2, a.view());
  Result<float> result = factor<float>(backend(), plan, a.view());
  const Bars bars = standard_bars(p.m, p.n, precision_of(p), {});
  for (index_t b = 0; b < p.count; ++b) {
    const MatrixReport& report = result.report[static_cast<std::size_t>(b)];
    const std::string name = std::string(families[static_cast<std::size_t>(b / per_family)].name) +
                             " number " + std::to_string(b % per_family);
    EXPECT_EQ(report.status, Status::ok)
        << name << ": residual " << report.residual / bars.residual << ", orthogonality "
        << report.orthogonality / bars.orthogonality << " of the bar";
    if (p.wants_q()) continue;
    EXPECT_LE(r_backward_error<float>(a.view()[b], result.factors().r[b]), bars.residual) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Opencl, Attack, testing::ValuesIn(cases),
                         [](const testing::TestParamInfo<AttackCase>& test) {
                           return testing::PrintToString(test.param);
                         });

}  // namespace
}  // namespace qrtool::test
