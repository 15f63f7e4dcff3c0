// SPDX-License-Identifier: Apache-2.0
// group_table.hpp: the solutions of many groups of a table as one table, a row for each group.
//
//   day,n,(intercept),x,se_(intercept),se_x,rank,r2,condition,status
//   2026-01-05,98,1.02,0.51,0.11,0.02,2,0.93,3.1,ok
#pragma once

#include <list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/batch.hpp"
#include "io/csv/row_columns.hpp"
#include "io/file/text_output.hpp"

namespace qrtool {

/// Which columns the table has, and their names.
struct GroupTableSpec {
  std::string path;  // "-" is standard output
  bool force = false;
  std::vector<std::string> keys = {}, terms = {};
  bool has_responses = false;  // there are several, and a column says which
  bool has_se = false;
};

/// Whether an output of this name is such a table.
bool is_group_table(const std::string& path);

/// Returns the names of all columns.
std::vector<std::string> columns_of(const GroupTableSpec& spec);

/// Returns the statuses in such a table, `ok` for `singular`; none if the file is not one. Errors:
/// InputError if it cannot be read.
std::vector<std::string> statuses_of_groups(const std::string& path);

struct GroupRow {
  std::vector<std::string_view> keys;
  std::string_view response = {};
  index_t rows = 0;
  std::span<const double> x = {}, se = {};  // a number for each term
  index_t rank = -1;                        // below 0: not known
  double r2 = 0, condition = 0;
  std::string_view status = {};
};

/// Writes the table. Errors: OutputError.
class GroupTable {
 public:
  explicit GroupTable(GroupTableSpec spec);
  void add(const GroupRow& row);
  /// Gives the table and the numbers of its rows their names together.
  void commit(std::list<RowColumns>& rows);
  const std::string& path() const { return output_.path(); }

 private:
  GroupTableSpec spec_;
  char separator_;
  TextOutput output_;
};

}  // namespace qrtool
