// SPDX-License-Identifier: Apache-2.0
// lapack_systems.cpp: times LAPACK's least squares: one system per thread, or a share of the right
// sides of one A per thread, or all threads of the library on one system.
#include "app/bench/contestants/lapack_systems.hpp"

#include <fmt/format.h>

#include <atomic>
#include <limits>
#include <optional>
#include <string>

#include "app/bench/contestants/systems.hpp"
#include "app/bench/timing/data.hpp"
#include "app/process/stopwatch.hpp"
#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/text.hpp"

namespace qrtool {

template <class T>
LapackSolver<T>::LapackSolver(const LapackLibrary& library) : library_(library) {
  library.find_typed<T>("gels", gels_);
  if constexpr (!is_complex_number<T>) {
    library.find_typed<T>("gelsy", gelsy_);
    library.find_typed<T>("syrk", syrk_);
    library.find_typed<T>("gemm", gemm_);
    library.find_typed<T>("potrf", potrf_);
    library.find_typed<T>("potrs", potrs_);
  }
}

template <class T>
typename LapackSolver<T>::Workspace LapackSolver<T>::workspace(const SystemSize& s) const {
  const int ld = s.ld(), query = -1;
  T for_gels = 0, for_gelsy = 0, a = 0, b = 0;
  int info = 0;
  gels_("N", &s.m, &s.n, &s.p, &a, &ld, &b, &ld, &for_gels, &query, &info);
  if constexpr (!is_complex_number<T>) {
    const T tolerance = 0;
    int rank = 0, pivot = 0;
    gelsy_(&s.m, &s.n, &s.p, &a, &ld, &b, &ld, &pivot, &tolerance, &rank, &for_gelsy, &query,
           &info);
  }
  const auto n = static_cast<std::size_t>(s.n), p = static_cast<std::size_t>(s.p);
  const auto work =
      static_cast<std::size_t>(std::max({real_part(for_gels), real_part(for_gelsy), Real<T>(1)}));
  return {.work = std::vector<T>(std::max(work, n * p)),
          .gram = std::vector<T>(n * n),
          .pivots = std::vector<int>(n)};
}

template <class T>
bool LapackSolver<T>::has_succeeded(const char* function, int info) const {
  if (info < 0)
    throw InternalError(fmt::format("{} of {} returned info {}", function, library_.file, info));
  return info == 0;
}

template <class T>
bool LapackSolver<T>::gels(const SystemSize& s, T* a, T* b, Workspace& w) const {
  const int ld = s.ld(), size = static_cast<int>(w.work.size());
  int info = 0;
  gels_("N", &s.m, &s.n, &s.p, a, &s.m, b, &ld, w.work.data(), &size, &info);
  return has_succeeded("gels", info);
}

template <class T>
bool LapackSolver<T>::gelsy(const SystemSize& s, T* a, T* b, Workspace& w) const
    requires(!is_complex_number<T>) {
  const int ld = s.ld(), size = static_cast<int>(w.work.size());
  const T tolerance = std::numeric_limits<T>::epsilon() * static_cast<T>(s.n);
  int rank = 0, info = 0;
  std::fill(w.pivots.begin(), w.pivots.end(), 0);
  gelsy_(&s.m, &s.n, &s.p, a, &s.m, b, &ld, w.pivots.data(), &tolerance, &rank, w.work.data(),
         &size, &info);
  return has_succeeded("gelsy", info);
}

template <class T>
bool LapackSolver<T>::normal_equations(const SystemSize& s, T* a, T* b, Workspace& w) const
    requires(!is_complex_number<T>) {
  const T one = 1, zero = 0;
  const int ld = s.ld();
  int info = 0;
  syrk_("U", "T", &s.n, &s.m, &one, a, &s.m, &zero, w.gram.data(), &s.n);
  gemm_("T", "N", &s.n, &s.p, &s.m, &one, a, &s.m, b, &ld, &zero, w.work.data(), &s.n);
  potrf_("U", &s.n, w.gram.data(), &s.n, &info);
  if (!has_succeeded("potrf", info)) return false;
  potrs_("U", &s.n, &s.p, w.gram.data(), &s.n, w.work.data(), &s.n, &info);
  for (int j = 0; j < s.p; ++j)
    std::copy_n(w.work.data() + std::ptrdiff_t{j} * s.n, s.n, b + std::ptrdiff_t{j} * ld);
  return has_succeeded("potrs", info);
}

template class LapackSolver<float>;
template class LapackSolver<double>;
template class LapackSolver<std::complex<float>>;
template class LapackSolver<std::complex<double>>;

namespace {

struct MethodText {
  LapackMethod method;
  const char *name, *text;
};
constexpr MethodText methods[] = {
    {LapackMethod::gels, "gels", "assumes full rank, checks nothing"},
    {LapackMethod::gelsy, "gelsy", "finds the rank, checks nothing"},
    {LapackMethod::normal_equations, "normal-equations",
     "A'A x = A'b: error grows with the square of the condition, checks nothing"}};
const MethodText& text_of(LapackMethod method) {
  return *std::find_if(std::begin(methods), std::end(methods),
                       [&](const MethodText& each) { return each.method == method; });
}

/// Complex systems are only solved by gels.
template <class T>
auto function_of(LapackMethod method) {
  if constexpr (is_complex_number<T>)
    return &LapackSolver<T>::gels;
  else
    return method == LapackMethod::gels    ? &LapackSolver<T>::gels
           : method == LapackMethod::gelsy ? &LapackSolver<T>::gelsy
                                           : &LapackSolver<T>::normal_equations;
}

template <class T>
class LapackSystemsRun final : public TimedRun {
 public:
  /// `setup` has the seed of the systems. A ridge is rows of A and b.
  LapackSystemsRun(LapackMethod method, const LapackLibrary& library, const Problem& problem,
                   const BenchSetup& setup)
      : library_(library),
        solver_(library),
        solve_(function_of<T>(method)),
        problem_(problem),
        system_(systems_of(problem, setup.task, setup.ridge)),
        is_shared_(setup.task == BenchTask::solve_shared),
        threads_(setup.limits.threads),
        size_{
            .m = static_cast<int>(system_.packed_rows()), .n = static_cast<int>(problem.n), .p = 1},
        chunk_(systems_at_once(with_rows(problem, size_.m), setup.task, setup.limits)) {
    // Each worker factors the shared A for its share of the right sides, which does not pay for a
    // few of them.
    const index_t enough = is_shared_ ? threads_ * problem_.n : threads_;
    workers_ = library.workers(problem.count >= enough, threads_);
    const index_t matrices = is_shared_ ? 1 : chunk_;
    a_ = Batch<T>(matrices, problem.n, size_.m);
    a_work_ = Batch<T>(is_shared_ ? workers_ : matrices, problem.n, size_.m);
    b_work_ = Batch<T>(chunk_, 1, size_.ld());
    const BenchData<T> a(matrices, problem.m, problem.n, setup.seed, threads_);
    parallel_for(matrices, threads_, [&](index_t i, int) { store(a.view()[i], i); });
    b_.emplace(chunk_, 1, problem.m, seed_of_b(setup.seed), threads_);
    const index_t p = is_shared_ ? (chunk_ + workers_ - 1) / workers_ : 1;
    for (int i = 0; i < workers_; ++i)
      workspaces_.push_back(solver_.workspace({size_.m, size_.n, static_cast<int>(p)}));
  }

  std::string variant() const override { return library_.file; }
  /// Errors are not measured.
  Accuracy accuracy() const override { return {.matrices = problem_.count, .failed = failed_}; }

  RunSeconds run() override {
    library_.share_threads(workers_, threads_);
    failed_ = 0;
    RunSeconds total;
    for (index_t first = 0; first < problem_.count; first += chunk_) {
      const index_t sides = std::min(chunk_, problem_.count - first);
      const index_t systems = is_shared_ ? std::min<index_t>(workers_, sides) : sides;
      restore(systems, sides);  // not counted as LAPACK's time
      const Stopwatch watch;
      parallel_for(systems, workers_, [&](index_t i, int worker) {
        const index_t begin = i * sides / systems, end = (i + 1) * sides / systems;
        const bool has_x = (solver_.*solve_)({size_.m, size_.n, static_cast<int>(end - begin)},
                                             a_work_.view()[i].data, b_work_.view()[begin].data,
                                             workspaces_[static_cast<std::size_t>(worker)]);
        if (!has_x) failed_ += end - begin;
      });
      total.factor += watch.seconds();
    }
    return total;
  }

 private:
  /// Stores matrix i by columns, with the rows of a ridge.
  void store(MatrixView<const T> a, index_t i) {
    const MatrixView<T> columns = a_.view()[i];
    store_by_columns(a, columns);
    for (index_t row = a.rows; row < columns.cols; ++row)
      columns(row - a.rows, row) = static_cast<Real<T>>(system_.penalty(row - a.rows));
  }

  /// Copies A and B, which the functions overwrite.
  void restore(index_t systems, index_t sides) {
    const index_t entries = index_t{size_.m} * size_.n;
    parallel_for(systems, threads_, [&](index_t i, int) {
      std::copy_n(a_.view()[is_shared_ ? 0 : i].data, entries, a_work_.view()[i].data);
    });
    for (index_t s = 0; s < sides; ++s) {
      T* const b = std::copy_n(b_->view()[s].data, problem_.m, b_work_.view()[s].data);
      std::fill_n(b, size_.m - problem_.m, T(0));
    }
  }

  const LapackLibrary& library_;
  LapackSolver<T> solver_;
  decltype(function_of<T>(LapackMethod::gels)) solve_;
  Problem problem_;
  SolveProblem system_;
  bool is_shared_;
  int threads_;
  SystemSize size_;
  index_t chunk_;
  std::atomic<index_t> failed_ = 0;
  int workers_ = 1;
  Batch<T> a_, a_work_, b_work_;
  std::optional<BenchData<T>> b_;
  std::vector<typename LapackSolver<T>::Workspace> workspaces_;
};

class LapackSystems final : public Contestant {
 public:
  LapackSystems(LapackMethod method, const BenchSetup& setup, const std::string& file)
      : method_(method),
        setup_(setup),
        library_(load_lapack(file, {"gels", "gelsy", "syrk", "gemm", "potrf", "potrs"})) {}

  std::string name() const override { return text_of(method_).name; }

  std::string text() const override { return library_.text(text_of(method_).text); }

  std::unique_ptr<TimedRun> prepare(const Problem& p, const MatrixRequest& request, int) override {
    const index_t rows = systems_of(p, setup_.task, setup_.ridge).packed_rows();
    library_.require("least squares", std::max(rows, p.n));
    if (method_ == LapackMethod::normal_equations && rows < p.n)
      throw UsageError("fewer rows than columns");
    setup_.seed = request.seed;
    return with_type(p.type, [&](auto zero) -> std::unique_ptr<TimedRun> {
      return std::make_unique<LapackSystemsRun<decltype(zero)>>(method_, library_, p, setup_);
    });
  }

 private:
  LapackMethod method_;
  BenchSetup setup_;
  LapackLibrary library_;
};

}  // namespace

std::unique_ptr<Contestant> make_lapack_solver(LapackMethod method, const BenchSetup& setup,
                                               std::string_view file) {
  return std::make_unique<LapackSystems>(method, setup, std::string(file));
}

}  // namespace qrtool
