// SPDX-License-Identifier: Apache-2.0
// leverage_run.cpp: small matrices several at a time, one for each thread; large ones one after
// another, in blocks of rows.
#include "app/run/matrices/leverage_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/machine/parallel.hpp"
#include "core/solve/results/leverage.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

constexpr const char* column_name = "leverage_error";

double bar_of(const SolveProblem& problem) {
  return solution_bar(ElementType::float64, problem.packed_rows(), problem.n);
}

/// Some rows of one A with their weights and right side, in memory.
template <class S>
struct LeverageRows {
  Batch<S> a;
  std::vector<double> b, w;
  std::vector<double> factors;  // the roots of the weights; NaN: the row is missing
};

/// Reads rows, and finds out which count.
template <class S>
class LeverageReader {
 public:
  explicit LeverageReader(const LeverageJob& job) : in_(job), problem_(job.problem) {}

  void read(index_t matrix, index_t first, index_t count, LeverageRows<S>& rows) const {
    const index_t n = problem_.n;
    if (rows.a.view().rows < count) rows.a = Batch<S>(1, count, n);
    if (n > 0)
      in_.a.read_rows(in_.a_of ? in_.a_of(matrix) : matrix, first,
                      interleaved(rows.a.view()[0].row_block(0, count)));
    rows.factors.assign(static_cast<std::size_t>(count), 1.0);
    if (in_.w) {
      rows.w.resize(rows.factors.size());
      in_.w(matrix, first, count, rows.w.data());
      for (index_t i = 0; i < count; ++i) rows.factors[i] = std::sqrt(rows.w[i]);
    }
    if (!in_.b) return;
    rows.b.resize(rows.factors.size());
    in_.b(matrix, first, count, rows.b.data());
    const MatrixView<S> a = rows.a.view()[0];
    for (index_t i = 0; i < count; ++i) {
      const S* row = n > 0 ? &a(i, 0) : nullptr;
      if (std::isnan(rows.b[i]) || std::any_of(row, row + n, [](S x) { return is_nan(x); }))
        rows.factors[i] = not_measured;
    }
  }

  /// Computes W^1/2 A of some rows. Returns false if an entry that counts is not finite.
  bool weigh(const LeverageRows<S>& rows, index_t first, MatrixView<S> to) const {
    bool all_are_finite = true;
    for (index_t i = 0; i < to.rows; ++i) {
      const double factor = rows.factors[static_cast<std::size_t>(first + i)];
      for (index_t j = 0; j < to.cols; ++j) {
        to(i, j) = factor > 0 ? rows.a.view()[0](first + i, j) * factor : S(0);
        all_are_finite = all_are_finite && is_finite(to(i, j));
      }
    }
    return all_are_finite;
  }

 private:
  const LeverageJob& in_;
  const SolveProblem& problem_;
};

/// Computes the leverages of all matrices, and writes them. S is float64 or complex128.
template <class S>
class LeverageRun {
 public:
  explicit LeverageRun(const LeverageJob& job, Writer* output = nullptr)
      : job_(job),
        problem_(job.problem),
        limits_(job.limits),
        output_(output),
        has_report_(job.has_report),
        reader_(job) {}

  index_t run(index_t matrices) {
    if (problem_.m == 0) return 0;
    if (!is_small_for_leverage(problem_.m, problem_.n)) {
      for (index_t matrix = 0; matrix < matrices; ++matrix) run_large(matrix);
      return failed_;
    }
    const auto budget = static_cast<index_t>(limits_.host_bytes / 4);
    const index_t of_matrix = problem_.m * (problem_.n + 4) * index_t{sizeof(S)};
    const index_t at_once = std::clamp<index_t>(std::min(budget, chunk_bytes) / of_matrix, 1, 4096);
    for (index_t first = 0; first < matrices; first += at_once)
      run_small(first, std::min(at_once, matrices - first));
    return failed_;
  }

  /// Returns the rank of one matrix.
  index_t rank(index_t number) const {
    Wave wave;
    return rank_of_rows<S>(problem_, threads(), rows_of(number, wave));
  }

 private:
  static constexpr index_t chunk_bytes = index_t{32} << 20;

  void run_small(index_t first, index_t count) {
    const index_t m = problem_.m;
    if (std::ssize(small_) < count) small_.resize(static_cast<std::size_t>(count));
    std::vector<double> leverages(static_cast<std::size_t>(count * m));
    std::vector<LeverageReport> reports(static_cast<std::size_t>(count));
    for (index_t k = 0; k < count; ++k) reader_.read(first + k, 0, m, small_[k]);
    parallel_for(count, limits_.threads, [&](index_t k, int) {
      const std::span<double> own(&leverages[k * m], static_cast<std::size_t>(m));
      const Batch<S> rows(1, m, problem_.n);
      if (reader_.weigh(small_[k], 0, rows.view()[0])) {
        reports[k] = small_leverages<S>(problem_, job_.rank_of(first + k), rows.view()[0], own);
      } else {
        std::fill(own.begin(), own.end(), not_measured);
      }
      mark(small_[k], 0, own);
    });
    write(first * m, leverages);
    for (index_t k = 0; k < count; ++k) keep(first + k, reports[k]);
  }

  void run_large(index_t matrix) {
    Wave wave;
    const LeverageReport report =
        large_leverages<S>(problem_, job_.rank_of(matrix), threads(), rows_of(matrix, wave),
                           [&](index_t first, std::span<const double> found) {
                             std::vector<double> leverages(found.begin(), found.end());
                             if (!wave.all_are_finite)
                               std::fill(leverages.begin(), leverages.end(), not_measured);
                             mark(wave.rows, first - wave.first, leverages);
                             write(matrix * problem_.m + first, leverages);
                           });
    keep(matrix, wave.all_are_finite ? report : LeverageReport{});
  }

  /// The rows of a large matrix that are in memory.
  struct Wave {
    LeverageRows<S> rows;
    index_t first = 0;
    bool all_are_finite = true;  // of all waves so far
  };
  LargeRows<S> rows_of(index_t matrix, Wave& wave) const {
    return {.read =
                [this, matrix, &wave](index_t first, index_t count) {
                  reader_.read(matrix, first, count, wave.rows);
                  wave.first = first;
                  const Batch<S> weighted(1, 1, problem_.n);
                  for (index_t i = 0; i < count; ++i)
                    wave.all_are_finite =
                        reader_.weigh(wave.rows, i, weighted.view()[0]) && wave.all_are_finite;
                },
            .rows = [this, &wave](
                        index_t first,
                        MatrixView<S> to) { reader_.weigh(wave.rows, first - wave.first, to); }};
  }

  /// Returns the number of threads, fewer if their blocks do not fit the memory.
  int threads() const {
    int count = limits_.threads;
    const index_t rows = leverage_block_rows(problem_.n);
    const auto needed = [&] {
      return leverage_bytes(problem_, count) +
             static_cast<std::size_t>(count * rows * (problem_.n + 4)) * sizeof(S);
    };
    while (count > 1 && needed() > limits_.host_bytes) --count;
    if (needed() > limits_.host_bytes)
      throw LimitError(
          fmt::format("--leverage of {} columns needs {} of host memory; the limit is {}",
                      problem_.n, format_bytes(needed() + limits_.file_bytes),
                      format_bytes(limits_.host_bytes + limits_.file_bytes)),
          hint_of_memory(needed() + limits_.file_bytes));
    return count;
  }

  /// A missing row has NaN, and a row of weight 0 the leverage 0, without rounding errors.
  static void mark(const LeverageRows<S>& rows, index_t first, std::span<double> leverages) {
    for (std::size_t i = 0; i < leverages.size(); ++i) {
      const double factor = rows.factors[static_cast<std::size_t>(first) + i];
      if (!(factor > 0)) leverages[i] = factor;
    }
  }

  void write(index_t first, std::span<const double> leverages) {
    if (real_of(problem_.type) == ElementType::float64) {
      output_->write_part("leverage", first, leverages);
      return;
    }
    const std::vector<float> rounded(leverages.begin(), leverages.end());
    output_->write_part("leverage", first, std::span<const float>(rounded));
  }

  void keep(index_t matrix, const LeverageReport& report) {
    if (has_report_) output_->write_numbers(column_name, matrix, {&report.error, 1});
    if (report.error > bar_of(problem_)) ++failed_;
  }

  const LeverageJob& job_;
  const SolveProblem& problem_;
  const Limits& limits_;
  Writer* output_;
  bool has_report_;
  LeverageReader<S> reader_;
  std::vector<LeverageRows<S>> small_;
  index_t failed_ = 0;
};

}  // namespace

MatrixDataset leverage_dataset(const std::vector<index_t>& leading, index_t m, ElementType type) {
  return {.name = "leverage",
          .type = real_of(type),
          .rows = 1,
          .cols = m,
          .is_vector = true,
          .leading = leading,
          .description = "the diagonal of the hat matrix; NaN where a row is missing"};
}

NumberDataset leverage_column(const std::vector<index_t>& leading, const SolveProblem& problem) {
  return {.name = column_name,
          .kind = NumberKind::real,
          .dims = leading,
          .description =
              "how far the leverages are from what they must be: each from 0 to 1, and "
              "their sum the rank (with a ridge at most the rank); NaN where A is not "
              "finite",
          .formula = "max(|sum h - r| / r, max(h) - 1, -min(h))",
          .bar_formula =
              "2^-52 min(max(m, 16), 30 min(m, n)), where m is the rows of A, and n "
              "more with a ridge",
          .bar = bar_of(problem)};
}

index_t write_leverages(const LeverageJob& job, Writer& output) {
  if (is_complex(job.problem.type))
    return LeverageRun<std::complex<double>>(job, &output).run(job.matrices);
  return LeverageRun<double>(job, &output).run(job.matrices);
}

std::string compare_ranks(const LeverageJob& job, std::span<const DependentColumns> dependent,
                          const std::string& file, Writer& output) {
  // The numbers that are read again; the first matrix is, whatever it has.
  constexpr index_t most_numbers = index_t{1} << 28;
  const index_t each = job.problem.m * std::max<index_t>(job.problem.n, 1);
  index_t compared = 0, different = 0;
  for (const DependentColumns& one :
       dependent.first(std::min(dependent.size(), most_compared_ranks))) {
    if (compared > 0 && compared * each > most_numbers) break;
    const index_t rank = is_complex(job.problem.type)
                             ? LeverageRun<std::complex<double>>(job).rank(one.number)
                             : LeverageRun<double>(job).rank(one.number);
    ++compared;
    if (rank != one.rank) ++different;
  }
  output.add_attribute("other_rank_in_float64", static_cast<std::int64_t>(different));
  if (different == 0) return {};
  return fmt::format(
      "note: {}: of {} matri{} with dependent columns in single precision, {} ha{} another rank in "
      "double precision; --precision double decides by it",
      escape(file), format_count(compared), compared == 1 ? "x" : "ces", format_count(different),
      different == 1 ? "s" : "ve");
}

}  // namespace qrtool
