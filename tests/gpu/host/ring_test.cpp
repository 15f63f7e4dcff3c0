// SPDX-License-Identifier: Apache-2.0
// ring_test.cpp: copies through the ring arrive as they were sent, whatever the shape, and chunks
// in ordinary memory have the results of those in the backend's.
#include "gpu/host/ring.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <complex>

#include "core/measure/checksum.hpp"
#include "gpu/pipeline/engine.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::ring_test {
namespace {

template <class T>
class Ring : public testing::Test {};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(Ring, Types);

struct Shape {
  index_t count, rows, cols, padding;
};

/// Some are larger than all pieces together, and a piece ends within a matrix.
constexpr Shape shapes[] = {{1, 1, 1, 0},     {7, 5, 3, 2},       {5, 1, 9, 0},
                            {3, 700, 901, 5}, {90001, 11, 9, 0},  {2, 0, 4, 0},
                            {1, 1, 70000, 0}, {1, 9000, 1000, 0}, {2, 3, 0, 1}};

TYPED_TEST(Ring, CopiesMatricesBothWaysAndSumsThem) {
  SKIP_WITHOUT_OPENCL();
  using T = TypeParam;
  FactorEngine& engine = backend().engine();
  for (const Shape& s : shapes) {
    SCOPED_TRACE(testing::Message() << s.count << "x" << s.rows << "x" << s.cols);
    PaddedBatch<T> sent(s.count, s.rows, s.cols, s.padding);
    PaddedBatch<T> found(s.count, s.rows, s.cols, s.padding + 1);
    const BatchView<T> from = sent.view(), to = found.view();
    ASSERT_TRUE(CopyRing::takes(from));
    T next = 1;
    for (index_t b = 0; b < s.count; ++b)
      for (index_t i = 0; i < s.rows; ++i)
        for (index_t j = 0; j < s.cols; ++j) from[b](i, j) = next += T(1);
    const std::size_t bytes = sizeof(T) * static_cast<std::size_t>(s.count * s.rows * s.cols);
    const Buffer buffer = engine.session.context->allocate(bytes);
    std::vector<std::uint64_t> sent_sums(static_cast<std::size_t>(s.count)), found_sums = sent_sums;
    std::vector<Event> events;
    engine.ring.upload(*engine.upload, buffer, words_of(BatchView<const T>(from)), 2, sent_sums,
                       events);
    engine.upload->finish();
    engine.ring.download(*engine.download, buffer, words_of(to), 2, found_sums, events);
    for (index_t b = 0; b < s.count; ++b) {
      ASSERT_TRUE(same_bits<T>(from[b], to[b])) << b;
      const std::uint64_t expected = checksum<T>(from[b]);
      ASSERT_EQ(sent_sums[static_cast<std::size_t>(b)], expected) << b;
      ASSERT_EQ(found_sums[static_cast<std::size_t>(b)], expected) << b;
    }
    EXPECT_TRUE(found.padding_is_untouched());
    EXPECT_EQ(events.empty(), bytes == 0);
  }
}

TEST(Ring, RefusesRowsThatAreLongerThanAPiece) {
  EXPECT_TRUE(CopyRing::takes(packed<double>(nullptr, 1, 1, 1 << 20)));
  EXPECT_FALSE(CopyRing::takes(packed<double>(nullptr, 1, 1, (1 << 20) + 1)));
}

TYPED_TEST(Ring, GivesChunksOfTheCallerTheBitsOfOthers) {
  SKIP_WITHOUT_OPENCL();
  using T = TypeParam;
  for (const Mode mode : {Mode::reduced, Mode::raw}) {
    if (mode == Mode::raw && !std::is_same_v<T, float>) continue;
    const Plan plan =
        plan_for({.count = 9, .m = 40, .n = 12, .type = element_type<T>, .mode = mode}, "");
    PaddedBatch<T> a(9, 40, 12, 3);
    for (index_t b = 0; b < 9; ++b) fill_matrix<T>({.kind = "gauss"}, 3 + b, a.view()[b]);
    Result<T> own = factor<T>(backend(), plan, a.view(), 1);
    Result<T> callers(plan.problem, 1);
    backend().factor<T>(plan, a.view(), callers.factors(), callers.report, ArraysOf::caller);
    for (index_t b = 0; b < 9; ++b) {
      EXPECT_TRUE(same_factors(own, b, callers, b)) << b;
      EXPECT_EQ(callers.report[static_cast<std::size_t>(b)].status, Status::ok);
    }
  }
}

}  // namespace
}  // namespace qrtool::test::ring_test
