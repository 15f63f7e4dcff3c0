// SPDX-License-Identifier: Apache-2.0
// engine_test.cpp: the engine factors matrices of the route `reflectors` again, both if the host
// and if the device reads the routes; nearly singular matrices that `gram` accepts have accurate
// factors; resident runs.
#include "gpu/pipeline/engine.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gpu/gram/gram.hpp"
#include "gpu/gram/tiles/gram_tiles.hpp"
#include "gpu/reflectors/small/small.hpp"
#include "gpu/registry.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::engine_test {
namespace {

/// Q, R and the route of every matrix, as a variant by Gram matrices writes them.
struct GramResult {
  std::vector<float> q, r;
  std::vector<int> routes;
};

/// Runs a variant. `most_slots` is 0, or the largest number of matrices that `gram_tiles` factors
/// at a time. most_unread: as of FactorEngine, where
/// it is given; then a second run, for which the host need not read the routes, gives the result.
GramResult run_gram(const GpuVariant& variant, const Problem& problem, const std::vector<float>& a,
                    index_t most_slots = 0, std::optional<std::size_t> most_unread = {}) {
  MatrixBytes bytes = matrix_bytes(variant, problem);
  if (most_slots > 0) bytes.slots.most = most_slots;
  const DeviceInfo info = device_under_test();
  FactorEngine engine(info, session_for(info));
  engine.most_unread_launches = most_unread.value_or(engine.most_unread_launches);
  const Params params = variant.plan.tune(problem, info.limits);
  const DeviceBuffers buffers = engine.pool.get(problem, params, bytes, problem.count, 0);
  engine.compute->write(buffers.job.a, a.data(), sizeof(float) * a.size());
  engine.factor(variant, buffers.job);
  if (most_unread) engine.factor(variant, buffers.job);
  const auto matrices = static_cast<std::size_t>(problem.count);
  GramResult result;
  if (problem.wants_q()) result.q = engine.compute->read_list<float>(buffers.job.q, a.size());
  result.r = engine.compute->read_list<float>(
      buffers.job.r, matrices * static_cast<std::size_t>(problem.n * problem.n));
  result.routes = engine.compute->read_list<int>(buffers.job.work[0], matrices);
  return result;
}

/// The factors before any matrix is factored again.
GramResult run_gram_once(GpuVariant variant, const Problem& problem, const std::vector<float>& a) {
  variant.again = nullptr;
  return run_gram(variant, problem, a);
}

GpuVariant small_without_flags(const Problem&) { return small_variant(); }

/// `small` as on a GPU, where a group examines several sets of matrices. A set has one matrix here,
/// because PoCL 3.1 confuses the lanes of several matrices if there is a barrier in a branch.
GpuVariant small_in_sets(const Problem&) {
  GpuVariant variant = flagged_small_variant();
  variant.plan.tune = [](const Problem& p, const Limits& limits) {
    Params params = flagged_small_variant().plan.tune(p, limits);
    params["FLAGGED"] = 3;
    if (limits.is_cpu) params["MATRICES"] = 1;
    return params;
  };
  return variant;
}

/// The bytes of Q, R, V, tau and the errors of a batch on a device whose kernels are built for it.
std::vector<char> run_with_parts(bool has_parts, const GpuVariant& variant, const Problem& problem,
                                 const std::vector<char>& a) {
  const DeviceInfo info = device_under_test();
  Session session(info, session_for(info).open);
  session.programs.set_builders(has_parts, {});
  FactorEngine engine(info, session);
  const Params params = variant.plan.tune(problem, info.limits);
  const DeviceBuffers buffers =
      engine.pool.get(problem, params, matrix_bytes(variant, problem), problem.count, 0);
  engine.compute->write(buffers.job.a, a.data(), a.size());
  const FactorJob& job = buffers.job;
  const std::array results{job.q, job.r, job.v, job.tau, buffers.errors};
  for (const Buffer& to : results) {  // buffers may be larger than what is written
    if (to) engine.compute->fill(to, 0, to.bytes());
  }
  engine.prepare(variant, buffers, /*is_checked=*/true);
  const std::size_t whole = session.programs.size();
  engine.factor(variant, buffers.job);
  engine.check(buffers, variant.checks_by_vectors);
  // The run builds nothing beyond what prepare() has built.
  EXPECT_TRUE(!has_parts || session.programs.size() == whole) << variant.plan.name;
  std::vector<char> result;
  for (const Buffer& from : results) {
    if (!from) continue;
    const auto bytes = engine.compute->read_list<char>(from, from.bytes());
    result.insert(result.end(), bytes.begin(), bytes.end());
  }
  return result;
}

template <class T>
std::vector<char> gaussian_bytes(const Problem& p) {
  std::vector<char> bytes(p.input_bytes() * static_cast<std::size_t>(p.count));
  T* entries = reinterpret_cast<T*>(bytes.data());
  for (index_t b = 0; b < p.count; ++b)
    fill_matrix<T>({.kind = "gauss"}, b, MatrixView<T>{entries + b * p.m * p.n, p.m, p.n, p.n});
  return bytes;
}

class ProgramsInParts : public ::testing::TestWithParam<std::string> {};

TEST_P(ProgramsInParts, GiveTheBitsOfWholePrograms) {
  SKIP_WITHOUT_OPENCL();
  const auto named = [](const GpuVariant& v) { return v.plan.name == GetParam(); };
  const GpuVariant& variant = *std::ranges::find_if(gpu_variants(), named);
  for (const ElementType type : {ElementType::float32, ElementType::float64}) {
    for (const auto& [m, n, mode] : {std::tuple<index_t, index_t, Mode>{8, 8, Mode::reduced},
                                     {20, 60, Mode::reduced},
                                     {150, 140, Mode::reduced},
                                     {300, 40, Mode::reduced},
                                     {40, 30, Mode::raw}}) {
      const Problem p{2, m, n, type, mode, mode == Mode::raw ? Sign::lapack : Sign::positive};
      if (!variant.plan.fits(p, device_under_test().limits).ok) continue;
      const bool is_single = type == ElementType::float32;
      const std::vector<char> a = is_single ? gaussian_bytes<float>(p) : gaussian_bytes<double>(p);
      // A failure must not print thousands of bytes.
      EXPECT_TRUE(run_with_parts(true, variant, p, a) == run_with_parts(false, variant, p, a))
          << m << " x " << n << ' ' << name_of(type);
      return;
    }
  }
  // PoCL takes every variant's problems somewhere in the list; a GPU does not take `vector`'s.
  if (device_under_test().limits.is_cpu) FAIL() << "takes none of these problems";
  GTEST_SKIP() << "takes none of these problems on this device";
}

/// The variants for real matrices. The programs of the other variants are those of gram_twice, or
/// have one kernel.
std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for (const GpuVariant& variant : gpu_variants())
    if (variant.plan.numbers != Numbers::complex) names.emplace_back(variant.plan.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Engine, ProgramsInParts, testing::ValuesIn(variant_names()),
                         [](const auto& used) {
                           return used.param.substr(used.param.find('/') + 1);
                         });

/// Kernels that only matrices need which A'A cannot factor are built when there is such a matrix.
TEST(PartsOfTall, ForOneMatrixOfManyGiveTheBitsOfTheWholeProgram) {
  SKIP_WITHOUT_OPENCL();
  const GpuVariant& variant = *std::ranges::find_if(
      gpu_variants(), [](const GpuVariant& v) { return v.plan.name == "opencl/tall"; });
  for (const Mode mode : {Mode::reduced, Mode::r}) {
    const Problem p{3, 300, 40, ElementType::float32, mode, Sign::positive};
    std::vector<char> a = gaussian_bytes<float>(p);
    float* entries = reinterpret_cast<float*>(a.data());
    for (index_t i = 0; i < p.m; ++i) {  // two equal columns in the second; NaN in the third
      float* row = entries + (p.m + i) * p.n;
      row[7] = row[3];
    }
    entries[2 * p.m * p.n + 5] = NAN;
    EXPECT_TRUE(run_with_parts(true, variant, p, a) == run_with_parts(false, variant, p, a));
  }
}

class FlaggedMatrices : public ::testing::Test {
 protected:
  // Further passes take matrices of more columns, where the fallback takes one after another.
  static constexpr index_t count = 4, rows = 24, cols = 5;
  using Factors = std::pair<std::vector<float>, std::vector<float>>;  // Q, R

  Factors factors(const GpuVariant& variant, const std::vector<float>& a,
                  std::optional<std::size_t> most_unread = {}) const {
    GramResult result = run_gram(variant, problem_, a, 0, most_unread);
    return {std::move(result.q), std::move(result.r)};
  }

  /// Makes Gaussian matrices. In the flagged ones two columns are equal.
  static std::vector<float> matrices(std::initializer_list<index_t> flagged) {
    std::vector<float> a(static_cast<std::size_t>(count * rows * cols));
    for (index_t b = 0; b < count; ++b) {
      const MatrixView<float> matrix{&a[static_cast<std::size_t>(b * rows * cols)], rows, cols,
                                     cols};
      fill_matrix<float>({.kind = "gauss"}, b, matrix);
      if (std::find(flagged.begin(), flagged.end(), b) == flagged.end()) continue;
      for (index_t i = 0; i < rows; ++i) matrix(i, 4) = matrix(i, 1);
    }
    return a;
  }

  Problem problem_{count, rows, cols, ElementType::float32, Mode::reduced, Sign::positive};
};

TEST_F(FlaggedMatrices, HaveTheSameBitsWhoeverDecides) {
  SKIP_WITHOUT_OPENCL();
  GpuVariant variant = gram_variant();
  const std::vector<float> some = matrices({1, 3}), none = matrices({});
  const Factors by_device = factors(variant, some, /*most_unread=*/6);
  const Factors plain = factors(variant, none, /*most_unread=*/6);
  EXPECT_NE(by_device, plain);
  for (const std::vector<float>& factor : {by_device.first, by_device.second})
    for (const float x : factor) ASSERT_TRUE(std::isfinite(x));

  EXPECT_EQ(factors(variant, some, /*most_unread=*/0), by_device);
  EXPECT_EQ(factors(variant, none, /*most_unread=*/0), plain);
  for (const auto again : {small_without_flags, small_in_sets}) {
    variant.again = again;
    EXPECT_EQ(factors(variant, some), by_device);
  }
}

TEST_F(FlaggedMatrices, AloneInASubChunkHaveTheSameBits) {
  SKIP_WITHOUT_OPENCL();
  const std::vector<float> all = matrices({0});
  problem_.count = 1;
  const std::vector<float> first(all.begin(), all.begin() + rows * cols);
  GpuVariant variant = gram_variant();
  const Factors by_device = factors(variant, first);
  variant.again = small_without_flags;
  EXPECT_EQ(factors(variant, first), by_device);
}

/// The buffers with the matrices of a run's jobs: first of `gram`, then of its flagged matrices.
std::vector<void*> inputs_of_jobs;

template <GpuVariant (*variant_of)()>
void record_and_enqueue(const FactorJob& job, Launcher& launch) {
  if (!launch.is_recorder()) inputs_of_jobs.push_back(job.a.handle());
  variant_of().enqueue(job, launch);
}

TEST_F(FlaggedMatrices, AreCopiedToOnePlaceUnlessAlone) {
  SKIP_WITHOUT_OPENCL();
  GpuVariant variant = gram_variant();
  variant.enqueue = record_and_enqueue<gram_variant>;
  variant.again = [](const Problem&) {
    GpuVariant again = small_variant();
    again.enqueue = record_and_enqueue<small_variant>;
    return again;
  };
  inputs_of_jobs.clear();
  const std::vector<float> some = matrices({0, 1, 3});
  factors(variant, some);
  ASSERT_EQ(inputs_of_jobs.size(), 4u);
  EXPECT_NE(inputs_of_jobs[1], inputs_of_jobs[0]);
  EXPECT_EQ(inputs_of_jobs[2], inputs_of_jobs[1]);
  EXPECT_EQ(inputs_of_jobs[3], inputs_of_jobs[1]);

  inputs_of_jobs.clear();
  problem_.count = 1;
  factors(variant, {some.begin(), some.begin() + rows * cols});
  ASSERT_EQ(inputs_of_jobs.size(), 2u);
  EXPECT_EQ(inputs_of_jobs[1], inputs_of_jobs[0]);
}

TEST_F(FlaggedMatrices, HaveTheirRouteInTheReportOfEverySubChunk) {
  SKIP_WITHOUT_VARIANT("opencl/gram");
  constexpr index_t many = 96;
  Problem problem = problem_;
  problem.count = many;
  Batch<float> a(many, rows, cols);
  for (index_t b = 0; b < many; ++b) {
    const MatrixView<float> matrix = a.view()[b];
    fill_matrix<float>({.kind = "gauss"}, b, matrix);
    for (index_t i = 0; i < rows && b % 3 == 1; ++i) matrix(i, 4) = matrix(i, 1);
  }
  OpenclOptions options = test_options();
  options.pretend_max_allocation = 8 * problem.input_bytes();
  OpenclBackend limited(device_under_test(), options);
  const Result<float> result = factor<float>(limited, plan_for(problem, "opencl/gram"), a.view());
  for (index_t b = 0; b < many; ++b) {
    EXPECT_EQ(result.report[static_cast<std::size_t>(b)].route,
              b % 3 == 1 ? Route::reflectors : Route::first_pass)
        << b;
  }
}

TEST(UncheckedMatrices, HaveTheSameFactorsAndNoErrors) {
  SKIP_WITHOUT_OPENCL();
  constexpr index_t count = 5;
  for (const Mode mode : {Mode::reduced, Mode::r, Mode::raw}) {
    const Problem problem{count, 12, 8, ElementType::float32, mode, Sign::lapack};
    Batch<float> a(count, 12, 8);
    for (index_t b = 0; b < count; ++b) fill_matrix<float>({.kind = "gauss"}, b, a.view()[b]);
    a.view()[2](5, 5) = std::nanf("");
    const Plan plan = plan_for(problem, "opencl/small");
    Plan unchecked = plan;
    unchecked.problem.check = Check::none;
    const auto full = factor<float>(backend(), plan, a.view());
    const auto none = factor<float>(backend(), unchecked, a.view());
    for (std::size_t b = 0; b < count; ++b) {
      EXPECT_EQ(full.report[b].status, b == 2 ? Status::non_finite : Status::ok);
      EXPECT_EQ(none.report[b].status, b == 2 ? Status::non_finite : Status::unchecked);
      EXPECT_EQ(none.report[b].scale, full.report[b].scale);
      EXPECT_TRUE(std::isnan(none.report[b].residual));
    }
  }
}

TEST(EmptyMatrices, HaveTheBarsOfTheirShape) {
  SKIP_WITHOUT_OPENCL();
  for (const auto& [m, n] : {std::pair<index_t, index_t>{0, 3}, {3, 0}}) {
    const Problem p{.count = 2, .m = m, .n = n, .type = ElementType::float64};
    Batch<double> a(p.count, m, n);
    const Result<double> result = factor<double>(backend(), plan_for(p, ""), a.view());
    const Bars bars = standard_bars(m, n, double_precision, {});
    for (const MatrixReport& line : result.report) {
      EXPECT_EQ(line.status, Status::ok);
      EXPECT_EQ(line.bars.residual, bars.residual);
      EXPECT_EQ(line.residual, 0);
    }
  }
}

TEST(TallMatrices, HaveTheirRouteInTheReport) {
  SKIP_WITHOUT_OPENCL();
  constexpr index_t count = 4, rows = 2000, cols = 5;  // too few for further passes
  const Problem problem{count, rows, cols, ElementType::float32, Mode::reduced, Sign::positive};
  Batch<float> a(count, rows, cols);
  for (index_t b = 0; b < count; ++b) fill_matrix<float>({.kind = "gauss"}, b, a.view()[b]);
  for (index_t i = 0; i < rows; ++i) a.view()[1](i, 4) = a.view()[1](i, 1);
  a.view()[2](5, 3) = std::nanf("");
  Plan plan = plan_for(problem, "opencl/tall");
  if (plan.params.at("GRAM_BODY") == 0) GTEST_SKIP() << "the device never uses A'A";
  const std::vector<Route> expected{Route::first_pass, Route::reflectors, Route::only,
                                    Route::first_pass};
  const auto routes_of = [](const std::vector<MatrixReport>& report) {
    std::vector<Route> routes;
    for (const MatrixReport& line : report) routes.push_back(line.route);
    return routes;
  };
  EXPECT_EQ(routes_of(factor<float>(backend(), plan, a.view()).report), expected);
  ResidentRun resident(backend(), plan, a.view());
  resident.run();
  EXPECT_EQ(routes_of(resident.report()), expected);

  plan.params["GRAM_BODY"] = 0;  // all matrices go through the tree
  const std::vector<MatrixReport> by_tree = factor<float>(backend(), plan, a.view()).report;
  EXPECT_EQ(routes_of(by_tree), std::vector<Route>(count, Route::only));
  for (const index_t b : {0, 1, 3}) EXPECT_EQ(by_tree[b].status, Status::ok) << b;
}

/// Makes Gaussian matrices. In matrix b, column `col` is column 0 with a relative change of 2^-(b /
/// 4 + 4).
std::vector<float> nearly_dependent(const Problem& problem, index_t col) {
  std::vector<float> a(static_cast<std::size_t>(problem.count * problem.m * problem.n));
  for (index_t b = 0; b < problem.count; ++b) {
    const MatrixView<float> matrix{&a[static_cast<std::size_t>(b * problem.m * problem.n)],
                                   problem.m, problem.n, problem.n};
    fill_matrix<float>({.kind = "gauss"}, b, matrix);
    const float part = std::exp2(-static_cast<float>(b) / 4 - 4);
    for (index_t i = 0; i < problem.m; ++i) matrix(i, col) = matrix(i, 0) + part * matrix(i, col);
  }
  return a;
}

// ||I - Q'Q||
double distance_from_orthogonal(const MatrixView<const float> q) {
  double squares = 0;
  for (index_t j = 0; j < q.cols; ++j) {
    for (index_t l = 0; l <= j; ++l) {
      double sum = j == l ? -1 : 0;
      for (index_t i = 0; i < q.rows; ++i)
        sum += static_cast<double>(q(i, j)) * static_cast<double>(q(i, l));
      squares += (j == l ? 1 : 2) * sum * sum;
    }
  }
  return std::sqrt(squares);
}

// Returns max |A - QR| divided by the norm of A's column.
double residual_of(const MatrixView<const float> a, const MatrixView<const float> q,
                   const MatrixView<const float> r) {
  double worst = 0;
  for (index_t j = 0; j < a.cols; ++j) {
    double largest = 0, norm = 0;
    for (index_t i = 0; i < a.rows; ++i) {
      double sum = static_cast<double>(a(i, j));
      norm += sum * sum;
      for (index_t l = 0; l <= j; ++l)
        sum -= static_cast<double>(q(i, l)) * static_cast<double>(r(l, j));
      largest = std::max(largest, std::abs(sum));
    }
    worst = std::max(worst, largest / std::sqrt(norm));
  }
  return worst;
}

class NearlyDependentColumns : public ::testing::TestWithParam<std::pair<index_t, index_t>> {
 protected:
  static constexpr index_t count = 80;  // in the last one the column is changed by 2^-23.75

  void SetUp() override {
    SKIP_WITHOUT_OPENCL();
    const Limits limits = device_under_test().limits;
    if (!gram_variant().plan.fits(problem_, limits).ok) GTEST_SKIP() << "shape not taken";
  }

  template <class T>
  MatrixView<const float> matrix(const std::vector<T>& of, index_t b, index_t rows) const {
    return {&of[static_cast<std::size_t>(b * rows * problem_.n)], rows, problem_.n, problem_.n};
  }

  Problem problem_{count,         GetParam().first, GetParam().second, ElementType::float32,
                   Mode::reduced, Sign::positive};
};

TEST_P(NearlyDependentColumns, AreRightInOnePassOrTwo) {
  for (const index_t col : {index_t{1}, problem_.n - 1}) {
    SCOPED_TRACE(col);
    const std::vector<float> a = nearly_dependent(problem_, col);
    const GramResult factors = run_gram_once(gram_variant(), problem_, a);
    Problem alone = problem_;
    alone.mode = Mode::r;
    const GramResult r = run_gram_once(gram_variant(), alone, a);
    int passed = 0, in_two = 0;
    for (index_t b = 0; b < count; ++b) {
      const int route = factors.routes[static_cast<std::size_t>(b)];
      if (route == ROUTE_REFLECTORS) continue;
      // What is good enough for Q is good enough for R alone.
      EXPECT_EQ(r.routes[static_cast<std::size_t>(b)], ROUTE_FIRST_PASS) << b;
      ++passed;
      in_two += route == ROUTE_SECOND_PASS;
      const auto q = matrix(factors.q, b, problem_.m), r_b = matrix(factors.r, b, problem_.n);
      EXPECT_LE(distance_from_orthogonal(q), orthogonality_bar(problem_)) << b;
      EXPECT_LE(residual_of(matrix(a, b, problem_.m), q, r_b), 0x1p-21) << b;
      // A second pass may change R.
      if (route == ROUTE_FIRST_PASS) {
        EXPECT_TRUE(std::equal(r_b.data, r_b.data + problem_.n * problem_.n,
                               matrix(r.r, b, problem_.n).data))
            << b;
      }
    }
    EXPECT_GE(passed, col > 1 ? 48 : 20);
    EXPECT_GE(in_two, col > 1 ? 8 : 0);
  }
}

TEST_P(NearlyDependentColumns, GoToReflectorsWhereTheyAreDependent) {
  std::vector<float> a = nearly_dependent(problem_, 1);
  for (std::size_t i = 0; i < a.size(); i += static_cast<std::size_t>(problem_.n)) a[i + 1] = a[i];
  const GramResult factors = run_gram_once(gram_variant(), problem_, a);
  for (const int route : factors.routes) EXPECT_EQ(route, ROUTE_REFLECTORS);
}

/// Among 1500 such matrices, this one has the largest error of the sums of A'A relative to its
/// guard.
TEST(GramGuard, StopsWhatMissesTheBar) {
  SKIP_WITHOUT_OPENCL();
  const Problem problem{1, 512, 130, ElementType::float32, Mode::reduced, Sign::positive};
  if (!gram_tiles_variant().plan.fits(problem, device_under_test().limits).ok)
    GTEST_SKIP() << "shape not taken";
  std::vector<float> a(512 * 130);
  fill_matrix<float>({.kind = "cond", .cond = 1e6, .seed = 5}, 593, {a.data(), 512, 130, 130});
  const GramResult factors = run_gram_once(gram_tiles_variant(), problem, a);
  const double error = distance_from_orthogonal({factors.q.data(), 512, 130, 130});
  EXPECT_TRUE(factors.routes[0] == ROUTE_REFLECTORS || error <= 512 * 0x1p-23) << error;
}

/// The matrices have one square, one with two tiles, and two squares; matrix 3 is flagged.
TEST(GramTiles, GiveTheSameBitsInWaves) {
  SKIP_WITHOUT_OPENCL();
  for (const auto& [m, n] : {std::pair{70, 60}, {130, 97}, {150, 140}}) {
    SCOPED_TRACE(n);
    const Problem problem{5, m, n, ElementType::float32, Mode::reduced, Sign::positive};
    if (!gram_tiles_variant().plan.fits(problem, device_under_test().limits).ok) continue;
    std::vector<float> a(static_cast<std::size_t>(5 * m * n));
    for (index_t b = 0; b < 5; ++b) {
      const MatrixView<float> matrix{&a[static_cast<std::size_t>(b * m * n)], m, n, n};
      fill_matrix<float>({.kind = "gauss"}, b, matrix);
      for (index_t i = 0; i < m && b == 3; ++i) matrix(i, n - 1) = matrix(i, 3);
    }
    const GramResult at_once = run_gram(gram_tiles_variant(), problem, a);
    const GramResult in_waves = run_gram(gram_tiles_variant(), problem, a, 2);
    EXPECT_EQ(at_once.routes,
              (std::vector<int>{ROUTE_FIRST_PASS, ROUTE_FIRST_PASS, ROUTE_FIRST_PASS,
                                ROUTE_REFLECTORS, ROUTE_FIRST_PASS}));
    EXPECT_EQ(in_waves.routes, at_once.routes);
    EXPECT_EQ(in_waves.q, at_once.q);
    EXPECT_EQ(in_waves.r, at_once.r);
  }
}

INSTANTIATE_TEST_SUITE_P(Gram, NearlyDependentColumns,
                         ::testing::Values(std::pair{24, 12}, std::pair{40, 17}, std::pair{64, 64},
                                           std::pair{65, 63}, std::pair{200, 64},
                                           std::pair{130, 70}, std::pair{96, 96},
                                           std::pair{101, 90}));

/// The errors of a resident run of complex matrices, whose rows have gaps in the caller's memory,
/// are those of the backend.
template <class T>
void expect_errors_of_complex_r() {
  using C = std::complex<T>;
  const Problem problem{
      .count = 3, .m = 20, .n = 7, .type = element_type<C>, .mode = Mode::r, .sign = Sign::lapack};
  const Plan plan = plan_for(problem, "");
  Batch<C> padded(3, 21, 9), r(3, 7, 7);
  std::fill_n(padded.view().data, 3 * 21 * 9, C(1, 2));
  const BatchView<C> a{padded.view().data, 3, 20, 7, 9, 21 * 9};
  for (index_t b = 0; b < 3; ++b) fill_matrix<C>({.seed = 5}, b, a[b]);
  Factors<C> out;
  out.r = r.view();
  std::vector<MatrixReport> report(3);
  backend().factor(plan, a, out, report);
  ResidentRun run(backend(), plan, a);
  run.run();
  const std::vector<MatrixReport> resident = run.report();
  for (std::size_t b = 0; b < 3; ++b) EXPECT_EQ(resident[b].residual, report[b].residual);
}

TEST(ResidentRuns, TakeComplexMatrices) {
  SKIP_WITHOUT_OPENCL();
  if (!backend().limits().has_float64) GTEST_SKIP() << "the device has no float64";
  expect_errors_of_complex_r<float>();
  expect_errors_of_complex_r<double>();
}

}  // namespace
}  // namespace qrtool::test::engine_test
