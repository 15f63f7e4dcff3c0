// SPDX-License-Identifier: Apache-2.0
// reader.hpp: reads matrices from arrays of NumPy.
#pragma once

#include <memory>

#include "io/npy/array.hpp"
#include "io/read/reader.hpp"

namespace qrtool::npy {

/// Reads the last two dimensions of an array as matrices, with `threads` threads; with `is_vector`
/// the last dimension as a matrix of one row. `dataset` is the name of a .npz's member. Errors:
/// InputError if the array holds no real numbers or has too few dimensions.
std::unique_ptr<Reader> read_array(ArrayParts parts, const std::string& dataset, bool is_vector,
                                   const InputSpec& spec);

/// Opens the array of a .npy file. Errors: InputError.
std::unique_ptr<Reader> open_npy(const InputSpec& spec);

/// The reason why an array holds no matrices: its type, or too few dimensions. Empty if it holds
/// matrices.
struct Obstacle {
  std::string text, hint;
};
Obstacle obstacle_of(const Header& header, bool is_vector);

}  // namespace qrtool::npy
