// SPDX-License-Identifier: Apache-2.0
// product_test.cpp: compares every body of the matrix products with float64 at odd shapes. Each
// entry is written once, and no memory outside the result is written.
#include "gpu/products/product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "gpu/host/session.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::product_test {
namespace {

struct Size {
  int rows, cols, depth;
};
/// The sizes are near the tiles of 32, 64 and 128, and near the 16 terms of a stage.
const std::vector<Size> sizes{{1, 1, 1},     {3, 5, 7},     {64, 130, 17},
                              {130, 67, 33}, {33, 200, 70}, {129, 257, 64}};
constexpr int matrices = 2, slabs = 2;

/// Holds a device and the programs of one body.
template <class T>
class Products {
 public:
  Products(ProductBody body, int narrow)
      : session_(session_for(device_under_test())),
        queue_(session_.context->queue()),
        params_(product_params(element_type<T>, body, 1, narrow,
                               device_under_test().limits.has_nvidia_mma)) {
    params_["A_ALIGNMENT"] = 1;
    Problem problem;
    problem.type = element_type<T>;
    source_ = {"gpu/products/gemm.cl", defines_for(problem, params_, element_type<T>), "the test"};
  }

  Buffer buffer(const std::vector<T>& from) const {
    Buffer b = session_.context->allocate(from.size() * sizeof(T));
    queue_->write(b, from.data(), from.size() * sizeof(T));
    return b;
  }
  void read(const Buffer& from, std::vector<T>& to) const {
    queue_->read(from, to.data(), to.size() * sizeof(T));
  }
  Launcher launcher() { return {kernels_, *queue_, session_.programs, source_}; }
  const Params& params() const { return params_; }

 private:
  Session& session_;
  std::unique_ptr<Queue> queue_;
  Params params_;
  KernelCache kernels_;
  ProgramSource source_;
};

template <class T>
std::vector<T> random_entries(index_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<T> x(static_cast<std::size_t>(count));
  std::generate(x.begin(), x.end(), [&] { return static_cast<T>(uniform(random)); });
  return x;
}

/// The bound for sums of `depth` terms in -1 .. 1: each product of halves has an error of 2^-22, or
/// of 2^-10 with one half per number.
template <class T>
double tolerance(ProductBody body, int depth) {
  const bool is_half = body == ProductBody::half || body == ProductBody::stored_halves;
  const double unit = is_half ? 0x1p-10 : sizeof(T) == 4 ? 0x1p-21 : 0x1p-50;
  return unit * std::sqrt(static_cast<double>(depth)) * 4;
}

PackShape pack_shape(int rows, int cols, int ld) {
  PackShape shape{};
  shape.stride = rows * ld;
  shape.count = matrices;
  shape.rows = rows;
  shape.cols = cols;
  shape.ld = ld;
  shape.row_blocks = static_cast<int>(packed_blocks(rows));
  shape.col_blocks = static_cast<int>(packed_blocks(cols));
  return shape;
}

/// X in the form that the wide products of halves need, and its first entry and distances.
struct Operand {
  Buffer buffer;
  int ld;
  index_t stride;
};
template <class T>
Operand operand(Products<T>& on, ProductKind kind, Packing packing, const std::vector<T>& x,
                int rows, int cols, int ld) {
  const Buffer plain = on.buffer(x);
  if (kind != ProductKind::wide || !takes_packed(on.params())) return {plain, ld, rows * ld};
  const PackShape shape = pack_shape(rows, cols, ld);
  const index_t blocks = index_t{shape.row_blocks} * shape.col_blocks;
  // The buffer starts as NaN, so that a read of an entry that was not written is found.
  const Operand to{on.buffer(std::vector<T>(
                       static_cast<std::size_t>(matrices * blocks * packed_block_bytes) / sizeof(T),
                       std::numeric_limits<T>::quiet_NaN())),
                   shape.col_blocks, blocks};
  Launcher launch = on.launcher();
  const ProductScales scales = product_scales(on.params(), 1, 1);
  pack_operand(launch, shape, packing, packing == Packing::products ? scales.b : scales.a, plain,
               to.buffer);
  return to;
}

/// A of a wide C -= A B in the form that body floats needs.
template <class T>
Operand turned(Products<T>& on, const std::vector<T>& x, int rows, int cols, int ld) {
  const PackShape shape = pack_shape(rows, cols, ld);
  const index_t down = 16 * shape.col_blocks, across = 16 * shape.row_blocks;
  const Operand to{on.buffer(std::vector<T>(static_cast<std::size_t>(matrices * down * across),
                                            std::numeric_limits<T>::quiet_NaN())),
                   static_cast<int>(across), down * across};
  Launcher launch = on.launcher();
  transpose_operand(launch, shape, Packing::terms, on.buffer(x), to.buffer);
  return to;
}

template <class T>
void check_subtract(Products<T>& on, ProductBody body, ProductKind kind, Size size) {
  const int lda = size.depth + 1, ldb = size.cols + 3, ldc = size.cols + 1;
  const std::vector<T> a = random_entries<T>(matrices * size.rows * lda, 1),
                       b = random_entries<T>(matrices * size.depth * ldb, 2),
                       c = random_entries<T>(matrices * size.rows * ldc, 3);
  const bool turns = kind == ProductKind::wide && takes_transposed(on.params());
  const Operand first = turns ? turned(on, a, size.rows, size.depth, lda)
                              : operand(on, kind, Packing::terms, a, size.rows, size.depth, lda),
                second = operand(on, kind, Packing::products, b, size.depth, size.cols, ldb);
  ProductShape shape{};
  shape.count = matrices;
  shape.a_stride = first.stride;
  shape.b_stride = second.stride;
  shape.c_stride = size.rows * ldc;
  shape.lda = first.ld;
  shape.ldb = second.ld;
  shape.ldc = ldc;
  shape.rows = size.rows;
  shape.cols = size.cols;
  shape.depth = size.depth;
  const Buffer out = on.buffer(c);
  Launcher launch = on.launcher();
  enqueue_subtract(launch, on.params(), kind, shape, product_scales(on.params(), 1, 1),
                   first.buffer, second.buffer, out);
  std::vector<T> result(c.size());
  on.read(out, result);
  for (index_t i = 0; i < std::ssize(c); ++i) {
    const index_t row = i / ldc, col = i % ldc, matrix = row / size.rows;
    double expected = c[static_cast<std::size_t>(i)];
    for (int k = 0; k < size.depth && col < size.cols; ++k) {
      expected -= static_cast<double>(a[static_cast<std::size_t>(row * lda + k)]) *
                  b[static_cast<std::size_t>((matrix * size.depth + k) * ldb + col)];
    }
    const double off = std::abs(result[static_cast<std::size_t>(i)] - expected);
    ASSERT_LE(off, col < size.cols ? tolerance<T>(body, size.depth) : 0) << row << ", " << col;
  }
}

template <class T>
void check_transposed(Products<T>& on, ProductBody body, ProductKind kind, Size size,
                      int left_cols) {
  const int lda = size.rows + 2, ldb = size.cols + 3, left_ld = left_cols + 1, ldz = size.cols + 1;
  const std::vector<T> a = random_entries<T>(matrices * size.depth * lda, 4),
                       b = random_entries<T>(matrices * size.depth * ldb, 5),
                       left = random_entries<T>(matrices * size.depth * left_ld, 6);
  const int cut = size.depth > 16 ? slabs : 1, even = cut > 1 ? 16 : 1;
  std::vector<T> z(static_cast<std::size_t>(matrices * cut * size.rows * ldz), T(-77));
  const Operand first = operand(on, kind, Packing::terms, a, size.depth, size.rows, lda);
  ProductShape shape{};
  shape.count = matrices;
  shape.a_stride = first.stride;
  shape.b_stride = size.depth * ldb;
  shape.left_stride = size.depth * left_ld;
  shape.slab_stride = size.rows * ldz;
  shape.c_stride = cut * shape.slab_stride;
  shape.lda = first.ld;
  shape.ldb = ldb;
  shape.left_ld = left_ld;
  shape.ldc = ldz;
  shape.rows = size.rows;
  shape.cols = size.cols;
  shape.depth = size.depth;
  shape.left_cols = left_cols;
  shape.slabs = cut;
  shape.slab_depth = (size.depth / cut + size.depth % cut + even - 1) / even * even;
  const Buffer out = on.buffer(z);
  Launcher launch = on.launcher();
  enqueue_transposed(launch, on.params(), kind, shape, product_scales(on.params(), 1, 1),
                     first.buffer, on.buffer(left), on.buffer(b), out);
  on.read(out, z);
  for (index_t i = 0; i < std::ssize(z); ++i) {
    const index_t row = i / ldz % size.rows, col = i % ldz, slab = i / ldz / size.rows % cut,
                  matrix = i / ldz / size.rows / cut;
    double expected = col < size.cols ? 0 : -77;
    const index_t end = std::min<index_t>(size.depth, (slab + 1) * shape.slab_depth);
    for (index_t k = slab * shape.slab_depth; k < end && col < size.cols; ++k) {
      const index_t term = matrix * size.depth + k;
      expected += static_cast<double>(a[static_cast<std::size_t>(term * lda + row)]) *
                  (col < left_cols ? left[static_cast<std::size_t>(term * left_ld + col)]
                                   : b[static_cast<std::size_t>(term * ldb + col - left_cols)]);
    }
    const double off = std::abs(z[static_cast<std::size_t>(i)] - expected);
    ASSERT_LE(off, col < size.cols ? tolerance<T>(body, size.depth) : 0)
        << matrix << ", " << slab << ", " << row << ", " << col;
  }
}

/// C -= D (A'B), where the product in brackets stays packed as an operand of the other one.
void check_packed_result(Products<float>& on, ProductBody body, Size size) {
  const std::vector<float> a = random_entries<float>(matrices * size.depth * size.rows, 7),
                           b = random_entries<float>(matrices * size.depth * size.cols, 8),
                           d = random_entries<float>(matrices * size.depth * size.rows, 9),
                           c = random_entries<float>(matrices * size.depth * size.cols, 10);
  const Operand first =
      operand(on, ProductKind::wide, Packing::terms, a, size.depth, size.rows, size.rows);
  ProductShape shape{};
  shape.count = matrices;
  shape.slabs = 1;
  shape.a_stride = first.stride;
  shape.lda = first.ld;
  shape.b_stride = size.depth * size.cols;
  shape.ldb = size.cols;
  shape.rows = (size.rows + 15) / 16 * 16;
  shape.cols = size.cols;
  shape.depth = size.depth;
  shape.slab_depth = (size.depth + 15) / 16 * 16;
  shape.ldc = static_cast<int>(packed_blocks(size.cols));
  shape.c_stride = shape.rows / 16 * index_t{shape.ldc};
  const auto words = static_cast<std::size_t>(matrices * shape.c_stride * packed_block_bytes) / 4;
  const Buffer z = on.buffer(std::vector<float>(words, std::nanf("")));
  Launcher launch = on.launcher();
  const double bound = size.depth;
  const ProductScales scales = product_scales(on.params(), 1, bound);
  enqueue_transposed_packed(launch, on.params(), shape, product_scales(on.params(), 1, 1), scales.b,
                            first.buffer, on.buffer(b), z);

  const Operand left =
      operand(on, ProductKind::wide, Packing::terms, d, size.depth, size.rows, size.rows);
  ProductShape next{};
  next.count = matrices;
  next.a_stride = left.stride;
  next.lda = left.ld;
  next.b_stride = shape.c_stride;
  next.ldb = shape.ldc;
  next.c_stride = size.depth * size.cols;
  next.ldc = next.cols = size.cols;
  next.rows = size.depth;
  next.depth = size.rows;
  const Buffer out = on.buffer(c);
  enqueue_subtract(launch, on.params(), ProductKind::wide, next, scales, left.buffer, z, out);
  std::vector<float> result(c.size());
  on.read(out, result);
  const auto entry = [](const std::vector<float>& from, index_t i) {
    return static_cast<double>(from[static_cast<std::size_t>(i)]);
  };
  for (index_t matrix = 0; matrix < matrices; ++matrix) {
    for (index_t col = 0; col < size.cols; ++col) {
      std::vector<double> product(static_cast<std::size_t>(size.rows));
      for (index_t row = 0; row < size.rows; ++row) {
        for (index_t k = matrix * size.depth; k < (matrix + 1) * size.depth; ++k) {
          product[static_cast<std::size_t>(row)] +=
              entry(a, k * size.rows + row) * entry(b, k * size.cols + col);
        }
      }
      for (index_t i = matrix * size.depth; i < (matrix + 1) * size.depth; ++i) {
        double expected = entry(c, i * size.cols + col);
        for (index_t row = 0; row < size.rows; ++row) {
          expected -= entry(d, i * size.rows + row) * product[static_cast<std::size_t>(row)];
        }
        ASSERT_LE(std::abs(entry(result, i * size.cols + col) - expected),
                  tolerance<float>(body, size.depth) * std::sqrt(size.rows) * 2)
            << i << ", " << col;
      }
    }
  }
}

template <class T>
void check_body(ProductBody body, int narrow) {
  Products<T> on(body, narrow);
  for (const ProductKind kind : {ProductKind::wide, ProductKind::narrow}) {
    for (const Size size : sizes) {
      SCOPED_TRACE(testing::Message() << (kind == ProductKind::wide ? "wide " : "narrow ")
                                      << size.rows << "x" << size.cols << "x" << size.depth);
      check_subtract<T>(on, body, kind, size);
      check_transposed<T>(on, body, kind, size, 0);
    }
  }
  check_transposed<T>(on, body, ProductKind::narrow, {narrow, 2 * narrow + 5, 50}, narrow);
}

class Product : public testing::Test {
 protected:
  void SetUp() override { SKIP_WITHOUT_OPENCL(); }
};

TEST_F(Product, OfSingles) {
  check_body<float>(ProductBody::fma, 64);
  check_body<float>(ProductBody::fma, 32);
}

TEST_F(Product, OfSinglesTransposed) {
  check_body<float>(ProductBody::floats, 64);
  // Sums of more than 256 terms are added in memory.
  Products<float> on(ProductBody::floats, 64);
  check_transposed<float>(on, ProductBody::floats, ProductKind::wide, {20, 9, 1100}, 0);
}

TEST_F(Product, OfStoredHalves) {
  check_body<float>(ProductBody::stored_halves, 64);
  check_body<float>(ProductBody::stored_halves, 32);
}

TEST_F(Product, OfDoubles) { check_body<double>(ProductBody::fma, 32); }

TEST_F(Product, OfHalves) {
  if (!device_under_test().limits.has_nvidia_mma) GTEST_SKIP() << "no matrix units";
  for (const ProductBody body : {ProductBody::three_halves, ProductBody::half}) {
    check_body<float>(body, 64);
    Products<float> on(body, 64);
    for (const Size size : sizes) check_packed_result(on, body, size);
  }
}

TEST_F(Product, OfDoublesOnUnits) {
  if (!device_under_test().limits.has_nvidia_mma) GTEST_SKIP() << "no matrix units";
  check_body<double>(ProductBody::doubles, 32);
}

/// The scales keep the bounds in range: the largest entry times its scale is a finite half.
TEST(ProductScales, KeepHalvesInRange) {
  const Params halves =
      product_params(ElementType::float32, ProductBody::three_halves, 1, 64, false);
  for (const double bound : {1.0, 1.5, 11.3, 128.0, 4000.0}) {
    const ProductScales scales = product_scales(halves, bound, 2 * bound);
    EXPECT_LE(bound * scales.a, 65504);
    EXPECT_GT(bound * scales.a, 65504.0 / 8);
    EXPECT_LE(2 * bound * scales.b, 65504);
    EXPECT_EQ(std::exp2(std::ilogb(scales.a)), scales.a);
  }
  const Params fma = product_params(ElementType::float32, ProductBody::fma, 1, 64, false);
  EXPECT_EQ(product_scales(fma, 4000, 4000).a, 1);
}

}  // namespace
}  // namespace qrtool::test::product_test
