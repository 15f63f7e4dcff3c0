// SPDX-License-Identifier: Apache-2.0
// missing_code.cpp: the ends of the numbers of a column, and the gap before them.
#include "io/csv/parser/missing_code.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace qrtool {
namespace {

/// Whether a number is -99, 999, -9999, 99.9, -999.9, ...: two to five nines before the point, and
/// at most two behind it.
bool is_of_nines(double number) {
  for (const double power : {1e2, 1e3, 1e4, 1e5})
    for (const double step : {1.0, 0.1, 0.01})
      if (std::abs(std::abs(number) - (power - step)) < 1e-9) return true;
  return false;
}

}  // namespace

void MissingCode::End::add(double number) {
  if (std::isnan(number)) return;
  if (count > 0 && number == most) return void(++count);
  if (count == 0 || number > most) {
    if (count > 0) next = most;
    others += count;
    most = number;
    count = 1;
    return;
  }
  next = std::max(next, number);
  ++others;
}

std::optional<MissingCode::Found> MissingCode::find() const {
  constexpr index_t least_others = 2;
  for (const bool is_low : {true, false}) {
    const End &end = is_low ? lowest_ : highest_, &opposite = is_low ? highest_ : lowest_;
    const double range = opposite.most + end.next;  // of all others
    if (end.others + between_ >= least_others && is_of_nines(end.most) &&
        end.most - end.next > range)
      return Found{is_low ? -end.most : end.most, end.count};
  }
  return std::nullopt;
}

}  // namespace qrtool
