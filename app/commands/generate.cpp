// SPDX-License-Identifier: Apache-2.0
// generate.cpp: `qrtool generate` writes test matrices and Haar-distributed Q.
//
// The Q of a Gaussian matrix is uniform in O(n), or U(n) where it is complex, if the diagonal of R
// is positive. Source: Mezzadri,
// How to generate random matrices from the classical compact groups, Notices AMS 54 (2007).
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "app/commands/commands.hpp"
#include "app/process/console.hpp"
#include "app/process/progress.hpp"
#include "app/process/signals.hpp"
#include "app/process/stopwatch.hpp"
#include "app/run/backends/make_backend.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/machine/host.hpp"
#include "core/machine/parallel.hpp"
#include "core/matrix/matrices.hpp"
#include "core/text.hpp"
#include "io/open/output.hpp"
#include "io/write/writer.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

constexpr double default_cond = MatrixRequest{}.cond;
constexpr std::size_t chunk_target_bytes = std::size_t{64} << 20;

/// Finds the sign of det A by Gaussian elimination with partial pivoting in float64.
template <class T>
bool has_negative_determinant(MatrixView<const T> a) {
  const Batch<double> copy(1, a.rows, a.cols);
  const MatrixView<double> u = copy.view()[0];
  for (index_t i = 0; i < a.rows; ++i) std::copy_n(a.data + i * a.ld, a.cols, u.data + i * u.ld);
  bool negative = false;
  for (index_t j = 0; j < u.rows; ++j) {
    index_t pivot = j;
    for (index_t i = j + 1; i < u.rows; ++i)
      if (std::abs(u(i, j)) > std::abs(u(pivot, j))) pivot = i;
    if (pivot != j) std::swap_ranges(&u(j, j), &u(j, 0) + u.cols, &u(pivot, j));
    negative ^= (pivot != j) ^ (u(j, j) < 0);
    for (index_t i = j + 1; i < u.rows; ++i) {
      const double factor = u(i, j) / u(j, j);
      for (index_t l = j + 1; l < u.cols; ++l) u(i, l) -= factor * u(j, l);
    }
  }
  return negative;
}

/// Fills one chunk of matrices after another.
template <class T>
class Generator {
 public:
  Generator(const GenerateOptions& o, index_t count)
      : o_(o), limits_(host_limits(std::nullopt, 0)), count_(count) {
    if (o.kind == "haar") prepare_haar();
    const auto matrix_bytes =
        std::max<std::size_t>(sizeof(T), static_cast<std::size_t>(o.m * o.n) * sizeof(T));
    if (o.kind != "haar" && matrix_bytes > limits_.host_bytes)
      throw LimitError(fmt::format("one {}x{} matrix needs {} of memory; {} can be used", o.m, o.n,
                                   format_bytes(matrix_bytes), format_bytes(limits_.host_bytes)));
    chunk_ = std::clamp<index_t>(chunk_target_bytes / matrix_bytes, 1, std::max<index_t>(count, 1));
    if (backend_) chunk_ = std::min(chunk_, plan_.chunk_matrices);
  }

  void write_all(Writer& writer) {
    Progress progress("generate", count_, o_.progress_mode());
    Batch<T> a(chunk_, o_.m, o_.n), q, r;
    if (backend_) q = Batch<T>(chunk_, o_.m, o_.n);
    if (backend_) r = Batch<T>(chunk_, o_.n, o_.n);
    for (index_t first = 0; first < count_; first += chunk_) {
      const index_t matrices = std::min(chunk_, count_ - first);
      const BatchView<T> filled = a.view().slice(0, matrices);
      fill(first, filled);
      progress.add(matrices);
      if (!backend_) {
        writer.write("A", first, numbers_of(filled));
        continue;
      }
      const BatchView<T> factor_q = q.view().slice(0, matrices);
      std::vector<MatrixReport> report(static_cast<std::size_t>(matrices));
      const Factors<T> factors{factor_q, r.view().slice(0, matrices), {}, {}};
      backend_->factor<T>(plan_, filled, factors, report);
      if (o_.special) make_special(factor_q);
      writer.write("A", first, numbers_of(factor_q));
    }
  }

 private:
  static BatchView<const Real<T>> numbers_of(BatchView<T> values) { return interleaved(values); }

  void prepare_haar() {
    backend_ = std::make_unique<CpuBackend>(limits_);
    const Problem problem{
        .count = count_, .m = o_.m, .n = o_.n, .type = element_type<T>, .sign = Sign::positive};
    plan_ = make_plan(problem, backend_->variants(), limits_);
  }

  void fill(index_t first, BatchView<T> a) const {
    const MatrixRequest request{.kind = backend_ ? "gauss" : std::string_view(o_.kind),
                                .cond = o_.cond.value_or(default_cond),
                                .seed = o_.seed};
    parallel_for(a.count, limits_.threads,
                 [&](index_t i, int) { fill_matrix<T>(request, first + i, a[i]); });
  }

  /// Negates the last column if det Q = -1.
  void make_special([[maybe_unused]] BatchView<T> q) const {
    if constexpr (!is_complex_number<T>)
      parallel_for(q.count, limits_.threads, [&](index_t b, int) {
        const MatrixView<T> matrix = q[b];
        if (!has_negative_determinant<T>(matrix)) return;
        for (index_t i = 0; i < matrix.rows; ++i) matrix(i, matrix.cols - 1) *= -1;
      });
  }

  const GenerateOptions& o_;
  Limits limits_;
  index_t count_, chunk_ = 1;
  std::unique_ptr<Backend> backend_;  // only for kind haar
  Plan plan_;
};

ElementType type_of(const GenerateOptions& o) { return o.is_complex ? complex_of(o.type) : o.type; }

OutputSpec output_spec(const GenerateOptions& o) {
  OutputSpec spec{.path = o.output,
                  .force = o.force,
                  .leading = o.leading,
                  .datasets = {{.name = "A", .type = type_of(o), .rows = o.m, .cols = o.n}},
                  .attributes = {{"generator", fmt::format("qrtool {}", QRTOOL_VERSION)},
                                 {"kind", o.kind},
                                 {"seed", static_cast<std::int64_t>(o.seed)}},
                  .threads = available_cores()};
  if (uses_cond(o.kind)) spec.attributes.emplace_back("cond", o.cond.value_or(default_cond));
  return spec;
}

Json to_json(const GenerateOptions& o, const std::vector<std::string>& files, double seconds) {
  std::vector<index_t> shape = o.leading;
  shape.insert(shape.end(), {o.m, o.n});
  return {{"schema", "qrtool.generate/1"},
          {"version", QRTOOL_VERSION},
          {"output", {{"files", files}, {"shape", shape}, {"type", name_of(type_of(o))}}},
          {"kind", o.kind},
          {"cond", uses_cond(o.kind) ? Json(o.cond.value_or(default_cond)) : Json()},
          {"seed", o.seed},
          {"seconds", {{"total", seconds}}},
          {"exit", 0}};
}

/// Returns the files that were written.
template <class T>
std::vector<std::string> generate(const GenerateOptions& o) {
  index_t count = 1;
  for (const index_t extent : o.leading) count *= extent;
  Generator<T> generator(o, count);
  set_interrupt_message("qrtool: interrupted; nothing written\n");
  const std::unique_ptr<Writer> writer = create_output(output_spec(o));
  generator.write_all(*writer);
  set_interrupt_message(interrupted_while_finishing);
  writer->commit();
  set_interrupt_message(interrupted_when_complete);
  return writer->files();
}

}  // namespace

ExitCode run_generate(const GenerateOptions& o) {
  const Stopwatch watch;
  const std::vector<std::string> files =
      with_type(type_of(o), [&](auto zero) { return generate<decltype(zero)>(o); });
  if (o.verbose)
    print_message(fmt::format("made and written in {}", format_seconds(watch.seconds())));
  if (o.json)
    write_json(to_json(o, files, watch.seconds()));
  else if (!o.quiet)
    write_stdout(fmt::format("wrote {} (A {} {}, {}, seed {})\n", escape(files.front()),
                             format_shape(o.leading, o.m, o.n), name_of(type_of(o)), o.kind,
                             o.seed));
  return ExitCode::good;
}

}  // namespace qrtool
