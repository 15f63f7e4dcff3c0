// SPDX-License-Identifier: Apache-2.0
// search.cpp: lists the datasets in a file and finds the one that is meant.
#include "io/hdf5/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"

namespace qrtool::hdf5 {
namespace {

constexpr std::size_t most_listed = 8;

/// "a, b, c and 12 more".
std::string list_text(const std::vector<std::string>& items) {
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), most_listed); ++i) {
    text += (i > 0 ? ", " : "") + items[i];
  }
  if (items.size() > most_listed) text += fmt::format(" and {} more", items.size() - most_listed);
  return text;
}

/// Whether the path leads to what a program keeps for itself: MATLAB stores the contents of its
/// cells in "#refs#" and "#subsystem#", and PyTables the indexes of a table in "_i_" and its name.
bool is_internal(std::string_view path) {
  return path.starts_with('#') || path.starts_with("_i_") ||
         path.find("/_i_") != std::string_view::npos;
}

herr_t collect_dataset(hid_t, const char* name, const H5O_info_t* info, void* paths) {
  if (info->type == H5O_TYPE_DATASET && !is_internal(name)) {
    static_cast<std::vector<std::string>*>(paths)->push_back(std::string("/") + name);
  }
  return 0;
}

herr_t collect_external_link(hid_t, const char* name, const H5L_info_t* info, void* paths) {
  if (info->type == H5L_TYPE_EXTERNAL) {
    static_cast<std::vector<std::string>*>(paths)->push_back("/" + escape(name));
  }
  return 0;
}

/// The paths of all datasets that hard links lead to. For an Octave variable it is that of its
/// group.
std::vector<std::string> dataset_paths(const InputFile& file) {
  std::vector<std::string> paths, shown;
  if (H5Ovisit2(file.handle, H5_INDEX_NAME, H5_ITER_INC, collect_dataset, &paths, H5O_INFO_BASIC) <
      0) {
    take_error();
    throw InputError(fmt::format("{}: damaged HDF5 file (its groups cannot be read)", file.shown));
  }
  for (const std::string& path : paths) {
    const std::string parent = path.substr(0, path.rfind('/'));
    if (parent.empty() || !is_octave_variable(file, parent)) {
      shown.push_back(path);
    } else if (path == parent + "/value") {
      shown.push_back(parent);
    }
  }
  return shown;
}

/// Opens a dataset. One with fewer than two dimensions gets a `problem`, such as "has rank 1 (5)".
Dataset open_matrices(const InputFile& file, const std::string& path) {
  Dataset dataset = open_dataset(file, path);
  if (dataset.handle && dataset.problem.empty() && dataset.dims.size() < 2) {
    dataset.problem = fmt::format("has rank {} ({}); a matrix has two dimensions",
                                  dataset.dims.size(), shape_text(dataset.dims));
    if (dataset.dims.size() == 1) {
      dataset.problem += fmt::format(", {0}x1 or 1x{0}", dataset.dims.front());
    }
  }
  return dataset;
}

[[noreturn]] void throw_no_matrices(const InputFile& file, const std::vector<Dataset>& others) {
  std::vector<std::string> items;
  for (const Dataset& other : others) items.push_back(other.shown + " " + other.problem);
  if (items.empty()) {
    H5Lvisit(file.handle, H5_INDEX_NAME, H5_ITER_INC, collect_external_link, &items);
    if (!items.empty()) {
      throw InputError(fmt::format("{}: {} points outside the file (external link); refused",
                                   file.shown, items.front()));
    }
    throw InputError(fmt::format("{}: holds no dataset", file.shown));
  }
  throw InputError(fmt::format("{}: holds no matrices: {}", file.shown, list_text(items)));
}

/// Numbers that are no matrices, but a vector.
bool is_vector(const Dataset& dataset) {
  return dataset.dims.size() == 1 && dataset.problem.starts_with("has rank 1");
}

Dataset find_only(const InputFile& file, bool takes_vectors) {
  std::vector<Dataset> matrices, scales, others;
  for (const std::string& path : dataset_paths(file)) {
    Dataset dataset = open_matrices(file, path);
    if (!dataset.handle) continue;
    if (takes_vectors && is_vector(dataset)) dataset.problem.clear();
    auto& kind = !dataset.problem.empty() ? others : dataset.is_scale ? scales : matrices;
    kind.push_back(std::move(dataset));
  }
  // The coordinates of netCDF are meant only where there is nothing else.
  if (matrices.empty()) matrices = std::move(scales);
  if (matrices.size() == 1) return std::move(matrices.front());
  if (matrices.empty()) {
    if (others.size() == 1) require_readable(file, others.front());
    throw_no_matrices(file, others);
  }
  std::vector<std::string> items;
  for (const Dataset& matrix : matrices) {
    items.push_back(
        fmt::format("{} ({} {})", matrix.shown, shape_text(matrix.dims), matrix.stored_type));
  }
  // Where vectors are taken, right sides or weights are meant, and most of these are vectors.
  const auto vector = std::ranges::find_if(
      matrices, [](const Dataset& dataset) { return dataset.dims.size() == 1; });
  const Dataset& example = vector == matrices.end() ? matrices.front() : *vector;
  throw InputError(fmt::format("{}: {} datasets of {}: {}", file.shown, items.size(),
                               takes_vectors ? "numbers" : "matrices", list_text(items)),
                   fmt::format("choose one, as in {}:{}", file.shown, example.shown));
}

[[noreturn]] void throw_unknown(const InputFile& file, const std::string& path) {
  const std::vector<std::string> paths = dataset_paths(file);
  std::vector<std::string> inside, shown;
  for (const std::string& other : paths) {
    shown.push_back(escape(other));
    if (other.starts_with(path == "/" ? path : path + "/")) inside.push_back(escape(other));
  }
  if (!inside.empty()) {
    throw InputError(
        fmt::format("{}: {} is a group; it holds {}", file.shown, escape(path), list_text(inside)),
        fmt::format("choose one, as in {}:{}", file.shown, inside.front()));
  }
  const std::vector<std::string_view> candidates(shown.begin(), shown.end());
  const std::string_view near = nearest(escape(path), candidates);
  throw InputError(fmt::format("{}: there is no dataset {}{}", file.shown, escape(path),
                               near.empty() ? "" : fmt::format("; did you mean {}?", near)),
                   near.empty() && !shown.empty() ? "choose one of " + list_text(shown) : "");
}

Dataset find(const InputFile& file, const std::string& path, bool takes_vectors) {
  const Session session(file.shown);
  if (path.empty()) {
    Dataset only = find_only(file, takes_vectors);
    require_readable(file, only);
    return only;
  }
  std::string absolute = path.front() == '/' ? path : "/" + path;
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  Dataset dataset = open_matrices(file, absolute);
  if (!dataset.handle) throw_unknown(file, absolute);
  if (takes_vectors && is_vector(dataset)) dataset.problem.clear();
  require_readable(file, dataset);
  return dataset;
}

}  // namespace

std::vector<Dataset> list_datasets(const InputFile& file) {
  std::vector<Dataset> datasets;
  for (const std::string& path : dataset_paths(file)) {
    Dataset dataset;
    try {
      dataset = open_matrices(file, path);
    } catch (const InputError& error) {
      dataset.problem = error.what();
    }
    dataset.path = path;
    if (!dataset.is_other) datasets.push_back(std::move(dataset));
  }
  return datasets;
}

Dataset find_matrices(const InputFile& file, const std::string& path) {
  return find(file, path, /*takes_vectors=*/false);
}

Dataset find_array(const InputFile& file, const std::string& path) {
  return find(file, path, /*takes_vectors=*/true);
}

}  // namespace qrtool::hdf5
