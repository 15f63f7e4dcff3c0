// SPDX-License-Identifier: Apache-2.0
// state.cpp: readers of a state with rows below it, and its datasets.
#include "app/solve/state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "app/solve/side_numbers.hpp"
#include "app/solve/solve_columns.hpp"
#include "app/solve/solve_inputs.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/report/ratios.hpp"
#include "core/text.hpp"
#include "io/open/factors.hpp"
#include "io/open/input.hpp"
#include "io/read/reader_of.hpp"

namespace qrtool {
namespace {

constexpr index_t counts_in_sums = 2;
index_t width_of_sums(index_t spreads) {
  return counts_in_sums + spreads * static_cast<index_t>(sizeof(Spread) / sizeof(double));
}

/// Rows of a state above the numbers of another reader.
class AppendedReader final : public ReaderOf<AppendedReader> {
 public:
  /// `state`: null for `count` ones.
  AppendedReader(std::unique_ptr<Reader> state, index_t count, std::unique_ptr<Reader> rows,
                 const Source& shape)
      : state_(std::move(state)), rows_(std::move(rows)), count_(count), new_rows_(shape.m) {
    source_ = shape;
    source_.m += count;
  }
  template <class T>
  void read_any_rows(index_t matrix, index_t first, MatrixView<T> out) {
    const index_t above = std::clamp<index_t>(count_ - first, 0, out.rows);
    if (above > 0 && state_) state_->read_rows(matrix, first, out.row_block(0, above));
    // NaN would be a missing row.
    for (T* x = out.data; x != out.data + above * out.cols; ++x)
      *x = !state_ ? T(1) : std::isnan(*x) ? std::numeric_limits<T>::infinity() : *x;
    if (above == out.rows) return;
    const index_t n = source_.n, start = (matrix * new_rows_ + first + above - count_) * n;
    T* const to = out.data + above * out.ld;
    if (is_complex(source_.type))
      read_numbers(*rows_, start, (out.rows - above) * n, reinterpret_cast<std::complex<T>*>(to));
    else
      read_numbers(*rows_, start, (out.rows - above) * n, to);
  }
  void require_unchanged() const override {
    if (state_) state_->require_unchanged();
    rows_->require_unchanged();
  }
  std::size_t workspace_bytes(ElementType type) const override {
    return (state_ ? state_->workspace_bytes(type) : 0) + rows_->workspace_bytes(type);
  }

 private:
  std::unique_ptr<Reader> state_, rows_;
  index_t count_, new_rows_;
};

std::unique_ptr<Reader> open_part(const std::string& file, const char* name) {
  return open_array({.path = file,
                     .dataset = name,
                     .order = Order::row,
                     .takes_vectors = true,
                     .takes_complex = true});
}

/// Returns `rows` below `count` rows of the state, as matrices leading x m x n, however they are
/// stored. state: null for ones; file: is recorded.
std::unique_ptr<Reader> below(std::unique_ptr<Reader> state, index_t count,
                              std::unique_ptr<Reader> rows, const Dims& leading,
                              const std::array<index_t, 2>& shape, const std::string& file = {}) {
  Source source = rows->source();
  source.leading = leading;
  source.m = shape[0];
  source.n = shape[1];
  if (state) source.type = state->source().type;
  source.array_dims = {};
  source.dimensions = {};
  if (!file.empty()) source.details.emplace_back(appended_to_name, without_directory(file));
  return std::make_unique<AppendedReader>(std::move(state), count, std::move(rows), source);
}

/// Errors: InputError if the columns of NEW are not those of the state.
void require_same_columns(const std::string& file, const SolveInputs& inputs, const Source& r,
                          index_t sides) {
  const std::vector<std::string> names = recorded_attributes(file, {"columns", "responses"});
  const std::string of_new = escape(inputs.a->source().file), of_state = escape(file);
  for (const auto& [recorded, found, what] :
       {std::tuple(names[0], join(inputs.names, ","), "columns"),
        std::tuple(names[1], join(inputs.responses, ","), "responses")})
    if (recorded != found)
      throw InputError(
          fmt::format("{}: its {} are {}, and those in the state of {} are {}", of_new, what,
                      found.empty() ? "without names" : escape(found), of_state,
                      recorded.empty() ? "without names" : escape(recorded)),
          "rows are appended to the same columns, in the same order; --columns chooses "
          "columns of a table");
  if (r.leading != inputs.sides.batch || r.n != inputs.n() || r.m != r.n + sides)
    throw InputError(
        fmt::format("{}: the shapes do not fit: A is {} with {} right side{}, and the state of {} "
                    "is of {} with {} columns and {} right side{}",
                    of_new, join(dims_of(inputs.a->source()), "x"), sides, sides == 1 ? "" : "s",
                    of_state, r.leading.empty() ? "one A" : join(r.leading, "x") + " A", r.n,
                    r.m - r.n, r.m - r.n == 1 ? "" : "s"));
  if (is_complex(r.type) != is_complex(inputs.a->source().type))
    throw InputError(fmt::format("{}: is {}, and the state of {} is {}", of_new,
                                 inputs.a->source().stored_type, of_state, r.stored_type));
}

}  // namespace

std::unique_ptr<Reader> append_rows(const std::string& file, std::unique_ptr<Reader> state,
                                    std::unique_ptr<Reader> rows) {
  const Source s = rows->source();
  const index_t count = state->source().m;
  return below(std::move(state), count, std::move(rows), s.leading, {s.m, s.n}, file);
}

StateSums StoredState::sums_of(index_t system) const {
  std::vector<double> numbers(static_cast<std::size_t>(width_of_sums(spreads)));
  read_numbers(*sums, system * std::ssize(numbers), std::ssize(numbers), numbers.data());
  StateSums found{.rows = numbers[0], .used = numbers[1], .spreads = {}};
  found.spreads.resize(static_cast<std::size_t>(spreads));
  std::memcpy(static_cast<void*>(found.spreads.data()), numbers.data() + counts_in_sums,
              found.spreads.size() * sizeof(Spread));
  return found;
}

void append_to_state(const std::string& file, SolveInputs& inputs) {
  std::unique_ptr<Reader> r = open_part(file, "/state/R"), z = open_part(file, "/state/Qtb");
  RightSides& sides = inputs.sides;
  const index_t m = inputs.m(), n = inputs.n(), width = n + sides.p;
  require_same_columns(file, inputs, r->source(), sides.p);
  StoredState state{.all_rows = inputs.a->source(),
                    .rows = width,
                    .spreads = parts_in(r->source().type) * sides.p,
                    .gram = open_part(file, "/state/gram"),
                    .sums = open_part(file, "/state/sums")};
  const index_t systems = sides.items();
  for (const auto& [reader, count] : {std::pair(z.get(), width * sides.p),
                                      {state.gram.get(), width * width},
                                      {state.sums.get(), width_of_sums(state.spreads)}})
    if (count_of(dims_of(reader->source())) != systems * count)
      throw InputError(fmt::format("{}: damaged: {} is {}", escape(file), reader->source().dataset,
                                   join(dims_of(reader->source()), "x")));
  for (index_t i = 0; i < systems; ++i) {
    const StateSums sums = state.sums_of(i);
    if (!(sums.rows >= 0 && sums.used >= 0 && sums.used <= sums.rows && sums.rows < 0x1p53))
      throw InputError(fmt::format("{}: damaged: its state has {} rows", escape(file), sums.rows));
    state.all_rows.m = m + static_cast<index_t>(sums.rows);
  }
  inputs.a = below(std::move(r), width, std::move(inputs.a), sides.batch, {m, n}, file);
  inputs.b = below(std::move(z), width, std::move(inputs.b), sides.batch, {m, sides.p});
  if (inputs.w)
    inputs.w = below(nullptr, width, std::move(inputs.w), inputs.w_is_shared ? Dims{} : sides.batch,
                     {m, 1});
  state.all_rows.details = inputs.a->source().details;
  sides = {.rows = sides.rows,
           .batch = sides.batch,
           .m = m + width,
           .p = sides.p,
           .x_dims = sides.x_dims,
           .solution_dims = sides.solution_dims,
           .a_leading = sides.batch,
           .b_leading = sides.batch};
  inputs.before = std::make_shared<StoredState>(std::move(state));
}

void require_state(const SolveInputs& inputs, const SolveOptions& o) {
  const RightSides& sides = inputs.sides;
  const bool has_gaps = o.system.skips_missing.value_or(false) && sides.p > 1;
  const std::pair<bool, const char*> refused[] = {
      {sides.a_leading != sides.batch || sides.b_leading != sides.batch,
       "A and B are not one matrix, or one batch, with right sides of its own"},
      {sides.as_rows && sides.p != 1, "the right sides of an A are rows; store them [..., m, p]"},
      {has_gaps, "--missing skip may leave out other rows for each of several right sides"},
      {inputs.w && !inputs.w_is_shared && sides.p > 1, "every right side has weights of its own"},
      {inputs.weight_exponent != 0, "the weights exceed single precision"},
      {sides.p * sides.items() == 0 || inputs.n() == 0, "there is nothing to solve"}};
  for (const auto& [is_so, why] : refused)
    if (is_so)
      throw UsageError(
          fmt::format("{}: no state can be kept: {}", escape(inputs.b->source().file), why),
          "without --state it can be solved");
}

std::vector<MatrixDataset> state_datasets(const SolveInputs& inputs, const SolveProblem& problem) {
  const index_t n = problem.n, p = inputs.sides.p, width = n + p;
  const auto dataset = [&](const char* name, ElementType type, index_t cols, const char* text) {
    return MatrixDataset{.name = name,
                         .type = type,
                         .rows = width,
                         .cols = cols,
                         .leading = inputs.sides.batch,
                         .description = text};
  };
  const ElementType wide =
      is_complex(problem.type) ? ElementType::complex128 : ElementType::float64;
  MatrixDataset sums = dataset(
      "state/sums", ElementType::float64, width_of_sums(parts_in(problem.type) * p),
      "rows; rows that count; for each right side, of complex ones for each part: the sum of the "
      "weights, the weighted mean, the sum of squares around it and around 0, the least and the "
      "largest number");
  sums.rows = 1;
  sums.is_vector = true;
  return {dataset("state/R", problem.type, n, "R of A, and a row of zeros for each right side"),
          dataset("state/Qtb", problem.type, p, "Q'b, and below it R of what A leaves of b"),
          dataset("state/gram", wide, width,
                  "[A b]'[A b], on and above the diagonal, summed in float64 beside R"),
          sums};
}

double state_bar(const SolveInputs& inputs, const SolveProblem& problem) {
  const index_t rows = inputs.before ? inputs.before->all_rows.m : problem.m;
  return standard_bars(rows, problem.n + inputs.sides.p, precision_of(problem.type), {}).residual;
}

NumberDataset state_column(const SolveInputs& inputs, const SolveProblem& problem) {
  return {.name = "state_error",
          .dims = inputs.sides.batch,
          .description = "how far R of all rows is from the sums of their products",
          .formula = "||D (G - R'R) D|| / ||[A b] D||^2, G: state/gram; D: the columns have norm 1",
          .bar_formula = "u min(max(m, 16), 30 (n + p)), m: all rows, p: right sides",
          .bar = state_bar(inputs, problem)};
}

template <class T>
void write_state(index_t system, index_t n, const SystemState<T>& state, Writer& output) {
  const index_t width = state.r.view().cols;
  const auto part = [&](index_t first, index_t cols) {
    return interleaved(
        BatchView<const T>{state.r.view().data + first, 1, width, cols, width, width * width});
  };
  output.write("state/R", system, part(0, n));
  output.write("state/Qtb", system, part(n, width - n));
  output.write("state/gram", system, interleaved(BatchView<const Wide<T>>(state.gram.view())));
  std::vector<double> sums(static_cast<std::size_t>(width_of_sums(std::ssize(state.sums.spreads))));
  sums[0] = state.sums.rows;
  sums[1] = state.sums.used;
  std::memcpy(sums.data() + counts_in_sums, state.sums.spreads.data(),
              state.sums.spreads.size() * sizeof(Spread));
  output.write("state/sums", system, packed<const double>(sums.data(), 1, 1, std::ssize(sums)));
  output.write_numbers("state_error", system, std::span(&state.error, 1));
}
template void write_state(index_t, index_t, const SystemState<float>&, Writer&);
template void write_state(index_t, index_t, const SystemState<double>&, Writer&);
template void write_state(index_t, index_t, const SystemState<std::complex<float>>&, Writer&);
template void write_state(index_t, index_t, const SystemState<std::complex<double>>&, Writer&);

}  // namespace qrtool
