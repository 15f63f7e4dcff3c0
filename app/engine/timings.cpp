// SPDX-License-Identifier: Apache-2.0
// timings.cpp: merges the times of devices, and their form as JSON.
#include "app/engine/timings.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/text.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view schema = "qrtool.timings/1";
constexpr std::size_t most_programs = 1000, most_samples = 100, most_devices = 20;
/// A time that is not this much shorter than the kept one is no news.
constexpr double news = 0.9;

/// Errors: nlohmann::json::exception, also if a number cannot be a time.
double seconds_of(const Json& json) {
  const double seconds = json.get<double>();
  if (!(seconds >= 0) || std::isinf(seconds))
    throw Json::other_error::create(501, "not a time", nullptr);
  return seconds;
}

Json to_json(const KeptProgram& program) {
  Json json{{"id", program.id}, {"user", program.user}, {"first_seconds", program.first_seconds}};
  if (program.least_seconds) json["least_seconds"] = *program.least_seconds;
  return json;
}

KeptProgram program_of(const Json& json) {
  KeptProgram program{.id = json.at("id"),
                      .user = json.at("user"),
                      .first_seconds = seconds_of(json.at("first_seconds")),
                      .least_seconds = {}};
  if (json.contains("least_seconds")) program.least_seconds = seconds_of(json["least_seconds"]);
  return program;
}

Json to_json(const KeptSample& sample) {
  const Problem& p = sample.problem;
  return {{"type", name_of(p.type)},
          {"with_q", p.wants_q()},
          {"shape", {p.count, p.m, p.n}},
          {"seconds", sample.seconds}};
}

index_t extent_of(const Json& json) { return std::max<index_t>(json.get<index_t>(), 1); }

KeptSample sample_of(const Json& json) {
  const bool is_single = json.at("type").get<std::string>() == name_of(ElementType::float32);
  return {.problem = {.count = extent_of(json.at("shape").at(0)),
                      .m = extent_of(json.at("shape").at(1)),
                      .n = extent_of(json.at("shape").at(2)),
                      .type = is_single ? ElementType::float32 : ElementType::float64,
                      .mode = json.at("with_q").get<bool>() ? Mode::reduced : Mode::r},
          .seconds = seconds_of(json.at("seconds"))};
}

Json to_json(const KeptDevice& device);

template <class T>
Json list_of(const std::vector<T>& items) {
  Json list = Json::array();
  for (const T& item : items) list.push_back(to_json(item));
  return list;
}

Json to_json(const KeptDevice& device) {
  return {{"platform", device.platform},
          {"name", device.name},
          {"driver", device.driver},
          {"is_gpu", device.is_gpu},
          {"start_seconds", device.start_seconds},
          {"programs", list_of(device.programs)},
          {"samples", list_of(device.samples)}};
}

KeptDevice device_of(const Json& json) {
  KeptDevice device{.platform = json.at("platform"),
                    .name = json.at("name"),
                    .driver = json.at("driver"),
                    .is_gpu = json.at("is_gpu"),
                    .start_seconds = seconds_of(json.at("start_seconds")),
                    .programs = {},
                    .samples = {}};
  for (const Json& program : json.at("programs")) device.programs.push_back(program_of(program));
  for (const Json& sample : json.at("samples")) device.samples.push_back(sample_of(sample));
  return device;
}

/// Removes the oldest entries.
template <class T>
void keep_newest(std::vector<T>& items, std::size_t most) {
  if (items.size() <= most) return;
  items.erase(items.begin(), items.end() - static_cast<std::ptrdiff_t>(most));
}

bool add_program(KeptDevice& device, const ProgramTime& time) {
  const auto found = std::ranges::find(device.programs, time.id, &KeptProgram::id);
  if (found == device.programs.end()) {
    device.programs.push_back({time.id, time.user, time.seconds, {}});
    keep_newest(device.programs, most_programs);
    return true;
  }
  if (found->least_seconds && time.seconds >= news * *found->least_seconds) return false;
  found->least_seconds = time.seconds;
  return true;
}

bool is_of(const KeptDevice& device, const DeviceInfo& info) {
  return device.platform == info.platform && device.name == info.name &&
         device.driver == info.driver;
}

}  // namespace

const KeptProgram* KeptDevice::find(const std::string& id) const {
  const auto found = std::ranges::find(programs, id, &KeptProgram::id);
  return found == programs.end() ? nullptr : &*found;
}

Timings Timings::from_text(const std::string& text) {
  Timings timings;
  try {
    const Json json = Json::parse(text);
    if (json.at("schema") != schema) return {};
    for (const Json& device : json.at("devices")) timings.devices_.push_back(device_of(device));
  } catch (const nlohmann::json::exception&) {
    return {};
  }
  return timings;
}

std::string Timings::to_text() const {
  return Json{{"schema", schema}, {"devices", list_of(devices_)}}.dump(
             1, ' ', false, Json::error_handler_t::replace) +
         "\n";
}

const KeptDevice* Timings::find(const DeviceInfo& info) const {
  const auto found =
      std::ranges::find_if(devices_, [&](const KeptDevice& device) { return is_of(device, info); });
  return found == devices_.end() ? nullptr : &*found;
}

std::optional<double> Timings::least_start_seconds() const {
  std::optional<double> least;
  for (const KeptDevice& device : devices_) {
    if (device.is_gpu && (!least || device.start_seconds < *least)) least = device.start_seconds;
  }
  return least;
}

KeptDevice& Timings::entry_of(const DeviceInfo& info) {
  const auto found =
      std::ranges::find_if(devices_, [&](const KeptDevice& device) { return is_of(device, info); });
  if (found != devices_.end()) return *found;
  devices_.push_back({info.platform, info.name, info.driver, !info.limits.is_cpu, 0, {}, {}});
  keep_newest(devices_, most_devices);
  return devices_.back();
}

bool Timings::add(const DeviceTimes& times) {
  bool is_news = find(times.info) == nullptr;
  KeptDevice& device = entry_of(times.info);
  if (is_news || times.start_seconds < news * device.start_seconds) {
    device.start_seconds = times.start_seconds;
    is_news = true;
  }
  for (const ProgramTime& program : times.programs) is_news |= add_program(device, program);
  return is_news;
}

void Timings::add(const DeviceInfo& info, const KeptSample& sample) {
  KeptDevice& device = entry_of(info);
  device.samples.push_back(sample);
  keep_newest(device.samples, most_samples);
}

}  // namespace qrtool
