// SPDX-License-Identifier: Apache-2.0
// system_buffers.hpp: the device's buffers for systems, beside those of their factors, and the
// launches of systems.cl.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.hpp"
#include "core/solve/packing.hpp"
#include "core/solve/system_device.hpp"
#include "gpu/gpu_variant.hpp"
#include "gpu/host/chunk_run.hpp"
#include "gpu/host/engine.hpp"

namespace qrtool {

/// What tall_systems.cl keeps between its launches, for each right side: sums of each slab, sums of
/// all rows, and x with a flag. Only where systems are tall.
struct TallBuffers {
  cl::Buffer partial, sums, state;
};

/// Systems on the device; the buffers are packed.
struct SystemJob {
  const Params& params;
  ElementType type;
  SystemShape shape;
  cl::Buffer a, r;              // input, and its factor
  cl::Buffer b, x, se;          // se: only where it is wanted
  cl::Buffer findings;          // FactorFindings of each system
  cl::Buffer inverse_norms;     // n of each system, where se is wanted
  cl::Buffer scratch;           // n^2 for each team of factor_groups
  cl::Buffer errors;            // SolutionErrors of each right side
  index_t factor_groups = 0;    // work-groups of measure_factors
  const Params& tall_params;    // of tall_systems.cl
  const Params& normal_params;  // of normal.cl
  TallBuffers tall;
};

/// `count` systems with `sides` right sides each, whose vectors lie as in a RightSideBlock.
SystemShape system_shape(const SolveProblem& problem, index_t count, index_t sides,
                         const VectorPlaces& of_b, const VectorPlaces& of_x);

/// The defines of all programs.
struct SystemParams {
  SystemParams(index_t n, ElementType of, const Limits& limits);
  ElementType type;
  Params group, tall, normal;
};

/// What is the same for all sub-chunks: the problem, the variant of R, the defines.
struct SystemSetup {
  SystemSetup(Engine& used, const SolveProblem& solved, const GpuVariant& of_r)
      : engine(used),
        problem(solved),
        variant(of_r),
        params(solved.n, solved.type, used.info.limits) {}
  Engine& engine;
  const SolveProblem& problem;
  const GpuVariant& variant;
  SystemParams params;
};

/// Moments of a sub-chunk on the device; R alone is there at `factored`, and is not computed alone
/// by normal equations.
struct SystemEvents {
  cl::Event begun, factored, solved, checked;
};

/// The sizes of the buffers for systems with `sides` right sides each.
struct SystemLayout {
  SystemLayout(const SolveProblem& problem, index_t right_sides, const Params& params,
               const Limits& limits);

  index_t sides;
  /// Of one system: b, x, se, findings, inverse_norms, errors, checksums of b and of x, and
  /// TallBuffers.
  std::vector<std::size_t> bytes;
  index_t factor_groups;      // at the most
  std::size_t scratch_bytes;  // of each of these groups
};

/// The buffers of a sub-chunk.
struct SystemBuffers {
  SystemLayout layout;
  cl::Buffer b, x, se, findings, inverse_norms, errors, b_sums, x_sums;
  TallBuffers tall;
  cl::Buffer scratch;

  SystemJob job(const FactorJob& factor, const SystemParams& params,
                const SystemShape& shape) const;
  /// Sets x and the errors to NaN: those of an earlier run must not pass for those of this one
  /// where a kernel does not run.
  void poison(const cl::CommandQueue& queue, index_t count) const;
};

/// Enqueues x, and then the findings, the errors and the standard errors, from A and b.
SystemEvents enqueue_systems(const SystemSetup& setup, const FactorJob& factor,
                             const SystemBuffers& system, SystemShape shape, SystemRoute route);

/// Buffers that grow if needed and are kept for the next chunks.
class SystemPool {
 public:
  explicit SystemPool(cl::Context context) : context_(std::move(context)) {}
  /// The buffers of set `set` for `count` systems. Errors: cl::Error.
  SystemBuffers get(const SystemLayout& layout, index_t count, int set);
  /// Buffer number `entry` of a set, of at least so many bytes. Errors: cl::Error.
  cl::Buffer grown(std::pair<int, std::size_t> place, std::size_t bytes);
  void clear() { buffers_.clear(); }

 private:
  cl::Context context_;
  std::map<std::pair<int, std::size_t>, std::pair<cl::Buffer, std::size_t>> buffers_;
};

/// Calls body(), which must end with a wait. `what` is what the run holds on the device, for the
/// message. Errors: DeviceError, and LimitError where it does not fit.
template <class Body>
void run_or_explain(Engine& engine, std::string_view what, Body body) {
  try {
    body();
  } catch (const cl::Error& error) {
    engine.drain();
    if (!is_memory_short(error)) throw_device_error(error, engine.info, "in a run");
    throw LimitError(std::string(what) + " do not fit " + engine.info.text() + " at once");
  }
}

}  // namespace qrtool
