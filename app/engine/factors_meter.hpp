// SPDX-License-Identifier: Apache-2.0
// factors_meter.hpp: measures factors that somebody else has made, a matrix at a time.
#pragma once

#include <functional>

#include "core/batch.hpp"
#include "core/measure/error_probe.hpp"
#include "core/problem/problem.hpp"
#include "core/report/ratios.hpp"

namespace qrtool {

/// The errors of one matrix, their bars and its status.
struct Measurement {
  index_t matrix = 0;
  Status status = Status::unchecked;
  Errors errors;
  Bars bars = {};
};

using BarsOf = std::function<Bars(const Errors&)>;

/// Fills in bars and status of a matrix whose errors are known.
void judge_measurement(Measurement& result, bool a_is_finite, const BarsOf& bars_of, bool has_q);

/// A matrix, with its columns in the order of P, and its factors: Q and R, R alone, or V\R and tau
/// (1 x k). T is double, or complex numbers of it.
template <class T>
struct GivenFactors {
  MatrixView<const T> a, q = {}, r = {}, v = {};
  const T* tau = nullptr;
};

struct FactorsShape {
  ErrorFinder::Shape sizes;
  bool has_q = false;           // or reflectors, which stand for one
  bool has_reflectors = false;  // V\\R and tau are given
};

/// Measures matrices of one shape, one after another. Each thread needs its own object.
template <class T>
class FactorsMeter {
 public:
  FactorsMeter(const FactorsShape& shape, Check check, BarsOf bars_of);
  static std::size_t workspace_bytes(const FactorsShape& shape, Check check);

  Measurement measure(index_t number, const GivenFactors<T>& given);

 private:
  MatrixView<const T> upper_part(MatrixView<const T> v) const;

  FactorsShape shape_;
  BarsOf bars_of_;
  ErrorFinder finder_;
  Batch<T> formed_q_, upper_;
};

}  // namespace qrtool
