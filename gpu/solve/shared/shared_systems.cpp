// SPDX-License-Identifier: Apache-2.0
// shared_systems.cpp: sub-chunks of right sides through a device, and what the host makes of their
// errors.
#include "gpu/solve/shared/shared_systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "gpu/pipeline/checked_copies.hpp"
#include "gpu/pipeline/flights.hpp"
#include "gpu/solve/parts/sample.hpp"
#include "gpu/solve/parts/tuning.hpp"
#include "gpu/solve/shared/shared_matrix.hpp"

namespace qrtool {
namespace {

/// Some neighbours of a block.
struct SharedPart {
  index_t first = 0, count = 0;
};

/// A part of a block from upload to download.
struct SharedFlight {
  SharedPart part;
  std::optional<SharedBuffers> buffers;
  CheckedCopies copies;
  SharedEvents events;
  std::vector<SolutionErrors> errors;
  std::vector<FactorFindings> findings;
  std::vector<int> rows_used;
};

template <class T>
class SharedOnDevice final : public SharedDevice<T>, private FlightWork<SharedFlight> {
 public:
  SharedOnDevice(FactorEngine& engine, const SolveProblem& problem, MatrixView<const T> a,
                 const SharedFactors& factors, SidesLayout layout)
      : engine_(engine),
        problem_(problem),
        a_(a),
        setup_(engine, problem, factors, layout),
        pool_(*engine.session.context),
        sample_(problem, /*threads=*/2) {}

  std::vector<index_t> run(const RightSideBlock<T>& block) override;
  double seconds() const override { return seconds_; }

 private:
  SubChunks cut(index_t count) const override;
  /// Parts end where a matrix of columns ends.
  index_t part_size(index_t first, index_t most) const override {
    if (setup_.layout == SidesLayout::rows) return most;
    const index_t group = block_->b_places.group;
    return std::min(most, group - first % group);
  }
  void begin(int set, index_t first, index_t count) override;
  void launch(int set) override;
  void collect(int set) override;
  void free_buffers() override { pool_.clear(); }
  std::string item() const override { return fmt::format("right side of {} numbers", problem_.m); }
  std::string place(index_t number) const override {
    return fmt::format("right side {} of the chunk", number);
  }

  void download(SharedFlight& flight);
  void judge(SharedFlight& flight);

  /// The vectors of a part as one matrix: rows of `length` neighbours, or `length` rows of the
  /// part's right sides.
  template <class Number>
  BatchView<Number> view_of(const SharedPart& part, Number* data, const VectorPlaces& places,
                            index_t length) const {
    Number* first = data + places.start(part.first);
    const index_t all = part.count * length;
    if (setup_.layout == SidesLayout::rows)
      return {first, 1, part.count, length, places.group_stride, all};
    return {first, 1, length, part.count, places.step, all};
  }

  FactorEngine& engine_;
  const SolveProblem& problem_;
  MatrixView<const T> a_;
  SharedSetup setup_;
  SystemPool pool_;
  SystemSample<T> sample_;
  std::vector<index_t> refused_;
  const RightSideBlock<T>* block_ = nullptr;  // the present one
  double seconds_ = 0;
};

template <class T>
std::vector<index_t> SharedOnDevice<T>::run(const RightSideBlock<T>& block) {
  refused_.clear();
  block_ = &block;
  run_in_parts(engine_, *this, block.count);
  return std::move(refused_);
}

template <class T>
SubChunks SharedOnDevice<T>::cut(index_t count) const {
  const Problem one{.count = count, .m = problem_.m, .n = 1, .type = problem_.type};
  const auto bytes = setup_.bytes();
  return cut_chunk(one, {.io = {bytes.begin(), bytes.end()}, .work = {}, .check = {}},
                   engine_.info.limits, count, tuning::solve_sub_chunk_bytes);
}

template <class T>
void SharedOnDevice<T>::begin(int set, index_t first, index_t count) {
  SharedFlight& flight = flight_of(set);
  flight = {};
  flight.part = {first, count};
  flight.buffers.emplace(pool_, setup_, count, set);
  const auto b = view_of(flight.part, block_->b, block_->b_places, problem_.m);
  const auto x = view_of(flight.part, block_->x, block_->x_places, problem_.n);
  const auto sums = [&](BatchView<const T> of, std::size_t entry) {
    return pool_.grown({set, entry}, CheckedCopies::layout_of(of).bytes());
  };
  flight.copies.send<T>("b", flight.buffers->b, b, sums(b, SharedSetup::entries));
  flight.copies.receive<T>("x", flight.buffers->x, x, sums(x, SharedSetup::entries + 1));
  flight.copies.upload(engine_);
}

template <class T>
void SharedOnDevice<T>::launch(int set) {
  SharedFlight& flight = flight_of(set);
  flight.copies.await_uploads(engine_);
  flight.events = enqueue_shared(setup_, *flight.buffers, flight.part.count);
  flight.copies.sum_sent(engine_);
  flight.copies.sum_received(engine_);
  flight.copies.end_kernels(engine_);
  download(flight);
}

template <class T>
void SharedOnDevice<T>::download(SharedFlight& flight) {
  const SharedPart& part = flight.part;
  flight.copies.download(engine_);
  if (problem_.wants_se && block_->se != nullptr)
    flight.copies.read(engine_, flight.buffers->se,
                       view_of(part, block_->se, block_->x_places, problem_.n));
  flight.copies.read(engine_, flight.buffers->errors, flight.errors, part.count);
  if (setup_.is_masked) {
    flight.copies.read(engine_, flight.buffers->findings, flight.findings, part.count);
    flight.copies.read(engine_, flight.buffers->rows_used, flight.rows_used, part.count);
  }
  flight.copies.end_download(engine_);
}

template <class T>
void SharedOnDevice<T>::collect(int set) {
  SharedFlight& flight = flight_of(set);
  flight.copies.wait();
  seconds_ += seconds_between(flight.events.begun, flight.events.checked);
  flight.copies.sum_on_host(/*is_sent=*/true, 1);
  flight.copies.sum_on_host(/*is_sent=*/false, 1);
  flight.copies.compare(engine_.info, [&](index_t) {
    return fmt::format("right sides {} to {} of the chunk", flight.part.first,
                       flight.part.first + flight.part.count - 1);
  });
  judge(flight);
}

template <class T>
void SharedOnDevice<T>::judge(SharedFlight& flight) {
  std::vector<int>& left_out = flight.rows_used;
  for (int& rows : left_out) rows = static_cast<int>(problem_.m) - rows;
  const BatchView<const T> same_a{a_.data, block_->count, a_.rows, a_.cols, a_.ld, /*stride=*/0};
  const SystemFindings found{
      .first = flight.part.first,
      .count = flight.part.count,
      .sides = 1,
      .errors = flight.errors,
      .factors = flight.findings,
      .left_out = left_out,
      .least_norms = {},
      .freedom = setup_.is_masked ? static_cast<double>(problem_.m - problem_.n) : setup_.freedom,
      .has_ridge_rows = false};
  const std::vector<index_t> refused = sample_.judge(found, same_a, *block_);
  refused_.insert(refused_.end(), refused.begin(), refused.end());
}

}  // namespace

template <class T>
std::unique_ptr<SharedDevice<T>> make_shared_device(OpenclBackend& backend,
                                                    const SolveProblem& problem,
                                                    MatrixView<const T> a,
                                                    const SharedFactors& factors,
                                                    SidesLayout layout) {
  return std::make_unique<SharedOnDevice<T>>(backend.engine(), problem, a, factors, layout);
}
template std::unique_ptr<SharedDevice<float>> make_shared_device(OpenclBackend&,
                                                                 const SolveProblem&,
                                                                 MatrixView<const float>,
                                                                 const SharedFactors&, SidesLayout);
template std::unique_ptr<SharedDevice<double>> make_shared_device(OpenclBackend&,
                                                                  const SolveProblem&,
                                                                  MatrixView<const double>,
                                                                  const SharedFactors&,
                                                                  SidesLayout);

}  // namespace qrtool
