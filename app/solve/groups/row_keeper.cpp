// SPDX-License-Identifier: Apache-2.0
// row_keeper.cpp: the problem of a group from the options, and the rows that count.
#include <fmt/format.h>

#include <cmath>
#include <set>
#include <utility>

#include "app/solve/groups/keyed_input.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/file/scratch_file.hpp"

namespace qrtool {

void RowKeeper::prepare(const TableRoles& roles, index_t width) {
  GroupSystem& system = input_.system;
  const index_t terms = std::ssize(roles.others) + (o_.system.intercept ? 1 : 0);
  system.file = input_.source.file;
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
  if (o_.window.are_given()) complete_window();
  if (o_.residuals || o_.fitted || o_.leverage || o_.window.are_given()) system.row = width++;
  if (keep_ == KeepRows::store)
    input_.rows.emplace(width, limits_.host_bytes / 2,
                        o_.scratch.empty() ? default_scratch() : o_.scratch);
}

void RowKeeper::complete_window() {
  const index_t terms = input_.system.terms();
  WindowOptions& window = input_.system.window = o_.window;
  if (window.least == 0) window.least = window.expands ? terms : window.rows;
  if (window.least >= terms) return;
  throw UsageError(
      fmt::format("{}: {} {} is fewer rows than the {} columns of A", escape(input_.source.file),
                  o_.window.least > 0 ? "--min-rows" : "--window", window.least, terms),
      fmt::format("give {} or more", terms + 1));
}

void RowKeeper::name(std::vector<std::string> keys, const std::vector<std::string>& terms,
                     std::vector<std::string> responses) {
  GroupTableSpec& names = input_.table;
  names = {.path = o_.output,
           .force = o_.force,
           .keys = std::move(keys),
           .has_responses = responses.size() > 1,
           .has_se = input_.system.problem.wants_se};
  if (o_.system.intercept) names.terms.emplace_back("(intercept)");
  names.terms.insert(names.terms.end(), terms.begin(), terms.end());
  input_.responses = std::move(responses);
  std::set<std::string> seen;
  for (const std::string& column : columns_of(names))
    if (!seen.insert(column).second)
      throw InputError(
          fmt::format("{}: two columns of the output would have the name {}",
                      escape(input_.source.file), escape(column)),
          fmt::format("give the column {} of the table another name, or leave it out with "
                      "--columns",
                      escape(column)));
}

void RowKeeper::add(std::span<const std::string> keys, std::span<const double> numbers) {
  const GroupSystem& system = input_.system;
  if (system.weights >= 0) require_weight(numbers[static_cast<std::size_t>(system.weights)]);
  const index_t group = input_.keys.group_of(keys);
  if (group == std::ssize(input_.counts)) {
    input_.counts.push_back(0);
    require_room_for_keys();
  }
  bool counts = false;
  for (index_t r = 0; r < system.count_responses() && !counts; ++r)
    counts = system.counts(numbers.data(), r);
  // A row without a right side has a fitted value, and every row has a window.
  counts = counts || system.window.are_given() || (system.row >= 0 && system.has_a(numbers.data()));
  const index_t row = row_++;
  if (!counts) return;
  ++input_.counts[static_cast<std::size_t>(group)];
  if (!input_.rows) return;
  if (system.row < 0) return input_.rows->add(group, numbers);
  numbered_.assign(numbers.begin(), numbers.end());
  numbered_.push_back(static_cast<double>(row));
  input_.rows->add(group, numbered_);
}

void RowKeeper::require_weight(double weight) const {
  if (weight >= 0 && std::isfinite(weight)) return;
  throw InputError(fmt::format("{}: weight {} is {}; weights are finite and not negative",
                               escape(input_.source.file), row_, weight),
                   "a weight of 0 leaves its row out");
}

void RowKeeper::require_room_for_keys() const {
  const std::size_t bytes = input_.key_bytes();
  if (bytes <= limits_.host_bytes / 4) return;
  throw LimitError(fmt::format("{}: the keys of {} groups take {} of memory; a quarter of the {} "
                               "is theirs",
                               escape(input_.source.file), format_count(input_.keys.groups()),
                               format_bytes(bytes), format_bytes(limits_.host_bytes)),
                   hint_of_memory(8 * bytes));
}

}  // namespace qrtool
