// SPDX-License-Identifier: Apache-2.0
// reader.cpp: chooses the reader for a file from its name and content.
#include "io/reader.hpp"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/csv/factors.hpp"
#include "io/csv/reader.hpp"
#include "io/file/input_file.hpp"
#include "io/file/rereadable.hpp"
#include "io/file/text_lines.hpp"
#include "io/hdf5/reader.hpp"

namespace qrtool {
namespace {

constexpr index_t piece_bytes = index_t{1} << 20;

/// The first bytes of the text in a file, which may be compressed.
std::string head_of(int descriptor, const std::string& shown) {
  std::string head(64, '\0');
  head.resize(open_text_bytes(dup(descriptor), shown)->read_at(0, head.data(), head.size()));
  return head;
}

std::unique_ptr<Reader> open_text(const std::string& file, const std::string& dataset,
                                  const InputSpec& spec) {
  if (!dataset.empty()) {
    throw UsageError(fmt::format("{}: a CSV file has no datasets to choose from", escape(file)));
  }
  if (spec.order == Order::column) {
    throw UsageError(
        fmt::format("{}: --order column is for HDF5; CSV is read line by line", escape(file)));
  }
  const std::string name = file == "-" ? std::string(standard_input) : file;
  if (file != "-") require_text_file(file);
  const int descriptor = open_rereadable(file);
  if (const std::string head = head_of(descriptor, escape(name)); is_matrix_market(head))
    throw_matrix_market(escape(name), head);
  return open_csv(descriptor, name, spec.csv);
}

/// Errors: InputError, also where the file cannot be read.
void refuse_matrix_market(const std::string& file) {
  readable_size(file);
  if (sniff(file) != Content::matrix_market) return;
  TextLines lines(open_rereadable(file), escape(file));
  lines.next();
  throw_matrix_market(lines.shown(), lines.text());
}

bool is_compressed(const std::string& file) {
  struct stat info {};
  return stat(file.c_str(), &info) == 0 && S_ISREG(info.st_mode) && sniff(file) == Content::gzip;
}

void refuse_csv_options(const InputSpec& spec, const std::string& file) {
  if (spec.csv == CsvOptions{}) return;
  std::string options;
  for (const auto& [name, word] : to_text(spec.csv))
    options += (options.empty() ? "--" : ", --") + name.substr(4);
  std::replace(options.begin(), options.end(), '_', '-');
  throw UsageError(
      fmt::format("{}: no CSV file, but there are options of CSV: {}", escape(file), options));
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
  if (spec.path == "-") return open_text("-", spec.dataset, spec);
  const Location location = split_location(spec.path);
  if (!location.dataset.empty() && !spec.dataset.empty()) {
    throw UsageError(
        fmt::format("{}: a dataset is named here and by --dataset as well", escape(spec.path)));
  }
  const std::string& dataset = spec.dataset.empty() ? location.dataset : spec.dataset;
  if (has_text_ending(location.file) || is_compressed(location.file))
    return open_text(location.file, dataset, spec);
  refuse_csv_options(spec, location.file);
  refuse_matrix_market(location.file);
  return open_hdf5_input({location.file, dataset, spec.order, spec.threads});
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
  if (spec.path == "-" || has_text_ending(location.file) || is_compressed(location.file)) {
    spec.csv = with_recorded(spec.csv, recorded.details);
    return open_input(spec);
  }
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
