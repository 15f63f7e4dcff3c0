// SPDX-License-Identifier: Apache-2.0
// engine_test.cpp: what a variant flags is done again, whoever looks at the flags; resident runs.
#include "gpu/engine.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "gpu/registry.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test {
namespace {

GpuVariant small_without_flags(const Problem&) { return small_variant(); }

class FlaggedMatrices : public ::testing::Test {
 protected:
  static constexpr index_t count = 4, rows = 24, cols = 12;

  /// Q and R of each matrix, one after the other, as `variant` leaves them.
  std::vector<float> factors(const GpuVariant& variant, const std::vector<float>& a) {
    const DeviceInfo info = device_under_test();
    Engine engine(info, session_for(info));
    const MatrixBytes bytes = matrix_bytes(variant, problem_);
    const Params params = variant.plan.tune(problem_, info.limits);
    const DeviceBuffers buffers = engine.pool.get(problem_, params, bytes, count, 0);
    engine.compute.enqueueWriteBuffer(buffers.job.a, CL_TRUE, 0, sizeof(float) * a.size(),
                                      a.data());
    cl::Event factored;
    engine.factor(variant, buffers.job, factored);
    std::vector<float> result(static_cast<std::size_t>(count * (rows + cols) * cols));
    const std::size_t q_bytes = sizeof(float) * count * rows * cols;
    engine.compute.enqueueReadBuffer(buffers.job.q, CL_TRUE, 0, q_bytes, result.data());
    engine.compute.enqueueReadBuffer(buffers.job.r, CL_TRUE, 0,
                                     sizeof(float) * result.size() - q_bytes,
                                     result.data() + count * rows * cols);
    return result;
  }

  /// Gaussian; the flagged ones have a column twice.
  static std::vector<float> matrices(std::initializer_list<index_t> flagged) {
    std::vector<float> a(static_cast<std::size_t>(count * rows * cols));
    for (index_t b = 0; b < count; ++b) {
      const MatrixView<float> matrix{&a[static_cast<std::size_t>(b * rows * cols)], rows, cols,
                                     cols};
      fill_matrix<float>({.kind = "gauss"}, b, matrix);
      if (std::find(flagged.begin(), flagged.end(), b) == flagged.end()) continue;
      for (index_t i = 0; i < rows; ++i) matrix(i, 7) = matrix(i, 3);
    }
    return a;
  }

  Problem problem_{count, rows, cols, ElementType::float32, Mode::reduced, Sign::positive};
};

TEST_F(FlaggedMatrices, HaveTheSameBitsWhoeverDecides) {
  SKIP_WITHOUT_OPENCL();
  GpuVariant variant = gram_variant();
  const std::vector<float> some = matrices({1, 3}), none = matrices({});
  const std::vector<float> by_device = factors(variant, some), plain = factors(variant, none);
  EXPECT_NE(by_device, plain);
  for (const float x : by_device) ASSERT_TRUE(std::isfinite(x));

  variant.host_decides = true;
  EXPECT_EQ(factors(variant, some), by_device);
  EXPECT_EQ(factors(variant, none), plain);
  variant.again = small_without_flags;
  EXPECT_EQ(factors(variant, some), by_device);
}

TEST(ResidentRuns, CopyTheRThatTheBackendGives) {
  SKIP_WITHOUT_OPENCL();
  const Problem problem{1, 300, 8, ElementType::float32, Mode::r};
  const Plan plan = plan_for(problem, "");
  Batch<float> a(1, 300, 8), r(1, 8, 8);
  fill_matrix<float>({.kind = "gauss"}, 0, a.view()[0]);
  Factors<float> out;
  out.r = r.view();
  std::vector<MatrixReport> report(1);
  backend().factor(plan, a.view(), out, report);
  ResidentRun run(backend(), plan, a.view());
  std::vector<float> copied(64);
  for (int again = 0; again < 2; ++again) {
    std::fill(copied.begin(), copied.end(), 0.0F);
    run.run_to_r(std::as_writable_bytes(std::span(copied)));
    EXPECT_TRUE(std::equal(copied.begin(), copied.end(), r.view().data));
  }
}

}  // namespace
}  // namespace qrtool::test
