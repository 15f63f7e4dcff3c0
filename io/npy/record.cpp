// SPDX-License-Identifier: Apache-2.0
// record.cpp: reads JSON value by value, so that a report of many matrices needs little memory.
#include "io/npy/record.hpp"

#include <fmt/format.h>

#include <charconv>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/report_file.hpp"

namespace qrtool::npy {
namespace {

using Json = nlohmann::json;

/// Keeps the strings of the object "qrtool", and tries and checksum of each object in the array
/// "matrices".
class ReportHandler final : public nlohmann::json_sax<Json> {
 public:
  StoredReport report;
  bool has_matrices = false;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool number_unsigned(number_unsigned_t number) override {
    if (is_in_matrix() && key_ == "tries")
      report.tries.push_back(static_cast<std::uint8_t>(number));
    return true;
  }
  bool string(string_t& text) override {
    if (depth_ == 2 && section_ == "qrtool") report.record[key_] = text;
    if (!is_in_matrix() || key_ != checksum_column) return true;
    std::uint64_t value = 0;
    const char* const digits = text.data() + (text.starts_with("0x") ? 2 : 0);
    std::from_chars(digits, text.data() + text.size(), value, 16);
    report.checksums.push_back(value);
    return true;
  }
  bool key(string_t& text) override {
    key_ = text;
    if (depth_ == 1) section_ = text;
    return true;
  }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override {
    has_matrices = has_matrices || (depth_ == 1 && section_ == "matrices");
    return enter();
  }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool is_in_matrix() const { return depth_ == 3 && section_ == "matrices"; }
  bool enter() {
    ++depth_;
    return true;
  }
  bool leave() {
    --depth_;
    return true;
  }

  int depth_ = 0;
  std::string section_, key_;  // the last keys at depth 1 and anywhere
};

std::string value_of(const Record& record, const std::string& name) {
  const auto found = record.find(name);
  return found == record.end() ? "" : found->second;
}

bool is_by_qrtool(const Record& record) { return value_of(record, "format") == "qrtool"; }

}  // namespace

StoredReport read_report(const std::string& path) {
  readable_size(path);
  std::ifstream file(path);
  ReportHandler handler;
  if (!Json::sax_parse(file, &handler) || !handler.has_matrices) {
    throw InputError(
        fmt::format("{}: damaged: it is not the JSON of a report", escape(path)),
        fmt::format("factor again with --force, or remove {} to have the factors measured as they "
                    "are",
                    escape(path)));
  }
  return std::move(handler.report);
}

Record parse_record(std::string_view json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  Record record;
  if (!object.is_object()) return record;
  for (const auto& [name, value] : object.items())
    if (value.is_string()) record[name] = value.get<std::string>();
  return record;
}

RecordedInput recorded_input(const Record& record) {
  if (!is_by_qrtool(record)) return {};
  const std::string order = value_of(record, "order");
  return {.file = value_of(record, "source_file"),
          .dataset = value_of(record, "source_dataset"),
          .order = order == name_of(Order::column) ? Order::column
                   : order == name_of(Order::row)  ? Order::row
                                                   : Order::automatic};
}

void apply_record(const Record& record, const std::string& shown, StoredFactors& factors) {
  factors.by_qrtool = is_by_qrtool(record);
  if (!factors.by_qrtool) return;
  factors.is_mixed = value_of(record, "precision") == "mixed";
  const std::string mode = value_of(record, "mode");
  const bool needs_v = mode == "raw", needs_r = !needs_v && !mode.empty();
  const bool needs_q = needs_r && mode != "r";
  const std::pair<const char*, bool> missing[] = {{"Q", needs_q && !factors.q},
                                                  {"R", needs_r && !factors.r},
                                                  {"V", needs_v && !factors.v},
                                                  {"tau", needs_v && !factors.tau}};
  for (const auto& [name, is_missing] : missing) {
    if (!is_missing) continue;
    throw InputError(
        fmt::format("{}: was written with mode {}, but there is no {}", shown, escape(mode), name));
  }
}

}  // namespace qrtool::npy
