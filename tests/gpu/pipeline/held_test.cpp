// SPDX-License-Identifier: Apache-2.0
// held_test.cpp: a matrix that goes to the device and back in pieces has the factors and the report
// that it has when it goes whole.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/factor/second_try.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::held_test {
namespace {

constexpr index_t rows_of_piece = 7;

/// The result of a matrix that a backend holds: `a` has its rows apart, as a packed piece has not.
template <class T>
class Pieces {
 public:
  Pieces(Backend& with, const Plan& plan, MatrixView<const T> a)
      : held_(with.hold<T>(plan)), result(one(plan.problem), /*padding=*/0) {
    for (index_t first = 0; first < a.rows; first += rows_of_piece)
      held_->put(first, a.row_block(first, std::min(rows_of_piece, a.rows - first)));
    held_->factor(plan);
  }

  void factor(const Plan& plan) { held_->factor(plan); }
  void collect() {
    const Factors<T> out = result.factors();
    get("Q", out.q[0]);
    get("R", out.r[0]);
    get("V", out.v[0]);
    get("tau", out.tau[0]);
    result.report[0] = held_->report();
  }

 private:
  static Problem one(Problem problem) {
    problem.count = 1;
    return problem;
  }
  void get(std::string_view name, MatrixView<T> factor) {
    for (index_t first = 0; factor.cols > 0 && first < factor.rows; first += rows_of_piece)
      held_->get(name, first,
                 factor.row_block(first, std::min(rows_of_piece, factor.rows - first)));
  }

  HeldPointer<T> held_;

 public:
  Result<T> result;
};

struct Case {
  index_t m, n;
  Mode mode = Mode::reduced;
  Check check = Check::full;
  const char* variant = "";
};

constexpr Case cases[] = {{50, 20},
                          {50, 20, Mode::r},
                          {50, 20, Mode::raw},
                          {20, 33, Mode::complete},
                          {33, 20, Mode::complete},
                          {1, 1},
                          {40, 12, Mode::reduced, Check::none},
                          {40, 12, Mode::raw, Check::none},
                          {90, 70, Mode::reduced, Check::full, "opencl/large"}};

template <class T>
Plan plan_of(const Case& c) {
  return plan_for(
      {.count = 1, .m = c.m, .n = c.n, .type = element_type<T>, .mode = c.mode, .check = c.check},
      c.variant);
}

template <class T>
Batch<T> gauss(index_t m, index_t n) {
  Batch<T> a(1, m, n);
  fill_matrix<T>({.kind = "gauss"}, 3, a.view()[0]);
  return a;
}

bool are_equal(const MatrixReport& x, const MatrixReport& y) {
  const auto same = [](double one, double other) {
    return one == other || (std::isnan(one) && std::isnan(other));
  };
  return x.status == y.status && x.scale == y.scale && x.route == y.route && x.tries == y.tries &&
         same(x.residual, y.residual) && same(x.orthogonality, y.orthogonality);
}

template <class T>
void expect_as_whole(const Case& c, BatchView<const T> a) {
  SCOPED_TRACE(testing::Message() << c.m << "x" << c.n << " " << name_of(c.mode));
  const Plan plan = plan_of<T>(c);
  Result<T> whole = factor<T>(backend(), plan, a);
  Pieces<T> pieces(backend(), plan, a[0]);
  pieces.collect();
  EXPECT_TRUE(same_factors(whole, 0, pieces.result, 0));
  EXPECT_TRUE(are_equal(whole.report[0], pieces.result.report[0]))
      << static_cast<int>(pieces.result.report[0].status);
}

TEST(Held, GivesTheFactorsOfTheWholeMatrix) {
  SKIP_WITHOUT_OPENCL();
  for (const Case& c : cases) {
    expect_as_whole<float>(c, gauss<float>(c.m, c.n).view());
    if (backend().limits().has_float64) expect_as_whole<double>(c, gauss<double>(c.m, c.n).view());
  }
}

/// Where nothing is checked, only what the host sees of the pieces says so.
TEST(Held, SaysWhatIsNotFinite) {
  SKIP_WITHOUT_OPENCL();
  for (const Check check : {Check::full, Check::none}) {
    for (const index_t row : {0, 49}) {
      Batch<float> a = gauss<float>(50, 20);
      a.view()[0](row, 19) = std::numeric_limits<float>::infinity();
      const Case c{50, 20, Mode::reduced, check};
      expect_as_whole<float>(c, a.view());
      Pieces<float> pieces(backend(), plan_of<float>(c), a.view()[0]);
      pieces.collect();
      EXPECT_EQ(pieces.result.report[0].status, Status::non_finite);
    }
    Batch<float> huge(1, 50, 20);
    for (index_t i = 0; i < 50; ++i)
      for (index_t j = 0; j < 20; ++j)
        huge.view()[0](i, j) = std::numeric_limits<float>::max() * (i == j ? 1.0F : 0.9F);
    const Case c{50, 20, Mode::reduced, check};
    expect_as_whole<float>(c, huge.view());
    Pieces<float> pieces(backend(), plan_of<float>(c), huge.view()[0]);
    pieces.collect();
    EXPECT_EQ(pieces.result.report[0].status, Status::r_overflows);
  }
}

TEST(Held, FactorsAgainByAnotherVariant) {
  SKIP_WITHOUT_VARIANT("opencl/large");
  const Batch<float> a = gauss<float>(50, 20);
  const Plan first = plan_of<float>({50, 20}),
             other = plan_of<float>({50, 20, Mode::reduced, Check::full, "opencl/large"});
  Result<float> expected = factor<float>(backend(), other, a.view());
  Pieces<float> pieces(backend(), first, a.view()[0]);
  pieces.factor(other);
  pieces.collect();
  EXPECT_TRUE(same_factors(expected, 0, pieces.result, 0));
}

/// A device whose first try is above its bar, or whose both tries are.
class Doubtful final : public BackendAround {
 public:
  Doubtful(Backend* backend, double first, double second)
      : BackendAround(backend), errors_{first, second} {}

  ChunkSeconds factor_any(const Plan&, const AnyChunk&) override {
    throw InternalError("the matrix goes in pieces");
  }
  AnyHeldMatrix hold_any(const Plan& plan) override {
    return std::make_unique<Held>(backend_.hold<float>(plan), errors_);
  }

 private:
  class Held final : public HeldMatrix<float> {
   public:
    Held(HeldPointer<float> held, const double (&errors)[2])
        : held_(std::move(held)), errors_{errors[0], errors[1]} {}
    void put(index_t first, MatrixView<const float> rows) override { held_->put(first, rows); }
    MatrixReport factor(const Plan& plan) override {
      const bool is_second = plan.problem.arithmetic == Arithmetic::strict;
      line_ = held_->factor(plan);
      line_.residual = errors_[is_second ? 1 : 0];
      line_.status = line_.residual > line_.bars.residual ? Status::above_bar : Status::ok;
      return line_;
    }
    void get(std::string_view factor, index_t first, MatrixView<float> rows) override {
      held_->get(factor, first, rows);
    }
    MatrixReport report() override {
      held_->report();
      return line_;
    }
    ChunkSeconds seconds() const override { return held_->seconds(); }

   private:
    HeldPointer<float> held_;
    double errors_[2];
    MatrixReport line_;
  };

  double errors_[2];
};

TEST(Held, TriesASecondTimeByReflectors) {
  SKIP_WITHOUT_VARIANT("opencl/gram");
  const Batch<float> a = gauss<float>(40, 12);
  const Plan plan = plan_of<float>({40, 12, Mode::reduced, Check::full, "opencl/gram"});
  Result<float> first = factor<float>(backend(), plan, a.view());
  const auto by = [&](double error, double second) {
    Doubtful doubtful(&backend(), error, second);
    SecondTry tries(doubtful);
    Pieces<float> pieces(tries, plan, a.view()[0]);
    pieces.collect();
    return pieces.result;
  };
  Result<float> good = by(1e-12, 0), mended = by(0.5, 1e-12), worse = by(0.5, 0.9);
  EXPECT_EQ(good.report[0].tries, 1);
  EXPECT_TRUE(same_factors(first, 0, good, 0));
  EXPECT_EQ(mended.report[0].tries, 2);
  EXPECT_EQ(mended.report[0].status, Status::ok);
  EXPECT_EQ(mended.report[0].route, Route::reflectors);
  EXPECT_FALSE(same_factors(first, 0, mended, 0));
  EXPECT_EQ(worse.report[0].tries, 1);
  EXPECT_EQ(worse.report[0].status, Status::above_bar);
  EXPECT_TRUE(same_factors(first, 0, worse, 0));
}

TEST(Held, RefusesWhatDoesNotFitTheDevice) {
  SKIP_WITHOUT_OPENCL();
  OpenclOptions options = test_options();
  options.pretend_max_allocation = 1024;
  OpenclBackend little(device_under_test(), options);
  EXPECT_THROW(little.hold<float>(plan_of<float>({50, 20})), LimitError);
}

}  // namespace
}  // namespace qrtool::test::held_test
