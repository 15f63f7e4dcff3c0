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

/// The cost of one dataset that is factored, or of one run of `solve`. A time that was not measured
/// is NaN.
struct RunCost {
  std::string input, plan;  // what is read; the plan in lines of text
  std::uint64_t input_bytes = 0, output_bytes = 0;
  bool is_output_estimated = false;  // text has no fixed size
  std::uint64_t memory_bytes = 0, memory_limit_bytes = 0, device_bytes = 0, scratch_bytes = 0;
  /// The programs of a device, if the times of earlier runs are kept.
  std::optional<ProgramsEstimate> programs = {};
  index_t chunks = 1;  // that overlap in reading, computing and writing
  double start_seconds = 0, read_seconds = 0, compute_seconds = 0, write_seconds = 0;

  /// Returns the time with the steps that overlap, without steps that were not measured.
  double total_seconds() const;
};

/// Times the reading of the first 32 MiB as numbers of `type`, for `passes` passes over all
/// matrices. Returns NaN if reading begins with a copy of everything.
double seconds_to_read(Reader& reader, ElementType type, index_t passes);

/// The times of a small part of a problem, or of a smaller matrix if one is too large: the seconds
/// of its first run, in which kernels are built, and of its second.
struct SampleSeconds {
  Problem problem;
  double first = 0, again = 0;
};
SampleSeconds time_sample(Backend& backend, const Problem& problem, const std::string& variant);

/// Adds the time of a backend for a problem, and the time until kernels are built and memory is
/// allocated, from the time of a part of it, or of a smaller one if one matrix is too large.
void enter_compute(Backend& backend, const Problem& problem, const std::string& variant,
                   RunCost& cost);

/// Returns the device that this process has started, by the text of its backend; nothing for the
/// CPU, and for several devices.
std::optional<DeviceInfo> started_device(const Backend& backend);

/// Enters the programs of a run on the device of `backend`, if it has one. Call it before a sample
/// builds some of them. `variant`: the one that runs; null: the plan's choice.
void enter_programs(const Work& work, const Backend& backend, const Variant* variant,
                    RunCost& cost);

/// Enters the bytes of an output, and the time to write them: numbers as text are formatted once,
/// and a file without a name needs 16 MiB beside the output for a moment.
void enter_output(const OutputSpec& spec, RunCost& cost);

/// Checks that a run could create its files, without creating them. Errors: OutputError.
void require_place(const std::string& output, const std::string& report, bool force);

/// Prints the costs as a command's result: in words, or as JSON (schema qrtool.dry-run/1).
struct PrintOptions;
void print_costs(const PrintOptions& options, const char* command, const std::string& output,
                 const std::vector<RunCost>& costs);

}  // namespace qrtool
