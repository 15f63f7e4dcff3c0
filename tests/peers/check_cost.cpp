// SPDX-License-Identifier: Apache-2.0
// check_cost.cpp: what the check costs on the CPU beside the factoring, and beside the dgemm of a
// library, as a Markdown table.
//
//     check_cost --threads 2 --rounds 5 --blas libopenblas.so.0
//
// A round runs factor() without a check, with the full check and with the probe, and dgemm, one
// after the other; the table has the least time of all rounds. A batch is repeated. It stays in the
// second-level cache unless one matrix is larger, as a pack does between factoring and check. dgemm
// multiplies square matrices of the case's columns, at most 2000, on as many threads. GFLOP/s of
// the check count 2 m n^2 operations.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/matrix/matrices.hpp"
#include "tests/peers/peers.hpp"

namespace qrtool {
namespace {

struct CheckOptions : peers::Options {
  std::string blas;
};

using Dgemm = void (*)(const char*, const char*, const int*, const int*, const int*, const double*,
                       const double*, const int*, const double*, const int*, const double*, double*,
                       const int*);

Dgemm load_dgemm(const std::string& library, int threads) {
  if (library.empty()) return nullptr;
  void* handle = dlopen(library.c_str(), RTLD_NOW);
  if (handle == nullptr) throw InputError(dlerror());
  for (const char* name : {"openblas_set_num_threads", "scipy_openblas_set_num_threads",
                           "MKL_Set_Num_Threads", "bli_thread_set_num_threads"})
    if (void* set = dlsym(handle, name)) reinterpret_cast<void (*)(int)>(set)(threads);
  for (const char* name : {"dgemm_", "scipy_dgemm_"})
    if (void* dgemm = dlsym(handle, name)) return reinterpret_cast<Dgemm>(dgemm);
  throw InputError(library + ": has no dgemm_");
}

/// Times dgemm of n x n matrices.
class Products {
 public:
  Products(Dgemm dgemm, index_t n)
      : dgemm_(dgemm), n_(static_cast<int>(std::min<index_t>(n, 2000))) {
    const auto size = static_cast<std::size_t>(n_) * static_cast<std::size_t>(n_);
    a_.assign(size, 1.0);
    b_.assign(size, 1.0);
    c_.assign(size, 0.0);
  }
  void run() {
    const double one = 1, zero = 0;
    dgemm_("N", "N", &n_, &n_, &n_, &one, a_.data(), &n_, b_.data(), &n_, &zero, c_.data(), &n_);
  }
  double operations() const { return 2.0 * n_ * n_ * n_; }

 private:
  Dgemm dgemm_;
  int n_;
  std::vector<double> a_, b_, c_;
};

struct Least {
  double none = std::numeric_limits<double>::infinity(), full = none, probe = none, dgemm = none;
};

template <class T>
void time_case(Problem problem, const CheckOptions& o, const Limits& limits, Dgemm dgemm) {
  const std::size_t bytes = problem.input_bytes() + problem.output_bytes();
  constexpr std::size_t cache = std::size_t{1} << 20;
  const auto fitting = std::max<index_t>(1, static_cast<index_t>(cache / bytes));
  // Whole packs of cpu/batched.
  const index_t per_thread = fitting < 4 ? fitting : (fitting + 7) / 8 * 8;
  problem.count = bytes > cache ? 1 : per_thread * limits.threads;
  const Batch<T> a(problem.count, problem.m, problem.n);
  const Batch<T> q(problem.count, problem.m, problem.k()), r(problem.count, problem.k(), problem.n);
  for (index_t b = 0; b < problem.count; ++b) fill_matrix<T>({"gauss", 1, 7}, b, a.view()[b]);
  std::vector<MatrixReport> report(static_cast<std::size_t>(problem.count));
  const Factors<T> factors{.q = q.view(), .r = r.view(), .v = {}, .tau = {}};

  const auto plan_of = [&](Check check) {
    problem.check = check;
    return make_plan(problem, CpuBackend(limits).variants(), limits);
  };
  // Each way has a backend of its own, which keeps its workspaces.
  CpuBackend backends[] = {CpuBackend(limits), CpuBackend(limits), CpuBackend(limits)};
  const Plan plans[] = {plan_of(Check::none), plan_of(Check::full), plan_of(Check::probe)};
  const bool has_probe = plans[2].problem.check == Check::probe;
  const auto run = [&](std::size_t i) { backends[i].factor(plans[i], a.view(), factors, report); };

  Products products(dgemm, problem.n);
  const double operations = 4.0 * static_cast<double>(problem.count) *
                            static_cast<double>(problem.m) *
                            static_cast<double>(problem.n * problem.n);
  const int repeats = static_cast<int>(std::clamp(2e8 / operations, 1.0, 200.0));
  Least least;
  for (std::size_t i : {0U, 1U, 2U}) run(i);
  for (int round = 0; round < o.rounds; ++round) {
    const auto time = [&](double& to, auto body, int times) {
      const double all = peers::seconds_of(o.cpu_time, [&] {
        for (int i = 0; i < times; ++i) body();
      });
      to = std::min(to, all / times);
    };
    time(
        least.none, [&] { run(0); }, repeats);
    time(
        least.full, [&] { run(1); }, repeats);
    if (has_probe)
      time(
          least.probe, [&] { run(2); }, repeats);
    if (dgemm != nullptr)
      time(
          least.dgemm, [&] { products.run(); },
          static_cast<int>(std::clamp(2e8 / products.operations(), 1.0, 1000.0)));
  }
  const double check = least.full - least.none, probe = least.probe - least.none;
  const double rate = operations / 2 / check / 1e9,
               of_dgemm = products.operations() / least.dgemm / 1e9;
  const auto number = [](bool is_known, double x) {
    return is_known ? fmt::format("{:.2f}", x) : std::string("-");
  };
  fmt::print("| {} of {}x{} | {} | {} | {:.4g} | {:.4g} | {:.2f} | {} | {:.1f} | {} | {} |\n",
             problem.count, problem.m, problem.n, name_of(problem.type), plans[0].variant->name,
             1e3 * least.none, 1e3 * check, check / least.none,
             number(has_probe, probe / least.none), rate, number(dgemm != nullptr, of_dgemm),
             number(dgemm != nullptr, rate / of_dgemm));
  std::fflush(stdout);
}

void run(const CheckOptions& o) {
  const Limits limits = host_limits({}, o.threads);
  const Dgemm dgemm = load_dgemm(o.blas, limits.threads);
  fmt::print(
      "{}, {} threads, {}, least of {} rounds\n\n"
      "| case | type | variant | factoring ms | check ms | check / factoring | probe / factoring | "
      "check GFLOP/s | dgemm GFLOP/s | check / dgemm |\n"
      "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
      CpuBackend(limits).device(), limits.threads, o.cpu_time ? "processor time" : "wall time",
      o.rounds);
  peers::for_each_case(o, [&](const Problem& p) {
    p.type == ElementType::float64 ? time_case<double>(p, o, limits, dgemm)
                                   : time_case<float>(p, o, limits, dgemm);
  });
}

}  // namespace
}  // namespace qrtool

int main(int argc, char** argv) {
  qrtool::CheckOptions o;
  o.rounds = 3;
  o.shapes = {"4x4",     "8x8",     "16x16",     "32x32",     "64x64",     "128x64",    "256x128",
              "512x256", "512x512", "1000x1000", "2000x2000", "5000x5000", "1000000x32"};
  CLI::App app("Times the CPU's check beside the factoring and beside dgemm.", "check_cost");
  app.add_option("--blas", o.blas,
                 "file name of a library with dgemm_ of 32-bit sizes, for dlopen");
  add_options(app, o);
  add_cpu_time(app, o);
  return qrtool::peers::run_main(app, argc, argv, [&] { qrtool::run(o); });
}
