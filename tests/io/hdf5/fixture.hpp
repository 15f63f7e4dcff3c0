// SPDX-License-Identifier: Apache-2.0
// fixture.hpp: writes HDF5 files with the C API, in the way of other programs.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "io/hdf5/structure/file.hpp"

namespace qrtool {

namespace hdf5 {
using Dims = std::vector<hsize_t>;
}

using hdf5::Handle;

inline hid_t valid(hid_t id) {
  EXPECT_GE(id, 0) << hdf5::take_error();
  return id;
}

inline Handle create_file(const std::string& name, hid_t creation = H5P_DEFAULT,
                          hid_t access = H5P_DEFAULT) {
  const hdf5::Session session;
  return Handle(valid(H5Fcreate(name.c_str(), H5F_ACC_TRUNC, creation, access)), H5Fclose);
}

inline Handle create_group(hid_t file, const std::string& name) {
  return Handle(valid(H5Gcreate2(file, name.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)),
                H5Gclose);
}

inline Handle creation_properties() {
  const hdf5::Session session;
  return Handle(valid(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
}

inline Handle create_dataset(hid_t file, const std::string& name, hid_t type,
                             const hdf5::Dims& dims, hid_t creation = H5P_DEFAULT) {
  const Handle space(valid(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr)),
                     H5Sclose);
  return Handle(
      valid(H5Dcreate2(file, name.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT)),
      H5Dclose);
}

inline std::size_t elements_of(const hdf5::Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::size_t{1}, std::multiplies<>());
}

/// Returns 1, 2, 3, ... modulo 100, which are exact in every type.
inline std::vector<double> small_numbers(std::size_t count) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<double>((i + 1) % 100);
  return values;
}

/// A dataset of small_numbers.
inline Handle add_numbers(hid_t file, const std::string& name, hid_t type, const hdf5::Dims& dims,
                          hid_t creation = H5P_DEFAULT) {
  Handle dataset = create_dataset(file, name, type, dims, creation);
  const std::vector<double> values = small_numbers(elements_of(dims));
  EXPECT_GE(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values.data()), 0)
      << hdf5::take_error();
  return dataset;
}

inline void add_string_attribute(hid_t object, const std::string& name, const std::string& value) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, value.size());
  const Handle space(H5Screate(H5S_SCALAR), H5Sclose);
  const Handle attribute(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT),
                         H5Aclose);
  EXPECT_GE(H5Awrite(attribute, type, value.data()), 0);
}

/// Writes one file with one dataset of small numbers.
inline void write_numbers(const std::string& file, const std::string& name, hid_t type,
                          const hdf5::Dims& dims, hid_t creation = H5P_DEFAULT) {
  const Handle created = create_file(file);
  add_numbers(created, name, type, dims, creation);
}

}  // namespace qrtool
