// SPDX-License-Identifier: Apache-2.0
// window_output.hpp: what is found for every row of a table: lines of text beside its keys, or
// arrays.
#pragma once

#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/options/options.hpp"
#include "app/solve/groups/keyed_input.hpp"
#include "app/solve/windows/window_results.hpp"
#include "io/csv/row_columns.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Writes windows in the order of the table's rows. Errors: OutputError.
class WindowOutput {
 public:
  /// `input` must outlive the object.
  WindowOutput(const SolveOptions& o, const KeyedInput& input, const Limits& limits);

  /// Adds the window of the next row. `results` says where its parts are.
  void add(const WindowResults& results, const double* window);
  /// Gives all files their names together.
  void commit();
  /// Returns the names of all files.
  std::vector<std::string> paths() const;
  std::size_t memory_bytes() const;

 private:
  OutputSpec arrays() const;
  void add_line(const WindowResults& results, const double* window);
  void write_arrays();
  template <class Field>
  void write_column(const char* name, Field field);

  const SolveOptions& o_;
  const KeyedInput& input_;
  int threads_;
  // Text.
  std::optional<GroupTable> table_;
  std::list<RowColumns> columns_;
  // Arrays, and the numbers of some rows that are not yet in them.
  std::unique_ptr<Writer> writer_;
  index_t written_ = 0;  // rows
  std::vector<double> x_, se_;
  std::vector<WindowLine> lines_;
};

}  // namespace qrtool
