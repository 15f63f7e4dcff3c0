// SPDX-License-Identifier: Apache-2.0
// keyed_input.cpp: the rows of a table as they are parsed, or of arrays some at a time.
#include "app/solve/groups/keyed_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "app/solve/side_numbers.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/keyed_rows.hpp"
#include "io/csv/parser/columns.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/open/input.hpp"

namespace qrtool {
namespace {

/// Passes the rows of a table on.
class TableRows final : public KeyedRows {
 public:
  TableRows(const SolveOptions& o, RowKeeper& keeper, KeyedInput& input)
      : o_(o), keeper_(keeper), input_(input) {}

  void begin(const Table& table) override;
  void add(std::span<const std::string> keys, std::span<const double> numbers) override {
    keeper_.add(keys, numbers);
  }

 private:
  const SolveOptions& o_;
  RowKeeper& keeper_;
  KeyedInput& input_;
};

void TableRows::begin(const Table& table) {
  Source& source = input_.source;
  source.file = is_standard_input(o_.a) ? std::string(standard_input) : o_.a;
  source.n = std::ssize(table.read_columns());
  source.table = table;
  const TableRoles roles = roles_of(source, o_.system);
  if (roles.weights.empty() && !o_.system.weights.empty())
    throw InputError(fmt::format("{}: there is no column {} of weights", escape(source.file),
                                 escape(o_.system.weights)),
                     "with --by, --weights names a column of the table");
  keeper_.prepare(roles, source.n);
  const std::vector<std::string> labels = table.labels();
  const std::vector<index_t> read = table.read_columns();
  const auto labels_of = [&](const std::vector<index_t>& columns) {
    std::vector<std::string> names;
    for (const index_t column : columns) names.push_back(labels[static_cast<std::size_t>(column)]);
    return names;
  };
  const auto at_places = [&](const std::vector<index_t>& places) {
    std::vector<index_t> columns;
    for (const index_t place : places) columns.push_back(read[static_cast<std::size_t>(place)]);
    return labels_of(columns);
  };
  const std::string place = escape(source.file) + ": ";
  keeper_.name(labels_of(choose_columns({"--by", o_.by}, table, place)), at_places(roles.others),
               at_places(roles.responses));
}

void read_table(const SolveOptions& o, RowKeeper& keeper, KeyedInput& input) {
  TableRows rows(o, keeper, input);
  input.source = read_keyed_rows({.path = o.a,
                                  .dataset = {},
                                  .scratch = o.scratch,
                                  .csv = o.csv,
                                  .needed_columns = needed_columns(o.system),
                                  .only_needed_columns = needs_no_others(o.system)},
                                 o.by, rows);
  if (!is_standard_input(o.a)) input.input_bytes = readable_size(o.a);
}

/// Returns "x1", "x2", ...
std::vector<std::string> numbered(const char* letter, index_t count) {
  std::vector<std::string> names;
  for (index_t j = 1; j <= count; ++j) names.push_back(fmt::format("{}{}", letter, j));
  return names;
}

/// A, B, weights and, with --groups, groups of their rows, read as float64. A and B may be a table,
/// too, whose rows have no keys.
class ArrayRows {
 public:
  ArrayRows(const SolveOptions& o, const Limits& limits);

  index_t m() const { return in_.m(); }
  bool has_groups() const { return groups_ != nullptr; }
  /// Returns the number of numbers in a row: of A, then of B, then the weight.
  index_t width() const { return in_.n() + in_.sides.p + (in_.w ? 1 : 0); }
  const SolveInputs& inputs() const { return in_; }
  TableRoles roles() const;
  std::string name_of_groups() const;
  std::uint64_t bytes() const;
  /// Calls use(group, numbers) for every row.
  template <class Use>
  void visit(Use use);

 private:
  void open_groups(const SolveOptions& o, const Limits& limits);
  void require_shapes(const std::string& option) const;
  void require_fitting_groups() const;
  void read(index_t first, MatrixView<double> rows, std::vector<double>& groups,
            std::vector<double>& remainders);
  std::string key_of(double group, double remainder) const;

  SolveInputs in_;
  bool has_ones_;  // as column 0 of A
  std::unique_ptr<Reader> groups_;
  std::unique_ptr<Reader> remainders_;  // what float64 leaves of large integers; null: of none
};

ArrayRows::ArrayRows(const SolveOptions& o, const Limits& limits)
    : in_(open_solve_inputs({.a = o.a, .b = o.b, .csv = o.csv, .raw_values = o.raw_values},
                            o.system, o.order, limits)),
      has_ones_(o.system.intercept) {
  const char* const option = o.groups.empty() ? "--window" : "--groups";
  require_real(in_, option);
  require_shapes(option);
  if (!o.groups.empty()) open_groups(o, limits);
}

void ArrayRows::open_groups(const SolveOptions& o, const Limits& limits) {
  refuse_dataset_as_file(o.groups, o.a);
  InputSpec spec{.path = o.groups,
                 .dataset = {},
                 .order = Order::row,
                 .threads = limits.threads,
                 .memory_bytes = memory_of_file(limits),
                 .takes_vectors = true};
  if (takes_csv_options(o.groups)) spec.csv = o.csv;
  groups_ = open_array(spec);
  spec.remainders = true;
  const bool may_be_large = groups_->source().rounds || takes_csv_options(o.groups);
  if (may_be_large) remainders_ = open_array(spec);
  require_fitting_groups();
}

void ArrayRows::require_shapes(const std::string& option) const {
  const Source& a = in_.a->source();
  if (in_.sides.items() != 1 || a.count() != 1)
    throw InputError(
        fmt::format("{}: {} divides the rows of one A, and this is {}", escape(a.file), option,
                    format_shape(a.leading, a.m, a.n)),
        fmt::format("name one matrix, as in '{}[0]'", escape(a.file + ":" + a.dataset)));
  if (in_.w && !in_.w_is_shared && in_.sides.p > 1)
    throw InputError(fmt::format("{}: {} takes one weight for each row of A",
                                 escape(in_.w->source().file), option),
                     "give one number for each row of A");
}

void ArrayRows::require_fitting_groups() const {
  const Source& g = groups_->source();
  if (g.count() * g.m * g.n != m())
    throw InputError(fmt::format("{}: {} groups do not fit the {} rows of A", escape(g.file),
                                 g.count() * g.m * g.n, m()),
                     "give one number for each row of A");
}

TableRoles ArrayRows::roles() const {
  TableRoles roles;
  for (index_t j = has_ones_ ? 1 : 0; j < width(); ++j) {
    if (j < in_.n())
      roles.others.push_back(j);
    else if (j < in_.n() + in_.sides.p)
      roles.responses.push_back(j);
    else
      roles.weights.push_back(j);
  }
  return roles;
}

/// Returns the last part of the dataset's path, or "group" if the file has none, or if another
/// column of the output has this name.
std::string ArrayRows::name_of_groups() const {
  const std::string& dataset = groups_->source().dataset;
  const std::string name = dataset.substr(dataset.rfind('/') + 1);
  const std::vector<std::string> others = columns_of({.path = {},
                                                      .keys = {},
                                                      .terms = numbered("x", in_.n()),
                                                      .has_responses = true,
                                                      .has_se = true});
  const bool is_free = std::find(others.begin(), others.end(), name) == others.end();
  return name.empty() || name.find('[') != std::string::npos || !is_free ? "group" : name;
}

std::uint64_t ArrayRows::bytes() const {
  return static_cast<std::uint64_t>(m() * (width() + 1)) * sizeof(double);
}

/// Returns a number of --groups as text. Large integers keep all digits.
std::string ArrayRows::key_of(double group, double remainder) const {
  if (std::isnan(group)) return "NaN";
  const bool is_large = std::abs(group) >= 0x1p53 && std::abs(group) <= 0x1p64;
  if (!remainders_ || !is_large) return fmt::format("{}", group);
  __extension__ using Wide = __int128;  // the sum has 64 bits, its parts may have more
  const Wide key = static_cast<Wide>(group) + static_cast<Wide>(remainder);
  const auto digits = static_cast<std::uint64_t>(key < 0 ? -key : key);
  return fmt::format("{}{}", key < 0 ? "-" : "", digits);
}

void ArrayRows::read(index_t first, MatrixView<double> rows, std::vector<double>& groups,
                     std::vector<double>& remainders) {
  const index_t n = in_.n(), p = in_.sides.p;
  const Batch<double> a(1, rows.rows, n), b(1, rows.rows, p), w(1, rows.rows, 1);
  in_.a->read_rows(0, first, a.view()[0]);
  read_sides(*in_.b, in_.sides.place(0), first, b.view()[0]);
  if (in_.w) read_numbers(*in_.w, first, rows.rows, w.view().data);
  if (groups_) read_numbers(*groups_, first, rows.rows, groups.data());
  if (remainders_) read_numbers(*remainders_, first, rows.rows, remainders.data());
  for (index_t i = 0; i < rows.rows; ++i) {
    double* const row = &rows(i, 0);
    std::copy_n(&a.view()[0](i, 0), n, row);
    std::copy_n(&b.view()[0](i, 0), p, row + n);
    if (in_.w) row[n + p] = w.view().data[i];
  }
}

template <class Use>
void ArrayRows::visit(Use use) {
  constexpr index_t at_once = index_t{1} << 15;
  const index_t step = std::clamp<index_t>(at_once / width(), 1, std::max<index_t>(m(), 1));
  const Batch<double> rows(1, step, width());
  std::vector<double> groups(static_cast<std::size_t>(step)), remainders(groups.size());
  for (index_t first = 0; first < m(); first += step) {
    const MatrixView<double> some = rows.view()[0].row_block(0, std::min(step, m() - first));
    read(first, some, groups, remainders);
    for (index_t i = 0; i < some.rows; ++i)
      use(groups_
              ? key_of(groups[static_cast<std::size_t>(i)], remainders[static_cast<std::size_t>(i)])
              : std::string(),
          std::span<const double>(&some(i, 0), static_cast<std::size_t>(width())));
  }
  in_.require_unchanged();
  if (groups_) groups_->require_unchanged();
}

void read_arrays(const SolveOptions& o, const Limits& limits, RowKeeper& keeper,
                 KeyedInput& input) {
  ArrayRows rows(o, limits);
  input.source = rows.inputs().a->source();
  input.input_bytes = rows.bytes();
  keeper.prepare(rows.roles(), rows.width());
  const SolveInputs& in = rows.inputs();
  const index_t ones = o.system.intercept ? 1 : 0;
  std::vector<std::string> terms = in.names, keys;
  if (ones > 0 && !terms.empty()) terms.erase(terms.begin());
  if (terms.empty()) terms = numbered("x", in.n() - ones);
  if (rows.has_groups()) keys.push_back(rows.name_of_groups());
  keeper.name(keys, terms, in.responses.empty() ? numbered("b", in.sides.p) : in.responses);
  input.source_of_b = in.b->source();
  const bool is_column = in.sides.p == 1 && !in.responses.empty();
  input.window_dims = is_column ? Dims{} : in.sides.solution_dims;
  rows.visit([&](const std::string& key, std::span<const double> numbers) {
    keeper.add({&key, keys.size()}, numbers);
  });
}

}  // namespace

KeyedInput read_keyed_input(const SolveOptions& o, const Limits& limits, KeepRows keep) {
  KeyedInput input;
  RowKeeper keeper(o, limits, keep, input);
  if (!o.by.empty()) {
    read_table(o, keeper, input);
  } else {
    read_arrays(o, limits, keeper, input);
  }
  if (input.rows) input.rows->finish(input.counts);
  return input;
}

}  // namespace qrtool
