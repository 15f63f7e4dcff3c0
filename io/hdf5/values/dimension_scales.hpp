// SPDX-License-Identifier: Apache-2.0
// dimension_scales.hpp: names of dimensions, which HDF5 keeps in datasets that others refer to.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/hdf5/datasets/dataset.hpp"
#include "io/source/dimension.hpp"

namespace qrtool::hdf5 {

/// Returns the dimensions of a dataset, with the coordinates of short ones; none if no dimension
/// has a name. Errors: InputError for a damaged file.
std::vector<Dimension> read_dimensions(const InputFile& file, const Dataset& dataset);

/// Writes scales to the root of a file and attaches datasets to them, as netCDF does. Every
/// function returns false if HDF5 reports an error.
class DimensionScales {
 public:
  bool create(hid_t file, std::span<const Dimension> dimensions);
  /// `names`: one for each dimension of the dataset.
  bool attach(hid_t file, hid_t dataset, std::span<const std::string> names);
  /// Tells the scales which datasets refer to them. Call it once, after the last attach().
  bool finish(hid_t file);

 private:
  struct Use {
    hobj_ref_t dataset;
    int dimension;
  };
  std::map<std::string, std::vector<Use>> uses_;
};

}  // namespace qrtool::hdf5
