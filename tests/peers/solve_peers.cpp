// SPDX-License-Identifier: Apache-2.0
// solve_peers.cpp: `solve` on the CPU beside LAPACK libraries that are called from C++, as a
// Markdown table.
//
//     solve_peers --threads 2 --shapes 64x64,16x4 libopenblas.so.0 libmkl_rt.so.2
//
// A library is loaded by its name, and its gels and gelsy are called: one system with one right
// side per thread, sequential inside. gels assumes full rank, and neither checks anything; the tool
// checks every x. "normal equations" are potrf and potrs of A'A by the same library's syrk: fast,
// and wrong by the square of the condition. Matrices are Gaussian and already stored by columns;
// copying them back is not timed. A round times every contestant once on each case, one after the
// other, and ratios are taken within a round.
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "app/bench/contestants/lapack_systems.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/solve/engines/system_engine.hpp"
#include "tests/peers/peers.hpp"

namespace qrtool {
namespace {

using peers::Seconds;

struct SolveOptions : peers::Options {
  double seconds = 0.1;
};

/// Holds Gaussian systems with one right side each.
template <class T>
struct Data {
  Data(index_t rows, index_t columns, index_t systems)
      : m(rows), n(columns), count(systems), a(count * m * n), b(count * m) {
    std::mt19937_64 random(1);
    std::normal_distribution<double> normal;
    for (T& each : a) each = static_cast<T>(normal(random));
    for (T& each : b) each = static_cast<T>(normal(random));
  }
  index_t m, n, count;
  std::vector<T> a, b;
};

template <class T>
class Tool {
 public:
  Tool(const Data<T>& data, const Limits& limits)
      : data_(data),
        problem_{.type = element_type<T>,
                 .m = data.m,
                 .n = data.n,
                 .rank = {.tolerance = default_rank_tolerance(element_type<T>, data.n)}},
        backend_(limits),
        plan_(make_plan(SystemEngine<T>::factored_problem(problem_, data.count, 1),
                        backend_.variants(), limits,
                        pays_as_pack(problem_, data.count, 1) ? "cpu/batched" : "")),
        engine_(problem_, backend_, plan_, limits.threads),
        x_(data.count * data.n),
        reports_(data.count) {
    for (index_t i = 0; i < data.count; ++i)
      systems_.push_back({data.a.data() + i * data.m * data.n, i});
  }
  void run() {
    engine_.run(systems_, {.count = data_.count,
                           .b = data_.b.data(),
                           .b_places = VectorPlaces::rows(data_.m),
                           .x = x_.data(),
                           .x_places = VectorPlaces::rows(data_.n),
                           .reports = reports_});
  }
  index_t failed() const {
    return std::count_if(reports_.begin(), reports_.end(),
                         [](const SolutionReport& r) { return r.status != Status::ok; });
  }

 private:
  const Data<T>& data_;
  SolveProblem problem_;
  CpuBackend backend_;
  Plan plan_;
  SystemEngine<T> engine_;
  std::vector<SystemRef<T>> systems_;
  std::vector<T> x_;
  std::vector<SolutionReport> reports_;
};

/// Calls one function of a library for all systems.
template <class T>
class Peer {
 public:
  using Solve = decltype(&LapackSolver<T>::gels);
  Peer(const Data<T>& data, const LapackSolver<T>& lapack, Solve solve, int threads)
      : data_(data),
        size_{.m = static_cast<int>(data.m), .n = static_cast<int>(data.n), .p = 1},
        lapack_(lapack),
        solve_(solve),
        columns_(data.a.size()),
        workspaces_(static_cast<std::size_t>(threads), lapack.workspace(size_)) {
    const index_t size = data.m * data.n;
    for (index_t s = 0; s < data.count; ++s)
      for (index_t i = 0; i < data.m; ++i)
        for (index_t j = 0; j < data.n; ++j)
          columns_[s * size + j * data.m + i] = data.a[s * size + i * data.n + j];
  }
  double seconds(bool cpu_time) {
    a_ = columns_;
    b_ = data_.b;
    return peers::seconds_of(cpu_time, [&] {
#pragma omp parallel for num_threads(static_cast <int>(workspaces_.size())) schedule(dynamic, 16)
      for (index_t s = 0; s < data_.count; ++s)
        (lapack_.*solve_)(size_, a_.data() + s * data_.m * data_.n, b_.data() + s * data_.m,
                          workspaces_[static_cast<std::size_t>(omp_get_thread_num())]);
    });
  }

 private:
  const Data<T>& data_;
  SystemSize size_;
  const LapackSolver<T>& lapack_;
  Solve solve_;
  std::vector<T> columns_, a_, b_;
  std::vector<typename LapackSolver<T>::Workspace> workspaces_;
};

void print_line(const std::string& what, const std::string& who, const Seconds& seconds,
                const Seconds& tool, index_t count) {
  fmt::print("| {} | {} | {:.4g} | {:.2f} |\n", what, who,
             1e6 * peers::quantile(seconds, 0.5) / static_cast<double>(count),
             peers::ratio_to(tool, seconds));
  std::fflush(stdout);
}

template <class T>
void time_case(index_t m, index_t n, const SolveOptions& o, const Limits& limits) {
  const double each = 3e-6 + 2 * static_cast<double>(m * n * n) / 5e9;
  const auto count = static_cast<index_t>(o.seconds * limits.threads / each) + 1;
  const Data<T> data(m, n, count);
  Tool<T> tool(data, limits);
  std::vector<std::string> names;
  std::vector<LapackLibrary> libraries;
  std::vector<LapackSolver<T>> solvers;
  std::vector<Peer<T>> contestants;
  libraries.reserve(o.libraries.size());
  solvers.reserve(o.libraries.size());
  for (const std::string& file : o.libraries) {
    libraries.push_back(load_lapack(file, {"gels"}));
    if (libraries.back().file.empty())
      throw InputError(fmt::format("{} cannot be loaded, or has no gels", file));
    if (libraries.back().set_own_threads != nullptr) libraries.back().set_own_threads(1);
    solvers.emplace_back(libraries.back());
    for (const auto& [name, solve] :
         {std::pair{"gels", &LapackSolver<T>::gels}, std::pair{"gelsy", &LapackSolver<T>::gelsy},
          std::pair{"normal equations", &LapackSolver<T>::normal_equations}}) {
      names.push_back(fmt::format("{} of {}", name, libraries.back().text()));
      contestants.emplace_back(data, solvers.back(), solve, limits.threads);
    }
  }
  Seconds own;
  std::vector<Seconds> theirs(contestants.size());
  tool.run();
  for (Peer<T>& peer : contestants) peer.seconds(o.cpu_time);
  for (int round = 0; round < o.rounds; ++round) {
    own.push_back(peers::seconds_of(o.cpu_time, [&] { tool.run(); }));
    for (std::size_t i = 0; i < contestants.size(); ++i)
      theirs[i].push_back(contestants[i].seconds(o.cpu_time));
  }
  if (tool.failed() > 0) throw InternalError(fmt::format("{} fail", tool.failed()));
  const std::string what =
      fmt::format("{}x{} {}, {} systems", m, n, sizeof(T) == 4 ? "single" : "double", count);
  print_line(what, "qrtool", own, own, count);
  for (std::size_t i = 0; i < contestants.size(); ++i)
    print_line(what, names[i], theirs[i], own, count);
}

void run(const SolveOptions& o) {
  const Limits limits = host_limits({}, o.threads);
  fmt::print(
      "{} threads, {} rounds; microseconds for each system, medians\n\n"
      "| case | solver | us | ratio to qrtool |\n| --- | --- | --- | --- |\n",
      limits.threads, o.rounds);
  peers::for_each_case(o, [&](const Problem& p) {
    if (p.m < p.n) throw UsageError(fmt::format("--shapes: {}x{} is wide", p.m, p.n));
    p.type == ElementType::float64 ? time_case<double>(p.m, p.n, o, limits)
                                   : time_case<float>(p.m, p.n, o, limits);
  });
}

}  // namespace
}  // namespace qrtool

int main(int argc, char** argv) {
  qrtool::SolveOptions o;
  o.precisions = {"double", "single"};
  o.shapes = {"8x8", "16x4", "16x16", "32x32", "64x64", "128x64", "288x97"};
  CLI::App app("Times `solve` on the CPU beside LAPACK libraries called from C++.", "solve_peers");
  add_libraries(app, o);
  add_options(app, o);
  add_cpu_time(app, o);
  app.add_option("--seconds", o.seconds, "of a run at 5 GFLOP/s for each thread");
  return qrtool::peers::run_main(app, argc, argv, [&] { qrtool::run(o); });
}
