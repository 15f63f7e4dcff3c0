// SPDX-License-Identifier: Apache-2.0
// rates.cpp: the shapes of the samples, and their times.
#include "app/bench/rates.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "app/bench/contestants/systems.hpp"
#include "app/bench/timing/device.hpp"
#include "core/error.hpp"
#include "core/problem/operations.hpp"

namespace qrtool {
namespace {

/// The sampled numbers of columns. Kernels that work in blocks of 16 or 64 columns take longer from
/// one column more on.
constexpr index_t sampled_columns[] = {1,   2,   4,   6,    8,    12,   16,   17,    24,   32,  33,
                                       48,  64,  65,  80,   81,   96,   97,   128,   129,  160, 161,
                                       256, 384, 512, 1024, 2048, 4096, 5120, 16384, 65536};
/// The sampled ratios of rows to columns; ratios below 1 are wide matrices.
constexpr double sampled_ratios[] = {1. / 16, 0.25, 0.75, 1, 1.5, 2, 4};
constexpr index_t sampled_rows[] = {64, 256, 512, 513, 1024, 4096, 4097, 65536, 1000000};
/// Systems are sampled with these rows, and with as many or four times as many rows as columns.
constexpr index_t sampled_system_rows[] = {64, 256, 1024, 4096};
/// The most entries of one matrix of a sample, and the most matrices of a batch.
constexpr double most_entries = 0x1p27;
constexpr index_t most_matrices = 1 << 20;
/// The limits of the samples of one kind of device, and how its batches grow.
struct SampleLimits {
  double operations;    // of one matrix, and of a batch
  std::size_t bytes;    // of A of the largest batch
  index_t first, step;  // batches of one matrix, of `first`, and of `step` times as many each time
};
constexpr SampleLimits device_samples{1e12, std::size_t{64} << 20, 4, 4};
constexpr SampleLimits cpu_samples{5e9, std::size_t{2} << 20, 2, 2};
/// A time is the median of five runs, or of fewer if they exceed the time below.
constexpr Repeats repeats{.warm_up = 0, .timed = 5};
constexpr double sample_seconds = 0.05;
/// A variant that is slower than another one by this factor is not measured in larger batches.
constexpr double hopeless = 6;

std::vector<index_t> counts_of(const Problem& p, const SampleLimits& limits) {
  const auto by_bytes = static_cast<index_t>(limits.bytes / p.input_bytes());
  const auto by_operations = static_cast<index_t>(limits.operations / std::max(operations(p), 1.0));
  const index_t most = std::min(
      {std::max(by_bytes, limits.first), std::max<index_t>(by_operations, 1), most_matrices});
  std::vector<index_t> counts{1};
  for (index_t count = limits.first; 2 * count <= most; count *= limits.step)
    counts.push_back(count);
  if (most > 1) counts.push_back(most);
  return counts;
}

using PrepareRun =
    std::function<std::unique_ptr<TimedRun>(std::string_view name, const Problem& problem)>;

/// Returns the seconds of a batch, or nothing if the variant cannot run it or there is no room.
std::optional<double> seconds_of(const PrepareRun& prepare, std::string_view variant,
                                 const Problem& problem) {
  try {
    const std::unique_ptr<TimedRun> run = prepare(variant, problem);
    run->run();  // builds the kernels
    return time_runs(*run, repeats, sample_seconds).median();
  } catch (const UsageError&) {
    return std::nullopt;
  } catch (const LimitError&) {
    return std::nullopt;
  }
}

/// Returns the times of batches of the shape, up to the first batch for which the variant is
/// hopeless. `best` has the least time of each batch by any variant.
std::vector<BatchTime> times_of(const PrepareRun& prepare, std::string_view variant,
                                Problem problem, const std::vector<index_t>& counts,
                                std::map<index_t, double>& best) {
  std::vector<BatchTime> times;
  for (const index_t count : counts) {
    problem.count = count;
    const std::optional<double> seconds = seconds_of(prepare, variant, problem);
    if (!seconds) break;
    times.push_back({count, *seconds});
    double& least = best.try_emplace(count, *seconds).first->second;
    if (*seconds > hopeless * least) break;
    least = std::min(least, *seconds);
  }
  return times;
}

/// Returns the problem by which a variant is sampled for Q and R, or for R alone. A variant without
/// positive diagonal is sampled with LAPACK's signs, or by V in place of R alone.
Problem sampled_problem(const Variant& variant, Problem p, const Limits& limits) {
  Problem of_lapack = p;
  of_lapack.sign = Sign::lapack;
  if (p.mode == Mode::r) of_lapack.mode = Mode::raw;
  return !variant.takes(p, limits).ok && variant.takes(of_lapack, limits).ok ? of_lapack : p;
}

/// Returns the variants that a plan may choose for `p` and that have no sample of it in the table;
/// with --variant that one alone.
std::vector<const Variant*> unmeasured(const BenchSetup& setup, const CostTable& table,
                                       const Problem& p) {
  const Backend& backend = setup.backend;
  std::vector<const Variant*> variants;
  for (const Variant& variant : backend.variants()) {
    if (variant.only_when_forced || table.has(variant.name, p)) continue;
    if (!setup.variant.empty() && variant.name != setup.variant) continue;
    const Problem sampled = sampled_problem(variant, p, backend.limits());
    if (variant.takes(sampled, backend.limits()).ok) variants.push_back(&variant);
  }
  return variants;
}

/// Whether systems of this shape are sampled: their times lie on smooth curves between a few rows.
bool samples_systems(const Problem& p, CostTable::Reach reach) {
  if (is_complex(p.type)) return false;
  const auto& rows = sampled_system_rows;
  return reach == CostTable::Reach::shape || p.m == p.n || p.m == 4 * p.n ||
         std::ranges::find(rows, p.m) != std::end(rows);
}

/// Adds the ways to solve systems between which the table decides, for one system and for the
/// largest batch: the choice does not depend on their number.
void measure_systems(const BenchSetup& setup, Problem one, index_t most, CostTable::Reach reach,
                     CostTable& table) {
  one.mode = Mode::r;
  const SolveProblem systems = systems_of(one, BenchTask::solve, 0);
  std::map<index_t, double> best;
  for (const auto& [body, name] : sampled_bodies(setup.backend, systems)) {
    if (table.has(name, one)) continue;
    const PrepareRun prepare = [&, body = body](std::string_view, const Problem& p) {
      return make_resident_systems(setup.backend,
                                   make_plan(p, setup.backend.variants(), setup.backend.limits()),
                                   systems, SystemRoute::normal_equations, setup.seed, body);
    };
    const std::vector<BatchTime> times = times_of(prepare, name, one, {1, most}, best);
    if (!times.empty()) table.add(name, one, times, reach);
  }
}

}  // namespace

std::vector<RateShape> rate_shapes(bool is_cpu) {
  const SampleLimits& limits = is_cpu ? cpu_samples : device_samples;
  std::set<RateShape> shapes;
  for (const index_t n : sampled_columns) {
    std::set<index_t> with(std::begin(sampled_rows), std::end(sampled_rows));
    std::erase_if(with, [&](index_t m) { return m < n; });
    for (const double ratio : sampled_ratios)
      with.insert(static_cast<index_t>(ratio * static_cast<double>(n)));
    for (const index_t m : with) {
      const Problem p{.count = 1, .m = m, .n = n, .mode = Mode::r};
      const bool is_large = static_cast<double>(m) * static_cast<double>(n) > most_entries;
      if (m > 0 && !is_large && operations(p) <= limits.operations) shapes.emplace(m, n);
    }
  }
  return {shapes.begin(), shapes.end()};
}

void measure_rates(const BenchSetup& setup, const std::vector<RateShape>& shapes,
                   CostTable::Reach reach, CostTable& table,
                   const std::function<void(std::size_t left)>& save) {
  const bool is_cpu = setup.backend.name() == "cpu";
  const SampleLimits& limits = setup.backend.limits().is_cpu ? cpu_samples : device_samples;
  std::size_t left = shapes.size();
  for (const auto& [m, n] : shapes) {
    for (const ElementType type : element_types) {
      const Problem one{.count = 1, .m = m, .n = n, .type = type, .check = Check::none};
      const std::vector<index_t> counts = counts_of(one, limits);
      Problem most = one;
      most.count = counts.back();
      std::unique_ptr<SampleRuns> runs;
      for (const Mode mode : {Mode::reduced, Mode::r}) {
        Problem p = one;
        p.mode = mode;
        std::map<index_t, double> best;
        for (const Variant* variant : unmeasured(setup, table, p)) {
          if (runs == nullptr) runs = make_sample_runs(setup, most);
          const Problem sampled = sampled_problem(*variant, p, setup.backend.limits());
          const PrepareRun prepare = [&](std::string_view name, const Problem& some) {
            return runs->prepare(name, some);
          };
          const std::vector<BatchTime> times =
              times_of(prepare, variant->name, sampled, counts, best);
          if (!times.empty()) table.add(variant->name, p, times, reach);
        }
      }
      runs.reset();
      if (!is_cpu && setup.variant.empty() && samples_systems(one, reach))
        measure_systems(setup, one, most.count, reach, table);
    }
    save(--left);
  }
}

}  // namespace qrtool
