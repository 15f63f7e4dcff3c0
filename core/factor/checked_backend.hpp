// SPDX-License-Identifier: Apache-2.0
// checked_backend.hpp: everything that surrounds a backend where factors are for a user: the second
// try of what is above its bar, then rank, condition and pivoted columns.
#pragma once

#include "core/factor/ranked_backend.hpp"
#include "core/factor/second_try.hpp"

namespace qrtool {

class CheckedBackend {
 public:
  /// `backend` must outlive this object.
  explicit CheckedBackend(Backend& backend) : tries_(backend), ranks_(tries_) {}

  /// Factors what the problem asks for.
  Backend& backend_for(const Problem& problem) {
    return problem.ranks() ? static_cast<Backend&>(ranks_) : tries_;
  }
  SecondTry& tries() { return tries_; }

 private:
  SecondTry tries_;
  RankedBackend ranks_;
};

}  // namespace qrtool
