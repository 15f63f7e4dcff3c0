// SPDX-License-Identifier: Apache-2.0
// programs_test.cpp: the programs that a run is said to need are those that it builds, and which
// bodies solve which systems.
#include "gpu/estimate/programs.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <set>
#include <sstream>
#include <string>

#include "core/matrix/matrices.hpp"
#include "core/plan/plan.hpp"
#include "gpu/pipeline/opencl_backend.hpp"
#include "gpu/solve/from_r/bodies.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "gpu/solve/system_launches.hpp"
#include "gpu/solve/systems.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/measured_gpu.hpp"

namespace qrtool::test::programs_test {
namespace {

class ProgramNames : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};

std::set<std::string> built() {
  std::set<std::string> names;
  for (const DeviceTimes& times : device_times())
    for (const ProgramTime& program : times.programs) names.insert(program.id);
  return names;
}

std::set<std::string> new_since(const std::set<std::string>& before) {
  std::set<std::string> names;
  for (const std::string& name : built())
    if (!before.contains(name)) names.insert(name);
  return names;
}

/// Returns the names in `needed` that were not there before.
std::set<std::string> missing(const std::vector<std::string>& needed,
                              const std::set<std::string>& before) {
  std::set<std::string> names;
  for (const std::string& name : needed)
    if (!before.contains(name)) names.insert(name);
  return names;
}

template <class T>
void factor(OpenclBackend& backend, const Plan& plan) {
  const Problem& p = plan.problem;
  Batch<T> a(p.count, p.m, p.n), q(p.count, p.m, p.q_cols()), r(p.count, p.r_rows(), p.n);
  for (index_t b = 0; b < p.count; ++b) fill_matrix(MatrixRequest{.kind = "gauss"}, b, a.view()[b]);
  std::vector<MatrixReport> report(static_cast<std::size_t>(p.count));
  Factors<T> out;
  if (p.wants_q()) out.q = q.view();
  out.r = r.view();
  backend.factor(plan, a.view(), out, report);
}

TEST_F(ProgramNames, OfFactorsAreThoseThatAreBuilt) {
  const DeviceInfo device = device_under_test();
  OpenclBackend backend(device, test_options());
  int runs = 0;
  for (const Problem& p : {Problem{3, 23, 9}, Problem{3, 23, 9, ElementType::float64},
                           Problem{2, 24, 9, ElementType::float32, Mode::r}, Problem{2, 20, 71}}) {
    for (const char* variant : {"", "opencl/small", "opencl/gram", "opencl/leading"}) {
      const std::string forced = variant;
      Plan plan;
      try {
        plan = make_plan(p, backend.variants(), backend.limits(), forced);
      } catch (const std::exception&) {
        continue;  // the variant does not take it
      }
      const std::set<std::string> before = built();
      const auto needed = programs_of(*plan.variant, plan.problem, device);
      if (p.type == ElementType::float32) factor<float>(backend, plan);
      if (p.type == ElementType::float64) factor<double>(backend, plan);
      ++runs;
      EXPECT_EQ(new_since(before), missing(needed, before))
          << plan.variant->name << ' ' << p.m << 'x' << p.n;
    }
  }
  EXPECT_GE(runs, 8);
}

/// A kernel that is not named is built at its first launch, while the device waits.
TEST_F(ProgramNames, OfWeighedSidesHaveEveryKernel) {
  const SolveProblem systems{.type = ElementType::float32,
                             .m = 21,
                             .n = 5,
                             .rank = {},
                             .has_weights = true,
                             .weighs_each = true};
  std::set<std::string> names;
  for (const WantedKernels& wanted :
       wanted_by_systems(systems, 1, device_under_test().limits, SystemRoute::normal_equations,
                         /*shares_a=*/true))
    names.insert(wanted.kernels.begin(), wanted.kernels.end());
  for (const char* name :
       {"pairs_of_rows", "weigh_sides", "turn_sides", "solve_weighed_group", "check_weighed_sides"})
    EXPECT_TRUE(names.contains(name)) << name;
  EXPECT_TRUE(names.contains("wide_transposed_product") ||
              names.contains("wide_transposed_doubles"));
}

/// Two Gaussian systems, which a device solves.
class TwoSystems {
 public:
  explicit TwoSystems(const SolveProblem& p, index_t sides)
      : a_(2, p.m, p.n),
        b_(2 * sides, 1, p.m),
        x_(2 * sides, 1, p.n),
        reports_(static_cast<std::size_t>(2 * sides)) {
    for (index_t i = 0; i < 2; ++i) fill_matrix(MatrixRequest{.kind = "gauss"}, i, a_.view()[i]);
    for (index_t i = 0; i < 2 * sides; ++i)
      fill_matrix(MatrixRequest{.kind = "gauss", .seed = 7}, i, b_.view()[i]);
  }
  bool are_solved_by(SystemDevice<double>& device) {
    return device
        .run(a_.view(), {.count = b_.view().count,
                         .b = b_.view().data,
                         .b_places = VectorPlaces::rows(b_.view().cols),
                         .x = x_.view().data,
                         .x_places = VectorPlaces::rows(x_.view().cols),
                         .reports = reports_})
        .empty();
  }

 private:
  Batch<double> a_, b_, x_;
  std::vector<SolutionReport> reports_;
};

/// R of A, or of A' where A is wide.
Problem r_of(const SolveProblem& p) {
  return {2, std::max(p.m, p.n), std::min(p.m, p.n), p.type, Mode::r};
}

TEST_F(ProgramNames, OfSystemsAreThoseThatAreBuilt) {
  const DeviceInfo device = device_under_test();
  OpenclBackend backend(device, test_options());
  SolveProblem systems{.type = ElementType::float64, .m = 21, .n = 5, .rank = {}};
  for (const bool is_wide : {false, true}) {
    if (is_wide) std::swap(systems.m, systems.n);
    for (const index_t sides : {1, 2}) {
      const Problem of_r = r_of(systems);
      const Plan plan = make_plan(of_r, backend.variants(), backend.limits());
      const std::set<std::string> before = built();
      Work work(of_r, sides);
      work.is_wide = is_wide;
      const auto needed = programs_of(*plan.variant, work, device);
      const auto route = sides == 1 ? SystemRoute::normal_equations : SystemRoute::factors;
      const auto solver = make_system_device<double>(backend, systems, plan, route);
      EXPECT_TRUE(TwoSystems(systems, sides).are_solved_by(*solver));
      EXPECT_EQ(new_since(before), missing(needed, before)) << sides << (is_wide ? " wide" : "");
    }
  }
}

/// Where kernels are built in parts, prepare() has all of them that do not make R.
TEST_F(ProgramNames, OfWideSystemsAreBuiltAhead) {
  const DeviceInfo device = device_under_test();
  OpenclBackend backend(device, test_options());
  ProgramCache& programs = session_for(device).programs;
  const bool had_parts = programs.has_parts();
  programs.set_builders(true, {});
  const SolveProblem systems{.type = ElementType::float64, .m = 6, .n = 23, .rank = {}};
  const Plan plan = make_plan(r_of(systems), backend.variants(), backend.limits());
  // Its end waits.
  make_system_device<double>(backend, systems, plan, SystemRoute::factors)
      ->prepare(/*sides=*/1, /*shares_a=*/false);
  std::set<std::string> names;
  for (const WantedKernels& wanted :
       wanted_by_systems(systems, 1, device.limits, SystemRoute::factors, /*shares_a=*/false)) {
    names.insert(wanted.kernels.begin(), wanted.kernels.end());
    EXPECT_TRUE(programs.has(wanted)) << wanted.source.file;
  }
  for (const char* name : {"turn_columns", "measure_lane_factors", "solve_wide", "check_wide"})
    EXPECT_TRUE(names.contains(name)) << name;
  programs.set_builders(had_parts, {});
}

/// A GPU without matrix units, and a CPU.
Limits plain_gpu() {
  Limits limits = measured_gpu().limits;
  limits.float64_products = limits.has_nvidia_mma = false;
  limits.shuffle_lanes = 0;
  return limits;
}
Limits plain_cpu() {
  Limits limits = plain_gpu();
  limits.is_cpu = true;
  limits.local_bytes = 512 << 10;
  limits.max_group = 4096;
  limits.compute_units = 2;
  return limits;
}

/// bodies.txt has a line for each of 300 shapes: what gets x of one right side, what measures R,
/// and what checks x, on the measured GPU and on both of these.
TEST(SystemBodies, OfManyShapes) {
  const Limits devices[] = {measured_gpu().limits, plain_gpu(), plain_cpu()};
  std::ifstream file(QRTOOL_SOURCE_DIR "/tests/gpu/solve/bodies.txt");
  int lines = 0;
  for (std::string line; std::getline(file, line); ++lines) {
    std::istringstream words(line);
    std::string type;
    char by = 0;
    SolveProblem p{.type = {}, .m = 0, .n = 0, .rank = {}};
    words >> type >> p.m >> by >> p.n;
    p.type = type == "float32" ? ElementType::float32 : ElementType::float64;
    std::ostringstream chosen;
    chosen << type << ' ' << p.m << by << p.n;
    for (const Limits& limits : devices) {
      const SystemBody* const normal = chosen_normal_body(p, 1, limits);
      const SystemBody* const solving =
          normal != nullptr ? normal : chosen_body(solving_bodies(), p, limits);
      chosen << ", " << solving->name << ' ' << chosen_body(measuring_bodies(), p, limits)->name
             << ' ' << chosen_body(checking_bodies(), p, limits)->name;
      EXPECT_EQ(chosen_normal_body(p, 2, limits), nullptr) << "two right sides";
    }
    EXPECT_EQ(chosen.str(), line);
  }
  EXPECT_EQ(lines, 300);
}

}  // namespace
}  // namespace qrtool::test::programs_test
