// SPDX-License-Identifier: Apache-2.0
// coefficients.cpp: keeps X and se until all numbers are there, and then writes them line by line.
#include "io/csv/coefficients.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/solve/results/inference.hpp"
#include "core/text.hpp"
#include "io/csv/fields.hpp"
#include "io/csv/reader.hpp"
#include "io/csv/writer.hpp"
#include "io/file/descriptor.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_bytes.hpp"
#include "io/file/text_output.hpp"
#include "io/read/reader_of.hpp"
#include "io/report/solution_report_file.hpp"
#include "io/report/stored_report.hpp"
#include "io/write/factor_files.hpp"

namespace qrtool {
namespace {

/// The attribute of an output with coefficients; its value is the number of responses.
constexpr const char* mark = "coefficients_of";

/// Returns the datasets of an output that the table does not hold.
OutputSpec without_x(OutputSpec spec) {
  std::erase_if(spec.datasets, [](const MatrixDataset& dataset) {
    return dataset.name == "X" || dataset.name == "se";
  });
  return spec;
}

class CoefficientWriter final : public Writer {
 public:
  explicit CoefficientWriter(const OutputSpec& spec);

  void write(std::string_view dataset, index_t first, BatchView<const float> values) override {
    keep(dataset, first, values);
  }
  void write(std::string_view dataset, index_t first, BatchView<const double> values) override {
    keep(dataset, first, values);
  }
  void write_rows(std::string_view, index_t, index_t, MatrixView<const float>) override { fail(); }
  void write_rows(std::string_view, index_t, index_t, MatrixView<const double>) override { fail(); }
  void write_part(std::string_view dataset, index_t first, std::span<const float> values) override {
    keep_part(dataset, first, values);
  }
  void write_part(std::string_view dataset, index_t first,
                  std::span<const double> values) override {
    keep_part(dataset, first, values);
  }
  void restart(std::string_view, index_t) override { fail(); }
  void write_report(index_t, std::span<const MatrixReport>) override { fail(); }
  void write_numbers(std::string_view name, index_t first, std::span<const double> values) override;
  void finish(FileSet& files) override;
  std::vector<std::string> files() const override;

 private:
  [[noreturn]] static void fail() {
    throw InternalError("write: a table holds coefficients alone");
  }
  template <class T>
  void keep(std::string_view dataset, index_t first, BatchView<const T> values);
  template <class T>
  void keep_part(std::string_view dataset, index_t first, std::span<const T> values);
  void write_header();
  void write_line(std::size_t response, std::size_t term);
  std::string text_of(double number) const {
    return is_single_ ? number_of(static_cast<float>(number)) : number_of(number);
  }

  CoefficientTable table_;
  char separator_;
  bool is_single_ = false, has_se_ = false;
  std::vector<std::string> obsolete_;  // files of other runs under the same name
  TextOutput output_;
  std::vector<double> x_, se_, freedom_;  // terms x responses; responses
  std::unique_ptr<SolutionReportFile> report_;
  std::unique_ptr<Writer> others_;  // the datasets that are no column of the table
};

CoefficientWriter::CoefficientWriter(const OutputSpec& spec)
    : table_(*spec.coefficients),
      separator_(separator_of(spec.path)),
      obsolete_(find_obsolete(without_x(spec))),
      output_(spec.path, spec.force),
      x_(table_.terms.size() * table_.responses.size(), not_measured),
      se_(x_.size(), not_measured),
      freedom_(table_.responses.size(), not_measured) {
  for (const MatrixDataset& dataset : spec.datasets) {
    is_single_ = is_single_ || (dataset.name == "X" && dataset.type == ElementType::float32);
    has_se_ = has_se_ || dataset.name == "se";
  }
  if (is_standard_output(spec.path)) return;
  if (spec.force) obsolete_.push_back(report_file(spec.path, ".csv"));
  OutputSpec report = spec;
  report.attributes.emplace_back(mark, fmt::format("{}", table_.responses.size()));
  report_ = std::make_unique<SolutionReportFile>(report_file(spec.path, ".json"), report);
  OutputSpec rest = without_x(spec);
  rest.numbers.clear();
  for (MatrixDataset& dataset : rest.datasets) {
    // Leverages have one value per row, so they are a column, as residuals are.
    if (dataset.name != "leverage") continue;
    dataset.rows = std::exchange(dataset.cols, 1);
    dataset.is_vector = false;
  }
  if (!rest.datasets.empty()) others_ = create_csv(rest);
}

template <class T>
void CoefficientWriter::keep(std::string_view dataset, index_t first, BatchView<const T> values) {
  if (report_) report_->add(dataset, values);
  if (dataset == "covariance") {
    others_->write(dataset, first, values);
    return;
  }
  std::vector<double>& to = dataset == "se" ? se_ : x_;
  if (first != 0 || values.count != 1 || values.rows * values.cols != std::ssize(to)) fail();
  for (index_t i = 0; i < values.rows; ++i)
    for (index_t j = 0; j < values.cols; ++j)
      to[static_cast<std::size_t>(i * values.cols + j)] = static_cast<double>(values[0](i, j));
}

template <class T>
void CoefficientWriter::keep_part(std::string_view dataset, index_t first,
                                  std::span<const T> values) {
  if (report_) report_->add(dataset, values);
  others_->write_part(dataset, first, values);
}

void CoefficientWriter::write_numbers(std::string_view name, index_t first,
                                      std::span<const double> values) {
  if (name == "degrees_of_freedom") std::copy(values.begin(), values.end(), &freedom_.at(first));
  if (report_) report_->write(name, values);
}

void CoefficientWriter::write_header() {
  fmt::memory_buffer& buffer = output_.buffer();
  if (table_.responses.size() > 1) buffer.append(fmt::format("response{}", separator_));
  buffer.append(fmt::format("term{}x", separator_));
  if (has_se_)
    for (const char* name : {"se", "t", "p"}) buffer.append(fmt::format("{}{}", separator_, name));
  if (has_se_ && table_.confidence > 0) buffer.append(fmt::format("{0}lower{0}upper", separator_));
  buffer.push_back('\n');
}

void CoefficientWriter::write_line(std::size_t response, std::size_t term) {
  fmt::memory_buffer& buffer = output_.buffer();
  const auto add = [&](const std::string& field) {
    buffer.push_back(separator_);
    buffer.append(field);
  };
  const std::size_t at = term * table_.responses.size() + response;
  if (table_.responses.size() > 1)
    buffer.append(field_of(table_.responses[response], separator_) + separator_);
  buffer.append(field_of(table_.terms[term], separator_));
  add(text_of(x_[at]));
  if (has_se_) {
    const Inference found = infer(x_[at], se_[at], freedom_[response], table_.confidence);
    add(text_of(se_[at]));
    add(number_of(found.t));
    add(number_of(found.p));
    if (table_.confidence > 0) {
      add(number_of(found.lower));
      add(number_of(found.upper));
    }
  }
  buffer.push_back('\n');
}

void CoefficientWriter::finish(FileSet& files) {
  write_header();
  for (std::size_t response = 0; response < table_.responses.size(); ++response) {
    for (std::size_t term = 0; term < table_.terms.size(); ++term) {
      write_line(response, term);
      output_.flush_if_full();
    }
  }
  output_.finish(files);
  if (others_) others_->finish(files);
  if (report_) report_->finish(files);
  for (const std::string& path : obsolete_) files.add_obsolete(path);
}

std::vector<std::string> CoefficientWriter::files() const {
  std::vector<std::string> names{output_.path()};
  if (others_)
    for (const std::string& name : others_->files()) names.push_back(name);
  if (report_) names.push_back(report_->path());
  return names;
}

/// A column of a table, x or se, in memory.
class CoefficientReader final : public ReaderOf<CoefficientReader> {
 public:
  /// `inner`: the column, responses x terms one below the other.
  CoefficientReader(std::unique_ptr<Reader> inner, const std::string& path, index_t responses,
                    bool is_single)
      : inner_(std::move(inner)), x_(1, inner_->source().m / responses, responses) {
    const MatrixView<double> x = x_.view()[0];
    const Batch<double> column(1, inner_->source().m, 1);
    inner_->read(0, column.view());
    for (index_t i = 0; i < x.rows; ++i)
      for (index_t j = 0; j < x.cols; ++j) x(i, j) = column.view()[0](j * x.rows + i, 0);
    source_.file = path;
    source_.m = x.rows;
    source_.n = x.cols;
    source_.stored_type = name_of(is_single ? ElementType::float32 : ElementType::float64);
  }
  template <class T>
  void read_any_rows(index_t, index_t first, MatrixView<T> out) const {
    for (index_t i = 0; i < out.rows; ++i)
      for (index_t j = 0; j < out.cols; ++j) out(i, j) = static_cast<T>(x_.view()[0](first + i, j));
  }
  void require_unchanged() const override { inner_->require_unchanged(); }

 private:
  std::unique_ptr<Reader> inner_;
  Batch<double> x_;
};

/// Returns the first line of a file, or an empty text if the file is empty.
std::string header_of(const std::string& path) {
  const Descriptor file(open_rereadable(path));
  const std::string head = head_of_text(file, escape(path));
  return head.substr(0, head.find_first_of("\r\n"));
}

std::unique_ptr<Reader> open_column(const std::string& path, const char* name) {
  const std::vector<std::string> texts = attributes_of_set(path, {"precision", mark});
  CsvOptions options{.delimiter = separator_of(path), .header = Answer::yes, .columns = name};
  std::unique_ptr<Reader> column = open_csv(open_rereadable(path), path, options);
  const auto responses = static_cast<index_t>(std::max(1, std::atoi(texts[1].c_str())));
  if (column->source().m % responses != 0 || !column->source().leading.empty())
    throw InputError(fmt::format("{}: {} lines are not those of {} responses", escape(path),
                                 column->source().m, responses),
                     "solve again with --force");
  return std::make_unique<CoefficientReader>(std::move(column), path, responses,
                                             texts[0] == "single");
}

}  // namespace

std::unique_ptr<Writer> create_coefficients(const OutputSpec& spec) {
  return std::make_unique<CoefficientWriter>(spec);
}

bool begins_as_coefficients(const std::string& path) {
  if (!has_text_ending(path) || !file_exists(path)) return false;
  const std::string header = header_of(path), separator(1, separator_of(path));
  return header.starts_with("term" + separator + "x") ||
         header.starts_with("response" + separator + "term" + separator + "x");
}

bool is_coefficient_table(const std::string& path) {
  if (!begins_as_coefficients(path)) return false;
  for (const char* name : set_names)
    if (name != std::string("covariance") && !is_fit(name) && file_exists(factor_file(path, name)))
      return false;
  try {
    return !attributes_of_set(path, {mark}).front().empty();
  } catch (const InputError&) {
    return false;
  }
}

std::unique_ptr<Reader> open_coefficients(const std::string& path) {
  return open_column(path, "x");
}

std::unique_ptr<Reader> open_standard_errors(const std::string& path) {
  const char separator = separator_of(path);
  const bool is_there =
      header_of(path).find(fmt::format("{0}se{0}", separator)) != std::string::npos;
  return is_there ? open_column(path, "se") : nullptr;
}

}  // namespace qrtool
