// SPDX-License-Identifier: Apache-2.0
// dataset.cpp: opens datasets, and finds the reasons why one cannot be read.
#include "io/hdf5/datasets/dataset.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/hdf5/chunks/filters.hpp"
#include "io/hdf5/datasets/attributes.hpp"
#include "io/hdf5/datasets/complex_type.hpp"
#include "io/hdf5/datasets/sound_type.hpp"

namespace qrtool::hdf5 {
namespace {

[[noreturn]] void throw_cannot_follow(const InputFile& file, const std::string& path) {
  const std::string error = take_error();
  if (error.find("link class") != std::string::npos) {
    throw InputError(
        fmt::format("{}: {} points outside the file (external link); refused", file.shown, path));
  }
  refuse_newer_format(file, path, error);
  throw InputError(fmt::format("{}: {} cannot be opened ({})", file.shown, path,
                               escape(innermost_error(error))));
}

/// Whether a name in a group belongs to an object; `path` is the path of the link, for messages.
/// Nothing outside the file is opened.
bool leads_to_object(const InputFile& file, hid_t group, const std::string& name,
                     const std::string& path) {
  const htri_t exists = H5Lexists(group, name.c_str(), H5P_DEFAULT);
  if (exists < 0) {
    throw InputError(fmt::format("{}: {} cannot be opened ({})", file.shown, escape(path),
                                 escape(innermost_error(take_error()))));
  }
  if (exists == 0) return false;
  H5L_info_t info{};
  if (H5Lget_info(group, name.c_str(), &info, H5P_DEFAULT) < 0)
    throw_cannot_follow(file, escape(path));
  if (info.type == H5L_TYPE_EXTERNAL) {
    throw InputError(fmt::format("{}: {} points outside the file (external link); refused",
                                 file.shown, escape(path)));
  }
  if (info.type == H5L_TYPE_HARD) return true;
  // A soft link may exist and point to nothing.
  const htri_t found = H5Oexists_by_name(group, name.c_str(), H5P_DEFAULT);
  if (found < 0) throw_cannot_follow(file, escape(path));
  return found > 0;
}

/// Returns the problem of a dataset whose data is in another file. It is found before any call that
/// would make HDF5 open that file.
std::string external_problem(hid_t dataset) {
  const Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  if (H5Pget_layout(creation) == H5D_VIRTUAL) {
    return "points outside the file (virtual dataset); refused";
  }
  if (H5Pget_external_count(creation) > 0) {
    std::array<char, 256> name{};
    H5Pget_external(creation, 0, name.size() - 1, name.data(), nullptr, nullptr);
    return fmt::format("points outside the file (external storage '{}'); refused",
                       escape(name.data()));
  }
  return {};
}

std::string member_names(hid_t type) {
  std::string names;
  const int count = H5Tget_nmembers(type);
  for (int i = 0; i < count && i < 4; ++i) {
    char* name = H5Tget_member_name(type, static_cast<unsigned>(i));
    names += (i > 0 ? ", " : "") + escape(name ? name : "?");
    H5free_memory(name);
  }
  return count > 4 ? names + ", ..." : names;
}

std::string class_problem(hid_t type) {
  switch (H5Tget_class(type)) {
    case H5T_FLOAT:
    case H5T_INTEGER:
      return {};
    case H5T_COMPOUND:
      if (complex_parts(type))
        return has_parts_inside(type)
                   ? ""
                   : "has complex numbers whose parts lie outside of them; the file is damaged";
      return fmt::format(
          "is a compound ({}); only numbers can be read, complex ones as (r, i) or "
          "(real, imag)",
          member_names(type));
    case H5T_ENUM:
      return fmt::format("is {} ({}); only numbers can be read",
                         member_names(type) == "FALSE, TRUE" ? "boolean" : "an enumeration",
                         member_names(type));
    case H5T_STRING:
      return "holds strings; only numbers can be read";
    default:
      return "holds neither floating-point numbers nor integers";
  }
}

std::string type_text(hid_t type) {
  if (H5Tget_class(type) == H5T_COMPOUND) {
    const Handle part = part_type(type);
    const bool is_reversed = H5Tget_order(part) == H5T_ORDER_BE;
    return fmt::format("{}complex{}", is_reversed ? "big-endian " : "", 16 * H5Tget_size(part));
  }
  const bool reversed = H5Tget_order(type) == H5T_ORDER_BE && H5Tget_size(type) > 1;
  const std::string order = reversed ? "big-endian " : "";
  const std::size_t bits = H5Tget_precision(type);
  if (H5Tget_class(type) == H5T_INTEGER) {
    return fmt::format("{}{}int{}", order, H5Tget_sign(type) == H5T_SGN_NONE ? "u" : "", bits);
  }
  std::size_t exponent_bits = 0, unused = 0;
  H5Tget_fields(type, &unused, &unused, &exponent_bits, &unused, &unused);
  return fmt::format("{}{}float{}", order, bits == 16 && exponent_bits == 8 ? "b" : "", bits);
}

[[noreturn]] void throw_damaged_object(const InputFile& file, const char* what) {
  throw InputError(fmt::format("{}: damaged HDF5 file ({} cannot be read: {})", file.shown, what,
                               escape(innermost_error(take_error()))));
}

/// Returns the path of the group in which MATLAB keeps a sparse matrix if `path` is a part of one,
/// else an empty text.
std::string sparse_group(const InputFile& file, const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string group = path.substr(0, slash), name = path.substr(slash + 1);
  if (group.empty() || (name != "data" && name != "ir" && name != "jc")) return {};
  const Handle object = open_object(file, group);
  return object && has_attribute(file, object, "MATLAB_sparse") ? group : std::string();
}

void describe(const InputFile& file, Dataset& dataset) {
  dataset.problem = external_problem(dataset.handle);
  if (!dataset.problem.empty()) return;

  const Handle type(H5Dget_type(dataset.handle), H5Tclose);
  if (!type) throw_damaged_object(file, "a type");
  dataset.stored_bytes = H5Tget_size(type);
  dataset.problem = class_problem(type);
  if (dataset.problem.empty()) {
    dataset.stored_type = type_text(type);
    const bool is_single = H5Tget_class(type) == H5T_FLOAT && dataset.stored_bytes <= 4;
    dataset.type = is_single ? ElementType::float32 : ElementType::float64;
    if (const std::optional<PartNames> parts = complex_parts(type)) {
      dataset.parts = *parts;
      const bool has_floats = H5Tget_size(part_type(type)) <= 4;
      dataset.type = has_floats ? ElementType::complex64 : ElementType::complex128;
    }
  }
  const Handle space(H5Dget_space(dataset.handle), H5Sclose);
  const int rank = H5Sget_simple_extent_ndims(space);
  dataset.dims.resize(rank > 0 ? static_cast<std::size_t>(rank) : 0);
  if (rank < 0 || H5Sget_simple_extent_dims(space, dataset.dims.data(), nullptr) != rank) {
    throw_damaged_object(file, "dimensions");
  }

  if (!dataset.problem.empty() && string_attribute(file, dataset.handle, "CLASS") == "TABLE") {
    dataset.problem = "is a table of PyTables, whose rows are compounds; only arrays can be read";
    dataset.hint =
        "in pandas: numpy.save('a.npy', frame.to_numpy()), or to_hdf with format='fixed'";
  }
  const std::string matlab_class = string_attribute(file, dataset.handle, "MATLAB_class");
  if (has_attribute(file, dataset.handle, "MATLAB_empty")) {
    dataset.problem = "is an empty array of MATLAB; there is nothing to read";
    dataset.hint = {};
  }
  if (matlab_class == "char" || matlab_class == "logical" || matlab_class == "cell") {
    dataset.problem = fmt::format("is a MATLAB {} array; only numbers can be read", matlab_class);
  }
  if (const std::string group = sparse_group(file, dataset.path); !group.empty()) {
    dataset.problem = fmt::format("is a part of {}, a sparse matrix of MATLAB", escape(group));
    dataset.hint = fmt::format("in MATLAB: {0} = full({0}), and save it again by save -v7.3",
                               escape(group.substr(group.rfind('/') + 1)));
  }
  dataset.is_scale = string_attribute(file, dataset.handle, "CLASS") == "DIMENSION_SCALE";
  if (!dataset.problem.empty()) return;
  dataset.order = find_order(file, dataset.handle);
  dataset.variable = is_complex(dataset.type) ? read_complex_variable(file, dataset.handle)
                                              : read_variable(file, dataset.handle);
  if (!is_complex(dataset.type))
    add_missing_of_group(file, dataset.path, dataset.handle, dataset.variable);
}

std::string_view filter_name(H5Z_filter_t filter) {
  switch (filter) {
    case H5Z_FILTER_SZIP:
      return "szip";
    case 307:
      return "bzip2";
    case 32001:
      return "blosc";
    case 32004:
      return "lz4";
    case 32008:
      return "bitshuffle";
    case 32013:
      return "zfp";
    case 32015:
      return "zstd";
    case 32026:
      return "blosc2";
    default:
      return "an unknown method";
  }
}

void require_filters(const InputFile& file, const Dataset& dataset) {
  const Handle creation(H5Dget_create_plist(dataset.handle), H5Pclose);
  std::vector<H5Z_filter_t> filters;
  for (int i = 0; i < H5Pget_nfilters(creation); ++i) {
    unsigned flags = 0;
    std::size_t values = 0;
    filters.push_back(H5Pget_filter2(creation, static_cast<unsigned>(i), &flags, &values, nullptr,
                                     0, nullptr, nullptr));
  }
  if (std::all_of(filters.begin(), filters.end(), can_undo)) return;
  for (const H5Z_filter_t filter : filters) {
    if (H5Zfilter_avail(filter) > 0) continue;
    throw InputError(
        fmt::format("{}: dataset {} is compressed with {} (HDF5 filter {}), which is not installed",
                    file.shown, dataset.shown, filter_name(filter), filter),
        fmt::format("install that filter's plugin, or where it is installed: h5repack -f NONE {} "
                    "plain.h5",
                    file.shown));
  }
}

void require_addressable_size(const InputFile& file, const Dataset& dataset) {
  // Dimensions of 0 count as 1, so that no later product of some dimensions can overflow.
  std::uint64_t elements = 1, bytes = 0;
  bool overflow = false;
  for (const hsize_t extent : dataset.dims) {
    overflow |= __builtin_mul_overflow(elements, std::max<hsize_t>(extent, 1), &elements);
  }
  overflow |= __builtin_mul_overflow(
      elements, std::max<std::size_t>(dataset.stored_bytes, is_complex(dataset.type) ? 16 : 8),
      &bytes);
  if (overflow || bytes > static_cast<std::uint64_t>(INT64_MAX)) {
    throw LimitError(fmt::format("{}: dataset {} claims {} elements, more than can be addressed",
                                 file.shown, dataset.shown, shape_text(dataset.dims)));
  }
}

}  // namespace

// Each link is followed from its group. Looking each one up from the root would cost the cube of
// the depth.
Handle open_object(const InputFile& file, const std::string& path) {
  Handle here(H5Oopen(file.handle, "/", H5P_DEFAULT), H5Oclose);
  if (!here) throw_cannot_follow(file, escape(path));
  for (std::size_t begin = 1; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    const std::string name = path.substr(begin, end - begin);
    begin = end + 1;
    if (name.empty()) continue;
    const std::string so_far = path.substr(0, end);
    if (H5Iget_type(here) != H5I_GROUP || !leads_to_object(file, here, name, so_far)) return {};
    here = Handle(H5Oopen(here, name.c_str(), H5P_DEFAULT), H5Oclose);
    if (!here) throw_cannot_follow(file, escape(so_far));
  }
  return here;
}

bool is_octave_variable(const InputFile& file, hid_t group) {
  return has_attribute(file, group, "OCTAVE_NEW_FORMAT");
}

namespace {

/// Describes an object that is open; one that is no dataset becomes `is_other`.
Dataset describe_object(const InputFile& file, const std::string& path, Handle object) {
  Dataset dataset;
  dataset.path = path;
  dataset.shown = escape(path);
  dataset.is_other = H5Iget_type(object) != H5I_DATASET;
  if (dataset.is_other) return dataset;
  dataset.handle = std::move(object);
  describe(file, dataset);
  return dataset;
}

/// Returns the dataset that holds the value of an Octave variable. Messages show the path of its
/// group.
Dataset value_of_octave(Dataset value, const std::string& path) {
  value.shown = escape(path);
  value.order = {Order::column, "Octave wrote it"};
  return value;
}

}  // namespace

Dataset open_dataset(const InputFile& file, const std::string& path) {
  const Session session(file.shown);
  Handle object = open_object(file, path);
  if (!object) {
    Dataset none;
    none.path = path;
    none.shown = escape(path);
    return none;
  }
  if (H5Iget_type(object) == H5I_GROUP && path != "/" && is_octave_variable(file, object))
    return value_of_octave(open_dataset(file, path + "/value"), path);
  return describe_object(file, path, std::move(object));
}

Dataset open_mask(const InputFile& file, const std::string& path, const Dataset& of) {
  Dataset mask = open_dataset(file, path);
  const Handle type(mask.handle ? H5Dget_type(mask.handle) : H5I_INVALID_HID, H5Tclose);
  // Truth is stored as an enumeration of one byte.
  const bool is_mask = type && H5Tget_class(type) == H5T_ENUM && H5Tget_size(type) == 1;
  if (!is_mask || mask.dims != of.dims)
    throw InputError(fmt::format("{}: dataset {} is to have a mask of its shape, and {} is none",
                                 file.shown, of.shown, escape(path)),
                     "--raw-values takes the numbers as they are stored");
  mask.problem = external_problem(mask.handle);
  mask.type = ElementType::float32;
  mask.variable = {};
  require_readable(file, mask);
  return mask;
}

Dataset open_dataset(const InputFile& file, const FoundDataset& found) {
  const Session session(file.shown);
  Handle object(H5Oopen_by_addr(file.handle, found.address), H5Oclose);
  if (!object) throw_cannot_follow(file, escape(found.path));
  if (!found.is_octave_variable) return describe_object(file, found.path, std::move(object));
  return value_of_octave(describe_object(file, found.path + "/value", std::move(object)),
                         found.path);
}

void require_readable(const InputFile& file, const Dataset& dataset) {
  const Session session(file.shown);
  if (!dataset.problem.empty()) {
    throw InputError(fmt::format("{}: dataset {} {}", file.shown, dataset.shown, dataset.problem),
                     dataset.hint);
  }
  require_filters(file, dataset);
  require_sound_type(file, dataset);
  require_addressable_size(file, dataset);
}

std::uint64_t elements_of(const Dataset& dataset) {
  std::uint64_t elements = 1;
  for (const hsize_t extent : dataset.dims) elements *= extent;
  return elements;
}

std::string shape_text(std::span<const hsize_t> dims) {
  std::string text;
  for (const hsize_t extent : dims) text += (text.empty() ? "" : "x") + std::to_string(extent);
  return text.empty() ? "scalar" : text;
}

}  // namespace qrtool::hdf5
