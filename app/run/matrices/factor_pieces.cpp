// SPDX-License-Identifier: Apache-2.0
// factor_pieces.cpp: which rows a piece has, and what each stage does with them.
#include "app/run/matrices/factor_pieces.hpp"

#include <algorithm>
#include <utility>

#include "app/run/matrices/factor_matrices.hpp"

namespace qrtool {

template <class T>
PieceSteps<T>::PieceSteps(const Plan& plan, std::span<const MatrixDataset> factors, Reader& input,
                          Backend& backend, Outputs& outputs, Verdict& verdict)
    : plan_(plan), input_(input), backend_(backend), outputs_(outputs), verdict_(verdict) {
  parts_.push_back(part(nullptr, plan.problem.m, plan.problem.n));
  for (const MatrixDataset& factor : factors)
    parts_.push_back(part(&factor, factor.rows, factor.cols));
}

template <class T>
typename PieceSteps<T>::Part PieceSteps<T>::part(const MatrixDataset* factor, index_t rows,
                                                 index_t cols) const {
  const auto row_bytes = static_cast<std::size_t>(cols) * sizeof(T);
  return {factor, rows, cols, static_cast<index_t>(plan_.piece_bytes / row_bytes)};
}

template <class T>
index_t PieceSteps<T>::pieces_of_matrix() const {
  index_t pieces = 0;
  for (const Part& part : parts_) pieces += part.pieces();
  return pieces;
}

template <class T>
index_t PieceSteps<T>::rows() const {
  index_t rows = 0;
  for (const Part& part : parts_) rows += part.rows;
  return rows * plan_.problem.count;
}

template <class T>
MatrixView<T> PieceSteps<T>::rows_of(const Piece<T>& piece) const {
  const index_t cols = piece.factor == nullptr ? plan_.problem.n : piece.factor->cols;
  return {piece.memory.view().data, piece.rows, cols, cols};
}

template <class T>
void PieceSteps<T>::begin(Piece<T>& piece, index_t number) const {
  piece.matrix = number / pieces_of_matrix();
  index_t place = number % pieces_of_matrix();
  auto part = parts_.begin();
  for (; place >= part->pieces(); ++part) place -= part->pieces();
  piece.factor = part->factor;
  piece.first = place * part->rows_at_once;
  piece.rows = std::min(part->rows_at_once, part->rows - piece.first);
  const bool ends_part = place + 1 == part->pieces();
  piece.is_last = ends_part && (part == parts_.begin() || std::next(part) == parts_.end());
}

/// A piece is allocated when it first has its turn, while others are on their way.
template <class T>
void PieceSteps<T>::read(Piece<T>& piece) {
  if (piece.memory.view().data == nullptr)
    piece.memory = Batch<T>(backend_.allocate(plan_.piece_bytes), 1, 1,
                            static_cast<index_t>(plan_.piece_bytes / sizeof(T)));
  if (piece.factor == nullptr) input_.read_rows(piece.matrix, piece.first, rows_of(piece));
}

template <class T>
void PieceSteps<T>::work(Piece<T>& piece) {
  if (piece.factor == nullptr) {
    if (piece.first == 0) held_ = backend_.hold<T>(plan_);
    held_->put(piece.first, rows_of(piece));
    if (piece.is_last) held_->factor(plan_);
    return;
  }
  held_->get(piece.factor->name, piece.first, rows_of(piece));
  if (!piece.is_last) return;
  piece.line = held_->report();
  seconds_ += held_->seconds();
}

template <class T>
void PieceSteps<T>::keep(Piece<T>& piece) {
  if (piece.factor != nullptr) {
    const MatrixView<const T> rows = rows_of(piece);
    if (piece.factor->is_vector)
      outputs_.factors->write(piece.factor->name, piece.matrix,
                              BatchView<const T>(packed(rows.data, 1, rows.rows, rows.cols)));
    else
      outputs_.factors->write_rows(piece.factor->name, piece.matrix, piece.first, rows);
    if (piece.is_last) {
      outputs_.write_report(piece.matrix, {&piece.line, 1});
      add_to_verdict(verdict_, plan_.problem, piece.matrix, {&piece.line, 1});
    }
  }
  if (progress_ != nullptr) progress_->add(piece.rows);
}

template class PieceSteps<float>;
template class PieceSteps<double>;

}  // namespace qrtool
