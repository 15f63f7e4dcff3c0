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
#include <dlfcn.h>
#include <fmt/format.h>
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "core/solve/system_engine.hpp"

namespace qrtool {
namespace {

struct Options {
  std::vector<std::string> libraries, precisions{"double", "single"};
  std::vector<std::string> shapes{"8x8", "16x4", "16x16", "32x32", "64x64", "128x64", "288x97"};
  int threads = 0, rounds = 10;
  double seconds = 0.1;
};

/// Processor time, of all threads, repeats better than wall time on a machine that does other work.
bool counts_processor_time = false;

double now() {
  timespec time;
  clock_gettime(counts_processor_time ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

double seconds_of(const std::function<void()>& run) {
  const double start = now();
  run();
  return now() - start;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Gaussian systems with one right side each.
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

/// The functions of one library for one type.
template <class T>
class Lapack {
 public:
  explicit Lapack(void* handle) {
    const auto find = [&](const char* name, auto& function) {
      const std::string full = std::string(sizeof(T) == 4 ? "s" : "d") + name + "_";
      function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(handle, full.c_str()));
      if (function == nullptr) throw InputError(full + " is missing");
    };
    find("gels", gels_);
    find("gelsy", gelsy_);
    find("syrk", syrk_);
    find("gemv", gemv_);
    find("potrf", potrf_);
    find("potrs", potrs_);
  }

  struct Scratch {
    std::vector<T> work, gram;
    std::vector<int> pivots;
  };

  /// a: m x n by columns, and b, which x overwrites.
  void gels(int m, int n, T* a, T* b, Scratch& s) const {
    const int one = 1, size = static_cast<int>(s.work.size());
    int info = 0;
    gels_("N", &m, &n, &one, a, &m, b, &m, s.work.data(), &size, &info);
  }
  void gelsy(int m, int n, T* a, T* b, Scratch& s) const {
    const int one = 1, size = static_cast<int>(s.work.size());
    const T tolerance = std::numeric_limits<T>::epsilon() * T(n);
    int rank = 0, info = 0;
    std::fill(s.pivots.begin(), s.pivots.end(), 0);
    gelsy_(&m, &n, &one, a, &m, b, &m, s.pivots.data(), &tolerance, &rank, s.work.data(), &size,
           &info);
  }
  void normal_equations(int m, int n, T* a, T* b, Scratch& s) const {
    const T one = 1, zero = 0;
    const int step = 1;
    int info = 0;
    syrk_("U", "T", &n, &m, &one, a, &m, &zero, s.gram.data(), &n);
    gemv_("T", &m, &n, &one, a, &m, b, &step, &zero, s.work.data(), &step);
    potrf_("U", &n, s.gram.data(), &n, &info);
    potrs_("U", &n, &step, s.gram.data(), &n, s.work.data(), &n, &info);
    std::copy_n(s.work.data(), n, b);
  }

 private:
  void (*gels_)(const char*, const int*, const int*, const int*, T*, const int*, T*, const int*, T*,
                const int*, int*);
  void (*gelsy_)(const int*, const int*, const int*, T*, const int*, T*, const int*, int*, const T*,
                 int*, T*, const int*, int*);
  void (*syrk_)(const char*, const char*, const int*, const int*, const T*, const T*, const int*,
                const T*, T*, const int*);
  void (*gemv_)(const char*, const int*, const int*, const T*, const T*, const int*, const T*,
                const int*, const T*, T*, const int*);
  void (*potrf_)(const char*, const int*, T*, const int*, int*);
  void (*potrs_)(const char*, const int*, const int*, const T*, const int*, T*, const int*, int*);
};

/// One function of a library, on all systems.
template <class T>
class Peer {
 public:
  using Solve = void (Lapack<T>::*)(int, int, T*, T*, typename Lapack<T>::Scratch&) const;
  Peer(const Data<T>& data, const Lapack<T>& lapack, Solve solve, int threads)
      : data_(data), lapack_(lapack), solve_(solve), columns_(data.a.size()) {
    const index_t size = data.m * data.n;
    for (index_t s = 0; s < data.count; ++s)
      for (index_t i = 0; i < data.m; ++i)
        for (index_t j = 0; j < data.n; ++j)
          columns_[s * size + j * data.m + i] = data.a[s * size + i * data.n + j];
    scratch_.resize(static_cast<std::size_t>(threads));
    for (auto& s : scratch_) {
      s.work.resize(static_cast<std::size_t>(64 * (data.m + data.n) + 1000));
      s.gram.resize(static_cast<std::size_t>(data.n * data.n));
      s.pivots.resize(static_cast<std::size_t>(data.n));
    }
  }
  double seconds() {
    a_ = columns_;
    b_ = data_.b;
    const auto m = static_cast<int>(data_.m), n = static_cast<int>(data_.n);
    return seconds_of([&] {
#pragma omp parallel for num_threads(static_cast <int>(scratch_.size())) schedule(dynamic, 16)
      for (index_t s = 0; s < data_.count; ++s)
        (lapack_.*solve_)(m, n, a_.data() + s * data_.m * data_.n, b_.data() + s * data_.m,
                          scratch_[static_cast<std::size_t>(omp_get_thread_num())]);
    });
  }

 private:
  const Data<T>& data_;
  const Lapack<T>& lapack_;
  Solve solve_;
  std::vector<T> columns_, a_, b_;
  std::vector<typename Lapack<T>::Scratch> scratch_;
};

void print_line(const std::string& what, const std::string& who, const std::vector<double>& seconds,
                const std::vector<double>& tool, index_t count) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < seconds.size(); ++i) ratios.push_back(seconds[i] / tool[i]);
  fmt::print("| {} | {} | {:.4g} | {:.2f} |\n", what, who,
             1e6 * median_of(seconds) / static_cast<double>(count), median_of(ratios));
  std::fflush(stdout);
}

template <class T>
void time_case(index_t m, index_t n, const Options& o, const Limits& limits) {
  const double each = 3e-6 + 2 * static_cast<double>(m * n * n) / 5e9;
  const auto count = static_cast<index_t>(o.seconds * limits.threads / each) + 1;
  const Data<T> data(m, n, count);
  Tool<T> tool(data, limits);
  std::vector<std::string> names;
  std::vector<Lapack<T>> libraries;
  std::vector<Peer<T>> peers;
  libraries.reserve(o.libraries.size());
  for (const std::string& file : o.libraries) {
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) throw InputError(fmt::format("{} cannot be loaded", file));
    libraries.emplace_back(handle);
    const std::string base = file.substr(file.rfind('/') + 1);
    for (const auto& [name, solve] :
         {std::pair{"gels", &Lapack<T>::gels}, std::pair{"gelsy", &Lapack<T>::gelsy},
          std::pair{"normal equations", &Lapack<T>::normal_equations}}) {
      names.push_back(fmt::format("{} of {}", name, base));
      peers.emplace_back(data, libraries.back(), solve, limits.threads);
    }
  }
  std::vector<double> own;
  std::vector<std::vector<double>> theirs(peers.size());
  tool.run();
  for (Peer<T>& peer : peers) peer.seconds();
  for (int round = 0; round < o.rounds; ++round) {
    own.push_back(seconds_of([&] { tool.run(); }));
    for (std::size_t i = 0; i < peers.size(); ++i) theirs[i].push_back(peers[i].seconds());
  }
  if (tool.failed() > 0) throw InternalError(fmt::format("{} fail", tool.failed()));
  const std::string what =
      fmt::format("{}x{} {}, {} systems", m, n, sizeof(T) == 4 ? "single" : "double", count);
  print_line(what, "qrtool", own, own, count);
  for (std::size_t i = 0; i < peers.size(); ++i) print_line(what, names[i], theirs[i], own, count);
}

void run(const Options& o) {
  const Limits limits = host_limits({}, o.threads);
  fmt::print(
      "{} threads, {} rounds; microseconds for each system, medians\n\n"
      "| case | solver | us | ratio to qrtool |\n| --- | --- | --- | --- |\n",
      limits.threads, o.rounds);
  for (const std::string& precision : o.precisions) {
    for (const std::string& shape : o.shapes) {
      long m = 0, n = 0;
      if (std::sscanf(shape.c_str(), "%ldx%ld", &m, &n) != 2 || n < 1 || m < n)
        throw UsageError(fmt::format("--shapes: {} is not MxN with M >= N", shape));
      precision == "double" ? time_case<double>(m, n, o, limits)
                            : time_case<float>(m, n, o, limits);
    }
  }
}

}  // namespace
}  // namespace qrtool

int main(int argc, char** argv) {
  qrtool::Options o;
  CLI::App app("Times `solve` on the CPU beside LAPACK libraries called from C++.");
  app.add_option("library", o.libraries, "file names for dlopen, with 32-bit sizes");
  app.add_option("--shapes", o.shapes, "MxN,...")->delimiter(',')->allow_extra_args(false);
  app.add_option("--precisions", o.precisions, "single,double")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"single", "double"}));
  app.add_option("--threads", o.threads, "default: all cores");
  app.add_flag("--cpu-time", qrtool::counts_processor_time, "processor time, not wall time");
  app.add_option("--rounds", o.rounds)->check(CLI::PositiveNumber);
  app.add_option("--seconds", o.seconds, "of a run at 5 GFLOP/s for each thread");
  CLI11_PARSE(app, argc, argv);
  try {
    qrtool::run(o);
  } catch (const qrtool::Error& error) {
    fmt::print(stderr, "solve_peers: {}\n", error.what());
    return 1;
  }
}
