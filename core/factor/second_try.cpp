// SPDX-License-Identifier: Apache-2.0
// second_try.cpp: finds a way by reflectors, and compares what two ways gave. The second result
// overwrites the first; where it is not better, the first is computed again, since equal inputs
// give equal bits. So a second try needs no memory for a second pair of factors.
#include "core/factor/second_try.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/cpu/cpu_backend.hpp"
#include "core/error.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {
namespace {

/// Returns the largest error in units of its bar, or infinity if an error is NaN or was not
/// measured.
double worst_ratio(Mode mode, const MatrixReport& line) {
  double worst = std::max(line.residual / line.bars.residual, line.lower / line.bars.lower);
  if (mode != Mode::r) worst = std::max(worst, line.orthogonality / line.bars.orthogonality);
  const bool is_known = !std::isnan(line.residual + line.lower) &&
                        (mode == Mode::r || !std::isnan(line.orthogonality));
  return is_known ? worst : std::numeric_limits<double>::infinity();
}

std::size_t matrix_bytes(const Problem& p) {
  return p.input_bytes() + p.output_bytes() + sizeof(MatrixReport);
}

/// The host memory for `count` of the matrices that a plan has in its buffers, with the workspace
/// of another variant.
std::size_t room_beside(const Plan& plan, const Limits& limits, index_t count) {
  // The plan of the whole matrix has counted its parts.
  if (plan.is_of_part) return std::numeric_limits<std::size_t>::max() / 4;
  const std::size_t each = matrix_bytes(plan.problem);
  const std::size_t buffers = each * static_cast<std::size_t>(plan.buffers * plan.chunk_matrices);
  const std::size_t left = limits.host_bytes > buffers ? limits.host_bytes - buffers : 0;
  return left + each * static_cast<std::size_t>(count);
}

/// Whether the factors of the second try are kept; the line then says which they are.
bool keeps_second(const Problem& problem, MatrixReport& second, const MatrixReport& first) {
  const bool is_judged = second.status == Status::ok || second.status == Status::above_bar;
  // Reflectors run in strict arithmetic and were held to its bar.
  if (is_judged && problem.arithmetic == Arithmetic::mixed) judge_again(problem, second);
  if (!is_better(problem.mode, second, first)) return false;
  second.route = Route::reflectors;
  second.tries = 2;
  return true;
}

}  // namespace

bool needs_second_try(const MatrixReport& line) {
  return line.status == Status::above_bar ||
         (line.status == Status::r_overflows && is_by_gram(line.route));
}

bool is_better(Mode mode, const MatrixReport& second, const MatrixReport& first) {
  return worst_ratio(mode, second) < worst_ratio(mode, first);
}

struct Reflectors::Way {
  Backend* backend;
  Plan plan;
};

Reflectors::Reflectors(Backend& backend) : BackendAround(&backend) {}

Reflectors::~Reflectors() = default;

Backend& Reflectors::cpu() {
  if (!cpu_) {
    Limits host;
    host.host_bytes = limits().host_bytes;
    host.threads = limits().threads;
    cpu_ = std::make_unique<CpuBackend>(host);
  }
  return *cpu_;
}

/// The choice depends on the shape and the type, but not on the number of matrices. Only whether
/// there is memory for it depends on `limits`.
std::optional<Plan> Reflectors::plan_on(const Backend& backend, const Plan& plan, index_t count,
                                        const Plan* tried, Limits limits) {
  Problem problem = plan.problem;
  problem.count = 1;
  problem.arithmetic = Arithmetic::strict;
  limits.ranks = 1;
  const auto may_run = [&](const Variant& variant) {
    if (variant.reflectors == nullptr) return false;
    return tried == nullptr || tried->variant != &variant ||
           tried->params != variant.reflectors(tried->problem, limits);
  };
  const Variant* variant = least_costly(problem, backend.variants(), limits, may_run);
  if (variant == nullptr) return std::nullopt;
  problem.count = count;
  try {
    Plan other = make_plan(problem, {variant, 1}, limits, variant->name);
    if (other.by_rows()) return std::nullopt;
    other.params = variant->reflectors(problem, limits);
    other.is_of_part = plan.is_of_part;
    return other;
  } catch (const LimitError&) {
    return std::nullopt;
  }
}

std::optional<Reflectors::Way> Reflectors::way_on(Backend& backend, const Plan& plan, index_t count,
                                                  const Plan* tried) {
  Limits limits = backend.limits();
  limits.host_bytes = room_beside(plan, limits, count);
  std::optional<Plan> other = plan_on(backend, plan, count, tried, limits);
  if (!other) return std::nullopt;
  return Way{&backend, std::move(*other)};
}

std::optional<Plan> Reflectors::other_plan(const Plan& plan) const {
  Limits of_device = backend_.limits();
  of_device.host_bytes = std::numeric_limits<std::size_t>::max() / 4;  // the matrix is not there
  std::optional<Plan> other = plan_on(backend_, plan, 1, &plan, of_device);
  if (!other) return other;
  const Problem& p = plan.problem;
  const std::size_t bytes =
      p.input_bytes() + p.output_bytes() + other->variant->device_workspace_bytes(p);
  if (bytes > of_device.device_bytes) return std::nullopt;
  return other;
}

template <class T>
std::optional<ChunkSeconds> Reflectors::run(const Way& way, BatchView<const T> a,
                                            const Factors<T>& out, std::span<MatrixReport> report) {
  ChunkSeconds seconds;
  try {
    for (index_t first = 0; first < a.count; first += way.plan.chunk_matrices) {
      const index_t count = std::min(way.plan.chunk_matrices, a.count - first);
      seconds += way.backend->factor<T>(
          way.plan, a.slice(first, count), slice(out, first, count),
          report.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)));
    }
  } catch (const LimitError&) {
    return std::nullopt;  // the device has no memory left
  } catch (const DeviceError& error) {
    // It cannot do this; whether it still can do the rest, the rest will show.
    if (trouble_.empty()) trouble_ = error.what();
    return std::nullopt;
  }
  return seconds;
}

template <class T>
std::optional<ChunkSeconds> Reflectors::run(const Plan& plan, const Plan* tried,
                                            BatchView<const T> a, const Factors<T>& out,
                                            std::span<MatrixReport> report) {
  std::optional<ChunkSeconds> seconds;
  if (const std::optional<Way> way = way_on(backend_, plan, a.count, tried))
    seconds = run(*way, a, out, report);
  if (seconds || !is_device()) return seconds;
  if (const std::optional<Way> way = way_on(cpu(), plan, a.count, nullptr))
    seconds = run(*way, a, out, report);
  return seconds;
}

template <class T>
std::optional<ChunkSeconds> Reflectors::factor_otherwise(const Plan& plan, BatchView<const T> a,
                                                         const Factors<T>& out,
                                                         std::span<MatrixReport> report) {
  return run(plan, &plan, a, out, report);
}
template std::optional<ChunkSeconds> Reflectors::factor_otherwise(const Plan&,
                                                                  BatchView<const float>,
                                                                  const Factors<float>&,
                                                                  std::span<MatrixReport>);
template std::optional<ChunkSeconds> Reflectors::factor_otherwise(const Plan&,
                                                                  BatchView<const double>,
                                                                  const Factors<double>&,
                                                                  std::span<MatrixReport>);

template <class T>
ChunkSeconds Reflectors::factor_somehow(const Plan& plan, BatchView<const T> a,
                                        const Factors<T>& out, std::span<MatrixReport> report) {
  const std::optional<ChunkSeconds> seconds = run(plan, nullptr, a, out, report);
  if (!seconds) throw LimitError("there is no memory for reflectors", "raise --memory");
  return *seconds;
}

ChunkSeconds Reflectors::factor_any(const Plan& plan, const AnyChunk& any) {
  return std::visit(
      [&](const auto& chunk) { return factor_somehow(plan, chunk.a, chunk.out, chunk.report); },
      any);
}

/// Factors matrices again that are all above their bar.
template <class T>
ChunkSeconds SecondTry::try_again(const Plan& plan, BatchView<const T> a, const Factors<T>& out,
                                  std::span<MatrixReport> report) {
  const Problem& problem = plan.problem;
  const std::vector<MatrixReport> first(report.begin(), report.end());
  const std::optional<ChunkSeconds> spent = reflectors_.factor_otherwise(plan, a, out, report);
  ChunkSeconds seconds = spent.value_or(ChunkSeconds{});
  for (index_t b = 0; b < a.count; ++b) {
    MatrixReport& line = report[static_cast<std::size_t>(b)];
    if (!spent || !keeps_second(problem, line, first[static_cast<std::size_t>(b)]))
      seconds += backend_.factor<T>(plan, a.slice(b, 1), slice(out, b, 1), {&line, 1});
  }
  return seconds;
}

template <class T>
ChunkSeconds SecondTry::try_all_again(const Plan& plan, const ChunkToFactor<T>& chunk) {
  const std::span<MatrixReport> report = chunk.report;
  ChunkSeconds seconds;
  // Neighbours that are above their bar are factored together.
  auto next = std::find_if(report.begin(), report.end(), needs_second_try);
  while (next != report.end()) {
    const auto end = std::find_if_not(next, report.end(), needs_second_try);
    const index_t first = next - report.begin(), count = end - next;
    seconds +=
        try_again(plan, chunk.a.slice(first, count), slice(chunk.out, first, count), {next, end});
    next = std::find_if(end, report.end(), needs_second_try);
  }
  return seconds;
}

ChunkSeconds SecondTry::factor_any(const Plan& plan, const AnyChunk& any) {
  ChunkSeconds seconds = backend_.factor_any(plan, any);
  return seconds += std::visit([&](const auto& chunk) { return try_all_again(plan, chunk); }, any);
}

/// A matrix that the backend holds, with a second try there. If reflectors are not better, it is
/// factored by the first variant once more.
template <class T>
class HeldTwice final : public HeldMatrix<T> {
 public:
  HeldTwice(HeldPointer<T> held, const Reflectors& reflectors)
      : held_(std::move(held)), reflectors_(reflectors) {}

  void put(index_t first_row, MatrixView<const T> rows) override { held_->put(first_row, rows); }
  MatrixReport factor(const Plan& plan) override {
    better_.reset();
    const MatrixReport first = held_->factor(plan);
    if (!needs_second_try(first)) return first;
    const std::optional<Plan> other = reflectors_.other_plan(plan);
    if (!other) return first;
    MatrixReport second = held_->factor(*other);
    if (!keeps_second(plan.problem, second, first)) return held_->factor(plan);
    better_ = second;
    return second;
  }
  void get(std::string_view factor, index_t first_row, MatrixView<T> rows) override {
    held_->get(factor, first_row, rows);
  }
  MatrixReport report() override {
    const MatrixReport line = held_->report();
    return better_.value_or(line);
  }
  ChunkSeconds seconds() const override { return held_->seconds(); }

 private:
  HeldPointer<T> held_;
  const Reflectors& reflectors_;
  std::optional<MatrixReport> better_;
};

AnyHeldMatrix SecondTry::hold_any(const Plan& plan) {
  return std::visit(
      [&]<class T>(HeldPointer<T> held) -> AnyHeldMatrix {
        return std::make_unique<HeldTwice<T>>(std::move(held), reflectors_);
      },
      backend_.hold_any(plan));
}

}  // namespace qrtool
