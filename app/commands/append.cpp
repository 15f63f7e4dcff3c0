// SPDX-License-Identifier: Apache-2.0
// append.cpp: `qrtool append` adds rows to R of `factor --mode r`, or to the state of a solution,
// as a run of `factor` or `solve` whose first rows are those of the file.
#include <fmt/format.h>

#include "app/commands/commands.hpp"
#include "app/commands/factor.hpp"
#include "app/factor/factor_run.hpp"
#include "app/process/process_clock.hpp"
#include "app/solve/state.hpp"
#include "app/verify/verify_solutions.hpp"
#include "core/error.hpp"
#include "core/machine/host.hpp"
#include "core/text.hpp"
#include "io/open/factors.hpp"
#include "io/open/output.hpp"
#include "io/source/variable_record.hpp"

namespace qrtool {
namespace {

/// Opens R alone. Errors: UsageError if the file holds other factors.
StoredFactors open_r(const std::string& path, int threads) {
  const std::vector<std::string> sources = recorded_datasets(path);
  StoredFactors f = sources.empty()
                        ? open_factors(path, Order::automatic, threads)
                        : open_factors(path, Order::automatic, threads, sources.front());
  const std::pair<bool, const char*> refused[] = {
      {sources.size() > 1, "the factors of several datasets"},
      {f.q != nullptr, "Q, which further rows would change"},
      {f.v != nullptr, "reflectors, of --mode raw"},
      {f.p != nullptr, "P, whose order of columns further rows would change"},
      {f.is_mixed, "R in mixed precision"}};
  for (const auto& [is_there, what] : refused)
    if (is_there)
      throw UsageError(fmt::format("{}: holds {}", escape(path), what),
                       "rows are appended to an output of factor --mode r, or of solve --state");
  return f;
}

/// Returns the run of `factor` that takes the new rows.
FactorOptions factor_options(const AppendOptions& o) {
  if (!o.b.empty() || !o.system.weights.empty())
    throw UsageError(
        fmt::format("{}: holds R alone, to which rows of A are appended", escape(o.before)),
        "qrtool append R NEW OUT; qrtool solve --state keeps right sides and weights, too");
  FactorOptions f;
  static_cast<PrintOptions&>(f) = o;
  f.input = o.a;
  f.output = o.output;
  f.order = o.order;
  f.raw_values = o.raw_values;
  f.csv = o.csv;
  f.backend = o.backend;
  f.mode = Mode::r;
  f.memory_bytes = o.memory_bytes;
  f.threads = o.threads;
  f.force = o.force;
  f.dry_run = o.dry_run;
  const TextPairs record = read_recorded_input(o.before).details;
  f.intercept = !word_of(record, intercept_name).empty();
  f.skips_missing = !word_of(record, missing_name).empty();
  if (f.csv.columns.empty()) f.csv.columns = word_of(record, "csv_columns");
  if (recorded_attributes(o.before, {"sign"}).front() == "lapack") f.sign = Sign::lapack;
  return f;
}

ExitCode append_to_r(const AppendOptions& o) {
  Laps laps(process_seconds());
  const Limits limits = host_limits(o.memory_bytes, o.threads);
  StoredFactors state = open_r(o.before, limits.threads);
  const FactorOptions f = factor_options(o);
  std::unique_ptr<Reader> rows = open_input_of(f, limits);
  const Source &of_r = state.r->source(), &of_new = rows->source();
  if (of_r.n != of_new.n || of_r.leading != of_new.leading ||
      is_complex(of_r.type) != is_complex(of_new.type))
    throw InputError(
        fmt::format("{}: is {}, {}, and R in {} is {}, {}", escape(of_new.file),
                    format_shape(of_new.leading, of_new.m, of_new.n), of_new.stored_type,
                    escape(o.before), format_shape(of_r.leading, of_r.m, of_r.n), of_r.stored_type),
        "rows are appended to the same columns, in the same order, and of a batch to "
        "all of its matrices");
  const std::unique_ptr<Reader> input = append_rows(o.before, std::move(state.r), std::move(rows));
  if (o.dry_run) {
    print_costs(o, "append", o.output, {cost_of(f, *input, limits, laps)});
    return ExitCode::good;
  }
  return print(o, outcome_of(f, factor_input(f, *input, limits, laps)));
}

}  // namespace

ExitCode run_append(const AppendOptions& given) {
  AppendOptions o = given;
  refuse_same_file(o.before, o.output);
  o.backend.name = "cpu";
  const std::vector<std::string> record = recorded_attributes(
      o.before, {"command", "state", "precision", "response", "solution", "csv_columns"});
  if (record[0] != "solve") return append_to_r(o);
  if (record[1] != "yes")
    throw InputError(fmt::format("{}: holds solutions without their state", escape(o.before)),
                     "solve again with --state");
  o.state = true;
  o.precision = record[2] == "single" ? ElementType::float32 : ElementType::float64;
  o.system.response = record[3];
  o.basic = record[4] == "basic";
  if (o.csv.columns.empty() && !record[3].empty()) o.csv.columns = record[5];
  o.system = completed_options(o.system, o.before);
  if (record[3].empty() == o.b.empty())
    throw UsageError(
        fmt::format(
            "{}: was made from {}", escape(o.before),
            record[3].empty() ? "A and B" : "a table with the response " + escape(record[3])),
        fmt::format("qrtool append {} {} OUT", escape(o.before),
                    record[3].empty() ? "A B" : "TABLE"));
  return run_solve(o);
}

}  // namespace qrtool
