// SPDX-License-Identifier: Apache-2.0
// report_file.cpp: formats the report of every matrix as CSV or JSON.
#include "io/report/report_file.hpp"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/batch.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/file/text_output.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {

std::string checksum_text(std::uint64_t checksum) { return fmt::format("0x{:016x}", checksum); }

namespace {

class CsvReport final : public ReportFile {
 public:
  CsvReport(const std::string& path, bool force, std::vector<ReportColumn> columns,
            const ReportOfSet* set)
      : output_(path, force),
        columns_(std::move(columns)),
        has_checksums_(set != nullptr),
        has_leverages_(set != nullptr && set->has_leverages) {
    std::string head = "matrix";
    for (const ReportColumn& column : columns_) head += fmt::format(",{}", column.name);
    if (has_checksums_) head += fmt::format(",{}", checksum_column);
    if (has_leverages_) head += fmt::format(",{}", leverage_checksum);
    output_.buffer().append(head + "\n");
  }

  void write(std::span<const MatrixReport> report,
             std::span<const std::uint64_t> checksums) override {
    for (std::size_t i = 0; i < report.size(); ++i) {
      const auto to = std::back_inserter(output_.buffer());
      fmt::format_to(to, FMT_COMPILE("{}"), next_++);
      // Whole numbers are written without a point.
      for (const ReportColumn& column : columns_)
        fmt::format_to(to, FMT_COMPILE(",{}"), column.value(report[i]));
      if (has_checksums_) fmt::format_to(to, FMT_COMPILE(",{}"), checksum_text(checksums[i]));
      if (has_leverages_) leave_place();
      output_.buffer().push_back('\n');
      output_.flush_if_full();
    }
  }

  void bind_leverages(std::uint64_t checksum) override {
    if (place_ > 0) output_.replace(place_, checksum_text(checksum));
  }
  void finish(FileSet& files) override { output_.finish(files); }

 private:
  /// Leaves room for the checksum of the leverages, which is known after the lines.
  void leave_place() {
    output_.buffer().push_back(',');
    if (next_ > 1) return;
    place_ = output_.position();
    output_.buffer().append(checksum_text(0));
  }

  TextOutput output_;
  std::vector<ReportColumn> columns_;
  bool has_checksums_, has_leverages_;
  std::uint64_t place_ = 0;  // of the checksum of the leverages, in bytes; 0: there is no line
  index_t next_ = 0;
};

class JsonReport final : public ReportFile {
 public:
  JsonReport(const std::string& path, bool force, std::vector<ReportColumn> columns,
             const ReportOfSet* set)
      : output_(path, force), columns_(std::move(columns)), has_checksums_(set != nullptr) {
    if (set) attributes_ = set->attributes;
    output_.buffer().append(std::string_view(R"({"schema":"qrtool.report/1","matrices":[)"));
  }

  void write(std::span<const MatrixReport> report,
             std::span<const std::uint64_t> checksums) override {
    for (std::size_t i = 0; i < report.size(); ++i) {
      const auto to = std::back_inserter(output_.buffer());
      fmt::format_to(to, FMT_COMPILE("{}{{\"matrix\":{}"), next_ > 0 ? ",\n" : "\n", next_);
      for (const ReportColumn& column : columns_) append(column.name, column.value(report[i]));
      if (has_checksums_)
        fmt::format_to(to, FMT_COMPILE(",\"{}\":\"0x{:016x}\""), checksum_column, checksums[i]);
      output_.buffer().push_back('}');
      output_.flush_if_full();
      ++next_;
    }
  }

  void add_attribute(const std::string& name, const AttributeValue& value) override {
    attributes_.emplace_back(name, value);
  }
  void bind_leverages(std::uint64_t checksum) override {
    add_attribute(leverage_checksum, checksum_text(checksum));
  }

  void finish(FileSet& files) override {
    const std::string attributes =
        has_checksums_ ? fmt::format(",\n\"qrtool\":{}", to_json(attributes_)) : "";
    output_.buffer().append(fmt::format("\n]{}}}\n", attributes));
    output_.finish(files);
  }

 private:
  void append(std::string_view name, double number) {
    const auto to = std::back_inserter(output_.buffer());
    // JSON has no NaN and no infinity.
    if (std::isfinite(number)) {
      fmt::format_to(to, FMT_COMPILE(",\"{}\":{}"), name, number);
    } else {
      fmt::format_to(to, FMT_COMPILE(",\"{}\":null"), name);
    }
  }

  TextOutput output_;
  std::vector<ReportColumn> columns_;
  bool has_checksums_;
  Attributes attributes_;  // of a set
  index_t next_ = 0;
};

}  // namespace

Attributes attributes_of_report(const OutputSpec& spec) {
  Attributes attributes = spec.attributes;
  attributes.emplace_back(described_ending, ending_of(spec.path));
  return attributes;
}

std::string to_json(const Attributes& attributes) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  for (const auto& attribute : attributes)
    std::visit([&](const auto& plain) { json[attribute.first] = plain; }, attribute.second);
  // A name of a file may be no UTF-8.
  return json.dump(-1, ' ', /*ensure_ascii=*/true,
                   nlohmann::ordered_json::error_handler_t::replace);
}

void ReportFile::commit() {
  FileSet files;
  finish(files);
  files.commit();
}

void check_report_ending(const std::string& path) {
  if (path.ends_with(".csv") || path.ends_with(".json")) return;
  throw UsageError(fmt::format("report '{}': the name must end in .csv or .json", escape(path)));
}

std::unique_ptr<ReportFile> create_report_file(const std::string& path, bool force,
                                               std::vector<ReportColumn> columns,
                                               const ReportOfSet* set) {
  check_report_ending(path);
  if (path.ends_with(".csv"))
    return std::make_unique<CsvReport>(path, force, std::move(columns), set);
  return std::make_unique<JsonReport>(path, force, std::move(columns), set);
}

}  // namespace qrtool
