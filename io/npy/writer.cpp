// SPDX-License-Identifier: Apache-2.0
// writer.cpp: the datasets go to arrays, the report to JSON or to arrays of its own.
#include "io/npy/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/factor_files.hpp"
#include "io/file/atomic_file.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/npy/archive_writer.hpp"
#include "io/npy/array_writer.hpp"
#include "io/npy/header.hpp"
#include "io/report_file.hpp"
#include "io/solution_report.hpp"

namespace qrtool::npy {
namespace {

/// Does what both kinds of output share: it writes one array for each dataset.
class ArraysWriter : public Writer {
 public:
  void write(std::string_view dataset, index_t first, BatchView<const float> values) override {
    array(dataset).write(first, values);
  }
  void write(std::string_view dataset, index_t first, BatchView<const double> values) override {
    array(dataset).write(first, values);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const float> rows) override {
    array(dataset).write_rows(matrix, first_row, rows);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const double> rows) override {
    array(dataset).write_rows(matrix, first_row, rows);
  }
  void restart(std::string_view dataset, index_t matrix) override {
    array(dataset).restart(matrix);
  }

 protected:
  ArrayWriter& array(std::string_view dataset) {
    const auto found = std::find_if(arrays_.begin(), arrays_.end(), [&](const auto& each) {
      return each->dataset().name == dataset;
    });
    if (found == arrays_.end())
      throw InternalError(fmt::format("write: there is no dataset {}", dataset));
    return **found;
  }
  /// Returns the checksums of the next matrices; each covers all datasets of a matrix.
  std::vector<std::uint64_t> take_checksums(std::size_t matrices) {
    std::vector<std::vector<std::uint64_t>> of_arrays;
    for (const auto& each : arrays_) of_arrays.push_back(each->take_checksums(matrices));
    return join_checksums(of_arrays, matrices);
  }

  std::vector<std::unique_ptr<ArrayWriter>> arrays_;
};

class NpyWriter final : public ArraysWriter {
 public:
  explicit NpyWriter(const OutputSpec& spec);

  void write(std::string_view dataset, index_t first, BatchView<const float> values) override {
    if (solution_report_) solution_report_->add(dataset, values);
    ArraysWriter::write(dataset, first, values);
  }
  void write(std::string_view dataset, index_t first, BatchView<const double> values) override {
    if (solution_report_) solution_report_->add(dataset, values);
    ArraysWriter::write(dataset, first, values);
  }
  void write_report(index_t, std::span<const MatrixReport> report) override {
    report_->write(report, take_checksums(report.size()));
  }
  void write_numbers(std::string_view name, index_t first, std::span<const double> values) override;
  void add_attribute(const std::string& name, const std::string& value) override {
    if (report_) report_->add_attribute(name, value);
  }
  void finish(FileSet& files) override;
  std::vector<std::string> files() const override;

 private:
  std::vector<std::string> obsolete_;  // files of another --mode under the same name
  std::vector<std::unique_ptr<AtomicFile>> files_;
  std::string report_path_;
  std::unique_ptr<ReportFile> report_;
  std::unique_ptr<SolutionReport> solution_report_;
};

NpyWriter::NpyWriter(const OutputSpec& spec) : obsolete_(find_obsolete(spec)) {
  for (const MatrixDataset& dataset : spec.datasets) {
    const std::string path = factor_file(spec.path, dataset.name);
    files_.push_back(std::make_unique<AtomicFile>(path, spec.force));
    files_.back()->reserve(array_bytes(dataset, spec.leading));
    arrays_.push_back(std::make_unique<ArrayWriter>(
        dataset, ArrayWriter::Target{.file = {files_.back()->descriptor(), escape(path)},
                                     .leading = spec.leading,
                                     .threads = spec.threads,
                                     .has_checksums = spec.with_report}));
  }
  if (!spec.with_report && spec.numbers.empty()) return;
  report_path_ = report_file(spec.path, ".json");
  const ReportOfSet set{.attributes = attributes_of_report(spec)};
  if (spec.with_report)
    report_ = create_report_file(report_path_, spec.force, spec.report_columns, &set);
  if (!spec.numbers.empty())
    solution_report_ = std::make_unique<SolutionReport>(report_path_, spec);
}

void NpyWriter::write_numbers(std::string_view name, index_t, std::span<const double> values) {
  if (!solution_report_) throw InternalError("write: there is no report of solutions");
  solution_report_->write(name, values);
}

void NpyWriter::finish(FileSet& files) {
  for (const auto& file : files_) files.add(*file);
  if (report_) report_->finish(files);
  if (solution_report_) solution_report_->finish(files);
  for (const std::string& path : obsolete_) files.add_obsolete(path);
}

std::vector<std::string> NpyWriter::files() const {
  std::vector<std::string> names;
  for (const auto& file : files_) names.push_back(file->path());
  if (report_ || solution_report_) names.push_back(report_path_);
  return names;
}

/// Writes one array to standard output, without a report. The array is kept in a file without a
/// name until it is complete.
class StreamWriter final : public ArraysWriter {
 public:
  explicit StreamWriter(const OutputSpec& spec)
      : file_(keep_for_standard_output()), bytes_(array_bytes(spec.datasets.at(0), spec.leading)) {
    if (spec.datasets.size() > 1) throw InternalError("write: standard output takes one array");
    arrays_.push_back(std::make_unique<ArrayWriter>(
        spec.datasets.front(), ArrayWriter::Target{.file = {file_, "standard output"},
                                                   .leading = spec.leading,
                                                   .threads = spec.threads,
                                                   .has_checksums = false}));
  }
  void write_report(index_t, std::span<const MatrixReport>) override {}
  void finish(FileSet&) override { copy_to_standard_output(file_, bytes_); }
  std::vector<std::string> files() const override { return {standard_output_npy}; }

 private:
  Descriptor file_;
  std::uint64_t bytes_;
};

const char* descr_of(NumberKind kind) {
  return kind == NumberKind::real ? "<f8" : kind == NumberKind::whole ? "<i4" : "|u1";
}

class NpzWriter final : public ArraysWriter {
 public:
  explicit NpzWriter(const OutputSpec& spec);

  void write_report(index_t first, std::span<const MatrixReport> report) override;
  void write_numbers(std::string_view name, index_t first, std::span<const double> values) override;
  void add_attribute(const std::string& name, const std::string& value) override {
    attributes_.emplace_back(name, value);
  }
  void finish(FileSet& files) override;
  std::vector<std::string> files() const override { return {file_.path()}; }

 private:
  /// A member that grows in a file without a name.
  struct Spool {
    std::string member;
    Descriptor file;
    std::uint64_t start = 0;  // where the numbers begin
    NumberKind kind = NumberKind::real;
  };
  Spool& add_spool(const std::string& member, std::uint64_t bytes);
  void add_column(const std::string& name, NumberKind kind, const std::vector<index_t>& dims);
  void add_record();
  template <class T>
  void write_as(const Spool& spool, index_t first, std::span<const double> values);

  AtomicFile file_;
  std::string shown_, directory_;
  std::vector<ReportColumn> report_columns_;
  Attributes attributes_;
  std::vector<Spool> spools_;  // in the order of the members
  std::uint64_t planned_bytes_ = 0;
};

NpzWriter::NpzWriter(const OutputSpec& spec)
    : file_(spec.path, spec.force),
      shown_(escape(spec.path)),
      directory_(directory_of(spec.path)),
      report_columns_(spec.report_columns),
      attributes_(spec.attributes) {
  for (const MatrixDataset& dataset : spec.datasets) {
    const Spool& spool = add_spool(dataset.name, array_bytes(dataset, spec.leading));
    // The members have checksums of their own.
    arrays_.push_back(
        std::make_unique<ArrayWriter>(dataset, ArrayWriter::Target{.file = {spool.file, shown_},
                                                                   .leading = spec.leading,
                                                                   .threads = spec.threads,
                                                                   .has_checksums = false}));
  }
  if (spec.with_report)
    for (const ReportColumn& column : spec.report_columns)
      add_column(std::string(column.name), column.kind, spec.leading);
  for (const NumberDataset& numbers : spec.numbers)
    add_column(numbers.name, numbers.kind, numbers.dims);
  constexpr std::uint64_t more_bytes = 16384;  // the record and the entries of the members
  file_.reserve(planned_bytes_ + more_bytes);
}

NpzWriter::Spool& NpzWriter::add_spool(const std::string& member, std::uint64_t bytes) {
  Spool spool{.member = member, .file = create_nameless(directory_)};
  const int error = spool.file < 0 ? errno : reserve_space(spool.file, bytes);
  if (error != 0) {
    throw OutputError(fmt::format("cannot write '{}': {} needed beside it for {} until it is "
                                  "complete: {}",
                                  shown_, format_bytes(bytes), member, std::strerror(error)),
                      "a .npy or .h5 file needs half of the space");
  }
  planned_bytes_ += bytes;
  spools_.push_back(std::move(spool));
  return spools_.back();
}

/// A report of one matrix has one dimension.
void NpzWriter::add_column(const std::string& name, NumberKind kind,
                           const std::vector<index_t>& dims) {
  std::uint64_t elements = 1;
  for (const index_t extent : dims) elements *= static_cast<std::uint64_t>(extent);
  const std::string header =
      make_header(descr_of(kind), dims.empty() ? std::vector<index_t>{1} : dims);
  Spool& spool = add_spool("report_" + name, header.size() + elements * bytes_of(kind));
  write_fully({spool.file, shown_}, 0, header.data(), header.size());
  spool.start = header.size();
  spool.kind = kind;
}

/// Adds the attributes as a string of NumPy without dimensions, with 4 bytes for each character.
void NpzWriter::add_record() {
  const std::string json = to_json(attributes_);
  const std::string header = make_header(fmt::format("<U{}", json.size()), {});
  const std::vector<std::uint32_t> characters(json.begin(), json.end());
  const std::size_t bytes = characters.size() * sizeof(std::uint32_t);
  const Spool& spool = add_spool(record_member, header.size() + bytes);
  write_fully({spool.file, shown_}, 0, header.data(), header.size());
  write_fully({spool.file, shown_}, header.size(), characters.data(), bytes);
}

template <class T>
void NpzWriter::write_as(const Spool& spool, index_t first, std::span<const double> values) {
  std::vector<T> numbers;
  numbers.reserve(values.size());
  for (const double value : values)
    numbers.push_back(std::is_integral_v<T> && std::isnan(value) ? static_cast<T>(-1)
                                                                 : static_cast<T>(value));
  write_fully({spool.file, shown_}, spool.start + static_cast<std::uint64_t>(first) * sizeof(T),
              numbers.data(), numbers.size() * sizeof(T));
}

void NpzWriter::write_numbers(std::string_view name, index_t first,
                              std::span<const double> values) {
  const auto spool = std::find_if(spools_.begin(), spools_.end(), [&](const Spool& each) {
    return each.member == fmt::format("report_{}", name);
  });
  if (spool == spools_.end())
    throw InternalError(fmt::format("write: there is no column {}", name));
  if (spool->kind == NumberKind::real) {
    write_as<double>(*spool, first, values);
  } else if (spool->kind == NumberKind::whole) {
    write_as<std::int32_t>(*spool, first, values);
  } else {
    write_as<std::uint8_t>(*spool, first, values);
  }
}

void NpzWriter::write_report(index_t first, std::span<const MatrixReport> report) {
  std::vector<double> values(report.size());
  for (const ReportColumn& column : report_columns_) {
    std::transform(report.begin(), report.end(), values.begin(), column.value);
    write_numbers(column.name, first, values);
  }
}

void NpzWriter::finish(FileSet& files) {
  add_record();
  std::vector<Member> members;
  for (const Spool& spool : spools_) members.push_back({spool.member + ".npy", spool.file});
  write_archive({file_.descriptor(), shown_}, members);
  spools_.clear();
  files.add(file_);
}

}  // namespace

std::unique_ptr<Writer> create_npy(const OutputSpec& spec) {
  if (is_standard_output(spec.path)) return std::make_unique<StreamWriter>(spec);
  return std::make_unique<NpyWriter>(spec);
}

std::unique_ptr<Writer> create_npz(const OutputSpec& spec) {
  return std::make_unique<NpzWriter>(spec);
}

}  // namespace qrtool::npy
