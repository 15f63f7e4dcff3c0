// SPDX-License-Identifier: Apache-2.0
// hard_device_systems.cpp: solves as many hard problems as wanted on a device, and lets core check
// all solutions that the device accepts: with a matrix of their own, with and without weights and
// missing rows, or with one matrix for all. Where the condition is moderate, the CPU must find the
// same solution, and the device must answer for Gaussian matrices. The exit status is 1 where
// something is wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <random>
#include <span>

#include "core/cpu/cpu_backend.hpp"
#include "core/solve/shared_engine.hpp"
#include "core/solve/system_engine.hpp"
#include "core/solve/triangular.hpp"
#include "gpu/host/device.hpp"
#include "gpu/solve/shared_matrix.hpp"
#include "gpu/solve/shared_systems.hpp"
#include "gpu/solve/systems.hpp"
#include "tests/support/uneven_systems.hpp"

namespace qrtool::test {
namespace {

/// What was found so far.
struct Tally {
  index_t problems = 0, refused = 0, failed = 0;
  double worst = 0;

  void include(const Tally& other) {
    problems += other.problems;
    refused += other.refused;
    failed += other.failed;
    worst = std::max(worst, other.worst);
  }
  void print(std::string_view kind) const {
    fmt::print("{:24} {} problems, {} refused, {} fail; worst {:.3g} of its bar\n", kind, problems,
               refused, failed, worst);
  }
};

/// Counts a system with which something is wrong, and says what; `wrong` is empty if nothing is.
template <class T>
void count_failure(const HardSystems<T>& s, index_t i, std::string_view kind,
                   const std::string& wrong, Tally& tally) {
  if (wrong.empty()) return;
  ++tally.failed;
  fmt::print("fails: {} {}x{} {}, {}: {}\n", name_of(element_type<T>), s.m, s.n, s.names[i], kind,
             wrong);
}

/// Counts the refused systems, and lets core check all others.
template <class T>
void check(SolveProblem problem, const HardSystems<T>& s, const RightSideBlock<T>& block,
           const std::vector<index_t>& refused, std::span<const SystemRef<T>> systems,
           std::string_view kind, Tally& tally) {
  problem.only_checks = true;
  const Limits limits{.host_bytes = std::size_t{1} << 30, .threads = 2};
  CpuBackend cpu(limits);
  const Plan plan = make_plan(SystemEngine<T>::factored_problem(problem, std::ssize(systems), 1),
                              cpu.variants(), limits);
  std::vector<SystemRef<T>> accepted;
  for (const SystemRef<T>& system : systems)
    if (!std::binary_search(refused.begin(), refused.end(), system.first))
      accepted.push_back(system);
  SystemEngine<T>(problem, cpu, plan, limits.threads).run(accepted, block);
  tally.problems += std::ssize(systems);
  tally.refused += std::ssize(refused);
  for (const SystemRef<T>& system : accepted) {
    const SolutionReport& report = block.reports[static_cast<std::size_t>(system.first)];
    tally.worst = std::max(tally.worst, report.backward_error / report.bar);
    if (report.status != Status::ok)
      count_failure(s, system.first, kind,
                    fmt::format("{} of its bar", report.backward_error / report.bar), tally);
  }
}

/// Some matrices with the right sides of all, where A has the accuracy that products need: without
/// gaps, and with a fifth of b missing.
template <class T>
void solve_shared(OpenclBackend& device, const HardSystems<T>& s, std::uint64_t seed,
                  Tally& tally) {
  std::mt19937_64 random(seed);
  const index_t step = std::max<index_t>(1, s.count / 6);
  for (index_t i = static_cast<index_t>(random() % static_cast<std::uint64_t>(step)); i < s.count;
       i += step) {
    const bool has_gaps = random() % 2 == 1;
    const SolveProblem problem = problem_of(s, {.has_gaps = has_gaps});
    std::vector<T> b = s.b, x(static_cast<std::size_t>(s.count * s.n));
    for (T& entry : b)
      if (problem.skips_missing && random() % 5 == 0) entry = std::numeric_limits<T>::quiet_NaN();
    std::vector<SolutionReport> reports(static_cast<std::size_t>(s.count));
    const RightSideBlock<T> block{.count = s.count,
                                  .b = b.data(),
                                  .b_places = VectorPlaces::rows(s.m),
                                  .x = x.data(),
                                  .x_places = VectorPlaces::rows(s.n),
                                  .reports = reports};
    const MatrixView<const T> a{s.a.data() + i * s.m * s.n, s.m, s.n, s.n};
    SharedEngine<T> engine(problem, {.host_bytes = std::size_t{1} << 30, .threads = 2});
    engine.take_matrix(a, nullptr, 1);
    const auto factors = engine.factors();
    if (!factors || !shared_objection(problem, 0, device.limits()).empty()) continue;
    const std::vector<index_t> refused =
        make_shared_device<T>(device, problem, a, *factors, SidesLayout::rows)->run(block);
    std::vector<SystemRef<T>> systems;
    for (index_t side = 0; side < s.count; ++side) systems.push_back({a.data, side});
    check<T>(problem, s, block, refused, systems, has_gaps ? "one matrix, gaps" : "one matrix",
             tally);
  }
}

/// Above it the right sides and the condition together decide how much of x is known.
constexpr double moderate_condition = 1000;

/// The device's solution of a system that it accepts beside the CPU's, to first order in their
/// backward errors e: ||d|| <= e k (||x|| + k ||r|| / ||A|| + ||b|| / ||A||), k = ||A|| ||A^-1||.
/// Empty: nothing is wrong.
template <class T>
std::string complaint(const UnevenSystems<T>& s, const SolutionReport& report, const T* x,
                      const CpuAnswer<T>& cpu, const UnevenSystems<double>& evened, index_t i) {
  const index_t m = s.systems.m, n = s.systems.n;
  const auto freedom = static_cast<double>(s.rows_used(i) - n);
  if (report.freedom != freedom) return fmt::format("freedom {}, not {}", report.freedom, freedom);
  const SolutionReport& of_cpu = cpu.reports[i];
  const MatrixFindings& found = cpu.findings[i];
  if (found.rank != n || !(found.condition <= moderate_condition)) return {};
  std::vector<double> of_x, difference;
  for (index_t j = 0; j < n; ++j) {
    of_x.push_back(static_cast<double>(cpu.x[i * n + j]));
    difference.push_back(static_cast<double>(x[j]) - of_x.back());
  }
  const double a = norm_of(&evened.systems.a[i * m * n], m * n);
  const double b = norm_of(&evened.systems.b[i * m], m), size = norm_of(of_x.data(), n);
  const double u = sizeof(T) == 4 ? 0x1p-23 : 0x1p-52;
  // Ten times that, as the condition and the errors are estimates. u: x and weighted rows are
  // rounded.
  const double k = std::sqrt(static_cast<double>(n)) * found.condition;
  const double e = report.backward_error + of_cpu.backward_error + u;
  const double bound = 10 * e * k * (size + k * of_cpu.residual_norm / a + b / a);
  const double distance = norm_of(difference.data(), n);
  if (!(distance <= bound))
    return fmt::format("{} from the CPU's solution, bound {}", distance, bound);
  // ||A d|| is at most ||A|| ||d||. Both norms are roots of sums of m squares, in two orders.
  const double of_sums = static_cast<double>(m + 4) * 0x1p-53 * of_cpu.residual_norm;
  const double rest = a * distance + 4 * u * (a * size + b) + of_sums;
  if (!(std::abs(report.residual_norm - of_cpu.residual_norm) <= rest))
    return fmt::format("residual norm {}, not {}", report.residual_norm, of_cpu.residual_norm);
  return {};
}

template <class T>
void solve(OpenclBackend& device, const UnevenSystems<T>& s, Tally& tally) {
  const index_t m = s.systems.m, n = s.systems.n, count = s.systems.count;
  const SolveProblem problem = s.problem();
  const Plan plan =
      make_plan({.count = count, .m = m, .n = n, .type = problem.type, .mode = Mode::r},
                device.variants(), device.limits());
  std::vector<T> x(static_cast<std::size_t>(count * n));
  std::vector<SolutionReport> reports(static_cast<std::size_t>(count));
  std::vector<MatrixFindings> findings(reports.size());
  const RightSideBlock<T> block = s.block(x, reports, findings);
  const std::vector<index_t> refused = make_system_device<T>(device, problem, plan)
                                           ->run(packed(s.systems.a.data(), count, m, n), block);
  const CpuAnswer<T> cpu = solve_on_cpu(s);
  const UnevenSystems<double> evened = s.evened();
  const std::string kind = name_of(s.rule);
  for (index_t i = 0; i < count; ++i) {
    const bool is_ordinary = s.systems.names[i].starts_with("gaussian") &&
                             cpu.findings[i].rank == n &&
                             cpu.findings[i].condition <= moderate_condition;
    std::string wrong;
    if (!std::binary_search(refused.begin(), refused.end(), i)) {
      wrong = complaint(s, reports[i], &x[i * n], cpu, evened, i);
    } else if (is_ordinary) {
      wrong = "refused";
    }
    count_failure(s.systems, i, kind, wrong, tally);
  }
  check<T>(problem, s.systems, block, refused, s.refs(), kind, tally);
}

int run(OpenclBackend& device, index_t problems, std::uint64_t seed) {
  constexpr std::array<std::pair<index_t, index_t>, 12> shapes{{{1, 1},
                                                                {5, 1},
                                                                {2, 2},
                                                                {7, 3},
                                                                {16, 16},
                                                                {40, 7},
                                                                {33, 20},
                                                                {64, 64},
                                                                {97, 33},
                                                                {288, 12},
                                                                {1200, 5},
                                                                {5000, 5}}};
  std::array<Tally, row_rules.size()> tallies;
  Tally of_one_matrix, all;
  for (; all.problems < problems; ++seed) {
    for (const auto& [m, n] : shapes) {
      const index_t each = m > 1000 ? 1 : 10;
      const HardSystems<float> singles = make_hard_systems<float>(m, n, each, seed);
      const HardSystems<double> doubles = make_hard_systems<double>(m, n, each, seed);
      // Weights of all are of another kind for each shape.
      const std::uint64_t of_rows = seed + static_cast<std::uint64_t>(m);
      for (std::size_t i = 0; i < row_rules.size(); ++i) {
        solve(device, make_uneven_systems(singles, row_rules[i], of_rows), tallies[i]);
        solve(device, make_uneven_systems(doubles, row_rules[i], of_rows), tallies[i]);
      }
      solve_shared(device, singles, seed, of_one_matrix);
      solve_shared(device, doubles, seed, of_one_matrix);
    }
    all = of_one_matrix;
    for (const Tally& tally : tallies) all.include(tally);
  }
  for (std::size_t i = 0; i < row_rules.size(); ++i) tallies[i].print(name_of(row_rules[i]));
  of_one_matrix.print("one matrix");
  all.print("all");
  return all.failed > 0;
}

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  using namespace qrtool;
  CLI::App app("hard least-squares problems on a device");
  std::int64_t problems = 100000;
  std::uint64_t seed = 1;
  std::string device;
  app.add_option("--problems", problems, "at least; default 100000");
  app.add_option("--seed", seed, "the first; default 1");
  app.add_option("--device", device, "as for qrtool");
  CLI11_PARSE(app, argc, argv);
  DeviceInfo info = choose_device(device);
  // The larger shapes go to the device in several parts.
  info.limits.max_allocation_bytes = std::size_t{1} << 20;
  OpenclBackend backend(info, {.host = {.host_bytes = std::size_t{1} << 30, .threads = 2}});
  return test::run(backend, problems, seed);
}
