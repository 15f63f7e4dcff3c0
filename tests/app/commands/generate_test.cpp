// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "core/matrix/matrices.hpp"
#include "io/open/input.hpp"
#include "tests/support/householder.hpp"
#include "tests/support/run_tool.hpp"

namespace qrtool::test::generate_test {
namespace {

using Strings = std::vector<std::string>;

class Generate : public testing::Test {
 protected:
  Stored generate(const Strings& more) {
    Strings arguments{"generate", file_, "-f", "-q"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ToolResult result = run_tool(arguments);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.out + result.err, "");
    return read_dataset(file_, "/A");
  }

  TemporaryDirectory dir_;
  std::string file_ = dir_ / "a.h5";
};

/// Returns the determinant by cofactors: +1 or -1 for an orthogonal matrix.
double determinant(MatrixView<const double> q) {
  if (q.rows == 1) return q(0, 0);
  double sum = 0;
  for (index_t j = 0; j < q.cols; ++j) {
    const Batch<double> minor(1, q.rows - 1, q.cols - 1);
    for (index_t r = 1; r < q.rows; ++r)
      for (index_t c = 0, to = 0; c < q.cols; ++c)
        if (c != j) minor.view()[0](r - 1, to++) = q(r, c);
    sum += (j % 2 == 0 ? 1 : -1) * q(0, j) * determinant(minor.view()[0]);
  }
  return sum;
}

double distance_from_orthonormal(MatrixView<const double> q) {
  double sum = 0;
  for (index_t i = 0; i < q.cols; ++i)
    for (index_t j = 0; j < q.cols; ++j) {
      double dot = i == j ? -1 : 0;
      for (index_t l = 0; l < q.rows; ++l) dot += q(l, i) * q(l, j);
      sum += dot * dot;
    }
  return std::sqrt(sum);
}

TEST_F(Generate, SummaryNamesWhatWasWritten) {
  const ToolResult result = run_tool({"generate", "--shape", "5x4x3", "--seed", "3", file_});
  EXPECT_EQ(result.exit_code, 0);
  EXPECT_EQ(result.out, "wrote " + file_ + " (A 5x4x3 float32, gauss, seed 3)\n");
  EXPECT_EQ(run_tool({"generate", "--shape", "5x4x3", file_}).exit_code, 5) << "it exists";
}

TEST_F(Generate, FillsWithTheKind) {
  for (const MatrixKind& kind : matrix_kinds()) {
    const Stored stored =
        generate({"--shape", "4x6x6", "--precision", "double", "--kind", std::string(kind.name)});
    ASSERT_EQ(stored.source.leading, std::vector<index_t>{4});
    EXPECT_EQ(stored.source.type, ElementType::float64);
    const Batch<double> expected = make_matrices<double>(kind.name, 4, 6, 6);
    EXPECT_EQ(std::memcmp(stored.view().data, expected.view().data, 4 * 36 * sizeof(double)), 0)
        << kind.name;
  }
}

TEST_F(Generate, SeedAndCondCount) {
  const Strings shape{"--shape", "2x5x5", "--kind", "cond"};
  const auto first = [&](const Strings& more) {
    Strings all = shape;
    all.insert(all.end(), more.begin(), more.end());
    return generate(all).view().data[3];
  };
  EXPECT_EQ(first({}), first({"--seed", "0", "--cond", "1e6"}));
  EXPECT_NE(first({}), first({"--seed", "1"}));
  EXPECT_NE(first({}), first({"--cond", "10"}));
}

TEST_F(Generate, OneMatrixHasTwoDimensions) {
  const Stored stored = generate({"--shape", "7x3"});
  EXPECT_TRUE(stored.source.leading.empty());
  EXPECT_EQ(stored.source.m, 7);
  EXPECT_EQ(stored.source.type, ElementType::float32);
}

TEST_F(Generate, EmptyShapesWork) {
  for (const char* kind : {"gauss", "haar"}) {
    EXPECT_EQ(generate({"--shape", "0x3x3", "--kind", kind}).source.count(), 0);
    EXPECT_EQ(generate({"--shape", "3x0", "--kind", kind}).source.n, 0);
  }
}

TEST_F(Generate, ManyMatricesAreTheFewAndMore) {
  const index_t count = 20000, last = count - 1;  // more than one chunk
  EXPECT_EQ(run_tool({"generate", "--shape", "20000x32x32", file_}).exit_code, 0);
  const std::unique_ptr<Reader> reader = open_input({file_, "", Order::automatic});
  for (const index_t b : {index_t{0}, last}) {
    const Batch<float> stored(1, 32, 32), expected(1, 32, 32);
    reader->read(b, stored.view());
    fill_matrix<float>({}, b, expected.view()[0]);
    EXPECT_EQ(std::memcmp(stored.view().data, expected.view().data, 4096), 0) << b;
  }
}

TEST_F(Generate, Csv) {
  const std::string csv = dir_ / "a.csv";
  EXPECT_EQ(run_tool({"generate", "--shape", "2x3x3", csv}).exit_code, 0);
  const Stored stored = read_dataset(csv, "");
  EXPECT_EQ(stored.source.leading, std::vector<index_t>{2});
  const Batch<float> expected = make_matrices<float>("gauss", 2, 3, 3);
  for (index_t i = 0; i < 18; ++i)
    EXPECT_EQ(static_cast<float>(stored.view().data[i]), expected.view().data[i]);
}

TEST_F(Generate, HaarIsTheQOfAGaussianWithPositiveR) {
  const Stored q = generate({"--shape", "6x5x3", "--kind", "haar", "--precision", "double"});
  const Batch<double> gauss = make_matrices<double>("gauss", 6, 5, 3);
  for (index_t b = 0; b < 6; ++b) {
    EXPECT_LT(distance_from_orthonormal(q.view()[b]), 1e-14);
    const ReferenceQr reference = reference_qr<double>(gauss.view()[b]);
    for (index_t j = 0; j < 3; ++j) {
      const double sign = reference.r_at(j, j) < 0 ? -1 : 1;
      for (index_t i = 0; i < 5; ++i)
        EXPECT_NEAR(q.view()[b](i, j), sign * reference.q_at(i, j), 1e-14);
    }
  }
}

TEST_F(Generate, HaarHasBothDeterminantsSpecialHasOne) {
  for (const char* n : {"1", "2", "3", "4", "5"}) {
    const std::string shape = std::string("60x") + n + "x" + n;
    const Stored all = generate({"--shape", shape, "--kind", "haar"});
    const Stored special = generate({"--shape", shape, "--kind", "haar", "--special"});
    int negative = 0;
    for (index_t b = 0; b < 60; ++b) {
      const double d = determinant(all.view()[b]);
      EXPECT_NEAR(std::abs(d), 1, 1e-5);
      if (d < 0) ++negative;
      EXPECT_NEAR(determinant(special.view()[b]), 1, 1e-5);
      const index_t size = special.view().rows;
      for (index_t i = 0; i < size; ++i)
        for (index_t j = 0; j + 1 < size; ++j)
          EXPECT_EQ(special.view()[b](i, j), all.view()[b](i, j)) << "only the last column differs";
    }
    EXPECT_GT(negative, 10);
    EXPECT_LT(negative, 50);
  }
}

TEST_F(Generate, HaarAnglesAreUniform) {
  // The first column of a uniform rotation of the plane is uniform on the circle.
  const index_t count = 8000;
  const Stored q = generate({"--shape", "8000x2x2", "--kind", "haar", "--special"});
  int octants[8] = {};
  for (index_t b = 0; b < count; ++b) {
    const double angle = std::atan2(q.view()[b](1, 0), q.view()[b](0, 0)) + M_PI;
    ++octants[std::min(7, static_cast<int>(angle / (M_PI / 4)))];
  }
  for (const int octant : octants) EXPECT_NEAR(octant, 1000, 200) << "6.8 standard deviations";
}

}  // namespace
}  // namespace qrtool::test::generate_test
