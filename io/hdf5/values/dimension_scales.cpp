// SPDX-License-Identifier: Apache-2.0
// dimension_scales.cpp: reads and writes the attributes of dimension scales.
// HDF5 Dimension Scale Specification and Design Notes (2005): CLASS, NAME, DIMENSION_LIST,
// REFERENCE_LIST. netCDF marks a scale without coordinates by its NAME.
#include "io/hdf5/values/dimension_scales.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "core/error.hpp"
#include "io/hdf5/datasets/attributes.hpp"
#include "io/hdf5/values/storage.hpp"

namespace qrtool::hdf5 {
namespace {

// Longer coordinates are not copied to an output.
constexpr hsize_t most_coordinates = 65536;
constexpr std::string_view no_coordinates = "This is a netCDF dimension but not a netCDF variable";
constexpr const char* copied_attributes[] = {"units", "calendar", "long_name", "standard_name",
                                             "axis"};

/// Returns the path of the first scale of each dimension, or an empty text.
std::vector<std::string> paths_of_scales(const InputFile& file, const Dataset& dataset) {
  const std::size_t rank = dataset.dims.size();
  if (rank == 0 || !has_attribute(file, dataset.handle, "DIMENSION_LIST")) return {};
  const Attribute attribute(file, dataset.handle, "DIMENSION_LIST");
  const Handle& type = attribute.type;
  const Handle reference(H5Tget_class(type) == H5T_VLEN ? H5Tget_super(type) : H5I_INVALID_HID,
                         H5Tclose);
  std::vector<std::string> paths;
  std::vector<hvl_t> lists(rank);
  if (!reference || H5Tequal(reference, H5T_STD_REF_OBJ) <= 0 ||
      H5Sget_simple_extent_npoints(attribute.space) != static_cast<hssize_t>(rank) ||
      H5Aread(attribute.handle, type, lists.data()) < 0) {
    H5Eclear2(H5E_DEFAULT);
    return {};
  }
  for (const hvl_t& list : lists) {
    std::string& path = paths.emplace_back();
    if (list.len == 0) continue;
    const Handle scale(H5Rdereference2(file.handle, H5P_DEFAULT, H5R_OBJECT, list.p), H5Oclose);
    const ssize_t length = scale ? H5Iget_name(scale, nullptr, 0) : 0;
    if (length <= 0 || length > 4096 || H5Iget_type(scale) != H5I_DATASET) continue;
    path.resize(static_cast<std::size_t>(length) + 1);
    H5Iget_name(scale, path.data(), path.size());
    path.pop_back();
  }
  H5Dvlen_reclaim(type, attribute.space, H5P_DEFAULT, lists.data());
  H5Eclear2(H5E_DEFAULT);
  return paths;
}

/// Reads the numbers of a coordinate variable if they are few and can be read.
void read_coordinates(const InputFile& file, const std::string& path, Dimension& dimension) {
  const Dataset scale = open_dataset(file, path);
  const auto extent = static_cast<hsize_t>(dimension.extent);
  const bool is_empty = string_attribute(file, scale.handle, "NAME").starts_with(no_coordinates);
  if (is_empty || !scale.problem.empty() || scale.dims != std::vector<hsize_t>{extent} ||
      extent == 0 || extent > most_coordinates || !scale.variable.problem.empty())
    return;
  require_readable(file, scale);
  Storage(file, scale, /*threads=*/1).require_chunks(std::vector<hsize_t>{0}, scale.dims);
  std::vector<double> numbers(extent);
  if (H5Dread(scale.handle, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, numbers.data()) < 0) {
    take_error();
    return;
  }
  if (!scale.variable.is_plain()) decode(scale.variable, numbers.data(), dimension.extent);
  dimension.coordinates = std::move(numbers);
  for (const char* name : copied_attributes)
    if (std::string text = string_attribute(file, scale.handle, name); !text.empty())
      dimension.attributes.emplace_back(name, std::move(text));
}

/// Returns a text of fixed length, as the specification asks for.
bool add_text(hid_t object, const char* name, const std::string& text) {
  const Handle type(H5Tcopy(H5T_C_S1), H5Tclose), space(H5Screate(H5S_SCALAR), H5Sclose);
  if (H5Tset_size(type, text.size() + 1) < 0) return false;
  const Handle attribute(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute && H5Awrite(attribute, type, text.c_str()) >= 0;
}

/// Returns the type of texts of any length in UTF-8.
Handle text_type() {
  Handle type(H5Tcopy(H5T_C_S1), H5Tclose);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  return type;
}

bool create_scale(hid_t file, const Dimension& dimension) {
  const auto extent = static_cast<hsize_t>(dimension.extent);
  const bool has_labels = !dimension.labels.empty();
  const bool is_empty = dimension.coordinates.empty() && !has_labels;
  const Handle label_type = text_type();
  const Handle creation(H5Pcreate(H5P_DATASET_CREATE), H5Pclose);
  const Handle space(H5Screate_simple(1, &extent, nullptr), H5Sclose);
  if (H5Pset_obj_track_times(creation, false) < 0) return false;
  const Handle scale(H5Dcreate2(file, dimension.name.c_str(),
                                has_labels ? static_cast<hid_t>(label_type)
                                : is_empty ? H5T_IEEE_F32BE
                                           : H5T_IEEE_F64LE,
                                space, H5P_DEFAULT, creation, H5P_DEFAULT),
                     H5Dclose);
  if (!scale || !add_text(scale, "CLASS", "DIMENSION_SCALE") ||
      !add_text(
          scale, "NAME",
          is_empty ? fmt::format("{}.{:10}", no_coordinates, dimension.extent) : dimension.name))
    return false;
  for (const auto& [name, text] : dimension.attributes)
    if (!add_text(scale, name.c_str(), text)) return false;
  if (has_labels) {
    std::vector<const char*> labels;
    for (const std::string& label : dimension.labels) labels.push_back(label.c_str());
    return H5Dwrite(scale, label_type, H5S_ALL, H5S_ALL, H5P_DEFAULT, labels.data()) >= 0;
  }
  return is_empty || H5Dwrite(scale, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                              dimension.coordinates.data()) >= 0;
}

}  // namespace

std::vector<Dimension> read_dimensions(const InputFile& file, const Dataset& dataset) {
  const std::vector<std::string> paths = paths_of_scales(file, dataset);
  std::vector<Dimension> dimensions;
  for (std::size_t d = 0; d < paths.size(); ++d) {
    Dimension& dimension = dimensions.emplace_back();
    dimension.name = paths[d].substr(paths[d].rfind('/') + 1);
    dimension.extent = static_cast<index_t>(dataset.dims[d]);
    try {
      if (!paths[d].empty()) read_coordinates(file, paths[d], dimension);
    } catch (const InputError&) {
      dimension.coordinates.clear();  // the matrices do not need them
    }
  }
  const bool has_name = std::ranges::any_of(
      dimensions, [](const Dimension& dimension) { return !dimension.name.empty(); });
  return has_name ? dimensions : std::vector<Dimension>();
}

bool DimensionScales::create(hid_t file, std::span<const Dimension> dimensions) {
  for (const Dimension& dimension : dimensions) {
    if (!create_scale(file, dimension)) return false;
    uses_[dimension.name];
  }
  return true;
}

bool DimensionScales::attach(hid_t file, hid_t dataset, std::span<const std::string> names) {
  if (names.empty()) return true;
  const Handle type(H5Tvlen_create(H5T_STD_REF_OBJ), H5Tclose);
  const hsize_t rank = names.size();
  const Handle space(H5Screate_simple(1, &rank, nullptr), H5Sclose);
  std::vector<hobj_ref_t> scales(names.size());
  std::vector<hvl_t> lists(names.size());
  Use use{};
  const ssize_t length = H5Iget_name(dataset, nullptr, 0);
  std::string path(static_cast<std::size_t>(std::max<ssize_t>(length, 0)) + 1, '\0');
  if (length <= 0 || H5Iget_name(dataset, path.data(), path.size()) < 0 ||
      H5Rcreate(&use.dataset, file, path.c_str(), H5R_OBJECT, -1) < 0)
    return false;
  for (std::size_t d = 0; d < names.size(); ++d) {
    if (H5Rcreate(&scales[d], file, names[d].c_str(), H5R_OBJECT, -1) < 0) return false;
    lists[d] = {.len = 1, .p = &scales[d]};
    use.dimension = static_cast<int>(d);
    uses_[names[d]].push_back(use);
  }
  const Handle attribute(
      H5Acreate2(dataset, "DIMENSION_LIST", type, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
  return attribute && H5Awrite(attribute, type, lists.data()) >= 0;
}

bool DimensionScales::finish(hid_t file) {
  const Handle memory(H5Tcreate(H5T_COMPOUND, sizeof(Use)), H5Tclose);
  const Handle stored(H5Tcreate(H5T_COMPOUND, 12), H5Tclose);
  if (H5Tinsert(memory, "dataset", HOFFSET(Use, dataset), H5T_STD_REF_OBJ) < 0 ||
      H5Tinsert(memory, "dimension", HOFFSET(Use, dimension), H5T_NATIVE_INT) < 0 ||
      H5Tinsert(stored, "dataset", 0, H5T_STD_REF_OBJ) < 0 ||
      H5Tinsert(stored, "dimension", 8, H5T_STD_I32LE) < 0)
    return false;
  for (const auto& [name, uses] : uses_) {
    if (uses.empty()) continue;
    const hsize_t count = uses.size();
    const Handle space(H5Screate_simple(1, &count, nullptr), H5Sclose);
    const Handle scale(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose);
    const Handle attribute(
        H5Acreate2(scale, "REFERENCE_LIST", stored, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose);
    if (!attribute || H5Awrite(attribute, memory, uses.data()) < 0) return false;
  }
  return true;
}

}  // namespace qrtool::hdf5
