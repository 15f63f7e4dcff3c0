// SPDX-License-Identifier: Apache-2.0
// descriptor.hpp: closes an open file when its owner is done with it.
#pragma once

#include <unistd.h>

#include <utility>

namespace qrtool {

/// Owns the descriptor of an open file. A negative number means none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  operator int() const { return number_; }
  /// Gives up ownership and returns the number.
  int release() { return std::exchange(number_, -1); }

 private:
  int number_ = -1;
};

}  // namespace qrtool
