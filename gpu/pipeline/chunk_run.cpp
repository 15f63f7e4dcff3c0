// SPDX-License-Identifier: Apache-2.0
// chunk_run.cpp: the steps of a part, and what the host makes of its results.
#include "gpu/pipeline/chunk_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>

#include "core/error.hpp"
#include "core/machine/clock.hpp"
#include "core/machine/parallel.hpp"
#include "core/measure/checksum.hpp"
#include "core/measure/magnitude.hpp"
#include "core/text.hpp"
#include "gpu/host/copies.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/pipeline/tuning.hpp"
#include "gpu/registry.hpp"

namespace qrtool {

std::uint64_t checksum_of(const DeviceErrors& errors) {
  const auto words = std::bit_cast<std::array<std::uint32_t, sizeof(errors) / 4>>(errors);
  return checksum(words);
}

void throw_changed(const DeviceInfo& info, Summed which, std::string_view of_matrix) {
  const std::string_view name = summed_names[static_cast<std::size_t>(which)];
  throw DeviceError(
      fmt::format("{}: {}{} {}", info.text(), name, of_matrix,
                  which == Summed::a ? "did not arrive as it was sent (checksums differ)"
                                     : "did not come back as it was sent (checksums differ)"),
      "--backend cpu works without this device");
}

template <class T>
ChunkRun<T>::ChunkRun(FactorEngine& engine, const Plan& plan, const ChunkToFactor<T>& chunk)
    : engine_(engine),
      plan_(plan),
      variant_(gpu_variant(*plan.variant)),
      bytes_(matrix_bytes(variant_, plan.problem)),
      sums_(plan.problem),
      a_(chunk.a),
      out_(chunk.out),
      report_(chunk.report),
      goes_through_ring_(chunk.arrays == ArraysOf::caller && CopyRing::takes(a_) &&
                         CopyRing::takes(out_.q)),
      threads_(goes_through_ring_ ? engine.info.limits.threads : std::clamp(plan.threads, 1, 2)) {
  host_checks_.emplace_back(plan.problem);
}

template <class T>
ChunkSeconds ChunkRun<T>::run() {
  run_in_parts(engine_, *this, a_.count);
  return seconds_;
}

template <class T>
SubChunks ChunkRun<T>::cut(index_t count) const {
  return cut_chunk(plan_.problem, bytes_, engine_.info.limits, count,
                   goes_through_ring_ ? tuning::ring_sub_chunk_bytes : tuning::sub_chunk_bytes);
}

template <class T>
std::string ChunkRun<T>::item() const {
  return fmt::format("{}x{} matrix", plan_.problem.m, plan_.problem.n);
}

template <class T>
std::string ChunkRun<T>::place(index_t number) const {
  return fmt::format("matrix {} of the chunk", number);
}

template <class T>
void ChunkRun<T>::begin(int set, index_t first, index_t count) {
  MatrixFlight& flight = flight_of(set);
  flight = {};
  flight.first = first;
  flight.count = count;
  flight.errors.resize(static_cast<std::size_t>(count));
  flight.sums.resize(static_cast<std::size_t>(count) * sums_.sums_of_matrix());
  flight.buffers = std::make_unique<DeviceBuffers>(
      engine_.pool.get(plan_.problem, plan_.params, bytes_, count, set));
  for (std::vector<std::uint64_t>& sums : flight.host_sums)
    sums.resize(static_cast<std::size_t>(count));
  std::vector<std::uint64_t>& a_sums = flight.sums_by_host(Summed::a);
  const Buffer& buffer = flight.buffers->job.a;
  if (goes_through_ring_) {
    engine_.ring.upload(*engine_.upload, buffer, words_of(a_.slice(first, count)), threads_, a_sums,
                        flight.uploads);
    return;
  }
  write_batch<T>(*engine_.upload, buffer, a_.slice(first, count), flight.uploads);
  engine_.upload->flush();
  // During the upload.
  for_matrices(count,
               [&](index_t i) { a_sums[static_cast<std::size_t>(i)] = sum_of(a_[first + i]); });
}

template <class T>
void ChunkRun<T>::launch(int set) {
  MatrixFlight& flight = flight_of(set);
  const DeviceBuffers& buffers = *flight.buffers;
  if (!is_prepared_) {
    const auto start = Clock::now();
    engine_.prepare(variant_, buffers, is_checked());
    seconds_.kernels += seconds_since(start);
    is_prepared_ = true;
  }
  // A separate marker, because some drivers give no times for a command that waits for another
  // queue.
  engine_.compute->wait_for(flight.uploads);
  engine_.run(variant_, buffers, is_checked(), flight.run);
  flight.summed = engine_.compute->mark();
  engine_.compute->flush();
  // Copies through the ring need the host. They are enqueued when it turns to them, so that they
  // do not come after the kernels of the next part.
  if (!goes_through_ring_) download(flight);
}

template <class T>
const BatchView<T>& ChunkRun<T>::place_of(Summed factor) const {
  const std::array all{&out_.q, &out_.r, &out_.v, &out_.tau};
  return *all[static_cast<std::size_t>(factor) - static_cast<std::size_t>(Summed::q)];
}

template <class T>
void ChunkRun<T>::download(MatrixFlight& flight) {
  const DeviceBuffers& buffers = *flight.buffers;
  engine_.download->wait_for({&flight.summed, 1});
  for (const Summed which : summed_factors) {
    const BatchView<T> place = place_of(which).slice(flight.first, flight.count);
    const Buffer& from = buffer_of(buffers, which);
    if (goes_through_ring_)
      engine_.ring.download(*engine_.download, from, words_of(place), threads_,
                            flight.sums_by_host(which), flight.downloads);
    else
      read_batch<T>(*engine_.download, from, place, flight.downloads);
  }
  engine_.download->start_read(buffers.sums, flight.sums.data(),
                               {0, sizeof(std::uint64_t) * flight.sums.size()});
  engine_.download->start_read(buffers.errors, flight.errors.data(),
                               {0, sizeof(DeviceErrors) * flight.errors.size()},
                               &flight.downloads.emplace_back());
  engine_.download->flush();
}

template <class T>
void ChunkRun<T>::collect(int set) {
  MatrixFlight& flight = flight_of(set);
  if (goes_through_ring_) download(flight);
  wait_for_all(flight.downloads);
  if (!flight.run.routes.empty()) flight.run.routed->wait();
  seconds_.upload += seconds_of(flight.uploads);
  seconds_.download += seconds_of(flight.downloads);
  seconds_.factor += seconds_between(flight.run.begun, flight.run.factored);
  if (is_checked()) seconds_.check += seconds_between(flight.run.factored, flight.run.checked);

  const auto start = Clock::now();
  refuse_denormals(flight);
  if (!goes_through_ring_) sum_factors(flight);
  compare_sums(flight);
  judge_all(flight);
  seconds_.check += seconds_since(start);
}

/// Calls body(i) for `count` matrices: for a caller's arrays on all threads, in a pipeline on at
/// most two. There one thread adds words more slowly than the device takes them, and more than two
/// take cores and memory from the stages that read and write, which work at the same time and are
/// slower (gpu/NOTES.md).
template <class T>
template <class Body>
void ChunkRun<T>::for_matrices(index_t count, Body body) const {
  for_items(count, plan_.problem.input_bytes() * static_cast<std::size_t>(count), threads_, body);
}

/// By all threads where there is one matrix: nothing is read or written at the same time.
template <class T>
std::uint64_t ChunkRun<T>::sum_of(MatrixView<const T> matrix) const {
  return checksum<T>(matrix, 0, a_.count == 1 ? engine_.info.limits.threads : 1);
}

template <class T>
void ChunkRun<T>::sum_factors(MatrixFlight& flight) const {
  for_matrices(flight.count, [&](index_t i) {
    for (const Summed which : summed_factors)
      if (sums_.words(which) > 0)
        flight.sums_by_host(which)[static_cast<std::size_t>(i)] =
            sum_of(place_of(which)[flight.first + i]);
  });
}

/// Errors: DeviceError where a matrix did not arrive, or did not come back, as it was sent.
template <class T>
void ChunkRun<T>::compare_sums(MatrixFlight& flight) const {
  for (index_t i = 0; i < flight.count; ++i) {
    const auto compare = [&](Summed which) {
      if (sums_.words(which) > 0)
        compare_with_device(flight, i, which,
                            flight.sums_by_host(which)[static_cast<std::size_t>(i)]);
    };
    compare(Summed::a);
    for (const Summed which : summed_factors) compare(which);
    if (!is_checked()) continue;
    compare_with_device(flight, i, Summed::errors,
                        checksum_of(flight.errors[static_cast<std::size_t>(i)]));
  }
}

template <class T>
void ChunkRun<T>::compare_with_device(const MatrixFlight& flight, index_t i, Summed which,
                                      std::uint64_t sum_of_host) const {
  if (sums_.checksum(flight.sums, i, which) == sum_of_host) return;
  throw_changed(engine_.info, which, fmt::format(" of matrix {} of the chunk", flight.first + i));
}

/// A device that takes float32 numbers below 2^-126 as 0 reads other matrices than those that it
/// was sent, and its check reads the same ones. Errors: DeviceError where this changes a matrix by
/// more than a rounding error.
template <class T>
void ChunkRun<T>::refuse_denormals(const MatrixFlight& flight) const {
  constexpr int least_exponent = -100;  // 2^-126 below 2^-26 of the largest entry
  if (sizeof(Real<T>) == 8 || engine_.info.has_denormals) return;
  for (index_t i = flight.first; i < flight.first + flight.count; ++i) {
    const Magnitude magnitude = magnitude_of(MatrixView<const T>(a_[i]));
    if (!magnitude.finite || magnitude.largest == 0 || magnitude.scale() >= least_exponent)
      continue;
    throw DeviceError(
        fmt::format("{} takes numbers below 2^-126 as 0, and the largest entry of matrix {} of the "
                    "chunk is below 2^{}",
                    engine_.info.text(), i, magnitude.scale()),
        "--backend cpu works without this device");
  }
}

/// Judges the matrices by the device's measurements, by the host's where the device has no float64,
/// or without any where nothing is checked.
template <class T>
void ChunkRun<T>::judge_all(const MatrixFlight& flight) {
  if (is_checked()) {
    for (index_t i = 0; i < flight.count; ++i)
      report_[flight.first + i] = judge_device(plan_.problem, flight.errors[i]);
    compare_samples(flight);
  } else if (is_checked_by_host()) {
    const int threads = std::max(plan_.threads, 1);
    while (std::ssize(host_checks_) < threads) host_checks_.emplace_back(plan_.problem);
    parallel_for(flight.count, threads, [&](index_t i, int thread) {
      const index_t b = flight.first + i;
      report_[b] = host_checks_[static_cast<std::size_t>(thread)].measure(a_[b], out_, b);
    });
  } else {
    for_matrices(flight.count, [&](index_t i) {
      report_[flight.first + i] =
          look_at(plan_.problem, a_[flight.first + i], out_, flight.first + i);
    });
  }
  for (std::size_t i = 0; i < flight.run.routes.size(); ++i)
    report_[static_cast<std::size_t>(flight.first) + i].route =
        static_cast<Route>(flight.run.routes[i]);
}

/// If the host's second measurement of a sampled matrix gives a different verdict, the device is
/// not trusted: the host then measures every matrix of the sub-chunk, however many they are, and
/// its measurements are used.
template <class T>
void ChunkRun<T>::compare_samples(const MatrixFlight& flight) {
  index_t step = tuning::host_sample_step;
  const bool is_sampled = host_checks_.front().can_measure() && !plan_.is_of_part;
  for (index_t i = 0; i < flight.count && is_sampled;) {
    const index_t b = flight.first + i;
    const MatrixReport measured = host_checks_.front().measure(a_[b], out_, b);
    const bool differs = measured.status != report_[b].status || measured.scale != report_[b].scale;
    if (differs) report_[b] = measured;
    if (differs && step > 1) {
      host_checks_.front().distrust();
      step = 1;
      i = 0;
      continue;
    }
    // Every step-th matrix, and the last one.
    i = i + step < flight.count || i == flight.count - 1 ? i + step : flight.count - 1;
  }
}

template class ChunkRun<float>;
template class ChunkRun<double>;
template class ChunkRun<std::complex<float>>;
template class ChunkRun<std::complex<double>>;

}  // namespace qrtool
