// SPDX-License-Identifier: Apache-2.0
// describe.cpp: every option of every command, with its help text.
#include "app/cli/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

#include "app/cli/describe_bench.hpp"
#include "app/cli/option_values.hpp"
#include "app/solve/design.hpp"
#include "core/error.hpp"
#include "core/join.hpp"
#include "core/matrix/matrices.hpp"
#include "core/text.hpp"
#include "core/whole_number.hpp"
#include "io/csv/parser/columns.hpp"
#include "io/file/scratch_file.hpp"

namespace qrtool {
namespace {

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
    {"auto", "auto"}, {"cpu", "cpu"}, {"gpu", "gpu"}, {"opencl", "opencl"}};
constexpr std::pair<std::string_view, Product> products[] = {
    {"qt", Product::qt}, {"q", Product::q}, {"rinv", Product::rinv}, {"rinvt", Product::rinvt}};
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

constexpr std::pair<std::string_view, StreamFormat> stream_formats[] = {{"csv", StreamFormat::csv},
                                                                        {"npy", StreamFormat::npy}};

/// Adds an option whose value is a character, by its word or as it is.
template <std::size_t N>
void add_character(CommandLine& line, const char* name, char& value, const char* help,
                   const std::pair<std::string_view, char> (&words)[N]) {
  line.value(name, "C", help, [&value, &words, name](const std::string& text) {
    std::vector<std::string_view> names;
    for (const auto& [word, character] : words) {
      if (text == word || text == std::string(1, character)) return void(value = character);
      names.push_back(word);
    }
    if (text != "\\t") throw not_one_of(name, text, names);
    value = '\t';
  });
  line.suggest(name, [&words] {
    std::vector<Candidate> candidates;
    for (const auto& [word, character] : words) candidates.push_back({std::string(word)});
    return candidates;
  });
}

/// Adds an option whose value is a number of lines, or a line.
void add_lines(CommandLine& line, const char* name, index_t& value, index_t least,
               const char* help) {
  line.value(name, "N", help, [&value, least, name](const std::string& text) {
    value = parse_whole(name, text, least, index_t{1} << 40);
  });
}

/// Adds the options that say how a CSV file is written.
void add_csv_options(CommandLine& line, CsvOptions& csv) {
  add_character(line, "--delimiter", csv.delimiter,
                "CSV: comma, semicolon, tab, space, pipe, or the character; default: what "
                "separates the first row",
                delimiter_words);
  line.choice("--decimal", csv.decimal, "CSV: the decimal sign", decimal_words);
  add_character(line, "--thousands", csv.thousands,
                "CSV: between the thousands of a number: comma, point, space, apostrophe, or the "
                "character; with point the comma is the decimal sign",
                thousands_words);
  add_lines(line, "--skip-rows", csv.skip_rows, 0, "CSV: leave out the first N lines");
  add_lines(line, "--names-row", csv.names_row, 1,
            "CSV: line N holds the names of the columns, also behind # or %; lines above it, and "
            "lines without numbers below it, such as units, are left out");
  add_lines(line, "--end-row", csv.end_row, 1, "CSV: line N is the last that is read");
  line.choice("--header", csv.header, "CSV: whether the first line holds the names of the columns",
              answer_words);
  line.list("--columns", "LIST",
            "CSV: the columns to read, by number from 1 or by name: 2-5,height,8-",
            [&csv](const std::string& text) {
              check_columns({"--columns", text});
              csv.columns = text;
            });
  line.choice("--index-column", csv.index_column,
              "CSV: whether the first column is an index, which is left out", answer_words);
  line.repeated("--na-text", "TEXT",
                "CSV: means a missing number (NaN), as an empty field and NA do; may be repeated",
                [&csv](const std::string& text) { csv.na_texts.push_back(text); });
}

void add_raw_values(CommandLine& line, bool& raw_values) {
  line.flag("--raw-values", raw_values,
            "HDF5 and netCDF: take numbers as they are stored, without _Unsigned, scale_factor, "
            "add_offset, _FillValue and missing_value");
}

/// Adds the options that say how the numbers of a file are read.
template <class Options>
void add_layout_options(CommandLine& line, Options& o) {
  line.choice("--order", o.order,
              "which stored dimension of a matrix runs over rows; MATLAB, Octave, Julia and R "
              "store column",
              orders);
  add_raw_values(line, o.raw_values);
  add_csv_options(line, o.csv);
}

/// Adds the input options that `factor` and `verify` share.
template <class Options>
void add_input_options(CommandLine& line, Options& o) {
  line.repeated(
      "--dataset", "PATH",
      "dataset in IN, as in FILE:PATH; default: the only one; repeated: several in one OUT, as are "
      "those of a pattern of factor: '*', '/sub-*/A'",
      [&o](const std::string& text) {
        if (o.datasets.empty()) o.dataset = text;
        o.datasets.push_back(text);
      });
  add_layout_options(line, o);
}

void add_backend_options(CommandLine& line, BackendRequest& request) {
  line.choice(
      "--backend", request.name,
      "what computes; auto: a GPU where there is one and the work is worth its start; gpu: a "
      "GPU or nothing; opencl: also a CPU that OpenCL runs on",
      backends);
  line.value(
      "--device", "DEVICE",
      "OpenCL device by number or part of its name, or cuda:N, see qrtool devices: the first "
      "of that name, ranks take them in turn; all: a batch is spread over the GPUs that are like "
      "the first; default: the first GPU",
      [&request](const std::string& text) { request.device = text; });
  line.value("--variant", "BACKEND/NAME", "forces a variant; --explain names the planned one",
             [&request](const std::string& text) { request.variant = text; });
  line.suggest("--device", device_candidates);
  line.suggest("--variant", variant_candidates);
  line.environment("--device", "QRTOOL_DEVICE",
                   [&request](const std::string& text) { request.usual_device = text; });
  // The ranks of a run compare the backends and the plans that follow from these.
  for (const char* name : {"--backend", "--device", "--variant"}) line.not_deciding(name);
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
  for (const char* name : {"--memory", "--threads"}) line.not_deciding(name);
}

void add_dry_run(CommandLine& line, bool& dry_run) {
  line.flag("--dry-run", dry_run,
            "write nothing; print the plan, the bytes of files and memory, the free space and the "
            "expected time");
}

void parse_shard(const std::string& text, InputsOfRun& taken) {
  const std::size_t slash = text.find('/');
  const auto share = whole_number(text.substr(0, slash));
  const auto shares =
      slash == std::string::npos ? std::nullopt : whole_number(text.substr(slash + 1));
  if (!share || !shares || *share < 1 || *share > *shares)
    throw UsageError(fmt::format("--shard: '{}' is not I/N, with I from 1 to N", escape(text)),
                     "the second of eight jobs has --shard 2/8");
  taken.share = *share;
  taken.shares = *shares;
}

/// Adds --into, for several inputs in one run. `words` says what the words of the line mean then.
template <class Options>
void add_into(CommandLine& line, Options& o, std::string_view words) {
  line.value("--into", "DIR",
             fmt::format("{}; the output of each is named as it is, in the folder DIR, which is "
                         "made: DIR/a.npy of a.npy or a.npy:[0:9], DIR/t.csv of t.csv.gz, DIR/m.h5 "
                         "of m.mat, since .mat is no output",
                         words),
             [&o](const std::string& text) { o.into = text; });
  line.many("--into", o.inputs);
  line.flag("--skip-existing", o.taken.skip_existing,
            "with --into: leave out inputs whose output is there and passes; one that does not "
            "pass is made again");
  line.value("--shard", "I/N",
             "with --into: take every Nth input from the Ith on, as one of N jobs: 2/8",
             [&o](const std::string& text) { parse_shard(text, o.taken); });
}

template <class Options>
void add_report_options(CommandLine& line, Options& o) {
  line.value("--report", "FILE", "every matrix's errors also as FILE.csv or FILE.json",
             [&o](const std::string& text) { o.report = text; });
  line.flag("-f,--force", o.force, "replace existing files");
}

/// Adds the options of every command. Its help shows them last.
void add_print_options(CommandLine& line, PrintOptions& o) {
  line.flag("--json", o.json, "the result as one JSON document");
  line.flag("-q,--quiet", o.quiet, "print errors only");
  line.flag("-v,--verbose", o.verbose, "print notes too");
  line.choice("--progress", o.progress, "a progress line on standard error", progress_modes);
  line.value("--log", "FILE", "append what is printed to FILE, too, with the time",
             [&o](const std::string& text) { o.log = text; });
  for (const char* name : {"--json", "--quiet", "--verbose", "--progress", "--log"})
    line.not_deciding(name);
}

void describe(CommandLine& line, FactorOptions& o) {
  line.positional(
      "IN", o.input,
      "FILE, FILE:/path/in/file or FILE.npz:member; HDF5, .npy, .npz, CSV (also gzip) or "
      "Matrix Market; - is standard input: CSV, Matrix Market or .npy; a part: "
      "'FILE:/path[0:1000]', "
      "'FILE:[::2, :, 3:]', as in Python");
  line.positional(
      "OUT", o.output,
      "HDF5, or by its ending .npz, .npy (OUT.Q.npy, OUT.R.npy), .csv, .tsv, .txt, .mtx; "
      "- with --mode r: R on standard output");
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
  line.flag("--leverage", o.leverage,
            "the leverages of the rows, too: the diagonal of the hat matrix, m numbers for each A");
  line.flag("--intercept", o.intercept, "a column of ones before the columns of A");
  line.choice("--missing", o.skips_missing,
              "what becomes of a matrix that holds NaN; skip: it loses these rows, where Q is 0",
              missing_words);
  add_input_options(line, o);
  add_backend_options(line, o.backend);
  add_resource_options(line, o);
  line.value("--scratch", "DIR",
             "where a matrix is factored row by row, store the data between the two passes in "
             "DIR, not in memory; copies of compressed inputs, too",
             [&o](const std::string& text) { o.scratch = text; });
  line.flag("--explain", o.explain, "print the choice of the backend and the plan before running");
  line.not_deciding("--explain");
  add_dry_run(line, o.dry_run);
  line.choice("--format", o.format, "of OUT -", stream_formats);
  add_into(line, o, "every word of the line is an IN");
  add_report_options(line, o);
}

void add_weights(CommandLine& line, SystemOptions& o) {
  line.value("--weights", "W",
             "FILE, or a column of the table: weights of the squared residuals, m numbers or as "
             "many as B; 0 leaves a row out",
             [&o](const std::string& text) { o.weights = text; });
  line.choice("--rows", o.rows, "which dimension of B is that of A's rows", rows_words);
}

/// The options of `solve` and of `verify` for solutions.
void add_system_options(CommandLine& line, SystemOptions& o) {
  line.list("--response", "LIST",
            "CSV: the column that is b, by name or number; all others are A; several: y1,y2",
            [&o](const std::string& text) {
              check_columns({"--response", text});
              o.response = text;
            });
  line.flag("--intercept", o.intercept, "a column of ones before the columns of A");
  line.list("--a", "LIST",
            "the columns of A: arrays of one dimension in the file A (t,obs/depth), or, with "
            "--response, columns of the table",
            [&o](const std::string& text) { o.a = text; });
  line.list("--polynomial", "LIST",
            "powers of a column of A: t:2 adds t^2 behind t, which is a name, or a number from 1",
            [&o](const std::string& text) {
              parse_polynomial(text);
              o.polynomial = text;
            });
  add_weights(line, o);
  line.choice("--missing", o.skips_missing,
              "what becomes of a problem that holds NaN; skip: it "
              "loses these rows",
              missing_words);
  line.flag("--least-norm", o.least_norm,
            "where fewer rows count than A has columns: x of least norm, not NaN");
  line.value("--ridge", "X",
             "minimise ||A x - b||^2 + X ||x||^2, less the x of --intercept; default 0",
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

/// An option that statistics programs have, and how their users get there with `solve`.
struct Elsewhere {
  std::string_view option, hint;
};
constexpr Elsewhere statistics[] = {
    {.option = "--predict", .hint = "predictions are A X with the new rows as A: in NumPy a @ x"},
    {.option = "--group", .hint = "--by COLUMN is one regression for each group of a table"},
    {.option = "--rolling", .hint = "--window N is one regression for each row over the last N"},
    {.option = "--hat", .hint = "--leverage writes the diagonal of the hat matrix"},
    {.option = "--dummies",
     .hint = "write a column of 0 and 1 for each category: pandas.get_dummies(frame, dtype=int)"},
    {.option = "--p-values",
     .hint = "with --response and OUT.csv, t and p stand beside each coefficient"},
    {.option = "--formula",
     .hint = "--response names b, --columns the columns that are read, --intercept adds ones"}};

void describe(CommandLine& line, SolveOptions& o) {
  for (const auto& [option, hint] : statistics) line.elsewhere(option, hint);
  line.positional("A", o.a,
                  "the matrices, as for factor: FILE, FILE:/path/in/file, 'FILE:/path[0:1000]'; or "
                  "a table, with --response");
  line.optional_positional("B", o.b, "the right sides, also of one dimension; not with --response");
  line.optional_positional("OUT", o.output,
                           "HDF5, or by its ending .npz, .npy (OUT.X.npy, OUT.report.json), .csv, "
                           ".tsv, .txt, .mtx; - is standard output: x alone, or the coefficients "
                           "of a table");
  add_system_options(line, o.system);
  line.list("--by", "LIST",
            "with --response: one regression for each group of rows that have the same text in "
            "these columns, and a row for each in OUT.csv",
            [&o](const std::string& text) {
              check_columns({"--by", text});
              o.by = text;
            });
  line.value("--groups", "FILE",
             "as --by, for A and B in files: one number for each row of A, as FILE:/path; A and B "
             "are of rows in any order",
             [&o](const std::string& text) { o.groups = text; });
  line.value("--window", "N",
             "one regression for each row, over the last N rows up to it, or with expanding over "
             "all (with --by or --groups: of its group), and a line or slice for each in OUT",
             [&o](const std::string& text) {
               o.window.expands = text == "expanding";
               if (!o.window.expands)
                 o.window.rows = parse_whole("--window", text, 1, index_t{1} << 40);
             });
  line.value("--min-rows", "K",
             "with --window: at least K of its rows must count, else x is NaN; default N, of "
             "expanding the columns of A",
             [&o](const std::string& text) {
               o.window.least = parse_whole("--min-rows", text, 1, index_t{1} << 40);
             });
  line.flag("--basic", o.basic, "dependent columns: as many zeros as possible, not the least norm");
  line.flag("--no-se", o.no_se, "leave the standard errors out");
  line.value("--confidence", "X",
             "with --response: the limits of the coefficients, too, with this probability: 0.95",
             [&o](const std::string& text) {
               o.confidence = parse_number("--confidence", text, 0);
               if (!(o.confidence > 0 && o.confidence < 1))
                 throw UsageError(fmt::format("--confidence: {} is no probability between 0 and 1",
                                              escape(text)),
                                  "for 95 % give 0.95");
             });
  line.flag("--covariance", o.covariance,
            "the covariance of the entries of every x, n x n, beside their standard errors");
  line.flag("--state", o.state, "what append needs, too: R, Q'b and sums of all rows; OUT is HDF5");
  line.flag("--residuals", o.residuals,
            "the residuals b - A x, too, in the shape and type of B; NaN where a row is missing");
  line.flag("--fitted", o.fitted,
            "the fitted values A x, too, in the shape and type of B; NaN where A is missing");
  line.flag("--leverage", o.leverage,
            "the leverages, too: the diagonal of the hat matrix, m numbers for each A");
  line.choice("--precision", o.precision, "of X; input: float32 where A and B are",
              solution_precisions);
  add_layout_options(line, o);
  add_backend_options(line, o.backend);
  add_resource_options(line, o);
  line.value("--scratch", "DIR",
             "with --by, --groups or --window: where rows that exceed the memory are kept, and "
             "standard input; default: the temporary directory",
             [&o](const std::string& text) { o.scratch = text; });
  add_dry_run(line, o.dry_run);
  line.choice("--format", o.format, "of OUT -", stream_formats);
  add_into(line, o, "every word behind A is a B; with --response every word is a table");
  line.flag("-f,--force", o.force, "replace existing files");
}

void describe(CommandLine& line, AppendOptions& o) {
  line.positional("STATE", o.before, "an output of solve --state, of append, or R alone");
  line.positional("NEW", o.a, "the rows of A, or the table, as for solve or for factor");
  line.optional_positional("B", o.b, "the right sides of these rows; not where NEW is a table");
  line.optional_positional("OUT", o.output, "HDF5; of R alone also by its ending, as for factor");
  add_weights(line, o.system);
  add_layout_options(line, o);
  add_resource_options(line, o);
  add_dry_run(line, o.dry_run);
  line.flag("-f,--force", o.force, "replace an existing OUT");
}

void describe(CommandLine& line, ApplyOptions& o) {
  line.positional("FACTORS", o.factors,
                  "an output of factor, or factors of any program, as verify");
  line.positional("B", o.b, "the right sides, also of one dimension, as for solve");
  line.positional("OUT", o.output,
                  "HDF5, or by its ending .npz, .npy (OUT.X.npy, OUT.report.json), .csv, .tsv, "
                  ".txt, .mtx; - is standard output: X alone");
  line.choice("--with", o.product,
              "qt: X = Q'B; q: X = QB; rinv: X = R^-1 B; rinvt: X = R^-H B; ' and H are the "
              "conjugate transpose; with P: P R^-1 B and R^-H P'B",
              products);
  line.choice("--rows", o.rows, "which dimension of B is multiplied", rows_words);
  add_layout_options(line, o);
  add_resource_options(line, o);
  add_dry_run(line, o.dry_run);
  line.choice("--format", o.format, "of OUT -", stream_formats);
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

/// Adds the option that `devices` and `generate` share.
template <class Options>
void add_shape_option(CommandLine& line, Options& o, const std::string& help) {
  line.value("--shape", "BxMxN", help, [&o](const std::string& text) {
    Shape shape = parse_shape("--shape", text,
                              "allowed are MxN and BxMxN, for example 1000x64x32 for 1000 matrices "
                              "of 64 rows and 32 columns");
    o.leading = std::move(shape.leading);
    o.m = shape.m;
    o.n = shape.n;
    if constexpr (std::is_same_v<Options, DevicesOptions>) o.has_shape = true;
  });
}

void describe(CommandLine& line, InfoOptions& o) {
  line.positional("FILE", o.file,
                  "as IN of factor: FILE, FILE:/path/in/file, FILE.npz:member; or an output of "
                  "factor or solve, also a set of files by its name: out.npy, out.csv");
  line.value("--dataset", "PATH", "dataset in FILE, as in FILE:PATH; default: all of them",
             [&o](const std::string& text) { o.dataset = text; });
  add_layout_options(line, o);
  line.value(
      "--plot", "FILE",
      "of an output: draw how its errors lie below their bars, as FILE.svg or FILE.png, with "
      "gnuplot",
      [&o](const std::string& text) { o.plot = text; });
  line.flag("-f,--force", o.force, "replace an existing picture");
}

void describe(CommandLine& line, DevicesOptions& o) {
  line.optional_positional("FILE", o.build_file,
                           "with --build: the matrices whose kernels are built, as IN of factor");
  add_shape_option(line, o, "the problem to answer for; default 15000x64x64");
  line.choice("--precision", o.type, "of its elements", element_types);
  line.flag(
      "--timings", o.timings,
      "instead: what starts and kernels took in earlier runs, by which --backend auto decides");
  line.flag(
      "--build", o.builds,
      "instead: builds the kernels of FILE's shapes, of --shape, or of usual shapes, for later "
      "runs");
  line.value("--device", "DEVICE", "with --build: where, as for factor; default: the first GPU",
             [&o](const std::string& text) { o.device = text; });
  line.suggest("--device", device_candidates);
  line.environment("--device", "QRTOOL_DEVICE");
  line.flag("--forget", o.forget, "removes these times, and tables of bench --rates");
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
  line.flag("--complex", o.is_complex, "complex numbers; haar: uniform in U(n)");
  line.flag("--special", o.special, "haar: determinant +1, uniform in SO(n); square only");
  line.flag("-f,--force", o.force, "replace an existing file");
}

}  // namespace

template <class Options>
void describe_options(CommandLine& line, Options& options) {
  describe(line, options);
  add_print_options(line, options);
}

template void describe_options(CommandLine&, FactorOptions&);
template void describe_options(CommandLine&, SolveOptions&);
template void describe_options(CommandLine&, AppendOptions&);
template void describe_options(CommandLine&, ApplyOptions&);
template void describe_options(CommandLine&, VerifyOptions&);
template void describe_options(CommandLine&, GenerateOptions&);
template void describe_options(CommandLine&, InfoOptions&);
template void describe_options(CommandLine&, DevicesOptions&);
template void describe_options(CommandLine&, BenchOptions&);

}  // namespace qrtool
