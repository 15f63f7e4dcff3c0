// SPDX-License-Identifier: Apache-2.0
// solve_columns.cpp: the words of the report of solutions.
#include "app/solve/solve_columns.hpp"

#include <utility>

namespace qrtool {
namespace {

using Kind = NumberDataset::Kind;

constexpr const char* error_bar =
    "u min(max(m, 16), 30 min(m, n)), where m is the rows of A, and n more with a ridge";

/// Returns r_squared and, if fits are written, orthogonality.
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

MatrixDataset dataset_of(const char* name, const char* description, const SolveInputs& inputs) {
  MatrixDataset dataset = array_dataset(name, inputs.fits.type, inputs.sides.fit_dims);
  dataset.description = description;
  return dataset;
}

}  // namespace

std::vector<MatrixDataset> fit_datasets(const SolveInputs& inputs) {
  std::vector<MatrixDataset> datasets;
  if (inputs.fits.residuals)
    datasets.push_back(
        dataset_of("residuals", "b - A x; NaN where a row is missing or x is NaN", inputs));
  if (inputs.fits.fitted)
    datasets.push_back(
        dataset_of("fitted", "A x; NaN where a row of A is missing or x is NaN", inputs));
  return datasets;
}

std::vector<NumberDataset> solve_columns(const SolveColumns& columns) {
  const Dims &of_x = columns.of_solutions, &of_a = columns.of_matrices;
  std::vector<NumberDataset> all{
      {.name = "residual_norm",
       .kind = Kind::real,
       .dims = of_x,
       .description = "norm of the residual, measured with the stored x",
       .formula = "||b - A x||",
       .unit = "that of b"},
      {.name = "backward_error",
       .kind = Kind::real,
       .dims = of_x,
       .description = "the least relative change of A and b for which x is the exact solution: an "
                      "upper bound where that is at most half of the bar, else the smaller of the "
                      "bound and Karlson and Walden's estimate, which is at most sqrt(2) too small",
       .formula =
           "min(||g|| / (a ||r||), e ||R^-T g|| / ||r||, e), else Karlson-Walden; S = A D^-1 "
           "= Q R, D: the norms of A's columns, rounded up to powers of two; r = b - A x, g = "
           "S'r, a = ||S||, e = ||r|| / hypot(a ||D x||, ||b||)",
       .bar_formula = error_bar,
       .bar = columns.bar},
      {.name = "least_norm_error",
       .kind = Kind::real,
       .dims = of_x,
       .description = "the part of x outside of the row space of A; NaN with full column rank",
       .formula = "min over w of ||D^-1 (x - A'w)|| / (a ||w||)",
       .bar_formula = error_bar,
       .bar = columns.bar},
      {.name = "status",
       .kind = Kind::status,
       .dims = of_x,
       .description = "0 ok, 1 above the bar, 2 A or b not finite, 3 x exceeds its type, 4 not "
                      "checked, 5 too few rows for x, which is NaN",
       .formula = "ok where backward_error and least_norm_error are within their bars, and with an "
                  "intercept R^2 is not below 0",
       .unit = "enumeration"},
      {.name = "tries",
       .kind = Kind::byte,
       .dims = of_x,
       .description = "2 where a second try by reflectors made x, 1 elsewhere",
       .formula = "number of tries"},
      {.name = "degrees_of_freedom",
       .kind = Kind::real,
       .dims = of_x,
       .description = "rows that count, less the rank; NaN with a ridge, with too few rows, and "
                      "where A or b is not finite",
       .formula = "rows with a weight and without NaN - rank"},
      {.name = "rank",
       .kind = Kind::whole,
       .dims = of_a,
       .description = "numerical rank; -1 where A is not finite, or has too few rows",
       .formula = "the number of |s_ii| > rank_tolerance |s_11|, S: pivoted R with columns scaled "
                  "to norm 1"},
      {.name = "condition",
       .kind = Kind::real,
       .dims = of_a,
       .description = "estimate of the condition number of A",
       .formula = "sigma_1 / sigma_n"},
      {.name = "scaled_condition",
       .kind = Kind::real,
       .dims = of_a,
       .description = "the same for A with its columns scaled to norm 1",
       .formula = "sigma_1 / sigma_n"}};
  for (NumberDataset& column : fit_columns(of_x, columns.fits, columns.fit_bar))
    all.push_back(std::move(column));
  return all;
}

}  // namespace qrtool
