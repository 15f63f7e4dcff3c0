// SPDX-License-Identifier: Apache-2.0
// system_times.cpp: the times of Gaussian least-squares problems whose data stay on the device: R
// alone, x with all that it needs, and the check. The exit status is 1 where the check refuses one.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <limits>
#include <random>

#include "core/solve/backward_error.hpp"
#include "core/solve/engines/shared_engine.hpp"
#include "gpu/host/device.hpp"
#include "gpu/solve/resident/resident_shared.hpp"
#include "gpu/solve/resident/resident_systems.hpp"

namespace qrtool::test {
namespace {

struct Options {
  index_t count = 15000, m = 64, n = 64, sides = 1;
  int repeats = 11;
  std::string device, variant, type, body;
  bool wants_se = false, by_factors = false, shared = false, columns = false, weighed = false;
  double missing = 0;  // the share of the entries of b, with `shared`
};

/// As many different systems as fit this many entries; the others repeat them.
constexpr index_t most_entries = index_t{1} << 24;

template <class T>
std::vector<T> gaussian(index_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::vector<T> out(static_cast<std::size_t>(count));
  for (T& x : out) x = static_cast<T>(normal(random));
  return out;
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2] * 1e3;
}

template <class T>
index_t time_systems(OpenclBackend& backend, const Options& o) {
  const SolveProblem problem{.type = element_type<T>,
                             .m = o.m,
                             .n = o.n,
                             .rank = {.tolerance = default_rank_tolerance(element_type<T>, o.n)},
                             .has_weights = o.weighed,
                             .weighs_each = o.weighed,
                             .wants_se = o.wants_se};
  const Plan plan =
      make_plan({.count = o.count, .m = o.m, .n = o.n, .type = element_type<T>, .mode = Mode::r},
                backend.variants(), backend.limits(), o.variant);
  const index_t some =
      std::clamp<index_t>(most_entries / (o.m * (o.weighed ? 1 : o.n)), 1, o.count);
  const index_t matrices = o.weighed ? 1 : some;
  const std::vector<T> a = gaussian<T>(matrices * o.m * o.n, 1),
                       b = gaussian<T>(some * o.m * o.sides, 2);
  std::vector<T> weights = gaussian<T>(o.weighed ? some * o.m : 0, 3);
  for (T& w : weights) w *= w;
  ResidentSystems<T> systems(backend, problem, plan, packed(a.data(), matrices, o.m, o.n), b,
                             o.by_factors ? SystemRoute::factors : SystemRoute::normal_equations,
                             o.body, weights);
  systems.run();
  std::vector<double> factor, solve, check;
  for (int i = 0; i < o.repeats; ++i) {
    const auto seconds = systems.run();
    if (!o.weighed) factor.push_back(systems.factor_seconds());
    solve.push_back(seconds.factor + seconds.solve);
    check.push_back(seconds.check);
  }
  const double bar = solution_bar(problem.type, o.m, o.n);
  index_t refused = 0;
  double worst = 0;
  for (const SolutionErrors& errors : systems.errors()) {
    refused += !(errors.error <= bar);
    worst = std::max(worst, errors.error / bar);
  }
  const double x = median(solve);
  std::string of_r;  // where each system has an A
  if (!factor.empty())
    of_r = fmt::format("R {:.4f} ms, x is {:.3f} times R, ", median(factor), x / median(factor));
  fmt::print(
      "{} of {}x{}, {} right sides, {}, {}: {}x {:.4f} ms, check {:.4f} ms; {} refused, worst "
      "{:.2g} of the bar\n",
      o.count, o.m, o.n, o.sides, name_of(problem.type), plan.variant->name, of_r, x, median(check),
      refused, worst);
  return refused;
}

/// One A for all right sides.
template <class T>
index_t time_shared(OpenclBackend& backend, const Options& o) {
  const SolveProblem problem{.type = element_type<T>,
                             .m = o.m,
                             .n = o.n,
                             .rank = {.tolerance = default_rank_tolerance(element_type<T>, o.n)},
                             .skips_missing = o.missing > 0,
                             .wants_se = o.wants_se};
  const std::vector<T> a = gaussian<T>(o.m * o.n, 1);
  const index_t some = std::clamp<index_t>(most_entries / o.m, 1, o.count);
  std::vector<T> b = gaussian<T>(some * o.m, 2);
  std::mt19937_64 random(3);
  std::bernoulli_distribution is_missing(o.missing);
  for (T& x : b)
    if (is_missing(random)) x = std::numeric_limits<T>::quiet_NaN();
  SharedEngine<T> engine(problem, {.host_bytes = std::size_t{1} << 30, .threads = 1});
  engine.take_matrix({a.data(), o.m, o.n, o.n}, nullptr, 1);
  ResidentShared<T> sides(backend, problem, engine.factors().value(), b, o.count,
                          o.columns ? SidesLayout::columns : SidesLayout::rows);
  sides.run();
  std::vector<double> solve, check;
  for (int i = 0; i < o.repeats; ++i) {
    const auto seconds = sides.run();
    solve.push_back(seconds.solve);
    check.push_back(seconds.check);
  }
  const double bar = solution_bar(problem.type, o.m, o.n);
  index_t refused = 0;
  double worst = 0;
  for (const SolutionErrors& errors : sides.errors()) {
    refused += !(errors.error <= bar);
    worst = std::max(worst, errors.error / bar);
  }
  const double moved = static_cast<double>(o.count * (o.m + o.n)) * sizeof(T);
  fmt::print(
      "shared {}x{}, {} right sides in {}, {} missing, {}: x {:.4f} ms, {:.3g} TB/s of b and x, "
      "check {:.4f} ms; {} refused, worst {:.2g} of the bar\n",
      o.m, o.n, o.count, o.columns ? "columns" : "rows", o.missing, name_of(problem.type),
      median(solve), moved / median(solve) / 1e9, median(check), refused, worst);
  return refused;
}

template <class T>
index_t time_all(OpenclBackend& backend, const Options& o) {
  return o.shared ? time_shared<T>(backend, o) : time_systems<T>(backend, o);
}

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  using namespace qrtool;
  CLI::App app("times of least-squares problems that stay on the device");
  test::Options options;
  app.add_option("--count", options.count, "systems");
  app.add_option("-m", options.m, "rows");
  app.add_option("-n", options.n, "columns");
  app.add_option("--sides", options.sides, "right sides of each");
  app.add_option("--repeats", options.repeats, "runs, of which the median is taken");
  app.add_option("--device", options.device, "as for qrtool");
  app.add_option("--variant", options.variant, "of R");
  app.add_option("--type", options.type, "float32 or float64; default both");
  app.add_option("--body", options.body, "of normal equations (SystemBody::name)");
  app.add_flag("--factors", options.by_factors, "x by R, not by normal equations");
  app.add_flag("--shared", options.shared, "one matrix for --count right sides");
  app.add_flag("--columns", options.columns, "right sides are columns, with --shared");
  app.add_flag("--own-weights", options.weighed,
               "one matrix for --count right sides, each with weights of its own");
  app.add_option("--missing", options.missing, "share of missing entries, with --shared");
  app.add_flag("--se", options.wants_se, "standard errors too");
  CLI11_PARSE(app, argc, argv);
  OpenclBackend backend(choose_device(options.device),
                        {.host = {.host_bytes = std::size_t{1} << 34, .threads = 2}});
  index_t refused = 0;
  if (options.type != "float64") refused += test::time_all<float>(backend, options);
  if (options.type != "float32") refused += test::time_all<double>(backend, options);
  return refused > 0;
}
