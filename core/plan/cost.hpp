// SPDX-License-Identifier: Apache-2.0
// cost.hpp: how long work takes on one device, from measured samples.
//
// A sample is a shape with the times of batches of it, from one matrix to a batch that fills the
// device. Times grow as powers of the matrices, the rows and the columns between samples: straight
// lines between the logarithms. Larger batches take as long as they have more matrices, and larger
// shapes as long as they have more operations. Where a time jumps, from 16 columns to 17 say, both
// sides are samples. Samples form a grid of rows and columns; others, for shapes where it is wrong,
// are for their shape alone.
//
//     log seconds
//        |             /
//        |          . '      in proportion to the matrices
//        |   . - '
//        | '
//        +---|------|------- log matrices
//        1         the largest batch of the sample
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/problem/problem.hpp"

namespace qrtool {

/// The seconds in which a batch of `count` matrices of one shape was factored, without copies and
/// without the check.
struct BatchTime {
  index_t count = 0;
  double seconds = 0;
};

/// Samples of one device. The name of a sample says what was measured: a variant, a way to solve
/// systems, or a whole run.
class CostTable {
 public:
  /// grid: a sample serves shapes between it and its neighbours; shape: its own alone.
  enum class Reach { grid, shape };

  /// A table without samples.
  explicit CostTable(std::string device) : device_(std::move(device)) {}

  /// Reads what text() gives. Errors: InputError, which names `shown` and the line.
  static CostTable from_text(std::string_view text, const std::string& shown);
  /// Views a table that is compiled in, which lives as long as the program: text() of another one,
  /// and its digest. Its lines are read when a plan asks for them, a few of thousands.
  static CostTable view(std::string_view text, std::string_view digest);
  /// Returns the table as text: a line with the device, a line with the names of the columns, and a
  /// line for each sample, with times in microseconds of four digits.
  std::string text() const;

  /// The device that was measured.
  const std::string& device() const { return device_; }

  /// Adds a sample to a table that is not compiled in, or replaces the one of the same shape and
  /// reach. The counts of `times` grow, and begin with one matrix where a batch has several. Times
  /// are rounded as in text().
  void add(std::string_view name, const Problem& shape, const std::vector<BatchTime>& times,
           Reach reach = Reach::grid);

  /// Whether there is a sample of this shape, type and mode, whatever the number of matrices.
  bool has(std::string_view name, const Problem& problem) const;

  /// Returns the estimated seconds of a problem, without copies and check. Where R alone has no
  /// samples, those of Q and R serve it. Infinity: there are none of this type and name.
  double seconds(std::string_view name, const Problem& problem) const;

  /// Returns the seconds of the nearest sample of the type and mode, in proportion to the
  /// operations: for samples that are too few for a grid. Infinity where there is none.
  double nearest_seconds(std::string_view name, const Problem& problem) const;

  /// Returns 16 hexadecimal digits that two tables share only where they have the same text.
  std::string digest() const;

 private:
  void add(std::string_view line);
  std::string_view lines() const { return compiled_.empty() ? own_ : compiled_; }

  std::string device_, own_;            // lines, sorted by what they are samples of
  std::string_view compiled_, digest_;  // in place of own_
};

}  // namespace qrtool
