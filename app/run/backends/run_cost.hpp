// SPDX-License-Identifier: Apache-2.0
// run_cost.hpp: estimates the memory and the time of a run from its plan and a few quick
// measurements.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "app/engine/automatic.hpp"
#include "core/backend/backend.hpp"
#include "io/read/reader.hpp"
#include "io/write/writer.hpp"

namespace qrtool {

/// Of one dataset that is factored, or of one run of `solve`. A time that was not measured is NaN.
struct RunCost {
  std::string input, plan;  // what is read; the plan in lines of text
  std::uint64_t input_bytes = 0, output_bytes = 0;
  bool is_output_estimated = false;  // text has no fixed size
  std::uint64_t memory_bytes = 0, memory_limit_bytes = 0, device_bytes = 0, scratch_bytes = 0;
  /// Of a device, where the times of earlier runs are kept.
  std::optional<ProgramsEstimate> programs = {};
  index_t chunks = 1;  // that overlap in reading, computing and writing
  double start_seconds = 0, read_seconds = 0, compute_seconds = 0, write_seconds = 0;

  /// With the steps that overlap; without those that were not measured.
  double total_seconds() const;
};

/// Times the reading of the first 32 MiB as numbers of `type`, for `passes` passes over all
/// matrices. NaN where reading begins with a copy of everything.
double seconds_to_read(Reader& reader, ElementType type, index_t passes);

/// A small part of a problem, or a smaller matrix where one is too large: the seconds of the first
/// run of it, in which kernels are built, and of the second.
struct SampleSeconds {
  Problem problem;
  double first = 0, again = 0;
};
SampleSeconds time_sample(Backend& backend, const Problem& problem, const std::string& variant);

/// Adds what a backend takes for a problem, and until kernels are built and memory is there, from
/// the time of a part of it, or of a smaller one where one matrix is too large.
void enter_compute(Backend& backend, const Problem& problem, const std::string& variant,
                   RunCost& cost);

/// What is known of a device that this process has started, by the text of its backend; none for
/// the CPU, and for several devices.
std::optional<DeviceInfo> started_device(const Backend& backend);

/// Enters the programs of a run on the device of `backend`, if it has one. Call it before a sample
/// builds some of them. `variant`: the one that runs; null: the plan's choice.
void enter_programs(const Work& work, const Backend& backend, const Variant* variant,
                    RunCost& cost);

/// Enters the bytes of an output, and the time to write them: numbers as text are formatted once,
/// and a file without a name takes 16 MiB beside the output for a moment.
void enter_output(const OutputSpec& spec, RunCost& cost);

/// Finds out whether a run could create its files. A dry run creates none. Errors: OutputError.
void require_place(const std::string& output, const std::string& report, bool force);

/// Prints the costs as a command's result: in words, or as JSON (schema qrtool.dry-run/1).
struct PrintOptions;
void print_costs(const PrintOptions& options, const char* command, const std::string& output,
                 const std::vector<RunCost>& costs);

}  // namespace qrtool
