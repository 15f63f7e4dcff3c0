// SPDX-License-Identifier: Apache-2.0
// company_test.cpp: a matrix has the same bits alone and among any number of others, as far as that
// shows without a GPU: by the launches of every variant, and by kernels that stand for one another.
// qrtool_company compares the bits on a GPU.
#include <algorithm>
#include <cstring>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>

#include "gpu/gram/twice/gram_twice.hpp"
#include "gpu/pipeline/engine.hpp"
#include "gpu/reflectors/large/large.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/from_r/bodies.hpp"
#include "gpu/solve/normal/bodies.hpp"
#include "tests/gpu/opencl_fixture.hpp"
#include "tests/support/company.hpp"
#include "tests/support/measured_gpu.hpp"

namespace qrtool::test::company_test {
namespace {

class Company : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};

// ---- launches

/// Pairs of kernels that give the same bits; KernelsOfAPairGiveTheSameBits runs them.
const std::map<std::string, std::string> same_bits_as{{"sum_squares", "sum_slab"},
                                                      {"update_big_rows", "update_rows"}};

std::string kind_of(const std::string& kernel) {
  const auto found = same_bits_as.find(kernel);
  return found == same_bits_as.end() ? kernel : found->second;
}

/// Whether the words of two arguments are the same but for the number of matrices.
bool are_alike(const std::vector<std::byte>& x, const std::vector<std::byte>& y, index_t x_count,
               index_t y_count) {
  if (x.size() != y.size()) return false;
  for (std::size_t at = 0; at < x.size(); at += sizeof(int)) {
    int a = 0, b = 0;
    std::memcpy(&a, &x[at], sizeof(a));
    std::memcpy(&b, &y[at], sizeof(b));
    if (a != b && (a != x_count || b != y_count)) return false;
  }
  return true;
}

bool are_alike(const std::vector<TakenLaunch>& x, const std::vector<TakenLaunch>& y,
               index_t x_count, index_t y_count) {
  return std::ranges::equal(x, y, [&](const TakenLaunch& a, const TakenLaunch& b) {
    return kind_of(a.kernel) == kind_of(b.kernel) &&
           std::ranges::equal(a.values, b.values, [&](const auto& of_a, const auto& of_b) {
             return are_alike(of_a, of_b, x_count, y_count);
           });
  });
}

/// All launches for `count` matrices, whatever their routes are; none where the slots for so many
/// would take too much memory.
std::vector<TakenLaunch> launches_of(const GpuVariant& variant, const Problem& p,
                                     const Params& params, index_t count) {
  constexpr std::size_t most_bytes = std::size_t{512} << 20;
  const Slots slots = variant.slots != nullptr ? variant.slots(p) : Slots{};
  const std::size_t slot_bytes = slots.total_bytes(count);
  if (slot_bytes > most_bytes || (slot_bytes > 0 && slots.most < count)) return {};
  std::vector<TakenLaunch> launches;
  Launcher launch(launches);
  const FactorJob job{
      p,
      params,
      count,
      {},
      {},
      {},
      {},
      {},
      {},
      std::vector<Buffer>(variant.workspace(p).size()),
      slot_bytes == 0 ? Buffer() : backend().engine().session.context->allocate(slot_bytes)};
  variant.enqueue(job, launch);
  if (variant.enqueue_rest != nullptr) variant.enqueue_rest(job, launch);
  if (variant.inner.variant != nullptr) {
    const Problem inner = variant.inner.problem(p);
    const Params of_inner = variant.inner.variant(p).plan.tune(inner, measured_gpu().limits);
    variant.inner.enqueue(job, variant.inner.job(job, inner, of_inner), launch);
  }
  return launches;
}

void compare_launches(const Problem& p, std::map<std::string_view, int>& compared) {
  const Limits limits = measured_gpu().limits;
  for (const GpuVariant& variant : gpu_variants()) {
    if (!variant.plan.takes(p, limits).ok) continue;
    // The plan sees the number of matrices of the whole dataset, which decides which variant runs,
    // and no more.
    Problem whole = p;
    whole.count = company_counts.back();
    const Params params = variant.plan.tune(whole, limits);
    EXPECT_EQ(params, variant.plan.tune(p, limits));
    const auto alone = launches_of(variant, p, params, 1);
    for (const index_t count : company_counts) {
      const auto together = launches_of(variant, p, params, count);
      if (together.empty()) continue;
      ++compared[variant.plan.name];
      EXPECT_TRUE(are_alike(together, alone, count, 1))
          << variant.plan.name << ' ' << p.m << 'x' << p.n << ' ' << name_of(p.type) << ' '
          << name_of(p.mode) << ", " << count << " matrices";
    }
  }
}

TEST_F(Company, LaunchesOfAMatrixDoNotDependOnTheOthers) {
  std::map<std::string_view, int> compared;
  CompanyProblems few(1, 320), many(2, 1300);
  for (int i = 0; i < 400; ++i) {
    Problem p = i % 4 == 0 ? many.next() : few.next();
    p.count = 1;
    for (const Mode mode : {p.mode, Mode::raw}) {
      p.mode = mode;
      for (const ElementType type : {p.type, complex_of(p.type)}) {
        Problem other = p;
        other.type = type;
        compare_launches(other, compared);
      }
    }
  }
  for (const GpuVariant& variant : gpu_variants()) {
    if (variant.checks_by_vectors) continue;  // for CPU devices
    EXPECT_GT(compared[variant.plan.name], 0) << variant.plan.name;
  }
}

// ---- launches of systems

std::vector<TakenLaunch> launches_of(const SystemBody& body, const SolveProblem& p, index_t count) {
  SystemShape shape{};
  shape.count = static_cast<int>(count);
  shape.m = static_cast<int>(p.m);
  shape.sides = 1;
  const SystemJob job{.type = p.type, .n = p.n, .shape = shape, .factor_groups = index_t{1} << 30};
  std::vector<TakenLaunch> launches;
  Launcher launch(launches);
  for (const SystemStep& step : body.steps(p, measured_gpu().limits))
    step.enqueue(job, step.params, launch);
  return launches;
}

TEST_F(Company, LaunchesOfASystemDoNotDependOnTheOthers) {
  const Limits limits = measured_gpu().limits;
  CompanyProblems problems(3, 128);
  std::set<std::string_view> compared;
  for (int i = 0; i < 100; ++i) {
    const Problem p = problems.next();
    const SolveProblem system{
        .type = p.type, .m = (i % 4 == 0 ? 40 : 1) * std::max(p.m, p.n), .n = p.n, .rank = {}};
    for (const auto& list :
         {normal_bodies(), solving_bodies(), measuring_bodies(), checking_bodies()}) {
      for (const SystemBody& body : list) {
        if (!body.fits(system, limits)) continue;
        compared.insert(body.name);
        const auto alone = launches_of(body, system, 1);
        for (const index_t count : company_counts)
          EXPECT_TRUE(are_alike(launches_of(body, system, count), alone, count, 1))
              << body.name << ' ' << system.m << 'x' << system.n << ' ' << name_of(system.type);
      }
    }
  }
  EXPECT_EQ(compared.size(), 9U);
}

// ---- registers

/// NVIDIA's multiprocessors have so many registers, and a work-item up to 255. Their compiler
/// builds for 256 work-items unless it is told otherwise.
TEST_F(Company, ProgramsOfLargeGroupsLimitTheRegisters) {
  constexpr int registers = 1 << 16, most_items = registers / 256;
  CompanyProblems problems(5, 1300);
  std::set<std::string> large;
  for (int i = 0; i < 300; ++i) {
    const Problem p = problems.next();
    for (const GpuVariant& variant : gpu_variants()) {
      if (!variant.plan.fits(p, measured_gpu().limits).ok) continue;
      const Params params = variant.plan.tune(p, measured_gpu().limits);
      const auto limit = params.find(std::string(most_registers));
      for (const index_t count : {1, 40}) {
        for (const TakenLaunch& launch : launches_of(variant, p, params, count)) {
          if (launch.group_size <= most_items) continue;
          large.insert(launch.kernel);
          ASSERT_NE(limit, params.end())
              << variant.plan.name << ' ' << p.m << 'x' << p.n << ": " << launch.kernel;
          EXPECT_LE(launch.group_size * limit->second, registers)
              << variant.plan.name << ' ' << p.m << 'x' << p.n << ": " << launch.kernel;
        }
      }
    }
  }
  EXPECT_EQ(large, (std::set<std::string>{"sum_squares", "update_big_rows"}));
}

// ---- kernels that stand for one another

/// One matrix of m x n, more than 128 columns, in gram_twice's work memory.
struct TwiceJob {
  static constexpr index_t n = 200, tiles = 4, entries = 64 * 64;

  explicit TwiceJob(index_t matrix_rows) : m(matrix_rows), random(7) {
    Problem p{.count = 1, .m = n, .n = n, .type = ElementType::float64};
    const FactorEngine& engine = backend().engine();
    params = gram_twice_variant().plan.tune(p, engine.info.limits);
    shape = factor_shape(p, 1);
    shape.m = static_cast<int>(m);
    twice.diagonals = 4 * entries;
    twice.norms = twice.diagonals + 8 * entries;
    twice.largest = twice.norms + 256;
    twice.state = twice.largest + 16;
    twice.slot = twice.state + 16;
    twice.tiles = tiles;
    twice.slabs = 1;
    twice.slab_rows = static_cast<int>(ceil_divide(m, 8) * 8);
    rows.stride = m * n;
  }

  std::vector<double> numbers(index_t count) {
    std::vector<double> list(static_cast<std::size_t>(count));
    for (double& x : list) x = std::normal_distribution<>()(random);
    return list;
  }

  template <class T>
  static Buffer buffer_of(const std::vector<T>& list) {
    const FactorEngine& engine = backend().engine();
    const std::size_t bytes = list.size() * sizeof(T);
    const Buffer buffer = engine.session.context->allocate(bytes);
    engine.compute->write(buffer, list.data(), bytes);
    return buffer;
  }
  static std::vector<double> read(const Buffer& buffer, std::size_t count) {
    return backend().engine().compute->read_list<double>(buffer, count);
  }

  Launcher launcher() const {
    return backend().engine().launcher(
        {"gpu/gram/twice/gram_twice.cl",
         defines_for({.type = ElementType::float64}, params, ElementType::float64), "a test"});
  }

  index_t m;
  std::mt19937 random;
  Params params;
  FactorShape shape{};
  TwiceShape twice{};
  RowsShape rows{};
};

bool has_gram_twice() {
  const Problem p{.count = 1, .m = TwiceJob::n, .n = TwiceJob::n, .type = ElementType::float64};
  return gram_twice_variant().plan.fits(p, backend().limits()).ok;
}

TEST_F(Company, KernelsThatUpdateRowsGiveTheSameBits) {
  if (!has_gram_twice()) GTEST_SKIP() << "the device does not take the variant";
  TwiceJob job(20);
  job.twice.pass = 1;
  const auto x = job.numbers(job.m * job.n), q = job.numbers(job.m * job.n);
  std::vector<double> work = job.numbers(job.twice.slot);
  std::fill(work.begin() + job.twice.state, work.end(), 0.0);
  const int lanes = warp_lanes(job.params);
  const auto updated = [&](const char* kernel, int warps) {
    Launcher launch = job.launcher();
    const Buffer to = TwiceJob::buffer_of(q);
    launch(kernel, 1, warps * lanes, TwiceJob::buffer_of(x), job.rows, to, job.rows,
           TwiceJob::buffer_of(work), job.shape, job.twice, 0, 1, 1);
    return TwiceJob::read(to, q.size());
  };
  const std::vector<double> narrow = updated("update_rows", 8);
  EXPECT_NE(narrow, q);
  EXPECT_EQ(narrow, updated("update_big_rows", 16));
}

/// The Gram matrix of a panel of `large`, of two matrices: by the sums of slabs, and by one group.
TEST_F(Company, KernelsThatSumAPanelGiveTheSameBits) {
  const Problem p{.count = 2, .m = 700, .n = 130, .type = ElementType::float32};
  FactorEngine& engine = backend().engine();
  const Params params = large_variant().plan.tune(p, engine.info.limits);
  if (params.at("PANEL_UNITS") == 0) GTEST_SKIP() << "the device has no such kernels";
  constexpr index_t square = 64 * 64, squares = 5;
  std::mt19937 random(7);
  std::vector<float> a(static_cast<std::size_t>(p.count * p.m * p.n));
  for (float& x : a) x = std::normal_distribution<float>()(random);
  const Buffer work = TwiceJob::buffer_of(a);
  const std::vector<double> none(static_cast<std::size_t>(p.count * squares * square));
  BlockShape step{};
  step.ld = static_cast<int>(p.n);
  step.width = 60;
  Launcher launch =
      engine.launcher({"gpu/reflectors/large/large.cl", defines_for(p, params, p.type), "a test"});
  for (const auto& [rows, slab_rows] : {std::pair{700, 32}, {699, 64}, {100, 32}}) {
    FactorShape shape = factor_shape(p, p.count);
    step.first = shape.m - rows;
    step.gram_slabs = static_cast<int>(ceil_divide(rows, slab_rows));
    step.slab_rows = slab_rows;
    const Buffer sums = engine.session.context->allocate(
        static_cast<std::size_t>(p.count * step.gram_slabs * square) * 8);
    const Buffer by_slabs = TwiceJob::buffer_of(none), by_one = TwiceJob::buffer_of(none);
    launch("gram_panel_by_units", p.count * step.gram_slabs, 256, work, sums, shape, step, 0);
    launch("sum_panel_gram", p.count * square / 32, 256, sums, by_slabs, step);
    launch("gram_panel_by_units", p.count, 256, work, by_one, shape, step, 1);
    const std::vector<double> sum = TwiceJob::read(by_slabs, none.size());
    EXPECT_NE(sum, none);
    EXPECT_EQ(sum, TwiceJob::read(by_one, none.size())) << rows;
  }
}

/// Rows within one part of the diagonal's sums, of whole parts, and beyond them.
class CompanyOfSums : public testing::TestWithParam<index_t> {};
INSTANTIATE_TEST_SUITE_P(Rows, CompanyOfSums, testing::Values(20, 128, 150));

TEST_P(CompanyOfSums, KernelsThatSumSquaresGiveTheSameBits) {
  SKIP_WITHOUT_OPENCL();
  if (!has_gram_twice()) GTEST_SKIP() << "the device does not take the variant";
  TwiceJob job(GetParam());
  const auto x = job.numbers(job.m * job.n);
  std::vector<double> work(static_cast<std::size_t>(job.twice.slot));
  const int lanes = warp_lanes(job.params);
  const auto sums = [&](const char* kernel, index_t groups, int warps) {
    Launcher launch = job.launcher();
    const Buffer to = TwiceJob::buffer_of(work);
    launch(kernel, groups, warps * lanes, TwiceJob::buffer_of(x), job.rows, to, job.shape,
           job.twice);
    std::vector<double> all = TwiceJob::read(to, work.size());
    // Of the largest entries of each tile only the largest counts.
    const auto largest = all.begin() + job.twice.largest;
    std::fill_n(largest, job.tiles, *std::max_element(largest, largest + job.tiles));
    // Above the diagonal of its tiles G is not needed.
    for (index_t tile = 0; tile < 12; ++tile) {
      const bool is_diagonal = tile >= 4 && (tile % 4 == 0 || tile % 4 == 3);
      const bool is_above = tile >= 4 && tile % 4 == 1;
      for (index_t e = 0; e < job.entries; ++e)
        if (is_above || (is_diagonal && e / 64 < e % 64))
          all[static_cast<std::size_t>(tile * job.entries + e)] = 0;
    }
    return all;
  };
  const std::vector<double> narrow = sums("sum_slab", 10, 4);
  EXPECT_NE(narrow, work);
  EXPECT_EQ(narrow, sums("sum_squares", 3, 16));
}

}  // namespace
}  // namespace qrtool::test::company_test
