// SPDX-License-Identifier: Apache-2.0
// machine_state.cpp: reads /proc and /sys, and asks nvidia-smi.
#include "app/bench/timing/machine_state.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "core/join.hpp"
#include "core/text.hpp"

namespace qrtool {
namespace {

/// Returns the lines that a command prints, or none if there is no such command.
std::vector<std::string> output_lines(const char* command) {
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command, "re"), pclose);
  std::vector<std::string> lines;
  std::array<char, 4096> line;
  while (pipe && std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    lines.emplace_back(line.data());
    while (lines.back().ends_with('\n')) lines.back().pop_back();
  }
  return lines;
}

std::string first_line(const char* file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::optional<double> mean_mhz() {
  std::ifstream in("/proc/cpuinfo");
  double sum = 0;
  int cores = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("cpu MHz")) continue;
    sum += std::strtod(line.c_str() + line.find(':') + 1, nullptr);
    ++cores;
  }
  return cores > 0 ? std::optional(sum / cores) : std::nullopt;
}

constexpr const char* ask_states =
    "nvidia-smi --query-gpu=name,clocks.sm,clocks.mem,power.draw,temperature.gpu,pstate,"
    "utilization.gpu --format=csv,noheader,nounits 2>/dev/null </dev/null";
constexpr const char* ask_processes =
    "nvidia-smi --query-compute-apps=pid --format=csv,noheader 2>/dev/null </dev/null";

std::vector<GpuState> gpu_states() {
  std::vector<GpuState> gpus;
  for (const std::string& line : output_lines(ask_states)) {
    std::vector<std::string> words = split(line, ',');
    if (words.size() != 7) continue;  // a message of an error
    for (std::string& word : words) word.erase(0, word.find_first_not_of(' '));
    gpus.push_back({words[0], words[1], words[2], words[3], words[4], words[5], words[6]});
  }
  return gpus;
}

std::vector<long> gpu_processes() {
  std::vector<long> others;
  for (const std::string& line : output_lines(ask_processes)) {
    const long process = std::strtol(line.c_str(), nullptr, 10);
    if (process > 0 && process != getpid()) others.push_back(process);
  }
  return others;
}

}  // namespace

MachineState machine_state(bool with_gpus) {
  MachineState state;
  state.cpu_mhz = mean_mhz();
  state.governor = first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  if (const std::string load = first_line("/proc/loadavg"); !load.empty())
    state.load = std::strtod(load.c_str(), nullptr);
  if (!with_gpus) return state;
  state.gpus = gpu_states();
  state.gpu_processes = gpu_processes();
  return state;
}

std::string disturbance(const MachineState& before, const MachineState& after) {
  for (const MachineState* state : {&before, &after}) {
    if (!state->gpu_processes.empty())
      return fmt::format("another process computes on a GPU: {}", join(state->gpu_processes, ", "));
  }
  for (const GpuState& gpu : before.gpus) {
    if (std::strtol(gpu.use_percent.c_str(), nullptr, 10) > 0)
      return fmt::format("before this run began, {} was in use for {} % of the time",
                         escape(gpu.name), escape(gpu.use_percent));
  }
  return {};
}

}  // namespace qrtool
