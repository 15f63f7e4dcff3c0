// SPDX-License-Identifier: Apache-2.0
// design.cpp: columns by name, and a reader of several vectors.
#include "app/solve/design.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "app/solve/side_numbers.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/text.hpp"
#include "core/whole_number.hpp"
#include "io/file/input_file.hpp"
#include "io/open/contents.hpp"
#include "io/open/input.hpp"
#include "io/read/reader_of.hpp"
#include "io/read/stored_factors.hpp"
#include "io/source/time_units.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool {
namespace {

/// The highest degree. Beyond it a fit is only rounding errors.
constexpr int most_degree = 20;

/// Returns the place of a column by its name, or by its number in `numbers`.
index_t place_of(const std::string& column, const std::vector<std::string>& names,
                 const std::vector<index_t>& numbers, const std::string& file) {
  const auto found = std::find(names.begin(), names.end(), column);
  if (found != names.end()) return found - names.begin();
  const auto number = std::find(numbers.begin(), numbers.end(), whole_number(column).value_or(0));
  if (number != numbers.end()) return number - numbers.begin();
  const std::string text =
      fmt::format("{}: --polynomial: A has no column {}", escape(file), escape(column));
  throw InputError(text, names.empty() ? fmt::format("its columns are the numbers {} to {}",
                                                     numbers.front(), numbers.back())
                                       : fmt::format("its columns are {}; a number counts the "
                                                     "columns of the file",
                                                     escape(join(names, ", "))));
}

/// Vectors of m numbers each, as the columns of one matrix.
class VectorReader final : public ReaderOf<VectorReader> {
 public:
  VectorReader(std::vector<std::unique_ptr<Reader>> vectors, const std::string& file,
               const std::string& list)
      : vectors_(std::move(vectors)) {
    const Source& first = vectors_.front()->source();
    source_.file = file;
    source_.dataset = list;
    source_.m = first.m * first.n;
    source_.n = std::ssize(vectors_);
    source_.stored_type = first.stored_type;
    const bool is_single = std::all_of(vectors_.begin(), vectors_.end(), [](const auto& vector) {
      return vector->source().type == ElementType::float32;
    });
    source_.type = is_single ? ElementType::float32 : ElementType::float64;
    source_.dimensions = {};
    describe();
  }

  template <class T>
  void read_any_rows(index_t, index_t first, MatrixView<T> out) {
    std::vector<T> some(static_cast<std::size_t>(std::min(at_once_, out.rows)));
    for (index_t j = 0; j < out.cols; ++j) {
      for (index_t i = 0; i < out.rows; i += at_once_) {
        const index_t count = std::min(at_once_, out.rows - i);
        read_numbers(*vectors_[static_cast<std::size_t>(j)], first + i, count, some.data());
        for (index_t k = 0; k < count; ++k) out(i + k, j) = some[static_cast<std::size_t>(k)];
      }
    }
  }
  void require_unchanged() const override {
    for (const auto& vector : vectors_) vector->require_unchanged();
  }
  std::size_t workspace_bytes(ElementType type) const override {
    std::size_t bytes = at_once_ * size_of(type);
    for (const auto& vector : vectors_) bytes += vector->workspace_bytes(type);
    return bytes;
  }

 private:
  static constexpr index_t at_once_ = 1 << 16;  // numbers

  /// Copies into the source of A how its vectors were read: their notes, and the units and
  /// calendars of all that are times, in the order of the vectors.
  void describe() {
    std::vector<std::string> units, calendars;
    for (const auto& vector : vectors_) {
      const Source& of_vector = vector->source();
      source_.notes.insert(source_.notes.end(), of_vector.notes.begin(), of_vector.notes.end());
      if (std::string note = check_time(of_vector.details, source_.file, of_vector.dataset);
          !note.empty())
        source_.notes.push_back(std::move(note));
      if (std::string word = word_of(of_vector.details, time_units_name); !word.empty()) {
        units.push_back(std::move(word));
        calendars.push_back(word_of(of_vector.details, time_calendar_name));
      }
    }
    if (!units.empty())
      source_.details = {{time_units_name, join(units, ", ")},
                         {time_calendar_name, join(calendars, ", ")}};
    const std::string raw = word_of(vectors_.front()->source().details, raw_values_name);
    if (!raw.empty()) source_.details.emplace_back(raw_values_name, raw);
  }

  std::vector<std::unique_ptr<Reader>> vectors_;
};

/// Returns FILE:/group/name for a name, or FILE.npz:name in an archive of NumPy.
std::string path_of(const std::string& file, const std::string& name) {
  const Location location = split_location(file);
  if (ending_of(location.file) == ".npz") return location.file + ":" + name;
  if (!location.dataset.empty()) return fmt::format("{}/{}", file, name);
  return fmt::format("{}:{}{}", file, name.starts_with('/') ? "" : "/", name);
}

/// Returns the column that a wrong item of --polynomial seems to mean: the text before its first
/// `:`, `^` or `*`, or t if there is none.
std::string column_of(const std::string& item) {
  const std::string name = item.substr(0, item.find_first_of(":^*"));
  return name.empty() ? "t" : escape(name);
}

/// Whether a file of datasets has a vector of this name.
bool has_vector(const std::string& file, const std::string& name) {
  return std::ranges::any_of(list_entries(file), [&](const Entry& entry) {
    return entry.dims.size() == 1 && name_in_output(entry.name) == name_in_output(name);
  });
}

}  // namespace

void refuse_vectors_without_a(const std::string& path, const std::string& polynomial) {
  const std::string file = split_location(path).file;
  if (!has_datasets(file)) return;
  std::vector<std::string> vectors;
  for (const auto& [column, degree] : parse_polynomial(polynomial))
    if (!whole_number(column) && has_vector(file, column)) vectors.push_back(column);
  if (vectors.empty()) return;
  throw InputError(fmt::format("{}: --polynomial: {} is a vector of the file, and no column of A",
                               escape(file), escape(vectors.front())),
                   fmt::format("qrtool solve {} B OUT --a {} --polynomial {} makes A of vectors",
                               escape(file), escape(join(vectors, ",")), escape(polynomial)));
}

std::vector<Polynomial> parse_polynomial(std::string_view text) {
  std::vector<Polynomial> all;
  for (const std::string& item : split(text, ',')) {
    const std::size_t colon = item.rfind(':');
    const auto degree = colon == std::string::npos
                            ? std::nullopt
                            : whole_number(std::string_view(item).substr(colon + 1));
    if (!degree || *degree < 1 || *degree > most_degree || colon == 0)
      throw UsageError(
          fmt::format("--polynomial: {} is not COLUMN:DEGREE, with a degree from 1 to {}",
                      escape(item), most_degree),
          fmt::format("for {0} and its square give {0}:2", column_of(item)));
    all.push_back({.column = item.substr(0, colon), .degree = static_cast<int>(*degree)});
  }
  return all;
}

Design design_of(const SystemOptions& o, const std::vector<std::string>& names,
                 const std::vector<index_t>& numbers, const std::string& file) {
  const index_t count = std::ssize(numbers);
  std::vector<int> degrees(static_cast<std::size_t>(count), 1);
  if (!o.polynomial.empty())
    for (const auto& [column, degree] : parse_polynomial(o.polynomial))
      degrees[static_cast<std::size_t>(place_of(column, names, numbers, file))] = degree;
  Design design;
  // A table may have no column left for A except the ones.
  const bool has_names = !names.empty() || count == 0;
  if (o.intercept && has_names) design.names.push_back("(intercept)");
  for (index_t j = 0; j < count; ++j) {
    for (int power = 1; power <= degrees[static_cast<std::size_t>(j)]; ++power) {
      design.columns.push_back({.column = j, .power = power});
      if (names.empty()) continue;
      const std::string& name = names[static_cast<std::size_t>(j)];
      design.names.push_back(power == 1 ? name : fmt::format("{}^{}", name, power));
    }
  }
  return design;
}

std::unique_ptr<Reader> open_vectors(const std::string& file, const std::string& list,
                                     const InputSpec& spec) {
  if (!has_datasets(split_location(file).file))
    throw UsageError(fmt::format("{}: --a names datasets of a file, and this has none",
                                 escape(split_location(file).file)),
                     "leave --a away: all of its columns are those of A");
  std::vector<std::unique_ptr<Reader>> vectors;
  for (const std::string& name : split(list, ',')) {
    InputSpec one = spec;
    one.path = path_of(file, name);
    one.takes_vectors = true;
    vectors.push_back(open_array(one));
    const auto dims = dims_of(vectors.back()->source());
    const auto wanted = dims_of(vectors.front()->source());
    if (dims.size() != 1)
      throw InputError(fmt::format("{}: --a takes arrays of one dimension, and {} is {}",
                                   escape(file), escape(name), join(dims, "x")),
                       fmt::format("a matrix is named alone: qrtool solve {} B OUT",
                                   escape(path_of(file, name))));
    if (dims != wanted)
      throw InputError(
          fmt::format("{}: --a: {} has {} numbers, and {} has {}", escape(file),
                      escape(split(list, ',').front()), wanted.front(), escape(name), dims.front()),
          "the columns of A have one number for each row");
  }
  return std::make_unique<VectorReader>(std::move(vectors), split_location(file).file, list);
}

}  // namespace qrtool
