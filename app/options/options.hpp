// SPDX-License-Identifier: Apache-2.0
// options.hpp: the command line as plain structs, one per command.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "app/options/backend_request.hpp"
#include "app/options/bench_options.hpp"
#include "app/options/print_options.hpp"
#include "core/apply/apply.hpp"
#include "core/problem/problem.hpp"
#include "core/solve/shapes.hpp"
#include "io/read/reader.hpp"

namespace qrtool {

/// The meaning of a word of --precision. Without a type it is the input's type.
struct PrecisionWord {
  std::optional<ElementType> type;
  bool is_mixed = false;
};

/// What standard output gets if OUT is -; automatic: text.
enum class StreamFormat { automatic, csv, npy };

/// With --into: which of the inputs a run takes.
struct InputsOfRun {
  bool skip_existing = false;     // those whose output is complete are left out
  index_t share = 1, shares = 1;  // --shard: every one of `shares`, from number `share` on
};

struct FactorOptions : PrintOptions {
  std::string input, output, dataset;
  std::vector<std::string> datasets;  // every --dataset; `dataset` is the first
  bool is_of_several = false;         // OUT names the factors by their datasets, even of one
  Order order = Order::automatic;
  bool raw_values = false;  // HDF5: numbers as they are stored
  CsvOptions csv;
  BackendRequest backend;
  Mode mode = Mode::reduced;
  std::optional<Sign> sign;  // not given: positive, or lapack with --mode raw
  PrecisionWord precision;
  Arithmetic arithmetic = Arithmetic::any;  // or strict
  Check check = Check::full;
  std::optional<std::uint64_t> memory_bytes;
  int threads = 0;      // 0: all cores
  std::string scratch;  // directory; empty: none
  bool pivot = false, condition = false, leverage = false;
  bool intercept = false;
  std::optional<bool> skips_missing;
  bool force = false, explain = false, dry_run = false;
  StreamFormat format = StreamFormat::automatic;
  std::string report;
  std::string into;                 // --into: a folder; empty: one input, and `output`
  std::vector<std::string> inputs;  // with --into
  InputsOfRun taken;                // of these
};

struct DevicesOptions : PrintOptions {
  bool timings = false, forget = false;  // show, or remove, what earlier runs took
  bool builds = false;                   // builds kernels ahead, on `device`
  std::string build_file, device;        // whose shapes; empty: `has_shape`, or the usual ones
  // Whether the command was given a problem, about which it then prints more.
  bool has_shape = false;
  std::vector<index_t> leading{15000};
  index_t m = 64, n = 64;
  ElementType type = ElementType::float32;
};

/// The problems that `solve` and `verify` read from A and B. `verify` takes options that are not
/// given from the record of the solutions.
struct SystemOptions {
  std::string response;  // the column of a table that is b; empty: B is a file
  bool intercept = false;
  std::string a;           // the vectors of A's file, or the columns of the table, that are A
  std::string polynomial;  // NAME:DEGREE, ...: powers of columns of A
  std::string weights;     // FILE or a column of the table
  RowsOfB rows = RowsOfB::automatic;
  std::optional<bool> skips_missing;
  std::optional<double> ridge, rank_tolerance;
  bool least_norm = false;  // where too few rows count, x is of least norm, not NaN
};

/// The window of each row: the last rows up to it, or all of them. 0: not given.
struct WindowOptions {
  index_t rows = 0;
  bool expands = false;
  index_t least = 0;  // of them that must count for an x

  bool are_given() const { return rows > 0 || expands; }
};

struct SolveOptions : PrintOptions {
  std::string a, b, output;
  SystemOptions system;
  WindowOptions window;
  BackendRequest backend;
  Order order = Order::automatic;
  bool raw_values = false;  // HDF5: numbers as they are stored
  CsvOptions csv;
  std::optional<ElementType> precision;
  bool basic = false, no_se = false, covariance = false;
  bool residuals = false, fitted = false;  // are written in the shape of B
  bool leverage = false;                   // of the rows of A
  bool state = false;                      // is written, so that rows can be appended
  std::string before;                      // `append`: the file of the state; empty: none
  double confidence = 0;                   // of the limits of a table's coefficients; 0: none
  StreamFormat format = StreamFormat::automatic;
  std::string by;       // the columns of a table that are keys; empty: none
  std::string groups;   // a file of the groups of the rows of A; empty: none
  std::string scratch;  // with `by` or `groups`: a directory; empty: the temporary one
  std::optional<std::uint64_t> memory_bytes;
  int threads = 0;
  bool force = false, dry_run = false;
  std::string into;                 // --into: a folder; empty: one b, and `output`
  std::vector<std::string> inputs;  // with --into: every B, or every table
  InputsOfRun taken;                // of these
};

/// A and B, or the table A, are the rows that are appended.
struct AppendOptions : SolveOptions {};

struct ApplyOptions : PrintOptions {
  std::string factors, b, output;
  Product product = Product::qt;
  RowsOfB rows = RowsOfB::automatic;
  Order order = Order::automatic;
  bool raw_values = false;  // HDF5: numbers of B as they are stored
  CsvOptions csv;           // of B
  StreamFormat format = StreamFormat::automatic;
  std::optional<std::uint64_t> memory_bytes;
  int threads = 0;
  bool force = false, dry_run = false;
};

enum class Criteria { bar, m_eps };

struct VerifyOptions : PrintOptions {
  std::string input, factors, dataset;
  std::string solutions;  // with three files: A, B and X
  SystemOptions system;
  std::vector<std::string> datasets;  // every --dataset; `dataset` is the first
  Order order = Order::automatic;
  bool raw_values = false;  // HDF5: numbers as they are stored
  CsvOptions csv;
  Criteria criteria = Criteria::bar;
  Check check = Check::full;  // or probe
  std::optional<std::uint64_t> memory_bytes;
  int threads = 0;
  bool all = false, force = false;
  std::string report;
};

struct GenerateOptions : PrintOptions {
  std::string output;
  std::string kind = "gauss";
  std::vector<index_t> leading;
  index_t m = -1, n = -1;
  ElementType type = ElementType::float32;
  std::optional<double> cond;  // not given: 1e6
  std::uint64_t seed = 0;
  bool special = false, is_complex = false, force = false;
};

struct InfoOptions : PrintOptions {
  std::string file, dataset;
  Order order = Order::automatic;
  bool raw_values = false;  // HDF5: numbers as they are stored
  CsvOptions csv;
  std::string plot;  // FILE.svg or FILE.png; empty: none
  bool force = false;
};

}  // namespace qrtool
