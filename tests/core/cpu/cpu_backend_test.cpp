// SPDX-License-Identifier: Apache-2.0
// cpu_backend_test.cpp: every CPU variant x type x shape x hard matrix, at the plain bar.
#include "core/cpu/cpu_backend.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "core/cpu/cpu_variants.hpp"
#include "core/error.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/report/ratios.hpp"
#include "tests/support/householder.hpp"

namespace qrtool::cpu_backend_test {
namespace {

constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();

Limits test_limits(int threads = 2) {
  Limits limits;
  limits.host_bytes = std::size_t{1} << 30;
  limits.threads = threads;
  return limits;
}

/// An element type and the variant that is under test.
struct Eigen {
  static constexpr std::string_view variant = "cpu/eigen";
};
struct Batched {
  static constexpr std::string_view variant = "cpu/batched";
};
struct Blocked {
  static constexpr std::string_view variant = "cpu/blocked";
};
/// No variant is forced: the plan chooses.
struct Unforced {
  static constexpr std::string_view variant = "";
};
template <class E, class V>
struct Run {
  using Element = E;
  static constexpr std::string_view variant = V::variant;
};

/// A batch and its outputs, which are filled with NaN, with padding around every row and matrix.
template <class Run>
struct Case {
  using T = typename Run::Element;
  Problem problem;
  index_t pad;
  std::vector<T> a, q, r, v, tau, a_before;
  std::vector<MatrixReport> report;

  explicit Case(Problem p, index_t padding = 0) : problem(p), pad(padding) {
    problem.type = element_type<T>;
    const auto make = [&](std::vector<T>& data, index_t rows, index_t cols) {
      data.assign(static_cast<std::size_t>(p.count * (rows * (cols + pad) + pad)), T(nan_f));
    };
    make(a, p.m, p.n);
    make(q, p.m, p.q_cols());
    make(r, p.mode == Mode::raw ? 0 : p.r_rows(), p.n);
    make(v, p.mode == Mode::raw ? p.m : 0, p.n);
    make(tau, p.mode == Mode::raw ? 1 : 0, p.k());
    report.resize(static_cast<std::size_t>(p.count));
  }
  BatchView<T> view(std::vector<T>& data, index_t rows, index_t cols) {
    return {data.data(), problem.count, rows, cols, cols + pad, rows * (cols + pad) + pad};
  }
  BatchView<T> view_a() { return view(a, problem.m, problem.n); }
  Factors<T> factors() {
    const bool raw = problem.mode == Mode::raw;
    return {view(q, problem.m, problem.q_cols()), view(r, raw ? 0 : problem.r_rows(), problem.n),
            view(v, raw ? problem.m : 0, problem.n), view(tau, raw ? 1 : 0, problem.k())};
  }
  void fill(std::string_view kind, std::uint64_t seed = 3) {
    for (index_t b = 0; b < problem.count; ++b) {
      fill_matrix<T>({kind, 1e6, seed}, b, view_a()[b]);
    }
  }
  bool is_taken() const {
    for (const Variant& variant : cpu_variants()) {
      if (variant.name == Run::variant) return variant.takes(problem, test_limits()).ok;
    }
    return false;
  }
  /// Returns the variant that ran.
  std::string_view run(int threads = 2) {
    a_before = a;
    CpuBackend backend(test_limits(threads));
    const Plan plan = make_plan(problem, backend.variants(), backend.limits(), Run::variant);
    backend.factor(plan, view_a(), factors(), report);
    return plan.variant->name;
  }
};

template <class T>
bool same_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0;
}

template <class T>
bool same_matrix(MatrixView<T> x, MatrixView<T> y) {
  for (index_t i = 0; i < x.rows; ++i) {
    const std::size_t bytes = x.cols * sizeof(T);
    if (bytes > 0 && std::memcmp(&x(i, 0), &y(i, 0), bytes) != 0) return false;
  }
  return true;
}

template <class T>
bool is_all_nan(MatrixView<T> x) {
  for (index_t i = 0; i < x.rows; ++i) {
    for (index_t j = 0; j < x.cols; ++j) {
      if (!std::isnan(x(i, j))) return false;
    }
  }
  return true;
}

/// Measures the factors again, independently of the report, and judges them by the bar. float32
/// with fewer than 16 rows must also meet the published bar.
template <class Run>
void expect_good(Case<Run>& c, const std::string& what) {
  using T = typename Run::Element;
  const Problem& p = c.problem;
  EXPECT_TRUE(same_bits(c.a, c.a_before)) << what << ": input changed";
  const Factors<T> f = c.factors();
  ErrorMeter meter(p.m, p.n, p.q_cols(), p.r_rows());
  for (index_t b = 0; b < p.count; ++b) {
    const MatrixView<const T> a = c.view_a()[b];
    const Errors errors = meter.measure<T>(a, f.q[b], f.r[b], magnitude_of<T>(a).scale());
    const Bars bars = standard_bars(p.m, p.n, precision_of(p.type), errors);
    EXPECT_EQ(judge(errors, bars, p.wants_q()), Status::ok)
        << what << " matrix " << b << ": residual " << errors.residual << " orthogonality "
        << errors.orthogonality << " bar " << bars.orthogonality;
    EXPECT_EQ(errors.lower, 0) << what;
    EXPECT_EQ(c.report[b].status, Status::ok) << what;
    // cpu/tall adds up its sums in another order, and so do matrices that are measured one per
    // lane.
    const double tolerance = (Run::variant.empty() ? 0.01 : 1e-6) * bars.residual;
    EXPECT_NEAR(c.report[b].residual, errors.residual, tolerance) << what;
    if (p.type == ElementType::float32 && p.m < 16 && p.wants_q()) {
      EXPECT_LE(errors.orthogonality, m_eps_bars(p.m).orthogonality) << what;
      EXPECT_LE(errors.residual, std::max(m_eps_bars(p.m).residual, bars.residual - 16 * 0x1p-23))
          << what;
    }
    if (p.sign == Sign::positive) {
      for (index_t i = 0; i < p.k(); ++i) {
        EXPECT_FALSE(std::signbit(f.r[b](i, i))) << what << " R(" << i << ")";
      }
    }
    for (index_t i = 1; i < p.r_rows(); ++i) {
      for (index_t j = 0; j < std::min(i, p.n); ++j) {
        const T zero = f.r[b](i, j);
        EXPECT_TRUE(zero == 0 && !std::signbit(zero)) << what;
      }
    }
  }
}

std::string describe(std::string_view kind, const Problem& p) {
  return std::string(kind) + " " + std::to_string(p.m) + "x" + std::to_string(p.n) + " " +
         std::string(name_of(p.mode)) + " " + std::string(name_of(p.sign));
}

template <class T>
class CpuBackendTest : public testing::Test {};
using Types = testing::Types<Run<float, Eigen>, Run<double, Eigen>, Run<float, Batched>,
                             Run<double, Batched>, Run<float, Blocked>, Run<double, Blocked>>;
TYPED_TEST_SUITE(CpuBackendTest, Types);

// Shapes around Eigen's block of 48 columns, the 16 rows below which float32 is computed in
// float64, the 32 k rows from which a matrix is tall, and 4, 8, 16, 32, which are the panels, lanes
// and summed rows of the packs and the tiles, leaves and strips of cpu/blocked.
const std::vector<std::pair<index_t, index_t>> shapes = {
    {1, 1},     {1, 7},    {7, 1},    {2, 2},   {3, 2},   {2, 3},    {8, 8},     {15, 15},
    {16, 16},   {17, 17},  {47, 47},  {48, 48}, {49, 49}, {97, 49},  {100, 50},  {33, 17},
    {17, 33},   {5, 60},   {64, 2},   {65, 2},  {96, 3},  {97, 3},   {300, 4},   {1500, 1},
    {4, 4},     {5, 5},    {9, 4},    {31, 32}, {32, 31}, {65, 64},  {20, 130},  {130, 127},
    {129, 128}, {1024, 1}, {1024, 9}, {40, 33}, {63, 97}, {97, 200}, {161, 160}, {130, 160}};

TYPED_TEST(CpuBackendTest, EveryHardMatrixMeetsTheBar) {
  using T = typename TypeParam::Element;
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const auto& [m, n] : shapes) {
      for (const Mode mode : {Mode::reduced, Mode::complete}) {
        if (mode == Mode::complete && m > 300) continue;
        Case<TypeParam> c({3, m, n, element_type<T>, mode});
        if (!c.is_taken()) continue;
        c.fill(kind.name);
        c.run();
        expect_good(c, describe(kind.name, c.problem));
      }
    }
  }
}

TYPED_TEST(CpuBackendTest, EmptyShapesHaveEmptyFactors) {
  using T = typename TypeParam::Element;
  for (const auto& [m, n] : {std::pair<index_t, index_t>{0, 3}, {3, 0}, {0, 0}}) {
    for (const Mode mode : {Mode::reduced, Mode::complete, Mode::r, Mode::raw}) {
      Case<TypeParam> c({2, m, n, element_type<T>, mode});
      if (!c.is_taken()) continue;
      c.run();
      EXPECT_EQ(c.report[1].status, Status::ok) << describe("empty", c.problem);
      if (mode == Mode::complete && m == 3) {
        for (index_t i = 0; i < 9; ++i) EXPECT_EQ(c.factors().q[1].data[i], i % 4 == 0 ? 1 : 0);
      }
    }
  }
}

TYPED_TEST(CpuBackendTest, SmallMatricesNeverMissThePublishedBar) {
  for (index_t m = 1; m <= 17; ++m) {
    for (const index_t n : {index_t{1}, m, m + 3}) {
      Case<TypeParam> c({400, m, n});
      c.fill("gauss", static_cast<std::uint64_t>(m));
      c.run();
      expect_good(c, describe("gauss", c.problem));
    }
  }
}

TYPED_TEST(CpuBackendTest, TallConstantColumnsAreSummedWithoutBias) {
  Case<TypeParam> c({1, 200000, 2});
  if (!c.is_taken()) GTEST_SKIP() << TypeParam::variant << " does not take it";
  c.fill("constant");
  c.run();
  expect_good(c, "constant 200000x2");
}

TYPED_TEST(CpuBackendTest, LeavesPaddingUntouched) {
  using T = typename TypeParam::Element;
  Case<TypeParam> c({3, 20, 12}, 5);
  c.fill("gauss");
  c.run();
  expect_good(c, "padded");
  const BatchView<T> q = c.factors().q;
  for (index_t b = 0; b < 3; ++b) {
    for (index_t i = 0; i < 20; ++i) {
      for (index_t j = 12; j < 17; ++j) EXPECT_TRUE(std::isnan(q[b].data[i * q.ld + j]));
    }
  }
}

TYPED_TEST(CpuBackendTest, AgreesWithTheReferenceInLapackSigns) {
  using T = typename TypeParam::Element;
  for (const auto& [m, n] : {std::pair<index_t, index_t>{3, 3}, {9, 5}, {5, 9}, {60, 50}}) {
    Case<TypeParam> c({1, m, n, element_type<T>, Mode::reduced, Sign::lapack});
    c.fill("gauss");
    c.run();
    const test::ReferenceQr reference = test::reference_qr<T>(c.view_a()[0]);
    const double tolerance = 200 * precision_of(element_type<T>).u * static_cast<double>(m);
    for (index_t i = 0; i < c.problem.k(); ++i) {
      for (index_t j = 0; j < n; ++j) {
        EXPECT_NEAR(c.factors().r[0](i, j), reference.r_at(i, j), tolerance);
      }
    }
  }
}

TYPED_TEST(CpuBackendTest, RawIsLapacksGeqrf) {
  using T = typename TypeParam::Element;
  for (const auto& [m, n] :
       {std::pair<index_t, index_t>{3, 3}, {9, 5}, {5, 9}, {60, 50}, {50, 90}, {200, 3}}) {
    Case<TypeParam> c({2, m, n, element_type<T>, Mode::raw, Sign::lapack});
    if (!c.is_taken()) continue;
    c.fill("gauss");
    c.run();
    const test::ReferenceQr reference = test::reference_qr<T>(c.view_a()[0]);
    const double tolerance = 200 * precision_of(element_type<T>).u * static_cast<double>(m);
    for (index_t j = 0; j < c.problem.k(); ++j) {
      EXPECT_NEAR(c.factors().tau[0](0, j), reference.tau[j], tolerance);
      EXPECT_NEAR(c.factors().v[0](j, n - 1), reference.r_at(j, n - 1), tolerance);
    }
    for (const MatrixReport& report : c.report) {
      EXPECT_EQ(report.status, Status::ok);
      if (m < 16) {
        EXPECT_LE(report.orthogonality, m_eps_bars(m).orthogonality);
      }
    }
  }
}

/// Whether R alone of a Gaussian matrix comes from A'A, with other last digits than R beside Q.
bool is_from_products(std::string_view variant, index_t m, index_t n) {
  return variant == "cpu/batched" && n >= 16 && m >= 96 && m >= 2 * n;
}

TYPED_TEST(CpuBackendTest, ROnlyIsTheReducedR) {
  using T = typename TypeParam::Element;
  for (const auto& [m, n] : shapes) {
    Case<TypeParam> full({2, m, n}), r_only({2, m, n, element_type<T>, Mode::r});
    if (!full.is_taken()) continue;
    full.fill("gauss");
    r_only.fill("gauss");
    full.run();
    r_only.run();
    if (is_from_products(TypeParam::variant, m, n)) {
      double norm = 0;
      for (const T x : full.a) norm = std::hypot(norm, static_cast<double>(x));
      const double most = static_cast<double>(m) * precision_of(element_type<T>).u * norm;
      for (std::size_t i = 0; i < full.r.size(); ++i) ASSERT_NEAR(full.r[i], r_only.r[i], most);
    } else {
      EXPECT_TRUE(same_bits(full.r, r_only.r)) << m << "x" << n;
    }
    EXPECT_EQ(r_only.report[0].status, Status::ok);
    EXPECT_TRUE(std::isnan(r_only.report[0].orthogonality));
  }
}

TYPED_TEST(CpuBackendTest, ScalingByAPowerOfTwoScalesROnly) {
  using T = typename TypeParam::Element;
  for (const int exponent : {-100, -3, 1, 90}) {
    Case<TypeParam> c({4, 21, 13}), scaled({4, 21, 13});
    c.fill("gauss");
    scaled.fill("gauss");
    for (T& x : scaled.a) x = std::ldexp(x, exponent);
    c.run();
    scaled.run();
    EXPECT_TRUE(same_bits(c.q, scaled.q)) << exponent;
    for (T& x : c.r) x = std::ldexp(x, exponent);
    EXPECT_TRUE(same_bits(c.r, scaled.r)) << exponent;
    EXPECT_EQ(c.report[0].scale + exponent, scaled.report[0].scale);
  }
}

TYPED_TEST(CpuBackendTest, ABatchIsItsMatricesOneByOne) {
  using T = typename TypeParam::Element;
  for (const auto& [m, n] : shapes) {
    Case<TypeParam> batch({5, m, n});
    if (!batch.is_taken()) continue;
    batch.fill("gauss");
    batch.run(2);
    for (index_t b = 0; b < 5; ++b) {
      Case<TypeParam> single({1, m, n});
      fill_matrix<T>({"gauss", 1e6, 3}, b, single.view_a()[0]);
      single.run(1);
      const Factors<T> f = batch.factors();
      EXPECT_EQ(0, std::memcmp(f.q[b].data, single.q.data(), single.q.size() * sizeof(T)));
      EXPECT_EQ(0, std::memcmp(f.r[b].data, single.r.data(), single.r.size() * sizeof(T)));
    }
  }
}

TYPED_TEST(CpuBackendTest, PlaceAndThreadsDoNotMatter) {
  // With 37 matrices the last pack of 4, 8 or 16 is partial. Neighbours differ in kind.
  constexpr index_t count = 37, shift = 11;
  Case<TypeParam> c({count, 21, 13}), moved({count, 21, 13});
  const std::span<const MatrixKind> kinds = matrix_kinds();
  for (index_t b = 0; b < count; ++b) {
    const std::string_view kind = kinds[static_cast<std::size_t>(b) % kinds.size()].name;
    fill_matrix({kind}, b, c.view_a()[b]);
    fill_matrix({kind}, b, moved.view_a()[(b + shift) % count]);
  }
  c.run(1);
  moved.run(3);
  for (index_t b = 0; b < count; ++b) {
    const index_t at = (b + shift) % count;
    EXPECT_TRUE(same_matrix(c.factors().q[b], moved.factors().q[at])) << b;
    EXPECT_TRUE(same_matrix(c.factors().r[b], moved.factors().r[at])) << b;
  }
}

TYPED_TEST(CpuBackendTest, ThreadsThatShareTheLastMatricesDoNotMatter) {
  Case<TypeParam> alone({5, 90, 70}), shared({5, 90, 70});
  alone.fill("gauss");
  shared.fill("gauss");
  alone.run(1);
  shared.run(3);  // two matrices are left for three threads
  EXPECT_TRUE(same_bits(alone.q, shared.q));
  EXPECT_TRUE(same_bits(alone.r, shared.r));
  for (const MatrixReport& line : shared.report) EXPECT_EQ(line.status, Status::ok);
}

TYPED_TEST(CpuBackendTest, ABadMatrixStaysAlone) {
  using T = typename TypeParam::Element;
  constexpr index_t count = 19;
  for (const Mode mode : {Mode::reduced, Mode::raw}) {
    for (const T bad : {T(nan_f), std::numeric_limits<T>::infinity()}) {
      Case<TypeParam> good({count, 20, 10, element_type<T>, mode}), mixed(good);
      good.fill("gauss");
      mixed.fill("gauss");
      for (const index_t b : {2, 17}) mixed.view_a()[b](7, 3) = bad;
      good.run();
      mixed.run();
      const Factors<T> f = mixed.factors(), g = good.factors();
      for (index_t b = 0; b < count; ++b) {
        for (const auto& [x, y] : {std::pair{f.q[b], g.q[b]},
                                   {f.r[b], g.r[b]},
                                   {f.v[b], g.v[b]},
                                   {f.tau[b], g.tau[b]}}) {
          if (b == 2 || b == 17) {
            EXPECT_TRUE(is_all_nan(x)) << b;
          } else {
            EXPECT_TRUE(same_matrix(x, y)) << b;
          }
        }
        const bool is_bad = b == 2 || b == 17;
        EXPECT_EQ(mixed.report[b].status, is_bad ? Status::non_finite : Status::ok);
        EXPECT_EQ(std::isnan(mixed.report[b].residual), is_bad);
      }
    }
  }
}

TYPED_TEST(CpuBackendTest, AnROutOfRangeIsReported) {
  using T = typename TypeParam::Element;
  Case<TypeParam> c({2, 4, 1});
  c.fill("gauss");
  const T large = std::numeric_limits<T>::max() * T(0.9);
  for (index_t i = 0; i < 4; ++i) c.view_a()[1](i, 0) = large;
  c.run();
  EXPECT_EQ(c.report[0].status, Status::ok);
  EXPECT_EQ(c.report[1].status, Status::r_overflows);
}

TYPED_TEST(CpuBackendTest, TakesTheLargestAndSmallestNumbers) {
  using T = typename TypeParam::Element;
  const T denormal = std::numeric_limits<T>::denorm_min();
  for (const T size : {denormal, denormal * 64, std::numeric_limits<T>::min(),
                       std::numeric_limits<T>::max() / 64}) {
    Case<TypeParam> c({2, 24, 12});
    c.fill("integers");
    for (T& x : c.a) x *= size / (size < 1 ? 1 : 8);
    c.run();
    expect_good(c, "size " + std::to_string(size));
  }
}

TYPED_TEST(CpuBackendTest, ReportsTheRankHint) {
  Case<TypeParam> c({1, 20, 10});
  c.fill("zero-columns");
  c.run();
  EXPECT_LT(c.report[0].diagonal_ratio, 1e-6);
  c.fill("identity");
  c.run();
  EXPECT_EQ(c.report[0].diagonal_ratio, 1);
}

/// The variants that the plan chooses for these shapes when none is forced; every result must meet
/// the bar.
template <class T>
std::set<std::string_view> variants_of_the_plan() {
  std::set<std::string_view> chosen;
  const std::vector<Problem> problems{
      {.count = 40, .m = 16, .n = 16},  {.count = 40, .m = 96, .n = 96},
      {.count = 1, .m = 96, .n = 96},   {.count = 3, .m = 300, .n = 20},
      {.count = 2, .m = 300, .n = 300}, {.count = 2, .m = 60, .n = 200},
      {.count = 3, .m = 5000, .n = 4},  {.count = 1, .m = 4300, .n = 130},
      {.count = 1, .m = 9000, .n = 40}, {.count = 1, .m = 40000, .n = 12},
      {.count = 2, .m = 3, .n = 7}};
  for (const std::string_view kind : {"gauss", "cond", "constant"}) {
    for (const Problem& problem : problems) {
      Case<Run<T, Unforced>> c(problem);
      c.fill(kind);
      chosen.insert(c.run());
      expect_good(c, describe(kind, problem));
    }
  }
  return chosen;
}

TEST(CpuPlanTest, EveryVariantThatIsChosenUnforcedMeetsTheBar) {
  const std::set<std::string_view> all{"cpu/batched", "cpu/blocked", "cpu/eigen", "cpu/tall"};
  EXPECT_EQ(variants_of_the_plan<float>(), all);
  EXPECT_EQ(variants_of_the_plan<double>(), all);
}

template <class... Runs>
std::set<std::string_view> names_of(testing::Types<Runs...>) {
  return {Runs::variant...};
}

TEST(CpuPlanTest, EveryVariantOfTheListIsTested) {
  std::set<std::string_view> tested = names_of(Types());
  tested.insert({"cpu/complex", "cpu/tall"});  // by complex_qr_test and tall_test
  std::set<std::string_view> listed;
  for (const Variant& variant : cpu_variants()) listed.insert(variant.name);
  EXPECT_EQ(tested, listed);
}

/// Three matrices of several leaves, of which the second has a singular one: their routes for R
/// alone.
template <class T>
std::vector<Route> routes_of_tall() {
  Case<Run<T, Unforced>> c({.count = 3, .m = 40000, .n = 8, .mode = Mode::r});
  c.fill("gauss");
  const MatrixView<T> singular = c.view_a()[1];
  for (index_t i = 20000; i < 40000; ++i) singular(i, 5) = singular(i, 2);
  EXPECT_EQ(c.run(), "cpu/tall");
  std::vector<Route> routes;
  for (const MatrixReport& line : c.report) routes.push_back(line.route);
  return routes;
}

TEST(CpuRoutes, OfTallMatricesAreInTheirReport) {
  using enum Route;
  EXPECT_EQ(routes_of_tall<float>(), (std::vector{first_pass, reflectors, first_pass}));
  EXPECT_EQ(routes_of_tall<double>(), (std::vector{only, only, only})) << "float64 has one way";
}

TEST(CpuVariants, EachLeadsToTheEntryThatMakesItsWorkers) {
  for (const Variant& variant : cpu_variants()) {
    EXPECT_EQ(cpu_variant(variant).plan.name, variant.name);
  }
  const Variant copy = cpu_variants().front();
  EXPECT_THROW(cpu_variant(copy), InternalError);  // it is not a member of the list
}

}  // namespace
}  // namespace qrtool::cpu_backend_test
