// SPDX-License-Identifier: Apache-2.0
// keyed_input.cpp: finds the columns of the table, and takes its rows.
#include "app/solve/groups/keyed_input.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "app/solve/solve_inputs.hpp"
#include "core/error.hpp"
#include "core/host.hpp"
#include "core/text.hpp"
#include "io/csv/columns.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/scratch_file.hpp"

namespace qrtool {
namespace {

class Reading final : public KeyedRows {
 public:
  Reading(const SolveOptions& o, const Limits& limits, KeepRows keep, KeyedInput& input)
      : o_(o), limits_(limits), keep_(keep), input_(input) {}

  void begin(const Table& table) override;
  void add(std::span<const std::string> keys, std::span<const double> numbers) override;

 private:
  void name_columns(const Table& table, const TableRoles& roles);
  void require_weight(double weight) const;
  void require_room_for_keys();

  const SolveOptions& o_;
  const Limits& limits_;
  KeepRows keep_;
  KeyedInput& input_;
  index_t row_ = 0;
};

void Reading::begin(const Table& table) {
  Source source{.file = o_.a == "-" ? std::string(standard_input) : o_.a,
                .dataset = {},
                .leading = {},
                .n = std::ssize(table.read_columns()),
                .stored_type = {},
                .table = table};
  const TableRoles roles = roles_of(source, o_.system);
  if (roles.weights.empty() && !o_.system.weights.empty())
    throw InputError(fmt::format("{}: there is no column {} of weights", escape(source.file),
                                 escape(o_.system.weights)),
                     "with --by, --weights names a column of the table");
  GroupSystem& system = input_.system;
  const index_t terms = std::ssize(roles.others) + (o_.system.intercept ? 1 : 0);
  system.file = source.file;
  system.others = roles.others;
  system.responses = roles.responses;
  system.weights = roles.weights.empty() ? -1 : roles.weights.front();
  system.skips_missing = o_.system.skips_missing.value_or(false);
  const double ridge = o_.system.ridge.value_or(0);
  system.problem = {.n = terms,
                    .rank = {.tolerance = o_.system.rank_tolerance.value_or(
                                 default_rank_tolerance(ElementType::float64, terms)),
                             .is_basic = o_.basic},
                    .ridge = ridge,
                    .has_intercept = o_.system.intercept,
                    .has_weights = system.weights >= 0,
                    .wants_se = !o_.no_se && ridge == 0,
                    .takes_few_rows = o_.system.least_norm};
  name_columns(table, roles);
  if (keep_ == KeepRows::store)
    input_.rows.emplace(source.n, limits_.host_bytes / 2,
                        o_.scratch.empty() ? default_scratch() : o_.scratch);
}

/// Names the columns of the output. Errors: InputError where two would have one name.
void Reading::name_columns(const Table& table, const TableRoles& roles) {
  const std::string place = escape(input_.system.file) + ": ";
  const std::vector<std::string> labels = table.labels();
  const std::vector<index_t> read = table.read_columns();
  const auto label = [&](index_t at) {
    return labels[static_cast<std::size_t>(read[static_cast<std::size_t>(at)])];
  };
  GroupTableSpec& names = input_.table;
  names = {.path = o_.output,
           .force = o_.force,
           .has_responses = roles.responses.size() > 1,
           .has_se = input_.system.problem.wants_se};
  for (const index_t column : choose_columns({"--by", o_.by}, table, place))
    names.keys.push_back(labels[static_cast<std::size_t>(column)]);
  if (o_.system.intercept) names.terms.emplace_back("(intercept)");
  for (const index_t at : roles.others) names.terms.push_back(label(at));
  for (const index_t at : roles.responses) input_.responses.push_back(label(at));
  std::set<std::string> seen;
  for (const std::string& name : columns_of(names))
    if (!seen.insert(name).second)
      throw InputError(
          fmt::format("{}two columns of the output would have the name {}", place, escape(name)),
          fmt::format("give the column {} of the table another name, or leave it out with "
                      "--columns",
                      escape(name)));
}

void Reading::add(std::span<const std::string> keys, std::span<const double> numbers) {
  const GroupSystem& system = input_.system;
  if (system.weights >= 0) require_weight(numbers[static_cast<std::size_t>(system.weights)]);
  ++row_;
  const index_t group = input_.keys.group_of(keys);
  if (group == std::ssize(input_.counts)) {
    input_.counts.push_back(0);
    require_room_for_keys();
  }
  bool counts = false;
  for (index_t r = 0; r < system.count_responses() && !counts; ++r)
    counts = system.counts(numbers.data(), r);
  if (!counts) return;
  ++input_.counts[static_cast<std::size_t>(group)];
  if (input_.rows) input_.rows->add(group, numbers);
}

void Reading::require_weight(double weight) const {
  if (weight >= 0 && std::isfinite(weight)) return;
  throw InputError(fmt::format("{}: weight {} is {}; weights are finite and not negative",
                               escape(input_.system.file), row_, weight),
                   "a weight of 0 leaves its row out");
}

void Reading::require_room_for_keys() {
  const std::size_t bytes = input_.key_bytes();
  if (bytes <= limits_.host_bytes / 4) return;
  throw LimitError(fmt::format("{}: the keys of {} groups take {} of memory; a quarter of the {} "
                               "is theirs",
                               escape(input_.system.file), format_count(input_.keys.groups()),
                               format_bytes(bytes), format_bytes(limits_.host_bytes)),
                   hint_of_memory(8 * bytes));
}

}  // namespace

KeyedInput read_keyed_input(const SolveOptions& o, const Limits& limits, KeepRows keep) {
  KeyedInput input;
  Reading reading(o, limits, keep, input);
  input.source = read_keyed_rows({.path = o.a, .dataset = {}, .scratch = o.scratch, .csv = o.csv},
                                 o.by, reading);
  if (input.rows) input.rows->finish(input.counts);
  return input;
}

}  // namespace qrtool
