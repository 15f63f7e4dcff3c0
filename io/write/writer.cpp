// SPDX-License-Identifier: Apache-2.0
// writer.cpp: what all writers share.
#include "io/write/writer.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace qrtool {

MatrixDataset array_dataset(std::string name, ElementType type, std::vector<index_t> dims,
                            bool are_vectors) {
  MatrixDataset dataset{.name = std::move(name), .type = type, .rows = 1, .cols = dims.back()};
  dims.pop_back();
  dataset.is_vector = are_vectors || dims.empty();
  if (!dataset.is_vector) {
    dataset.rows = dims.back();
    dims.pop_back();
  }
  dataset.leading = std::move(dims);
  return dataset;
}

MatrixDataset without_vectors(MatrixDataset dataset) {
  if (!dataset.is_vector || !dataset.leading || dataset.leading->empty()) return dataset;
  dataset.rows = dataset.leading->back();
  dataset.leading->pop_back();
  dataset.is_vector = false;
  return dataset;
}

void Writer::write_numbers(std::string_view name, index_t, std::span<const double>) {
  throw InternalError(fmt::format("write: this format has no dataset of numbers {}", name));
}

void Writer::commit() {
  FileSet files;
  finish(files);
  files.commit();
}

}  // namespace qrtool
