// SPDX-License-Identifier: Apache-2.0
// company.cpp: qrtool_company, a program for a machine with a GPU. It factors matrices alone and
// among others, in large pieces and small ones, and solves systems in the same way, and compares
// the results bit by bit. The tests run a small part on the device of tests/gpu/warps.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "core/plan/plan.hpp"
#include "core/solve/engines/system_device.hpp"
#include "gpu/host/device.hpp"
#include "gpu/pipeline/opencl_backend.hpp"
#include "gpu/registry.hpp"
#include "gpu/solve/from_r/system_params.hpp"
#include "gpu/solve/systems.hpp"
#include "tests/support/attack.hpp"
#include "tests/support/company.hpp"
#include "tests/support/factored_batch.hpp"

namespace qrtool::test {
namespace {

constexpr std::size_t most_batch_bytes = std::size_t{512} << 20;  // of A, Q and R

struct Options {
  std::uint64_t seed = 1;
  int shapes = 400;
  index_t most_columns = 1300;
  index_t most_matrices = company_counts.back();
  double most_seconds = 1e9;
  std::string device;
};

struct Tally {
  long compared = 0, different = 0;
};

/// Matrices of every family in turn, so that they go every way through a variant with a guard.
template <class T>
void fill(BatchView<T> a) {
  const std::span<const AttackFamily> families = attack_families();
  for (index_t b = 0; b < a.count; ++b)
    fill_attack<T>(families[static_cast<std::size_t>(b) % families.size()], 11, b, a[b]);
}

template <class T>
FactoredBatch<T> room_for(Problem p, index_t count) {
  p.count = count;
  return FactoredBatch<T>(p);
}

class Comparison {
 public:
  explicit Comparison(const Options& o)
      : options_(o),
        device_(choose_device(o.device)),
        backend_(device_, host_options()),
        problems_(o.seed, o.most_columns),
        begun_(Clock::now()) {}

  /// Returns whether no bit differed.
  bool run() {
    for (int i = 0; i < options_.shapes && seconds() < options_.most_seconds; ++i, ++shapes_) {
      const Problem p = problems_.next();
      if (p.type == ElementType::float32) {
        compare<float>(p);
      } else {
        compare<double>(p);
      }
    }
    return print();
  }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - begun_).count(); }
  static OpenclOptions host_options() {
    OpenclOptions options;
    options.host.host_bytes = std::size_t{4} << 30;
    return options;
  }

  void note(const std::string& what, const Problem& p, index_t count, bool is_same) {
    Tally& tally = tallies_[what];
    ++tally.compared;
    if (is_same) return;
    ++tally.different;
    fmt::print("{}: {}x{} {} {} has other bits among {}\n", what, p.m, p.n, name_of(p.type),
               name_of(p.mode), count);
  }

  /// Runs a comparison, and says of which one an error is.
  template <class Body>
  void named(const std::string& what, const Problem& p, Body body) {
    try {
      body();
    } catch (const LimitError&) {
      ++tallies_[what + ": no memory"].compared;
    } catch (const std::exception& error) {
      throw std::runtime_error(fmt::format("{}: {}x{} {} {}, {} matrices: {}", what, p.m, p.n,
                                           name_of(p.type), name_of(p.mode), p.count,
                                           error.what()));
    }
  }

  template <class T>
  void compare(Problem p) {
    const std::size_t each = p.input_bytes() + p.output_bytes();
    p.count = std::clamp<index_t>(static_cast<index_t>(most_batch_bytes / each), 1,
                                  options_.most_matrices);
    p.check = Check::none;
    Batch<T> a(p.count, p.m, p.n);
    fill(a.view());
    for (const Variant& variant : backend_.variants())
      if (variant.numbers != Numbers::complex && variant.fits(p, backend_.limits()).ok)
        compare_variant<T>(p, a.view(), variant);
    if (p.m >= p.n) compare_systems<T>(p, a.view());
  }

  template <class T>
  void factor(OpenclBackend& with, const Plan& plan, BatchView<const T> a, FactoredBatch<T>& to) {
    with.factor(plan, a, to.factors(), to.report);
  }

  /// Makes a backend in which two or three matrices go to the device at a time.
  OpenclBackend in_pieces(const Problem& p, const Variant& variant) const {
    // A device that has no room for further passes would take reflectors in their place.
    const FurtherRoute* route = further_route(gpu_variant(variant), p, backend_.limits());
    const std::size_t one = std::max({p.input_bytes(), p.output_bytes(),
                                      variant.device_workspace_bytes(p) + std::size_t{4096},
                                      route == nullptr ? std::size_t{0} : route->slots(p).bytes});
    OpenclOptions options = host_options();
    options.pretend_max_allocation = 3 * one;
    return OpenclBackend(device_, options);
  }

  template <class T>
  void compare_variant(const Problem& p, BatchView<const T> a, const Variant& variant) {
    const Plan plan = make_plan(p, backend_.variants(), backend_.limits(), variant.name);
    const std::string name(variant.name);
    named(name, p, [&] {
      FactoredBatch<T> whole(p), pieces(p), alone = room_for<T>(p, 1);
      factor<T>(backend_, plan, a, whole);
      OpenclBackend limited = in_pieces(p, variant);
      factor<T>(limited, plan, a, pieces);
      bool are_same = true;
      for (index_t b = 0; b < p.count; ++b)
        are_same = are_same && same_factors(pieces, b, whole, b);
      note(name + " in pieces", p, p.count, are_same);
      for (const index_t count : company_counts) {
        if (count > p.count) break;
        // The matrices at the end of the batch: other positions than in the whole of it.
        const index_t first = p.count - count;
        FactoredBatch<T> some = room_for<T>(p, count);
        factor<T>(backend_, plan, a.slice(first, count), some);
        are_same = true;
        for (index_t b = 0; b < count; ++b)
          are_same = are_same && same_factors(some, b, whole, first + b);
        note(name, p, count, are_same);
      }
      for (const index_t b : {index_t{0}, p.count / 2}) {
        factor<T>(backend_, plan, a.slice(b, 1), alone);
        note(name, p, 1, same_factors(alone, 0, whole, b));
      }
    });
  }

  /// x of `count` systems from `first` on, and the systems that the device leaves to the host.
  template <class T>
  std::vector<index_t> solve(const SolveProblem& problem, const Plan& plan, SystemRoute route,
                             BatchView<const T> a, BatchView<const T> b, BatchView<T> x) {
    const auto solver = make_system_device<T>(backend_, problem, plan, route);
    std::vector<SolutionReport> reports(static_cast<std::size_t>(a.count));
    const RightSideBlock<T> block{.count = a.count,
                                  .b = b.data,
                                  .b_places = VectorPlaces::rows(problem.m),
                                  .x = x.data,
                                  .x_places = VectorPlaces::rows(problem.n),
                                  .reports = reports};
    return solver->run(a, block);
  }

  template <class T>
  void compare_systems(const Problem& p, BatchView<const T> a) {
    const SolveProblem problem{.type = p.type, .m = p.m, .n = p.n, .rank = {}};
    if (!system_objection(problem, backend_.limits()).empty()) return;
    Problem of_r = p;
    of_r.mode = Mode::r;
    // Of wide systems A' is factored.
    if (p.m < p.n) std::swap(of_r.m, of_r.n);
    const Plan plan = make_plan(of_r, backend_.variants(), backend_.limits());
    Batch<T> b(p.count, 1, p.m), whole(p.count, 1, p.n), some(p.count, 1, p.n);
    fill(b.view());
    for (const SystemRoute route : {SystemRoute::factors, SystemRoute::normal_equations}) {
      const std::string name = "solve, " + name_of(route, plan.variant->name);
      named(name, of_r, [&] {
        const auto left = solve<T>(problem, plan, route, a, b.view(), whole.view());
        for (const index_t count : company_counts) {
          if (count > p.count) break;
          const index_t first = p.count - count;
          const auto refused = solve<T>(problem, plan, route, a.slice(first, count),
                                        b.view().slice(first, count), some.view());
          bool are_same = true;
          for (index_t i = 0; i < count; ++i) {
            const bool is_left = std::ranges::binary_search(left, first + i);
            are_same = are_same && is_left == std::ranges::binary_search(refused, i) &&
                       (is_left || same_bits<T>(some.view()[i], whole.view()[first + i]));
          }
          note(name, of_r, count, are_same);
        }
      });
    }
  }

  bool print() const {
    long different = 0;
    for (const auto& [what, tally] : tallies_) {
      fmt::print("{:40} {:6} compared, {} different\n", what, tally.compared, tally.different);
      different += tally.different;
    }
    fmt::print("{}: {} shapes in {:.0f} s, {} mismatches\n", device_.text(), shapes_, seconds(),
               different);
    return different == 0;
  }

  Options options_;
  DeviceInfo device_;
  OpenclBackend backend_;
  CompanyProblems problems_;
  Clock::time_point begun_;
  int shapes_ = 0;
  std::map<std::string, Tally> tallies_;
};

}  // namespace
}  // namespace qrtool::test

int main(int argc, char** argv) {
  qrtool::test::Options options;
  CLI::App app("compares the bits of matrices alone and among others");
  app.add_option("--seed", options.seed, "of the shapes");
  app.add_option("--shapes", options.shapes, "how many");
  app.add_option("--most-columns", options.most_columns, "of a shape");
  app.add_option("--most-matrices", options.most_matrices, "that go together");
  app.add_option("--most-seconds", options.most_seconds, "after which no shape begins");
  app.add_option("--device", options.device, "as for qrtool");
  CLI11_PARSE(app, argc, argv);
  try {
    return qrtool::test::Comparison(options).run() ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "qrtool_company: %s\n", error.what());
    return 2;
  }
}
