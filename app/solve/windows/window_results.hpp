// SPDX-License-Identifier: Apache-2.0
// window_results.hpp: the results for some rows of a table as plain numbers, which can go to a
// scratch file and back.
#pragma once

#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "app/solve/groups/group_system.hpp"

namespace qrtool {

/// The results for one response of one window, beside x and its standard errors.
struct WindowLine {
  GroupLine line;
  double fitted = not_measured, residual = not_measured;  // of the last row
};
static_assert(std::is_trivially_copyable_v<WindowLine> && sizeof(WindowLine) % sizeof(double) == 0);

/// The results of windows: for each its group, and for each response x, standard errors and a line.
class WindowResults {
 public:
  WindowResults(index_t responses, index_t terms) : responses_(responses), terms_(terms) {}

  /// Returns the numbers of one window.
  index_t width() const { return 1 + responses_ * of_response(); }
  void resize(index_t windows) {
    rows.resize(static_cast<std::size_t>(windows));
    numbers.resize(static_cast<std::size_t>(windows * width()));
  }
  /// Return the parts of a window's numbers.
  static index_t group_of(const double* window) { return static_cast<index_t>(window[0]); }
  std::span<const double> x(const double* window, index_t response) const {
    return {window + 1 + response * of_response(), static_cast<std::size_t>(terms_)};
  }
  std::span<const double> se(const double* window, index_t response) const {
    return {x(window, response).data() + terms_, static_cast<std::size_t>(terms_)};
  }
  WindowLine line(const double* window, index_t response) const {
    WindowLine line;
    std::memcpy(static_cast<void*>(&line), se(window, response).data() + terms_, sizeof(line));
    return line;
  }
  void set(double* window, index_t response, const double* x, const double* se,
           const WindowLine& line) const {
    double* const to = window + 1 + response * of_response();
    std::memcpy(to, x, static_cast<std::size_t>(terms_) * sizeof(double));
    std::memcpy(to + terms_, se, static_cast<std::size_t>(terms_) * sizeof(double));
    std::memcpy(to + 2 * terms_, &line, sizeof(line));
  }
  double* window(index_t number) { return numbers.data() + number * width(); }
  const double* window(index_t number) const { return numbers.data() + number * width(); }

  std::vector<index_t> rows;    // of the table, at which the windows end
  std::vector<double> numbers;  // width() for each

 private:
  index_t of_response() const {
    return 2 * terms_ + static_cast<index_t>(sizeof(WindowLine) / sizeof(double));
  }
  index_t responses_, terms_;
};

}  // namespace qrtool
