// SPDX-License-Identifier: Apache-2.0
// reading.hpp: opens HDF5 files through Reader, and gives the messages of errors.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "io/open/input.hpp"
#include "tests/io/hdf5/fixture.hpp"
#include "tests/io/reading.hpp"

namespace qrtool {

inline std::unique_ptr<Reader> open_file(const std::string& path, const std::string& dataset = "",
                                         Order order = Order::automatic) {
  return open_input({path, dataset, order, /*threads=*/2});
}

inline std::string input_error(const std::string& path, const std::string& dataset = "") {
  return error_of<InputError>([&] { open_file(path, dataset); });
}

template <class T>
std::vector<T> read_row_range(Reader& reader, index_t matrix, index_t first, index_t rows) {
  const index_t n = reader.source().n;
  auto values = poisoned<T>(rows * n);
  reader.read_rows(matrix, first, {values.data(), rows, n, n});
  return values;
}

}  // namespace qrtool
