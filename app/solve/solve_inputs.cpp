// SPDX-License-Identifier: Apache-2.0
// solve_inputs.cpp: A, B and weights from files or from the columns of one table.
#include "app/solve/solve_inputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>

#include "app/run/files/outputs.hpp"
#include "app/solve/design.hpp"
#include "app/solve/side_numbers.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/csv/guide.hpp"
#include "io/csv/parser/columns.hpp"
#include "io/file/input_file.hpp"
#include "io/open/contents.hpp"
#include "io/open/factors.hpp"
#include "io/open/input.hpp"
#include "io/read/column_reader.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool {
namespace {

std::string shape_text(const Source& source) { return join(dims_of(source), "x"); }

/// Weights that are no column of the table must be a file. Errors: InputError if they are not.
void require_file_of_weights(const std::string& weights, const Source& table) {
  const bool may_be_part_of_file = weights.find(':') != std::string::npos;
  if (may_be_part_of_file || std::filesystem::exists(weights)) return;
  const std::vector<std::string> labels = table.table.labels();
  const std::vector<std::string_view> names(labels.begin(), labels.end());
  const std::string_view near = nearest(weights, names);
  throw InputError(fmt::format("{}: --weights: there is neither a column nor a file {}{}",
                               escape(table.file), escape(weights),
                               near.empty() ? "" : fmt::format("; did you mean {}?", escape(near))),
                   fmt::format("its columns are {}", escape(join(labels, ", "))));
}

/// Returns the places of the columns that an option names. Errors: InputError if one is not read.
std::vector<index_t> places_of(const ColumnList& list, const Source& source) {
  const std::string place = escape(source.file) + ": ";
  const std::vector<index_t> columns = choose_columns(list, source.table, place);
  require_read(list, columns, source.table, place);
  std::vector<index_t> places;
  for (const index_t column : columns)
    places.push_back(source.table.columns[static_cast<std::size_t>(column)].place);
  return places;
}

bool contains(const std::vector<index_t>& places, index_t place) {
  return std::find(places.begin(), places.end(), place) != places.end();
}

/// Whether the weights are a column of the table, and not a file.
bool are_column(const std::string& weights, const Table& table) {
  if (weights.empty() || weights.find(':') != std::string::npos) return false;
  const bool is_file = std::filesystem::exists(weights);
  return may_choose({"--weights", weights}, table) &&
         (!is_file || is_name_of_column(weights, table));
}

}  // namespace

TableRoles roles_of(const Source& source, const SystemOptions& o) {
  TableRoles roles{.responses = places_of({"--response", o.response}, source)};
  const std::string file = escape(source.file);
  if (are_column(o.weights, source.table)) {
    roles.weights = places_of({"--weights", o.weights}, source);
    if (roles.weights.size() > 1)
      throw InputError(fmt::format("{}: --weights {} names {} columns", file, escape(o.weights),
                                   roles.weights.size()),
                       "name one column: the weights of all responses");
    if (contains(roles.responses, roles.weights.front()))
      throw InputError(fmt::format("{}: one column is both response and weights", file),
                       "name two columns");
  }
  if (!o.a.empty()) {
    roles.others = places_of({"--a", o.a}, source);
    for (const index_t place : roles.others)
      if (contains(roles.responses, place) || contains(roles.weights, place))
        throw InputError(
            fmt::format("{}: --a names a column that is the response or the weights", file),
            "name the other columns");
    return roles;
  }
  for (index_t j = 0; j < source.n; ++j)
    if (!contains(roles.responses, j) && !contains(roles.weights, j)) roles.others.push_back(j);
  if (roles.others.empty() && !o.intercept)
    throw InputError(fmt::format("{}: no column is left for A", file),
                     "--intercept adds a column of ones");
  return roles;
}

std::vector<std::string> needed_columns(const SystemOptions& o) {
  std::vector<std::string> lists = {o.response};
  const bool may_be_file =
      o.weights.find(':') != std::string::npos || std::filesystem::exists(o.weights);
  if (!o.weights.empty() && !may_be_file) lists.front() += "," + o.weights;
  if (!o.a.empty()) lists.push_back(o.a);
  return lists;
}

bool needs_no_others(const SystemOptions& o) {
  // A file without an ending may be the name of a column, too.
  const bool may_be_both = std::filesystem::exists(o.weights) && ending_of(o.weights).empty();
  return !o.a.empty() && !may_be_both;
}

void refuse_dataset_as_file(const std::string& file, const std::string& a) {
  const std::string of_a = split_location(a).file;
  if (file.empty() || std::filesystem::exists(split_location(file).file)) return;
  if (!has_datasets(of_a)) return;
  for (const Entry& entry : list_entries(of_a)) {
    if (entry.name != file && name_in_output(entry.name) != file) continue;
    const std::string named = escape(of_a + ":" + entry.name);
    throw InputError(
        fmt::format("cannot read '{}': there is no such file, but {} has such a dataset",
                    escape(file), escape(of_a)),
        fmt::format("name both: {}", named));
  }
}

void require_table(const std::string& path) {
  if (takes_csv_options(path)) return;
  const std::string other_hint = "for other files give A and B, without --response";
  const std::string csv_hint =
      fmt::format("for CSV let the name end in .csv, .tsv or .txt, or use standard input: - < {}",
                  escape(path));
  throw InputError(fmt::format("{}: --response is for tables in CSV", escape(path)),
                   reads_as_table(path) ? csv_hint : other_hint);
}

namespace {

/// A, b and perhaps weights from one table, which they share.
void open_table(const SolveFiles& files, const SystemOptions& o, const Limits& limits,
                SolveInputs& inputs) {
  require_table(files.a);
  const std::shared_ptr<Reader> table =
      open_recorded_input({.path = files.a,
                           .dataset = {},
                           .memory_bytes = memory_of_file(limits),
                           .csv = files.csv,
                           .is_one_table = true,
                           .needed_columns = needed_columns(o),
                           .only_needed_columns = needs_no_others(o)},
                          files.recorded_a);
  const Source& source = table->source();
  const TableRoles roles = roles_of(source, o);
  const std::vector<std::string> labels = source.table.labels();
  const std::vector<index_t> columns = source.table.read_columns();
  const auto label = [&](index_t place) {
    return labels[static_cast<std::size_t>(columns[static_cast<std::size_t>(place)])];
  };
  std::vector<std::string> names;
  std::vector<index_t> numbers;
  for (const index_t place : roles.others) {
    names.push_back(label(place));
    numbers.push_back(columns[static_cast<std::size_t>(place)] + 1);
  }
  Design design = design_of(o, names, numbers, files.a);
  inputs.names = std::move(design.names);
  for (ColumnPower& each : design.columns)
    each.column = roles.others[static_cast<std::size_t>(each.column)];
  for (const index_t place : roles.responses) inputs.responses.push_back(label(place));
  if (roles.weights.empty() && !o.weights.empty()) require_file_of_weights(o.weights, source);
  inputs.a = read_powers(table, std::move(design.columns), o.intercept);
  inputs.b = read_columns(table, roles.responses, false);
  if (roles.weights.empty()) return;
  inputs.w = read_columns(table, roles.weights, false);
  inputs.w_is_column = true;
}

/// Whether B is stored by columns: as --order says, as its file states, or as A is. An input with
/// its own order has B's rows first, and says nothing about other files.
bool is_by_columns(const SolveInputs& inputs, Order asked) {
  const Source &a = inputs.a->source(), &b = inputs.b->source();
  if (!takes_order(b.file)) return false;
  if (asked != Order::automatic) return asked == Order::column;
  const Order of_a = takes_order(a.file) ? a.order : Order::row;
  return (b.order == Order::automatic ? of_a : b.order) == Order::column;
}

SystemShapes shapes_of(const SolveInputs& inputs) {
  const Source& a = inputs.a->source();
  return {.a_leading = a.leading,
          .m = a.m,
          .n = a.n,
          .b_dims = dims_of(inputs.b->source()),
          .is_column = inputs.b_is_column};
}

/// Returns the hint that --order column makes the shapes fit, or an empty text if they still would
/// not, or if the order is known.
std::string hint_of_order(const SolveInputs& inputs, RowsOfB asked) {
  const Source &a = inputs.a->source(), &b = inputs.b->source();
  if (a.order_is_stated || a.order != Order::row) return {};
  SystemShapes shapes = shapes_of(inputs);
  const index_t columns = shapes.n - inputs.added_columns;
  shapes.n = shapes.m + inputs.added_columns;
  shapes.m = columns;
  const bool turns_b = takes_order(b.file) && b.order == Order::automatic;
  shapes.is_column = turns_b || shapes.is_column;
  if (readings(shapes, asked).empty()) return {};
  Dims b_dims = shapes.b_dims;
  if (turns_b && b_dims.size() > 1) std::swap(b_dims.back(), b_dims[b_dims.size() - 2]);
  return fmt::format("--order column would read A as {} and B as {}, which fit",
                     format_shape(a.leading, shapes.m, shapes.n), join(b_dims, "x"));
}

[[noreturn]] void refuse_shapes(const SolveInputs& inputs, RowsOfB asked) {
  const Source &a = inputs.a->source(), &b = inputs.b->source();
  const std::string text =
      fmt::format("{}: the shapes do not fit: A is {}, B is {}", escape(b.file),
                  format_shape(a.leading, a.m, a.n), shape_text(b));
  if (const std::string hint = hint_of_order(inputs, asked); !hint.empty())
    throw InputError(text, hint);
  if (asked != RowsOfB::automatic)
    throw InputError(fmt::format("{} with --rows {}", text, name_of(asked)),
                     "leave --rows away to have all ways tried");
  throw InputError(text, fmt::format("B needs a dimension of {}, the rows of A", a.m));
}

[[noreturn]] void refuse_two_ways(const SolveInputs& inputs, const std::vector<RightSides>& ways) {
  const Source &a = inputs.a->source(), &b = inputs.b->source();
  std::string text = fmt::format("{}: B {} fits A {} in {} ways: ", escape(b.file), shape_text(b),
                                 format_shape(a.leading, a.m, a.n), ways.size());
  std::string hint = "say which is meant: ";
  for (std::size_t i = 0; i < ways.size(); ++i) {
    text += fmt::format("{}{}", i > 0 ? "; or " : "", describe(ways[i]));
    hint += fmt::format("{}--rows {}", i > 0 ? " or " : "", name_of(ways[i].rows));
  }
  throw UsageError(text, hint);
}

/// Refuses options of CSV if no file is CSV. Errors: UsageError.
void require_csv(const SolveFiles& files, const std::string& weights) {
  if (files.csv == CsvOptions{}) return;
  for (const std::string& file : {files.a, files.b, weights})
    if (!file.empty() && takes_csv_options(file)) return;
  refuse_csv_options(files.csv, escape(files.a));
}

/// Refuses --raw-values if it changes nothing in any of the files. Errors: UsageError.
void require_hdf5(const SolveFiles& files, const std::string& weights) {
  if (!files.raw_values) return;
  for (const std::string& file : {files.a, files.b, weights})
    if (!file.empty() && takes_order(file)) return;
  refuse_raw_values(files.a);
}

std::unique_ptr<Reader> open_one(InputSpec spec, const SolveFiles& files,
                                 const RecordedInput& recorded) {
  if (takes_csv_options(spec.path)) spec.csv = files.csv;
  spec.raw_values = files.raw_values && takes_order(spec.path);
  return open_recorded_input(std::move(spec), recorded);
}

/// Returns the record of the weights. They were read as stored if A or B was.
RecordedInput recorded_weights(const SolveFiles& files) {
  RecordedInput weights;
  for (const RecordedInput* recorded : {&files.recorded_a, &files.recorded_b})
    for (const auto& pair : recorded->details)
      if (pair.first == raw_values_name) weights.details.push_back(pair);
  return weights;
}

/// A and B are both real, or both complex.
void match_numbers(SolveInputs& inputs) {
  for (const Reader* reader : {inputs.a.get(), inputs.b.get()}) {
    if (!is_complex(reader->source().type)) continue;
    const ComplexForm form = reader->source().complex_form;
    inputs.a = read_as_complex(std::move(inputs.a), form);
    inputs.b = read_as_complex(std::move(inputs.b), form);
    return;
  }
}

/// Puts powers of its columns, and a column of ones, into an A that is no table.
void complete_design(const SolveFiles& files, const SystemOptions& o, SolveInputs& inputs) {
  if (!o.intercept && o.polynomial.empty() && o.a.empty()) return;
  const std::vector<std::string> names = o.a.empty() ? std::vector<std::string>{} : split(o.a, ',');
  std::vector<index_t> numbers = inputs.a->source().table.read_columns();
  if (numbers.empty()) {
    numbers.resize(static_cast<std::size_t>(inputs.n()));
    std::iota(numbers.begin(), numbers.end(), index_t{0});
  }
  for (index_t& number : numbers) ++number;
  Design design = design_of(o, names, numbers, files.a);
  inputs.added_columns = std::ssize(design.columns) + (o.intercept ? 1 : 0) - inputs.n();
  inputs.names = std::move(design.names);
  inputs.a = read_powers(std::move(inputs.a), std::move(design.columns), o.intercept);
}

/// Describes a file with numbers of any shape.
InputSpec array_spec(const std::string& file, const Limits& limits) {
  return {.path = file,
          .dataset = {},
          .order = Order::row,
          .threads = limits.threads,
          .memory_bytes = memory_of_file(limits),
          .takes_vectors = true};
}

/// Describes the vectors of --a. They are read as stored if the user, or the record of the
/// solutions to verify, says so.
InputSpec vector_spec(const SolveFiles& files, const Limits& limits) {
  InputSpec spec = array_spec({}, limits);
  const bool were_raw = !word_of(files.recorded_a.details, raw_values_name).empty();
  spec.raw_values = (files.raw_values || were_raw) && takes_order(files.a);
  return spec;
}

/// Checks that there are m weights, or as many as B has, in its shape.
void check_weights(SolveInputs& inputs) {
  const Dims w = dims_of(inputs.w->source()), b = dims_of(inputs.b->source());
  const index_t m = inputs.m();
  const bool is_vector = w == Dims{m} || w == Dims{m, 1} || w == Dims{1, m};
  inputs.w_is_shared = is_vector && w != b;
  if (is_vector || w == b) return;
  const std::string file = escape(inputs.w->source().file), shape = join(w, "x");
  throw InputError(
      fmt::format("{}: weights of shape {} do not fit: A has {} rows, B is {}", file, shape, m,
                  join(b, "x")),
      b == Dims{m}
          ? fmt::format("give {} numbers, one for each row", m)
          : fmt::format("give {} numbers, one for each row, or as many as B in its shape", m));
}

}  // namespace

SystemsShape SolveInputs::shape() const {
  return {.sides = sides,
          .has_weights = w != nullptr,
          .shares_weights = w_is_shared,
          .fits = fits,
          .name = escape(b->source().file),
          .is_table = !responses.empty()};
}

void SolveInputs::require_unchanged() const {
  for (const Reader* reader : {a.get(), b.get(), w.get()})
    if (reader != nullptr) reader->require_unchanged();
}

Limits limits_beside_files(const SolveInputs& inputs, ElementType type, std::size_t other_bytes,
                           Limits limits) {
  std::size_t bytes = other_bytes;
  for (const Reader* reader : {inputs.a.get(), inputs.b.get(), inputs.w.get()})
    if (reader != nullptr) bytes += reader->workspace_bytes(type);
  // A right side that is a row may have to be read as a whole.
  if (inputs.sides.as_rows && reader_of_parts(*inputs.b) == nullptr)
    bytes += static_cast<std::size_t>(inputs.b->source().n) * size_of(type);
  return limits_beside(inputs.a->source().file, bytes, limits);
}

SolveInputs open_solve_inputs(const SolveFiles& files, const SystemOptions& options, Order order,
                              const Limits& limits) {
  SolveInputs inputs;
  if (!options.response.empty()) {
    open_table(files, options, limits, inputs);
  } else {
    if (!options.a.empty() && takes_csv_options(files.a))
      throw UsageError(
          fmt::format("{}: --a names columns of a table with --response", escape(files.a)),
          fmt::format("--columns {} chooses the columns of A", escape(options.a)));
    refuse_dataset_as_file(files.b, files.a);
    refuse_dataset_as_file(options.weights, files.a);
    require_csv(files, options.weights);
    require_hdf5(files, options.weights);
    if (options.a.empty() && !options.polynomial.empty())
      refuse_vectors_without_a(files.a, options.polynomial);
    inputs.a = options.a.empty() ? open_one({.path = files.a,
                                             .dataset = {},
                                             .order = order,
                                             .threads = limits.threads,
                                             .memory_bytes = memory_of_file(limits),
                                             .takes_complex = true},
                                            files, files.recorded_a)
                                 : open_vectors(files.a, options.a, vector_spec(files, limits));
    InputSpec of_b = array_spec(files.b, limits);
    of_b.takes_complex = true;
    inputs.b = open_one(std::move(of_b), files, files.recorded_b);
    complete_design(files, options, inputs);
    match_numbers(inputs);
  }
  if (!options.weights.empty() && !inputs.w)
    inputs.w = open_one(array_spec(options.weights, limits), files, recorded_weights(files));
  inputs.b_is_column = options.response.empty() && is_by_columns(inputs, order);
  const SystemShapes shapes = shapes_of(inputs);
  const bool is_column_of_table = !options.response.empty() && options.rows == RowsOfB::automatic;
  const RowsOfB rows = is_column_of_table ? RowsOfB::matrix : options.rows;
  const std::vector<RightSides> ways = readings(shapes, rows);
  if (ways.empty()) refuse_shapes(inputs, rows);
  if (ways.size() > 1) refuse_two_ways(inputs, ways);
  inputs.sides = ways.front();
  if (inputs.w) check_weights(inputs);
  return inputs;
}

ElementType type_of(const SolveInputs& inputs, std::optional<ElementType> precision) {
  const ElementType a = inputs.a->source().type, b = inputs.b->source().type;
  const bool is_single = real_of(a) == ElementType::float32 && real_of(b) == ElementType::float32;
  const ElementType type =
      precision.value_or(is_single ? ElementType::float32 : ElementType::float64);
  return is_complex(a) ? complex_of(type) : type;
}

SolveProblem solve_problem(const SolveInputs& inputs, const SystemOptions& options,
                           ElementType type) {
  const double tolerance =
      options.rank_tolerance.value_or(default_rank_tolerance(type, inputs.n()));
  return {.type = type,
          .m = inputs.m(),
          .n = inputs.n(),
          .rank = {.tolerance = tolerance},
          .ridge = std::ldexp(options.ridge.value_or(0), -inputs.weight_exponent),
          .has_intercept = options.intercept,
          .has_weights = inputs.w != nullptr,
          .weighs_each = inputs.w != nullptr && !inputs.w_is_shared,
          .skips_missing = options.skips_missing.value_or(false),
          .state_rows = inputs.before ? inputs.before->rows : 0,
          .takes_few_rows = options.least_norm};
}

}  // namespace qrtool
