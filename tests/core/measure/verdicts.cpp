// SPDX-License-Identifier: Apache-2.0
// verdicts.cpp: has the CPU judge as many matrices beside their bars as wanted, and compares its
// verdicts and errors with those of another build. Exits with 1 where a verdict differs.
//
//     qrtool_verdicts --matrices 2000000 --out before.bin        the build before
//     qrtool_verdicts --matrices 2000000 --beside before.bin     the build with the change
//
// The factors of Gaussian matrices are spoilt by random numbers of such a size that an error
// becomes between 7/8 and 9/8 of its bar: Q or tau, and every other time R. The same processor must
// factor both times.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <complex>
#include <fstream>
#include <string>
#include <vector>

#include "core/cpu/check/checker.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/machine/host.hpp"
#include "core/matrix/matrices.hpp"
#include "core/measure/magnitude.hpp"

namespace qrtool::test {
namespace {

/// Matrices of one shape and mode, and their share of all, in millionths.
struct Shape {
  index_t m, n;
  Mode mode;
  int share;
};

constexpr Shape shapes[] = {
    {8, 8, Mode::reduced, 130'000},  {16, 16, Mode::reduced, 90'000},
    {12, 5, Mode::reduced, 60'000},  {20, 12, Mode::reduced, 40'000},
    {7, 20, Mode::reduced, 20'000},  {31, 31, Mode::reduced, 10'000},
    {32, 32, Mode::reduced, 40'000}, {33, 17, Mode::reduced, 12'000},
    {48, 40, Mode::reduced, 5'000},  {64, 64, Mode::reduced, 5'000},
    {65, 70, Mode::reduced, 1'000},  {128, 64, Mode::reduced, 2'000},
    {130, 100, Mode::reduced, 500},  {256, 128, Mode::reduced, 150},
    {300, 257, Mode::reduced, 50},   {600, 300, Mode::reduced, 20},
    {1200, 40, Mode::reduced, 500},  {12, 8, Mode::complete, 20'000},
    {64, 20, Mode::complete, 2'000}, {16, 16, Mode::raw, 15'000},
    {64, 64, Mode::raw, 3'000},      {100, 37, Mode::raw, 2'000},
    {600, 8, Mode::raw, 1'000},      {16, 16, Mode::r, 40'000},
    {64, 64, Mode::r, 3'000},        {300, 40, Mode::r, 500},
};

/// What is known of one matrix. Errors are in units of their bars.
struct Verdict {
  double residual = 0, orthogonality = 0;
  std::int64_t status = 0;
};

struct Draws {
  std::uint64_t seed, stream;
  std::uint64_t index = 0;

  double next() { return normal(seed, stream, index++); }
  /// Returns the wanted ratio of an error to its bar.
  double ratio() { return 0.875 + 0.25 * (0.5 + std::erf(next() / std::sqrt(2.0)) / 2); }
};

template <class T>
T number(Draws& draws) {
  if constexpr (is_complex_number<T>) {
    const double re = draws.next();
    return T(static_cast<Real<T>>(re), static_cast<Real<T>>(draws.next()));
  } else {
    return static_cast<T>(draws.next());
  }
}

template <class T>
double square(const T& x) {
  return std::norm(std::complex<double>(x));
}

/// Returns ||X'N + N'X||, for few columns by a loop, and otherwise what Gaussian numbers would
/// give where X has orthonormal columns times `size`.
template <class T>
double size_of_change(MatrixView<const T> x, MatrixView<const T> noise, double size) {
  const double columns = static_cast<double>(x.cols) * (is_complex_number<T> ? 2 : 1);
  if (x.cols > 64) return size * std::sqrt(2 * columns * static_cast<double>(x.cols + 1));
  double squares = 0;
  for (index_t p = 0; p < x.cols; ++p) {
    for (index_t q = p; q < x.cols; ++q) {
      T sum{};
      for (index_t i = 0; i < x.rows; ++i) {
        if constexpr (is_complex_number<T>) {
          sum += std::conj(x(i, p)) * noise(i, q) + std::conj(noise(i, p)) * x(i, q);
        } else {
          sum += x(i, p) * noise(i, q) + noise(i, p) * x(i, q);
        }
      }
      squares += (p == q ? 1 : 2) * square(sum);
    }
  }
  return std::sqrt(squares);
}

template <class T>
void add_noise(MatrixView<T> to, MatrixView<const T> noise, double t) {
  for (index_t i = 0; i < to.rows; ++i)
    for (index_t j = 0; j < to.cols; ++j)
      to(i, j) = static_cast<T>(Wide<T>(to(i, j)) + t * Wide<T>(noise(i, j)));
}

template <class T>
double norm_of(MatrixView<const T> a) {
  double squares = 0;
  for (index_t i = 0; i < a.rows; ++i)
    for (index_t j = 0; j < a.cols; ++j) squares += square(a(i, j));
  return std::sqrt(squares);
}

/// Spoils R of one matrix, or the upper part of V\R.
template <class T>
void spoil_r(const Problem& p, MatrixView<const T> a, MatrixView<T> r, double bar, Draws& draws) {
  const Batch<T> noise(1, r.rows, r.cols);
  const MatrixView<T> n = noise.view()[0];
  for (index_t i = 0; i < r.rows; ++i)
    for (index_t j = 0; j < r.cols; ++j) n(i, j) = i <= j ? number<T>(draws) : T{};
  const double norm = norm_of(a), wanted = draws.ratio() * bar * norm;
  const MatrixView<const T> read = n;
  const double change = p.mode == Mode::r
                            ? size_of_change<T>(r, read, std::sqrt(static_cast<double>(p.m))) / norm
                            : norm_of(read);
  add_noise<T>(r, read, wanted / change);
}

template <class T>
void spoil_q(MatrixView<T> q, double bar, Draws& draws) {
  const Batch<T> noise(1, q.rows, q.cols);
  const MatrixView<T> n = noise.view()[0];
  for (index_t i = 0; i < q.rows; ++i)
    for (index_t j = 0; j < q.cols; ++j) n(i, j) = number<T>(draws);
  add_noise<T>(q, n, draws.ratio() * bar / size_of_change<T>(q, n, 1));
}

/// With tau (1 + e) in place of tau a reflector's H'H - I has the norm e |tau|^2 (v'v)^2.
template <class T>
void spoil_tau(MatrixView<const T> v, MatrixView<T> tau, double bar, Draws& draws) {
  std::vector<double> noise(static_cast<std::size_t>(tau.cols));
  double squares = 0;
  for (index_t j = 0; j < tau.cols; ++j) {
    double of_v = 1;
    for (index_t i = j + 1; i < v.rows; ++i) of_v += square(v(i, j));
    const double x = noise[static_cast<std::size_t>(j)] = draws.next();
    const double change = x * square(tau(0, j)) * of_v * of_v;
    squares += change * change;
  }
  const double t = draws.ratio() * bar / std::sqrt(squares);
  for (index_t j = 0; j < tau.cols; ++j)
    tau(0, j) = static_cast<T>(Wide<T>(tau(0, j)) * (1 + t * noise[static_cast<std::size_t>(j)]));
}

class Run {
 public:
  Run(index_t matrices, std::uint64_t seed) : matrices_(matrices), seed_(seed) {}

  template <class T>
  void judge(const Shape& shape) {
    Problem p{.m = shape.m, .n = shape.n, .type = element_type<T>, .mode = shape.mode};
    // A seventh of all are complex.
    const double part = is_complex_number<T> ? 1.0 / 7 : 6.0 / 7;
    const auto count =
        static_cast<index_t>(std::ceil(part * 1e-6 * shape.share * static_cast<double>(matrices_)));
    Tally tally;
    Checker<T> checker(p);
    for (index_t first = 0; first < count; first += p.count) {
      p.count = std::min<index_t>(64, count - first);
      judge_batch<T>(p, checker, first, tally);
    }
    fmt::print("{:>9} of {}x{} {} {}: {} above the bar, {} within an eighth\n", count, p.m, p.n,
               name_of(p.type), name_of(p.mode), tally.above, tally.beside);
    std::fflush(stdout);
  }

  const std::vector<Verdict>& verdicts() const { return verdicts_; }

 private:
  struct Tally {
    index_t above = 0, beside = 0;
  };

  template <class T>
  void judge_batch(const Problem& p, Checker<T>& checker, index_t first, Tally& tally) {
    const bool is_raw = p.mode == Mode::raw;
    const Batch<T> a(p.count, p.m, p.n), q(p.count, p.m, p.q_cols()), r(p.count, p.r_rows(), p.n),
        tau(p.count, 1, p.k());
    Factors<T> out{.q = q.view(), .r = r.view(), .v = {}, .tau = {}};
    if (is_raw) out = {.q = {}, .r = {}, .v = r.view(), .tau = tau.view()};
    for (index_t b = 0; b < p.count; ++b)
      fill_matrix<T>({"gauss", 1, seed_}, first + b, a.view()[b]);
    std::vector<MatrixReport> reports(static_cast<std::size_t>(p.count));
    Problem unchecked = p;
    unchecked.check = Check::none;
    const Limits limits = host_limits({}, 1);
    CpuBackend backend(limits);
    backend.factor(make_plan(unchecked, backend.variants(), limits), a.view(), out, reports);
    const double bar = standard_bars(p.m, p.n, precision_of(p), {}).orthogonality;
    for (index_t b = 0; b < p.count; ++b) {
      Draws draws{seed_ + 1, static_cast<std::uint64_t>(verdicts_.size()) + 1, 0};
      draws.stream += static_cast<std::uint64_t>(b);
      if (b % 2 == 1 || p.mode == Mode::r) {
        spoil_r<T>(p, a.view()[b], r.view()[b], bar, draws);
      } else if (is_raw) {
        spoil_tau<T>(r.view()[b], tau.view()[b], bar, draws);
      } else {
        spoil_q<T>(q.view()[b], bar, draws);
      }
      MatrixReport& report = reports[static_cast<std::size_t>(b)];
      report = {.scale = magnitude_of<T>(a.view()[b]).scale()};
    }
    checker.measure_all(a.view(), out, reports);
    for (const MatrixReport& report : reports) {
      const Verdict verdict{
          .residual = report.residual / report.bars.residual,
          .orthogonality = p.mode == Mode::r ? 0 : report.orthogonality / report.bars.orthogonality,
          .status = static_cast<std::int64_t>(report.status)};
      tally.above += report.status == Status::above_bar;
      tally.beside += std::abs(std::max(verdict.residual, verdict.orthogonality) - 1) <= 0.125;
      verdicts_.push_back(verdict);
    }
  }

  index_t matrices_;
  std::uint64_t seed_;
  std::vector<Verdict> verdicts_;
};

/// Prints how the verdicts differ from those in a file, and returns whether they are the same.
bool compare(const std::vector<Verdict>& verdicts, const std::string& file) {
  std::vector<Verdict> others(verdicts.size());
  std::ifstream in(file, std::ios::binary);
  const auto bytes = static_cast<std::streamsize>(others.size() * sizeof(Verdict));
  if (!in.read(reinterpret_cast<char*>(others.data()), bytes) || in.peek() != EOF) {
    fmt::print("{}: has the verdicts of other matrices\n", file);
    return false;
  }
  index_t different = 0;
  double residual = 0, orthogonality = 0;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    different += verdicts[i].status != others[i].status;
    residual = std::max(residual, std::abs(verdicts[i].residual - others[i].residual));
    orthogonality =
        std::max(orthogonality, std::abs(verdicts[i].orthogonality - others[i].orthogonality));
  }
  fmt::print(
      "{} verdicts of {} differ; residuals differ by at most {:.2g} of their bars, orthogonality "
      "by {:.2g}\n",
      different, verdicts.size(), residual, orthogonality);
  return different == 0;
}

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  using namespace qrtool;
  index_t matrices = 20000;
  std::uint64_t seed = 1;
  std::string out, beside;
  CLI::App app("Judges matrices beside their bars.", "qrtool_verdicts");
  app.add_option("--matrices", matrices)->check(CLI::PositiveNumber);
  app.add_option("--seed", seed);
  app.add_option("--out", out, "file for the verdicts");
  app.add_option("--beside", beside, "file with the verdicts of another build");
  CLI11_PARSE(app, argc, argv);
  test::Run run(matrices, seed);
  for (const test::Shape& shape : test::shapes) {
    run.judge<float>(shape);
    run.judge<double>(shape);
    run.judge<std::complex<float>>(shape);
    run.judge<std::complex<double>>(shape);
  }
  if (!out.empty())
    std::ofstream(out, std::ios::binary)
        .write(reinterpret_cast<const char*>(run.verdicts().data()),
               static_cast<std::streamsize>(run.verdicts().size() * sizeof(test::Verdict)));
  return beside.empty() || test::compare(run.verdicts(), beside) ? 0 : 1;
}
