// SPDX-License-Identifier: Apache-2.0
// reader_of.hpp: what a reader needs once, and not for float32 and for float64.
#pragma once

#include "io/read/reader.hpp"

namespace qrtool {

/// The base of a reader that reads both types by one template: read_any_rows(matrix, first_row,
/// out), as read_rows(). It may also have read_any(first, out), as read(), if it can do better than
/// matrix by matrix.
template <class Derived>
class ReaderOf : public Reader {
 public:
  void read(index_t first, BatchView<float> out) final { self().read_any(first, out); }
  void read(index_t first, BatchView<double> out) final { self().read_any(first, out); }
  void read_rows(index_t matrix, index_t first_row, MatrixView<float> out) final {
    self().read_any_rows(matrix, first_row, out);
  }
  void read_rows(index_t matrix, index_t first_row, MatrixView<double> out) final {
    self().read_any_rows(matrix, first_row, out);
  }

  template <class T>
  void read_any(index_t first, BatchView<T> out) {
    for (index_t b = 0; b < out.count; ++b) self().read_any_rows(first + b, 0, out[b]);
  }

 private:
  Derived& self() { return static_cast<Derived&>(*this); }
};

}  // namespace qrtool
