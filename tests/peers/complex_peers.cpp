// SPDX-License-Identifier: Apache-2.0
// complex_peers.cpp: the CPU kernels for complex matrices beside LAPACK libraries that are called
// from C++, as a Markdown table.
//
//     MKL_THREADING_LAYER=SEQUENTIAL complex_peers --threads 1 --rounds 20 libmkl_rt.so.3
//
// zgeqrf and zungqr (single: cgeqrf, cungqr) of every library are called as in cpu_peers.cpp: one
// matrix per thread, matrices already stored by columns, copies not timed. A round times every
// contestant once on each case, one after the other, and the ratio is that of the least times.
#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <complex>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/cpu/tall/tall_qr.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/machine/parallel.hpp"
#include "tests/peers/peers.hpp"
#include "tests/support/complex_routes.hpp"

namespace qrtool {
namespace {

using peers::quantile;
using peers::Seconds;

struct ComplexOptions : peers::Options {
  std::string mode = "reduced", route;
  double seconds = 0.05;
};

template <class T>
class Lapack {
 public:
  using Complex = std::complex<T>;

  explicit Lapack(const std::string& file) {
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    const std::string prefix = sizeof(T) == 8 ? "z" : "c";
    if (handle == nullptr) throw UsageError(fmt::format("{}: {}", file, dlerror()));
    geqrf_ = reinterpret_cast<Geqrf>(dlsym(handle, (prefix + "geqrf_").c_str()));
    ungqr_ = reinterpret_cast<Ungqr>(dlsym(handle, (prefix + "ungqr_").c_str()));
    if (geqrf_ == nullptr || ungqr_ == nullptr)
      throw UsageError(fmt::format("{}: no {}geqrf_ and {}ungqr_", file, prefix, prefix));
  }

  /// Factors one matrix, stored by columns.
  void factor(int m, int n, bool wants_q, Complex* a, Complex* tau, Complex* work,
              int entries) const {
    int info = 0;
    const int k = std::min(m, n);
    geqrf_(&m, &n, a, &m, tau, work, &entries, &info);
    if (wants_q) ungqr_(&m, &k, &k, a, &m, tau, work, &entries, &info);
  }

 private:
  using Geqrf = void (*)(const int*, const int*, Complex*, const int*, Complex*, Complex*,
                         const int*, int*);
  using Ungqr = void (*)(const int*, const int*, const int*, Complex*, const int*, const Complex*,
                         Complex*, const int*, int*);
  Geqrf geqrf_;
  Ungqr ungqr_;
};

template <class T>
class Case {
 public:
  using Complex = std::complex<T>;

  Case(const Problem& p, const ComplexOptions& o, int threads)
      : p_(p),
        o_(o),
        threads_(threads),
        a_(p.count, p.m, p.n),
        work_(p.count, p.m, p.n),
        q_(p.count, p.m, p.q_cols()),
        r_(p.count, p.k(), p.n),
        outcomes_(p.count) {
    std::mt19937_64 generator(7);
    std::normal_distribution<T> draw;
    for (index_t e = 0; e < p.count * p.m * p.n; ++e)
      a_.view().data[e] = {draw(generator), draw(generator)};
    using test::ComplexRoute;
    const auto route = o.route.empty()      ? test::complex_route(p)
                       : o.route == "packs" ? ComplexRoute::packs
                                            : ComplexRoute::strips;
    const Variant& tree = *std::ranges::find(cpu_variants(), "cpu/tall", &Variant::name);
    Problem of_complex = p;
    of_complex.type = complex_of(p.type);
    if (o.route.empty() && tree.takes(of_complex, {}).ok) tall_.emplace(of_complex, threads);
    for (int t = 0; t < threads; ++t)
      workers_.push_back(std::make_unique<test::ComplexFactor<T>>(p, route));
  }

  double time_tool() {
    const index_t size = workers_[0]->matrices_at_once();
    const Factors<Complex> all{.q = q_.view(), .r = r_.view(), .v = {}, .tau = {}};
    return peers::seconds_of(o_.cpu_time, [&] {
      if (tall_) {
        for (index_t b = 0; b < p_.count; ++b)
          tall_->factor(a_.view()[b], p_.wants_q() ? q_.view()[b] : MatrixView<Complex>{},
                        r_.view()[b]);
        return;
      }
      parallel_for((p_.count + size - 1) / size, threads_, [&](index_t pack, int worker) {
        const index_t first = pack * size, count = std::min(size, p_.count - first);
        workers_[worker]->factor(a_.view().slice(first, count), slice(all, first, count),
                                 std::span(outcomes_).subspan(first, count));
      });
    });
  }

  double time_library(const Lapack<T>& library) {
    std::copy_n(a_.view().data, p_.count * p_.m * p_.n, work_.view().data);
    const int entries = static_cast<int>(64 * (p_.n + p_.m));
    std::vector<std::vector<Complex>> scratch(threads_, std::vector<Complex>(entries + p_.k()));
    return peers::seconds_of(o_.cpu_time, [&] {
      parallel_for(p_.count, threads_, [&](index_t b, int worker) {
        Complex* const work = scratch[worker].data();
        library.factor(static_cast<int>(p_.m), static_cast<int>(p_.n), p_.wants_q(),
                       work_.view()[b].data, work + entries, work, entries);
      });
    });
  }

 private:
  Problem p_;
  const ComplexOptions& o_;
  int threads_;
  Batch<Complex> a_, work_, q_, r_;
  std::vector<batched::Outcome> outcomes_;
  std::vector<std::unique_ptr<test::ComplexFactor<T>>> workers_;
  std::optional<TallQr<Complex>> tall_;
};

template <class T>
void time_case(Problem p, const ComplexOptions& o, int threads) {
  const auto m = static_cast<double>(p.m), n = static_cast<double>(p.n);
  const double operations = 16 * std::max(m, n) * std::min(m, n) * std::min(m, n);
  p.count =
      std::max<index_t>(p.m * p.n > 200000 ? 1 : threads * 16,
                        static_cast<index_t>(o.seconds * threads / (1e-6 + operations / 20e9)));
  Case<T> one(p, o, threads);
  std::vector<Lapack<T>> libraries;
  for (const std::string& file : o.libraries) libraries.emplace_back(file);
  Seconds tool;
  std::vector<Seconds> others(libraries.size());
  for (int round = -1; round < o.rounds; ++round) {
    const double seconds = one.time_tool();
    if (round >= 0) tool.push_back(seconds);
    for (std::size_t i = 0; i < libraries.size(); ++i) {
      const double theirs = one.time_library(libraries[i]);
      if (round >= 0) others[i].push_back(theirs);
    }
  }
  const double each = 1e6 / static_cast<double>(p.count);
  fmt::print("| {}x{} {} {} | {:.4g} |", p.m, p.n, sizeof(T) == 8 ? "complex128" : "complex64",
             o.mode, each * quantile(tool, 0));
  for (const Seconds& s : others)
    fmt::print(" {:.4g} | {:.2f} |", each * quantile(s, 0), quantile(s, 0) / quantile(tool, 0));
  fmt::print("\n");
  std::fflush(stdout);
}

void run(const ComplexOptions& o) {
  const int threads = host_limits({}, o.threads).threads;
  fmt::print("{} threads, least of {} rounds, microseconds for each matrix\n\n| case | qrtool |",
             threads, o.rounds);
  for (const std::string& file : o.libraries) fmt::print(" {} | times as long |", file);
  fmt::print("\n| --- | --- |");
  for (std::size_t i = 0; i < o.libraries.size(); ++i) fmt::print(" --- | --- |");
  fmt::print("\n");
  peers::for_each_case(o, [&](Problem p) {
    p.mode = o.mode == "r" ? Mode::r : Mode::reduced;
    p.type == ElementType::float64 ? time_case<double>(p, o, threads)
                                   : time_case<float>(p, o, threads);
  });
}

}  // namespace
}  // namespace qrtool

int main(int argc, char** argv) {
  qrtool::ComplexOptions o;
  o.shapes = {"8x8", "16x16", "32x32", "64x64", "128x64", "256x128"};
  CLI::App app("Times the CPU kernels for complex matrices beside LAPACK.", "complex_peers");
  add_libraries(app, o);
  add_options(app, o);
  add_cpu_time(app, o);
  app.add_option("--mode", o.mode)->check(CLI::IsMember({"reduced", "r"}));
  app.add_option("--route", o.route, "instead of the faster one")
      ->check(CLI::IsMember({"packs", "strips"}));
  app.add_option("--seconds", o.seconds, "of a run at 20 GFLOP/s for each thread");
  return qrtool::peers::run_main(app, argc, argv, [&] { qrtool::run(o); });
}
