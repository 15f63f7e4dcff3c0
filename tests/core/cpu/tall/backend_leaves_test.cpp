// SPDX-License-Identifier: Apache-2.0
// backend_leaves_test.cpp: leaves that a backend factors as matrices give Q and R at the plain bar.
#include "core/cpu/tall/backend_leaves.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>

#include "core/cpu/cpu_backend.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/error_meter.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool::backend_leaves_test {
namespace {

template <class T>
class BackendLeavesTest : public testing::Test {
 protected:
  /// Factors leaf by leaf in descending order, as ranks may do, and judges the errors of Q and R.
  Status factor(std::string_view kind, index_t m, index_t n, index_t leaf_rows, Sign sign) {
    const Problem problem{
        .count = 1, .m = m, .n = n, .type = element_type<T>, .mode = Mode::reduced, .sign = sign};
    const TallShape shape(m, n, leaf_rows);
    a = Batch<T>(1, m, n);
    const Batch<T> q(1, m, n);
    r = Batch<T>(1, n, n);
    fill_matrix<T>({kind, 1e9, 3}, 0, a.view()[0]);
    std::fill_n(q.view().data, m * n, not_a_number<T>());
    Limits limits;
    limits.host_bytes = std::size_t{1} << 30;
    limits.threads = 2;
    CpuBackend backend(limits);
    BackendLeaves<T> leaves(backend, problem, shape, 2);
    TallTree<T> tree(shape);
    const auto rows_of = [&](const Batch<T>& x, index_t i) {
      return x.view()[0].row_block(i * shape.leaf_rows(), shape.rows_of_leaf(i));
    };
    outcome = {};
    for (index_t i = shape.leaves(); i-- > 0;)
      outcome.include(leaves.factor(rows_of(a, i), tree.nodes(i, 1)));
    if (!outcome.magnitude.finite) return Status::non_finite;
    if (!finish_r<T>(tree, sign, true, leaves, rows_of(a, 0), r.view()[0]))
      return Status::r_overflows;
    for (index_t i = 0; i < shape.leaves(); ++i)
      leaves.form_q(rows_of(a, i), tree.nodes(i, 1), rows_of(q, i));
    ErrorMeter meter(m, n, n, n, 1, is_complex_number<T>);
    const int scale = magnitude_of<T>(a.view()[0]).scale();
    EXPECT_EQ(outcome.magnitude.scale(), scale) << kind;
    const Errors errors = meter.measure<T>(a.view()[0], q.view()[0], r.view()[0], scale);
    return judge(errors, standard_bars(m, n, precision_of(element_type<T>), errors), true);
  }

  Batch<T> a, r;
  LeafOutcome outcome;
};
using Types = testing::Types<float, double, std::complex<double>>;
TYPED_TEST_SUITE(BackendLeavesTest, Types);

TYPED_TEST(BackendLeavesTest, EveryHardMatrixMeetsTheBar) {
  for (const MatrixKind& kind : matrix_kinds()) {
    for (const Sign sign : {Sign::positive, Sign::lapack}) {
      // 600 rows are three whole leaves, 1213 rows end in a leaf of 13, and 200 rows are one leaf.
      for (const index_t m : {600, 1213, 200})
        EXPECT_EQ(this->factor(kind.name, m, 13, 200, sign), Status::ok) << kind.name << " " << m;
    }
  }
}

TYPED_TEST(BackendLeavesTest, SignsAndWhatIsNotFinite) {
  EXPECT_EQ(this->factor("gauss", 3000, 7, 500, Sign::positive), Status::ok);
  for (index_t i = 0; i < 7; ++i) EXPECT_GT(real_part(this->r.view()[0](i, i)), 0);
  EXPECT_EQ(this->factor("zero", 3000, 7, 500, Sign::positive), Status::ok);
  EXPECT_EQ(this->outcome.magnitude.largest, 0);
  Batch<TypeParam> rows(1, 500, 7), found(1, 7, 7);
  fill_matrix<TypeParam>({"gauss"}, 0, rows.view()[0]);
  rows.view()[0](499, 6) = std::numeric_limits<Real<TypeParam>>::infinity();
  Limits limits;
  limits.host_bytes = std::size_t{1} << 30;
  CpuBackend backend(limits);
  const Problem problem{
      .count = 1, .m = 500, .n = 7, .type = element_type<TypeParam>, .mode = Mode::r};
  BackendLeaves<TypeParam> leaves(backend, problem, TallShape(500, 7, 500), 1);
  EXPECT_FALSE(leaves.factor(rows.view()[0], found.view()[0]).magnitude.finite);
}

}  // namespace
}  // namespace qrtool::backend_leaves_test
