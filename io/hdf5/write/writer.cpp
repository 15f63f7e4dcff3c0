// SPDX-License-Identifier: Apache-2.0
// writer.cpp: writes factors and report to an HDF5 file that appears complete or not at all.
#include "io/hdf5/write/writer.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/join.hpp"
#include "io/file/transpose.hpp"
#include "io/hdf5/datasets/complex_type.hpp"
#include "io/hdf5/structure/driver.hpp"
#include "io/hdf5/values/dimension_scales.hpp"
#include "io/hdf5/write/created_file.hpp"
#include "io/hdf5/write/planned_datasets.hpp"

namespace qrtool {
namespace {

using hdf5::CreatedFile;
using hdf5::Handle;
using hdf5::Output;
using hdf5::Session;

// The bytes that are gathered at a time if matrices must be transposed or packed.
constexpr index_t scratch_bytes = index_t{8} << 20;

class Hdf5Writer final : public Writer {
 public:
  /// Writes to a file of its own or, as one of several writers, to `shared`.
  explicit Hdf5Writer(const OutputSpec& spec, std::shared_ptr<CreatedFile> shared = nullptr)
      : threads_(spec.threads),
        name_(shared ? spec.name : ""),
        open_(shared ? std::move(shared) : std::make_shared<CreatedFile>(spec.path, spec.force)),
        handle_(open_->handle()),
        report_columns_(spec.report_columns) {}
  ~Hdf5Writer() override;

  /// Creates everything that is known in advance, also the file unless it is shared, with room for
  /// `more_bytes`. It is not part of the constructor, so that the destructor also runs after an
  /// error here.
  void create(const OutputSpec& spec, std::uint64_t more_bytes = 0);
  const std::shared_ptr<CreatedFile>& open_file() const { return open_; }
  void create_root_attribute(const std::string& name, const AttributeValue& value) {
    const Session session;
    open_->create_attribute(handle_, name, value);
  }

  void write(std::string_view dataset, index_t first, BatchView<const float> values) override {
    write_any(dataset, first, values);
  }
  void write(std::string_view dataset, index_t first, BatchView<const double> values) override {
    write_any(dataset, first, values);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const float> rows) override {
    append_any_rows(dataset, matrix, first_row, rows);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const double> rows) override {
    append_any_rows(dataset, matrix, first_row, rows);
  }
  void write_part(std::string_view dataset, index_t first, std::span<const float> values) override {
    append_any_part(dataset, first, values);
  }
  void write_part(std::string_view dataset, index_t first,
                  std::span<const double> values) override {
    append_any_part(dataset, first, values);
  }
  void restart(std::string_view dataset, index_t matrix) override;
  void write_report(index_t first, std::span<const MatrixReport> report) override;
  void write_numbers(std::string_view name, index_t first, std::span<const double> values) override;
  void add_attribute(const std::string& name, const AttributeValue& value) override;
  void finish(FileSet& files) override;
  std::vector<std::string> files() const override { return {open_->atomic().path()}; }

 private:
  bool is_part() const { return !name_.empty(); }
  std::string path_of(const std::string& dataset) const {
    return is_part() ? dataset + "/" + name_ : dataset;
  }
  void create_report_group();
  void withdraw() noexcept;
  void create_report(const OutputSpec& spec);
  void create_numbers(const OutputSpec& spec);
  void describe_matrices(const OutputSpec& spec);
  void name_dimensions(const OutputSpec& spec);
  Output& output(std::string_view name);

  template <class T>
  void write_any(std::string_view dataset, index_t first, BatchView<const T> values) {
    output(dataset).is_complex ? write_matrices(dataset, first, as_complex(values))
                               : write_matrices(dataset, first, values);
  }
  template <class T>
  void append_any_rows(std::string_view dataset, index_t matrix, index_t first_row,
                       MatrixView<const T> rows) {
    output(dataset).is_complex ? append_rows(dataset, matrix, first_row, as_complex(rows))
                               : append_rows(dataset, matrix, first_row, rows);
  }
  /// Parts come as real numbers, of which an entry of a complex dataset has two.
  template <class T>
  void append_any_part(std::string_view dataset, index_t first, std::span<const T> values) {
    if (!output(dataset).is_complex) return append_part(dataset, first, values);
    const auto* const entries = reinterpret_cast<const std::complex<T>*>(values.data());
    append_part(dataset, first / 2, std::span(entries, values.size() / 2));
  }
  template <class T>
  void write_matrices(std::string_view dataset, index_t first, BatchView<const T> values);
  template <class T>
  void append_rows(std::string_view dataset, index_t matrix, index_t first_row,
                   MatrixView<const T> rows);
  template <class T>
  void append_part(std::string_view dataset, index_t first, std::span<const T> values);
  template <class T>
  void write_gathered(Output& output, BatchView<const T> values);
  void require_position(const Output& output, index_t first) const;
  void append_numbers(Output& output, NumberKind kind, index_t first,
                      std::span<const double> values);

  int threads_;
  std::string name_;  // of the dataset in a shared file; empty in a file of its own
  std::shared_ptr<CreatedFile> open_;
  Handle& handle_;
  Handle report_group_;
  // The datasets of factors, of the report, and of a report of solutions.
  std::vector<Output> matrices_, columns_, numbers_;
  std::vector<NumberKind> kinds_;             // of numbers_
  std::vector<ReportColumn> report_columns_;  // of columns_
  HostMemory scratch_;
  std::size_t scratch_size_ = 0;  // bytes
  bool closed_ = false;
};

/// Copies stored rows of a matrix to `block`, beginning with stored row `row`.
template <class T>
void gather(bool is_transposed, MatrixView<const T> values, index_t row, MatrixView<T> block) {
  if (is_transposed) {
    transpose<T>({values.data + row, block.cols, block.rows, values.ld}, block);
  } else {
    for (index_t i = 0; i < block.rows; ++i) {
      std::copy_n(&values(row + i, 0), block.cols, &block(i, 0));
    }
  }
}

/// Returns the type of real numbers, or of the parts of complex ones.
hid_t stored_type(const MatrixDataset& dataset) {
  if (dataset.is_whole) return H5T_STD_I32LE;
  return real_of(dataset.type) == ElementType::float32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
}

hid_t stored_type(NumberKind kind) {
  using Kind = NumberKind;
  return kind == Kind::real ? H5T_IEEE_F64LE : kind == Kind::whole ? H5T_STD_I32LE : H5T_STD_U8LE;
}

Hdf5Writer::~Hdf5Writer() {
  if (closed_) return;
  if (is_part() && !hdf5::is_closing_stopped()) {
    withdraw();
    return;
  }
  // Closing would write data to a file that is about to be removed, and HDF5 crashes when that
  // write fails.
  for (auto* outputs : {&matrices_, &columns_, &numbers_}) {
    for (Output& each : *outputs) each.handle.abandon();
  }
  report_group_.abandon();
  handle_.abandon();
}

/// Takes the datasets of this writer out of a file that others write to as well.
void Hdf5Writer::withdraw() noexcept {
  const Session session;
  for (auto* outputs : {&matrices_, &columns_}) {
    for (Output& each : *outputs) each.handle.close();
  }
  report_group_.close();
  for (const Output& each : matrices_) H5Ldelete(handle_, path_of(each.name).c_str(), H5P_DEFAULT);
  H5Ldelete(handle_, path_of("report").c_str(), H5P_DEFAULT);
  H5Eclear2(H5E_DEFAULT);
}

void Hdf5Writer::create(const OutputSpec& spec, std::uint64_t more_bytes) {
  constexpr std::uint64_t header_bytes = 65536;  // with attributes
  const Session session;
  matrices_ = hdf5::plan_matrices(spec);
  numbers_ = hdf5::plan_numbers(spec);
  columns_ = hdf5::plan_columns(spec);
  for (const NumberDataset& numbers : spec.numbers) kinds_.push_back(numbers.kind);
  if (!is_part()) {
    open_->create();
    open_->atomic().reserve(header_bytes + file_bytes_of(matrices_) + file_bytes_of(columns_) +
                            file_bytes_of(numbers_) + more_bytes);
    for (const auto& [name, value] : spec.attributes) open_->create_attribute(handle_, name, value);
  }
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const hid_t part = stored_type(spec.datasets[i]);
    const bool is_complex = matrices_[i].is_complex;
    const Handle complex =
        is_complex ? hdf5::make_complex_type(part, spec.complex_form.names) : Handle();
    if (is_complex && !complex) open_->fail();
    open_->create_dataset(handle_, matrices_[i], path_of(matrices_[i].name),
                          is_complex ? static_cast<hid_t>(complex) : part, threads_);
  }
  if (!spec.numbers.empty()) create_numbers(spec);
  if (spec.with_report) create_report(spec);
  describe_matrices(spec);
  if (!is_part()) {
    name_dimensions(spec);
    return;
  }
  for (const auto& [name, value] : spec.attributes)
    open_->create_attribute(report_group_, name, value);
}

void Hdf5Writer::describe_matrices(const OutputSpec& spec) {
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const MatrixDataset& dataset = spec.datasets[i];
    if (!dataset.description.empty())
      open_->create_attribute(matrices_[i].handle, "description", dataset.description);
    if (dataset.is_whole) open_->create_attribute(matrices_[i].handle, "base", std::int64_t{0});
  }
}

/// Gives dimensions their names. If a matrix is stored reversed, so are the names of its
/// dimensions.
void Hdf5Writer::name_dimensions(const OutputSpec& spec) {
  if (spec.dimensions.empty()) return;
  hdf5::DimensionScales scales;
  const auto attach = [&](const Output& output, std::vector<std::string> names) {
    if (names.size() != output.layout.dims.size()) return;
    if (output.is_transposed) std::swap(names.back(), names[names.size() - 2]);
    if (!scales.attach(handle_, output.handle, names)) open_->fail();
  };
  if (!scales.create(handle_, spec.dimensions)) open_->fail();
  for (std::size_t i = 0; i < matrices_.size(); ++i)
    attach(matrices_[i], spec.datasets[i].dimensions);
  for (std::size_t i = 0; i < numbers_.size(); ++i) attach(numbers_[i], spec.numbers[i].dimensions);
  for (const Output& column : columns_)
    if (!spec.leading.empty()) attach(column, spec.leading_dimensions);
  if (!scales.finish(handle_)) open_->fail();
}

void Hdf5Writer::create_report_group() { report_group_ = open_->create_group(path_of("report")); }

void Hdf5Writer::create_numbers(const OutputSpec& spec) {
  create_report_group();
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const NumberDataset& numbers = spec.numbers[i];
    open_->create_dataset(report_group_, numbers_[i], numbers_[i].name, stored_type(kinds_[i]),
                          threads_);
    const std::pair<const char*, const std::string&> texts[] = {
        {"description", numbers.description},
        {"formula", numbers.formula},
        {"unit", numbers.unit},
        {"bar_formula", numbers.bar_formula}};
    for (const auto& [name, text] : texts) open_->create_attribute(numbers_[i].handle, name, text);
    if (kinds_[i] == NumberKind::status)
      open_->create_attribute(numbers_[i].handle, "flag_meanings",
                              join(solution_status_names, " "));
    open_->create_attribute(numbers_[i].handle, "bar", numbers.bar);
  }
}

void Hdf5Writer::create_report(const OutputSpec& spec) {
  create_report_group();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const ReportColumn& column = spec.report_columns[i];
    open_->create_dataset(report_group_, columns_[i], columns_[i].name, stored_type(column.kind),
                          threads_);
    const std::pair<const char*, std::string_view> texts[] = {{"description", column.description},
                                                              {"formula", column.formula},
                                                              {"unit", column.unit},
                                                              {"bar_formula", column.bar_formula}};
    for (const auto& [name, text] : texts) {
      open_->create_attribute(columns_[i].handle, name, std::string(text));
    }
    if (column.kind == NumberKind::status)
      open_->create_attribute(columns_[i].handle, "flag_meanings", join(status_names, " "));
    open_->create_attribute(columns_[i].handle, "bar", column.bar);
  }
}

Output& Hdf5Writer::output(std::string_view name) {
  for (auto* outputs : {&matrices_, &columns_, &numbers_}) {
    for (Output& each : *outputs) {
      if (each.name == name) return each;
    }
  }
  throw InternalError(fmt::format("write: there is no dataset {}", name));
}

void Hdf5Writer::require_position(const Output& to, index_t first) const {
  if (to.chunks->position() != first * to.rows * to.cols) {
    throw InternalError(fmt::format("write: {} is written out of order", to.name));
  }
}

/// Writes matrices whose memory does not have the stored order. It gathers as many matrices at a
/// time as fit in the scratch memory, or rows of one matrix.
template <class T>
void Hdf5Writer::write_gathered(Output& to, BatchView<const T> values) {
  const index_t room = std::max<index_t>(to.cols, scratch_bytes / sizeof(T));
  const index_t rows_at_once = std::min(to.rows, room / to.cols);
  const index_t at_once = std::max<index_t>(1, room / (to.rows * to.cols));
  if (const auto bytes = static_cast<std::size_t>(room) * sizeof(T); scratch_size_ < bytes) {
    scratch_ = allocate_host(bytes);
    scratch_size_ = bytes;
  }
  auto* gathered = reinterpret_cast<T*>(scratch_.get());
  for (index_t b = 0; b < values.count; b += at_once) {
    const index_t matrices = std::min(at_once, values.count - b);
    for (index_t row = 0; row < to.rows; row += rows_at_once) {
      const index_t rows = std::min(rows_at_once, to.rows - row);
      for (index_t i = 0; i < matrices; ++i) {
        const MatrixView<T> block{gathered + i * rows * to.cols, rows, to.cols, to.cols};
        gather(to.is_transposed, values[b + i], row, block);
      }
      open_->append(to, gathered, matrices * rows * to.cols);
    }
  }
}

template <class T>
void Hdf5Writer::write_matrices(std::string_view dataset, index_t first,
                                BatchView<const T> values) {
  Output& to = output(dataset);
  const index_t rows = to.is_transposed ? to.cols : to.rows;
  const index_t cols = to.is_transposed ? to.rows : to.cols;
  const std::size_t given_bytes = to.is_whole ? sizeof(double) : to.element_bytes;
  if (values.rows != rows || values.cols != cols || sizeof(T) != given_bytes) {
    throw InternalError(fmt::format("write: {} has another shape or type", dataset));
  }
  if (values.count == 0 || rows == 0 || cols == 0) return;
  require_position(to, first);
  const index_t count = values.count * rows * cols;
  if (to.is_whole) {
    const Real<const T>* const first_number = interleaved(values).data;
    const std::vector<std::int32_t> numbers(first_number, first_number + count);
    open_->append(to, numbers.data(), count);
  } else if (to.is_transposed || !values.is_packed()) {
    write_gathered(to, values);
  } else {
    open_->append(to, values.data, count);
  }
}

template <class T>
void Hdf5Writer::append_rows(std::string_view dataset, index_t matrix, index_t first_row,
                             MatrixView<const T> rows) {
  Output& to = output(dataset);
  if (to.is_transposed || rows.cols != to.cols || rows.ld != rows.cols ||
      sizeof(T) != to.element_bytes) {
    throw InternalError(fmt::format("write_rows: {} has another order, shape or type", dataset));
  }
  if (rows.rows == 0 || rows.cols == 0) return;
  if (to.chunks->position() != (matrix * to.rows + first_row) * to.cols)
    throw InternalError(fmt::format("write_rows: {} is written out of order", dataset));
  open_->append(to, rows.data, rows.rows * rows.cols);
}

template <class T>
void Hdf5Writer::append_part(std::string_view dataset, index_t first, std::span<const T> values) {
  Output& to = output(dataset);
  if (to.is_transposed || sizeof(T) != to.element_bytes)
    throw InternalError(fmt::format("write_part: {} has another order or type", dataset));
  if (values.empty()) return;
  if (to.chunks->position() != first)
    throw InternalError(fmt::format("write_part: {} is written out of order", dataset));
  open_->append(to, values.data(), std::ssize(values));
}

void Hdf5Writer::restart(std::string_view dataset, index_t matrix) {
  Output& to = output(dataset);
  const index_t first = matrix * to.rows * to.cols;
  if (!to.chunks || to.chunks->position() == first) return;
  if (to.chunks->position() < first || to.chunks->position() > first + to.rows * to.cols)
    throw InternalError(fmt::format("restart: {} is at another matrix", to.name));
  open_->go_back(to, first);
}

void Hdf5Writer::write_report(index_t first, std::span<const MatrixReport> report) {
  std::vector<double> values(report.size());
  for (std::size_t i = 0; i < report_columns_.size(); ++i) {
    const ReportColumn& column = report_columns_[i];
    std::transform(report.begin(), report.end(), values.begin(), column.value);
    append_numbers(columns_[i], column.kind, first, values);
  }
}

void Hdf5Writer::write_numbers(std::string_view name, index_t first,
                               std::span<const double> values) {
  Output& to = output(name);
  append_numbers(to, kinds_[static_cast<std::size_t>(&to - numbers_.data())], first, values);
}

/// Whole numbers hold -1 for NaN.
template <class T>
std::vector<T> whole_numbers(std::span<const double> values) {
  std::vector<T> numbers;
  numbers.reserve(values.size());
  for (const double value : values)
    numbers.push_back(std::isnan(value) ? static_cast<T>(-1) : static_cast<T>(value));
  return numbers;
}

void Hdf5Writer::append_numbers(Output& to, NumberKind kind, index_t first,
                                std::span<const double> values) {
  if (values.empty()) return;
  require_position(to, first);
  const index_t count = std::ssize(values);
  if (kind == NumberKind::real) {
    open_->append(to, values.data(), count);
  } else if (kind == NumberKind::whole) {
    open_->append(to, whole_numbers<std::int32_t>(values).data(), count);
  } else {
    open_->append(to, whole_numbers<std::uint8_t>(values).data(), count);
  }
}

void Hdf5Writer::add_attribute(const std::string& name, const AttributeValue& value) {
  const Session session;
  open_->create_attribute(is_part() ? report_group_ : handle_, name, value);
}

void Hdf5Writer::finish(FileSet& files) {
  if (hdf5::is_closing_stopped()) open_->fail("an earlier write failed");
  for (auto* outputs : {&matrices_, &columns_, &numbers_}) {
    for (Output& each : *outputs) open_->finish(each);
  }
  const Session session;
  if (!report_group_.close()) open_->fail();
  if (is_part()) {
    closed_ = true;
    return;
  }
  open_->check(H5Fflush(handle_, H5F_SCOPE_GLOBAL));
  if (!handle_.close()) open_->fail();
  closed_ = true;
  files.add(open_->atomic());
}

class Hdf5OutputFile final : public OutputFile {
 public:
  Hdf5OutputFile(const OutputSpec& root, std::span<const OutputSpec> planned) : root_(root) {
    std::uint64_t bytes = 0;
    for (const OutputSpec& spec : planned) bytes += hdf5::planned_bytes(spec);
    root_.create(root, bytes);
  }

  std::unique_ptr<Writer> add(const OutputSpec& spec) override {
    auto writer = std::make_unique<Hdf5Writer>(spec, root_.open_file());
    writer->create(spec);
    return writer;
  }

  void finish(std::span<const std::string> names, FileSet& files) override {
    root_.create_root_attribute("source_datasets",
                                std::vector<std::string>(names.begin(), names.end()));
    root_.finish(files);
  }

 private:
  Hdf5Writer root_;
};

}  // namespace

std::unique_ptr<OutputFile> create_hdf5_file(const OutputSpec& root,
                                             std::span<const OutputSpec> planned) {
  return std::make_unique<Hdf5OutputFile>(root, planned);
}

std::size_t hdf5_workspace_bytes(const OutputSpec& spec) {
  std::size_t bytes = hdf5::open_file_bytes;
  bool is_gathered = false;
  const auto add = [&](const std::vector<Output>& outputs) {
    for (const Output& planned : outputs) {
      // A chunk that waits to be full, and one that is being written.
      std::size_t waiting = planned.layout.chunk.empty() ? 0 : 2 * planned.element_bytes;
      for (const hsize_t extent : planned.layout.chunk) waiting *= extent;
      bytes += waiting;
      is_gathered = is_gathered || planned.is_transposed;
    }
  };
  add(hdf5::plan_matrices(spec));
  add(hdf5::plan_columns(spec));
  add(hdf5::plan_numbers(spec));
  return bytes + (is_gathered ? static_cast<std::size_t>(scratch_bytes) : 0);
}

std::unique_ptr<Writer> create_hdf5(const OutputSpec& spec) {
  auto writer = std::make_unique<Hdf5Writer>(spec);
  writer->create(spec);
  return writer;
}

}  // namespace qrtool
