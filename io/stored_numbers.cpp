// SPDX-License-Identifier: Apache-2.0
// stored_numbers.cpp: collects the numbers of a report column by column.
#include "io/stored_numbers.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/factor_files.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/report_file.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::ordered_json;

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Collects the object "qrtool", the numbers of each object in the array "matrices", and the arrays
/// in the object "report" of solutions.
class NumbersHandler final : public nlohmann::json_sax<Json> {
 public:
  StoredOutput output;

  bool null() override { return number(no_number); }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool binary(binary_t&) override { return true; }
  bool string(string_t& text) override {
    if (depth_ == 2 && section_ == "qrtool") output.attributes.emplace_back(key_, text);
    return true;
  }
  bool key(string_t& text) override {
    key_ = text;
    if (depth_ == 1) section_ = text;
    if (depth_ == 2 && section_ == "report") output.report.push_back({.name = text});
    return true;
  }
  bool start_object(std::size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool start_array(std::size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool parse_error(std::size_t, const std::string&, const Json::exception&) override {
    return false;
  }

 private:
  bool number(double value) {
    if (depth_ == 2 && section_ == "qrtool")
      output.attributes.emplace_back(key_, fmt::format("{}", value));
    if (depth_ == 3 && section_ == "matrices" && key_ != "matrix") column().values.push_back(value);
    if (section_ != "report" || depth_ < 3) return true;
    ReportNumbers& numbers = output.report.back();
    if (key_ == "bar" && !std::isnan(value)) numbers.bar = value;
    if (key_ == "shape") numbers.dims.push_back(static_cast<index_t>(value));
    if (key_ == "values") numbers.values.push_back(value);
    return true;
  }
  ReportNumbers& column() {
    for (ReportNumbers& each : output.report)
      if (each.name == key_) return each;
    return output.report.emplace_back(ReportNumbers{.name = key_});
  }
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

/// Gives the columns of a table, which have no shape, that of a list.
void shape_as_lists(StoredOutput& output) {
  for (ReportNumbers& each : output.report)
    if (each.dims.empty()) each.dims = {static_cast<index_t>(each.values.size())};
}

template <class Add>
void for_each_field(std::string_view line, const Add& add) {
  for (std::size_t i = 0, at = 0; at <= line.size(); ++i) {
    const std::size_t end = std::min(line.find(',', at), line.size());
    add(i, line.substr(at, end - at));
    at = end + 1;
  }
}

/// NaN where the field is no number.
double number_in(std::string_view field) {
  double value = no_number;
  std::from_chars(field.data(), field.data() + field.size(), value);
  return value;
}

}  // namespace

std::vector<StoredOutput> read_json_output(const std::string& set) {
  const std::string name = report_file(set, ".json");
  if (!std::filesystem::exists(name)) return {};
  std::ifstream file(name);
  NumbersHandler handler;
  if (!Json::sax_parse(file, &handler))
    throw InputError(fmt::format("{}: damaged: it is not the JSON of a report", escape(name)),
                     "write it again with factor or solve and --force");
  if (handler.output.attribute("format") != "qrtool") return {};
  shape_as_lists(handler.output);
  return {std::move(handler.output)};
}

std::vector<StoredOutput> read_csv_output(const std::string& set, TextPairs attributes) {
  const std::string name = report_file(set, ".csv");
  if (!std::filesystem::exists(name)) return {};
  StoredOutput output{.attributes = std::move(attributes)};
  TextLines lines(open_rereadable(name), escape(name));
  if (!lines.next()) return {};
  for_each_field(lines.text(), [&](std::size_t, std::string_view field) {
    output.report.push_back({.name = std::string(field)});
  });
  while (lines.next())
    for_each_field(lines.text(), [&](std::size_t i, std::string_view field) {
      if (i < output.report.size()) output.report[i].values.push_back(number_in(field));
    });
  if (output.find("status") == nullptr) return {};
  shape_as_lists(output);
  return {std::move(output)};
}

TextPairs attributes_in(std::string_view json) {
  const Json object = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  TextPairs pairs;
  if (!object.is_object()) return pairs;
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) pairs.emplace_back(name, value.get<std::string>());
    if (value.is_number()) pairs.emplace_back(name, fmt::format("{}", value.get<double>()));
  }
  return pairs;
}

}  // namespace qrtool
