// SPDX-License-Identifier: Apache-2.0
// shared_systems.cpp: sub-chunks of right sides through a device, and what the host makes of their
// errors.
#include "gpu/solve/shared/shared_systems.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <span>
#include <vector>

#include "core/error.hpp"
#include "core/measure/checksum.hpp"
#include "core/solve/backward_error.hpp"
#include "gpu/check/device_sums.hpp"
#include "gpu/host/copies.hpp"
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

template <class T>
class SharedOnDevice final : public SharedDevice<T> {
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
  struct Flight {
    SharedPart part;
    std::optional<SharedBuffers> buffers;
    Buffer sums_of_b, sums_of_x;
    SharedEvents events;
    std::vector<Event> uploaded, downloads;
    std::vector<SolutionErrors> errors;
    std::vector<FactorFindings> findings;
    std::vector<int> rows_used;
    std::vector<std::uint64_t> b_sums, x_sums;  // by the device
  };

  /// The parts of one block.
  class Parts final : public FlightWork<Flight> {
   public:
    Parts(SharedOnDevice& all, const RightSideBlock<T>& block) : all_(all), block_(block) {}

    SubChunks cut(index_t count) const override { return all_.cut(count); }
    /// Parts end where a matrix of columns ends.
    index_t part_size(index_t first, index_t most) const override {
      if (all_.setup_.layout == SidesLayout::rows) return most;
      const index_t group = block_.b_places.group;
      return std::min(most, group - first % group);
    }
    void begin(int set, index_t first, index_t count) override {
      Flight& flight = this->flight_of(set);
      flight = {};
      flight.part = {first, count};
      all_.upload(block_, flight, set);
    }
    void launch(int set) override { all_.launch(block_, this->flight_of(set), set); }
    void collect(int set) override { all_.collect(block_, this->flight_of(set)); }
    void free_buffers() override { all_.pool_.clear(); }
    std::string item() const override {
      return fmt::format("right side of {} numbers", all_.problem_.m);
    }
    std::string place(index_t number) const override {
      return fmt::format("right side {} of the chunk", number);
    }

   private:
    SharedOnDevice& all_;
    const RightSideBlock<T>& block_;
  };

  SubChunks cut(index_t count) const;
  void upload(const RightSideBlock<T>& block, Flight& flight, int set);
  void launch(const RightSideBlock<T>& block, Flight& flight, int set);
  void enqueue_sums_of(Flight& flight, int set);
  void download(const RightSideBlock<T>& block, Flight& flight);
  void collect(const RightSideBlock<T>& block, Flight& flight);
  void compare_sums(const RightSideBlock<T>& block, const Flight& flight) const;
  void judge(const RightSideBlock<T>& block, const Flight& flight);

  /// All vectors of a part as one matrix.
  SumLayout sums_of(index_t length, index_t count) const {
    return SumLayout({.m = length, .n = count, .type = problem_.type, .mode = Mode::r});
  }
  /// One matrix: rows of `length` neighbours, or `length` rows of the part's right sides.
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
  double seconds_ = 0;
};

template <class T>
std::vector<index_t> SharedOnDevice<T>::run(const RightSideBlock<T>& block) {
  refused_.clear();
  Parts parts(*this, block);
  run_in_parts(engine_, parts, block.count);
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
void SharedOnDevice<T>::upload(const RightSideBlock<T>& block, Flight& flight, int set) {
  flight.buffers.emplace(pool_, setup_, flight.part.count, set);
  write_batch<T>(*engine_.upload, flight.buffers->b,
                 view_of(flight.part, block.b, block.b_places, problem_.m), flight.uploaded);
  engine_.upload->flush();
}

template <class T>
void SharedOnDevice<T>::launch(const RightSideBlock<T>& block, Flight& flight, int set) {
  engine_.compute->wait_for(flight.uploaded);
  flight.events = enqueue_shared(setup_, *flight.buffers, flight.part.count);
  enqueue_sums_of(flight, set);
  download(block, flight);
}

template <class T>
void SharedOnDevice<T>::enqueue_sums_of(Flight& flight, int set) {
  Launcher launch = engine_.launcher({sum_file, sum_defines(), "checksums"});
  const auto enqueue = [&](index_t length, const Buffer& of, std::size_t entry) {
    const SumLayout layout = sums_of(length, flight.part.count);
    const Buffer sums = pool_.grown({set, entry}, layout.bytes());
    enqueue_sums(layout, Summed::a, of, 1, sums, launch);
    return sums;
  };
  constexpr std::size_t next = SharedSetup::entries;
  flight.sums_of_b = enqueue(problem_.m, flight.buffers->b, next);
  flight.sums_of_x = enqueue(problem_.n, flight.buffers->x, next + 1);
}

template <class T>
void SharedOnDevice<T>::download(const RightSideBlock<T>& block, Flight& flight) {
  const Event summed = engine_.compute->mark();
  engine_.compute->flush();
  engine_.download->wait_for({&summed, 1});
  const auto read = [&](const Buffer& buffer, auto& host, std::size_t count) {
    host.resize(count);
    engine_.download->start_read(buffer, host.data(), {0, count * sizeof(host[0])});
  };
  const SharedPart& part = flight.part;
  const index_t m = problem_.m, n = problem_.n;
  const auto count = static_cast<std::size_t>(part.count);
  read_batch<T>(*engine_.download, flight.buffers->x, view_of(part, block.x, block.x_places, n),
                flight.downloads);
  if (problem_.wants_se && block.se != nullptr)
    read_batch<T>(*engine_.download, flight.buffers->se, view_of(part, block.se, block.x_places, n),
                  flight.downloads);
  read(flight.buffers->errors, flight.errors, count);
  if (setup_.is_masked) {
    read(flight.buffers->findings, flight.findings, count);
    read(flight.buffers->rows_used, flight.rows_used, count);
  }
  read(flight.sums_of_b, flight.b_sums, sums_of(m, part.count).sums_of_matrix());
  read(flight.sums_of_x, flight.x_sums, sums_of(n, part.count).sums_of_matrix());
  flight.downloads.push_back(engine_.download->mark());
  engine_.download->flush();
}

template <class T>
void SharedOnDevice<T>::collect(const RightSideBlock<T>& block, Flight& flight) {
  wait_for_all(flight.downloads);
  seconds_ += seconds_between(flight.events.begun, flight.events.checked);
  compare_sums(block, flight);
  judge(block, flight);
}

/// Errors: DeviceError where b did not arrive, or x did not come back, as it was sent.
template <class T>
void SharedOnDevice<T>::compare_sums(const RightSideBlock<T>& block, const Flight& flight) const {
  const SharedPart& part = flight.part;
  const auto compare = [&](std::span<const std::uint64_t> sums, MatrixView<const T> host,
                           index_t length, const char* what) {
    if (sums_of(length, part.count).checksum(sums, 0, Summed::a) == checksum<T>(host)) return;
    throw DeviceError(
        fmt::format("{}: {} of right sides {} to {} of the chunk was changed by a copy "
                    "(checksums differ)",
                    engine_.info.text(), what, part.first, part.first + part.count - 1),
        "--backend cpu works without this device");
  };
  compare(flight.b_sums, view_of<const T>(part, block.b, block.b_places, problem_.m)[0], problem_.m,
          "b");
  compare(flight.x_sums, view_of<const T>(part, block.x, block.x_places, problem_.n)[0], problem_.n,
          "x");
}

/// Writes the reports. Right sides that the check has not accepted are refused, and so are all of
/// the part where the host comes to another verdict on one of its sample.
template <class T>
void SharedOnDevice<T>::judge(const RightSideBlock<T>& block, const Flight& flight) {
  const double bar = solution_bar(problem_.type, problem_.packed_rows(), problem_.n);
  std::vector<index_t> accepted, refused;
  for (index_t i = 0; i < flight.part.count; ++i) {
    const index_t side = flight.part.first + i;
    const auto from = static_cast<std::size_t>(i), to = static_cast<std::size_t>(side);
    const SolutionErrors& errors = flight.errors[from];
    const bool has_few = setup_.is_masked && flight.rows_used[from] < problem_.least_rows();
    const bool passes = errors.error <= tuning::solve_most_of_bar * bar;
    (passes && !has_few ? accepted : refused).push_back(side);
    SolutionReport& report = block.reports[to] = {};
    report.residual_norm = errors.residual_norm;
    report.backward_error = errors.error;
    report.bar = bar;
    report.freedom = setup_.is_masked ? static_cast<double>(flight.rows_used[from] - problem_.n)
                                      : setup_.freedom;
    report.status = Status::ok;
    if (setup_.is_masked && !block.findings.empty())
      block.findings[to] = {.rank = static_cast<std::int32_t>(problem_.n),
                            .condition = flight.findings[from].condition,
                            .scaled_condition = flight.findings[from].scaled_condition};
  }
  const BatchView<const T> same_a{a_.data, block.count, a_.rows, a_.cols, a_.ld, /*stride=*/0};
  if (!sample_.agrees(same_a, block, /*sides=*/1, accepted)) {
    refused.clear();
    for (index_t i = 0; i < flight.part.count; ++i) refused.push_back(flight.part.first + i);
  }
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
