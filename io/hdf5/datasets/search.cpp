// SPDX-License-Identifier: Apache-2.0
// search.cpp: lists the datasets in a file and finds the one that is meant.
#include "io/hdf5/datasets/search.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/hdf5/datasets/walk.hpp"
#include "io/read/choice.hpp"

namespace qrtool::hdf5 {
namespace {

/// Whether the path leads to internal data of a program: MATLAB stores the contents of its cells in
/// "#refs#" and "#subsystem#", and PyTables the indexes of a table in "_i_" and its name.
bool is_internal(std::string_view path) {
  return path.starts_with('#') || path.starts_with("_i_") ||
         path.find("/_i_") != std::string_view::npos;
}

/// All datasets of the file that no program keeps for itself.
std::vector<FoundDataset> all_datasets(const InputFile& file) {
  std::vector<FoundDataset> datasets = find_all(file).datasets;
  std::erase_if(datasets, [](const FoundDataset& found) {
    return is_internal(std::string_view(found.path).substr(1));
  });
  return datasets;
}

/// Gives a dataset with fewer than two dimensions a `problem`, such as "has rank 1 (5)".
Dataset as_matrices(Dataset dataset) {
  if (dataset.handle && dataset.problem.empty() && dataset.dims.size() < 2) {
    dataset.problem = fmt::format("has rank {} ({}); a matrix has two dimensions",
                                  dataset.dims.size(), shape_text(dataset.dims));
    if (dataset.dims.size() == 1) {
      dataset.problem += fmt::format(", {0}x1 or 1x{0}", dataset.dims.front());
      dataset.hint =
          "store it so, by a.reshape(-1, 1) or a.reshape(1, -1) in NumPy; solve takes vectors as "
          "the columns of A by --a NAME";
    }
  }
  return dataset;
}

[[noreturn]] void throw_no_matrices(const InputFile& file, const std::vector<Dataset>& others) {
  std::vector<std::string> items;
  for (const Dataset& other : others) items.push_back(other.shown + " " + other.problem);
  if (items.empty()) {
    const Found found = find_all(file);
    if (!found.external_links.empty()) {
      throw InputError(fmt::format("{}: {} points outside the file (external link); refused",
                                   file.shown, found.external_links.front()));
    }
    throw InputError(fmt::format("{}: holds no dataset", file.shown));
  }
  // Datasets that are parts of one object share a hint.
  const bool is_one = std::ranges::all_of(
      others, [&](const Dataset& other) { return other.hint == others.front().hint; });
  throw InputError(fmt::format("{}: holds no matrices: {}", file.shown, list_text(items)),
                   is_one ? others.front().hint : "");
}

/// Whether a dataset is a vector of numbers.
bool is_vector(const Dataset& dataset) {
  return dataset.dims.size() == 1 && dataset.problem.starts_with("has rank 1");
}

Dataset find_only(const InputFile& file, bool takes_vectors) {
  std::vector<Dataset> matrices, scales, others;
  for (const FoundDataset& found : all_datasets(file)) {
    Dataset dataset = as_matrices(open_dataset(file, found));
    if (!dataset.handle) continue;
    if (takes_vectors && is_vector(dataset)) dataset.problem.clear();
    auto& kind = !dataset.problem.empty() ? others : dataset.is_scale ? scales : matrices;
    kind.push_back(std::move(dataset));
  }
  // The coordinates of netCDF are considered only if there is nothing else.
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
  // If vectors are accepted, the example is a dataset of one dimension: right sides and weights are
  // mostly vectors.
  const auto vector = std::ranges::find_if(
      matrices, [](const Dataset& dataset) { return dataset.dims.size() == 1; });
  const Dataset& example = vector == matrices.end() ? matrices.front() : *vector;
  throw InputError(fmt::format("{}: {} datasets of {}: {}", file.shown, items.size(),
                               takes_vectors ? "numbers" : "matrices", list_text(items)),
                   fmt::format("choose one, as in {}:{}", file.shown, example.shown));
}

/// Whether a hint may name the dataset: it holds numbers.
bool holds_numbers(const InputFile& file, const FoundDataset& found) {
  const Dataset dataset = as_matrices(open_dataset(file, found));
  return dataset.handle && (dataset.problem.empty() || is_vector(dataset));
}

[[noreturn]] void throw_missing(const InputFile& file, const std::string& path) {
  std::vector<std::string> inside, all;
  std::string example;
  for (const FoundDataset& found : all_datasets(file)) {
    all.push_back(found.path);
    if (!found.path.starts_with(path == "/" ? path : path + "/")) continue;
    inside.push_back(escape(found.path));
    if (example.empty() && holds_numbers(file, found)) example = inside.back();
  }
  if (!inside.empty()) {
    throw InputError(
        fmt::format("{}: {} is a group; it holds {}", file.shown, escape(path), list_text(inside)),
        example.empty() ? "" : fmt::format("choose one, as in {}:{}", file.shown, example));
  }
  throw_unknown(file.shown, "dataset", path, all);
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
  Dataset dataset = as_matrices(open_dataset(file, absolute));
  if (!dataset.handle) throw_missing(file, absolute);
  if (takes_vectors && is_vector(dataset)) dataset.problem.clear();
  require_readable(file, dataset);
  return dataset;
}

}  // namespace

std::vector<Dataset> list_datasets(const InputFile& file) {
  std::vector<Dataset> datasets;
  for (const FoundDataset& found : all_datasets(file)) {
    Dataset dataset;
    try {
      dataset = as_matrices(open_dataset(file, found));
    } catch (const InputError& error) {
      dataset.problem = error.what();
    }
    dataset.path = found.path;
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
