// SPDX-License-Identifier: Apache-2.0
// dataset_reader.hpp: a reader of one dataset, or of a part of it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/hdf5/datasets/dataset.hpp"
#include "io/read/reader.hpp"
#include "io/read/selection.hpp"
#include "io/source/dimension.hpp"

namespace qrtool::hdf5 {

/// row: the last dimension is a matrix of one row (tau); column: the only one that the selection
/// leaves is a matrix of one column.
enum class VectorAs { no, row, column };

/// Says which part of a dataset is read, and how.
struct DatasetPart {
  Order order = Order::row;
  Order stated = Order::row;               // what the source says; of an array only what it states
  bool order_is_stated = true;             // not guessed
  std::string order_reason = {};           // what in the file states it
  bool raw_values = false;                 // the attributes of the variable do not count
  bool remainders = false;                 // InputSpec::remainders
  std::vector<Dimension> dimensions = {};  // of the source
  VectorAs vector = VectorAs::no;
  TextPairs details = {};          // of the source, besides those of its variable
  std::vector<Range> ranges = {};  // of the stored dimensions, with steps of 1; empty: all is read
  std::string selection = {};      // as text
  int threads = 1;
  std::size_t memory_bytes = SIZE_MAX;
};

/// Opens a dataset that is readable (require_readable). Matrices come in row order, even if they
/// are stored in column order. Errors: InputError, LimitError.
std::unique_ptr<Reader> read_dataset(std::shared_ptr<InputFile> file, Dataset dataset,
                                     DatasetPart part);

}  // namespace qrtool::hdf5
