// SPDX-License-Identifier: Apache-2.0
// warps_test.cpp: the kernels that hold a matrix in the blocks of warps, by their bodies for
// NVIDIA: what they compute, with copies that arrive early and late. tests/CMakeLists.txt names the
// kernels and their defines.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <Eigen/QR>
#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/ratios.hpp"
#include "core/solve/backward_error.hpp"
#include "gpu/gpu_variant.hpp"
#include "gpu/registry.hpp"
#include "gpu/tuning.hpp"
#include "tests/gpu/warps/warp_machine.hpp"

namespace qrtool {

/// Kernels find structs on the stack, where C++ passes only those of more than 16 bytes.
struct LimitsOnStack {
  FactorLimits limits;
  char unused[16];
};
using SingleGram = void(const float*, float*, float*, int*, int*, FactorShape, LimitsOnStack);
using DoubleGram = void(const double*, double*, double*, int*, int*, double*, FactorShape, double);
template <class T>
using GroupGram = void(const T*, T*, T*, int*, int*, double*, FactorShape, double, int);
template <class T>
using NormalTile = void(const T*, const T*, T*, T*, SystemShape, int);

extern "C" {
SingleGram gram_48, gram_65, gram_83, gram_96;
DoubleGram gram_twice_32, gram_twice_39;
GroupGram<float> gram_group_98;
GroupGram<double> gram_group_97;
NormalTile<float> normal_tile_single_64, normal_tile_single_71;
NormalTile<double> normal_tile_double_32, normal_tile_double_75;
}

namespace test {
namespace {

using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Vector = Eigen::VectorXd;

constexpr int matrices = 3;

/// Matrices by number: Gaussian, around a common mean, with nearly parallel columns.
template <class T>
std::vector<T> make_matrices(index_t m, index_t n) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  std::vector<T> a;
  for (int matrix = 0; matrix < matrices; ++matrix)
    for (index_t i = 0; i < m; ++i)
      for (index_t j = 0; j < n; ++j) {
        double x = normal(random);
        if (matrix == 1) x = 288 + x / 2;
        if (matrix == 2 && j % 5 == 3) x = a.back() + x / 300;
        a.push_back(static_cast<T>(x));
      }
  return a;
}

template <class T>
Matrix matrix_of(const std::vector<T>& all, index_t number, index_t rows, index_t cols) {
  return Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
             all.data() + number * rows * cols, rows, cols)
      .template cast<double>();
}

template <class T>
Problem problem_of(index_t m, index_t n) {
  return {matrices, m, n, sizeof(T) == 4 ? ElementType::float32 : ElementType::float64,
          Mode::reduced};
}

/// Buffers that hold NaN where a kernel must write.
template <class T>
struct Factors {
  Factors(index_t m, index_t n)
      : a(make_matrices<T>(m, n)),
        q(a.size(), std::numeric_limits<T>::quiet_NaN()),
        r(static_cast<std::size_t>(matrices * n * n), std::numeric_limits<T>::quiet_NaN()),
        magnitudes(matrices, 12345),
        routes(matrices, 12345) {}
  std::vector<T> a, q, r;
  std::vector<int> magnitudes, routes;
};

/// The factors are within the bars unless the route is that of reflectors, as it never is for
/// Gaussian matrices.
template <class T>
void expect_factors(const Factors<T>& f, index_t m, index_t n) {
  const Problem p = problem_of<T>(m, n);
  const Bars bars = standard_bars(m, n, precision_of(p.type), {});
  EXPECT_NE(f.routes[0], ROUTE_REFLECTORS);
  for (index_t i = 0; i < matrices; ++i) {
    SCOPED_TRACE("matrix " + std::to_string(i));
    const Matrix a = matrix_of(f.a, i, m, n), q = matrix_of(f.q, i, m, n);
    const Matrix r = matrix_of(f.r, i, n, n);
    EXPECT_EQ(f.magnitudes[i], std::ilogb(a.cwiseAbs().maxCoeff()) + 1);
    if (f.routes[i] == ROUTE_REFLECTORS) continue;
    EXPECT_LE((a - q * r).norm(), bars.residual * a.norm());
    EXPECT_LE((q.transpose() * q - Matrix::Identity(n, n)).norm(), bars.orthogonality);
    EXPECT_EQ(r.template triangularView<Eigen::StrictlyLower>().toDenseMatrix().norm(), 0);
    EXPECT_GT(r.diagonal().minCoeff(), 0);
  }
}

class Warps : public testing::TestWithParam<CopyTime> {
 protected:
  WarpMachine machine{GetParam(), 1};

  template <class T>
  void read_only(const std::vector<T>& buffer) {
    machine.may_read(buffer.data(), buffer.size() * sizeof(T));
  }

  void factor(SingleGram* kernel, index_t m, index_t n) {
    Factors<float> f(m, n);
    const Problem p = problem_of<float>(m, n);
    const Params params;
    const FactorJob job{p, params, matrices, {}, {}, {}, {}, {}, {}, {}, {}};
    const LimitsOnStack limits{gram_limits(job, tuning::gram_guard_per_root), {}};
    read_only(f.a);
    read_only(f.q);
    machine.run(matrices, 32, [&] {
      kernel(f.a.data(), f.q.data(), f.r.data(), f.magnitudes.data(), f.routes.data(),
             factor_shape(p, matrices), limits);
    });
    expect_factors(f, m, n);
  }

  void factor(DoubleGram* kernel, index_t m, index_t n) {
    Factors<double> f(m, n);
    const Problem p = problem_of<double>(m, n);
    read_only(f.a);
    read_only(f.q);
    machine.run(matrices, 32, [&] {
      kernel(f.a.data(), f.q.data(), f.r.data(), f.magnitudes.data(), f.routes.data(), nullptr,
             factor_shape(p, matrices), most_in_one_pass(p, m));
    });
    expect_factors(f, m, n);
  }

  /// Two groups share the matrices.
  template <class T>
  void factor(GroupGram<T>* kernel, index_t m, index_t n) {
    Factors<T> f(m, n);
    const Problem p = problem_of<T>(m, n);
    constexpr int groups = 2;
    const index_t blocks = ceil_divide(n, 16);
    std::vector<double> work(static_cast<std::size_t>(groups * blocks * (blocks + 2) * 256),
                             std::numeric_limits<double>::quiet_NaN());
    read_only(f.a);
    read_only(f.q);
    read_only(work);
    const double enough = standard_bars(m, n, precision_of(p.type), {}).orthogonality / 2;
    machine.run(groups, static_cast<int>(32 * ((blocks + 1) / 2)), [&] {
      kernel(f.a.data(), f.q.data(), f.r.data(), f.magnitudes.data(), f.routes.data(), work.data(),
             factor_shape(p, matrices), enough * enough, groups);
    });
    expect_factors(f, m, n);
  }

  /// x is within its bar, and R'R is A'A.
  template <class T>
  void solve(NormalTile<T>* kernel, index_t m, index_t n) {
    const std::vector<T> a = make_matrices<T>(m, n);
    std::vector<T> b,
        x(static_cast<std::size_t>(matrices * n), std::numeric_limits<T>::quiet_NaN());
    std::vector<T> r(static_cast<std::size_t>(matrices * n * n), 0);
    std::mt19937_64 random(8);
    std::normal_distribution<double> normal;
    for (index_t i = 0; i < matrices * m; ++i) b.push_back(static_cast<T>(normal(random)));
    const ElementType type = problem_of<T>(m, n).type;
    const double u = type == ElementType::float32 ? 0x1p-23 : 0x1p-52;
    read_only(a);
    const SystemShape shape{.b_system = m,
                            .b_side = m,
                            .b_step = 1,
                            .x_system = n,
                            .x_side = n,
                            .x_step = 1,
                            .enough = tuning::solve_enough * std::sqrt(u),
                            .least_value = 0,
                            .count = matrices,
                            .m = static_cast<int>(m),
                            .sides = 1,
                            .wants_se = 0};
    machine.run(matrices, 32, [&] {
      kernel(a.data(), b.data(), r.data(), x.data(), shape, static_cast<int>(n));
    });
    for (index_t i = 0; i < matrices; ++i) {
      SCOPED_TRACE("matrix " + std::to_string(i));
      const Matrix wide = matrix_of(a, i, m, n), triangle = matrix_of(r, i, n, n);
      const Vector right = matrix_of(b, i, m, 1), found = matrix_of(x, i, n, 1);
      const Vector best = wide.householderQr().solve(right);
      EXPECT_LE((wide * (found - best)).norm(),
                solution_bar(type, m, n) * (wide.norm() * best.norm() + right.norm()));
      EXPECT_LE((triangle.transpose() * triangle - wide.transpose() * wide).norm(),
                1000 * u * wide.squaredNorm());
    }
  }
};

INSTANTIATE_TEST_SUITE_P(Copies, Warps, testing::Values(CopyTime::at_once, CopyTime::at_wait),
                         [](const auto& suite) {
                           return suite.param == CopyTime::at_once ? "AtOnce" : "AtWait";
                         });

TEST_P(Warps, GramOfFullBlocks) { factor(gram_48, 96, 48); }
TEST_P(Warps, GramOfPartlyFilledBlocks) { factor(gram_65, 90, 65); }
/// An even and an odd number of slabs, which share the room of local memory with other numbers.
TEST_P(Warps, GramOfSixFullBlocks) {
  factor(gram_96, 96, 96);
  factor(gram_96, 112, 96);
}
TEST_P(Warps, GramOfSixPartlyFilledBlocks) {
  factor(gram_83, 83, 83);
  factor(gram_83, 102, 83);
}
TEST_P(Warps, GramTwiceOfFullBlocks) { factor(gram_twice_32, 64, 32); }
TEST_P(Warps, GramTwiceOfPartlyFilledBlocks) { factor(gram_twice_39, 61, 39); }
TEST_P(Warps, GramGroupOfPairsOfColumns) { factor(gram_group_98, 101, 98); }
TEST_P(Warps, GramGroupOfOddColumns) { factor(gram_group_97, 97, 97); }
TEST_P(Warps, NormalTileOfFullBlocks) {
  solve(normal_tile_single_64, 96, 64);
  solve(normal_tile_double_32, 80, 32);
}
TEST_P(Warps, NormalTileOfPartlyFilledBlocks) {
  solve(normal_tile_single_71, 105, 71);
  solve(normal_tile_double_75, 90, 75);
}

}  // namespace
}  // namespace test
}  // namespace qrtool
