// SPDX-License-Identifier: Apache-2.0
// set_writer.hpp: writes a set of files, such as out.Q.csv, out.R.csv and out.report.csv.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"
#include "io/checksum/number_hash.hpp"
#include "io/factors/arrays_writer.hpp"
#include "io/factors/factor_set.hpp"
#include "io/file/text_output.hpp"
#include "io/report/report_file.hpp"
#include "io/report/solution_report_file.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {

/// Whether each matrix of the set gets a checksum, which goes to the report of factors.
inline bool has_checksums(const OutputSpec& spec) {
  return spec.with_report && !is_standard_output(spec.path);
}

/// Writes a file for each dataset, and the report last. Standard output takes one dataset, without
/// a report. `File` is how a format writes a dataset: it is what ArraysWriter asks for, and has
/// - File(const OutputSpec& spec, const MatrixDataset& dataset), with `dataset` of `spec`;
/// - path(), the name of the file;
/// - take_checksums(matrices), the checksums of the next matrices, which are complete;
/// - finish(FileSet&), which writes what is left and adds the file.
template <class File>
class SetWriter final : public ArraysWriter<File> {
  using Files = ArraysWriter<File>;

 public:
  SetWriter(const OutputSpec& spec, const FactorCodec& codec)
      : codec_(codec), obsolete_(find_obsolete(spec)), threads_(spec.threads) {
    for (const MatrixDataset& dataset : spec.datasets)
      this->arrays_.push_back(std::make_unique<File>(spec, dataset));
    if (is_standard_output(spec.path)) return;
    report_path_ = report_file(spec.path, codec.report_ending);
    has_leverages_ = std::ranges::any_of(
        spec.datasets, [](const MatrixDataset& each) { return each.name == "leverage"; });
    const ReportOfSet set{.attributes = attributes_of_report(spec),
                          .has_leverages = has_leverages_};
    if (has_checksums(spec))
      report_ = create_report_file(report_path_, spec.force, spec.report_columns, &set);
    if (!spec.numbers.empty())
      solution_report_ = std::make_unique<SolutionReportFile>(report_path_, spec);
  }

  void write(std::string_view dataset, index_t first, BatchView<const float> values) override {
    if (solution_report_) solution_report_->add(dataset, values);
    Files::write(dataset, first, values);
  }
  void write(std::string_view dataset, index_t first, BatchView<const double> values) override {
    if (solution_report_) solution_report_->add(dataset, values);
    Files::write(dataset, first, values);
  }
  void write_part(std::string_view dataset, index_t first, std::span<const float> values) override {
    add_fit(dataset, values);
    Files::write_part(dataset, first, values);
  }
  void write_part(std::string_view dataset, index_t first,
                  std::span<const double> values) override {
    add_fit(dataset, values);
    Files::write_part(dataset, first, values);
  }
  void write_report(index_t, std::span<const MatrixReport> report) override {
    if (!report_) return;
    std::vector<Checksums> of_files;
    for (const auto& file : this->arrays_)
      if (!is_fit(file->dataset().name)) of_files.push_back(file->take_checksums(report.size()));
    report_->write(report, codec_.join(of_files, report.size()));
  }
  void write_numbers(std::string_view name, index_t, std::span<const double> values) override {
    if (!solution_report_) throw InternalError("write: there is no report of solutions");
    solution_report_->write(name, values);
  }
  void add_attribute(const std::string& name, const AttributeValue& value) override {
    if (report_) report_->add_attribute(name, value);
  }
  void finish(FileSet& files) override {
    for (const auto& file : this->arrays_) file->finish(files);
    if (report_ && has_leverages_) report_->bind_leverages(leverages_.value());
    if (report_) report_->finish(files);
    if (solution_report_) solution_report_->finish(files);
    for (const std::string& path : obsolete_) files.add_obsolete(path);
  }
  std::vector<std::string> files() const override {
    std::vector<std::string> names;
    for (const auto& file : this->arrays_) names.push_back(file->path());
    if (report_ || solution_report_) names.push_back(report_path_);
    return names;
  }

 private:
  /// Writes leverages. Called only if the set holds factors, not solutions.
  template <class T>
  void add_fit(std::string_view dataset, std::span<const T> values) {
    if (solution_report_) solution_report_->add(dataset, values);
    if (report_) leverages_.add(values, threads_);
  }

  const FactorCodec& codec_;
  std::vector<std::string> obsolete_;  // files of another --mode under the same name
  std::string report_path_;
  std::unique_ptr<ReportFile> report_;
  std::unique_ptr<SolutionReportFile> solution_report_;
  BlockHash leverages_;
  bool has_leverages_ = false;
  int threads_;
};

}  // namespace qrtool
