// SPDX-License-Identifier: Apache-2.0
// probe.cpp: runs the kernels of probe.cl and compares their results with the known ones.
#include "gpu/host/probe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "core/machine/driver_scope.hpp"
#include "gpu/host/kernel_files.hpp"
#include "gpu/host/launcher.hpp"

namespace qrtool {
namespace {

constexpr std::string_view probe_file = "gpu/host/probe.cl";
constexpr int items = 512;  // of a launch
/// Float64 counts as fast from this part of float32's rate on. Data-centre parts have 1/2 or 1,
/// others at most 1/16. Below the second part pairs of floats are faster: a product and its
/// addition take them 10 instructions (gpu/common/wide.clh).
constexpr double least_share = 0.25, least_share_for_sums = 1.0 / 12;

/// A program, a queue and one buffer of results on a device.
class Probe {
 public:
  Probe(const DeviceInfo& info, const OpenDevice& open, const Defines& defines)
      : context_(open()),
        queue_(context_->queue()),
        programs_(*context_, info),
        launch_(kernels_, *queue_, programs_, {probe_file, defines, "the probe"}) {}

  template <class T>
  Buffer buffer(std::size_t entries) const {
    return context_->allocate(sizeof(T) * entries);
  }

  /// Runs a kernel with groups of `group` work-items. Returns the seconds.
  template <class... Args>
  double run(const char* name, int work_items, int group, const Args&... args) {
    const Event begun = queue_->mark();
    launch_(name, work_items / group, group, args...);
    const Event done = queue_->mark();
    done->wait();
    return seconds_between(begun, done);
  }

  template <class T>
  void write(const Buffer& to, const std::vector<T>& from) {
    queue_->write(to, from.data(), sizeof(T) * from.size());
  }
  template <class T>
  std::vector<T> read(const Buffer& from, std::size_t entries) {
    return queue_->read_list<T>(from, entries);
  }

 private:
  std::unique_ptr<DeviceContext> context_;
  std::unique_ptr<Queue> queue_;
  ProgramCache programs_;
  KernelCache kernels_;
  Launcher launch_;
};

/// Calls `probe`; whatever the driver or its compiler does not do counts as `otherwise`.
template <class Result, class Body>
Result tried(Result otherwise, Body body) {
  try {
    return body();
  } catch (const DeviceError&) {
    return otherwise;
  } catch (const DeviceFailure&) {
    return otherwise;
  }
}

Defines typed(std::string_view real) {
  return {{"STORED", std::string(real)}, {"REAL", std::string(real)}};
}

/// What probe_lanes gives in work-items first .. first + 7.
template <class T>
bool are_right(const std::vector<T>& results, std::size_t item) {
  constexpr std::size_t values = 11;
  const auto x = [](std::size_t i) { return static_cast<T>(3 * i + 1); };
  const T* own = results.data() + values * item;
  bool is_right = true;
  for (std::size_t from = 0; from < 8; ++from) is_right &= own[from] == x(item / 8 * 8 + from);
  for (std::size_t place = 8, width = 2; width <= 8; ++place, width *= 2) {
    T sum = 0;
    for (std::size_t i = 0; i < width; ++i) sum += x(item / width * width + i);
    is_right &= own[place] == sum;
  }
  return is_right;
}

template <class T>
bool lanes_are_right(const DeviceInfo& info, const OpenDevice& open, std::string_view real) {
  Probe probe(info, open, typed(real));
  constexpr std::size_t entries = 11 * items;
  const Buffer results = probe.buffer<T>(entries);
  for (const int group : {8, 32, 64, 128, 256}) {
    if (group > info.limits.max_group) continue;
    probe.write(results, std::vector<T>(entries, T(-1)));
    probe.run("probe_lanes", items, group, results);
    const std::vector<T> found = probe.read<T>(results, entries);
    for (std::size_t item = 0; item < items; ++item) {
      if (!are_right(found, item)) return false;
    }
  }
  return true;
}

/// C and the sum of the lanes' numbers.
bool is_right_warp(const double* s, const double* result) {
  for (std::size_t i = 0; i < 16; ++i) {
    for (std::size_t j = 0; j < 16; ++j) {
      double sum = 0;
      for (std::size_t k = 0; k < 16; ++k) sum += s[16 * i + k] * s[16 * j + k];
      if (result[16 * i + j] != sum) return false;
    }
  }
  return result[256] == 31 * 16;
}

bool warps_are_right(const DeviceInfo& info, const OpenDevice& open) {
  Defines defines = typed("double");
  defines["MMA"] = "1";
  Probe probe(info, open, defines);
  constexpr std::size_t warps = items / 32;
  std::vector<double> s(256 * warps);
  for (std::size_t i = 0; i < s.size(); ++i)
    s[i] = static_cast<double>((7 * (i % 256 / 16) + 3 * (i % 16) + i / 256) % 11);
  const Buffer given = probe.buffer<double>(s.size());
  const Buffer results = probe.buffer<double>(257 * warps);
  probe.write(given, s);
  for (const int group : {32, 128, 256}) {
    if (group > info.limits.max_group) continue;
    probe.write(results, std::vector<double>(257 * warps, -1));
    probe.run("probe_warp", items, group, given, results);
    const std::vector<double> found = probe.read<double>(results, 257 * warps);
    for (std::size_t w = 0; w < warps; ++w) {
      if (!is_right_warp(s.data() + 256 * w, found.data() + 257 * w)) return false;
    }
  }
  return true;
}

template <class T>
double chain_seconds(const DeviceInfo& info, const OpenDevice& open, std::string_view real) {
  Probe probe(info, open, typed(real));
  const int work_items = 2048 * std::max(1, info.limits.compute_units);
  const Buffer results = probe.buffer<T>(static_cast<std::size_t>(work_items));
  double least = std::numeric_limits<double>::infinity();
  for (int turn = 0; turn < 3; ++turn)
    least = std::min(least, probe.run("probe_rate", work_items, 64, results, T(0.5)));
  return least;
}

/// The first version of OpenCL C in which shuffles among lanes build and give the right results.
void settle_lanes(DeviceInfo& info, const OpenDevice& open, const ProbeHints& hints) {
  info.sub_groups = hints.capability > 0 ? SubGroups::nvidia_ptx : SubGroups::local_memory;
  info.standard = "CL1.2";
  // On a CPU a barrier costs no more than a shuffle.
  if (hints.capability > 0 || !hints.has_shuffles || info.limits.is_cpu) return;
  DeviceInfo candidate = info;
  candidate.sub_groups = SubGroups::khr_shuffle;
  candidate.limits.shuffle_lanes = shuffle_lanes(candidate.sub_groups);
  for (const char* standard : {"CL1.2", "CL3.0", "CL2.0"}) {
    candidate.standard = standard;
    if (!has_right_lanes(candidate, open)) continue;
    info = candidate;
    return;
  }
}

/// The word that QRTOOL_FLOAT64_BODY names: for tests of a body on a GPU that has better ones.
std::string_view wanted_float64_body() {
  const char* word = std::getenv("QRTOOL_FLOAT64_BODY");
  return word == nullptr ? std::string_view{} : word;
}

/// The best body for products by warps, on GPUs whose float64 is fast.
void settle_float64(DeviceInfo& info, const OpenDevice& open, const ProbeHints& hints) {
  constexpr std::array<std::pair<Float64Body, std::string_view>, 3> bodies{
      {{Float64Body::wide, "wide"}, {Float64Body::quads, "quads"}, {Float64Body::plain, "plain"}}};
  const std::string_view wanted = wanted_float64_body();
  info.limits.float64_products = false;
  if (info.limits.is_cpu || !info.limits.fast_float64 || info.sub_groups != SubGroups::nvidia_ptx) {
    return;  // a warp needs shuffles among 32 work-items
  }
  DeviceInfo candidate = info;
  candidate.limits.float64_products = true;
  for (const auto& [body, name] : bodies) {
    if (!wanted.empty() && wanted != name) continue;
    candidate.float64_body = body;
    // Every kernel was run on GPUs of these capabilities with this body.
    const bool is_known =
        body == Float64Body::wide && (hints.capability == 90 || hints.capability == 100);
    if (!is_known && !has_right_warps(candidate, open)) continue;
    info = candidate;
    return;
  }
}

/// float64_share(), which is kept on disk: a context takes a tenth of a second.
double kept_float64_share(const DeviceInfo& info, const OpenDevice& open) {
  const std::string key = "share of float64\n" + info.platform + '\n' + info.text();
  double share = 0;
  if (const std::optional<std::string> kept = kept_kernels(key)) {
    const char* const end = kept->data() + kept->size();
    if (std::from_chars(kept->data(), end, share).ptr == end) return share;
  }
  share = float64_share(info, open);
  keep_kernels(key, fmt::format("{:.4g}", share));
  return share;
}

void settle_float64_rate(DeviceInfo& info, const OpenDevice& open, const ProbeHints& hints) {
  info.limits.fast_float64 = info.limits.slow_float64 = false;
  if (!info.limits.has_float64) return;
  const bool is_known = info.limits.is_cpu || has_fast_float64(info.name, hints.capability);
  if (is_known && !info.float64_share) {
    info.limits.fast_float64 = true;
    return;
  }
  if (!info.float64_share) info.float64_share = kept_float64_share(info, open);
  info.limits.fast_float64 = *info.float64_share >= least_share;
  info.limits.slow_float64 = *info.float64_share < least_share_for_sums;
}

}  // namespace

bool has_right_lanes(const DeviceInfo& info, const OpenDevice& open) {
  return tried(false, [&] {
    return lanes_are_right<float>(info, open, "float") &&
           (!info.limits.has_float64 || lanes_are_right<double>(info, open, "double"));
  });
}

bool has_right_warps(const DeviceInfo& info, const OpenDevice& open) {
  return tried(false, [&] { return warps_are_right(info, open); });
}

double float64_share(const DeviceInfo& info, const OpenDevice& open) {
  return tried(0.0, [&] {
    return chain_seconds<float>(info, open, "float") / chain_seconds<double>(info, open, "double");
  });
}

void settle_bodies(DeviceInfo& info, const OpenDevice& open, const ProbeHints& hints) {
  settle_lanes(info, open, hints);
  info.limits.shuffle_lanes = shuffle_lanes(info.sub_groups);
  settle_float64_rate(info, open, hints);
  settle_float64(info, open, hints);
}

}  // namespace qrtool
