// SPDX-License-Identifier: Apache-2.0
// stored_factors.hpp: factors that are stored, and what their file records of the matrices that
// they were made from.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/read/reader.hpp"

namespace qrtool {

/// The record of the matrices in an output of this tool. Its members are empty or automatic if
/// another program wrote the file, or if the factors are text.
struct RecordedInput {
  std::string file, dataset;  // the name of the file without its directory
  Order order = Order::automatic;
  TextPairs details = {};
};

/// The factors that this tool or another program has stored.
struct StoredFactors {
  std::string file;
  // Either Q and R, or only R, or V and tau (1 x k); the others are null. With p (1 x n, counted
  // from 0) Q and R are factors of A[:, P].
  std::unique_ptr<Reader> q, r, p, v, tau;
  bool by_qrtool = false;
  bool is_mixed = false;  // qrtool wrote them with --precision mixed
  /// /report/tries of an HDF5 file of qrtool, one number per matrix; empty: not recorded.
  std::vector<std::uint8_t> tries;
};

/// Returns the name of a dataset in an output of several: /Q/NAME, /R/NAME, /report/NAME.
std::string name_in_output(const std::string& source);

}  // namespace qrtool
