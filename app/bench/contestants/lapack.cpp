// SPDX-License-Identifier: Apache-2.0
// lapack.cpp: times LAPACK's geqrf and orgqr (complex: ungqr), with one matrix per thread, or with
// all threads of the library on one matrix.
#include "app/bench/contestants/lapack.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "app/bench/contestants/lapack_library.hpp"
#include "app/bench/timing/data.hpp"
#include "app/process/stopwatch.hpp"
#include "core/error.hpp"
#include "core/machine/parallel.hpp"
#include "core/matrix/complex_arithmetic.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

template <class T>
using Geqrf = void (*)(const int* m, const int* n, T* a, const int* lda, T* tau, T* work,
                       const int* lwork, int* info);
template <class T>
using Orgqr = void (*)(const int* m, const int* n, const int* k, T* a, const int* lda, const T* tau,
                       T* work, const int* lwork, int* info);

/// The bytes of a chunk, so that a batch of any size needs bounded memory.
constexpr std::size_t chunk_target_bytes = std::size_t{64} << 20;

template <class T>
class LapackRun final : public TimedRun {
 public:
  LapackRun(const LapackLibrary& library, const Problem& problem, const Limits& limits,
            const MatrixRequest& request)
      : library_(library),
        problem_(problem),
        m_(static_cast<int>(problem.m)),
        n_(static_cast<int>(problem.n)),
        k_(static_cast<int>(problem.k())),
        chunk_(chunk_matrices(problem, limits)),
        input_(chunk_, problem.n, problem.m),
        work_(chunk_, problem.n, problem.m),
        r_(chunk_, problem.n, problem.k()) {
    library.find_typed<T>("geqrf", geqrf_);
    library.find_typed<T>(is_complex_number<T> ? "ungqr" : "orgqr", orgqr_);
    threads_ = limits.threads;
    workers_ = library.workers(problem.count >= threads_, threads_);
    const BenchData<T> data(chunk_, problem.m, problem.n, request, limits.threads);
    parallel_for(chunk_, limits.threads,
                 [&](index_t b, int) { store_by_columns(data.view()[b], input_.view()[b]); });
    tau_.assign(static_cast<std::size_t>(workers_ * k_), T(0));
    scratch_.assign(static_cast<std::size_t>(workers_) * scratch_size(), T(0));
  }

  std::string variant() const override { return library_.file; }

  RunSeconds run() override {
    library_.share_threads(workers_, threads_);
    RunSeconds total;
    for (index_t first = 0; first < problem_.count; first += chunk_) {
      const index_t matrices = std::min(chunk_, problem_.count - first);
      // geqrf overwrites its input. Copying it again is not counted as LAPACK's time.
      std::copy_n(input_.view().data, matrices * input_.view().stride, work_.view().data);
      const Stopwatch watch;
      parallel_for(matrices, workers_, [&](index_t b, int worker) { factor(b, worker); });
      total.factor += watch.seconds();
    }
    return total;
  }

 private:
  /// Returns memory of the input, the work array and R.
  static std::size_t bytes_per_matrix(const Problem& p) {
    return 2 * p.input_bytes() + size_of(p.type) * static_cast<std::size_t>(p.k() * p.n);
  }

  static index_t chunk_matrices(const Problem& p, const Limits& limits) {
    // While the input is made, BenchData holds a second copy.
    const std::size_t bytes = bytes_per_matrix(p) + p.input_bytes();
    if (bytes > limits.host_bytes)
      throw LimitError(fmt::format("one matrix needs {} of host memory; the limit is {}",
                                   format_bytes(bytes), format_bytes(limits.host_bytes)));
    const std::size_t room = std::min(limits.host_bytes, chunk_target_bytes);
    return std::clamp<index_t>(static_cast<index_t>(room / bytes), 1, p.count);
  }

  std::size_t scratch_size() {
    const int query = -1;
    int info = 0;
    T for_r = 0, for_q = 0;
    geqrf_(&m_, &n_, work_.view().data, &m_, tau_.data(), &for_r, &query, &info);
    orgqr_(&m_, &k_, &k_, work_.view().data, &m_, tau_.data(), &for_q, &query, &info);
    const auto entries = [](T size) { return static_cast<int>(real_part(size)); };
    scratch_per_worker_ = std::max({entries(for_r), entries(for_q), n_, 1});
    return static_cast<std::size_t>(scratch_per_worker_);
  }

  /// Factors A into V\R and tau, copies R, and then replaces V by Q.
  void factor(index_t b, int worker) {
    T* a = work_.view()[b].data;
    T* tau = tau_.data() + std::ptrdiff_t{worker} * k_;
    T* scratch = scratch_.data() + std::ptrdiff_t{worker} * scratch_per_worker_;
    int info = 0;
    geqrf_(&m_, &n_, a, &m_, tau, scratch, &scratch_per_worker_, &info);
    for (int j = 0; j < n_; ++j)
      std::copy_n(a + std::ptrdiff_t{j} * m_, std::min(j + 1, k_), r_.view()[b].data + j * k_);
    if (problem_.wants_q())
      orgqr_(&m_, &k_, &k_, a, &m_, tau, scratch, &scratch_per_worker_, &info);
    if (info != 0) throw InternalError(fmt::format("{} returned info {}", library_.file, info));
  }

  const LapackLibrary& library_;
  Geqrf<T> geqrf_ = nullptr;
  Orgqr<T> orgqr_ = nullptr;
  Problem problem_;
  int m_, n_, k_;
  index_t chunk_;
  Batch<T> input_, work_, r_;
  int threads_ = 1, workers_ = 1, scratch_per_worker_ = 1;
  std::vector<T> tau_, scratch_;
};

class LapackContestant final : public Contestant {
 public:
  LapackContestant(const Limits& limits, const std::string& file)
      : library_(load_lapack(file, {"geqrf", "orgqr"})), limits_(limits) {}

  std::string name() const override { return "lapack"; }

  std::string text() const override {
    return library_.text(library_.set_own_threads != nullptr
                             ? "one matrix per thread, or all threads on one"
                             : "one matrix per thread");
  }

  std::unique_ptr<TimedRun> prepare(const Problem& p, const MatrixRequest& request, int) override {
    library_.require("geqrf and orgqr", std::max(p.m, p.n));
    return with_type(p.type, [&](auto zero) -> std::unique_ptr<TimedRun> {
      return std::make_unique<LapackRun<decltype(zero)>>(library_, p, limits_, request);
    });
  }

 private:
  LapackLibrary library_;
  Limits limits_;
};

}  // namespace

std::unique_ptr<Contestant> make_lapack(const Limits& limits, std::string_view file) {
  return std::make_unique<LapackContestant>(limits, std::string(file));
}

}  // namespace qrtool
