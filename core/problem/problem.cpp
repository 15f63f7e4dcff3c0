// SPDX-License-Identifier: Apache-2.0
// problem.cpp: the names of modes, signs, arithmetics and checks, and the sizes of a problem.
#include "core/problem/problem.hpp"

namespace qrtool {

std::string_view name_of(ElementType type) {
  switch (type) {
    case ElementType::float32:
      return "float32";
    case ElementType::complex64:
      return "complex64";
    case ElementType::complex128:
      return "complex128";
    case ElementType::float64:
      break;
  }
  return "float64";
}

std::string_view name_of(Mode mode) {
  switch (mode) {
    case Mode::reduced:
      return "reduced";
    case Mode::complete:
      return "complete";
    case Mode::r:
      return "r";
    case Mode::raw:
      return "raw";
  }
  return "";
}

std::string_view name_of(Arithmetic arithmetic) {
  switch (arithmetic) {
    case Arithmetic::strict:
      return "strict";
    case Arithmetic::mixed:
      return "mixed";
    case Arithmetic::any:
      break;
  }
  return "any";
}

std::string_view precision_name(const Problem& problem) {
  if (real_of(problem.type) == ElementType::float64) return "double";
  return problem.arithmetic == Arithmetic::mixed ? "mixed" : "single";
}

std::string_view name_of(Sign sign) { return sign == Sign::positive ? "positive" : "lapack"; }

std::string_view name_of(Check check) {
  switch (check) {
    case Check::full:
      break;
    case Check::probe:
      return "probe";
    case Check::none:
      return "none";
  }
  return "full";
}

std::size_t Problem::input_bytes() const {
  return static_cast<std::size_t>(m) * static_cast<std::size_t>(n) * size_of(type);
}

std::size_t Problem::output_bytes() const {
  const auto rows = static_cast<std::size_t>(m), cols = static_cast<std::size_t>(n);
  const std::size_t q = rows * static_cast<std::size_t>(q_cols());
  const std::size_t r = static_cast<std::size_t>(r_rows()) * cols;
  const std::size_t tau = mode == Mode::raw ? static_cast<std::size_t>(k()) : 0;
  return (q + r + tau) * size_of(type);
}

}  // namespace qrtool
