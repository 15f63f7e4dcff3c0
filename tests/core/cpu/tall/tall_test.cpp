// SPDX-License-Identifier: Apache-2.0
// tall_test.cpp: the tree over row blocks meets the plain bar for every type x hard matrix x shapes
// around its blocks, leaves and nodes, in memory and with leaves that come one by one.
#include "core/cpu/tall/tall.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/cpu/tall/tall_qr.hpp"
#include "core/eigen/eigen_qr.hpp"
#include "core/error.hpp"
#include "core/machine/comm.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"
#include "core/measure/row_parts.hpp"
#include "tests/support/complex_reference.hpp"
#include "tests/support/expect_complex.hpp"
#include "tests/support/local_ranks.hpp"

namespace qrtool::tall_test {
namespace {

template <class T>
class TallTest : public testing::Test {};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(TallTest, Types);

/// One matrix with poisoned factors.
template <class T>
struct Case {
  Problem problem;
  Batch<T> a, q, r;
  MatrixReport report;

  explicit Case(Problem p) : problem(p) {
    problem.type = element_type<T>;
    a = Batch<T>(1, p.m, p.n);
    q = Batch<T>(1, p.m, p.q_cols());
    r = Batch<T>(1, p.k(), p.n);
    for (const BatchView<T>& view : {q.view(), r.view()})
      std::fill_n(view.data, view.rows * view.cols, not_a_number<T>());
  }
  MatrixView<T> matrix() { return a.view()[0]; }
  void fill(std::string_view kind, double cond = 1e6) {
    fill_matrix<T>({kind, cond, 5}, 0, matrix());
  }
  void run(int threads = 2) {
    Limits limits;
    limits.host_bytes = std::size_t{4} << 30;
    limits.threads = threads;
    run(make_plan(problem, cpu_variants(), limits, "cpu/tall"));
  }
  void run(const Plan& plan) {
    Limits limits;
    limits.host_bytes = std::size_t{4} << 30;
    limits.threads = 2;
    CpuBackend backend(limits);
    const BatchView<T> q_view = problem.wants_q() ? q.view() : BatchView<T>{};
    backend.factor<T>(plan, a.view(), {q_view, r.view(), {}, {}}, {&report, 1});
  }
  void expect_good(const std::string& what) {
    const std::string name =
        what + " " + std::to_string(problem.m) + "x" + std::to_string(problem.n);
    const MatrixView<const T> x = matrix();
    const int scale = magnitude_of(x).scale();
    ErrorMeter meter(problem.m, problem.n, problem.q_cols(), problem.k(), 1, is_complex_number<T>);
    const Errors errors = meter.measure<T>(x, q.view()[0], r.view()[0], scale);
    const Bars bars = standard_bars(problem.m, problem.n, precision_of(element_type<T>), errors);
    EXPECT_EQ(judge(errors, bars, problem.wants_q()), Status::ok)
        << name << ": residual " << errors.residual << " (bar " << bars.residual
        << "), orthogonality " << errors.orthogonality << " (bar " << bars.orthogonality << ")";
    EXPECT_EQ(errors.lower, 0) << name;
    EXPECT_EQ(report.status, Status::ok) << name;
    EXPECT_EQ(report.scale, scale) << name;
    for (index_t i = 0; i < problem.k(); ++i) {
      const T diagonal = r.view()[0](i, i);
      EXPECT_EQ(imaginary_part(diagonal), 0) << name << " R(" << i << ")";
      if (problem.sign == Sign::positive) {
        EXPECT_FALSE(std::signbit(real_part(diagonal))) << name << " R(" << i << ")";
      }
    }
  }
};

template <class T>
bool same_bits(const Batch<T>& x, const Batch<T>& y) {
  const BatchView<T> a = x.view(), b = y.view();
  const auto bytes = static_cast<std::size_t>(a.count * a.rows * a.cols) * sizeof(T);
  return a.rows == b.rows && a.cols == b.cols && std::memcmp(a.data, b.data, bytes) == 0;
}

/// Returns heights with a last block of one row, of few rows, and of one row less than a whole
/// block; of one leaf; of one leaf and one row; and of several leaves. Complex matrices, whose tree
/// is that of real ones, take fewer.
template <class T>
std::vector<index_t> heights(index_t n) {
  const TallShape shape(1, n);
  const index_t block = shape.block_rows(), leaf = shape.leaf_rows();
  if (is_complex_number<T>) return {2 * block + n / 2 + 1, leaf + 1};
  return {block + 1, 2 * block + n / 2 + 1, 3 * block - 1, leaf, leaf + 1, 3 * leaf + block + 3};
}

/// The widths of complex matrices are fewer, too.
template <class T>
std::vector<index_t> some(std::vector<index_t> all, std::vector<index_t> fewer) {
  return is_complex_number<T> ? fewer : all;
}

/// The number, or its imaginary part.
template <class T>
Real<T>& last_part(T& number) {
  return reinterpret_cast<Real<T>*>(&number)[parts_of<T> - 1];
}

TYPED_TEST(TallTest, EveryHardMatrixMeetsTheBar) {
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const index_t n : some<TypeParam>({1, 5, 33}, {9})) {
      for (const index_t m : heights<TypeParam>(n)) {
        // The norm of such a column, 224 times 1e37 / 6, exceeds float32, and R rightly overflows.
        if (kind.name == "huge" && m > 40000) continue;
        Case<TypeParam> c({1, m, n});
        c.fill(kind.name);
        c.run();
        c.expect_good(std::string(kind.name));
      }
    }
  }
}

TYPED_TEST(TallTest, EveryWidthMeetsTheBar) {
  for (const index_t n :
       some<TypeParam>({2, 3, 4, 7, 8, 16, 17, 31, 32, 64, 65, 100, 127, 128, 129, 150},
                       {2, 16, 17, 64, 65, 129})) {
    const TallShape shape(1, n);
    for (const index_t m : {shape.block_rows() + n / 2, shape.leaf_rows() + 5}) {
      if (is_complex_number<TypeParam> && m < std::max<index_t>(1024, 16 * n)) continue;
      Case<TypeParam> c({1, m, n});
      c.fill("cond", 1e12);
      c.run();
      c.expect_good("cond 1e12");
    }
  }
}

TYPED_TEST(TallTest, ManyLevelsMeetTheBar) {
  const index_t n = is_complex_number<TypeParam> ? 65 : 100;
  Case<TypeParam> c({1, 12 * TallShape(1, n).leaf_rows() + 17, n}), deep({1, 1, 1});
  c.fill("gauss");
  c.run();
  c.expect_good("gauss");
  if (is_complex_number<TypeParam>) return;
  // 600 leaves have four levels of nodes.
  deep = Case<TypeParam>({1, 600 * TallShape(1, 1).leaf_rows() + 17, 1});
  deep.fill("gauss");
  deep.run();
  deep.expect_good("gauss");
}

/// Blocks of rows that differ so that only a tree over blocks can make errors.
TYPED_TEST(TallTest, BlocksOfEveryScaleMeetTheBar) {
  constexpr index_t n = 12;
  const TallShape shape(1, n);
  const index_t block = shape.block_rows(), m = 2 * shape.leaf_rows() + 3 * block + 7;
  const auto expect_good = [&](const std::string& what, auto change) {
    Case<TypeParam> c({1, m, n});
    c.fill("gauss");
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) change(c.matrix(), i, j);
    c.run();
    c.expect_good(what);
  };
  expect_good("one block zero", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    if (i / block == 1) a(i, j) = 0;
  });
  expect_good("all but one block zero", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    if (i / block != 3) a(i, j) = 0;
  });
  expect_good("a leaf zero", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    if (i < shape.leaf_rows()) a(i, j) = 0;
  });
  expect_good("last row alone", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    if (i < m - 1) a(i, j) = 0;
  });
  expect_good("every other row zero", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    if (i % 2 == 0) a(i, j) = 0;
  });
  expect_good("duplicated columns", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    if (j % 2 == 1) a(i, j) = a(i, j - 1);
  });
  expect_good("1e-30 to 1e33", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    a(i, j) *=
        static_cast<Real<TypeParam>>(std::pow(10.0, -30 + static_cast<double>(i / block * 9 % 64)));
  });
  expect_good("graded rows", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    a(i, j) *= static_cast<Real<TypeParam>>(
        std::pow(10.0, -30 * static_cast<double>(i) / static_cast<double>(m)));
  });
  expect_good("1e-30", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    a(i, j) *= static_cast<Real<TypeParam>>(1e-30);
  });
  expect_good("1e33", [&](MatrixView<TypeParam> a, index_t i, index_t j) {
    a(i, j) *= static_cast<Real<TypeParam>>(1e33);
  });
}

/// Measured by the reference of the tests, in long double.
template <class T>
void expect_good_complex_trees() {
  for (const std::string& kind : test::complex_kinds()) {
    for (const auto& [m, n] : {std::pair<index_t, index_t>{1500, 3}, {1700, 70}}) {
      if (n > 3 && kind != "gauss" && kind != "constant") continue;
      SCOPED_TRACE(testing::Message() << kind << " " << m << "x" << n);
      Case<std::complex<T>> c({1, m, n});
      std::mt19937_64 generator(4);
      test::fill_complex<T>(kind, generator, c.matrix());
      TallQr<std::complex<T>> qr(c.problem, 2);
      if (!qr.factor(c.matrix(), c.q.view()[0], c.r.view()[0]).r_fits) continue;
      test::expect_good_factors<T>(c.problem, c.matrix(),
                                   {.q = c.q.view(), .r = c.r.view(), .v = {}, .tau = {}}, 0);
    }
  }
}

TEST(TallQr, ComplexTreesAreWithinTheirBar) {
  expect_good_complex_trees<float>();
  expect_good_complex_trees<double>();
}

TYPED_TEST(TallTest, ThreadsDoNotMatter) {
  Case<TypeParam> one({1, 70000, 9}), three({1, 70000, 9});
  one.fill("gauss");
  three.fill("gauss");
  one.run(1);
  three.run(3);
  EXPECT_TRUE(same_bits(one.q, three.q));
  EXPECT_TRUE(same_bits(one.r, three.r));
  EXPECT_EQ(one.report.residual, three.report.residual);
  EXPECT_EQ(one.report.orthogonality, three.report.orthogonality);
}

/// ||R^H R - S^H S|| / ||S||^2 with all numbers scaled by 2^-scale, by which an R without Q is
/// judged.
template <class T>
double difference_of_squares(MatrixView<const T> r, MatrixView<const T> s, int scale) {
  double difference = 0, norm = 0;
  using S = Wide<T>;
  const auto square = [&](MatrixView<const T> x, index_t i, index_t j) {
    S sum = 0;
    for (index_t l = 0; l <= std::min(i, j); ++l)
      sum += conjugate(scaled_by(static_cast<S>(x(l, i)), -scale)) *
             scaled_by(static_cast<S>(x(l, j)), -scale);
    return sum;
  };
  for (index_t i = 0; i < r.cols; ++i) {
    for (index_t j = 0; j < r.cols; ++j) difference += square_of(square(r, i, j) - square(s, i, j));
    norm += real_part(square(s, i, i));
  }
  return norm == 0 ? std::sqrt(difference) : std::sqrt(difference) / norm;
}

/// Without Q the R of float32 is a Cholesky factor where that is accurate. The test has well
/// conditioned leaves, leaves for which Cholesky fails, and both kinds in one matrix.
TYPED_TEST(TallTest, ROnlyMeetsTheBar) {
  const auto expect_same = [](std::string_view kind, double cond, index_t n) {
    const TallShape shape(1, n);
    const index_t m = 2 * shape.leaf_rows() + shape.block_rows() + 3;
    Case<TypeParam> full({1, m, n}), r_only({1, m, n, element_type<TypeParam>, Mode::r});
    full.fill(kind, cond);
    // Make the first leaves different from the others.
    if (kind == "gauss")
      for (index_t i = 0; i < 2 * shape.leaf_rows() * n; ++i) full.matrix().data[i] = 1;
    std::copy_n(full.matrix().data, m * n, r_only.matrix().data);
    full.run();
    r_only.run();
    const std::string name = std::string(kind) + " " + std::to_string(n);
    EXPECT_EQ(r_only.report.status, full.report.status) << name;
    EXPECT_EQ(r_only.report.scale, full.report.scale) << name;
    if (full.report.status != Status::ok) return;
    const MatrixView<const TypeParam> r = r_only.r.view()[0];
    const double u = precision_of(element_type<TypeParam>).u;
    const double denormal = std::ldexp(
        1.0, precision_of(element_type<TypeParam>).denormal_exponent - full.report.scale + 8);
    EXPECT_LE(difference_of_squares<TypeParam>(r, full.r.view()[0], full.report.scale),
              30 * static_cast<double>(n) * u + denormal)
        << name;
    for (index_t i = 0; i < n; ++i) {
      EXPECT_FALSE(std::signbit(real_part(r(i, i)))) << name;
      for (index_t j = 0; j < i; ++j) EXPECT_EQ(r(i, j), TypeParam(0)) << name;
    }
  };
  for (const MatrixKind& kind : matrix_kinds())
    for (const index_t n : some<TypeParam>({4, 5, 33}, {})) expect_same(kind.name, 1e6, n);
  for (const index_t n : some<TypeParam>({1, 3, 8, 16, 17, 64, 100, 128}, {17}))
    for (const double cond : {1e1, 1e5, 1e7, 1e9}) expect_same("cond", cond, n);
}

TYPED_TEST(TallTest, ROnlyIsTheReducedRWhereLeavesAreTheSame) {
  for (const Sign sign : {Sign::positive, Sign::lapack}) {
    // Without Q, float32 with positive signs takes another method.
    if (sign == Sign::positive && std::is_same_v<TypeParam, float>) continue;
    Case<TypeParam> full({1, 20000, 9, element_type<TypeParam>, Mode::reduced, sign});
    Case<TypeParam> r_only({1, 20000, 9, element_type<TypeParam>, Mode::r, sign});
    full.fill("gauss");
    r_only.fill("gauss");
    full.run();
    r_only.run();
    EXPECT_TRUE(same_bits(full.r, r_only.r));
    r_only.expect_good("gauss");
  }
}

TYPED_TEST(TallTest, LapackSignsAreThoseOfOneFactorization) {
  for (const std::string_view kind : {"gauss", "identity", "upper", "integers", "graded-columns"}) {
    constexpr index_t m = 3000, n = 20;
    Case<TypeParam> c({1, m, n, element_type<TypeParam>, Mode::reduced, Sign::lapack});
    c.fill(kind);
    c.run();
    c.expect_good(std::string(kind));
    const Batch<TypeParam> q(1, m, n), r(1, n, n);
    EigenQr<TypeParam> eigen(c.problem);
    eigen.factor(c.matrix(), {q.view()[0], r.view()[0], {}, {}});
    for (index_t i = 0; i < n; ++i)
      EXPECT_EQ(std::signbit(real_part(c.r.view()[0](i, i))),
                std::signbit(real_part(r.view()[0](i, i))))
          << kind << " R(" << i << ")";
  }
}

TYPED_TEST(TallTest, LeavesOneByOneGiveTheSameBits) {
  // A file is read in the same way: R in one pass and Q in another, leaf after leaf.
  for (const index_t n : {9, 140}) {
    const TallShape shape(3 * TallShape(1, n).leaf_rows() + 100, n);
    Case<TypeParam> whole({1, shape.m(), n});
    whole.fill("gauss");
    whole.run();
    const Batch<TypeParam> q(1, shape.m(), n), r(1, n, n);
    TallTree<TypeParam> tree(shape);
    CpuLeaves<TypeParam> leaves(shape, 1, true);
    const auto rows_of = [&](MatrixView<TypeParam> x, index_t i) {
      return x.row_block(i * shape.leaf_rows(), shape.rows_of_leaf(i));
    };
    for (index_t i = shape.leaves(); i-- > 0;)
      leaves.factor(rows_of(whole.matrix(), i), tree.nodes(i, 1));
    ASSERT_TRUE(finish_r<TypeParam>(tree, Sign::positive, true, leaves, rows_of(whole.matrix(), 0),
                                    r.view()[0]));
    for (index_t i = 0; i < shape.leaves(); ++i)
      leaves.form_q(rows_of(whole.matrix(), i), tree.nodes(i, 1), rows_of(q.view()[0], i));
    EXPECT_TRUE(same_bits(whole.r, r)) << n;
    EXPECT_TRUE(same_bits(whole.q, q)) << n;
  }
}

TYPED_TEST(TallTest, ABadMatrixIsNanAndARTooLargeIsReported) {
  Case<TypeParam> c({1, 9000, 7});
  c.fill("gauss");
  using R = Real<TypeParam>;
  last_part(c.matrix()(8999, 3)) = std::numeric_limits<R>::infinity();
  c.run();
  EXPECT_EQ(c.report.status, Status::non_finite);
  EXPECT_TRUE(is_nan(c.q.view()[0](0, 0)) && is_nan(c.q.view()[0](8999, 6)) &&
              is_nan(c.r.view()[0](6, 0)));
  last_part(c.matrix()(8999, 3)) = std::numeric_limits<R>::quiet_NaN();
  c.run();
  EXPECT_EQ(c.report.status, Status::non_finite);
  c.fill("constant");
  for (index_t i = 0; i < 9000; ++i)
    last_part(c.matrix()(i, 3)) = std::numeric_limits<R>::max() / 2;
  c.run();
  EXPECT_EQ(c.report.status, Status::r_overflows);
}

TYPED_TEST(TallTest, ScalingByAPowerOfTwoScalesROnly) {
  Case<TypeParam> c({1, 9000, 7}), scaled({1, 9000, 7});
  c.fill("gauss");
  scaled.fill("gauss");
  for (index_t i = 0; i < 9000 * 7; ++i)
    scaled.matrix().data[i] = scaled_by(scaled.matrix().data[i], 90);
  c.run();
  scaled.run();
  EXPECT_TRUE(same_bits(c.q, scaled.q));
  for (index_t i = 0; i < 49; ++i)
    EXPECT_EQ(scaled_by(c.r.view().data[i], 90), scaled.r.view().data[i]);
}

/// The plan that the tool would make with this much memory and this many ranks: no variant is
/// forced.
template <class T>
Plan plan_freely(const Problem& problem, std::size_t host_bytes, int ranks) {
  Limits limits;
  limits.host_bytes = host_bytes;
  limits.threads = 2;
  limits.ranks = ranks;
  return make_plan(problem, cpu_variants(), limits);
}

/// Factors by rows as the plan says, the leaves dealt out to the ranks, and gives Q and R to rank
/// 0. Returns the errors that the ranks have measured together.
template <class T>
Errors factor_by_rows(Comm& comm, const Plan& plan, Case<T>& c, const Batch<T>& q,
                      const Batch<T>& r) {
  const TallShape shape = plan.row_shape();
  const index_t n = shape.n(), k = shape.k(), step = plan.chunk_rows / shape.leaf_rows();
  TallTree<T> tree(shape);
  CpuLeaves<T> leaves(shape, plan.threads, true);
  const auto rows_of = [&](MatrixView<T> x, index_t leaf) {
    const index_t first = leaf * shape.leaf_rows();
    return x.row_block(first, std::min(step * shape.leaf_rows(), x.rows - first));
  };
  const auto for_chunks = [&](auto own, auto foreign) {
    for (index_t leaf = 0; leaf < shape.leaves(); leaf += step) {
      const int owner = static_cast<int>(leaf / step % comm.size());
      const index_t count = std::min(step, shape.leaves() - leaf);
      if (owner == comm.rank()) own(leaf, tree.nodes(leaf, count));
      if (owner != comm.rank() && comm.is_root()) foreign(owner, leaf, tree.nodes(leaf, count));
    }
  };
  const auto send = [&](const T* from, index_t count) {
    if (!comm.is_root()) comm.send(0, bytes_of(from, static_cast<std::size_t>(count)));
  };
  const auto receive = [&](int from, T* to, index_t count) {
    comm.receive(from, writable_bytes_of(to, static_cast<std::size_t>(count)));
  };
  for_chunks(
      [&](index_t leaf, MatrixView<T> nodes) {
        leaves.factor(rows_of(c.matrix(), leaf), nodes);
        send(nodes.data, nodes.rows * n);
      },
      [&](int from, index_t, MatrixView<T> nodes) { receive(from, nodes.data, nodes.rows * n); });
  together(comm, [&] {
    if (!comm.is_root()) return;
    const MatrixView<T> top = c.matrix().row_block(0, shape.rows_of_leaf(0));
    if (!finish_r<T>(tree, c.problem.sign, true, leaves, top, r.view()[0]))
      throw LimitError("R overflows");
  });
  const MatrixView<T> all = tree.nodes(0, shape.leaves());
  broadcast(comm, all.data, static_cast<std::size_t>(all.rows * n));
  broadcast(comm, r.view().data, static_cast<std::size_t>(k * n));
  const int scale = magnitude_of<T>(c.matrix()).scale();
  const auto new_meter = [&] {
    ErrorMeter meter(shape.m(), n, k, k, 1, is_complex_number<T>);
    meter.start<T>(r.view()[0], scale);
    return meter;
  };
  ErrorMeter total = new_meter();
  std::vector<double> sums(total.sums().size());
  for_chunks(
      [&](index_t leaf, MatrixView<T> nodes) {
        const MatrixView<T> rows = rows_of(c.matrix(), leaf), q_rows = rows_of(q.view()[0], leaf);
        leaves.form_q(rows, nodes, q_rows);
        ErrorMeter part = new_meter();
        add_rows_by_parts<T>(rows, q_rows, r.view()[0], {shape.leaf_rows(), plan.threads}, part);
        sums = part.sums();
        if (!comm.is_root()) comm.send(0, bytes_of(sums.data(), sums.size()));
        send(q_rows.data, q_rows.rows * k);
        total.add_sums(sums);
      },
      [&](int from, index_t leaf, MatrixView<T>) {
        const MatrixView<T> q_rows = rows_of(q.view()[0], leaf);
        comm.receive(from, writable_bytes_of(sums.data(), sums.size()));
        receive(from, q_rows.data, q_rows.rows * k);
        total.add_sums(sums);
      });
  return total.finish();
}

/// Factors by rows on `ranks` ranks with so much memory, and expects the bits of Q and R in memory.
template <class T>
void expect_same_by_rows(Case<T>& whole, std::size_t host_bytes, int ranks) {
  const Problem& p = whole.problem;
  const Plan plan = plan_freely<T>(p, host_bytes, ranks);
  const std::string what = std::to_string(p.m) + "x" + std::to_string(p.n) + " on " +
                           std::to_string(ranks) + " ranks: " + explain(plan, {});
  ASSERT_TRUE(plan.by_rows()) << what;
  const Batch<T> q(1, p.m, p.k()), r(1, p.k(), p.n);
  Errors errors;
  test::run_ranks(ranks, [&](Comm& comm) {
    const Batch<T> own_q(1, p.m, p.k()), own_r(1, p.k(), p.n);
    const Errors found =
        factor_by_rows(comm, plan, whole, comm.is_root() ? q : own_q, comm.is_root() ? r : own_r);
    if (comm.is_root()) errors = found;
  });
  EXPECT_TRUE(same_bits(whole.q, q)) << what;
  EXPECT_TRUE(same_bits(whole.r, r)) << what;
  const Bars bars = standard_bars(p.m, p.n, precision_of(p.type), errors);
  EXPECT_EQ(judge(errors, bars, true), Status::ok) << what;
  // The sums were added in another order, so that they agree to a fraction of the bar.
  EXPECT_NEAR(errors.residual, whole.report.residual, 0.01 * bars.residual) << what;
  EXPECT_NEAR(errors.orthogonality, whole.report.orthogonality, 0.01 * bars.orthogonality) << what;
}

TYPED_TEST(TallTest, ThePlanGivesTheSameBitsInMemoryByRowsAndOverRanks) {
  constexpr std::size_t plenty = std::size_t{4} << 30;
  for (const auto& [m, n] : {std::pair<index_t, index_t>{50021, 20}, {200000, 3}, {20001, 65}}) {
    if (is_complex_number<TypeParam> && n != 20) continue;
    for (const Sign sign : {Sign::positive, Sign::lapack}) {
      Case<TypeParam> whole({1, m, n, element_type<TypeParam>, Mode::reduced, sign});
      whole.fill("cond", 1e5);
      const Plan in_memory = plan_freely<TypeParam>(whole.problem, plenty, 1);
      ASSERT_FALSE(in_memory.by_rows());
      whole.run(in_memory);
      whole.expect_good("in memory");
      std::size_t little = in_memory.host_bytes;
      while (!plan_freely<TypeParam>(whole.problem, little, 1).by_rows()) little -= little / 10;
      expect_same_by_rows(whole, little, 1);
      expect_same_by_rows(whole, little, 2);
      expect_same_by_rows(whole, plenty, 3);
    }
  }
}

TEST(TallShape, CutsEveryMatrix) {
  for (const index_t n : {1, 2, 16, 33, 64, 65, 128, 129, 1024}) {
    for (const index_t m : {index_t{1}, n, 1000 * n, 1000 * n + 1}) {
      const TallShape shape(m, n);
      EXPECT_GE(shape.block_rows(), n);
      index_t rows = 0, stacked = 0;
      for (index_t i = 0; i < shape.leaves(); ++i) {
        rows += shape.rows_of_leaf(i);
        stacked += std::min(shape.rows_of_leaf(i), n);
      }
      EXPECT_EQ(rows, m);
      EXPECT_EQ(stacked, shape.stacked_rows());
    }
  }
}

}  // namespace
}  // namespace qrtool::tall_test
