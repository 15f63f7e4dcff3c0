// SPDX-License-Identifier: Apache-2.0
// export.cpp: the result of `qrtool bench` for machines.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "app/bench/table/table.hpp"
#include "app/run/verdict/verdict_text.hpp"
#include "core/join.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

/// Returns the value of --precision, or the name of a complex type.
std::string_view precision_name(ElementType type) {
  if (is_complex(type)) return name_of(type);
  return type == ElementType::float32 ? "single" : "double";
}

/// Puts the text in double quotes if it has a character that CSV uses.
std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

std::string csv_number(double value) { return fmt::format("{:.6g}", value); }

std::string csv_heading(const BenchHeader& header) {
  std::string line =
      "backend,device,precision,mode,kind,m,n,batch,threads,variant,ms,ms_worst_batch,ms_fastest,"
      "ms_slowest,check_ms";
  for (const BenchHeader::Baseline& baseline : header.baselines)
    line += fmt::format(",{0}_ms,{0}_speed_up", baseline.name);
  return line +
         ",gflops,error_mean,error_worst,failed,first_pass,second_pass,further_passes,reflectors,"
         "notes\n";
}

std::string csv_line(const BenchResult& result, const BenchRow& row) {
  const BenchHeader& h = result.header;
  std::string line = fmt::format(
      "{},{},{},{},{},{},{},{},{},{}", h.backend, csv_text(h.device), precision_name(h.type),
      name_of(h.task, h.mode), row.size.kind, row.size.m, row.size.n, row.size.batch,
      h.is_on_device() ? "" : std::to_string(threads_of(h, row)), row.variant);
  const auto add = [&](bool is_known, auto value) {
    line += "," + (is_known ? csv_number(value()) : std::string());
  };
  const bool has_tool = row.tool.has_value();
  add(has_tool, [&] { return row.tool->median() * 1e3; });
  add(has_tool, [&] { return row.tool->worst() * 1e3; });
  add(has_tool, [&] { return row.tool->fastest() * 1e3; });
  add(has_tool, [&] { return row.tool->slowest() * 1e3; });
  add(has_tool && h.has_check_time(), [&] { return row.tool->check_seconds * 1e3; });
  for (const std::optional<Timing>& baseline : row.baselines) {
    add(baseline.has_value(), [&] { return baseline->median() * 1e3; });
    add(has_tool && baseline, [&] { return speed_up(row, *baseline); });
  }
  const bool has_error = row.accuracy.matrices > 0 && h.has_error();
  add(has_tool, [&] { return gflops(h, row); });
  add(has_error, [&] { return row.accuracy.mean(); });
  add(has_error, [&] { return row.accuracy.worst; });
  std::string notes;
  for (const int number : row.notes)
    notes += (notes.empty() ? "" : "; ") + result.notes[static_cast<std::size_t>(number - 1)];
  const RouteCounts& routes = row.accuracy.routes;
  return line + fmt::format(",{},{},{},{},{},{}\n", row.accuracy.failed, routes.first_pass,
                            routes.second_pass, routes.further_passes, routes.reflectors,
                            csv_text(notes));
}

Json json_of(const std::optional<Timing>& timing) {
  if (!timing) return nullptr;
  Json batches = Json::array();
  for (const BatchTiming& batch : timing->batches)
    batches.push_back({{"seed", batch.seed},
                       {"median", batch.median},
                       {"standard_error", batch.standard_error},
                       {"runs", batch.runs},
                       {"verified_run", batch.verified}});
  return {{"median", timing->median()},
          {"worst", timing->worst()},
          {"standard_error", timing->standard_error()},
          {"batches", batches},
          {"fastest", timing->fastest()},
          {"slowest", timing->slowest()},
          {"all", timing->seconds}};
}

Json json_of(const std::optional<BenchChoice>& choice) {
  if (!choice) return nullptr;
  return {{"taken", choice->taken},
          {"taken_seconds", choice->taken_seconds},
          {"best", choice->best},
          {"best_seconds", choice->best_seconds}};
}

/// Values that the system does not tell are null.
Json json_of(const MachineState& state) {
  const auto text = [](const std::string& word) { return word.empty() ? Json() : Json(word); };
  Json gpus = Json::array();
  for (const GpuState& gpu : state.gpus)
    gpus.push_back({{"name", text(gpu.name)},
                    {"clock_mhz", text(gpu.clock_mhz)},
                    {"memory_clock_mhz", text(gpu.memory_clock_mhz)},
                    {"power_watts", text(gpu.power_watts)},
                    {"temperature", text(gpu.temperature)},
                    {"power_state", text(gpu.power_state)},
                    {"use_percent", text(gpu.use_percent)}});
  return {{"cpu_mhz", state.cpu_mhz ? Json(*state.cpu_mhz) : Json()},
          {"governor", text(state.governor)},
          {"load", state.load ? Json(*state.load) : Json()},
          {"gpus", gpus},
          {"gpu_processes", state.gpu_processes}};
}

Json json_of(const BenchHeader& header, const BenchRow& row) {
  Json baselines = Json::object();
  for (std::size_t i = 0; i < row.baselines.size(); ++i) {
    const std::optional<Timing>& timing = row.baselines[i];
    baselines[header.baselines[i].name] = {
        {"seconds", json_of(timing)},
        {"check_seconds", timing ? Json(timing->check_seconds) : Json()},
        {"speed_up", row.tool && timing ? Json(speed_up(row, *timing)) : Json()}};
  }
  const bool has_error = row.accuracy.matrices > 0 && header.has_error();
  const bool has_first = row.tool && row.tool->first_seconds;
  return {{"kind", row.size.kind},
          {"m", row.size.m},
          {"n", row.size.n},
          {"batch", row.size.batch},
          {"threads", header.is_on_device() ? Json() : Json(threads_of(header, row))},
          {"variant", row.variant.empty() ? Json() : Json(row.variant)},
          {"seconds", json_of(row.tool)},
          {"check_seconds",
           row.tool && header.has_check_time() ? Json(row.tool->check_seconds) : Json()},
          {"first_seconds", has_first ? Json(*row.tool->first_seconds) : Json()},
          {"baselines", baselines},
          {"floor_seconds", row.floor_seconds ? Json(*row.floor_seconds) : Json()},
          {"auto", json_of(row.backend)},
          {"plan", json_of(row.plan)},
          {"gflops", row.tool ? Json(gflops(header, row)) : Json()},
          {"error_mean", has_error ? Json(row.accuracy.mean()) : Json()},
          {"error_worst", has_error ? Json(row.accuracy.worst) : Json()},
          {"failed", row.accuracy.failed},
          {"routes", to_json(row.accuracy.routes)},
          {"notes", row.notes}};
}

}  // namespace

std::string to_csv(const BenchResult& result) {
  std::string text = csv_heading(result.header);
  for (const BenchRow& row : result.rows) text += csv_line(result, row);
  return text;
}

std::string to_json(const BenchResult& result) {
  const BenchHeader& h = result.header;
  Json baselines = Json::object();
  for (const BenchHeader::Baseline& baseline : h.baselines)
    baselines[baseline.name] = baseline.text;
  Json rows = Json::array();
  for (const BenchRow& row : result.rows) rows.push_back(json_of(h, row));
  const Json document{
      {"schema", "qrtool.bench/1"},
      {"version", QRTOOL_VERSION},
      {"backend", {{"name", h.backend}, {"device", h.device}}},
      {"host", {{"processor", h.processor}, {"threads", h.threads}, {"ranks", 1}}},
      {"precision", precision_name(h.type)},
      {"arithmetic", name_of(h.arithmetic)},
      {"mode", name_of(h.task, h.mode)},
      {"ridge", h.ridge},
      {"sign", name_of(h.sign)},
      {"kind", join(h.kinds, ",")},
      {"seed", h.seed},
      {"seeds", h.seeds},
      {"cold", h.is_cold},
      {"portable", h.is_portable},
      {"timed",
       {{"what", h.is_on_device() ? "device clock, data resident" : "wall time"},
        {"warm_up", h.repeats.warm_up},
        {"timed", h.repeats.timed},
        {"most", h.repeats.most}}},
      {"state", {{"before", json_of(result.before)}, {"after", json_of(result.after)}}},
      {"baselines", baselines},
      {"cases_wanted", result.cases.size()},
      {"cases", rows},
      {"notes", result.notes},
      {"exit", result.has_failed() ? 1 : 0}};
  // A device's name may hold bytes that are not UTF-8; JSON must not fail because of them.
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace qrtool
