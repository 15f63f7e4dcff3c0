// SPDX-License-Identifier: Apache-2.0
// chunk_run.cpp: the steps of a part, and what the host makes of its results.
#include "gpu/pipeline/chunk_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/machine/clock.hpp"
#include "core/machine/parallel.hpp"
#include "core/measure/magnitude.hpp"
#include "gpu/model/tuning.hpp"
#include "gpu/pipeline/tuning.hpp"
#include "gpu/registry.hpp"

namespace qrtool {

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
      threads_(goes_through_ring_ ? engine.info.limits.threads : std::clamp(plan.threads, 1, 2)),
      host_check_(plan.problem) {}

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
  flight.buffers = std::make_unique<DeviceBuffers>(
      engine_.pool.get(plan_.problem, plan_.params, bytes_, count, set));
  const auto sums = std::make_shared<DeviceSums>(DeviceSums{sums_, flight.buffers->sums, count});
  const auto add = [&](Summed which, BatchView<const Word> items, Word* to) {
    if (sums_.words(which) > 0)
      flight.copies.add({summed_names[static_cast<std::size_t>(which)],
                         buffer_of(*flight.buffers, which), items, to, sums, which});
  };
  add(Summed::a, words_of(a_.slice(first, count)), nullptr);
  for (const Summed which : summed_factors) {
    const BatchView<Word> to = words_of(place_of(which).slice(first, count));
    add(which, to, to.data);
  }
  if (is_checked()) {
    const BatchView<Word> to = words_of(packed(flight.errors.data(), count, 1, 1));
    add(Summed::errors, to, to.data);
  }
  flight.copies.upload(engine_, ring_threads());
  flight.copies.sum_on_host(/*is_sent=*/true, sum_threads());  // during the upload
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
  flight.copies.await_uploads(engine_);
  engine_.run(variant_, buffers, is_checked(), flight.run);
  flight.copies.end_kernels(engine_);
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
  flight.copies.download(engine_, ring_threads());
  flight.copies.end_download(engine_);
}

template <class T>
void ChunkRun<T>::collect(int set) {
  MatrixFlight& flight = flight_of(set);
  if (goes_through_ring_) download(flight);
  flight.copies.wait();
  if (!flight.run.routes.empty()) flight.run.routed->wait();
  seconds_.upload += flight.copies.upload_seconds();
  seconds_.download += flight.copies.download_seconds();
  seconds_.factor += seconds_between(flight.run.begun, flight.run.factored);
  if (is_checked()) seconds_.check += seconds_between(flight.run.factored, flight.run.checked);

  const auto start = Clock::now();
  refuse_denormals(flight);
  flight.copies.sum_on_host(/*is_sent=*/false, sum_threads());
  flight.copies.compare(engine_.info, [&](index_t i) { return place(flight.first + i); });
  judge_all(flight);
  seconds_.check += seconds_since(start);
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

/// Judges the matrices by the device's measurements, or without any where nothing is checked.
template <class T>
void ChunkRun<T>::judge_all(const MatrixFlight& flight) {
  if (is_checked()) {
    for (index_t i = 0; i < flight.count; ++i)
      report_[flight.first + i] = judge_device(plan_.problem, flight.errors[i]);
    compare_samples(flight);
  } else {
    const auto bytes = plan_.problem.input_bytes() * static_cast<std::size_t>(flight.count);
    for_items(flight.count, bytes, threads_, [&](index_t i) {
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
  const bool is_sampled = host_check_.can_measure() && !plan_.is_of_part;
  for (index_t i = 0; i < flight.count && is_sampled;) {
    const index_t b = flight.first + i;
    const MatrixReport measured = host_check_.measure(a_[b], out_, b);
    const bool differs = measured.status != report_[b].status || measured.scale != report_[b].scale;
    if (differs) report_[b] = measured;
    if (differs && step > 1) {
      host_check_.distrust();
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
