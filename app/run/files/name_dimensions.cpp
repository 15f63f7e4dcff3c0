// SPDX-License-Identifier: Apache-2.0
// name_dimensions.cpp: finds which dimension of an output is which of the input.
#include "app/run/files/name_dimensions.hpp"

#include <algorithm>
#include <set>
#include <span>
#include <string>

#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

constexpr const char* factor_name = "factor";
constexpr const char* coefficient_name = "coefficient";

/// Whether all have names that may stand in the root of an output, each once.
bool can_be_named(const std::vector<Dimension>& dimensions) {
  std::set<std::string> names{
      "Q",         "R",      "P",          "V",      "tau",       "Tau",
      "X",         "se",     "covariance", "report", factor_name, coefficient_name,
      "q",         "r",      "v",          "x",      ".",         "",
      "residuals", "fitted", "leverage"};
  return !dimensions.empty() &&
         std::all_of(dimensions.begin(), dimensions.end(), [&](const Dimension& dimension) {
           return dimension.name.find('/') == std::string::npos &&
                  names.insert(dimension.name).second;
         });
}

std::vector<std::string> names_of(std::span<const Dimension> dimensions) {
  std::vector<std::string> names;
  for (const Dimension& dimension : dimensions) names.push_back(dimension.name);
  return names;
}

}  // namespace

void name_dimensions_of_factors(const Source& source, OutputSpec& spec) {
  const std::vector<Dimension>& all = source.dimensions;
  const std::size_t leading = source.leading.size();
  if (all.size() != leading + 2 || !can_be_named(all)) return;
  spec.dimensions = all;
  spec.leading_dimensions = names_of(std::span(all).first(leading));
  index_t factors = 0;
  for (MatrixDataset& dataset : spec.datasets) {
    const std::string &rows = all[leading].name, &columns = all[leading + 1].name;
    dataset.dimensions = spec.leading_dimensions;
    if (dataset.name == "Q" || dataset.name == "V") dataset.dimensions.push_back(rows);
    if (dataset.name == "R") {
      dataset.dimensions.push_back(factor_name);
      factors = dataset.rows;
    }
    if (dataset.name == "tau") factors = dataset.cols;
    const bool is_across = dataset.name == "Q" || dataset.name == "tau";
    dataset.dimensions.push_back(is_across ? factor_name : columns);
  }
  spec.dimensions.push_back({.name = factor_name, .extent = factors});
}

void name_dimensions_of_solutions(const Source& b, const RightSides& sides,
                                  const std::vector<std::string>& terms, OutputSpec& spec) {
  std::vector<Dimension> all = b.dimensions;
  if (all.size() != sides.x_dims.size() || !can_be_named(all)) return;
  const std::size_t last = all.size() - 1;
  const std::size_t rows = sides.rows == RowsOfB::first ? 0
                           : sides.as_rows || last == 0 ? last
                                                        : last - 1;
  all[rows] = {.name = coefficient_name, .extent = sides.x_dims[rows]};
  if (std::ssize(terms) == all[rows].extent) all[rows].labels = terms;
  for (std::size_t d = 0; d < all.size(); ++d)
    if (all[d].extent != sides.x_dims[d]) return;  // B is repeated for several A
  const std::vector<std::string> names_of_b = names_of(b.dimensions);
  const std::vector<std::string> names = names_of(all);
  std::vector<std::string> of_solutions = names;
  of_solutions.erase(of_solutions.begin() + static_cast<std::ptrdiff_t>(rows));
  spec.dimensions = all;
  for (MatrixDataset& dataset : spec.datasets) {
    if (dataset.name == "X" || dataset.name == "se") dataset.dimensions = names;
    if (!is_fit(dataset.name) || dataset.name == "leverage") continue;
    dataset.dimensions = names_of_b;
    if (spec.dimensions.size() == all.size()) spec.dimensions.push_back(b.dimensions[rows]);
  }
  for (NumberDataset& numbers : spec.numbers)
    if (numbers.dims == sides.solution_dims) numbers.dimensions = of_solutions;
}

}  // namespace qrtool
