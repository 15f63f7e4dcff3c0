// SPDX-License-Identifier: Apache-2.0
// reader.cpp: chooses the reader for a file from its name and content.
#include "io/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/factors.hpp"
#include "io/csv/reader.hpp"
#include "io/csv/writer.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/hdf5/reader.hpp"

namespace qrtool {
namespace {

constexpr index_t piece_bytes = index_t{1} << 20;

std::unique_ptr<Reader> open_text(const std::string& file, const std::string& dataset,
                                  Order order) {
  if (!dataset.empty()) {
    throw UsageError(fmt::format("{}: a CSV file has no datasets to choose from", escape(file)));
  }
  if (order == Order::column) {
    throw UsageError(
        fmt::format("{}: --order column is for HDF5; CSV is read line by line", escape(file)));
  }
  if (file != "-") require_text_file(file);
  return open_csv(file);
}

/// Errors: InputError, also where the file cannot be read.
void refuse_matrix_market(const std::string& file) {
  readable_size(file);
  if (sniff(file) != Content::matrix_market) return;
  TextLines lines(open_rereadable(file), escape(file));
  lines.next();
  throw_matrix_market(lines.shown(), lines.text());
}

std::string shape_of(const Source& source) {
  return format_shape(source.leading, source.m, source.n);
}

[[noreturn]] void throw_contradiction(const std::string& file, const char* first, const Source& a,
                                      const char* second, const Source& b) {
  throw InputError(fmt::format("{}: {} ({}) and {} ({}) do not belong together", escape(file),
                               first, shape_of(a), second, shape_of(b)));
}

/// Keeps Q and R, or only R, or V and tau, and checks that their shapes agree.
void require_consistent(StoredFactors& factors) {
  const std::string file = escape(factors.file);
  if (factors.r) {
    factors.v.reset();
    factors.tau.reset();
    if (!factors.q) return;
    const Source &q = factors.q->source(), &r = factors.r->source();
    if (q.leading != r.leading || q.n != r.m) throw_contradiction(file, "Q", q, "R", r);
    return;
  }
  if (factors.q) throw InputError(fmt::format("{}: holds Q, but no R", file));
  if (!factors.v) {
    throw InputError(fmt::format("{}: holds neither R nor V and tau", file),
                     "the datasets must be named /Q and /R (or /R alone, or /V and /tau)");
  }
  if (!factors.tau) throw InputError(fmt::format("{}: holds V, but no tau", file));
  const Source &v = factors.v->source(), &tau = factors.tau->source();
  if (v.leading != tau.leading || tau.m != 1 || tau.n != std::min(v.m, v.n)) {
    throw_contradiction(file, "V", v, "tau", tau);
  }
}

}  // namespace

index_t Reader::most_piece_rows() const {
  const index_t row_bytes = source_.n * static_cast<index_t>(size_of(source_.type));
  return std::max<index_t>(piece_bytes / std::max<index_t>(row_bytes, 1), 1);
}

index_t Reader::piece_end(index_t, index_t first_row) const {
  return std::min(first_row + most_piece_rows(), source_.m);
}

std::string_view name_of(Order order) {
  switch (order) {
    case Order::row:
      return "row";
    case Order::column:
      return "column";
    default:
      return "auto";
  }
}

std::unique_ptr<Reader> open_input(const InputSpec& spec) {
  if (spec.path == "-") return open_text("-", spec.dataset, spec.order);
  const Location location = split_location(spec.path);
  if (!location.dataset.empty() && !spec.dataset.empty()) {
    throw UsageError(
        fmt::format("{}: a dataset is named here and by --dataset as well", escape(spec.path)));
  }
  const std::string& dataset = spec.dataset.empty() ? location.dataset : spec.dataset;
  if (has_text_ending(location.file)) return open_text(location.file, dataset, spec.order);
  refuse_matrix_market(location.file);
  return open_hdf5_input({location.file, dataset, spec.order, spec.threads});
}

std::unique_ptr<Reader> open_array(const InputSpec& spec) {
  const Location location = split_location(spec.path);
  if (spec.path == "-" || has_text_ending(location.file)) return open_input(spec);
  refuse_matrix_market(location.file);
  const std::string& dataset = spec.dataset.empty() ? location.dataset : spec.dataset;
  return open_hdf5_array({location.file, dataset, Order::row, spec.threads});
}

std::vector<index_t> dims_of(const Source& source) {
  std::vector<index_t> dims = source.leading;
  dims.push_back(source.m);
  if (!source.is_vector) dims.push_back(source.n);
  return dims;
}

std::unique_ptr<Reader> open_solutions(const std::string& path, int threads) {
  const Location location = split_location(path);
  if (has_text_ending(location.file)) {
    const std::string named = csv_name(location.file, "X");
    std::error_code error;
    const bool is_set = std::filesystem::exists(named, error);
    return open_array({.path = is_set ? named : location.file, .dataset = {}});
  }
  InputSpec spec{.path = location.file, .dataset = location.dataset, .threads = threads};
  if (spec.dataset.empty()) spec.dataset = find_hdf5_solutions(location.file);
  return open_array(spec);
}

std::vector<std::string> recorded_attributes(const std::string& path,
                                             const std::vector<const char*>& names) {
  const Location location = split_location(path);
  if (has_text_ending(location.file)) return std::vector<std::string>(names.size());
  return read_hdf5_attributes(location.file, names);
}

RecordedInput read_recorded_input(const std::string& factors) {
  if (has_text_ending(factors)) return {};
  try {
    return read_hdf5_recorded_input(factors);
  } catch (const InputError&) {
    return {};
  }
}

std::unique_ptr<Reader> open_recorded_input(InputSpec spec, const RecordedInput& recorded) {
  const Location location = split_location(spec.path);
  // Text has neither datasets nor an order.
  if (spec.path == "-" || has_text_ending(location.file)) return open_input(spec);
  if (spec.order == Order::automatic) spec.order = recorded.order;
  if (!recorded.dataset.empty() && spec.dataset.empty() && location.dataset.empty()) {
    InputSpec same = spec;
    same.dataset = recorded.dataset;
    try {
      return open_input(same);
    } catch (const InputError&) {
      // The dataset has another name in this file.
    }
  }
  return open_input(spec);
}

StoredFactors open_factors(const std::string& path, Order order, int threads) {
  StoredFactors factors =
      has_text_ending(path) ? open_csv_factors(path) : open_hdf5_factors(path, order, threads);
  require_consistent(factors);
  return factors;
}

}  // namespace qrtool
