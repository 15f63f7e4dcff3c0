// SPDX-License-Identifier: Apache-2.0
// factor_fixture.hpp: runs `qrtool factor` and reads what it wrote.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "io/hdf5/structure/file.hpp"
#include "io/open/factors.hpp"
#include "tests/support/run_tool.hpp"

namespace qrtool::test {

using Strings = std::vector<std::string>;

inline Strings operator+(Strings a, const Strings& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

class Factor : public testing::Test {
 protected:
  /// Writes `count` matrices of a kind to `name`.
  template <class T>
  std::string make(const std::string& name, index_t count, index_t m, index_t n,
                   const char* kind = "gauss") {
    write_matrices<T>(dir_ / name, {count}, make_matrices<T>(kind, count, m, n).view());
    return dir_ / name;
  }

  /// Factors into `name` and expects success. The order is stated: a square matrix has no note.
  std::string factor(const std::string& input, const std::string& name, const Strings& more = {}) {
    const Strings options{"factor", input, dir_ / name, "--force", "--order", "row"};
    const ToolResult result = run_tool(options + more);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_EQ(result.err, "");
    return dir_ / name;
  }

  TemporaryDirectory dir_;
};

/// Whether the matrices first_a .. of a and first_b .. of b have the same bits.
inline bool same_bits(const Stored& a, index_t first_a, const Stored& b, index_t first_b,
                      index_t count) {
  const BatchView<double> x = a.view(), y = b.view();
  return x.rows == y.rows && x.cols == y.cols &&
         std::memcmp(x[first_a].data, y[first_b].data,
                     static_cast<std::size_t>(count * x.rows * x.cols) * sizeof(double)) == 0;
}
inline bool same_bits(const Stored& a, const Stored& b) {
  return a.view().count == b.view().count && same_bits(a, 0, b, 0, a.view().count);
}

/// A dataset of /report.
inline std::vector<double> read_report(const std::string& file, const std::string& name) {
  const hdf5::Session session;
  const hdf5::Handle opened(H5Fopen(file.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  const hdf5::Handle dataset(H5Dopen2(opened, ("/report/" + name).c_str(), H5P_DEFAULT), H5Dclose);
  const hdf5::Handle space(H5Dget_space(dataset), H5Sclose), type(H5Dget_type(dataset), H5Tclose);
  const auto size = static_cast<std::size_t>(H5Sget_simple_extent_npoints(space));
  std::vector<double> values(size);
  std::vector<std::uint8_t> bytes(size);
  const bool is_enum = H5Tget_class(type) == H5T_ENUM;
  void* to = is_enum ? static_cast<void*>(bytes.data()) : values.data();
  H5Dread(dataset, is_enum ? hid_t{type} : H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, to);
  if (is_enum) values.assign(bytes.begin(), bytes.end());
  return values;
}

inline std::string read_attribute(const std::string& file, const std::string& name) {
  return recorded_attributes(file, {name.c_str()}).front();
}

}  // namespace qrtool::test
