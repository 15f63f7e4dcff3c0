// SPDX-License-Identifier: Apache-2.0
// variants_test.cpp: every variant of the registry in float and double, on shapes near its block
// sizes and on every kind of matrix, with the plain bar.
#include "gpu/registry.hpp"

#include <algorithm>
#include <cmath>
#include <span>
#include <tuple>

#include "core/cpu/cpu_backend.hpp"
#include "core/measure/magnitude.hpp"
#include "gpu/gram/group/gram_group.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::variants_test {
namespace {

struct Shape {
  index_t m, n;
};

/// Shapes near the limits of every variant: tiles of `small` (4, 8, .. 512 rows, 4 .. 128 columns),
/// panels and strips of `blocked` (32 columns), panels of `large` (32 columns; 64 from 128 columns
/// on) and its blocks (128), few rows (16), slabs of the check (1024 rows), tiles of `leading` (64
/// rows). A variant skips the shapes that it does not accept.
const std::vector<Shape> shapes{
    {1, 1},     {1, 7},    {9, 1},   {2, 2},     {3, 5},    {4, 4},     {5, 4},    {8, 8},
    {15, 15},   {16, 16},  {17, 17}, {16, 15},   {12, 40},  {17, 33},   {31, 31},  {32, 32},
    {33, 32},   {40, 17},  {47, 48}, {49, 49},   {64, 64},  {65, 63},   {100, 20}, {130, 65},
    {96, 80},   {300, 10}, {512, 3}, {128, 128}, {1023, 5}, {1024, 33}, {1100, 2}, {4100, 3},
    {210, 200}, {8, 4},    {3, 21},  {16, 64},   {20, 100}, {70, 160},  {49, 40}};

/// The matrices of a case: one of each kind, and one with a NaN.
template <class T>
struct Kinds {
  explicit Kinds(Shape shape)
      : batch(static_cast<index_t>(matrix_kinds().size()) + 1, shape.m, shape.n) {
    const index_t kinds = batch.view().count - 1;
    nan_at = kinds / 2;
    for (index_t b = 0; b <= kinds; ++b) {
      const index_t kind = b < nan_at ? b : b - 1;
      MatrixRequest request;
      request.kind = b == nan_at ? "gauss" : matrix_kinds()[static_cast<std::size_t>(kind)].name;
      fill_matrix<T>(request, b, batch.view()[b]);
    }
    batch.view()[nan_at](shape.m / 2, shape.n / 2) = std::numeric_limits<T>::quiet_NaN();
  }
  std::string name(index_t b) const {
    if (b == nan_at) return "NaN";
    return std::string(matrix_kinds()[static_cast<std::size_t>(b < nan_at ? b : b - 1)].name);
  }
  Batch<T> batch;
  index_t nan_at = 0;
};

/// Most tests use these shapes, because a device builds its kernels for every shape, and PoCL takes
/// seconds for each: square, wide, tall, and with several strips of rows, which everyday tests take
/// in one mode.
constexpr Shape usual_shapes[] = {{33, 33}, {9, 14}, {70, 17}, {600, 17}};

/// A test uses the first of these shapes that a variant accepts: a small one, one with enough rows
/// for `blocked`, a tall one, a very small one, one for `gram_group`.
constexpr Shape representative[] = {{33, 33}, {40, 40}, {600, 17}, {8, 8}, {70, 65}};

class Variants : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }

  const GpuVariant& variant() const {
    for (const GpuVariant& v : gpu_variants()) {
      if (v.plan.name == GetParam()) return v;
    }
    throw std::runtime_error("unknown variant");
  }

  template <class T>
  Problem problem(Shape shape, Mode mode, Sign sign = Sign::positive) const {
    return {static_cast<index_t>(matrix_kinds().size()) + 1,
            shape.m,
            shape.n,
            element_type<T>,
            mode,
            sign};
  }

  /// The signs that the variant gives, positive ones where it has the choice.
  Sign own_sign() const {
    return GetParam() == "opencl/reconstruct" ? Sign::lapack : Sign::positive;
  }

  Shape taken_shape() const {
    for (const Shape shape : representative) {
      if (takes(problem<float>(shape, Mode::reduced, own_sign()))) return shape;
    }
    return {};
  }

  bool takes(const Problem& p) const { return variant().plan.fits(p, backend().limits()).ok; }

  /// Everyday tests take two of these shapes: the square one, and the wide one, or where a variant
  /// takes no wide ones the tall one. attack_test.cpp has tall ones of every variant.
  std::span<const Shape> usual() const {
    const std::span<const Shape> all = usual_shapes;
    if (takes_all()) return all;
    return takes(problem<float>(all[1], Mode::reduced, own_sign())) ? all.first(2) : all.first(3);
  }

  template <class T>
  void check_shape(Shape shape, Mode mode, Sign sign);
};

template <class T>
void expect_all_nan(MatrixView<const T> x) {
  for (index_t i = 0; i < x.rows; ++i) {
    for (index_t j = 0; j < x.cols; ++j) ASSERT_TRUE(std::isnan(x(i, j))) << i << ", " << j;
  }
}

/// Checks the form of R: +0 below the diagonal, and, if the sign is positive, a diagonal that is
/// not negative and not -0.
template <class T>
void expect_r_form(const Problem& p, MatrixView<const T> r) {
  for (index_t i = 0; i < r.rows; ++i) {
    for (index_t j = 0; j < std::min(i, r.cols); ++j) {
      ASSERT_TRUE(r(i, j) == 0 && !std::signbit(r(i, j))) << i << ", " << j;
    }
    if (i < p.k() && p.sign == Sign::positive) {
      ASSERT_TRUE(!std::signbit(r(i, i))) << i;
    }
  }
}

template <class T>
void expect_good(const Problem& p, MatrixView<const T> a, Result<T>& result, index_t b) {
  const Factors<T> out = result.factors();
  const Errors host = measure_on_host<T>(p, a, out, b);
  const Bars bars = standard_bars(p.m, p.n, precision_of(p.type), host);
  EXPECT_EQ(judge(host, bars, p.mode != Mode::r), Status::ok)
      << "residual " << host.residual / bars.residual << " orthogonality "
      << host.orthogonality / bars.orthogonality << " of the bar";
  if (p.mode != Mode::raw) {
    EXPECT_EQ(host.lower, 0);
    expect_r_form<T>(p, out.r[b]);
  }

  const MatrixReport& device = result.report[static_cast<std::size_t>(b)];
  EXPECT_EQ(device.status, Status::ok);
  EXPECT_EQ(device.scale, magnitude_of(a).scale());
  // The sums have a different order, so errors of the size of float64's rounding unit differ.
  const double noise = 8 * 0x1p-52 * std::sqrt(static_cast<double>(p.m));
  EXPECT_NEAR(device.residual, host.residual, 1e-3 * host.residual + noise);
  EXPECT_NEAR(device.diagonal_ratio, host.diagonal_ratio, 1e-12);
  EXPECT_EQ(device.lower, host.lower);
  if (p.mode == Mode::r) {
    EXPECT_TRUE(std::isnan(device.orthogonality));
  } else {
    EXPECT_NEAR(device.orthogonality, host.orthogonality, 1e-3 * host.orthogonality + noise);
  }
}

template <class T>
void Variants::check_shape(Shape shape, Mode mode, Sign sign) {
  const Problem p = problem<T>(shape, mode, sign);
  if (!takes(p)) return;
  SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " " << name_of(p.type) << " "
                                  << name_of(mode) << " " << name_of(sign));
  const Plan plan = plan_for(p, GetParam());
  EXPECT_EQ(plan.variant->name, GetParam());
  Kinds<T> kinds(shape);
  const Kinds<T> untouched(shape);
  const BatchView<const T> a = kinds.batch.view();
  Result<T> result = factor<T>(backend(), plan, a);
  for (index_t b = 0; b < p.count; ++b) {
    SCOPED_TRACE(kinds.name(b));
    ASSERT_TRUE(same_bits<T>(a[b], untouched.batch.view()[b]));
    if (b != kinds.nan_at) {
      expect_good<T>(p, a[b], result, b);
      continue;
    }
    EXPECT_EQ(result.report[static_cast<std::size_t>(b)].status, Status::non_finite);
    const Factors<T> out = result.factors();
    for (const MatrixView<T>& x : {out.q[b], out.r[b], out.v[b], out.tau[b]}) expect_all_nan<T>(x);
  }
}

TEST_P(Variants, EveryShapeAndKindReduced) {
  if (GetParam() == "opencl/tall") GTEST_SKIP() << "TallMatrices has its shapes";
  for (const Shape shape : shapes) {
    // PoCL compiles this kernel for half a minute, and 65 and 128 columns take all of its branches.
    if (GetParam() == "opencl/gram_group" && shape.n == 80) continue;
    check_shape<float>(shape, Mode::reduced, Sign::positive);
    check_shape<double>(shape, Mode::reduced, Sign::positive);
  }
}

/// For every day the shapes of the tests below, so that PoCL builds one set of programs for all.
TEST_P(Variants, SomeShapesAndEveryKindReduced) {
  if (GetParam() == "opencl/tall") GTEST_SKIP() << "TallMatrices has its shapes";
  constexpr Shape tiny[] = {{8, 8}, {5, 4}};  // which takes none of the others
  const std::span<const Shape> some = usual();
  // float32 is square every day, and float64 is not.
  bool is_double = false;
  for (const Shape shape : GetParam() == "opencl/tiny" ? std::span(tiny) : some) {
    if (takes_all() || !is_double) check_shape<float>(shape, Mode::reduced, Sign::positive);
    if (takes_all() || is_double) check_shape<double>(shape, Mode::reduced, Sign::positive);
    is_double = true;
  }
}

/// A square of 128 columns, and two squares where the second one has one tile with one column. Most
/// of the kinds are flagged.
TEST_P(Variants, OneSquareOfTilesOrTwo) {
  if (GetParam() != "opencl/gram_tiles") GTEST_SKIP() << "other variants have no such squares";
  // Every day attack_test.cpp has one square.
  if (takes_all()) check_shape<float>({130, 97}, Mode::reduced, Sign::positive);
  check_shape<float>({140, 129}, Mode::reduced, Sign::positive);
}

/// Slabs of rows, the last one with fewer rows.
TEST_P(Variants, SquaresOfTilesOfSlabs) {
  if (GetParam() != "opencl/gram_tiles") GTEST_SKIP() << "other variants have no such squares";
  check_shape<float>({4200, 130}, Mode::reduced, Sign::positive);
}

TEST_P(Variants, ThreeSquaresOfTiles) {
  if (GetParam() != "opencl/gram_tiles") GTEST_SKIP() << "other variants have no such squares";
  check_shape<float>({300, 257}, Mode::reduced, Sign::positive);
  check_shape<float>({300, 257}, Mode::r, Sign::positive);
}

/// More than 80 columns share local memory: with an even and an odd number of slabs of 16 rows, and
/// with one quad of columns to four in the last block.
TEST_P(Variants, SixRowsOfBlocks) {
  if (GetParam() != "opencl/gram") GTEST_SKIP() << "other variants have no such blocks";
  for (const Shape shape : {Shape{81, 81}, {96, 96}, {97, 95}, {300, 88}, {512, 96}, {530, 92}}) {
    check_shape<float>(shape, Mode::reduced, Sign::positive);
  }
  for (const Shape shape : {Shape{96, 96}, {130, 83}}) {
    check_shape<float>(shape, Mode::r, Sign::positive);
  }
}

TEST_P(Variants, OneSquareOrThreeInTwoPasses) {
  if (GetParam() != "opencl/gram_twice") GTEST_SKIP() << "other variants have no such squares";
  check_shape<double>({130, 97}, Mode::reduced, Sign::positive);
  check_shape<double>({140, 129}, Mode::r, Sign::positive);
  check_shape<double>({300, 257}, Mode::reduced, Sign::positive);
}

/// A group takes one matrix after another, so that later ones find the work memory of earlier ones.
TEST_P(Variants, MoreMatricesThanGroups) {
  if (GetParam() != "opencl/gram_group") GTEST_SKIP() << "others have no such groups";
  Problem p{1, 66, 65, ElementType::float64, Mode::reduced, Sign::positive};
  p.count = 2 * gram_group_variant().slots(p).most + 1;
  Batch<double> a(p.count, p.m, p.n);
  for (index_t b = 0; b < p.count; ++b) {
    MatrixRequest request;
    request.kind = matrix_kinds()[static_cast<std::size_t>(b) % 3].name;
    fill_matrix<double>(request, b % 3, a.view()[b]);
  }
  const BatchView<const double> view = std::as_const(a).view();
  Result<double> result = factor<double>(backend(), plan_for(p, GetParam()), view);
  for (index_t b = 0; b < p.count; ++b) {
    SCOPED_TRACE(b);
    if (b < 3) expect_good<double>(p, view[b], result, b);
    const Factors<double> out = result.factors();
    ASSERT_TRUE(same_bits<double>(out.q[b], out.q[b % 3]));
    ASSERT_TRUE(same_bits<double>(out.r[b], out.r[b % 3]));
  }
}

/// For R alone the first Q is in the buffer of R, in a buffer of the reflectors, or in its own.
TEST_P(Variants, RAloneInTwoPasses) {
  if (GetParam() != "opencl/gram" && GetParam() != "opencl/gram_twice") {
    GTEST_SKIP() << "other variants have one pass";
  }
  for (const Shape shape : {Shape{33, 33}, {40, 20}, {20, 17}}) {
    check_shape<double>(shape, Mode::r, Sign::positive);
  }
}

TEST_P(Variants, EveryShapeModeAndSign) {
  for (const Shape shape : {Shape{1, 1}, {7, 5}, {5, 7}, {16, 16}, {40, 33}, {33, 40}, {70, 17}}) {
    for (const Mode mode : {Mode::complete, Mode::r, Mode::raw}) {
      check_shape<float>(shape, mode, Sign::positive);
    }
    check_shape<double>(shape, Mode::raw, Sign::lapack);
    check_shape<float>(shape, Mode::reduced, Sign::lapack);
  }
  check_shape<double>({33, 20}, Mode::complete, Sign::lapack);
  check_shape<double>({33, 20}, Mode::r, Sign::positive);
  // The check sums A'A in slabs, and subtracts R'R.
  if (GetParam() != "opencl/tall") check_shape<float>({4100, 3}, Mode::r, Sign::positive);
}

/// Fewer shapes, for every day: each mode with a square matrix or with one that is not.
TEST_P(Variants, OtherModesAndSigns) {
  check_shape<float>({1, 1}, Mode::raw, Sign::positive);
  check_shape<float>({1, 1}, Mode::reduced, Sign::lapack);
  for (const Mode mode : {Mode::complete, Mode::r}) {
    check_shape<float>({33, 33}, mode, Sign::positive);
  }
  const Shape other = usual().back();
  check_shape<float>(other, Mode::raw, Sign::positive);
  check_shape<double>(other, Mode::raw, Sign::lapack);
  check_shape<float>({33, 33}, Mode::reduced, Sign::lapack);
}

/// R and the signs are the same as in the CPU backend, except for rounding.
TEST_P(Variants, AgreesWithTheCpu) {
  CpuBackend cpu({.host_bytes = std::size_t{1} << 30, .threads = 1});
  for (const Shape shape : usual()) {
    for (const Sign sign : {Sign::positive, Sign::lapack}) {
      Problem p{2, shape.m, shape.n, ElementType::float64, Mode::reduced, sign};
      const bool is_everyday = sign == own_sign() && shape.m != 33;
      if (!takes(p) || !(takes_all() || is_everyday)) continue;
      Batch<double> a(p.count, p.m, p.n);
      for (index_t b = 0; b < p.count; ++b) fill_matrix<double>({}, b, a.view()[b]);
      Result<double> ours = factor<double>(backend(), plan_for(p, GetParam()), a.view());
      Result<double> theirs(p, 0);
      const Plan plan = make_plan(p, cpu.variants(), cpu.limits());
      cpu.factor(plan, a.view(), theirs.factors(), theirs.report);
      for (std::size_t i = 0; i < ours.r.data().size(); ++i) {
        ASSERT_NEAR(ours.r.data()[i], theirs.r.data()[i], 1e-11);
      }
      for (std::size_t i = 0; i < ours.q.data().size(); ++i) {
        ASSERT_NEAR(ours.q.data()[i], theirs.q.data()[i], 1e-10);
      }
    }
  }
}

/// The bits are the same in a second run, one matrix at a time, in sub-chunks, with padding, and
/// with or without a NaN in another matrix.
template <class T>
void check_determinism(const Plan& plan, Shape shape) {
  const Problem& p = plan.problem;
  Kinds<T> kinds(shape);
  const BatchView<T> a = kinds.batch.view();
  Result<T> first = factor<T>(backend(), plan, a);

  Result<T> second = factor<T>(backend(), plan, a);
  OpenclOptions options = test_options();
  const std::size_t one_matrix =
      std::max({p.input_bytes(), p.output_bytes(), 16 * static_cast<std::size_t>(p.m * p.n)});
  const GpuVariant& variant = gpu_variant(*plan.variant);
  const std::size_t slot = variant.slots != nullptr ? variant.slots(p).bytes : 0;
  std::size_t most = one_matrix;
  if (variant.workspace != nullptr) {
    for (const std::size_t bytes : variant.workspace(p)) most = std::max(most, bytes);
  }
  options.pretend_max_allocation = std::max(5 * most, slot);
  OpenclBackend limited(device_under_test(), options);
  Result<T> in_chunks = factor<T>(limited, plan, a);

  PaddedBatch<T> padded_a(p.count, p.m, p.n, 3);
  for (index_t b = 0; b < p.count; ++b) {
    for (index_t i = 0; i < p.m; ++i) {
      for (index_t j = 0; j < p.n; ++j) padded_a.view()[b](i, j) = a[b](i, j);
    }
  }
  Result<T> padded = factor<T>(backend(), plan, padded_a.view(), 5);
  EXPECT_TRUE(padded_a.padding_is_untouched());
  for (const PaddedBatch<T>* x : {&padded.q, &padded.r, &padded.v, &padded.tau}) {
    EXPECT_TRUE(x->padding_is_untouched());
  }

  fill_matrix<T>({}, 0, a[kinds.nan_at]);
  Result<T> without_nan = factor<T>(backend(), plan, a);
  for (index_t b = 0; b < p.count; ++b) {
    if (b == kinds.nan_at) continue;
    SCOPED_TRACE(kinds.name(b));
    EXPECT_TRUE(same_factors(first, b, second, b));
    EXPECT_TRUE(same_factors(first, b, in_chunks, b));
    EXPECT_TRUE(same_factors(first, b, padded, b));
    EXPECT_TRUE(same_factors(first, b, without_nan, b));
    EXPECT_EQ(first.report[static_cast<std::size_t>(b)].residual,
              in_chunks.report[static_cast<std::size_t>(b)].residual);
    Result<T> alone = factor<T>(backend(), plan, a.slice(b, 1));
    EXPECT_TRUE(same_factors(first, b, alone, 0));
  }
}

/// Everyday tests take programs that the tests above have built, and several strips in one type.
TEST_P(Variants, BitsDoNotDependOnCompany) {
  std::vector<Shape> some(usual().begin(), usual().end());
  if (!takes_all()) some.push_back(usual_shapes[3]);
  for (const Shape shape : some) {
    for (const Mode mode : {Mode::reduced, Mode::raw}) {
      SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " " << name_of(mode));
      // `large` is slow on PoCL. The other variants take several strips every day, and `large`
      // takes them where all shapes are asked for.
      const bool is_usual =
          shape.m < 600 || (mode == Mode::reduced && GetParam() != "opencl/large");
      const Problem single = problem<float>(shape, mode), wide = problem<double>(shape, mode);
      if (takes(single) && (takes_all() || is_usual))
        check_determinism<float>(plan_for(single, GetParam()), shape);
      const bool is_built = shape.m < 600 && shape.m != 33 && mode == Mode::reduced;
      if (takes(wide) && (takes_all() || is_built))
        check_determinism<double>(plan_for(wide, GetParam()), shape);
    }
  }
}

/// R alone answers to another guard than Q, so that a matrix may take another route.
TEST_P(Variants, RAloneHasTheBitsOfReducedByTheSameRoute) {
  for (const Shape shape : takes_all() ? usual() : usual().first(1)) {
    const Problem p = problem<float>(shape, Mode::reduced),
                  r_alone = problem<float>(shape, Mode::r);
    if (!takes(p)) continue;
    const Kinds<float> kinds(shape);
    Result<float> x = factor<float>(backend(), plan_for(p, GetParam()), kinds.batch.view());
    Result<float> y = factor<float>(backend(), plan_for(r_alone, GetParam()), kinds.batch.view());
    int compared = 0;
    for (index_t b = 0; b < p.count; ++b) {
      const auto at = static_cast<std::size_t>(b);
      if (x.report[at].route != y.report[at].route) continue;
      ++compared;
      EXPECT_TRUE(same_bits<float>(x.r.view()[b], y.r.view()[b])) << kinds.name(b);
    }
    EXPECT_GE(compared, p.count / 2);
  }
}

/// factor(2^p A) = (Q, 2^p R), bit by bit.
TEST_P(Variants, PowersOfTwoOnlyScaleR) {
  const Shape shape = taken_shape();
  Problem p = problem<float>(shape, Mode::reduced, own_sign());
  p.count = 3;
  if (!takes(p)) GTEST_SKIP() << "shape not taken";
  const Plan plan = plan_for(p, GetParam());
  Batch<float> a(3, p.m, p.n), scaled(3, p.m, p.n);
  constexpr int exponents[3] = {90, -90, 1};
  for (index_t b = 0; b < 3; ++b) {
    fill_matrix<float>({}, 0, a.view()[b]);
    for (index_t i = 0; i < p.m * p.n; ++i) {
      scaled.view()[b].data[i] = std::ldexp(a.view()[b].data[i], exponents[b]);
    }
  }
  Result<float> x = factor<float>(backend(), plan, a.view());
  Result<float> y = factor<float>(backend(), plan, scaled.view());
  for (index_t b = 0; b < 3; ++b) {
    EXPECT_TRUE(same_bits<float>(x.q.view()[b], y.q.view()[b]));
    for (index_t i = 0; i < p.k() * p.n; ++i) {
      EXPECT_EQ(std::ldexp(x.r.view()[b].data[i], exponents[b]), y.r.view()[b].data[i]);
    }
  }
}

/// The ends of the range: denormal numbers, numbers whose column norm overflows, Inf, columns of
/// very different size, and a tail that is too small to be squared.
TEST_P(Variants, EndsOfTheRange) {
  const Shape shape = taken_shape();
  Problem p = problem<float>(shape, Mode::reduced, own_sign());
  p.count = 5;
  if (!takes(p)) GTEST_SKIP() << "shape not taken";
  Batch<float> a(p.count, p.m, p.n);
  const BatchView<float> view = a.view();
  for (index_t b = 0; b < p.count; ++b) fill_matrix<float>({}, b, view[b]);
  for (index_t i = 0; i < p.m; ++i) {
    for (index_t j = 0; j < p.n; ++j) {
      view[0](i, j) = std::ldexp(std::nearbyint(8 * view[0](i, j)), -149);  // denormal
      view[1](i, j) = std::copysign(3e38f, view[1](i, j));                  // R overflows
      view[3](i, j) = std::ldexp(view[3](i, j), static_cast<int>(j % 2 == 0 ? 100 : -100));
      view[4](i, j) = i == j ? 1.0f : std::ldexp(view[4](i, j), -80);
    }
  }
  view[2](p.m - 1, 0) = std::numeric_limits<float>::infinity();
  Result<float> result = factor<float>(backend(), plan_for(p, GetParam()), view);
  EXPECT_EQ(result.report[1].status, Status::r_overflows);
  EXPECT_EQ(result.report[2].status, Status::non_finite);
  for (const index_t b : {0, 3, 4}) {
    SCOPED_TRACE(b);
    const Errors host = measure_on_host<float>(p, view[b], result.factors(), b);
    const Bars bars = standard_bars(p.m, p.n, single_precision, host);
    EXPECT_LE(host.residual, bars.residual);
    EXPECT_LE(host.orthogonality, bars.orthogonality);
    EXPECT_EQ(result.report[static_cast<std::size_t>(b)].status, Status::ok);
  }
  // Q is accurate if only R overflows.
  const MatrixView<float> q = result.q.view()[1];
  for (index_t j = 0; j < p.n; ++j) {
    double sum = 0;
    for (index_t i = 0; i < p.m; ++i) sum += static_cast<double>(q(i, j)) * q(i, j);
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

/// float32 with few rows meets the published bar of m 2^-23 without any tolerance.
TEST_P(Variants, FewRowsMeetThePublishedBar) {
  if (!backend().limits().has_float64) GTEST_SKIP() << "they are computed in float64";
  bool is_taken = false;
  for (const Shape shape : {Shape{2, 2}, Shape{2, 9}}) {
    Problem p = problem<float>(shape, Mode::reduced);
    p.count = takes_all() ? 2000 : 200;
    if (!takes(p) || (is_taken && !takes_all())) continue;
    is_taken = true;
    Batch<float> a(p.count, p.m, p.n);
    for (index_t b = 0; b < p.count; ++b) fill_matrix<float>({}, b, a.view()[b]);
    const Plan plan = plan_for(p, GetParam());
    EXPECT_EQ(plan.variant->arithmetic(p), "float64");
    Result<float> result = factor<float>(backend(), plan, a.view());
    for (index_t b = 0; b < p.count; ++b) {
      const Errors errors = measure_on_host<float>(p, a.view()[b], result.factors(), b);
      EXPECT_EQ(judge(errors, m_eps_bars(p.m), true), Status::ok)
          << b << " of " << p.m << 'x' << p.n;
    }
  }
  if (!is_taken) GTEST_SKIP() << "shapes not taken";
}

/// Makes tall matrices with blocks of rows that are zero or have a different scale, with repeated
/// columns, and with condition numbers for which A'A is useless.
template <class T>
Batch<T> hard_tall_matrices(Shape shape) {
  constexpr int kinds = 7;
  Batch<T> batch(kinds, shape.m, shape.n);
  const BatchView<T> a = batch.view();
  for (index_t b = 0; b < kinds; ++b) fill_matrix<T>({}, b, a[b]);
  fill_matrix<T>({.kind = "cond", .cond = 1e12}, 0, a[0]);
  fill_matrix<T>({.kind = "cond", .cond = 1e3}, 1, a[1]);
  for (index_t i = 0; i < shape.m; ++i) {
    for (index_t j = 0; j < shape.n; ++j) {
      if (j >= 2) a[2](i, j) = a[2](i, j - 2);   // two columns are repeated
      if (i % 3 != 1) a[3](i, j) = 0;            // zero rows
      if (i >= 512 && i < 1536) a[4](i, j) = 0;  // a block of the tree, and more rows
      if (i + 4 < shape.m) a[5](i, j) = 0;       // rank 4, in the last rows
      a[6](i, j) = static_cast<T>(static_cast<double>(a[6](i, j)) *
                                  std::pow(10.0, -30 + static_cast<double>(9 * (i / 300 % 8))));
    }
  }
  return batch;
}

template <class T>
void check_tall(Shape shape, Mode mode, Sign sign, const std::string& variant) {
  Batch<T> batch = hard_tall_matrices<T>(shape);
  const BatchView<const T> a = batch.view();
  const Problem p{a.count, shape.m, shape.n, element_type<T>, mode, sign};
  SCOPED_TRACE(testing::Message() << shape.m << "x" << shape.n << " " << name_of(p.type) << " "
                                  << name_of(mode) << " " << name_of(sign));
  Result<T> result = factor<T>(backend(), plan_for(p, variant), a);
  for (index_t b = 0; b < p.count; ++b) {
    SCOPED_TRACE(b);
    expect_good<T>(p, a[b], result, b);
  }
}

/// Several slabs of rows, whose sums are added.
TEST_P(Variants, SlabsOfTallMatrices) {
  if (GetParam() != "opencl/gram_twice") GTEST_SKIP() << "other variants have no such slabs";
  for (const Shape shape : {Shape{3001, 10}, {1500, 33}, {1300, 70}}) {
    check_shape<double>(shape, Mode::reduced, Sign::positive);
    check_shape<double>(shape, Mode::r, Sign::positive);
  }
}

TEST_P(Variants, TallMatrices) {
  if (GetParam() != "opencl/tall") GTEST_SKIP() << "other variants have the shapes above";
  std::vector<Shape> tall{{2000, 17}};
  if (takes_all()) tall.push_back({5000, 3});
  // Each number of columns needs a program, and a compiler for CPUs takes about 10 s for it.
  if (!backend().limits().is_cpu) {
    tall.insert(tall.end(), {{3001, 10}, {3001, 33}, {3001, 64}, {2000, 100}, {2000, 128}});
    tall.push_back({12000, 128});  // groups that go on with the next levels of the tree
  }
  for (const Shape shape : tall) {
    check_shape<float>(shape, Mode::reduced, Sign::positive);
    check_tall<float>(shape, Mode::reduced, Sign::positive, GetParam());
  }
  if (backend().limits().has_float64) {
    check_shape<double>({2000, 17}, Mode::reduced, Sign::positive);
    check_tall<double>({2000, 17}, Mode::reduced, Sign::lapack, GetParam());
  }
  check_tall<float>({2000, 17}, Mode::reduced, Sign::lapack, GetParam());
  check_tall<float>({2000, 17}, Mode::r, Sign::lapack, GetParam());
}

/// If A'A is used, LAPACK's signs are computed from the top block of Q.
TEST_P(Variants, SingleHasTheSignsOfDouble) {
  const Shape shape = taken_shape();
  Problem p = problem<float>(shape, Mode::r, Sign::lapack);
  p.count = 3;
  if (!takes(p)) GTEST_SKIP() << "shape not taken";
  CpuBackend cpu({.host_bytes = std::size_t{1} << 30, .threads = 1});
  Problem wide = p;
  wide.type = ElementType::float64;
  Batch<float> a(p.count, p.m, p.n);
  Batch<double> wide_a(p.count, p.m, p.n);
  for (index_t b = 0; b < p.count; ++b) {
    fill_matrix<float>({}, b, a.view()[b]);
    for (index_t i = 0; i < p.m * p.n; ++i) wide_a.view()[b].data[i] = a.view()[b].data[i];
  }
  Result<float> ours = factor<float>(backend(), plan_for(p, GetParam()), a.view());
  Result<double> theirs(wide, 0);
  cpu.factor(make_plan(wide, cpu.variants(), cpu.limits()), wide_a.view(), theirs.factors(),
             theirs.report);
  for (std::size_t i = 0; i < ours.r.data().size(); ++i) {
    ASSERT_NEAR(ours.r.data()[i], theirs.r.data()[i], 1e-4) << i;
  }
}

/// The variants for real matrices; complex_test.cpp has the others.
std::vector<std::string> variant_names() {
  std::vector<std::string> names;
  for (const GpuVariant& variant : gpu_variants())
    if (variant.plan.numbers != Numbers::complex) names.emplace_back(variant.plan.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Opencl, Variants, testing::ValuesIn(variant_names()),
                         [](const testing::TestParamInfo<std::string>& test) {
                           return test.param.substr(test.param.find('/') + 1);
                         });

}  // namespace
}  // namespace qrtool::test::variants_test
