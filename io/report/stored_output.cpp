// SPDX-License-Identifier: Apache-2.0
// stored_output.cpp: collects the numbers of a report column by column.
#include "io/report/stored_output.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/report/report_file.hpp"
#include "io/report/report_sax.hpp"
#include "io/report/stored_report.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

constexpr double no_number = std::numeric_limits<double>::quiet_NaN();

/// Collects the object "qrtool", the numbers of each object in the array "matrices", and the arrays
/// in the object "report" of solutions.
class NumbersHandler final : public ReportSax {
 public:
  StoredOutput output;

  bool null() override { return number(no_number); }
  bool number_integer(number_integer_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return number(static_cast<double>(value));
  }
  bool number_float(number_float_t value, const string_t&) override { return number(value); }
  bool string(string_t& text) override {
    if (is_in("qrtool", 1)) output.attributes.emplace_back(last_key(), text);
    return true;
  }
  bool key(string_t& text) override {
    if (is_in("report", 1)) output.report.push_back({.name = text});
    return ReportSax::key(text);
  }

 private:
  bool number(double value) {
    const std::string& name = last_key();
    if (is_in("qrtool", 1)) output.attributes.emplace_back(name, fmt::format("{}", value));
    if (is_in("matrices", 2) && name != "matrix") column().values.push_back(value);
    if (section() != "report" || depth() < 3) return true;
    ReportNumbers& numbers = output.report.back();
    if (name == "bar" && !std::isnan(value)) numbers.bar = value;
    if (name == "shape") numbers.dims.push_back(static_cast<index_t>(value));
    if (name == "values") numbers.values.push_back(value);
    return true;
  }
  ReportNumbers& column() {
    for (ReportNumbers& each : output.report)
      if (each.name == last_key()) return each;
    return output.report.emplace_back(ReportNumbers{.name = last_key()});
  }
};

/// Gives columns of a table, which have no shape, the shape of a list.
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

/// Returns the number in a field, or NaN if it is none.
double number_in(std::string_view field) {
  double value = no_number;
  std::from_chars(field.data(), field.data() + field.size(), value);
  return value;
}

}  // namespace

const ReportNumbers* StoredOutput::find(std::string_view name) const {
  const auto found = std::find_if(report.begin(), report.end(),
                                  [&](const ReportNumbers& each) { return each.name == name; });
  return found == report.end() ? nullptr : &*found;
}

std::string StoredOutput::attribute(std::string_view name) const {
  const auto found = std::find_if(attributes.begin(), attributes.end(),
                                  [&](const auto& each) { return each.first == name; });
  return found == attributes.end() ? "" : found->second;
}

std::vector<StoredOutput> read_json_output(const std::string& set) {
  const std::string name = report_file(set, ".json");
  if (!std::filesystem::exists(name)) return {};
  NumbersHandler handler;
  if (!parse_report(name, handler))
    throw InputError(fmt::format("{}: damaged: it is not the JSON of a report", escape(name)),
                     "write it again with factor or solve and --force");
  if (handler.output.attribute("format") != "qrtool") return {};
  if (is_of_other_files(handler.output.attribute(described_ending), set)) return {};
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
  const auto object = nlohmann::ordered_json::parse(json, nullptr, /*allow_exceptions=*/false);
  TextPairs pairs;
  if (!object.is_object()) return pairs;
  for (const auto& [name, value] : object.items()) {
    if (value.is_string()) pairs.emplace_back(name, value.get<std::string>());
    if (value.is_number()) pairs.emplace_back(name, fmt::format("{}", value.get<double>()));
  }
  return pairs;
}

}  // namespace qrtool
