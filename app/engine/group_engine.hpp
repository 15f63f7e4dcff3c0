// SPDX-License-Identifier: Apache-2.0
// group_engine.hpp: solves systems in memory on the routes `each` and `shared` of a plan: on a
// device where there is one, and what it refuses on the CPU.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "app/engine/solve_device.hpp"
#include "app/engine/solve_plan.hpp"
#include "core/cpu/cpu_backend.hpp"
#include "core/solve/engines/shared_engine.hpp"
#include "core/solve/engines/system_engine.hpp"

namespace qrtool {

/// How the systems of a run are solved. device: null for the CPU. All outlive the engine.
struct GroupJob {
  const SolveProblem& problem;
  const SolvePlan& plan;
  const Limits& limits;
  SolveDevice* device = nullptr;
};

/// Solves one block of right sides after another. Not thread-safe: it has threads of its own.
template <class T>
class GroupEngine {
 public:
  /// `a`: the one A of all right sides, packed; empty: each group has its own. `w`: m weights of
  /// all right sides; null: there are none. Both must outlive the engine.
  GroupEngine(const GroupJob& job, MatrixView<const T> a, const Real<T>* w);

  /// Solves for the right sides of the block. `a`: the packed matrices of its groups; for a device
  /// they must be packed together. Empty if all share one.
  void run(BatchView<const T> a, const RightSideBlock<T>& block);

  /// Frees the memory that is kept between two calls of run(), which must not be called after it.
  void free_workspace();

  /// Returns the findings about the A of all right sides, after run().
  const MatrixFindings& findings() const { return findings_; }
  /// Whether a device does the work, so that this process has time for other work.
  bool is_on_device() const { return device_ != nullptr || shared_device_ != nullptr; }
  const SolveSeconds& seconds() const { return seconds_; }

 private:
  const T* a_of(BatchView<const T> a, index_t group) const {
    return a_.data != nullptr ? a_.data : a[group].data;
  }
  std::vector<index_t> all_systems(const RightSideBlock<T>& block) const;
  SolveSeconds solve_systems(BatchView<const T> a, const RightSideBlock<T>& block,
                             const std::vector<index_t>& right_sides);
  void solve_on_device(BatchView<const T> a, const RightSideBlock<T>& block);
  void solve_shared(const RightSideBlock<T>& block);
  std::vector<index_t> run_shared(const RightSideBlock<T>& block);
  void take_to_device(const RightSideBlock<T>& block) requires(!is_complex_number<T>);
  std::vector<index_t> solve_shared_on_device(const RightSideBlock<T>& block) requires(
      !is_complex_number<T>);
  std::vector<index_t> solve_gaps_on_device(
      const RightSideBlock<T>& block,
      std::span<const index_t> refused) requires(!is_complex_number<T>);
  std::vector<index_t> solve_copies(SystemDevice<T>& device, const RightSideBlock<T>& block,
                                    std::span<const index_t> sides) requires(!is_complex_number<T>);
  BatchView<const T> one_for_all(index_t sides) const {
    return {a_.data, sides, a_.rows, a_.cols, a_.ld, 0};
  }
  void solve_group(MatrixView<const T> a, index_t group, RightSideBlock<T> block);

  GroupJob job_;
  MatrixView<const T> a_;
  const Real<T>* w_;
  CpuBackend cpu_;
  std::optional<SharedEngine<T>> shared_;
  std::optional<SystemEngine<T>> engine_;
  std::unique_ptr<SystemDevice<T>> device_;
  std::unique_ptr<SharedDevice<T>> shared_device_;
  std::unique_ptr<SystemDevice<T>> gap_device_;  // beside shared_device_
  bool has_matrix_ = false;
  MatrixFindings findings_;
  SolveSeconds seconds_;
};

}  // namespace qrtool
