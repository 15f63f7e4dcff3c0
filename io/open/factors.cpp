// SPDX-License-Identifier: Apache-2.0
// factors.cpp: asks the format of factors, and checks that they belong together.
#include "io/open/factors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.hpp"
#include "core/text.hpp"
#include "io/file/input_file.hpp"
#include "io/open/formats.hpp"
#include "io/open/input.hpp"
#include "io/read/selection.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool {
namespace {

/// Returns the selection at the end of a recorded dataset as text, or an empty text.
std::string selection_of(const std::string& recorded) {
  try {
    return split_selection(recorded).selection.text;
  } catch (const UsageError&) {
    return {};  // a name with brackets
  }
}

std::string shape_of(const Source& source) {
  return format_shape(source.leading, source.m, source.n);
}

[[noreturn]] void throw_contradiction(const std::string& file, const char* first, const Source& a,
                                      const char* second, const Source& b,
                                      const std::string& hint = {}) {
  throw InputError(fmt::format("{}: {} ({}) and {} ({}) do not belong together", escape(file),
                               first, shape_of(a), second, shape_of(b)),
                   hint);
}

/// Keeps Q and R, or only R, or V and tau, and checks that their shapes agree.
void require_consistent(StoredFactors& factors) {
  const std::string file = escape(factors.file);
  if (factors.r) {
    factors.v.reset();
    factors.tau.reset();
    const Source& r = factors.r->source();
    if (factors.p) {
      const Source& p = factors.p->source();
      if (p.leading != r.leading || p.m != 1 || p.n != r.n)
        throw_contradiction(file, "P", p, "R", r);
    }
    if (!factors.q) return;
    const Source& q = factors.q->source();
    if (q.leading == r.leading && q.n == r.m) return;
    const bool are_turned =
        q.leading == r.leading && q.m == r.n && format_of_output(factors.file).own_order.empty();
    throw_contradiction(file, "Q", q, "R", r,
                        are_turned ? fmt::format("they belong together with --order {}",
                                                 q.order == Order::column ? "row" : "column")
                                   : "");
  }
  factors.p.reset();
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

std::vector<std::string> recorded_attributes(const std::string& path,
                                             const std::vector<const char*>& names) {
  const std::string file = split_location(path).file;
  std::error_code error;
  const bool is_file = std::filesystem::exists(file, error);
  return (is_file ? format_of_input(file) : format_of_output(file))
      .recorded_attributes(file, names);
}

std::vector<std::string> recorded_datasets(const std::string& factors) {
  const SeveralDatasets* several = format_of_output(factors).several;
  if (several == nullptr) return {};
  try {
    return several->recorded(factors);
  } catch (const InputError&) {
    return {};
  }
}

RecordedInput read_recorded_input(const std::string& factors, const std::string& source) {
  try {
    const Format& format = format_of_output(factors);
    return source.empty() ? format.recorded_input(factors)
                          : format.several->recorded_input(factors, source);
  } catch (const InputError&) {
    return {};
  }
}

std::unique_ptr<Reader> open_recorded_input(InputSpec spec, const RecordedInput& recorded) {
  const Location location = split_location(spec.path);
  const Format& format = format_of_input(location.file);
  if (format.own_order.empty()) {
    const bool is_recorded = spec.order == Order::automatic && recorded.order != Order::automatic;
    if (is_recorded) spec.order = recorded.order;
    spec.order_is_guess = is_recorded && !word_of(recorded.details, order_guessed_name).empty();
    spec.raw_values = spec.raw_values || !word_of(recorded.details, raw_values_name).empty();
  }
  spec.has_ones |= !word_of(recorded.details, intercept_name).empty();
  spec.skips_missing |= !word_of(recorded.details, missing_name).empty();
  if (format.takes_csv_options) spec.csv = with_recorded(spec.csv, recorded.details);
  const std::string& named = spec.dataset.empty() ? location.dataset : spec.dataset;
  spec.path = location.file;
  spec.dataset = named;
  if (recorded.dataset.empty()) return open_input(spec);
  const std::string part = selection_of(recorded.dataset);
  // In this file the dataset may have another name, but its selection is the recorded one.
  const std::string whole = recorded.dataset.substr(0, recorded.dataset.size() - part.size());
  if (!named.empty()) {
    if (named == whole) spec.dataset = recorded.dataset;
    return open_input(spec);
  }
  if (format.has_datasets) {
    InputSpec same = spec;
    same.dataset = recorded.dataset;
    try {
      return open_input(same);
    } catch (const InputError&) {
    }
  }
  spec.dataset = part;
  return open_input(spec);
}

StoredFactors open_factors(const std::string& path, Order order, int threads,
                           const std::string& source) {
  const Format& format = format_of_output(path);
  StoredFactors factors = source.empty()
                              ? format.open_factors(path, order, threads)
                              : format.several->open_factors(path, source, order, threads);
  require_consistent(factors);
  return factors;
}

}  // namespace qrtool
