// SPDX-License-Identifier: Apache-2.0
// options.cpp: describes every option of every command with its help text.
#include "app/cli/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <limits>
#include <string_view>
#include <utility>

#include "app/cli/command_line.hpp"
#include "app/cli/option_values.hpp"
#include "app/run/join.hpp"
#include "core/error.hpp"
#include "core/matrices.hpp"
#include "core/text.hpp"
#include "io/csv/columns.hpp"
#include "io/file/scratch_file.hpp"
#include "io/file/text_output.hpp"
#include "io/format.hpp"

namespace qrtool {
namespace {

constexpr std::string_view overview =
    R"(usage: qrtool COMMAND [OPTION]... FILE...

Factors every matrix of a file by QR, or solves with it, and checks each result.

  qrtool factor a.h5 q.h5       A -> Q, R and an error report, for every matrix
  qrtool solve a.h5 b.h5 x.h5   x that minimises ||A x - b||, for every b
  qrtool verify a.h5 q.h5       measures the errors again, from the files alone
  qrtool info FILE              what is in a file, or what a run left there
  qrtool devices                what there is to run on
  qrtool bench                  times devices and libraries against each other
  qrtool generate --shape 1000x64x32 a.h5       test matrices

qrtool COMMAND --help lists the options of a command, qrtool --version the
version. Exit status: 0 good, 1 a matrix failed, 2 usage, 3 input, 4 device,
5 output, 6 memory or size, 7 internal error.
)";

constexpr std::string_view overview_over_mpi =
    R"(usage: mpirun -n P qrtool-mpi COMMAND [OPTION]... FILE...

P processes share the matrices of a file, or the rows of one tall matrix.

  mpirun -n 4 qrtool-mpi factor a.h5 q.h5
  mpirun -n 4 qrtool-mpi bench --mode r --shape 1000000x32

factor and bench use all processes; all other commands run in one, as by
qrtool. qrtool-mpi COMMAND --help lists the options of a command,
qrtool-mpi --version the version. Exit status: as of qrtool.
)";

constexpr std::pair<std::string_view, Order> orders[] = {
    {"auto", Order::automatic}, {"row", Order::row}, {"column", Order::column}};
constexpr std::pair<std::string_view, ProgressMode> progress_modes[] = {
    {"auto", ProgressMode::automatic},
    {"always", ProgressMode::always},
    {"never", ProgressMode::never}};
constexpr std::pair<std::string_view, Mode> modes[] = {
    {"reduced", Mode::reduced}, {"complete", Mode::complete}, {"r", Mode::r}, {"raw", Mode::raw}};
constexpr std::pair<std::string_view, std::optional<Sign>> signs[] = {{"positive", Sign::positive},
                                                                      {"lapack", Sign::lapack}};
constexpr std::pair<std::string_view, PrecisionWord> precisions[] = {
    {"input", {std::nullopt, false}},
    {"single", {ElementType::float32, false}},
    {"double", {ElementType::float64, false}},
    {"mixed", {ElementType::float32, true}}};
constexpr std::pair<std::string_view, Arithmetic> arithmetics[] = {{"any", Arithmetic::any},
                                                                   {"strict", Arithmetic::strict}};
constexpr std::pair<std::string_view, Check> checks[] = {
    {"full", Check::full}, {"probe", Check::probe}, {"none", Check::none}};
constexpr std::pair<std::string_view, Check> checks_of_verify[] = {{"full", Check::full},
                                                                   {"probe", Check::probe}};
constexpr std::pair<std::string_view, ElementType> element_types[] = {
    {"single", ElementType::float32}, {"double", ElementType::float64}};
const std::pair<std::string_view, std::string> backends[] = {
    {"auto", "auto"}, {"cpu", "cpu"}, {"opencl", "opencl"}};
constexpr std::pair<std::string_view, RowsOfB> rows_words[] = {{"auto", RowsOfB::automatic},
                                                               {"first", RowsOfB::first},
                                                               {"last", RowsOfB::last},
                                                               {"matrix", RowsOfB::matrix}};
constexpr std::pair<std::string_view, std::optional<bool>> missing_words[] = {{"error", false},
                                                                              {"skip", true}};
constexpr std::pair<std::string_view, std::optional<ElementType>> solution_precisions[] = {
    {"input", std::nullopt}, {"single", ElementType::float32}, {"double", ElementType::float64}};
constexpr std::pair<std::string_view, Criteria> criteria[] = {{"bar", Criteria::bar},
                                                              {"m-eps", Criteria::m_eps}};

char parse_delimiter(const std::string& text) {
  for (const auto& [word, character] : delimiter_words)
    if (text == word || text == std::string(1, character)) return character;
  if (text == "\\t") return '\t';
  std::vector<std::string_view> names;
  for (const auto& [word, character] : delimiter_words) names.push_back(word);
  throw not_one_of("--delimiter", text, names);
}

/// How a CSV file is written.
void add_csv_options(CommandLine& line, CsvOptions& csv) {
  line.value("--delimiter", "C",
             "CSV: comma, semicolon, tab, space, pipe, or the character; default: what separates "
             "the first row",
             [&csv](const std::string& text) { csv.delimiter = parse_delimiter(text); });
  line.suggest("--delimiter", [] {
    std::vector<Candidate> words;
    for (const auto& [word, character] : delimiter_words) words.push_back({std::string(word)});
    return words;
  });
  line.choice("--decimal", csv.decimal, "CSV: the decimal sign", decimal_words);
  line.value("--skip-rows", "N", "CSV: leave out the first N lines",
             [&csv](const std::string& text) {
               csv.skip_rows = parse_whole("--skip-rows", text, 0, index_t{1} << 40);
             });
  line.choice("--header", csv.header, "CSV: whether the first line holds the names of the columns",
              answer_words);
  line.list("--columns", "LIST",
            "CSV: the columns to read, by number from 1 or by name: 2-5,height,8-",
            [&csv](const std::string& text) {
              check_columns(text);
              csv.columns = text;
            });
  line.choice("--index-column", csv.index_column,
              "CSV: whether the first column is an index, which is left out", answer_words);
  line.repeated("--na-text", "TEXT",
                "CSV: means a missing number (NaN), as an empty field and NA do; may be repeated",
                [&csv](const std::string& text) { csv.na_texts.push_back(text); });
}

/// The options that `factor` and `verify` share.
template <class Options>
void add_input_options(CommandLine& line, Options& o) {
  line.repeated(
      "--dataset", "PATH",
      "dataset in IN, as in FILE:PATH; default: the only one; repeated: several in one OUT",
      [&o](const std::string& text) {
        if (o.datasets.empty()) o.dataset = text;
        o.datasets.push_back(text);
      });
  line.choice("--order", o.order,
              "which stored dimension of a matrix runs over rows; MATLAB, Octave, Julia and R "
              "store column",
              orders);
  add_csv_options(line, o.csv);
}

void add_backend_options(CommandLine& line, BackendRequest& request) {
  line.choice("--backend", request.name,
              "what computes; auto: a GPU where there is one and the work is worth its start",
              backends);
  line.value("--device", "DEVICE",
             "OpenCL device by number or part of its name, see qrtool devices: the first of that "
             "name, ranks take them in turn; all: a batch is spread over the GPUs that are like "
             "the first; default: the first GPU",
             [&request](const std::string& text) { request.device = text; });
  line.value("--variant", "NAME", "BACKEND/NAME forces a variant; --explain names the planned one",
             [&request](const std::string& text) { request.variant = text; });
  line.suggest("--device", device_candidates);
  line.suggest("--variant", variant_candidates);
  line.environment("--device", "QRTOOL_DEVICE",
                   [&request](const std::string& text) { request.usual_device = text; });
}

template <class Options>
void add_resource_options(CommandLine& line, Options& o) {
  line.value("--memory", "SIZE",
             "host memory at most: 512MiB, 2GiB, ...; default: half of what is "
             "free",
             [&o](const std::string& text) { o.memory_bytes = parse_size("--memory", text); });
  line.value("--threads", "N", "default: all cores", [&o](const std::string& text) {
    o.threads = static_cast<int>(parse_whole("--threads", text, 1, 4096));
  });
  line.environment("--memory", "QRTOOL_MEMORY");
  line.environment("--threads", "QRTOOL_THREADS");
}

void add_dry_run(CommandLine& line, bool& dry_run) {
  line.flag("--dry-run", dry_run,
            "write nothing; print the plan, the bytes of files and memory, the free space and the "
            "expected time");
}

template <class Options>
void add_report_options(CommandLine& line, Options& o) {
  line.value("--report", "FILE", "every matrix's errors also as FILE.csv or FILE.json",
             [&o](const std::string& text) { o.report = text; });
  line.flag("-f,--force", o.force, "replace existing files");
}

/// The options of every command, in its help the last.
void add_print_options(CommandLine& line, PrintOptions& o) {
  line.flag("--json", o.json, "the result as one JSON document");
  line.flag("-q,--quiet", o.quiet, "print errors only");
  line.flag("-v,--verbose", o.verbose, "print notes too");
  line.choice("--progress", o.progress, "a progress line on standard error", progress_modes);
  line.value("--log", "FILE", "append what is printed to FILE, too, with the time",
             [&o](const std::string& text) { o.log = text; });
}

void describe(CommandLine& line, FactorOptions& o) {
  line.positional(
      "IN", o.input,
      "FILE, FILE:/path/in/file or FILE.npz:member; HDF5, .npy, .npz, CSV (also gzip) or "
      "Matrix Market; - is CSV from standard input; a part: 'FILE:/path[0:1000]', "
      "'FILE:[::2, :, 3:]', as in Python");
  line.positional(
      "OUT", o.output,
      "HDF5, or by its ending .npz, .npy (OUT.Q.npy, OUT.R.npy), .csv, .tsv, .txt, .mtx; "
      "- with --mode r: R as CSV on standard output");
  line.choice("--mode", o.mode, "what is computed, as in NumPy", modes);
  line.choice("--sign", o.sign, "of the diagonal of R", signs);
  line.choice("--precision", o.precision,
              "of Q and R; mixed: half-precision products, bars of 2^-10", precisions);
  line.choice("--arithmetic", o.arithmetic,
              "any that has the precision's accuracy, or strict: its own operations alone",
              arithmetics);
  line.choice("--check", o.check,
              "how errors are found; probe: estimated with random vectors where that is faster",
              checks);
  line.flag("--pivot", o.pivot,
            "pivoted columns: A[:, P] = Q R with a falling diagonal of R, P, and the rank");
  line.flag("--condition", o.condition, "an estimate of the condition number in the report");
  add_input_options(line, o);
  add_backend_options(line, o.backend);
  add_resource_options(line, o);
  line.value("--scratch", "DIR",
             "where a matrix is factored row by row, store the data between the two passes in "
             "DIR, not in memory; copies of compressed inputs, too",
             [&o](const std::string& text) { o.scratch = text; });
  line.flag("--explain", o.explain, "print the choice of the backend and the plan before running");
  add_dry_run(line, o.dry_run);
  add_report_options(line, o);
}

/// The options of `solve` and of `verify` for solutions.
void add_system_options(CommandLine& line, SystemOptions& o) {
  line.value("--response", "NAME", "CSV: the column that is b; all others are A",
             [&o](const std::string& text) { o.response = text; });
  line.flag("--intercept", o.intercept, "with --response: a column of ones before the others");
  line.value("--weights", "W",
             "FILE, or a column of the table: weights of the squared residuals, m numbers or as "
             "many as B; 0 leaves a row out",
             [&o](const std::string& text) { o.weights = text; });
  line.choice("--rows", o.rows, "which dimension of B is that of A's rows", rows_words);
  line.choice("--missing", o.skips_missing,
              "what becomes of a problem that holds NaN; skip: it "
              "loses these rows",
              missing_words);
  line.value("--ridge", "X", "minimise ||A x - b||^2 + X ||x||^2; default 0",
             [&o](const std::string& text) { o.ridge = parse_number("--ridge", text, 0); });
  line.value(
      "--rank-tolerance", "X",
      "columns scaled to norm 1 count as dependent below X; default u max(16, 2n)",
      [&o](const std::string& text) {
        o.rank_tolerance = parse_number("--rank-tolerance", text, 0);
        if (*o.rank_tolerance >= 1)
          throw UsageError(
              fmt::format("--rank-tolerance: {} takes every column for dependent", escape(text)),
              "give a number below 1, such as 1e-10");
      });
}

void describe(CommandLine& line, SolveOptions& o) {
  line.positional("A", o.a,
                  "the matrices, as for factor: FILE, FILE:/path/in/file, 'FILE:/path[0:1000]'; or "
                  "a table, with --response");
  line.optional_positional("B", o.b, "the right sides, also of one dimension; not with --response");
  line.optional_positional("OUT", o.output,
                           "HDF5, or by its ending .npz, .npy (OUT.X.npy, OUT.report.json), .csv, "
                           ".tsv, .txt, .mtx");
  add_system_options(line, o.system);
  line.flag("--basic", o.basic, "dependent columns: as many zeros as possible, not the least norm");
  line.flag("--no-se", o.no_se, "leave the standard errors out");
  line.flag("--covariance", o.covariance,
            "the covariance of the entries of every x, n x n, beside their standard errors");
  line.choice("--precision", o.precision, "of X; input: float32 where A and B are",
              solution_precisions);
  line.choice("--order", o.order,
              "which stored dimension of a matrix runs over rows; MATLAB, Octave, Julia and R "
              "store column",
              orders);
  add_csv_options(line, o.csv);
  add_backend_options(line, o.backend);
  add_resource_options(line, o);
  add_dry_run(line, o.dry_run);
  line.flag("-f,--force", o.force, "replace existing files");
}

void describe(CommandLine& line, VerifyOptions& o) {
  line.positional("IN", o.input, "the file that was factored, as for factor; or A of solve");
  line.positional("OUT", o.factors,
                  "Q and R, R alone, or V and tau, of any program; or B of solve");
  line.optional_positional("X", o.solutions, "the solutions of any program; A and B come before");
  add_system_options(line, o.system);
  line.choice("--criteria", o.criteria,
              "bar is u min(max(m,16), 30k); m-eps the published m 2^-23 for all", criteria);
  line.choice("--check", o.check, "how errors are found, as for factor", checks_of_verify);
  line.flag("--all", o.all, "list every matrix, not only the first failing ones");
  add_input_options(line, o);
  add_resource_options(line, o);
  add_report_options(line, o);
}

void describe(CommandLine& line, BenchOptions& o) {
  describe_cases(line, o);
  add_backend_options(line, o.backend);
  add_resource_options(line, o);
  describe_exports(line, o);
}

/// The option that `devices` and `generate` share.
template <class Options>
void add_shape_option(CommandLine& line, Options& o, const std::string& help) {
  line.value("--shape", "BxMxN", help, [&o](const std::string& text) {
    Shape shape = parse_shape("--shape", text);
    o.leading = std::move(shape.leading);
    o.m = shape.m;
    o.n = shape.n;
  });
}

void describe(CommandLine& line, InfoOptions& o) {
  line.positional("FILE", o.file,
                  "as IN of factor: FILE, FILE:/path/in/file, FILE.npz:member; or an output of "
                  "factor or solve, also a set of files by its name: out.npy, out.csv");
  line.value("--dataset", "PATH", "dataset in FILE, as in FILE:PATH; default: all of them",
             [&o](const std::string& text) { o.dataset = text; });
  line.choice("--order", o.order,
              "which stored dimension of a matrix runs over rows; MATLAB, Octave, Julia and R "
              "store column",
              orders);
  add_csv_options(line, o.csv);
  line.value(
      "--plot", "FILE",
      "of an output: draw how its errors lie below their bars, as FILE.svg or FILE.png, with "
      "gnuplot",
      [&o](const std::string& text) { o.plot = text; });
  line.flag("-f,--force", o.force, "replace an existing picture");
}

void describe(CommandLine& line, DevicesOptions& o) {
  add_shape_option(line, o, "the problem to answer for; default 15000x64x64");
  line.choice("--precision", o.type, "of its elements", element_types);
  line.flag(
      "--timings", o.timings,
      "instead: what starts and kernels took in earlier runs, by which --backend auto decides");
  line.flag("--forget", o.forget, "removes these times");
}

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (const MatrixKind& kind : matrix_kinds()) names.push_back(kind.name);
  names.push_back("haar");
  return names;
}

void describe(CommandLine& line, GenerateOptions& o) {
  line.positional("OUT", o.output, "HDF5, or by its ending .npy, .npz, .csv, .tsv, .txt");
  add_shape_option(line, o, "B matrices of M rows and N columns, or MxN for one");
  line.value("--kind", "NAME", fmt::format("default gauss; {}", join(kind_names(), ", ")),
             [&o](const std::string& text) {
               const std::vector<std::string_view> names = kind_names();
               if (std::find(names.begin(), names.end(), text) == names.end())
                 throw not_one_of("--kind", text, names);
               o.kind = text;
             });
  line.suggest("--kind", [] {
    std::vector<Candidate> names;
    for (const std::string_view name : kind_names()) names.push_back({std::string(name)});
    return names;
  });
  line.choice("--precision", o.type, "of the elements", element_types);
  line.value("--cond", "X", "condition number, ratio of scales, or 1 over the noise; default 1e6",
             [&o](const std::string& text) { o.cond = parse_number("--cond", text, 1); });
  line.value("--seed", "N", "default 0", [&o](const std::string& text) {
    o.seed = static_cast<std::uint64_t>(
        parse_whole("--seed", text, 0, std::numeric_limits<std::int64_t>::max()));
  });
  line.flag("--special", o.special, "haar: determinant +1, uniform in SO(n); square only");
  line.flag("-f,--force", o.force, "replace an existing file");
}

constexpr std::string_view factor_about =
    R"(Factors every matrix of IN by QR, measures the errors of every result, and
writes Q, R and a report to OUT. The first word of a list is the default.

  qrtool factor a.h5 q.h5
  qrtool factor a.h5:/group/A q.h5 --mode r --precision double
  qrtool factor 'a.h5:/group/A[0:1000]' q.h5
  qrtool factor a.h5 q.h5 --dataset /A --dataset /group/B
  qrtool factor a.npy q.npz
  qrtool factor table.csv out.csv
)";
constexpr std::string_view solve_about =
    R"(Solves min ||A x - b|| for every A and every b, checks every x by its backward
error, and writes X and a report. The first word of a list is the default.

  qrtool solve a.h5 b.h5 x.h5
  qrtool solve data.h5:/A data.h5:/b x.h5
  qrtool solve a.npy b.npy x.npz
  qrtool solve table.csv out.csv --response y --intercept
)";
constexpr std::string_view verify_about =
    R"(Measures the errors of the factors in OUT against the matrices in IN, in
float64, from the files alone. Exit status 1 if any matrix fails.

  qrtool verify a.h5 q.h5
  qrtool verify table.csv out.csv --all
  qrtool verify a.h5 b.h5 x.h5
)";
constexpr std::string_view info_about =
    R"(Says what is in a file: its datasets, their shapes and types, and what factor
would read, or why it would stop. Of an output of factor or solve it says how it
was made, and how large the errors are. The word info may be left out.

  qrtool info a.h5
  qrtool info a.h5:/group/A
  qrtool info q.h5
)";
constexpr std::string_view devices_about =
    R"(Lists the OpenCL devices, their limits, the variants that take a problem there
or why not, and what --backend auto would choose for it.

  qrtool devices
  qrtool devices --shape 1x5000x5000 --precision double
  qrtool devices --timings      what earlier runs took, by which auto decides
)";
constexpr std::string_view generate_about =
    R"(Writes test matrices, the same for the same seed however many there are.

  qrtool generate --shape 1000x64x32 a.h5
  qrtool generate --kind haar --special --shape 500x3x3 rotations.h5
)";

bool contains(const Args& args, std::string_view name) {
  const auto end = std::find(args.begin(), args.end(), "--");
  return std::find(args.begin(), end, name) != end;
}
bool asks_for_help(const Args& args) { return contains(args, "--help") || contains(args, "-h"); }

void refuse_standard_output(const std::string& output) {
  if (output == "-" || output.starts_with("/dev/std") || output.starts_with("/dev/fd/") ||
      output.starts_with("/proc/self/fd/"))
    throw UsageError("OUT cannot be standard output", "name a file");
}

void refuse_one_report_of_several(const std::vector<std::string>& datasets,
                                  const std::string& report) {
  if (datasets.size() > 1 && !report.empty())
    throw UsageError("--report is for one --dataset",
                     "leave it away: OUT holds a report of each dataset");
}

void check(const FactorOptions& o) {
  refuse_one_report_of_several(o.datasets, o.report);
  if (!is_standard_output(o.output)) refuse_standard_output(o.output);
  if (is_standard_output(o.output) && o.mode != Mode::r)
    throw UsageError("OUT - is R alone, as CSV on standard output",
                     "give --mode r, or name a file");
  if (o.pivot && o.mode == Mode::raw)
    throw UsageError("--pivot contradicts --mode raw: there is no V of Q with pivoted columns",
                     "use --mode reduced, complete or r");
  if (o.pivot && o.mode == Mode::r && o.sign == Sign::lapack)
    throw UsageError("--pivot --mode r has no Q, from which --sign lapack would be found",
                     "leave --sign away, or use --mode reduced");
  if (o.pivot && is_standard_output(o.output))
    throw UsageError("--pivot writes R and P, and standard output takes R alone", "name a file");
  if (o.mode == Mode::raw && o.sign == Sign::positive)
    throw UsageError("--sign positive contradicts --mode raw, which has LAPACK's signs",
                     "leave --sign away");
  if (o.precision.is_mixed && o.arithmetic == Arithmetic::strict)
    throw UsageError("--precision mixed contradicts --arithmetic strict",
                     "mixed multiplies in half precision; leave one of them away");
  if (!o.scratch.empty()) require_scratch(o.scratch);
}
/// A table takes the place of A and B.
void check(SolveOptions& o) {
  const SystemOptions& s = o.system;
  if (!s.response.empty() && !o.output.empty())
    throw UsageError("--response NAME and a file B contradict each other",
                     "qrtool solve TABLE OUT --response NAME");
  if (o.b.empty() || (s.response.empty() && o.output.empty()))
    throw UsageError(
        fmt::format("solve: {} is missing", o.b.empty() && s.response.empty() ? "B" : "OUT"),
        "qrtool solve A B OUT, or qrtool solve TABLE OUT --response NAME");
  if (s.response.empty() && s.intercept)
    throw UsageError("--intercept is for a table, with --response",
                     "add a column of ones to A otherwise");
  if (o.covariance && o.no_se)
    throw UsageError("--covariance and --no-se contradict each other", "leave one of them away");
  if (o.covariance && s.ridge.value_or(0) > 0)
    throw UsageError("--covariance contradicts --ridge, whose x is biased",
                     "leave one of them away");
  if (!s.response.empty()) o.output = std::exchange(o.b, "");
  refuse_standard_output(o.output);
}
void check(VerifyOptions& o) {
  const bool is_table = !o.system.response.empty();
  if (is_table && !o.solutions.empty())
    throw UsageError("--response NAME and a file B contradict each other",
                     "qrtool verify TABLE X --response NAME");
  if (is_table) o.solutions = std::exchange(o.factors, "");
  if (!o.solutions.empty() && !o.datasets.empty())
    throw UsageError("--dataset is for the factors of one file",
                     "name A and B as FILE:/path/in/file");
  refuse_one_report_of_several(o.datasets, o.report);
  if (is_standard_output(o.factors))
    throw UsageError("OUT holds the factors and cannot be standard input", "name a file");
}
void check(const DevicesOptions& o) {
  if (o.timings && o.forget)
    throw UsageError("--timings shows what --forget removes", "give one of them");
}
void check(const InfoOptions&) {}
void check(const GenerateOptions& o) {
  refuse_standard_output(o.output);
  if (o.m < 0)
    throw UsageError("generate: --shape is missing",
                     "for example --shape 1000x64x32: 1000 matrices of 64 rows and 32 columns");
  if (o.cond && !uses_cond(o.kind)) {
    std::vector<std::string_view> names;
    for (const MatrixKind& kind : matrix_kinds())
      if (kind.uses_cond) names.push_back(kind.name);
    throw UsageError(fmt::format("--cond changes nothing in --kind {}", o.kind),
                     fmt::format("it is for the kinds {}", join(names, ", ")));
  }
  if (o.special && o.kind != "haar") throw UsageError("--special is for --kind haar alone");
  if (o.special && o.m != o.n)
    throw UsageError(fmt::format("--special is for square matrices, not {}x{}", o.m, o.n));
  if (o.kind == "haar" && o.m < o.n)
    throw UsageError(fmt::format(
        "--kind haar: {}x{} has more columns than rows; they cannot be orthonormal", o.m, o.n));
}

/// What a run writes under names of its own.
std::vector<std::string> outputs_of(const FactorOptions& o) { return {o.output, o.report}; }
std::vector<std::string> outputs_of(const SolveOptions& o) { return {o.output}; }
std::vector<std::string> outputs_of(const VerifyOptions& o) { return {o.report}; }
std::vector<std::string> outputs_of(const InfoOptions& o) { return {o.plot}; }
std::vector<std::string> outputs_of(const GenerateOptions& o) { return {o.output}; }
std::vector<std::string> outputs_of(const BenchOptions& o) {
  return {o.export_json, o.export_csv, o.export_markdown, o.export_html, o.plot};
}
std::vector<std::string> outputs_of(const DevicesOptions&) { return {}; }

/// The log is there before an output is, which would replace it.
void refuse_log_among(const std::vector<std::string>& outputs, const std::string& log) {
  const auto normal = [](const std::string& path) {
    return std::filesystem::absolute(path).lexically_normal();
  };
  if (log.empty()) return;
  for (const std::string& output : outputs) {
    if (output.empty()) continue;
    const std::vector<std::string> files = format_of_output(output).files_of_output(output);
    const auto is_log = [&](const std::string& file) { return normal(file) == normal(log); };
    if (is_log(output) || std::any_of(files.begin(), files.end(), is_log))
      throw UsageError(fmt::format("--log '{}' would be an output of the run, too", escape(log)),
                       "give the log a name of its own");
  }
}

/// A command's name, and what its help says first. `Options` says which command it is.
template <class Options>
struct CommandText {
  std::string_view name, positionals, about;
};

constexpr CommandText<FactorOptions> factor_text{"factor", "IN OUT", factor_about};
constexpr CommandText<SolveOptions> solve_text{"solve", "A B OUT", solve_about};
constexpr CommandText<VerifyOptions> verify_text{"verify", "IN OUT", verify_about};
constexpr CommandText<GenerateOptions> generate_text{"generate", "--shape BxMxN OUT",
                                                     generate_about};
constexpr CommandText<InfoOptions> info_text{"info", "FILE", info_about};
constexpr CommandText<DevicesOptions> devices_text{"devices", "", devices_about};
const CommandText<BenchOptions> bench_text{"bench", "", bench_about};

template <class Options>
void describe_all(CommandLine& line, Options& options) {
  describe(line, options);
  add_print_options(line, options);
}

/// Returns the command with its options filled in, or its help.
template <class Options, const CommandText<Options>& text>
Command parse_command(const Invocation& invocation) {
  Options options;
  CommandLine line(fmt::format("{} {}", invocation.program, text.name), text.positionals,
                   text.about);
  describe_all(line, options);
  if (!line.parse(invocation.args)) return HelpRequest{line.help()};
  check(options);
  refuse_log_among(outputs_of(options), options.log);
  return options;
}

template <class Options>
std::vector<Candidate> complete_command(const std::string& before, const std::string& typed) {
  Options options;
  CommandLine line("", "", "");
  describe_all(line, options);
  return line.complete(before, typed);
}

Command parse_help(const Invocation& invocation);
std::vector<Candidate> complete_help(const std::string&, const std::string&);

/// A command's name, and the functions that parse and complete the rest of its line.
struct CommandEntry {
  std::string_view name, about;
  Command (*parse)(const Invocation& invocation);
  std::vector<Candidate> (*complete)(const std::string& before, const std::string& typed);
};

template <class Options, const CommandText<Options>& text>
constexpr CommandEntry entry_of(std::string_view about) {
  return {text.name, about, parse_command<Options, text>, complete_command<Options>};
}

const CommandEntry commands[] = {
    entry_of<FactorOptions, factor_text>("Q, R and an error report of every matrix"),
    entry_of<SolveOptions, solve_text>("least squares"),
    entry_of<VerifyOptions, verify_text>("measures the errors again"),
    entry_of<GenerateOptions, generate_text>("test matrices"),
    entry_of<InfoOptions, info_text>("what is in a file"),
    entry_of<DevicesOptions, devices_text>("what there is to run on"),
    entry_of<BenchOptions, bench_text>("times devices and libraries"),
    {"help", "the options of a command", parse_help, complete_help}};

std::vector<std::string_view> command_names() {
  std::vector<std::string_view> names;
  for (const CommandEntry& command : commands) names.push_back(command.name);
  return names;
}

const CommandEntry* find_command(std::string_view name) {
  const auto* found = std::find_if(std::begin(commands), std::end(commands),
                                   [&](const CommandEntry& each) { return each.name == name; });
  return found == std::end(commands) ? nullptr : found;
}

std::string commands_hint() {
  return fmt::format("the commands are {}", join(command_names(), ", "));
}

UsageError unknown_command(const std::string& word) {
  const std::string_view near = nearest(word, command_names());
  return UsageError(fmt::format("unknown command '{}'{}", escape(word),
                                near.empty() ? "" : fmt::format("; did you mean '{}'?", near)),
                    commands_hint());
}

/// The first text of --help.
std::string overview_of(const std::string& program) {
  if (program == "qrtool-mpi") return std::string(overview_over_mpi);
  return std::string(overview);
}

Command parse_help(const Invocation& invocation) {
  const auto& [program, args] = invocation;
  const auto topic = std::find_if(args.begin(), args.end(),
                                  [](const std::string& arg) { return !arg.starts_with('-'); });
  if (topic == args.end() || *topic == "help") return HelpRequest{overview_of(program)};
  const CommandEntry* command = find_command(*topic);
  if (command == nullptr) throw unknown_command(*topic);
  return command->parse({program, {"--help"}});
}

std::vector<Candidate> complete_command_name() {
  std::vector<Candidate> names;
  for (const CommandEntry& command : commands)
    names.push_back({std::string(command.name), std::string(command.about)});
  return names;
}

std::vector<Candidate> complete_help(const std::string&, const std::string&) {
  return complete_command_name();
}

/// What may follow a line, for the completion of shells: `words` are those after the program's
/// name, of which the last is being typed.
std::string complete_line(Args words) {
  std::erase(words, "=");  // bash takes it for a word
  if (words.empty()) words.emplace_back();
  std::string typed = words.back();
  words.pop_back();
  std::string before = words.empty() ? "" : words.back();
  const std::size_t equals = typed.starts_with("--") ? typed.find('=') : std::string::npos;
  if (equals != std::string::npos) before = typed.substr(0, equals);
  const auto word = std::find_if(words.begin(), words.end(), [](const std::string& arg) {
    return find_command(arg) != nullptr;
  });
  std::vector<Candidate> candidates =
      word == words.end() ? complete_command_name() : find_command(*word)->complete(before, typed);
  if (word == words.end())
    for (const char* option : {"--help", "--version"}) candidates.push_back({option});
  if (equals != std::string::npos)
    for (Candidate& each : candidates) each.word.insert(0, typed, 0, equals + 1);
  return candidate_lines(candidates, typed);
}

/// Whether a word that is no command is meant as a file: it is one, or looks like its name.
bool may_be_file(const std::string& word) {
  std::error_code error;
  return word.find_first_of("./:") != std::string::npos || std::filesystem::exists(word, error);
}

/// Parses a line without any command: a file alone is for `info`.
Command parse_without_command(const Invocation& invocation) {
  const Args& args = invocation.args;
  const auto is_word = [](const std::string& arg) { return !arg.starts_with('-'); };
  const auto word = std::find_if(args.begin(), args.end(), is_word);
  // Behind options, the first word may be the value of one.
  const bool has_file = word == args.begin() ? may_be_file(*word)
                                             : std::any_of(word, args.end(), [&](const auto& arg) {
                                                 return is_word(arg) && may_be_file(arg);
                                               });
  if (word != args.end() && !has_file) throw unknown_command(*word);
  if (word != args.end()) {
    if (word == args.begin() && args.size() > 1 && is_word(args[1]) && may_be_file(args[1]))
      throw UsageError(fmt::format("a command is missing before '{}'", escape(*word)),
                       fmt::format("qrtool factor {} {}, for example; {}", escape(*word),
                                   escape(args[1]), commands_hint()));
    return find_command("info")->parse(invocation);
  }
  if (asks_for_help(args)) return HelpRequest{overview_of(invocation.program)};
  constexpr std::array<std::string_view, 2> known{"--help", "--version"};
  const std::string_view near = nearest(args.front(), known);
  if (!near.empty())
    throw UsageError(
        fmt::format("unknown option '{}'; did you mean '{}'?", escape(args.front()), near));
  throw UsageError("a command is missing", commands_hint());
}

}  // namespace

Command parse_command_line(int argc, const char* const* argv) {
  Args args(argv + std::min(argc, 1), argv + argc);
  const std::string program =
      argc > 0 && std::string_view(argv[0]).ends_with("qrtool-mpi") ? "qrtool-mpi" : "qrtool";
  if (args.empty()) return HelpRequest{overview_of(program), false};
  if (args.front() == "complete") return HelpRequest{complete_line({args.begin() + 1, args.end()})};
  if (contains(args, "--version")) return VersionRequest{contains(args, "--json")};
  // Options may come before the command; they belong to it.
  const auto word = std::find_if(args.begin(), args.end(), [](const std::string& arg) {
    return find_command(arg) != nullptr;
  });
  if (word == args.end()) return parse_without_command({program, args});
  const CommandEntry& command = *find_command(*word);
  args.erase(word);
  return command.parse({program, args});
}

bool asks_for_json(int argc, const char* const* argv) {
  return contains(Args(argv + std::min(argc, 1), argv + argc), "--json");
}

}  // namespace qrtool
