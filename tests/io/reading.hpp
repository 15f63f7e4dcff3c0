// SPDX-License-Identifier: Apache-2.0
// reading.hpp: reads matrices through a Reader of any format.
#pragma once

#include <vector>

#include "io/read/reader.hpp"
#include "tests/io/file_test.hpp"

namespace qrtool {

template <class T>
std::vector<T> read_range(Reader& reader, index_t first, index_t count) {
  const Source& source = reader.source();
  auto values = poisoned<T>(count * source.m * source.n);
  reader.read(first, packed(values.data(), count, source.m, source.n));
  return values;
}

template <class T>
std::vector<T> read_all(Reader& reader) {
  return read_range<T>(reader, 0, reader.source().count());
}

}  // namespace qrtool
