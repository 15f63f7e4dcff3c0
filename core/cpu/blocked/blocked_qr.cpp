// SPDX-License-Identifier: Apache-2.0
// blocked_qr.cpp: chooses the kernels for this processor and the threads that share a matrix.
#include "core/cpu/blocked/blocked_qr.hpp"

#include <omp.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <thread>

#include "core/cpu/batched/kernel_call.hpp"
#include "core/machine/host.hpp"
#include "core/machine/openmp.hpp"
#include "core/simd/instruction_sets.hpp"

namespace qrtool {
namespace {

/// Returns the number of threads that get work, since each takes whole strips of 32 columns.
template <class T>
int useful_threads(const Problem& p, int threads) {
  if (is_complex_number<T>) return 1;
  const index_t strips = (std::max(p.n, p.q_cols()) + 31) / 32;
  return static_cast<int>(std::min<index_t>(std::min(threads, machine_cores()), strips));
}

/// Lets threads wait until a panel may be read. Panels become readable one after another.
class Gate {
 public:
  static void publish(void* self, std::int64_t p) {
    auto& ready = static_cast<Gate*>(self)->ready_;
    ready.store(p + 1, std::memory_order_release);
    ready.notify_all();
  }
  /// Spins many times before it sleeps, because waking up takes long. This saves a 512x512 matrix
  /// of float32 on two threads 0.3 of 4.29 ms, and 0.12 of 2.58 ms if only R is formed.
  static void wait_for(void* self, std::int64_t p) {
    auto& ready = static_cast<Gate*>(self)->ready_;
    for (int looks = 0; looks < most_looks; ++looks) {
      if (ready.load(std::memory_order_acquire) > p) return;
      std::this_thread::yield();
    }
    for (std::int64_t seen = ready.load(std::memory_order_acquire); seen <= p;
         seen = ready.load(std::memory_order_acquire))
      ready.wait(seen, std::memory_order_acquire);
  }

 private:
  static constexpr int most_looks = 2000;  // about 0.5 ms

  std::atomic<std::int64_t> ready_ = 0;
};

/// Calls work(worker, size) on `threads` threads, or on fewer if the system does not give more. No
/// call begins before all threads exist, since they wait for each other. Returns their number. They
/// are threads of OpenMP, because the threads of an earlier OpenMP loop still spin and would
/// compete with any others.
template <class Work>
int run_team(int threads, Work work) {
  int size = 1;
  // The threads are also needed inside a parallel loop over matrices.
  if (threads > 1 && omp_get_max_active_levels() < 2) omp_set_max_active_levels(2);
#pragma omp parallel num_threads(threads_for_region(threads))
  {
#pragma omp single
    size = omp_get_num_threads();
    work(omp_get_thread_num(), size);
  }
  return size;
}

}  // namespace

std::span<const blocked::Kernels* const> blocked_kernels() {
#ifdef QRTOOL_TILE_KERNELS
  if (has_tile_registers()) {
    static constexpr std::array with_tiles{&blocked::amx_kernels,
                                           QRTOOL_EACH_SET(blocked, kernels)};
    return with_tiles;
  }
#endif
  static constexpr std::array all{QRTOOL_EACH_SET(blocked, kernels)};
  return supported(all);
}

const blocked::Kernels& blocked_kernels_for(const Problem& problem) {
  const auto all = blocked_kernels();
  const bool must_skip =
      problem.arithmetic == Arithmetic::strict && all.front()->real.in_float.uses_parts != nullptr;
  return *all[must_skip ? 1 : 0];
}

bool blocked_multiplies_parts(const Problem& problem) {
  if (problem.type != ElementType::float32) return false;
  const auto& routine = routine_of<float>(blocked_kernels_for(problem), problem);
  return routine.uses_parts != nullptr && routine.uses_parts(shape_of(problem));
}

template <class T>
BlockedQr<T>::BlockedQr(const Problem& problem, int most_threads, const blocked::Kernels& kernels)
    : shape_(shape_of(problem)),
      routine_(routine_of<T>(kernels, problem)),
      most_threads_(useful_threads<T>(problem, most_threads)),
      workspace_(allocate_host(routine_.workspace_bytes(shape_, most_threads_))) {}

template <class T>
blocked::Outcome BlockedQr<T>::factor(MatrixView<const T> a, const MatrixFactors<T>& out,
                                      int threads) {
  const blocked::Matrix<Real<T>> matrix{.a = strided(a),
                                        .q = strided(out.q),
                                        .r = strided(out.r),
                                        .v = strided(out.v),
                                        .tau = strided(out.tau)};
  blocked::Outcome of_gram;
  if (routine_.factor_gram != nullptr &&
      routine_.factor_gram(shape_, matrix, workspace_.get(), of_gram))
    return of_gram;
  Gate gate;
  const int size = run_team(std::min(threads, most_threads_), [&](int worker, int team_size) {
    routine_.factor(shape_, matrix, workspace_.get(),
                    {.worker = worker,
                     .size = team_size,
                     .self = &gate,
                     .publish = Gate::publish,
                     .wait_for = Gate::wait_for});
  });
  return routine_.outcome(shape_, workspace_.get(), size);
}

template class BlockedQr<float>;
template class BlockedQr<double>;
template class BlockedQr<std::complex<float>>;
template class BlockedQr<std::complex<double>>;

std::size_t blocked_qr_workspace_bytes(const Problem& p) {
  return with_type(p.type, [&](auto zero) {
    using T = decltype(zero);
    const int threads = useful_threads<T>(p, std::numeric_limits<int>::max());
    return routine_of<T>(blocked_kernels_for(p), p).workspace_bytes(shape_of(p), threads);
  });
}

}  // namespace qrtool
