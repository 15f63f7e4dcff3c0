// SPDX-License-Identifier: Apache-2.0
// stored_report.cpp: attributes, tries and checksums of reports.
#include "io/report/stored_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/report/factors_of_mode.hpp"
#include "io/report/report_file.hpp"
#include "io/report/report_sax.hpp"
#include "io/source/variable_record.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

using Json = nlohmann::json;

/// Returns the checksum in a text of checksum_text(), or 0 for another text.
std::uint64_t checksum_in(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

std::string_view field_in(std::string_view line, std::size_t number) {
  for (; number > 0 && !line.empty(); --number)
    line.remove_prefix(std::min(line.find(','), line.size() - 1) + 1);
  return line.substr(0, line.find(','));
}

/// Returns the place of a column in the header of a report in CSV.
std::optional<std::size_t> place_of(std::string_view column, std::string_view header) {
  for (std::size_t place = 0; !header.empty(); ++place) {
    const std::size_t end = std::min(header.find(','), header.size());
    if (header.substr(0, end) == column) return place;
    header.remove_prefix(std::min(end + 1, header.size()));
  }
  return {};
}

/// Keeps the strings of the object "qrtool", and tries and checksum of each object in the array
/// "matrices". A report of solutions has an object "report" instead of the array.
class ReportHandler final : public ReportSax {
 public:
  StoredReport report;
  bool has_lines = false;

  bool number_unsigned(number_unsigned_t number) override {
    if (is_in_matrix() && last_key() == "tries")
      report.tries.push_back(static_cast<std::uint8_t>(number));
    return true;
  }
  bool string(string_t& text) override {
    if (is_in("qrtool", 1)) report.record[last_key()] = text;
    if (is_in_matrix() && last_key() == checksum_column)
      report.checksums.push_back(checksum_in(text));
    return true;
  }
  bool start_object(std::size_t size) override {
    has_lines = has_lines || is_in("report", 0);
    return ReportSax::start_object(size);
  }
  bool start_array(std::size_t size) override {
    has_lines = has_lines || is_in("matrices", 0);
    return ReportSax::start_array(size);
  }

 private:
  bool is_in_matrix() const { return is_in("matrices", 2); }
};

std::string value_of(const Record& record, const std::string& name) {
  const auto found = record.find(name);
  return found == record.end() ? "" : found->second;
}

bool is_by_qrtool(const Record& record) { return value_of(record, "format") == "qrtool"; }

}  // namespace

StoredReport read_report(const std::string& path) {
  ReportHandler handler;
  if (!parse_report(path, handler) || !handler.has_lines) {
    throw InputError(
        fmt::format("{}: damaged: it is not the JSON of a report", escape(path)),
        fmt::format("factor again with --force, or remove {} to have the factors measured as they "
                    "are",
                    escape(path)));
  }
  return std::move(handler.report);
}

bool is_of_other_files(const std::string& described, const std::string& set) {
  return !described.empty() && described != ending_of(set);
}

StoredReport read_report_of_set(const std::string& set) {
  const std::string name = report_file(set, ".json");
  if (!std::filesystem::exists(name)) return {};
  StoredReport report = read_report(name);
  return is_of_other_files(value_of(report.record, described_ending), set) ? StoredReport{}
                                                                           : std::move(report);
}

std::vector<std::string> values_of(const Record& record, const std::vector<const char*>& names) {
  std::vector<std::string> values(names.size());
  if (!is_by_qrtool(record)) return values;
  for (std::size_t i = 0; i < names.size(); ++i) values[i] = value_of(record, names[i]);
  return values;
}

std::vector<std::string> attributes_of_set(const std::string& set,
                                           const std::vector<const char*>& names) {
  return values_of(read_report_of_set(set).record, names);
}

RecordedInput recorded_input_of_set(const std::string& set) {
  return recorded_input(read_report_of_set(set).record);
}

std::optional<std::vector<std::uint64_t>> read_csv_checksums(const std::string& report,
                                                             std::size_t most) {
  TextLines lines(open_rereadable(report), escape(report));
  if (!lines.next()) return {};
  const auto column = place_of(checksum_column, lines.text());
  if (!column) return {};
  std::vector<std::uint64_t> checksums;
  while (checksums.size() < most && lines.next())
    checksums.push_back(checksum_in(field_in(lines.text(), *column)));
  return checksums;
}

std::string read_first_in_column(const std::string& report, std::string_view column) {
  TextLines lines(open_rereadable(report), escape(report));
  if (!lines.next()) return {};
  const auto place = place_of(column, lines.text());
  return place && lines.next() ? std::string(field_in(lines.text(), *place)) : "";
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
  RecordedInput input{.file = value_of(record, "source_file"),
                      .dataset = value_of(record, "source_dataset"),
                      .order = order == name_of(Order::column) ? Order::column
                               : order == name_of(Order::row)  ? Order::row
                                                               : Order::automatic};
  for (const char* name : names_of_reading())
    if (std::string word = value_of(record, name); !word.empty())
      input.details.emplace_back(name, std::move(word));
  return input;
}

void apply_record(const Record& record, const std::string& shown, StoredFactors& factors) {
  factors.by_qrtool = is_by_qrtool(record);
  if (!factors.by_qrtool) return;
  factors.is_mixed = value_of(record, "precision") == "mixed";
  require_factors_of_mode(shown, {value_of(record, "mode"), value_of(record, "pivot") == "yes"},
                          factors);
}

}  // namespace qrtool
