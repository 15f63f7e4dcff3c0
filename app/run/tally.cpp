// SPDX-License-Identifier: Apache-2.0
// tally.cpp: adds up the report of a batch.
#include "app/run/tally.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "app/run/join.hpp"

namespace qrtool {

using Json = nlohmann::ordered_json;

std::string matrix_name(std::span<const index_t> leading, index_t matrix) {
  if (leading.size() < 2) return fmt::format("{}", matrix);
  std::vector<index_t> position(leading.size());
  for (std::size_t d = leading.size(); d-- > 0; matrix /= leading[d])
    position[d] = matrix % leading[d];
  return fmt::format("[{}]", join(position, ","));
}

void Worst::add(double measured, double bar, index_t b) {
  // An error of 0 against a bar of 0 (a matrix without columns) is as good as it gets.
  const double measured_ratio = measured == 0 ? 0 : measured / bar;
  if (matrix >= 0 && measured_ratio <= ratio) return;
  if (matrix >= 0 && std::isnan(ratio)) return;
  *this = {measured, measured_ratio, b};
}

void Tally::add(index_t matrix, Status status, const Errors& errors, const Bars& bars) {
  const auto s = static_cast<std::size_t>(status);
  ++matrices_;
  if (counts_[s]++ == 0) firsts_[s] = matrix;
  if (status != Status::ok && status != Status::above_bar) return;
  residual_.add(errors.residual, bars.residual, matrix);
  if (has_q_) orthogonality_.add(errors.orthogonality, bars.orthogonality, matrix);
  lower_.add(errors.lower, bars.lower, matrix);
}

index_t Tally::failed() const {
  return count(Status::above_bar) + count(Status::non_finite) + count(Status::r_overflows);
}

std::string Tally::worst_line(std::span<const index_t> leading) const {
  if (residual_.matrix < 0) return {};
  const auto one = [&](std::string_view name, const Worst& worst, std::string_view of_its_bar) {
    std::string text = fmt::format("{} {:.2g}", name, worst.error);
    if (worst.error != 0)
      text += fmt::format(" ({:.2g}{}, matrix {})", worst.ratio, of_its_bar,
                          matrix_name(leading, worst.matrix));
    return text;
  };
  std::string line = "worst " + one("residual", residual_, " of its bar");
  if (has_q_) line += ", " + one("orthogonality", orthogonality_, "");
  return line + ", " + one("lower", lower_, "");
}

Json Tally::to_json() const {
  const auto one = [](const Worst& worst) -> Json {
    if (worst.matrix < 0) return nullptr;
    return {{"error", worst.error}, {"ratio", worst.ratio}, {"matrix", worst.matrix}};
  };
  return {{"matrices", matrices_},
          {"passed", count(Status::ok)},
          {"failed", failed()},
          {"status",
           {{"ok", count(Status::ok)},
            {"above_bar", count(Status::above_bar)},
            {"non_finite", count(Status::non_finite)},
            {"r_overflows", count(Status::r_overflows)},
            {"unchecked", count(Status::unchecked)}}},
          {"worst",
           {{"residual", one(residual_)},
            {"orthogonality", one(orthogonality_)},
            {"lower", one(lower_)}}}};
}

}  // namespace qrtool
