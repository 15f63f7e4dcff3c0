// SPDX-License-Identifier: Apache-2.0
// device_check_test.cpp: the device judges factors as the host does, right ones and spoiled ones,
// of real and of complex matrices, in every mode.
#include "gpu/check/device_check.hpp"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/measure/magnitude.hpp"
#include "gpu/check/host_check.hpp"
#include "gpu/host/copies.hpp"
#include "gpu/pipeline/engine.hpp"
#include "gpu/registry.hpp"
#include "tests/gpu/opencl_fixture.hpp"

namespace qrtool::test::device_check_test {
namespace {

/// A matrix with its factors, which a kind may change.
template <class T>
struct Matrix {
  Problem p;
  MatrixView<T> a, q, r, tau;  // r is V\R in mode raw

  bool is_raw() const { return p.mode == Mode::raw; }
};

/// What is done to a Gaussian matrix before it is factored, and to it and its factors afterwards.
/// `spoil` returns what the check has to say of the result.
template <class T>
struct Kind {
  std::string name;
  std::function<void(MatrixView<T>)> draw;
  std::function<Status(const Matrix<T>&)> spoil;
};

template <class T>
void for_entries(MatrixView<T> x, const std::function<T(T)>& change) {
  for (index_t i = 0; i < x.rows; ++i)
    for (index_t j = 0; j < x.cols; ++j) x(i, j) = change(x(i, j));
}

/// i for complex numbers.
template <class T>
T turn() {
  if constexpr (is_complex_number<T>)
    return {0, 1};
  else
    return -1;
}

/// Turns column 0 of Q and row 0 of R, so that Q R stays and R's diagonal is no longer real or
/// positive.
template <class T>
Status turn_diagonal(const Matrix<T>& x) {
  if (x.is_raw()) return Status::ok;
  for (index_t j = 0; j < x.r.cols; ++j) x.r(0, j) = product(conjugate(turn<T>()), x.r(0, j));
  for (index_t i = 0; i < x.q.rows && x.p.wants_q(); ++i) x.q(i, 0) = product(turn<T>(), x.q(i, 0));
  return Status::ok;
}

template <class T>
Status change_r(const Matrix<T>& x, index_t i, index_t j, T by) {
  x.r(i, j) += by;
  return Status::above_bar;
}

template <class T>
Status change_q(const Matrix<T>& x, T to) {
  if (x.p.mode == Mode::r || (x.is_raw() && x.p.m == 1)) return Status::ok;
  // Entries of V are in V\R, below the diagonal.
  T& entry = x.is_raw() ? x.r(x.p.m - 1, 0) : x.q(x.p.m / 2, x.p.k() / 2);
  entry = is_nan(to) ? to : entry + to;
  return Status::above_bar;
}

template <class T>
Status change_tau(const Matrix<T>& x, T by) {
  if (!x.is_raw()) return Status::ok;
  x.tau(0, x.p.k() / 2) += by;
  return Status::above_bar;
}

template <class T>
Status conjugate_q(const Matrix<T>& x) {
  for_entries<T>(x.is_raw() ? x.tau : x.q, conjugate<T>);
  return is_complex(x.p.type) && x.p.mode != Mode::r ? Status::above_bar : Status::ok;
}

template <class T>
Status fill_below(const Matrix<T>& x) {
  if (x.is_raw() || x.r.rows == 1) return Status::ok;
  return change_r<T>(x, x.r.rows - 1, 0, turn<T>());
}

template <class T>
void scale_by(MatrixView<T> a, int of_single, int of_double) {
  const int exponent = sizeof(Real<T>) == 4 ? of_single : of_double;
  for_entries<T>(a, [&](T x) { return scaled_by(x, exponent); });
}

template <class T>
std::vector<Kind<T>> kinds() {
  using X = const Matrix<T>&;
  using A = MatrixView<T>;
  const auto no_draw = [](A) {};
  const auto no_spoil = [](X) { return Status::ok; };
  const auto equal_columns = [](A a) {
    for (index_t i = 0; i < a.rows; ++i) a(i, a.cols - 1) = a(i, 0);
  };
  return {
      {"gauss", no_draw, no_spoil},
      {"zero", [](A a) { for_entries<T>(a, [](T) { return T(0); }); }, no_spoil},
      {"dependent", equal_columns, no_spoil},
      {"huge", [](A a) { scale_by(a, 120, 1010); }, no_spoil},
      {"tiny", [](A a) { scale_by(a, -135, -1060); }, no_spoil},
      {"Q", no_draw, [](X x) { return change_q<T>(x, T(0.25)); }},
      {"Q, imaginary", no_draw, [](X x) { return change_q<T>(x, T(0.25) * turn<T>()); }},
      {"NaN in Q", no_draw, [](X x) { return change_q<T>(x, not_a_number<T>()); }},
      {"conjugate", no_draw, conjugate_q<T>},
      {"R", no_draw, [](X x) { return change_r<T>(x, 0, x.r.cols - 1, T(1)); }},
      {"diagonal", no_draw, [](X x) { return change_r<T>(x, 0, 0, turn<T>()); }},
      {"turned", no_draw, turn_diagonal<T>},
      {"below", no_draw, fill_below<T>},
      {"tau", no_draw, [](X x) { return change_tau<T>(x, T(0.25)); }},
      {"tau, imaginary", no_draw, [](X x) { return change_tau<T>(x, T(0.25) * turn<T>()); }},
      {"R of 0", [](A a) { for_entries<T>(a, [](T) { return T(0); }); },
       [](X x) { return change_r<T>(x, 0, 0, T(1)); }},
      {"infinite R", no_draw,
       [](X x) {
         interleaved(x.r)(0, parts_of<T> * x.r.cols - 1) = std::numeric_limits<Real<T>>::infinity();
         return Status::r_overflows;
       }},
      {"NaN in A", no_draw,
       [](X x) {
         x.a(x.p.m / 2, x.p.n / 2) = not_a_number<T>();
         return Status::non_finite;
       }},
  };
}

/// A matrix of each kind with the factors of the CPU, spoiled, and what has to be said of each.
template <class T>
struct Run {
  explicit Run(const Problem& problem)
      : p(problem),
        a(p.count, p.m, p.n),
        q(p.count, p.m, p.q_cols()),
        r(p.count, p.r_rows(), p.n),
        tau(p.count, 1, is_raw() ? p.k() : 0) {
    const std::vector<Kind<T>> all = kinds<T>();
    for (index_t b = 0; b < p.count; ++b) {
      fill_matrix<Real<T>>({.kind = "gauss"}, b, interleaved(a.view()[b]));
      all[static_cast<std::size_t>(b)].draw(a.view()[b]);
    }
    CpuBackend cpu({.host_bytes = std::size_t{1} << 30, .threads = 1});
    std::vector<MatrixReport> report(static_cast<std::size_t>(p.count));
    cpu.factor<T>(make_plan(p, cpu.variants(), cpu.limits()), a.view(), factors(), report);
    for (index_t b = 0; b < p.count; ++b)
      expected.push_back(all[static_cast<std::size_t>(b)].spoil(
          {p, a.view()[b], q.view()[b], r.view()[b], tau.view()[b]}));
  }

  bool is_raw() const { return p.mode == Mode::raw; }
  Factors<T> factors() const {
    const BatchView<T> none{};
    return {.q = q.view(),
            .r = is_raw() ? none : r.view(),
            .v = is_raw() ? r.view() : none,
            .tau = tau.view()};
  }

  std::vector<DeviceErrors> measure_on_device() const;

  Problem p;
  Batch<T> a, q, r, tau;
  std::vector<Status> expected;
};

/// The code that a variant writes for a matrix.
template <class T>
int code_of(MatrixView<const T> a) {
  const Magnitude magnitude = magnitude_of(a);
  if (!magnitude.finite) return MAGNITUDE_NON_FINITE;
  return magnitude.largest > 0 ? magnitude.scale() : MAGNITUDE_ZERO;
}

/// A variant whose matrices check.cl or check_rows.cl measures.
const GpuVariant& some_variant(const Problem& p, const Limits& limits) {
  return *std::ranges::find_if(gpu_variants(), [&](const GpuVariant& variant) {
    return !variant.checks_by_vectors && variant.plan.takes(p, limits).ok;
  });
}

template <class T>
std::vector<DeviceErrors> Run<T>::measure_on_device() const {
  const DeviceInfo info = device_under_test();
  FactorEngine engine(info, session_for(info));
  const GpuVariant& variant = some_variant(p, info.limits);
  const Params params = variant.plan.tune(p, info.limits);
  const DeviceBuffers buffers =
      engine.pool.get(p, params, matrix_bytes(variant, p), p.count, /*set=*/0);
  const FactorJob& job = buffers.job;
  std::vector<Event> events;
  write_batch<T>(*engine.compute, job.a, a.view(), events);
  write_batch<T>(*engine.compute, job.q, factors().q, events);
  write_batch<T>(*engine.compute, is_raw() ? job.v : job.r, r.view(), events);
  write_batch<T>(*engine.compute, job.tau, tau.view(), events);
  std::vector<int> codes;
  for (index_t b = 0; b < p.count; ++b) codes.push_back(code_of<T>(a.view()[b]));
  engine.compute->write(job.magnitudes, codes.data(), sizeof(int) * codes.size());
  engine.check(buffers, variant.checks_by_vectors);
  return engine.compute->read_list<DeviceErrors>(buffers.errors, codes.size());
}

/// Sums of another order differ by errors of the size of float64's rounding unit, and those in
/// pairs of floats by the bound in the head of check.cl.
double noise_of(const Problem& p) {
  const auto m = static_cast<double>(p.m), k = static_cast<double>(p.k());
  if (p.type != ElementType::float32 || !device_under_test().limits.sums_in_pairs())
    return 8 * 0x1p-52 * std::sqrt(m);
  return (std::max(m, k) / 4 + 424) * k * 0x1p-48;
}

void expect_same(const char* what, double device, double host, double noise) {
  if (std::isfinite(host) && std::isfinite(device)) {
    EXPECT_NEAR(device, host, 1e-3 * host + noise) << what;
  } else {
    EXPECT_EQ(std::isnan(device), std::isnan(host)) << what;
    EXPECT_TRUE(device == host || std::isnan(host)) << what << ' ' << device << ' ' << host;
  }
}

template <class T>
void expect_judged_as_on_host(const Problem& p) {
  const Run<T> run(p);
  const std::vector<DeviceErrors> errors = run.measure_on_device();
  const std::vector<Kind<T>> all = kinds<T>();
  const double noise = noise_of(p);
  HostCheck<T> meter(p);
  for (std::size_t b = 0; b < errors.size(); ++b) {
    SCOPED_TRACE(all[b].name);
    const auto matrix = static_cast<index_t>(b);
    const MatrixReport device = judge_device(p, errors[b]);
    const MatrixReport host = meter.measure(run.a.view()[matrix], run.factors(), matrix);
    EXPECT_EQ(host.status, run.expected[b]);
    EXPECT_EQ(device.status, run.expected[b]);
    EXPECT_EQ(device.scale, host.scale);
    // The device uses R as an upper triangular matrix.
    if (!(host.lower > 0)) expect_same("residual", device.residual, host.residual, noise);
    expect_same("orthogonality", device.orthogonality, host.orthogonality, noise);
    expect_same("lower", device.lower, host.lower, 0);
    expect_same("diagonal ratio", device.diagonal_ratio, host.diagonal_ratio, 1e-12);
  }
}

template <class T>
class DeviceCheck : public testing::Test {
 protected:
  void SetUp() override {
    SKIP_WITHOUT_OPENCL();
    if (!std::is_same_v<T, float> && !device_under_test().limits.has_float64)
      GTEST_SKIP() << "the device has no float64";
  }

  static void expect_all_modes(index_t m, index_t n) {
    for (const Mode mode : {Mode::reduced, Mode::complete, Mode::r, Mode::raw}) {
      if (mode == Mode::complete && m > 64) continue;  // as many columns as rows
      SCOPED_TRACE(testing::Message() << m << 'x' << n << ' ' << name_of(mode));
      expect_judged_as_on_host<T>({.count = std::ssize(kinds<T>()),
                                   .m = m,
                                   .n = n,
                                   .type = element_type<T>,
                                   .mode = mode,
                                   .sign = mode == Mode::raw ? Sign::lapack : Sign::positive});
    }
  }
};
using Types = testing::Types<float, double, std::complex<float>, std::complex<double>>;
TYPED_TEST_SUITE(DeviceCheck, Types);

TYPED_TEST(DeviceCheck, JudgesOneTileAsTheHost) {
  this->expect_all_modes(1, 1);
  this->expect_all_modes(7, 1);
  this->expect_all_modes(20, 7);
  this->expect_all_modes(9, 14);
}

TYPED_TEST(DeviceCheck, JudgesSeveralTilesAsTheHost) { this->expect_all_modes(40, 33); }

TYPED_TEST(DeviceCheck, JudgesSlabsOfRowsAsTheHost) { this->expect_all_modes(1100, 5); }

/// One row, tiles of other sizes, more columns in slabs.
TYPED_TEST(DeviceCheck, JudgesOtherShapesAsTheHost) {
  this->expect_all_modes(1, 6);
  this->expect_all_modes(5, 5);
  this->expect_all_modes(30, 27);
  this->expect_all_modes(60, 70);
  this->expect_all_modes(1030, 17);
}

}  // namespace
}  // namespace qrtool::test::device_check_test
