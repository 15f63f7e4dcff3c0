// SPDX-License-Identifier: Apache-2.0
// cpu_variants.hpp: the CPU variants as the backend runs them. Private to core/cpu.
#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <tuple>

#include "core/backend/backend.hpp"

namespace qrtool {

/// Factors chunk after chunk of a plan. Its workspaces stay: memory that was given back and taken
/// again had to be mapped and cleared anew, which took a tenth of the time of 64x64 and 512x256.
template <class T>
class ChunkFactor {
 public:
  virtual ~ChunkFactor() = default;
  virtual ChunkSeconds run(BatchView<const T> a, const Factors<T>& out,
                           std::span<MatrixReport> report) = 0;
};

template <class T>
using ChunkFactorPointer = std::unique_ptr<ChunkFactor<T>>;

// Functions that make the workers for the chunks of a plan. cpu_backend.cpp defines them for float
// and for double, make_complex() for complex numbers, make_tall() and make_eigen() for all.
template <class T>
ChunkFactorPointer<T> make_batched(const Plan& plan);
template <class T>
ChunkFactorPointer<T> make_tall(const Plan& plan);
template <class T>
ChunkFactorPointer<T> make_blocked(const Plan& plan);
template <class T>
ChunkFactorPointer<T> make_complex(const Plan& plan);
template <class T>
ChunkFactorPointer<T> make_eigen(const Plan& plan);

struct CpuVariant {
  template <class T>
  using Make = ChunkFactorPointer<T> (*)(const Plan&);

  Variant plan;
  /// Null for a type that the variant cannot factor.
  OfEachType<std::tuple, Make> make;
};

/// The times of rates.csv, by two threads, on every machine: bits must depend neither on the
/// machine nor on --threads. They are means of a processor with AVX2 and one with AVX-512.
const CostTable& cpu_costs();

/// Returns the variant that a plan chose. Errors: InternalError for one of another backend.
const CpuVariant& cpu_variant(const Variant& variant);

}  // namespace qrtool
