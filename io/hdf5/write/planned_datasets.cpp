// SPDX-License-Identifier: Apache-2.0
// planned_datasets.cpp: gives each dataset the layout of its shape.
#include "io/hdf5/write/planned_datasets.hpp"

#include <utility>

namespace qrtool::hdf5 {
namespace {

/// A dataset of single numbers; one without dimensions is stored as one number.
Output plan_list(const std::string_view name, NumberKind kind, const std::vector<index_t>& dims) {
  Output planned;
  planned.name = name;
  planned.rows = planned.cols = 1;
  planned.element_bytes = bytes_of(kind);
  planned.layout =
      make_layout(dims.empty() ? std::vector<index_t>{1} : dims, {}, planned.element_bytes);
  return planned;
}

}  // namespace

std::vector<Output> plan_matrices(const OutputSpec& spec) {
  std::vector<Output> matrices;
  for (const MatrixDataset& dataset : spec.datasets) {
    Output planned;
    planned.name = dataset.name;
    planned.rows = dataset.rows;
    planned.cols = dataset.cols;
    planned.element_bytes = dataset.stored_bytes();
    planned.is_whole = dataset.is_whole;
    planned.is_complex = is_complex(dataset.type);
    planned.is_transposed = spec.order == Order::column && !dataset.is_vector;
    if (planned.is_transposed) std::swap(planned.rows, planned.cols);
    std::vector<index_t> matrix{planned.rows, planned.cols};
    if (dataset.is_vector) matrix.erase(matrix.begin());
    planned.layout =
        make_layout(dataset.leading.value_or(spec.leading), matrix, planned.element_bytes);
    matrices.push_back(std::move(planned));
  }
  return matrices;
}

std::vector<Output> plan_numbers(const OutputSpec& spec) {
  std::vector<Output> outputs;
  for (const NumberDataset& numbers : spec.numbers)
    outputs.push_back(plan_list(numbers.name, numbers.kind, numbers.dims));
  return outputs;
}

std::vector<Output> plan_columns(const OutputSpec& spec) {
  std::vector<Output> outputs;
  for (std::size_t i = 0; spec.with_report && i < spec.report_columns.size(); ++i)
    outputs.push_back(
        plan_list(spec.report_columns[i].name, spec.report_columns[i].kind, spec.leading));
  return outputs;
}

std::uint64_t file_bytes_of(std::span<const Output> outputs) {
  std::uint64_t bytes = 0;
  for (const Output& each : outputs) bytes += each.layout.file_bytes;
  return bytes;
}

std::uint64_t planned_bytes(const OutputSpec& spec) {
  constexpr std::uint64_t header_bytes = 16384;
  std::uint64_t bytes = header_bytes;
  const std::vector<index_t> none{}, single{1};
  for (const MatrixDataset& each : spec.datasets) {
    const std::vector<index_t> matrix{each.rows, each.cols};
    bytes += make_layout(spec.leading, matrix, each.stored_bytes()).file_bytes;
  }
  for (const ReportColumn& column : spec.report_columns)
    bytes += make_layout(spec.leading.empty() ? single : spec.leading, none, bytes_of(column.kind))
                 .file_bytes;
  return bytes;
}

}  // namespace qrtool::hdf5
