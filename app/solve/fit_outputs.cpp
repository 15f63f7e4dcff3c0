// SPDX-License-Identifier: Apache-2.0
// fit_outputs.cpp: shapes and words of fits.
#include "app/solve/fit_outputs.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "app/run/verdict/verdict_text.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

MatrixDataset dataset_of(const char* name, const char* description, const SolveInputs& inputs) {
  Dims leading = inputs.sides.fit_dims;
  MatrixDataset dataset{
      .name = name, .type = inputs.fits.type, .rows = 1, .description = description};
  dataset.cols = leading.back();
  leading.pop_back();
  if (leading.empty()) {
    dataset.is_vector = true;
  } else {
    dataset.rows = leading.back();
    leading.pop_back();
  }
  dataset.leading = leading;
  return dataset;
}

}  // namespace

std::vector<MatrixDataset> fit_datasets(const SolveInputs& inputs) {
  std::vector<MatrixDataset> datasets;
  if (inputs.fits.residuals)
    datasets.push_back(
        dataset_of("residuals", "b - A x; NaN where a row is missing or x is NaN", inputs));
  if (inputs.fits.fitted)
    datasets.push_back(dataset_of("fitted", "A x; NaN where a row is missing or x is NaN", inputs));
  return datasets;
}

std::vector<NumberDataset> fit_columns(const Dims& of_solutions, const FitWishes& wishes,
                                       double bar) {
  std::vector<NumberDataset> columns{
      {.name = "r_squared",
       .kind = NumberKind::real,
       .dims = of_solutions,
       .description = "the part of b's variation that A x explains: about the weighted mean with "
                      "an intercept, about 0 else; NaN for a constant b",
       .formula = "1 - residual_norm^2 / sum w (b - c)^2, where c is sum w b / sum w with an "
                  "intercept, and 0 else"}};
  if (wishes.any())
    columns.push_back(
        {.name = "orthogonality",
         .kind = NumberKind::real,
         .dims = of_solutions,
         .description =
             "of A and the residuals as they are written; larger than the bar only where "
             "backward_error takes Karlson and Walden's estimate or R^-T g, and the "
             "residuals are those of which it does",
         .formula =
             "min(||D^-1 A'W r|| / (a ||r||), ||r|| / hypot(a ||D x||, ||b||)); a = ||W^1/2 A "
             "D^-1||, D: the norms of its columns, to a factor of 2; norms of r and b "
             "weighted by W; a ridge adds its rows to A and r",
         .bar_formula = "u min(max(m, 16), 30 min(m, n)), where m is the rows of A, and n more "
                        "with a ridge; u of the coarser of X and b",
         .bar = bar});
  return columns;
}

void FitVerdict::add(index_t first, std::span<const FitReport> fits) {
  for (const FitReport& fit : fits) {
    // NaN is neither less nor more.
    if (!(fit.r_squared >= least_) && !std::isnan(fit.r_squared)) least_ = fit.r_squared;
    if (!(fit.r_squared <= greatest_) && !std::isnan(fit.r_squared)) greatest_ = fit.r_squared;
    if (!(fit.orthogonality <= worst_) && !std::isnan(fit.orthogonality)) {
      worst_ = fit.orthogonality;
      worst_solution_ = first;
    }
    ++first;
  }
}

std::string fit_text(const FitVerdict& fits, double bar, std::span<const index_t> dims,
                     bool tells_r_squared) {
  std::string text;
  if (tells_r_squared && !std::isnan(fits.least()))
    text += fits.least() == fits.greatest()
                ? fmt::format("R^2 {:.6g}\n", fits.least())
                : fmt::format("R^2 {:.6g} to {:.6g}\n", fits.least(), fits.greatest());
  if (fits.worst_solution() >= 0)
    text += fmt::format(
        "residuals orthogonal to A: {:.2g} at the worst ({:.2g} of the bar, "
        "solution {})\n",
        fits.worst(), in_bars(fits.worst(), bar), matrix_name(dims, fits.worst_solution()));
  return text;
}

nlohmann::ordered_json to_json(const FitVerdict& fits) {
  // NaN becomes null.
  nlohmann::ordered_json json{{"r_squared", nullptr}, {"orthogonality", nullptr}};
  if (!std::isnan(fits.least()))
    json["r_squared"] = {{"least", fits.least()}, {"greatest", fits.greatest()}};
  if (fits.worst_solution() >= 0)
    json["orthogonality"] = {{"worst", fits.worst()}, {"solution", fits.worst_solution()}};
  return json;
}

}  // namespace qrtool
