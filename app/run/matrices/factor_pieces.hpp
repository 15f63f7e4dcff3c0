// SPDX-License-Identifier: Apache-2.0
// factor_pieces.hpp: the stages of `qrtool factor` for matrices that go to a device, and come back,
// in pieces of their rows. The pieces of all matrices go through a few buffers, one after another:
//
//     read    A 0 | A 1 |     |     |  ..      A: from the input to the device
//     work        | A 0 | A 1 | Q 0 | Q 1 ..   after the last rows of A the device factors
//     write             |     |     | Q 0 ..   Q, R: from the device to the output
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "app/process/progress.hpp"
#include "app/run/files/outputs.hpp"
#include "app/run/verdict/verdict.hpp"
#include "core/backend/backend.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// Some rows of A or of a factor of one matrix.
template <class T>
struct Piece {
  Batch<T> memory;  // plan.piece_bytes
  index_t matrix = 0, first = 0, rows = 0;
  const MatrixDataset* factor = nullptr;  // null: A
  bool is_last = false;                   // of A, or of all factors
  MatrixReport line;                      // of the matrix, with the last piece of its factors
};

/// The steps for run_stages().
template <class T>
class PieceSteps {
 public:
  /// All arguments outlive the steps. `factors` are the datasets that the output gets.
  PieceSteps(const Plan& plan, std::span<const MatrixDataset> factors, Reader& input,
             Backend& backend, Outputs& outputs, Verdict& verdict);

  index_t pieces() const { return plan_.problem.count * pieces_of_matrix(); }
  /// Returns the rows of all pieces together.
  index_t rows() const;
  /// Sets the progress line, which shows how many rows are done.
  void show(Progress& progress) { progress_ = &progress; }
  ChunkSeconds seconds() const { return seconds_; }

  void begin(Piece<T>& piece, index_t number) const;
  void read(Piece<T>& piece);
  void work(Piece<T>& piece);
  void keep(Piece<T>& piece);

 private:
  /// A or a factor, cut into pieces of `rows_at_once` rows.
  struct Part {
    const MatrixDataset* factor;
    index_t rows, cols, rows_at_once;
    index_t pieces() const { return (rows + rows_at_once - 1) / rows_at_once; }
  };
  Part part(const MatrixDataset* factor, index_t rows, index_t cols) const;
  index_t pieces_of_matrix() const;
  MatrixView<T> rows_of(const Piece<T>& piece) const;

  const Plan& plan_;
  Reader& input_;
  Backend& backend_;
  Outputs& outputs_;
  Verdict& verdict_;
  Progress* progress_ = nullptr;
  std::vector<Part> parts_;  // A first
  HeldPointer<T> held_;
  ChunkSeconds seconds_;
};

}  // namespace qrtool
