// SPDX-License-Identifier: Apache-2.0
// few_rows.cpp: fills, factors and judges one batch after another, on one thread.
#include "tests/support/few_rows.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/ratios.hpp"

namespace qrtool::test {
namespace {

constexpr index_t most_at_once = 1024;

constexpr std::array shapes{
    AttackShape{15, 15}, AttackShape{15, 16},  AttackShape{15, 17},  AttackShape{16, 15},
    AttackShape{16, 16}, AttackShape{16, 17},  AttackShape{17, 15},  AttackShape{17, 16},
    AttackShape{17, 17}, AttackShape{31, 31},  AttackShape{31, 32},  AttackShape{31, 33},
    AttackShape{32, 31}, AttackShape{32, 32},  AttackShape{32, 33},  AttackShape{33, 31},
    AttackShape{33, 32}, AttackShape{33, 33},  AttackShape{16, 40},  AttackShape{15, 132},
    AttackShape{16, 80}, AttackShape{16, 132}, AttackShape{15, 300}, AttackShape{16, 300},
    AttackShape{32, 132}};

/// Draws uniform numbers by SplitMix64 (Steele, Lea, Flood 2014).
class Uniform {
 public:
  Uniform(std::uint64_t seed, index_t number)
      : state_(seed * 0xd1342543de82ef95u + static_cast<std::uint64_t>(number)) {
    state_ = next();
  }
  double operator()() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t next() {
    std::uint64_t x = state_ += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
  }
  std::uint64_t state_;
};

template <class T>
void fill(const FewRows& run, index_t number, MatrixView<T> a) {
  const std::span<const AttackFamily> families = attack_families();
  const index_t half = number / 2, of_families = std::ssize(families);
  if (number % 2 == 1) {
    const AttackFamily& family = families[static_cast<std::size_t>(half % of_families)];
    return fill_attack<T>(family, run.seed, half / of_families, a);
  }
  Uniform uniform(run.seed, number);
  if (number % 8 == 0) {
    std::fill_n(a.data, a.rows * a.cols, static_cast<T>(uniform()));
  } else {
    std::generate_n(a.data, a.rows * a.cols, [&] { return static_cast<T>(uniform()); });
  }
}

WorstErrors errors_of(const Problem& p, const MatrixReport& report) {
  const double bar = standard_bars(p.m, p.n, precision_of(p), {}).orthogonality;
  // A NaN instead of an error must not count as a small error.
  const auto in_bars = [&](double error) { return std::isnan(error) ? INFINITY : error / bar; };
  return {.matrices = 1,
          .above = report.status == Status::ok ? 0 : 1,
          .residual = in_bars(report.residual),
          .orthogonality = in_bars(report.orthogonality)};
}

}  // namespace

std::span<const AttackShape> few_rows_shapes() { return shapes; }

void WorstErrors::include(const WorstErrors& other) {
  matrices += other.matrices;
  above += other.above;
  residual = std::max(residual, other.residual);
  orthogonality = std::max(orthogonality, other.orthogonality);
}

template <class T>
WorstErrors factor_few_rows(const FewRows& run) {
  const index_t at_once = std::min(run.variant.empty() ? 1 : most_at_once, run.matrices);
  const Problem p{.count = at_once, .m = run.shape.m, .n = run.shape.n, .type = element_type<T>};
  CpuBackend backend({.host_bytes = std::size_t{4} << 30, .threads = 1});
  const Plan plan = make_plan(p, backend.variants(), backend.limits(), run.variant);
  const Batch<T> a(at_once, p.m, p.n), q(at_once, p.m, p.q_cols()), r(at_once, p.r_rows(), p.n);
  WorstErrors all;
  for (index_t first = 0; first < run.matrices; first += at_once) {
    const index_t count = std::min(at_once, run.matrices - first);
    const BatchView<T> filled = a.view().slice(0, count);
    for (index_t b = 0; b < count; ++b) fill<T>(run, first + b, filled[b]);
    std::vector<MatrixReport> reports(static_cast<std::size_t>(count));
    backend.factor(plan, filled, {q.view().slice(0, count), r.view().slice(0, count), {}, {}},
                   reports);
    for (const MatrixReport& report : reports) all.include(errors_of(p, report));
  }
  return all;
}

template WorstErrors factor_few_rows<float>(const FewRows&);
template WorstErrors factor_few_rows<double>(const FewRows&);

}  // namespace qrtool::test
