// SPDX-License-Identifier: Apache-2.0
// writer.cpp: the datasets go to arrays, the report to JSON or to arrays of its own.
#include "io/npy/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>
#include <type_traits>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/factors/set_writer.hpp"
#include "io/file/atomic_file.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/npy/archive_writer.hpp"
#include "io/npy/array_writer.hpp"
#include "io/npy/factors.hpp"
#include "io/npy/header.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool::npy {
namespace {

/// The place of an array: a file of its own, or standard output. An array for standard output is
/// kept in a file without a name until it is complete.
class ArrayPlace {
 public:
  ArrayPlace(const OutputSpec& spec, const MatrixDataset& dataset)
      : path_(factor_file(spec.path, dataset.name)) {
    if (is_standard_output(path_)) {
      nameless_ = keep_for_standard_output();
      bytes_ = array_bytes(dataset, spec.leading);
      return;
    }
    file_.emplace(path_, spec.force);
    file_->reserve(array_bytes(dataset, spec.leading));
  }

  const std::string& path() const { return path_; }
  /// Waits until the space of the file is reserved.
  void require_space() {
    if (file_) file_->require_space();
  }
  void finish(FileSet& files) {
    file_ ? files.add(*file_) : copy_to_standard_output(nameless_, bytes_);
  }

 protected:
  OutputFile place() const {
    if (!file_) return {nameless_, "standard output"};
    return {file_->descriptor(), escape(path_)};
  }

 private:
  std::string path_;
  std::optional<AtomicFile> file_;
  Descriptor nameless_;
  std::uint64_t bytes_ = 0;
};

/// The file of one dataset, as SetWriter asks for it.
class NpyFile final : public ArrayPlace, public ArrayWriter {
 public:
  NpyFile(const OutputSpec& spec, const MatrixDataset& dataset)
      : ArrayPlace(spec, dataset),
        ArrayWriter(dataset, {.file = place(),
                              .leading = spec.leading,
                              .threads = spec.threads,
                              .has_checksums = has_checksums(spec) && !is_fit(dataset.name)}) {}

  template <class T>
  void write(index_t first, BatchView<const T> values) {
    require_space();
    ArrayWriter::write(first, values);
  }
  template <class T>
  void write_rows(index_t matrix, index_t first_row, MatrixView<const T> rows) {
    require_space();
    ArrayWriter::write_rows(matrix, first_row, rows);
  }
  template <class T>
  void write_part(index_t first, std::span<const T> values) {
    require_space();
    ArrayWriter::write_part(first, values);
  }
};

const char* descr_of(NumberKind kind) {
  return kind == NumberKind::real ? "<f8" : kind == NumberKind::whole ? "<i4" : "|u1";
}

class NpzWriter final : public ArraysWriter<ArrayWriter> {
 public:
  explicit NpzWriter(const OutputSpec& spec);

  void write_report(index_t first, std::span<const MatrixReport> report) override;
  void write_numbers(std::string_view name, index_t first, std::span<const double> values) override;
  void add_attribute(const std::string& name, const AttributeValue& value) override {
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
    // Members need no more checksums, because the archive has them.
    arrays_.push_back(
        std::make_unique<ArrayWriter>(dataset, ArrayWriter::Target{.file = {spool.file, shown_},
                                                                   .leading = spec.leading,
                                                                   .threads = spec.threads,
                                                                   .has_checksums = false}));
  }
  if (spec.with_report)
    for (const ReportColumn& column : spec.report_columns)
      add_column(std::string(column.name), column.kind, spec.leading);
  for (const NumberDataset& numbers : spec.numbers) {
    add_column(numbers.name, numbers.kind, numbers.dims);
    if (!std::isnan(numbers.bar)) attributes_.emplace_back(numbers.name + bar_ending, numbers.bar);
  }
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

/// Adds a column of the report. For one matrix it has one dimension.
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
  if (is_standard_output(spec.path) && spec.datasets.size() > 1)
    throw InternalError("write: standard output takes one array");
  return std::make_unique<SetWriter<NpyFile>>(spec, npy_codec);
}

std::unique_ptr<Writer> create_npz(const OutputSpec& spec) {
  return std::make_unique<NpzWriter>(spec);
}

}  // namespace qrtool::npy
