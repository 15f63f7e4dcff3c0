// SPDX-License-Identifier: Apache-2.0
// writer.cpp: writes factors and report to an HDF5 file that appears complete or not at all.
#include "io/hdf5/writer.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <optional>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/atomic_file.hpp"
#include "io/file/transpose.hpp"
#include "io/hdf5/chunk_writer.hpp"
#include "io/hdf5/dimension_scales.hpp"
#include "io/hdf5/driver.hpp"
#include "io/hdf5/file.hpp"
#include "io/hdf5/layout.hpp"

namespace qrtool {
namespace {

using hdf5::ChunkWriter;
using hdf5::Handle;
using hdf5::Layout;
using hdf5::Session;

// The bytes that are gathered at a time where matrices must be transposed or packed.
constexpr index_t scratch_bytes = index_t{8} << 20;

/// A dataset of the output. `rows` and `cols` are the stored dimensions of a matrix.
struct Output {
  std::string name;
  index_t rows = 0, cols = 0;
  std::size_t element_bytes = 0;
  bool is_whole = false;  // numbers come as float64
  bool is_transposed = false;
  Layout layout;
  Handle handle;
  std::optional<ChunkWriter> chunks;  // empty for a dataset without elements
};

/// The file of one writer, or of several that write one dataset after another.
struct OpenFile {
  OpenFile(const std::string& path, bool force) : atomic(path, force) {}
  AtomicFile atomic;
  Handle handle;
};

class Hdf5Writer final : public Writer {
 public:
  /// Writes to a file of its own, or, as one of several, to `shared`.
  explicit Hdf5Writer(const OutputSpec& spec, std::shared_ptr<OpenFile> shared = nullptr)
      : leading_(spec.leading),
        threads_(spec.threads),
        name_(shared ? spec.name : ""),
        open_(shared ? std::move(shared) : std::make_shared<OpenFile>(spec.path, spec.force)),
        file_(open_->atomic),
        handle_(open_->handle),
        report_columns_(spec.report_columns) {}
  ~Hdf5Writer() override;

  /// Creates everything that is known in advance, the file too unless it is shared, with room for
  /// `more_bytes`. It is not part of the constructor, so that the destructor also runs after an
  /// error here.
  void create(const OutputSpec& spec, std::uint64_t more_bytes = 0);
  const std::shared_ptr<OpenFile>& open_file() const { return open_; }
  void create_root_attribute(const std::string& name, const AttributeValue& value) {
    const Session session;
    create_attribute(handle_, name, value);
  }

  void write(std::string_view dataset, index_t first, BatchView<const float> values) override {
    write_matrices(dataset, first, values);
  }
  void write(std::string_view dataset, index_t first, BatchView<const double> values) override {
    write_matrices(dataset, first, values);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const float> rows) override {
    append_rows(dataset, matrix, first_row, rows);
  }
  void write_rows(std::string_view dataset, index_t matrix, index_t first_row,
                  MatrixView<const double> rows) override {
    append_rows(dataset, matrix, first_row, rows);
  }
  void restart(std::string_view dataset, index_t matrix) override;
  void write_report(index_t first, std::span<const MatrixReport> report) override;
  void write_numbers(std::string_view name, index_t first, std::span<const double> values) override;
  void add_attribute(const std::string& name, const std::string& value) override;
  void finish(FileSet& files) override;
  std::vector<std::string> files() const override { return {file_.path()}; }

 private:
  [[noreturn]] void fail();
  [[noreturn]] void fail(std::string reason);
  template <class Result>  // hid_t or herr_t
  Result check(Result result) {
    if (result < 0) fail();
    return result;
  }

  void create_file();
  bool is_part() const { return !name_.empty(); }
  std::string path_of(const std::string& dataset) const {
    return is_part() ? dataset + "/" + name_ : dataset;
  }
  void create_groups(const std::string& path);
  void create_report_group();
  void withdraw() noexcept;
  void create_attribute(hid_t object, const std::string& name, const AttributeValue& value);
  void create_report(const OutputSpec& spec);
  void create_numbers(const OutputSpec& spec);
  void describe_matrices(const OutputSpec& spec);
  void name_dimensions(const OutputSpec& spec);
  void create_dataset(hid_t parent, Output& output, const std::string& path, hid_t type);
  void plan_outputs(const OutputSpec& spec);
  Output& output(std::string_view name);

  template <class T>
  void write_matrices(std::string_view dataset, index_t first, BatchView<const T> values);
  template <class T>
  void append_rows(std::string_view dataset, index_t matrix, index_t first_row,
                   MatrixView<const T> rows);
  template <class T>
  void write_gathered(Output& output, BatchView<const T> values);
  void require_position(const Output& output, index_t first) const;
  void append(Output& output, const void* values, index_t count);
  void finish(Output& output);
  void append_numbers(Output& output, NumberKind kind, index_t first,
                      std::span<const double> values);

  std::vector<index_t> leading_;
  int threads_;
  std::string name_;  // of the dataset in a shared file; empty in a file of its own
  std::shared_ptr<OpenFile> open_;
  AtomicFile& file_;
  Handle& handle_;
  Handle report_group_;
  // The datasets of factors, those of the report, and those of a report of solutions.
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

hid_t stored_type(const MatrixDataset& dataset) {
  if (dataset.is_whole) return H5T_STD_I32LE;
  return dataset.type == ElementType::float32 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE;
}

hid_t stored_type(NumberKind kind) {
  using Kind = NumberKind;
  return kind == Kind::real ? H5T_IEEE_F64LE : kind == Kind::whole ? H5T_STD_I32LE : H5T_STD_U8LE;
}

/// The values of a status with their names; empty where HDF5 reports an error.
Handle enum_type(std::span<const std::string_view> names) {
  Handle type(H5Tenum_create(H5T_STD_U8LE), H5Tclose);
  std::uint8_t value = 0;
  for (const std::string_view name : names) {
    if (H5Tenum_insert(type, std::string(name).c_str(), &value) < 0) return {};
    ++value;
  }
  return type;
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

void Hdf5Writer::fail() {
  const Session session;
  hdf5::stop_closing();
  const std::string error = hdf5::take_error();
  constexpr std::string_view key = "error message = '";
  std::string reason = escape(hdf5::innermost_error(error));
  if (const std::size_t at = error.find(key); at != std::string::npos) {
    reason = error.substr(at + key.size(), error.find('\'', at + key.size()) - at - key.size());
  }
  fail(std::move(reason));
}

void Hdf5Writer::fail(std::string reason) {
  hdf5::stop_closing();
  if (reason == "File too large") reason = "the file size limit is reached";
  if (reason.empty()) reason = "an earlier write failed";
  if (reason == std::strerror(ENOMEM)) {
    throw LimitError(fmt::format("cannot write '{}': out of memory", escape(file_.path())),
                     "try a smaller --memory or fewer --threads");
  }
  throw OutputError(fmt::format("cannot write '{}': {}", escape(file_.path()), reason));
}

/// A name that leads to the open file itself: in a folder that others may write to, its own name
/// could be given to another file. The own name where the system has no such names.
std::string name_by_descriptor(const AtomicFile& file) {
  std::string name = fmt::format("/proc/self/fd/{}", file.descriptor());
  return access(name.c_str(), R_OK | W_OK) == 0 ? name : file.temporary_path();
}

void Hdf5Writer::create_file() {
  constexpr unsigned all_in_header = 64;  // HDF5 stores more attributes than this in a heap
  const Handle creation(H5Pcreate(H5P_FILE_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(creation, false));
  check(H5Pset_attr_phase_change(creation, all_in_header, 0));
  const Handle access(H5Pcreate(H5P_FILE_ACCESS), H5Pclose);
  check(H5Pset_libver_bounds(access, H5F_LIBVER_V110, H5F_LIBVER_V110));
  check(H5Pset_file_locking(access, false, true));  // file_ already holds the lock
  check(H5Pset_fclose_degree(access, H5F_CLOSE_SEMI));
  check(hdf5::set_locating_driver(access));
  handle_ =
      Handle(check(H5Fcreate(name_by_descriptor(file_).c_str(), H5F_ACC_TRUNC, creation, access)),
             H5Fclose);
}

std::vector<Output> plan_matrices(const OutputSpec& spec) {
  std::vector<Output> matrices;
  for (const MatrixDataset& dataset : spec.datasets) {
    Output planned;
    planned.name = dataset.name;
    planned.rows = dataset.rows;
    planned.cols = dataset.cols;
    planned.element_bytes = dataset.stored_bytes();
    planned.is_whole = dataset.is_whole;
    planned.is_transposed = spec.order == Order::column && !dataset.is_vector;
    if (planned.is_transposed) std::swap(planned.rows, planned.cols);
    std::vector<index_t> matrix{planned.rows, planned.cols};
    if (dataset.is_vector) matrix.erase(matrix.begin());
    planned.layout =
        hdf5::make_layout(dataset.leading.value_or(spec.leading), matrix, planned.element_bytes);
    matrices.push_back(std::move(planned));
  }
  return matrices;
}

void Hdf5Writer::plan_outputs(const OutputSpec& spec) {
  matrices_ = plan_matrices(spec);
  const std::vector<index_t> single{1};
  for (const NumberDataset& numbers : spec.numbers) {
    Output planned;
    planned.name = numbers.name;
    planned.rows = planned.cols = 1;
    planned.element_bytes = bytes_of(numbers.kind);
    planned.layout =
        hdf5::make_layout(numbers.dims.empty() ? single : numbers.dims, {}, planned.element_bytes);
    numbers_.push_back(std::move(planned));
    kinds_.push_back(numbers.kind);
  }
  if (!spec.with_report) return;
  for (const ReportColumn& column : spec.report_columns) {
    Output planned;
    planned.name = column.name;
    planned.rows = planned.cols = 1;
    planned.element_bytes = bytes_of(column.kind);
    planned.layout =
        hdf5::make_layout(leading_.empty() ? single : leading_, {}, planned.element_bytes);
    columns_.push_back(std::move(planned));
  }
}

std::uint64_t bytes_of(std::span<const Output> outputs) {
  std::uint64_t bytes = 0;
  for (const Output& each : outputs) bytes += each.layout.file_bytes;
  return bytes;
}

void Hdf5Writer::create(const OutputSpec& spec, std::uint64_t more_bytes) {
  constexpr std::uint64_t header_bytes = 65536;  // with attributes
  const Session session;
  plan_outputs(spec);
  if (!is_part()) {
    create_file();
    file_.reserve(header_bytes + bytes_of(matrices_) + bytes_of(columns_) + bytes_of(numbers_) +
                  more_bytes);
    for (const auto& [name, value] : spec.attributes) create_attribute(handle_, name, value);
  }
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    create_dataset(handle_, matrices_[i], path_of(matrices_[i].name),
                   stored_type(spec.datasets[i]));
  }
  if (!spec.numbers.empty()) create_numbers(spec);
  if (spec.with_report) create_report(spec);
  describe_matrices(spec);
  if (!is_part()) {
    name_dimensions(spec);
    return;
  }
  for (const auto& [name, value] : spec.attributes) create_attribute(report_group_, name, value);
}

void Hdf5Writer::describe_matrices(const OutputSpec& spec) {
  for (std::size_t i = 0; i < matrices_.size(); ++i) {
    const MatrixDataset& dataset = spec.datasets[i];
    if (!dataset.description.empty())
      create_attribute(matrices_[i].handle, "description", dataset.description);
    if (dataset.is_whole) create_attribute(matrices_[i].handle, "base", std::int64_t{0});
  }
}

/// Gives dimensions their names. The names of a matrix's dimensions are stored reversed where the
/// matrix is.
void Hdf5Writer::name_dimensions(const OutputSpec& spec) {
  if (spec.dimensions.empty()) return;
  hdf5::DimensionScales scales;
  const auto attach = [&](const Output& output, std::vector<std::string> names) {
    if (names.size() != output.layout.dims.size()) return;
    if (output.is_transposed) std::swap(names.back(), names[names.size() - 2]);
    if (!scales.attach(handle_, output.handle, names)) fail();
  };
  if (!scales.create(handle_, spec.dimensions)) fail();
  for (std::size_t i = 0; i < matrices_.size(); ++i)
    attach(matrices_[i], spec.datasets[i].dimensions);
  for (std::size_t i = 0; i < numbers_.size(); ++i) attach(numbers_[i], spec.numbers[i].dimensions);
  for (const Output& column : columns_)
    if (!spec.leading.empty()) attach(column, spec.leading_dimensions);
  if (!scales.finish(handle_)) fail();
}

/// Creates the groups that lead to `path`. HDF5 would store the time in groups that it creates
/// itself.
void Hdf5Writer::create_groups(const std::string& path) {
  const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(creation, false));
  for (std::size_t end = path.find('/', 1); end != std::string::npos;
       end = path.find('/', end + 1)) {
    const std::string group = path.substr(0, end);
    if (group.back() == '/' || check(H5Lexists(handle_, group.c_str(), H5P_DEFAULT)) > 0) continue;
    const Handle created(
        check(H5Gcreate2(handle_, group.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT)), H5Gclose);
  }
}

void Hdf5Writer::create_report_group() {
  const Handle creation(H5Pcreate(H5P_GROUP_CREATE), H5Pclose);
  check(H5Pset_obj_track_times(creation, false));
  const std::string path = path_of("report");
  create_groups(path);
  report_group_ = Handle(
      check(H5Gcreate2(handle_, path.c_str(), H5P_DEFAULT, creation, H5P_DEFAULT)), H5Gclose);
}

void Hdf5Writer::create_numbers(const OutputSpec& spec) {
  create_report_group();
  const Handle status = enum_type(solution_status_names);
  if (!status) fail();
  for (std::size_t i = 0; i < numbers_.size(); ++i) {
    const NumberDataset& numbers = spec.numbers[i];
    create_dataset(report_group_, numbers_[i], numbers_[i].name,
                   kinds_[i] == NumberKind::status ? status : stored_type(kinds_[i]));
    const std::pair<const char*, const std::string&> texts[] = {
        {"description", numbers.description},
        {"formula", numbers.formula},
        {"unit", numbers.unit},
        {"bar_formula", numbers.bar_formula}};
    for (const auto& [name, text] : texts) create_attribute(numbers_[i].handle, name, text);
    create_attribute(numbers_[i].handle, "bar", numbers.bar);
  }
}

void Hdf5Writer::create_report(const OutputSpec& spec) {
  create_report_group();
  const Handle status = enum_type(status_names);
  if (!status) fail();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    const ReportColumn& column = spec.report_columns[i];
    create_dataset(report_group_, columns_[i], columns_[i].name,
                   column.kind == NumberKind::status ? status : stored_type(column.kind));
    const std::pair<const char*, std::string_view> texts[] = {{"description", column.description},
                                                              {"formula", column.formula},
                                                              {"unit", column.unit},
                                                              {"bar_formula", column.bar_formula}};
    for (const auto& [name, text] : texts) {
      create_attribute(columns_[i].handle, name, std::string(text));
    }
    create_attribute(columns_[i].handle, "bar", column.bar);
  }
}

void Hdf5Writer::create_attribute(hid_t object, const std::string& name,
                                  const AttributeValue& value) {
  Handle type;
  const void* data = nullptr;
  std::vector<const char*> texts;
  const auto* list = std::get_if<std::vector<std::string>>(&value);
  if (const auto* string = std::get_if<std::string>(&value)) texts.push_back(string->c_str());
  for (std::size_t i = 0; list && i < list->size(); ++i) texts.push_back((*list)[i].c_str());
  if (!texts.empty()) {
    type = Handle(check(H5Tcopy(H5T_C_S1)), H5Tclose);
    check(H5Tset_size(type, H5T_VARIABLE));
    check(H5Tset_cset(type, H5T_CSET_UTF8));
    data = texts.data();
  } else if (const auto* number = std::get_if<double>(&value)) {
    type = Handle(check(H5Tcopy(H5T_IEEE_F64LE)), H5Tclose);
    data = number;
  } else {
    type = Handle(check(H5Tcopy(H5T_STD_I64LE)), H5Tclose);
    data = &std::get<std::int64_t>(value);
  }
  static_assert(std::endian::native == std::endian::little);
  const hsize_t extent[] = {texts.size()};
  const Handle space(check(list ? H5Screate_simple(1, extent, nullptr) : H5Screate(H5S_SCALAR)),
                     H5Sclose);
  const Handle attribute(
      check(H5Acreate2(object, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT)), H5Aclose);
  check(H5Awrite(attribute, type, data));
}

void Hdf5Writer::create_dataset(hid_t parent, Output& created, const std::string& path,
                                hid_t type) {
  const Layout& layout = created.layout;
  const auto rank = static_cast<int>(layout.dims.size());
  const Handle creation(check(H5Pcreate(H5P_DATASET_CREATE)), H5Pclose);
  check(H5Pset_obj_track_times(creation, false));
  check(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER));
  if (!layout.chunk.empty()) {
    check(H5Pset_chunk(creation, rank, layout.chunk.data()));
    check(H5Pset_fletcher32(creation));
  }
  if (parent == handle_) create_groups(path);
  const Handle space(check(H5Screate_simple(rank, layout.dims.data(), nullptr)), H5Sclose);
  created.handle = Handle(
      check(H5Dcreate2(parent, path.c_str(), type, space, H5P_DEFAULT, creation, H5P_DEFAULT)),
      H5Dclose);
  if (layout.chunk.empty()) return;
  created.chunks.emplace(created.handle, file_.descriptor(), layout, created.element_bytes,
                         threads_);
  if (!created.chunks->allocate()) fail();
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

void Hdf5Writer::append(Output& to, const void* values, index_t count) {
  try {
    to.chunks->append(values, count);
  } catch (const hdf5::FailedWrite& error) {
    fail(std::strerror(error.code().value()));
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
      append(to, gathered, matrices * rows * to.cols);
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
    const std::vector<std::int32_t> numbers(values.data, values.data + count);
    append(to, numbers.data(), count);
  } else if (to.is_transposed || !values.is_packed()) {
    write_gathered(to, values);
  } else {
    append(to, values.data, count);
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
  append(to, rows.data, rows.rows * rows.cols);
}

void Hdf5Writer::restart(std::string_view dataset, index_t matrix) {
  Output& to = output(dataset);
  const index_t first = matrix * to.rows * to.cols;
  if (!to.chunks || to.chunks->position() == first) return;
  if (to.chunks->position() < first || to.chunks->position() > first + to.rows * to.cols)
    throw InternalError(fmt::format("restart: {} is at another matrix", to.name));
  try {
    to.chunks->go_back(first);
  } catch (const hdf5::FailedWrite& error) {
    fail(std::strerror(error.code().value()));
  }
}

/// Writes the last chunk, which may not be full, and closes the dataset.
void Hdf5Writer::finish(Output& output) {
  try {
    if (output.chunks) output.chunks->finish();
  } catch (const hdf5::FailedWrite& error) {
    fail(std::strerror(error.code().value()));
  }
  if (!output.handle.close()) fail();
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

/// NaN becomes -1 in whole numbers.
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
    append(to, values.data(), count);
  } else if (kind == NumberKind::whole) {
    append(to, whole_numbers<std::int32_t>(values).data(), count);
  } else {
    append(to, whole_numbers<std::uint8_t>(values).data(), count);
  }
}

void Hdf5Writer::add_attribute(const std::string& name, const std::string& value) {
  const Session session;
  create_attribute(is_part() ? report_group_ : handle_, name, value);
}

void Hdf5Writer::finish(FileSet& files) {
  if (hdf5::is_closing_stopped()) fail("an earlier write failed");
  for (auto* outputs : {&matrices_, &columns_, &numbers_}) {
    for (Output& each : *outputs) finish(each);
  }
  const Session session;
  if (!report_group_.close()) fail();
  if (is_part()) {
    closed_ = true;
    return;
  }
  check(H5Fflush(handle_, H5F_SCOPE_GLOBAL));
  if (!handle_.close()) fail();
  closed_ = true;
  files.add(file_);
}

class Hdf5OutputFile final : public OutputFile {
 public:
  Hdf5OutputFile(const OutputSpec& root, std::span<const OutputSpec> planned) : root_(root) {
    std::uint64_t bytes = 0;
    for (const OutputSpec& spec : planned) bytes += planned_bytes(spec);
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
  /// A dataset has some headers of its own, too.
  static std::uint64_t planned_bytes(const OutputSpec& spec) {
    constexpr std::uint64_t header_bytes = 16384;
    std::uint64_t bytes = header_bytes;
    const std::vector<index_t> none{}, single{1};
    for (const MatrixDataset& each : spec.datasets) {
      const std::vector<index_t> matrix{each.rows, each.cols};
      bytes += hdf5::make_layout(spec.leading, matrix, each.stored_bytes()).file_bytes;
    }
    for (const ReportColumn& column : spec.report_columns)
      bytes += hdf5::make_layout(spec.leading.empty() ? single : spec.leading, none,
                                 bytes_of(column.kind))
                   .file_bytes;
    return bytes;
  }

  Hdf5Writer root_;
};

}  // namespace

std::unique_ptr<OutputFile> create_hdf5_file(const OutputSpec& root,
                                             std::span<const OutputSpec> planned) {
  return std::make_unique<Hdf5OutputFile>(root, planned);
}

std::size_t hdf5_workspace_bytes(const OutputSpec& spec) {
  // A chunk that waits to be full, and one that is being written.
  const auto waiting_bytes = [](const Layout& layout, std::size_t element_bytes) {
    std::size_t bytes = layout.chunk.empty() ? 0 : 2 * element_bytes;
    for (const hsize_t extent : layout.chunk) bytes *= extent;
    return bytes;
  };
  std::size_t bytes = 0;
  bool is_gathered = false;
  for (const Output& planned : plan_matrices(spec)) {
    bytes += waiting_bytes(planned.layout, planned.element_bytes);
    is_gathered = is_gathered || planned.is_transposed;
  }
  const std::vector<index_t> single{1};
  for (std::size_t i = 0; spec.with_report && i < spec.report_columns.size(); ++i) {
    const std::size_t element_bytes = bytes_of(spec.report_columns[i].kind);
    bytes += waiting_bytes(
        hdf5::make_layout(spec.leading.empty() ? single : spec.leading, {}, element_bytes),
        element_bytes);
  }
  for (const NumberDataset& numbers : spec.numbers) {
    const std::size_t element_bytes = bytes_of(numbers.kind);
    bytes += waiting_bytes(
        hdf5::make_layout(numbers.dims.empty() ? single : numbers.dims, {}, element_bytes),
        element_bytes);
  }
  return bytes + (is_gathered ? static_cast<std::size_t>(scratch_bytes) : 0);
}

std::unique_ptr<Writer> create_hdf5(const OutputSpec& spec) {
  auto writer = std::make_unique<Hdf5Writer>(spec);
  writer->create(spec);
  return writer;
}

}  // namespace qrtool
