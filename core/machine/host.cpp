// SPDX-License-Identifier: Apache-2.0
// host.cpp: reads /proc and /sys; a file that is not there sets no limit.
#include "core/machine/host.hpp"

#include <fmt/format.h>

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>

namespace qrtool {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

std::size_t room(std::size_t limit, std::size_t used) { return limit > used ? limit - used : 0; }

/// Returns the number in a file, or nothing for "max" or if there is no such file.
std::optional<std::size_t> number_in(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  if (file >> number) return number;
  return std::nullopt;
}

std::size_t machine_room_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kibibytes = 0;
    if (words >> name >> kibibytes && name == "MemAvailable:") return kibibytes * 1024;
  }
  return static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

std::size_t address_space_room_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return unlimited;
  const std::size_t pages = number_in("/proc/self/statm").value_or(0);
  return room(limit.rlim_cur, pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)));
}

/// Returns the number of threads whose stacks fit half of the address space that a limit leaves.
/// OpenMP ends the process if it cannot start a thread.
int threads_with_room() {
  const std::size_t room = address_space_room_bytes();
  rlimit stack{};
  if (room == unlimited || getrlimit(RLIMIT_STACK, &stack) != 0)
    return std::numeric_limits<int>::max();
  constexpr std::size_t usual_stack = std::size_t{8} << 20;
  const std::size_t bytes =
      stack.rlim_cur == RLIM_INFINITY ? usual_stack : std::max<std::size_t>(stack.rlim_cur, 65536);
  return static_cast<int>(std::clamp<std::size_t>(room / 2 / bytes, 1, 1 << 20));
}

/// The least of limit_of(root, directory) over the control groups of this process with the
/// `controller`. Every line of /proc/self/cgroup is "id:controllers:path"; version 2 has no
/// controllers.
template <class Limit>
auto least_of_control_groups(const std::string& controller, Limit limit_of) {
  auto least = std::numeric_limits<decltype(limit_of("", ""))>::max();
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool is_version_2 = controllers == ",,";
    if (!is_version_2 && controllers.find("," + controller + ",") == std::string::npos) continue;
    const std::string root = is_version_2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
    least = std::min(least, limit_of(root, root + line.substr(second + 1)));
  }
  return least;
}

/// Calls use(directory) for `directory` and its parents up to `root`.
template <class Use>
void for_each_parent(const std::string& root, std::string directory, Use use) {
  while (directory.size() >= root.size()) {
    use(directory);
    directory.resize(std::min(directory.rfind('/'), directory.size() - 1));
  }
}

/// Returns the number of cores to which this process is bound.
int bound_cores() {
  cpu_set_t cores;
  if (sched_getaffinity(0, sizeof cores, &cores) == 0) return std::max(1, CPU_COUNT(&cores));
  return machine_cores();
}

/// Cached file contents count as used memory, but are given up if memory is needed.
std::size_t reclaimable_bytes(const std::string& directory, std::string_view prefix) {
  std::size_t sum = 0;
  std::ifstream file(directory + "/memory.stat");
  std::string name;
  for (std::uint64_t bytes = 0; file >> name >> bytes;) {
    if (!name.starts_with(prefix)) continue;
    const std::string_view field = std::string_view(name).substr(prefix.size());
    if (field == "active_file" || field == "inactive_file") sum += bytes;
  }
  return sum;
}

std::size_t room_in(const std::string& directory, const char* limit_name, const char* used_name,
                    std::string_view prefix) {
  const std::optional<std::size_t> limit = number_in(directory + limit_name);
  if (!limit) return unlimited;
  const std::size_t used = number_in(directory + used_name).value_or(0);
  return room(*limit, room(used, reclaimable_bytes(directory, prefix)));
}

}  // namespace

std::size_t cgroup_room_bytes(const std::string& root, const std::string& directory) {
  std::size_t least = unlimited;
  for_each_parent(root, directory, [&](const std::string& each) {
    least = std::min({least, room_in(each, "/memory.max", "/memory.current", ""),
                      room_in(each, "/memory.limit_in_bytes", "/memory.usage_in_bytes", "total_")});
  });
  return least;
}

int cgroup_cores(const std::string& root, const std::string& directory) {
  int least = std::numeric_limits<int>::max();
  for_each_parent(root, directory, [&](const std::string& each) {
    std::int64_t quota = 0, period = 0;
    std::ifstream both(each + "/cpu.max");  // "max 100000" where there is no quota
    if (!(both >> quota >> period)) {
      std::ifstream first(each + "/cpu.cfs_quota_us"), second(each + "/cpu.cfs_period_us");
      first >> quota;  // -1 where there is no quota
      second >> period;
    }
    if (quota <= 0 || period <= 0) return;
    least = static_cast<int>(std::min<std::int64_t>(least, (quota + period - 1) / period));
  });
  return least;
}

std::size_t free_memory_bytes() {
  return std::min({machine_room_bytes(), least_of_control_groups("memory", cgroup_room_bytes),
                   address_space_room_bytes()});
}

int available_cores() {
  return std::min(bound_cores(), least_of_control_groups("cpu", cgroup_cores));
}

int machine_cores() { return std::max(1, static_cast<int>(std::thread::hardware_concurrency())); }

std::size_t counted_file_bytes(std::size_t bytes, std::size_t memory_bytes) {
  constexpr std::size_t mib = std::size_t{1} << 20;
  return memory_bytes < 16 * mib ? bytes - std::min(bytes, 7 * mib) : bytes;
}

std::string hint_of_memory(std::size_t bytes) {
  const std::size_t enough = bytes + bytes / 8 + (std::size_t{8} << 20);
  const bool in_gib = enough >= std::size_t{10} << 30;
  return fmt::format("raise --memory to {}{}", (enough >> (in_gib ? 30 : 20)) + 1,
                     in_gib ? "GiB" : "MiB");
}

Limits host_limits(std::optional<std::uint64_t> memory_bytes, int threads) {
  Limits limits;
  limits.host_bytes = memory_bytes.value_or(free_memory_bytes() / 2);
  limits.threads = std::min(threads > 0 ? threads : available_cores(), threads_with_room());
  return limits;
}

Limits rank_limits(std::optional<std::uint64_t> memory_bytes, int threads, const Comm& comm) {
  Limits limits = host_limits(memory_bytes, threads);
  const int ranks_here = comm.local_size();
  if (!memory_bytes) limits.host_bytes /= static_cast<std::size_t>(ranks_here);
  // If mpirun has bound the ranks to cores, the cores are divided among them already.
  if (threads == 0 && bound_cores() >= machine_cores())
    limits.threads = std::max(1, limits.threads / ranks_here);
  limits.ranks = comm.size();
  return limits;
}

}  // namespace qrtool
